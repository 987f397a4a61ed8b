/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan/plan_walls.c - privileges, Landlock and seccomp: which process puts them up, and what they leave open
 *
 * In a pid namespace the jar's first process stands behind the same walls as the command: they are put up once, for
 * every command of the jar. Without one it must stay outside, or the command could signal it: then each command puts
 * them up for itself, between fork and exec. So does each fork of a zygote: it has to go somewhere else first.
 */
#include "plan/plan_build.h"

#include <errno.h>
#include <string.h>
#include <sys/prctl.h>

#include "base/paths.h"
#include "plan/plan_landlock.h"
#include "plan/seccomp/seccomp_compile.h"

/*
 * Does the ruleset refuse Unix sockets outside by their paths? A kernel that does not know the right refuses the
 * ruleset, and the run then fails.
 */
static bool keeps_unix_sockets(const struct plan *plan)
{
	return plan->core.landlock_files & LANDLOCK_RESOLVE_UNIX;
}

static int compile_profile(struct plan_build *build, const struct seccomp_profile *profile, struct jar_filter *out)
{
	out->program = calloc(SECCOMP_PROGRAM_MAX, sizeof(*out->program));
	if (out->program)
		return seccomp_compile(profile, syscall_native_arch(), out->program, SECCOMP_PROGRAM_MAX, &out->len,
				       build->error);
	build->has_failed = true;
	return 0;
}

/* Can a command of this jar be traced? */
static bool can_trace(const struct plan_build *build)
{
	return build->plan->rung != RUNG_PROCESS && !plan_is_for_calls(build->plan) &&
	       build->host->has_seccomp_listeners && !build->host->hides_memory;
}

/* Landlock does not govern whether something is seen to be there. */
static uint32_t parts_of_level(const struct plan_build *build, enum ledger_level level)
{
	static const uint32_t parts[] = {
		[LEDGER_BASIC] = 0,
		[LEDGER_FILES] = SECCOMP_TRACE_FILES | SECCOMP_TRACE_ACCESS | SECCOMP_TRACE_STAT,
		[LEDGER_TRACE] = SECCOMP_TRACE_FILES | SECCOMP_TRACE_ACCESS | SECCOMP_TRACE_CHANGES,
	};

	return build->plan->rung == RUNG_NAMESPACE
		       ? parts[level]
		       : parts[level] & ~(uint32_t)(SECCOMP_TRACE_ACCESS | SECCOMP_TRACE_STAT);
}

static void note_trace(struct plan_build *build)
{
	const struct plan *jar = build->plan->jar ? build->plan->jar : build->plan;

	if (build->policy->ledger == LEDGER_BASIC || build->plan->is_traced)
		return;
	if (plan_is_for_calls(jar))
		plan_missing(build, "ledger", "Belljar does not report what calls open, execute and connect to",
			     "run a command with the same policy");
	else if (build->host->hides_memory)
		plan_missing(build, "ledger",
			     "this host does not let Belljar see what the command opens, executes and connects to",
			     "set kernel.yama.ptrace_scope to 1");
	else
		plan_missing(
			build, "ledger",
			"tracing is unavailable: this kernel has no seccomp user notification, or a filter around Belljar uses it already",
			"start Belljar outside of the other sandbox");
}

/*
 * Each run of a session has its own listener, and its level decides which calls the filter reports. With mounts this
 * filter is on top of that of the jar's first process; without, in its place. Both catch the same refused calls, and
 * the filter loaded last decides. The first has no listener: it refuses them to processes without another filter.
 */
static int compile_asking(struct plan_build *build, const struct seccomp_profile *jars)
{
	int most = can_trace(build) ? LEDGER_TRACE : LEDGER_BASIC, rc = 0;

	_Static_assert(LEDGER_TRACE + 1 == JAR_ASKING_MAX, "every level has a filter");
	if (build->plan->kind != PLAN_SESSION || !build->host->has_seccomp_listeners)
		return 0;
	for (int level = LEDGER_BASIC; level <= most && rc == 0; level++) {
		struct seccomp_profile profile = *jars;

		if (build->plan->rung == RUNG_NAMESPACE)
			profile.parts = SECCOMP_TOLD | SECCOMP_ONE_LISTENER;
		profile.parts |= parts_of_level(build, (enum ledger_level)level);
		rc = compile_profile(build, &profile, &build->plan->core.asking[level]);
	}
	return rc;
}

