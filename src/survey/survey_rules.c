/* SPDX-License-Identifier: Apache-2.0 */
/*
 * survey/survey_rules.c - find the files that other programs use because of a project's own links and configurations
 *
 * The same search as before a run (survey_watch.c), of the project as the host has it. A run compares what it finds before and
 * after; changes in a layer are judged before they are made, so what is not there yet counts too.
 */
#include "survey/survey_rules.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "survey/survey.h"
#include "survey/survey_own.h"
#include "survey/survey_paths.h"
#include "survey/survey_watch.h"

/* @extra with the part of its path that lies below @workdir; what lies elsewhere no change of the project reaches. */
static int add_below(struct risk_rules *rules, const char *workdir, const char *path, const struct risk_extra *extra)
{
	const char *below = path + strlen(workdir);

	if (!path_is_within(path, workdir))
		return 0;
	below += strspn(below, "/");
	return *below ? survey_risk_rules_add(rules, below, extra) : 0;
}

static int add_found(struct risk_rules *rules, const char *workdir, const struct watch_list *found)
{
	int rc = 0;

	for (size_t i = 0; i < found->count && rc == 0; i++) {
		const struct watched *item = &found->items[i];

		if (item->kind != WATCH_MUST_STAY)
			rc = add_below(rules, workdir, item->path.path,
				       &(struct risk_extra){
					       .is_only_new = item->kind == WATCH_NEW,
					       .risk = item->kind == WATCH_PROTECTED ? RISK_PROTECTED : RISK_REPORTED,
					       .who = item->who,
				       });
	}
	return rc;
}

/* A run protects them by mounts. A copy has none, and a layer may have been written before Belljar was installed here. */
static int add_own(struct risk_rules *rules, struct host *host)
{
	static const struct risk_extra own = {.risk = RISK_PROTECTED, .who = "Belljar itself is executed from it"};
	int rc = survey_find_own(host);

	for (size_t i = 0; i < host->own.count && rc == 0; i++)
		rc = add_below(rules, host->workdir.path.path, host->own.items[i].path, &own);
	return rc;
}

static int find(struct host *host, const char *workdir, struct risk_rules *rules)
{
	struct risk_rules absent = {.has = NULL};
	struct watch_list found = {.absent = &absent.extra};
	struct error error = {0};
	int rc = survey_find_home(host);

	if (rc == 0)
		rc = survey_project(host, workdir, &error);
	if (rc == 0)
		rc = survey_watch(host, INT64_MAX, &found, NULL);
	if (rc == 0)
		rc = add_found(rules, host->workdir.path.path, &found);
	for (size_t i = 0; i < absent.extra.count && rc == 0; i++)
		rc = add_below(rules, host->workdir.path.path, absent.extra.items[i].path, &absent.extra.items[i]);
	if (rc == 0)
		rc = add_own(rules, host);
	survey_risk_rules_done(&absent);
	survey_watch_done(&found);
	return rc;
}

int survey_find_rules(const char *workdir, char *const *environment, struct risk_rules *rules)
{
	struct host host = {.environment = environment, .uid = getuid(), .gid = getgid()};
	int rc = find(&host, workdir, rules);

	survey_done(&host);
	return rc;
}
