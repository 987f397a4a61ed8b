/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/engine_failure.c - what a failed step means
 */
#include "engine/engine_failure.h"

#include <errno.h>
#include <linux/netlink.h>
#include <stdio.h>
#include <string.h>

#define OVERLAY_ATTEMPTS_MAX 5

static const struct plan_step *failed_step(const struct plan *plan, const struct observation *seen)
{
	const struct plan_step_list *list = seen->failed_in_entry ? &plan->core.entry : &plan->core.steps;

	if (seen->failed_step < 0 || (size_t)seen->failed_step >= list->count)
		return NULL;
	return &list->items[seen->failed_step];
}

static bool is_refusal(int errno_value)
{
	return errno_value == EPERM || errno_value == EACCES || errno_value == ENOSYS || errno_value == ENOSPC ||
	       errno_value == EINVAL || errno_value == EUSERS || errno_value == EOPNOTSUPP;
}

static bool may_lack_maps(const struct host *host)
{
	for (size_t i = 0; i < host->layers.count; i++)
		if (host->layers.items[i].may_lack_maps)
			return true;
	return false;
}

static bool has_found_layer(const struct host *host)
{
	for (size_t i = 0; i < host->layers.count; i++)
		if (host->layers.items[i].is_found)
			return true;
	return false;
}

bool engine_failure_corrects_host(const struct plan *plan, const struct observation *seen, struct host *host)
{
	const struct plan_step *step = failed_step(plan, seen);

	if (!step || seen->has_started)
		return false;
	/* A cgroup could be made and not entered, whatever the reason: the meter can do without. */
	if (step->kind == STEP_CGROUP && host->cgroups.version) {
		host->cgroups.version = 0;
		return true;
	}
	/* A filter around us, as in Docker, may forbid the clock. */
	if (step->kind == STEP_METER && step->as.meter.has_clock && host->has_task_clock) {
		host->has_task_clock = false;
		return true;
	}
	/* An outer filter has a listener already, or this kernel has none: plan without one. */
	if ((step->kind == STEP_SECCOMP || (step->kind == STEP_PLACES && seen->error.errno_value == EBUSY)) &&
	    plan->core.filter_asks && host->has_seccomp_listeners) {
		host->has_seccomp_listeners = false;
		return true;
	}
	/* The module cannot be loaded, or a kernel is without it: the gate has a listener for each port then. */
	if (step->kind == STEP_NETLINK && step->as.netlink.protocol == NETLINK_NETFILTER && !host->lacks_nft) {
		host->lacks_nft = true;
		return true;
	}
	/* As in a container whose /proc/sys is read-only. */
	if (step->kind == STEP_USER_LIMIT && host->inotify_instances) {
		host->inotify_instances = host->inotify_watches = 0;
		return true;
	}
	/* It was removed, or the jar cannot mount its file system. */
	if (step->kind == STEP_SKELETON && host->has_skeleton) {
		host->has_skeleton = false;
		return true;
	}
	/* /etc is changing: survey it again, and mount its files instead of copying them. */
	if ((step->kind == STEP_COPY || (step->flags & STEP_FOLLOW && seen->error.errno_value == ESTALE)) &&
	    !host->has_unsteady_etc) {
		host->has_unsteady_etc = true;
		return survey_etc_files(host) == 0;
	}
	/* As the workdir of root's jar would be, if it were bound. */
	if (step->kind == STEP_OVERLAY && step->flags & STEP_ID_MAPPED && may_lack_maps(host)) {
		host->has_id_mapped_mounts = false;
		return true;
	}
	/* The engine of a jar before this one was killed, and the jar is about to end: that takes a moment. */
	if (step->kind == STEP_OVERLAY && has_found_layer(host) && host->overlay_attempts < OVERLAY_ATTEMPTS_MAX) {
		host->overlay_attempts++;
		return true;
	}
	/* Whatever keeps the kernel from it: a copy needs no overlay. */
	if (step->kind == STEP_OVERLAY && seen->error.errno_value != ESTALE && !host->lacks_overlay) {
		host->lacks_overlay = true;
		return true;
	}
	if (!is_refusal(seen->error.errno_value) || plan->rung != RUNG_NAMESPACE)
		return false;
	/* A file system that knows no id-mapped mounts says so when the workdir is bound. */
	if (step->kind == STEP_BIND && step->flags & STEP_ID_MAPPED && host->has_id_mapped_mounts &&
	    seen->error.errno_value != ENOSYS) {
		host->has_id_mapped_mounts = false;
		return true;
	}
	/* A kernel too old for one of the calls, or a filter around us that knows it not, cannot carry the rung at all. */
	if ((inside_step_rows[step->kind].traits & STEP_NEEDS_USERNS || seen->error.errno_value == ENOSYS) &&
	    host->has_user_namespaces) {
		host->has_user_namespaces = false;
		return true;
	}
	return false;
}

bool engine_failure_corrects_host_start(const struct plan *plan, const struct error *error, struct host *host)
{
	if (error->stage == STAGE_LIMITS && host->cgroups.version) {
		host->cgroups.version = 0;
		return true;
	}
	if (plan->rung != RUNG_NAMESPACE || error->stage != STAGE_ISOLATE || !is_refusal(error->errno_value) ||
	    !host->has_user_namespaces)
		return false;
	host->has_user_namespaces = false;
	return true;
}

static const char *hint_for(const struct plan_step *step, int errno_value)
{
	if (errno_value == ESTALE)
		return "something replaced it while the jar was being made; try again";
	if (step->kind == STEP_WORKDIR && errno_value == ENOENT)
		return "name a directory that is visible in the jar";
	if (errno_value == EACCES)
		return "check the permissions of the path and of the directories above it";
	if (errno_value == ELOOP)
		return "a symbolic link is in the way; name the place it leads to";
	if (inside_step_rows[step->kind].stage == STAGE_ISOLATE)
		return "`belljar doctor` says what this host can enforce";
	return NULL;
}

void engine_failure_explain(const struct plan *plan, const struct observation *seen, struct error *error)
{
	const struct plan_step *step = failed_step(plan, seen);
	AUTO_TEXT words = {0};
	const char *hint;

	if (!step || seen->has_started || seen->error.stage != STAGE_ISOLATE)
		return;
	plan_describe_step(step, &words);
	error->stage = inside_step_rows[step->kind].stage;
	snprintf(error->message, sizeof(error->message), "cannot make the jar: %s: %s", text_string(&words),
		 strerror(error->errno_value));
	hint = hint_for(step, error->errno_value);
	if (hint)
		error_hint(error, "%s", hint);
}
