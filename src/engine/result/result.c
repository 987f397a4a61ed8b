/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/result/result.c - outcome, exit status and the result object
 *
 * Tables: a cause gives an outcome, an outcome its exit status, a step that was carried out the word in `enforced`.
 * Nothing here asks what the command printed.
 */
#include "engine/result/result.h"

#include <errno.h>
#include <linux/netlink.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/base64.h"
#include "base/units.h"
#include "policy/policy_keys.h"
#include "engine/result/result_denied.h"
#include "engine/run/capture.h"

/* --- outcome ------------------------------------------------------------------------------------------------ */

static const enum outcome outcome_of_cause[] = {
	[CAUSE_NONE] = OUTCOME_EXITED,
	[CAUSE_TIMEOUT] = OUTCOME_TIMEOUT,
	[CAUSE_CPU] = OUTCOME_CPU,
	[CAUSE_MEMORY] = OUTCOME_MEMORY,
	[CAUSE_DISK] = OUTCOME_DISK,
	[CAUSE_OUTPUT] = OUTCOME_OUTPUT,
	[CAUSE_NET] = OUTCOME_NET,
	/* It has no outcome of its own: SIGKILL ended the main process, or it exited. limits_hit has the limit. */
	[CAUSE_PIDS] = OUTCOME_EXITED,
	[CAUSE_CANCELLED] = OUTCOME_CANCELLED,
	[CAUSE_OUTPUT_LOST] = OUTCOME_CANCELLED,
	[CAUSE_UNHELD] = OUTCOME_CANCELLED,
	[CAUSE_BREACH] = OUTCOME_CANCELLED,
};

struct outcome_row {
	const char *name;
	bool is_killed;
	int exit_status; /* -1: depends on the command, the signal or the error */
};

static const struct outcome_row outcomes[] = {
	[OUTCOME_EXITED] = {"exited", false, -1},      [OUTCOME_SIGNALED] = {"signaled", false, -1},
	[OUTCOME_TIMEOUT] = {"timeout", true, 124},    [OUTCOME_CPU] = {"cpu", true, 137},
	[OUTCOME_MEMORY] = {"memory", true, 137},      [OUTCOME_DISK] = {"disk", true, 137},
	[OUTCOME_OUTPUT] = {"output", true, 137},      [OUTCOME_NET] = {"net", true, 137},
	[OUTCOME_CANCELLED] = {"cancelled", true, -1}, [OUTCOME_FAILED] = {"failed", false, -1},
};
_Static_assert(ARRAY_LEN(outcomes) == OUTCOME_COUNT, "every outcome has a row");

const char *result_outcome_name(enum outcome outcome)
{
	return outcomes[outcome].name;
}

enum outcome result_outcome(const struct result_source *source)
{
	const struct observation *seen = source->seen;

	if (!seen)
		return OUTCOME_FAILED;
	if (outcome_of_cause[seen->cause] != OUTCOME_EXITED)
		return outcome_of_cause[seen->cause];
	if (!seen->has_started || !seen->has_status)
		return OUTCOME_FAILED;
	return WIFSIGNALED(seen->status) ? OUTCOME_SIGNALED : OUTCOME_EXITED;
}

static const struct error *error_of(const struct result_source *source)
{
	if (source->seen && source->seen->error.stage != STAGE_NONE)
		return &source->seen->error;
	return source->error && source->error->stage != STAGE_NONE ? source->error : NULL;
}

int result_exit_status(const struct result_source *source)
{
	enum outcome outcome = result_outcome(source);
	const struct error *error = error_of(source);

	if (outcomes[outcome].exit_status >= 0)
		return outcomes[outcome].exit_status;
	switch (outcome) {
	case OUTCOME_EXITED:
		return WEXITSTATUS(source->seen->status);
	case OUTCOME_SIGNALED:
		return 128 + WTERMSIG(source->seen->status);
	case OUTCOME_CANCELLED:
		return source->seen->cause == CAUSE_CANCELLED ? 128 + source->seen->cancel_signal : 125;
	case OUTCOME_FAILED:
		if (error && error->stage == STAGE_EXEC)
			return error->errno_value == ENOENT ? 127 : 126;
		return 125;
	case OUTCOME_TIMEOUT:
	case OUTCOME_CPU:
	case OUTCOME_MEMORY:
	case OUTCOME_DISK:
	case OUTCOME_OUTPUT:
	case OUTCOME_NET:
	case OUTCOME_COUNT:
		break;
	}
	return 125;
}

