/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/result/result.h - turn an observation into outcome, exit status, explanation and JSON
 */
#ifndef BELLJAR_ENGINE_RESULT_RESULT_H
#define BELLJAR_ENGINE_RESULT_RESULT_H

#include "base/json_write.h"
#include "base/list.h"
#include "base/signals.h"
#include "survey/survey_risky.h"
#include "plan/plan.h"
#include "engine/limits/observation.h"

enum outcome {
	OUTCOME_EXITED,
	OUTCOME_SIGNALED,
	OUTCOME_TIMEOUT,
	OUTCOME_CPU,
	OUTCOME_MEMORY,
	OUTCOME_DISK,
	OUTCOME_OUTPUT,
	OUTCOME_NET,
	OUTCOME_CANCELLED,
	OUTCOME_FAILED,
	OUTCOME_COUNT,
};

/* The changes in a layer; strings are borrowed. */
struct result_workspace {
	const char *id;   /* NULL: it has no changes and is dropped */
	const char *path; /* the directory under it */
	uint64_t added, modified, deleted, bytes;
	bool is_copy;  /* a copy of the directory instead of a layer */
	bool is_rough; /* too much to compare, or not readable */
};

LIST_TYPE(struct result_workspace, result_workspace_list);

/* Everything a result is made of; all borrowed. */
struct result_source {
	const struct plan *plan;        /* NULL: there is no plan */
	const struct observation *seen; /* NULL: there was no run; then @error says why */
	const struct error *error;
	const struct capture *capture; /* NULL: output was not captured, stdout and stderr are null */
	bool is_captured;
	bool has_bytes;
	const struct risky_list *risky;
	const struct result_workspace_list *workspaces; /* NULL: there are no layers */
};

enum outcome result_outcome(const struct result_source *source);
const char *result_outcome_name(enum outcome outcome);
/* The exit status of `belljar run`. */
int result_exit_status(const struct result_source *source);
/* A remark about a run that may have ended because the host ran out of memory; NULL: none. */
const struct plan_remark *result_doubt(const struct observation *seen);
/* Write the result for users, a JSON object on one line, as a member @key (NULL: by itself). */
void result_write(const struct result_source *source, struct json_writer *writer, const char *key);

/* Parts that events have too. */
void result_write_enforced(const struct plan *plan, const struct observation *seen, struct json_writer *writer);
/* As a member "error": an object, or null. */
/* "published": [{"port", "host_port"}] */
void result_write_published(const struct network_seen *network, struct json_writer *writer);
/* "risky", and "risky_search" where the search was bounded. */
void result_write_risky_paths(const char *key, const struct risky_list *risky, struct json_writer *writer);
void result_write_risky(const struct risky_list *risky, struct json_writer *writer);
void result_write_error(const struct error *error, struct json_writer *writer);
void result_write_missing(const struct plan *plan, const struct observation *seen, struct json_writer *writer);
/* As a member "workspace": an object, or null. */
void result_write_workspace(const struct result_workspace_list *list, struct json_writer *writer);
const char *result_limit_name(enum limit_name name);
void result_write_limit(enum limit_name name, const struct limit_hit *hit, struct json_writer *writer, const char *key);

/* Explain in one line an end that was not the command's own; else empty. */
void result_explain(const struct result_source *source, struct text *out);

#endif
