/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/engine_search.c - have the helper look before a run, list directories during it, and search after it
 *
 * The engine waits for no search. A helper that ended knows nothing any more: then the result says that nothing was searched.
 */
#include "engine/engine_search.h"

bool engine_may_leave_risks(const struct host *host)
{
	/* Under a layer the command writes to no file of the host's: what changes there meanwhile is other programs' work. */
	return survey_is_searched(host) && !(host->has_workdir_layer && !host->mounts.count);
}

/* --- what to compare with ----------------------------------------------------------------------------------- */

static struct engine_baseline *baseline_of(struct engine_helper *helper)
{
	struct engine_baseline *baseline = calloc(1, sizeof(*baseline));

	if (!baseline)
		return NULL;
	*baseline = (struct engine_baseline){1, engine_helper_hold(helper), engine_helper_number(helper)};
	return baseline;
}

struct engine_baseline *engine_baseline_new(const struct engine_project *project, struct engine_question *question)
{
	struct engine_baseline *baseline = project->helper ? baseline_of(project->helper) : NULL;
	uint64_t numbers[] = {project->number, baseline ? baseline->number : 0};

	if (baseline)
		engine_helper_tell(project->helper, HELPER_LOOK, question, numbers, ARRAY_LEN(numbers));
	return baseline;
}

struct engine_baseline *engine_baseline_empty(const struct engine_project *project)
{
	struct engine_baseline *baseline = baseline_of(project->helper);

	if (baseline)
		baseline->number = HELPER_NOTHING;
	return baseline;
}

struct engine_baseline *engine_baseline_hold(struct engine_baseline *baseline)
{
	baseline->users++;
	return baseline;
}

void engine_baseline_release(struct engine_baseline *baseline)
{
	if (!baseline || --baseline->users)
		return;
	engine_helper_tell(baseline->helper, HELPER_FORGET_BASELINE, NULL, &baseline->number, 1);
	engine_helper_release(baseline->helper);
	free(baseline);
}

/* --- the search --------------------------------------------------------------------------------------------- */

void engine_search_begin(struct engine_search *search, const struct engine_project *project,
			 struct engine_baseline *baseline)
{
	search->project = *project;
	search->baseline = baseline;
	if (baseline)
		engine_helper_tell(baseline->helper, HELPER_GROW, NULL, &project->number, 1);
}

static void on_found(void *owner, struct unpack *answer)
{
	struct engine_search *search = owner;

	if (!answer || survey_unpack_risky(answer, &search->risky) < 0)
		search->risky.unsearched = RISKY_IS_LOST;
	if (search->risky.unsearched == RISKY_IS_LOST) {
		engine_baseline_release(search->next);
		search->next = NULL;
	}
	search->over(search->owner);
}

void engine_search_end(struct engine_search *search, bool was_protected, void (*over)(void *owner), void *owner)
{
	if (!search->baseline) {
		over(owner);
		return;
	}
	search->over = over;
	search->owner = owner;
	search->question.answered = on_found;
	search->question.owner = search;
	search->next = baseline_of(search->baseline->helper);
	engine_helper_tell(search->baseline->helper, HELPER_SEARCH, &search->question,
			   (const uint64_t[]){search->project.number, search->baseline->number,
					      search->next ? search->next->number : 0, was_protected,
					      engine_helper_is_for_one(search->baseline->helper)},
			   5);
}

void engine_search_done(struct engine_search *search)
{
	engine_question_done(&search->question);
	engine_baseline_release(search->baseline);
	engine_baseline_release(search->next);
	survey_risky_done(&search->risky);
	*search = (struct engine_search){0};
}