static int compile_filter(struct plan_build *build)
{
	struct plan *plan = build->plan;
	struct seccomp_profile profile;
	int rc;

	seccomp_profile_init(&profile, plan->rung, build->policy->net);
	profile.uid = build->host->uid;
	profile.gid = build->host->gid;
	if (build->host->uid == 0)
		profile.parts |= SECCOMP_NO_SETGID_FILES;
	if (plan->has_counted_writes)
		profile.parts |= SECCOMP_COUNTED_WRITES;
	/* A kept jar's commands may have limits of their own. */
	if (plan->has_counted_writes || plan->metered >> GUARANTEE_MEMORY & 1 ||
	    (plan_has_minders(plan) && !plan->cgroup.memory))
		profile.parts |= SECCOMP_METERED;
	/* Minders and other runs have the same uid: a limit on CPU time set for one of them would end it. */
	if (plan_has_minders(plan)) {
		profile.parts |= SECCOMP_OWN_PID_ONLY;
		profile.parts &= ~(uint32_t)SECCOMP_GUARD_FIRST;
	}
	if (plan_keeps_core_limit(build))
		profile.parts |= SECCOMP_KEEP_CORE_LIMIT;
	if (!build->host->has_seccomp_listeners)
		profile.parts &= ~(uint32_t)SECCOMP_ASK_METADATA;
	if (plan->rung == RUNG_NAMESPACE && plan->writes_host)
		profile.parts |= SECCOMP_NO_ATTRIBUTES;
	if (plan_is_for_calls(plan))
		profile.parts |= SECCOMP_NO_SIBLINGS;
	if (build->policy->exec == EXEC_TRUSTED)
		profile.parts |= SECCOMP_TRUSTED_EXEC;
	if (plan->rung == RUNG_LANDLOCK) {
		if (plan->core.landlock_abi < 6)
			profile.parts |= SECCOMP_NO_SIGNAL_DETOURS;
		if (plan->core.landlock_abi < 3)
			profile.parts |= SECCOMP_NO_TRUNCATE;
		if (keeps_unix_sockets(plan))
			profile.parts &= ~(uint32_t)SECCOMP_NO_UNIX_CONNECT;
		for (int slot = 0; slot < (plan_has_minders(plan) ? PLAN_GUARDED_PIDS : PLAN_GUARDED_PIDS - 1); slot++)
			profile.protected_pids[profile.protected_count++] = JAR_PID_PLACEHOLDER(slot);
	}
	profile.tells = build->host->has_seccomp_listeners;
	/* Behind it each run has its own: compile_asking(). */
	if (plan->rung == RUNG_NAMESPACE && plan->kind == PLAN_SESSION)
		profile.parts &= ~(uint32_t)SECCOMP_ONE_LISTENER;
	if (plan->is_traced)
		profile.parts |= parts_of_level(build, build->policy->ledger);
	plan->filter_parts = profile.parts;
	plan->core.filter_asks = profile.tells;
	if (profile.parts & SECCOMP_ASK_METADATA)
		/* What a jar that stands already finds out too late, is tried when it is made. */
		plan_add(build, &plan->core.steps, STEP_PLACES)->as.places.tries_listener = plan_is_jar(plan);
	rc = compile_profile(build, &profile, &plan->core.filter);
	if (rc == 0)
		rc = compile_asking(build, &profile);
	if (rc < 0 || !plan_is_for_calls(plan))
		return rc;
	/* The zygote enters the namespaces of its forks, and hides from them. They have listeners; it has none. */
	profile.parts &= ~(uint32_t)(SECCOMP_NAMESPACES | SECCOMP_METERED | SECCOMP_ONE_LISTENER);
	return compile_profile(build, &profile, &plan->core.zygote.filter);
}

static void report_metadata(struct plan_build *build, const char *hint)
{
	if (!build->host->has_seccomp_listeners)
		plan_missing(
			build, "metadata",
			build->host->uid == 0
				? "Landlock does not govern mode, owner, times and attributes of files outside, and root owns most of them"
				: "Landlock does not govern mode, times and attributes of the caller's files outside",
			hint);
	else if (build->host->hides_memory)
		plan_missing(
			build, "metadata",
			"the command cannot change mode, owner, times and attributes of files by path, not even in the workdir: this "
			"host does not let Belljar see which path is meant",
			"set kernel.yama.ptrace_scope to 1, or allow user namespaces");
}

/* Where Unix sockets can have names at all, the filter cannot see which. */
static void report_names(struct plan_build *build, const char *hint)
{
	if (build->policy->net == NET_HOST || keeps_unix_sockets(build->plan))
		plan_missing(build, "abstract_names",
			     "the command can take abstract names that the host's programs use", hint);
}

