/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/command_net.c - `net check`: what a gate would decide, and by which rule; runs nothing, asks nobody
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "policy/net_address.h"

#define EXIT_REFUSED 1

/* Whom the question is about. */
struct asked {
	bool is_address, is_ipv6;
	uint8_t address[16];
	char name[NET_NAME_SIZE];
	uint16_t port;
	const char *method, *path; /* NULL: not said */
};

static bool read_asked(const char *text, struct asked *asked)
{
	const char *colon = strrchr(text, ':');
	size_t len = colon ? (size_t)(colon - text) : 0;
	char host[NET_NAME_SIZE], *rest;
	unsigned long port;

	if (!len || len >= sizeof(host) || colon[1] < '0' || colon[1] > '9')
		return false;
	port = strtoul(colon + 1, &rest, 10);
	if (*rest || !port || port > UINT16_MAX)
		return false;
	if (text[0] == '[' && text[len - 1] == ']') {
		text++;
		len -= 2;
	}
	memcpy(host, text, len);
	host[len] = '\0';
	asked->port = (uint16_t)port;
	asked->is_ipv6 = inet_pton(AF_INET6, host, asked->address) == 1;
	asked->is_address = asked->is_ipv6 || inet_pton(AF_INET, host, asked->address) == 1;
	return asked->is_address || net_name_clean(host, len, asked->name);
}

static int read_rules(const struct string_list *texts, struct net_rule_list *rules)
{
	struct net_refusal refusal;

	for (size_t i = 0; i < texts->count; i++) {
		struct net_rule *rule = list_add(rules);

		if (!rule || net_rule_parse(texts->items[i], rule, &refusal) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int answer(const struct policy *policy, const struct asked *asked, const char *text, struct text *out)
{
	AUTO_FREE struct net_rule *items = NULL;
	struct net_rule_list rules = {0};
	struct net_verdict verdict;
	AUTO_TEXT rule = {0};
	bool is_special;

	if (policy->net == NET_HOST) {
		text_append_format(out, "allowed: %s: net is 'host'\n", text);
		return 0;
	}
	if (policy->net == NET_NONE) {
		text_append_format(out, "refused: %s: net is 'none'\n", text);
		return EXIT_REFUSED;
	}
	if (read_rules(&policy->allow_net, &rules) < 0)
		return -ENOMEM;
	items = rules.items;
	verdict = asked->is_address ? net_decide_address(&rules, asked->is_ipv6, asked->address, asked->port)
		  : asked->method   ? net_decide_request(&rules, asked->name, asked->port, asked->method, asked->path)
				    : net_decide_name(&rules, asked->name, asked->port);
	if (verdict.rule)
		net_rule_format(verdict.rule, &rule);
	is_special = asked->is_address && verdict.is_allowed &&
		     !address_may_be_dialled(verdict,
					     (struct address_permit){verdict.rule->kind, verdict.rule->may_be_private},
					     asked->is_ipv6, asked->address, false);
	if (verdict.is_allowed && !is_special) {
		text_append_format(out, "allowed: %s: by the rule %s\n", text, text_string(&rule));
		return 0;
	}
	if (!verdict.rule)
		text_append_format(out, "refused: %s: no rule of allow_net is about it\n", text);
	else if (is_special)
		text_append_format(out, "refused: %s: the rule %s is too wide for an address of this kind\n", text,
				   text_string(&rule));
	else
		text_append_format(out, "refused: %s: by the rule %s%s%s\n", text, text_string(&rule),
				   verdict.rule->reason[0] ? ": " : "", verdict.rule->reason);
	return EXIT_REFUSED;
}

static bool is_file_name(const char *word)
{
	size_t len = strlen(word);

	return strchr(word, '/') || (len > 5 && !strcmp(word + len - 5, ".json"));
}

/* Rules of a file that is named beside options are added to theirs. */
static int add_file(struct policy *policy, const char *name, const struct policy_context *context, struct error *error)
{
	AUTO(policy_done) struct policy file = {0};
	int rc = policy_init(&file, context, error);

	if (rc == 0)
		rc = policy_load(&file, name, context, error);
	if (rc < 0)
		return rc;
	policy->net = MAX_OF(policy->net, file.net);
	for (size_t i = 0; i < file.allow_net.count && rc == 0; i++)
		rc = string_list_add(&policy->allow_net, file.allow_net.items[i]);
	return rc < 0 ? error_set(error, STAGE_ENGINE, ENOMEM, "out of memory") : 0;
}

int command_net(const struct invocation *invocation, struct run_options *options, const struct messenger *messenger)
{
	const struct policy_context context = {
		.current_directory = invocation->current_directory ? invocation->current_directory : "/",
		.home = invocation->home,
	};
	int at = 1, rc = 0;
	struct error error = {0};
	struct asked asked = {0};
	AUTO_TEXT out = {0};

	if (at < options->word_count && is_file_name(options->words[at]))
		rc = add_file(&options->policy, options->words[at++], &context, &error);
	if (rc == 0 && (at >= options->word_count || !read_asked(options->words[at], &asked))) {
		rc = error_set(&error, STAGE_USAGE, 0, "say which host, as HOST:PORT");
		error_hint(&error, "`belljar net check --allow-net example.org example.org:443`");
	}
	if (rc == 0 && options->word_count - at != 1 && options->word_count - at != 3)
		rc = error_set(&error, STAGE_USAGE, 0, "HOST:PORT is followed by METHOD and PATH, or by nothing");
	if (rc == 0 && options->word_count - at == 3) {
		asked.method = options->words[at + 1];
		asked.path = options->words[at + 2];
	}
	if (rc == 0)
		rc = answer(&options->policy, &asked, options->words[at], &out);
	if (rc == -ENOMEM)
		error_set(&error, STAGE_ENGINE, ENOMEM, "out of memory");
	if (rc < 0) {
		message_error(messenger, &error);
		return EXIT_BELLJAR;
	}
	return print_out(&out, messenger) == 0 ? rc : EXIT_BELLJAR;
}