/* --- enforced ----------------------------------------------------------------------------------------------- */

/* The receiver of messages, or the object of a limit. */
static int object_of(const struct plan_step *step)
{
	return step->kind == STEP_NETLINK ? step->as.netlink.protocol : step->as.rlimit.resource;
}

/* The first step of @kind that was really carried out, and of @object (0: any); NULL: none was. */
static const struct plan_step *done_step(const struct plan *plan, const struct observation *seen, enum step_kind kind,
					 int object)
{
	const struct plan_step_list *lists[] = {&plan->core.steps, &plan->core.entry};
	const uint32_t done[] = {seen->steps_done, seen->entry_done};

	for (size_t list = 0; list < ARRAY_LEN(lists); list++)
		for (size_t i = 0; i < lists[list]->count && i < done[list]; i++)
			if (lists[list]->items[i].kind == kind &&
			    (!object || object_of(&lists[list]->items[i]) == object))
				return &lists[list]->items[i];
	return NULL;
}

static void filesystem_word(const struct plan *plan, const struct observation *seen, struct text *out)
{
	bool has_mounts = done_step(plan, seen, STEP_ENTER, 0);

	if (has_mounts)
		text_append_string(out, "mount-ns");
	if (done_step(plan, seen, STEP_LANDLOCK, 0))
		text_append_format(out, "%slandlock%d", has_mounts ? "+" : "", plan->core.landlock_abi);
}

/* A cgroup that the jar is in, or the engine's own looking. */
static void counted_word(enum guarantee guarantee, const struct plan *plan, const struct observation *seen,
			 struct text *out)
{
	const struct plan_step_list *lists[] = {&plan->core.steps, &plan->core.entry};
	const uint32_t done[] = {seen->steps_done, seen->entry_done};

	for (size_t list = 0; list < ARRAY_LEN(lists); list++)
		for (size_t i = 0; i < lists[list]->count && i < done[list]; i++) {
			const struct plan_step *step = &lists[list]->items[i];

			if (step->kind != STEP_CGROUP || !(step->as.cgroup.holds >> guarantee & 1))
				continue;
			text_append_string(out, step->as.cgroup.version == 2 ? "cgroup2" : "cgroup1");
			return;
		}
	if (seen->metered >> guarantee & 1)
		text_append_string(out, "meter");
}

/* The size of the private places, and the meter where there are other places to write to. */
static void disk_word(const struct plan *plan, const struct observation *seen, struct text *out)
{
	const struct plan_step *scratch = done_step(plan, seen, STEP_SCRATCH, 0);
	bool has_host_directory = !scratch;

	for (size_t i = 0; i < plan->core.steps.count && i < seen->steps_done; i++) {
		const struct plan_step *step = &plan->core.steps.items[i];

		has_host_directory |= step->kind == STEP_OVERLAY ||
				      (step->kind == STEP_BIND && !(step->flags & (STEP_READ_ONLY | STEP_DEVICE)));
	}
	if (scratch && scratch->as.scratch.bytes == plan->limits.disk_bytes)
		text_append_string(out, "tmpfs");
	if (has_host_directory && seen->metered >> GUARANTEE_DISK & 1)
		text_append_format(out, "%smeter", out->len ? "+" : "");
}

/* A gate has sockets, and leads to them by nf_tables or by port. */
static void network_word(const struct plan *plan, const struct observation *seen, struct text *out)
{
	bool has_gate = done_step(plan, seen, STEP_NETLINK, NETLINK_ROUTE) && done_step(plan, seen, STEP_SOCKETS, 0);

	text_append_string(out, has_gate ? "net-ns+gate" : "net-ns");
	if (has_gate && !done_step(plan, seen, STEP_NETLINK, NETLINK_NETFILTER))
		text_append_string(out, "(ports)");
}

