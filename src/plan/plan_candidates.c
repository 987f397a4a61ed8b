/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan/plan_candidates.c - which files may be the command, in the order in which they are tried
 *
 * A name without a slash is looked for in the PATH that the command will have itself. An empty or relative entry of PATH would mean
 * the workdir, where the untrusted side writes: it is not searched.
 */
#include "plan/plan_build.h"

#include <limits.h>
#include <string.h>

#define PATH_DEFAULT "/usr/local/bin:/usr/bin:/bin"

static const char *search_path(const struct string_list *env)
{
	for (size_t i = 0; i < env->count; i++)
		if (!strncmp(env->items[i], "PATH=", 5))
			return env->items[i] + 5;
	return PATH_DEFAULT;
}

void plan_candidates(struct plan_build *build)
{
	struct jar_plan *core = &build->plan->core;
	const char *name = core->argv.items[0], *at = search_path(&core->env);
	int rc = 0;

	if (strchr(name, '/')) {
		rc = string_list_add(&core->candidates, name);
		at = "";
	}
	while (name[0] && rc == 0 && *at) {
		size_t len = strcspn(at, ":");

		if (at[0] == '/' && len + 1 + strlen(name) < PATH_MAX)
			rc = string_list_add_format(&core->candidates, "%.*s/%s", (int)len, at, name);
		at += len + (at[len] == ':');
	}
	if (rc < 0)
		build->has_failed = true;
}
