/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan/plan_environment.c - the variables the command gets, and the values of those it does not get
 *
 * Nothing is inherited that no name in the policy allows. What is withheld and looks like a secret can be redacted from
 * the output, in case the command finds it by another way.
 */
#include "plan/plan_build.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "policy/net_secrets.h"
#include "policy/policy_build.h"

/* A withheld value shorter than this is not worth redacting: it would tear holes into ordinary text. */
#define SECRET_VALUE_MIN 8

static const char *const secret_words[] = {"KEY",    "TOKEN", "SECRET",  "PASS", "CREDENTIAL",
					   "COOKIE", "AUTH",  "PRIVATE", "DSN"};

static bool name_matches(const char *pattern, const char *name, size_t name_len)
{
	size_t len = strlen(pattern);

	if (len && pattern[len - 1] == '*')
		return name_len >= len - 1 && !strncmp(pattern, name, len - 1);
	return name_len == len && !strncmp(pattern, name, len);
}

static bool is_passed(const struct policy *policy, const char *name, size_t len)
{
	for (size_t i = 0; i < policy->pass_env.count; i++)
		if (name_matches(policy->pass_env.items[i], name, len))
			return true;
	return false;
}

/* The value that the command gets, or NULL. */
static const char *value_inside(const struct string_list *env, const char *name, size_t len)
{
	for (size_t i = 0; i < env->count; i++)
		if (!strncmp(env->items[i], name, len) && env->items[i][len] == '=')
			return env->items[i] + len + 1;
	return NULL;
}

static bool looks_secret(const char *name, size_t len)
{
	char upper[256];

	if (len >= sizeof(upper) || (len > 5 && !strncasecmp(name + len - 5, "_SOCK", 5)))
		return false;
	for (size_t i = 0; i < len; i++)
		upper[i] = (char)(name[i] >= 'a' && name[i] <= 'z' ? name[i] - 'a' + 'A' : name[i]);
	upper[len] = '\0';
	for (size_t i = 0; i < ARRAY_LEN(secret_words); i++)
		if (strstr(upper, secret_words[i]))
			return true;
	return false;
}

bool plan_is_secret_variable(const char *name, size_t len)
{
	static const char agent[] = "SSH_AUTH_SOCK";

	return looks_secret(name, len) || (len == strlen(agent) && !strncmp(name, agent, len));
}

/* The password of a URL (scheme://user:password@host), or NULL. */
static const char *url_password(const char *value, size_t *len)
{
	const char *rest = strstr(value, "://"), *end, *at, *colon;

	if (!rest || rest == value)
		return NULL;
	rest += 3;
	end = rest + strcspn(rest, "/?#");
	at = memrchr(rest, '@', (size_t)(end - rest));
	colon = at ? memchr(rest, ':', (size_t)(at - rest)) : NULL;
	if (!colon || at == colon + 1)
		return NULL;
	*len = (size_t)(at - colon - 1);
	return colon + 1;
}

static int redact_withheld(struct string_list *secrets, const char *name, size_t name_len, const char *value)
{
	size_t len = strlen(value);
	const char *secret = url_password(value, &len);

	/* A password too short to be told from ordinary text: the whole value, if the name says that it is a secret. */
	if (!secret || len < SECRET_VALUE_MIN) {
		if (!looks_secret(name, name_len))
			return 0;
		secret = value;
		len = strlen(value);
	}
	return len < SECRET_VALUE_MIN ? 0 : string_list_add_format(secrets, "%.*s", (int)len, secret);
}

int plan_secrets(const struct policy *policy, char *const *environment, const struct string_list *inside,
		 struct string_list *secrets)
{
	int rc = 0;

	for (size_t i = 0; i < policy->redact.count && rc == 0; i++)
		rc = string_list_add(secrets, policy->redact.items[i]);
	for (char *const *variable = environment; rc == 0 && policy->has_redact_env && variable && *variable;
	     variable++) {
		const char *equals = strchr(*variable, '=');
		size_t len = equals ? (size_t)(equals - *variable) : 0;
		const char *given = len && inside ? value_inside(inside, *variable, len) : NULL;

		/* Also where a made-up value stands in for it. */
		if (len && (!given || strcmp(given, equals + 1) != 0))
			rc = redact_withheld(secrets, *variable, len, equals + 1);
	}
	return rc;
}

static void add_variable(struct plan_build *build, const char *name, const char *value)
{
	if (!value_inside(&build->plan->core.env, name, strlen(name)) &&
	    string_list_add_format(&build->plan->core.env, "%s=%s", name, value) < 0)
		build->has_failed = true;
}

static void inherit(struct plan_build *build)
{
	struct string_list *env = &build->plan->core.env;

	for (char *const *variable = build->host->environment; variable && *variable; variable++) {
		const char *equals = strchr(*variable, '=');
		size_t len = equals ? (size_t)(equals - *variable) : 0;

		if (len && !value_inside(env, *variable, len) && is_passed(build->policy, *variable, len) &&
		    string_list_add(env, *variable) < 0)
			build->has_failed = true;
	}
}

/*
 * Where programs look for authorities that have a list of their own. Those of the second table know the host's list;
 * the caller's own choice would not have the jar's authority.
 */
static void add_trust(struct plan_build *build)
{
	static const char *const always[] = {"NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE"};
	static const char *const instead[] = {"SSL_CERT_FILE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO",   "PIP_CERT",
					      "AWS_CA_BUNDLE", "DENO_CERT",      "CARGO_HTTP_CAINFO"};
	const char *path = build->plan->gate.trust_path;

	if (!path)
		return;
	for (size_t i = 0; i < ARRAY_LEN(always); i++)
		add_variable(build, always[i], path);
	for (size_t i = 0; i < ARRAY_LEN(instead); i++)
		if (survey_variable(build->host->environment, instead[i]))
			add_variable(build, instead[i], path);
}

int plan_environment(struct plan_build *build)
{
	const struct policy *policy = build->policy;
	struct plan *plan = build->plan;

	/* Nothing may take the place of a placeholder, or the value itself would be inside. */
	for (size_t i = 0; i < plan->gate.secrets.count; i++)
		add_variable(build, plan->gate.secrets.items[i],
			     plan_format(build, NET_SECRET_PLACEHOLDER "%s", plan->gate.secrets.items[i]));
	/* What was set by name comes first: it wins over what would be inherited. */
	for (size_t i = 0; i < policy->env.count; i++)
		add_variable(build, policy->env.items[i].name, policy->env.items[i].value);
	if (plan->core.run_directory) {
		add_variable(build, "HOME", plan_format(build, "%s/home", plan->core.run_directory));
		add_variable(build, "TMPDIR", plan_format(build, "%s/tmp", plan->core.run_directory));
	}
	add_variable(build, "HOME", build->host->home);
	add_variable(build, "TMPDIR", "/tmp");
	add_trust(build);
	inherit(build);
	/*
	 * tar restores owners if its user is root, which fails without capabilities. A policy that lists the variables
	 * itself gets these and no others.
	 */
	if (build->host->uid == 0 && !policy_is_replaced(policy, "pass_env"))
		add_variable(build, "TAR_OPTIONS", "--no-same-owner");
	/* A layer is another file system to git, which would not look above it for its repository. */
	if (plan_has_git_above_layer(build->host) && !policy_is_replaced(policy, "pass_env"))
		add_variable(build, "GIT_DISCOVERY_ACROSS_FILESYSTEM", "1");
	if (plan_secrets(policy, build->host->environment, &plan->core.env, &plan->redact) < 0)
		build->has_failed = true;
	return 0;
}