/* Files in memory are the filter's work, all others the mounts'; without mounts Landlock holds programs, but no libraries. */
static void exec_word(const struct plan *plan, const struct observation *seen, struct text *out)
{
	const struct plan_step *scratch = done_step(plan, seen, STEP_SCRATCH, 0);

	if (scratch && scratch->flags & STEP_NO_EXEC)
		text_append_string(out, "noexec-mounts");
	else if (!scratch && done_step(plan, seen, STEP_LANDLOCK, 0))
		text_append_string(out, "landlock");
	if (out->len && done_step(plan, seen, STEP_SECCOMP, 0))
		text_append_string(out, "+seccomp");
}

/* Write which kinds of speculation the process turned off, and which the kernel blocks for all. */
static void speculation_word(const struct plan *plan, const struct observation *seen, struct text *out)
{
	const struct plan_step *step = done_step(plan, seen, STEP_SPECULATION, 0);

	if (step && step->as.speculation.turned_off)
		text_append_string(out, "prctl");
	if (step && step->as.speculation.held)
		text_append_format(out, "%skernel", out->len ? "+" : "");
}

static void guarantee_word(enum guarantee guarantee, const struct plan *plan, const struct observation *seen,
			   struct text *out)
{
	bool has_filter = done_step(plan, seen, STEP_SECCOMP, 0);

	switch (guarantee) {
	case GUARANTEE_RUNG:
		text_append_string(out, plan_rung_name(plan->rung));
		break;
	case GUARANTEE_FILESYSTEM:
		filesystem_word(plan, seen, out);
		break;
	case GUARANTEE_NETWORK:
		if (done_step(plan, seen, STEP_LOOPBACK, 0))
			network_word(plan, seen, out);
		else if (has_filter)
			text_append_string(out, "seccomp");
		break;
	case GUARANTEE_PROCESSES:
		if (plan->core.namespaces & CLONE_NEWPID)
			text_append_string(out, "pid-ns");
		else if (done_step(plan, seen, STEP_SUBREAPER, 0))
			text_append_string(out, "subreaper");
		break;
	case GUARANTEE_SYSCALLS:
		if (has_filter)
			text_append_string(out, "seccomp");
		break;
	case GUARANTEE_PIDS:
		counted_word(guarantee, plan, seen, out);
		if (!out->len && done_step(plan, seen, STEP_RLIMIT, RLIMIT_NPROC))
			text_append_string(out, "rlimit");
		break;
	case GUARANTEE_DISK:
		disk_word(plan, seen, out);
		break;
	case GUARANTEE_EXEC:
		exec_word(plan, seen, out);
		break;
	case GUARANTEE_SPECULATION:
		speculation_word(plan, seen, out);
		break;
	case GUARANTEE_MEMORY:
	case GUARANTEE_CPU_TIME:
		counted_word(guarantee, plan, seen, out);
		break;
	case GUARANTEE_COUNT:
		break;
	}
}

void result_write_enforced(const struct plan *plan, const struct observation *seen, struct json_writer *writer)
{
	json_open_object(writer, "enforced");
	for (int i = 0; i < GUARANTEE_COUNT; i++) {
		AUTO_TEXT word = {0};

		if (!plan || !seen || !(seen->has_started || seen->cause != CAUSE_NONE) || !(plan->asked & (1U << i))) {
			json_write_null(writer, policy_guarantee_names[i]);
			continue;
		}
		guarantee_word((enum guarantee)i, plan, seen, &word);
		json_write_string(writer, policy_guarantee_names[i], word.len ? word.data : "none");
	}
	json_close_object(writer);
}

/* Apart from a SIGKILL that a process sent, only the kernel's out-of-memory killer ends a command this way. */
const struct plan_remark *result_doubt(const struct observation *seen)
{
	static const struct plan_remark proven = {
		"memory",
		"the kernel killed the command because the host, or a cgroup above the run's own, had no memory left; the run's "
		"own limit was not reached",
		"ask for no more than the host has free: --memory",
	};
	static const struct plan_remark possible = {
		"memory",
		"a SIGKILL that Belljar did not send ended the command, and meanwhile the kernel killed a process for lack of memory (/proc/vmstat: oom_kill has grown); without a cgroup Belljar cannot know whether it was this command",
		"give Belljar a cgroup of its own; `belljar doctor` says more",
	};

	if (!seen || seen->cause != CAUSE_NONE)
		return NULL;
	if (seen->shortage == SHORTAGE_PROVEN)
		return &proven;
	if (seen->shortage == SHORTAGE_SEEN && seen->has_status && WIFSIGNALED(seen->status) &&
	    WTERMSIG(seen->status) == SIGKILL)
		return &possible;
	return NULL;
}

