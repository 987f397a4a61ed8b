/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor/probe_project.c - what in the current directory a policy should hide
 *
 * A jar shows its work directory. Files that usually hold secrets are found by their names, as `hide_secrets` finds them.
 */
#include "doctor/probe.h"

#include <string.h>
#include <unistd.h>

#include "base/paths.h"
#include "survey/survey_match.h"

/* One more than is named. */
#define NAMED_MAX 3

/* A home directory is not a project, and neither are the directories above it. */
static bool is_project(const char *directory)
{
	const char *home = getenv("HOME");

	return directory[0] == '/' && directory[1] && !(home && path_is_within(home, directory));
}

static void look_for_secrets(struct finding *finding)
{
	AUTO_FREE char *directory = get_current_dir_name();
	struct string_list found = {0};

	finding->is_found = true;
	if (!directory || !is_project(directory) || survey_find_secret_files(directory, NAMED_MAX + 1, &found) < 0 ||
	    !found.count)
		return;
	finding->is_found = false;
	doctor_finding_value(finding, "it has %s%zu", found.count > NAMED_MAX ? "more than " : "",
			     MIN_OF(found.count, (size_t)NAMED_MAX));
	for (size_t i = 0; i < found.count && i < NAMED_MAX; i++)
		doctor_finding_remedy(finding, "%s\n", found.items[i] + strlen(directory) + 1);
	doctor_finding_remedy(finding,
			      "hide them: belljar run --hide-secrets, or \"hide_secrets\": true in a policy\n");
}

void probe_project_secrets(struct finding *finding)
{
	doctor_finding_in_child(finding, look_for_secrets);
}
