/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/mcp/mcp_tighten.c - what a client may add to a policy must not ask the host anything
 *
 * Of all that can be tightened only `hide` takes a path that is not in the server's policy. If what is hidden were looked for
 * anywhere on the host, the answer would tell a client, which is a model, what is there. So an entry must lie in what the
 * jar shows as a whole, where its commands can look themselves, by names and not by links.
 */
#include "door/mcp/mcp_tighten.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/paths.h"
#include "policy/policy_lists.h"
#include "base/sys/calls.h"

/* Places that `system` shows with all that is in them. */
static const char *const system_places[] = {"/usr", "/opt", "/nix"};

/* How many bytes of @path name @place, if it is in it. */
static size_t depth_in(const char *path, const char *place)
{
	return place && path_is_within(path, place) ? strlen(place) : 0;
}

static bool is_shown(const struct policy *policy, const struct policy_context *context, const char *path)
{
	const char *workdir = policy->workdir_choice == WORKDIR_DEFAULT ? context->current_directory : policy->workdir;
	size_t shown = policy->workdir_choice == WORKDIR_PRIVATE ? 0 : depth_in(path, workdir), empty = 0;

	for (size_t i = 0; i < policy->mounts.count; i++)
		if (!strcmp(policy->mounts.items[i].path, policy->mounts.items[i].dest))
			shown = MAX_OF(shown, depth_in(path, policy->mounts.items[i].dest));
	for (size_t i = 0; i < ARRAY_LEN(system_places) && policy->has_system; i++)
		shown = MAX_OF(shown, depth_in(path, system_places[i]));
	for (size_t i = 0; i < policy->tmpfs.count; i++)
		empty = MAX_OF(empty, depth_in(path, policy->tmpfs.items[i].path));
	return shown > empty;
}

static bool is_hidden_by(const struct string_list *hidden, const char *path)
{
	for (size_t i = 0; i < hidden->count; i++)
		if (path_is_within(path, hidden->items[i]))
			return true;
	return false;
}

/* Whether anything stands there does not matter: only a link on the way does, which the jar sees too. */
static bool leads_through_link(const char *path)
{
	AUTO_CLOSE int fd = sys_openat2(AT_FDCWD, path, O_PATH, 0, SYS_RESOLVE_NO_SYMLINKS);
	size_t len = strlen(path);

	return fd == -ELOOP || (len && path[len - 1] == '/') || strstr(path, "/..") || strstr(path, "/./");
}

static void take_out(struct string_list *list, size_t at)
{
	free(list->items[at]);
	memmove(&list->items[at], &list->items[at + 1], (list->count - at) * sizeof(*list->items));
	list->count--;
}

int mcp_tighten(struct policy *policy, const char *document, size_t len, const struct policy_context *context,
		struct error *error)
{
	AUTO(policy_done) struct policy before = {0};
	int rc = policy_copy(policy, &before);

	if (rc < 0)
		return error_set(error, STAGE_POLICY, -rc, "no memory for a policy");
	rc = policy_tighten_document(policy, document, len, "tighten", context, error);
	for (size_t i = 0; i < policy->hide.count && rc == 0; i++) {
		const char *path = policy->hide.items[i];

		if (policy_string_list_has(&before.hide, path))
			continue;
		/* It is hidden already, and no answer says whether it is there. */
		if (is_hidden_by(&before.hide, path)) {
			take_out(&policy->hide, i--);
			continue;
		}
		if (is_shown(&before, context, path) && !leads_through_link(path))
			continue;
		error_set(error, STAGE_POLICY, 0,
			  "tighten: hide: '%s': the jar does not show it as a part of a directory", path);
		rc = error_hint(error,
				"name a path in the work directory, or in another directory of the policy, without "
				"links and '..' in it; everything else is out of reach without being hidden");
	}
	return rc;
}