void result_write_missing(const struct plan *plan, const struct observation *seen, struct json_writer *writer)
{
	const struct plan_remark *doubt = result_doubt(seen);

	json_open_array(writer, "missing");
	for (size_t i = 0; plan && i < plan->missing.count; i++)
		plan_write_remark(&plan->missing.items[i], writer);
	if (doubt)
		plan_write_remark(doubt, writer);
	json_close_array(writer);
}

/* --- limits ------------------------------------------------------------------------------------------------- */

static const char *const limit_names[] = {
	[LIMIT_TIMEOUT] = "timeout",
	[LIMIT_CPU_TIME] = "cpu_time",
	[LIMIT_MEMORY] = "memory",
	[LIMIT_PIDS] = "pids",
	[LIMIT_DISK] = "disk",
	[LIMIT_FILE_SIZE] = "file_size",
	[LIMIT_FDS] = "fds",
	[LIMIT_OUTPUT] = "output",
	[LIMIT_NET_CONNECTIONS] = "net_connections",
	[LIMIT_NET_BYTES] = "net_bytes",
};
_Static_assert(ARRAY_LEN(limit_names) == LIMIT_NAME_COUNT, "every limit has a name");

const char *result_limit_name(enum limit_name name)
{
	return limit_names[name];
}

void result_write_limit(enum limit_name name, const struct limit_hit *hit, struct json_writer *writer, const char *key)
{
	json_open_object(writer, key);
	json_write_string(writer, "name", limit_names[name]);
	json_write_unsigned(writer, "limit", hit->limit);
	if (hit->has_peak)
		json_write_unsigned(writer, "peak", hit->peak);
	else
		json_write_null(writer, "peak");
	json_write_string(writer, "enforced_by", hit->enforced_by);
	json_write_string(writer, "evidence", hit->evidence);
	json_close_object(writer);
}

static void write_limits(const struct observation *seen, struct json_writer *writer)
{
	json_open_array(writer, "limits_hit");
	for (int i = 0; seen && i < LIMIT_NAME_COUNT; i++)
		if (seen->limits[i].is_hit)
			result_write_limit((enum limit_name)i, &seen->limits[i], writer, NULL);
	json_close_array(writer);
}

/* --- the rest of the object --------------------------------------------------------------------------------- */

static void write_end(const struct result_source *source, enum outcome outcome, struct json_writer *writer)
{
	const struct observation *seen = source->seen;

	json_write_string(writer, "outcome", result_outcome_name(outcome));
	if (outcome == OUTCOME_EXITED)
		json_write_integer(writer, "exit_code", WEXITSTATUS(seen->status));
	else
		json_write_null(writer, "exit_code");
	json_write_string(writer, "signal",
			  seen && seen->has_status && WIFSIGNALED(seen->status) ? signal_name(WTERMSIG(seen->status))
										: NULL);
	json_write_bool(writer, "timed_out", outcome == OUTCOME_TIMEOUT);
	json_write_bool(writer, "killed", outcomes[outcome].is_killed);
}

static void write_stream(const struct result_source *source, enum stream_index stream, const char *key,
			 struct json_writer *writer, bool *is_lossy)
{
	AUTO_TEXT text = {0};
	bool is_stream_lossy = false;

	if (!source->is_captured) {
		json_write_null(writer, key);
		return;
	}
	if (source->capture)
		run_capture_text(source->capture, stream, &text, &is_stream_lossy);
	json_write_bytes(writer, key, text_string(&text), text.len);
	*is_lossy |= is_stream_lossy;
}

static void write_base64(const struct result_source *source, enum stream_index stream, const char *key,
			 struct json_writer *writer)
{
	AUTO_TEXT bytes = {0};
	AUTO_TEXT encoded = {0};