/* What a jar on the namespace rung has and one on the landlock rung has not. */
static void report_gaps(struct plan_build *build)
{
	const char *hint = "allow user namespaces; `belljar doctor` says how";

	if (build->policy->has_protect && !build->has_private_workdir)
		plan_missing(
			build, "protect",
			"Belljar cannot make files inside the workdir read-only: the command can change those that other programs execute later",
			hint);
	if (build->policy->net == NET_NONE)
		plan_missing(build, "loopback",
			     "there is no private loopback: the command cannot make internet sockets at all", hint);
	if (build->policy->net == NET_HOST && !keeps_unix_sockets(build->plan))
		plan_missing(build, "unix_sockets",
			     "with the host's network the command can reach the host's Unix sockets by path", hint);
	if (build->plan->core.landlock_abi < 6 && build->policy->net == NET_HOST)
		plan_missing(build, "abstract_sockets",
			     "before Landlock ABI 6 the command can reach the host's abstract Unix sockets", hint);
	if (build->plan->core.landlock_abi < 6)
		plan_missing(build, "signals",
			     "before Landlock ABI 6 the command can signal other processes of the same user", hint);
	plan_missing(
		build, "user_limits",
		"the kernel counts inotify instances and watches, descriptors in flight through sockets, pages in pipes and epoll watches for all programs of the user together: the command can use up what the others need",
		hint);
	plan_missing(build, "process_names", "the command can see the names and command lines of the host's processes",
		     hint);
	plan_missing(build, "file_attributes",
		     "the command can see names, sizes, owners, times and extended attributes of files outside", hint);
	if (build->policy->machine_facts == FACTS_FEW)
		plan_missing(build, "machine_facts", "the command can read the host's boot id and kernel command line",
			     hint);
	report_names(build, hint);
	report_metadata(build, hint);
}

/* What a process may turn off for itself, and what the kernel holds for all; the rest cannot be had. */
static int plan_speculation(struct plan_build *build)
{
	static const char *const names[HOST_SPECULATIONS] = {"stores", "indirect branches"};
	struct plan_step *step = NULL;

	if (build->policy->speculation == SPECULATION_ON)
		return 0;
	build->plan->asked |= 1U << GUARANTEE_SPECULATION;
	step = plan_add(build, &build->plan->core.steps, STEP_SPECULATION);
	for (unsigned kind = 0; kind < HOST_SPECULATIONS; kind++) {
		int state = build->host->speculation[kind];
		bool is_held = state == PR_SPEC_NOT_AFFECTED ||
			       (state > 0 && !(state & PR_SPEC_PRCTL) && state & PR_SPEC_DISABLE);

		if (state > 0 && state & PR_SPEC_PRCTL)
			step->as.speculation.turned_off |= 1U << kind;
		else if (is_held)
			step->as.speculation.held |= 1U << kind;
		else if (build->policy->optional >> GUARANTEE_SPECULATION & 1)
			plan_missing(build, "speculation",
				     plan_format(build, "this kernel cannot turn off speculation past %s", names[kind]),
				     "start the kernel with its mitigations on");
		else {
			error_set(build->error, STAGE_HOST, ENODEV, "this kernel cannot turn off speculation past %s",
				  names[kind]);
			return error_hint(build->error,
					  "start the kernel with its mitigations on, or say --optional speculation");
		}
	}
	return 0;
}

/*
 * A relative `cd` starts at the workdir, wherever the engine or the jar's first process are. An absolute one in a
 * workdir that was copied for the command, because the rung has no mounts, leads into the copy.
 */
static const char *start_directory(struct plan_build *build)
{
	const char *cd = build->policy->cd;
	const char *own = build->host && build->host->has_workdir_layer ? build->host->workdir.path.path : NULL;

	if (!cd)
		return build->plan->core.workdir;
	if (own && cd[0] == '/' && path_is_within(cd, own))
		return plan_format(build, "%s%s", build->plan->core.workdir, cd + strlen(own));
	return cd[0] == '/' ? plan_string(build, cd) : plan_format(build, "%s/%s", build->plan->core.workdir, cd);
}

/*
 * For a process in charge of a tree in a shared pid namespace. With a Landlock scope around itself and the tree, it can
 * end the whole tree in one call, which a forking process cannot escape.
 */
static void scope_those_in_charge(struct plan_build *build)
{
	struct plan *plan = build->plan;

	if (plan->core.landlock_abi < 6 || plan_is_for_calls(plan))
		return;
	if (plan->rung == RUNG_LANDLOCK)
		plan_add(build, &plan->core.steps, STEP_SCOPE);
	if (plan->kind == PLAN_SESSION)
		plan_add(build, &plan->core.minder, STEP_SCOPE);
}

