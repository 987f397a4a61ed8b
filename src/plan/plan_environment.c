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

static void redact_withheld(struct plan_build *build, const char *name, size_t name_len, const char *value)
{
	size_t len = strlen(value);
	const char *secret = url_password(value, &len);

	/* A password too short to be told from ordinary text: the whole value, if the name says that it is a secret. */
	if (!secret || len < SECRET_VALUE_MIN) {
		if (!looks_secret(name, name_len))
			return;
		secret = value;
		len = strlen(value);
	}
	if (len < SECRET_VALUE_MIN)
		return;
	if (string_list_add_format(&build->plan->redact, "%.*s", (int)len, secret) < 0)
		build->has_failed = true;
}

static void add(struct plan_build *build, const char *name, const char *value)
{
	if (!value_inside(&build->plan->env, name, strlen(name)) &&
	    string_list_add_format(&build->plan->env, "%s=%s", name, value) < 0)
		build->has_failed = true;
}

static void inherit(struct plan_build *build)
{
	struct string_list *env = &build->plan->env;

	for (char *const *variable = build->host->environment; variable && *variable; variable++) {
		const char *equals = strchr(*variable, '=');
		size_t len = equals ? (size_t)(equals - *variable) : 0;
		const char *inside;

		if (!len)
			continue;
		inside = value_inside(env, *variable, len);
		if (!inside && is_passed(build->policy, *variable, len)) {
			if (string_list_add(env, *variable) < 0)
				build->has_failed = true;
		} else if (build->policy->has_redact_env && (!inside || strcmp(inside, equals + 1) != 0)) {
			redact_withheld(build, *variable, len,
					equals + 1); /* also where a made-up value stands in for it */
		}
	}
}

int plan_environment(struct plan_build *build)
{
	const struct policy *policy = build->policy;

	for (size_t i = 0; i < policy->redact.count; i++)
		if (string_list_add(&build->plan->redact, policy->redact.items[i]) < 0)
			build->has_failed = true;
	/* What was set by name comes first: it wins over what would be inherited. */
	for (size_t i = 0; i < policy->env.count; i++)
		add(build, policy->env.items[i].name, policy->env.items[i].value);
	if (build->plan->run_directory) {
		add(build, "HOME", plan_format(build, "%s/home", build->plan->run_directory));
		add(build, "TMPDIR", plan_format(build, "%s/tmp", build->plan->run_directory));
	}
	add(build, "HOME", build->host->home);
	add(build, "TMPDIR", "/tmp");
	inherit(build);
	return 0;
}