	if (source->capture)
		run_capture_bytes(source->capture, stream, &bytes);
	base64_append(&encoded, text_string(&bytes), bytes.len);
	json_write_string(writer, key, text_string(&encoded));
}

static const char *const stream_names[] = {[STREAM_STDOUT] = "stdout", [STREAM_STDERR] = "stderr"};

/* Write the cuts, for readers that get the bytes by other means and turn them into text. */
static void write_cuts(const struct result_source *source, struct json_writer *writer)
{
	json_open_object(writer, "cut");
	for (int i = 0; i < STREAM_COUNT; i++) {
		size_t start, count = run_capture_cut(source->capture, (enum stream_index)i, &start);

		if (count == 0)
			continue;
		json_open_array(writer, stream_names[i]);
		json_write_unsigned(writer, NULL, start);
		json_write_unsigned(writer, NULL, count);
		json_close_array(writer);
	}
	json_close_object(writer);
}

static void write_elided(const struct result_source *source, struct json_writer *writer)
{
	json_open_object(writer, "elided_at");
	for (int i = 0; i < STREAM_COUNT; i++) {
		int64_t offset = run_capture_elided_at(source->capture, (enum stream_index)i, !source->has_bytes);

		if (offset < 0)
			json_write_null(writer, stream_names[i]);
		else
			json_write_integer(writer, stream_names[i], offset);
	}
	json_close_object(writer);
}

static void write_output(const struct result_source *source, struct json_writer *writer)
{
	const struct observation *seen = source->seen;
	bool is_lossy = false;

	write_stream(source, STREAM_STDOUT, "stdout", writer, &is_lossy);
	write_stream(source, STREAM_STDERR, "stderr", writer, &is_lossy);
	json_write_string(writer, "encoding", is_lossy ? "utf-8-lossy" : "utf-8");
	if (source->is_captured && source->has_bytes) {
		write_base64(source, STREAM_STDOUT, "stdout_base64", writer);
		write_base64(source, STREAM_STDERR, "stderr_base64", writer);
	}
	json_write_unsigned(writer, "stdout_bytes", seen ? seen->stream_bytes[STREAM_STDOUT] : 0);
	json_write_unsigned(writer, "stderr_bytes", seen ? seen->stream_bytes[STREAM_STDERR] : 0);
	json_write_bool(writer, "truncated", seen && seen->is_truncated);
	if (source->capture && source->plan && source->plan->limits.keep == KEEP_BOTH)
		write_elided(source, writer);
	if (source->capture && !source->is_captured && run_capture_is_truncated(source->capture))
		write_cuts(source, writer);
}

/* A process may reset its own peak (/proc/PID/clear_refs), and a meter looks only now and then. */
static bool is_lower_bound(const struct observation *seen)
{
	return !seen->memory_by || !strcmp(seen->memory_by, "maxrss") || !strcmp(seen->memory_by, "meter");
}

static void write_usage(const struct observation *seen, struct json_writer *writer)
{
	bool has_run = seen && seen->has_started;

	json_open_object(writer, "usage");
	if (has_run) {
		json_write_milliseconds(writer, "wall_ms", seen->wall_us);
		json_write_milliseconds(writer, "user_ms", seen->user_us);
		json_write_milliseconds(writer, "system_ms", seen->system_us);
		json_write_unsigned(writer, "peak_memory_bytes", seen->peak_memory_bytes);
		json_write_string(writer, "memory_by", seen->memory_by ? seen->memory_by : "maxrss");
		json_write_bool(writer, "peak_memory_is_lower_bound", is_lower_bound(seen));
	} else {
		static const char *const keys[] = {"wall_ms",           "user_ms",   "system_ms",
						   "peak_memory_bytes", "memory_by", "peak_memory_is_lower_bound"};

		for (size_t i = 0; i < ARRAY_LEN(keys); i++)
			json_write_null(writer, keys[i]);
	}
	if (has_run && seen->peak_processes)
		json_write_unsigned(writer, "peak_processes", seen->peak_processes);
	else
		json_write_null(writer, "peak_processes");
	json_close_object(writer);
}