int plan_walls(struct plan_build *build)
{
	struct plan *plan = build->plan;
	bool is_shared = plan->rung == RUNG_NAMESPACE && !plan_is_for_calls(plan);
	struct plan_step_list *walls = is_shared ? &plan->core.steps : &plan->core.entry;
	struct plan_step *start;

	plan->is_traced = plan->kind == PLAN_ONCE && build->policy->ledger != LEDGER_BASIC && can_trace(build);
	if (plan->kind == PLAN_ONCE)
		note_trace(build);

	plan->asked |= 1U << GUARANTEE_RUNG | 1U << GUARANTEE_FILESYSTEM | 1U << GUARANTEE_PROCESSES |
		       1U << GUARANTEE_SYSCALLS;
	if (build->policy->net != NET_HOST)
		plan->asked |= 1U << GUARANTEE_NETWORK;
	if (build->policy->exec == EXEC_TRUSTED)
		plan->asked |= 1U << GUARANTEE_EXEC;
	if (plan_speculation(build) < 0)
		return -ENODEV;
	start = plan_add(build, &plan->core.steps, STEP_WORKDIR);
	/* A jar's own first process is in the workdir; where its commands start is their own matter. */
	start->target = plan_is_jar(plan) ? plan->core.workdir : start_directory(build);
	/* In a jar of mounts the workdir was held to its object when it was bound. */
	if (plan->rung != RUNG_NAMESPACE && (!build->policy->cd || plan_is_jar(plan)) && !build->has_private_workdir) {
		const struct host_path *workdir = build->host->has_workdir_layer ? &build->host->layers.items[0].upper
										 : &build->host->workdir.path;

		start->device = workdir->device;
		start->inode = workdir->inode;
	}
	scope_those_in_charge(build);
	/* A process has all capabilities in its own user namespace, and root has those that it was given. */
	plan_add(build, walls, STEP_PRIVILEGES)->flags =
		plan->rung != RUNG_NAMESPACE && build->host->uid != 0 ? STEP_UNPRIVILEGED : 0;
	if (plan->rung == RUNG_PROCESS) {
		plan_missing(build, "isolation",
			     "this host has neither user namespaces nor Landlock: the command can read and change "
			     "whatever the caller can",
			     "use a kernel with Landlock (5.13 or later)");
		return 0;
	}
	if (plan->core.landlock_abi)
		plan_add(build, walls, STEP_LANDLOCK);
	/* Who answers must not have to ask: then the first process has no filter, as on the other rung. */
	plan_add(build, plan->is_traced ? &plan->core.entry : walls, STEP_SECCOMP);
	if (plan->rung == RUNG_LANDLOCK)
		report_gaps(build);
	else if (build->policy->net == NET_HOST && plan->core.landlock_abi < 6)
		plan_missing(
			build, "abstract_sockets",
			"with the host's network and before Landlock ABI 6, the command can reach the host's abstract Unix sockets",
			"use a newer kernel, or no network");
	return compile_filter(build);
}

void plan_run_walls(struct plan_build *build)
{
	struct plan *plan = build->plan;
	const struct jar_filter *asking = plan->core.asking;
	uint64_t own_filter;

	plan->is_traced = build->policy->ledger != LEDGER_BASIC && asking[build->policy->ledger].program;
	note_trace(build);
	own_filter = !asking[LEDGER_BASIC].program ? 0 : 1 + (plan->is_traced ? (uint64_t)build->policy->ledger : 0);
	if (build->policy->cd)
		plan_add(build, &plan->core.entry, STEP_WORKDIR)->target = start_directory(build);
	/* A command must not signal minders and other runs' commands, which have its uid. A call cannot see them. */
	if (plan->jar->kind == PLAN_SESSION && plan->rung == RUNG_NAMESPACE && plan->core.landlock_abi >= 6)
		plan_add(build, &plan->core.entry, STEP_SCOPE);
	for (size_t i = 0; i < plan->jar->core.entry.count; i++) {
		struct plan_step *step = plan_add(build, &plan->core.entry, plan->jar->core.entry.items[i].kind);

		*step = plan->jar->core.entry.items[i];
		if (step->kind == STEP_SECCOMP)
			step->as.seccomp.level = own_filter;
	}
	if (own_filter && plan->rung == RUNG_NAMESPACE)
		plan_add(build, &plan->core.entry, STEP_SECCOMP)->as.seccomp.level = own_filter;
}