void result_write_published(const struct network_seen *network, struct json_writer *writer)
{
	json_open_array(writer, "published");
	for (size_t i = 0; i < network->published_count; i++) {
		json_open_object(writer, NULL);
		json_write_unsigned(writer, "port", network->published[i].port);
		json_write_unsigned(writer, "host_port", network->published[i].host_port);
		json_close_object(writer);
	}
	json_close_array(writer);
}

static void write_network(const struct observation *seen, struct json_writer *writer)
{
	const struct network_host_list *hosts = seen ? &seen->network.hosts : NULL;

	if (!seen || !seen->network.has_gate) {
		json_write_null(writer, "network");
		return;
	}
	json_open_object(writer, "network");
	json_open_array(writer, "hosts");
	for (size_t i = 0; i < hosts->count; i++) {
		json_open_object(writer, NULL);
		json_write_string(writer, "host", hosts->items[i].host);
		json_write_unsigned(writer, "port", hosts->items[i].port);
		json_write_unsigned(writer, "connections", hosts->items[i].connections);
		json_write_unsigned(writer, "bytes_out", hosts->items[i].bytes_out);
		json_write_unsigned(writer, "bytes_in", hosts->items[i].bytes_in);
		json_close_object(writer);
	}
	json_close_array(writer);
	result_write_published(&seen->network, writer);
	json_close_object(writer);
}

static void write_counts(const struct result_workspace *workspace, struct json_writer *writer)
{
	json_write_string(writer, "id", workspace->id);
	json_write_unsigned(writer, "added", workspace->added);
	json_write_unsigned(writer, "modified", workspace->modified);
	json_write_unsigned(writer, "deleted", workspace->deleted);
	json_write_unsigned(writer, "bytes", workspace->bytes);
	json_write_string(writer, "path", workspace->path);
	json_write_string(writer, "kind", workspace->is_copy ? "copy" : "overlay");
	json_write_bool(writer, "complete", !workspace->is_rough);
}

/* The first layer; others, of cow_dirs, in "dirs". */
void result_write_workspace(const struct result_workspace_list *list, struct json_writer *writer)
{
	if (!list || !list->count) {
		json_write_null(writer, "workspace");
		return;
	}
	json_open_object(writer, "workspace");
	write_counts(&list->items[0], writer);
	json_open_array(writer, "dirs");
	for (size_t i = 1; i < list->count; i++) {
		json_open_object(writer, NULL);
		write_counts(&list->items[i], writer);
		json_close_object(writer);
	}
	json_close_array(writer);
	json_close_object(writer);
}

void result_write_risky_paths(const char *key, const struct risky_list *risky, struct json_writer *writer)
{
	json_open_array(writer, key);
	for (size_t i = 0; risky && i < risky->count; i++) {
		json_open_object(writer, NULL);
		json_write_string(writer, "path", risky->items[i].path);
		json_write_string(writer, "why", risky->items[i].why);
		json_close_object(writer);
	}
	json_close_array(writer);
}

void result_write_risky(const struct risky_list *risky, struct json_writer *writer)
{
	result_write_risky_paths("risky", risky, writer);
	if (!risky || (!risky->left_out.count && !risky->unsearched))
		return;
	json_open_object(writer, "risky_search");
	json_write_unsigned(writer, "looked_at", risky->looked_at);
	json_open_array(writer, "left_out");
	for (size_t i = 0; i < risky->left_out.count; i++)
		json_write_string(writer, NULL, risky->left_out.items[i]);
	json_close_array(writer);
	if (risky->unsearched)
		json_write_string(writer, "why", survey_risky_unsearched_words(risky->unsearched));
	json_close_object(writer);
}

void result_write_error(const struct error *error, struct json_writer *writer)
{
	json_write_error(writer, "error", error);
}

static void write_notes(const struct result_source *source, struct json_writer *writer)
{
	const struct plan *plan = source->plan;

	json_open_array(writer, "notes");
	for (size_t i = 0; plan && i < plan->notes.count; i++)
		plan_write_remark(&plan->notes.items[i], writer);
	if (source->seen && source->seen->network.has_died)
		plan_write_remark(
			&(struct plan_remark){
				.name = "network",
				.why = "the gate ended before the run did: no later connection went through it",
				.hint = "find out what killed it; the kernel does so when the host has no memory left",
			},
			writer);
	if (source->risky && source->risky->unsearched)
		plan_write_remark(
			&(struct plan_remark){
				.name = "risky",
				.why = survey_risky_unsearched_words(source->risky->unsearched),
				.hint = "look for new .git directories, and files named HEAD, before you run git there",
			},
			writer);
	json_close_array(writer);
}

void result_write(const struct result_source *source, struct json_writer *writer, const char *key)
{
	enum outcome outcome = result_outcome(source);

	json_open_object(writer, key);
	json_write_integer(writer, "version", 1);
	write_end(source, outcome, writer);
	write_output(source, writer);
	write_limits(source->seen, writer);
	write_usage(source->seen, writer);
	write_network(source->seen, writer);
	result_write_denied(source->plan, source->seen, writer);
	result_write_enforced(source->plan, source->seen, writer);
	result_write_missing(source->plan, source->seen, writer);
	result_write_risky(source->risky, writer);
	result_write_workspace(source->workspaces, writer);
	json_write_string(writer, "workdir", source->plan ? source->plan->core.workdir : NULL);
	write_notes(source, writer);
	result_write_error(error_of(source), writer);
	json_close_object(writer);
}

/* --- for people --------------------------------------------------------------------------------------------- */

/* With its amount, where the limit was seen to be reached. */
static void explain_limit(const struct observation *seen, enum limit_name name, const char *what, struct text *out)
{
	const struct limit_hit *hit = &seen->limits[name];

	text_append_format(out, "ended by the %s limit", what);
	if (!hit->is_hit)
		return;
	text_append_string(out, " of ");
	if (name == LIMIT_CPU_TIME)
		units_format_duration(out, hit->limit * 1000000);
	else
		units_format_size(out, hit->limit);
}

void result_explain(const struct result_source *source, struct text *out)
{
	const struct observation *seen = source->seen;

	if (!seen || !source->plan)
		return;
	switch (result_outcome(source)) {
	case OUTCOME_TIMEOUT:
		text_append_string(out, "ended by the time limit of ");
		units_format_duration(out, source->plan->limits.timeout_ns);
		break;
	case OUTCOME_OUTPUT:
		text_append_format(out, "ended by the %s limit of ", seen->overflowed ? seen->overflowed : "output");
		units_format_size(out, seen->limits[LIMIT_OUTPUT].limit);
		break;
	case OUTCOME_CPU:
		explain_limit(seen, LIMIT_CPU_TIME, "CPU time", out);
		break;
	case OUTCOME_MEMORY:
		explain_limit(seen, LIMIT_MEMORY, "memory", out);
		break;
	case OUTCOME_DISK:
		explain_limit(seen, LIMIT_DISK, "disk", out);
		break;
	case OUTCOME_NET:
		explain_limit(seen, LIMIT_NET_BYTES, "network", out);
		break;
	case OUTCOME_CANCELLED:
		if (seen->cause == CAUSE_CANCELLED)
			text_append_format(out, "cancelled by %s", signal_name(seen->cancel_signal));
		break;
	case OUTCOME_SIGNALED:
		text_append_format(out, "the command was ended by %s", signal_name(WTERMSIG(seen->status)));
		if (seen->cause == CAUSE_PIDS)
			text_append_string(out, ": it had more processes and threads than it may (--pids)");
		if (result_doubt(seen))
			text_append_format(out, "; %s", result_doubt(seen)->why);
		break;
	case OUTCOME_EXITED:
		if (seen->is_truncated && !seen->limits[LIMIT_OUTPUT].is_hit) {
			text_append_string(out, "Belljar dropped the rest of the output: its reader did not read it");
		} else if (seen->is_truncated) {
			text_append_format(out, "%s was cut at ", seen->overflowed ? seen->overflowed : "output");
			units_format_size(out, seen->limits[LIMIT_OUTPUT].limit);
			text_append_string(out, seen->limits[LIMIT_OUTPUT].limit % 1024 ? " bytes" : "");
		}
		break;
	case OUTCOME_FAILED:
	case OUTCOME_COUNT:
		break;
	}
}
