/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan/plan.c - from policy, command and host facts to a list of steps
 *
 * plan_compile() is a pure function: it looks at nothing but its arguments. The order of the steps is the order of the
 * calls below, and reads as the table of contents of the sandbox.
 */
#include "plan/plan_build.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "base/paths.h"

/* One argument or variable may be this long; the kernel's MAX_ARG_STRLEN, its NUL included. */
#define ARGUMENT_MAX (128 << 10)
/* The kernel keeps the program's name and its own notes in the same space. */
#define ARGUMENT_RESERVE (8 << 10)

struct plan_step *plan_add(struct plan_build *build, struct plan_step_list *list, enum step_kind kind)
{
	static struct plan_step spare;
	struct plan_step *step = build->has_failed ? NULL : list_add(list);

	if (!step) {
		build->has_failed = true;
		return &spare;
	}
	step->kind = kind;
	return step;
}

const char *plan_string(struct plan_build *build, const char *string)
{
	if (build->has_failed || string_list_add(&build->plan->strings, string) < 0) {
		build->has_failed = true;
		return "";
	}
	return build->plan->strings.items[build->plan->strings.count - 1];
}

const char *plan_format(struct plan_build *build, const char *format, ...)
{
	AUTO_TEXT text = {0};
	va_list arguments;

	va_start(arguments, format);
	text_append_format_list(&text, format, arguments);
	va_end(arguments);
	build->has_failed |= text_failed(&text);
	return plan_string(build, text_string(&text));
}

static void add_remark(struct plan_build *build, struct plan_remark_list *list, const char *name, const char *why,
		       const char *hint, enum remark_time time)
{
	struct plan_remark *remark = list_add(list);

	if (!remark) {
		build->has_failed = true;
		return;
	}
	*remark =
		(struct plan_remark){plan_string(build, name), plan_string(build, why), plan_string(build, hint), time};
}

void plan_note_at(struct plan_build *build, enum remark_time time, const char *name, const char *why, const char *hint)
{
	add_remark(build, &build->plan->notes, name, why, hint, time);
}

void plan_note(struct plan_build *build, const char *name, const char *why, const char *hint)
{
	plan_note_at(build, REMARK_ALWAYS, name, why, hint);
}

void plan_note_quietly(struct plan_build *build, const char *name, const char *why, const char *hint)
{
	plan_note_at(build, REMARK_ON_REQUEST, name, why, hint);
}

void plan_missing(struct plan_build *build, const char *name, const char *why, const char *hint)
{
	add_remark(build, &build->plan->missing, name, why, hint, REMARK_ALWAYS);
}

int plan_needs_namespace(struct plan_build *build, const char *what)
{
	error_set(build->error, STAGE_HOST, EPERM, "%s needs the rung 'namespace'", what);
	return error_hint(build->error, "allow user namespaces; `belljar doctor` says how");
}

const char *plan_rung_name(enum rung rung)
{
	return policy_rung_names[rung];
}

/* --- which rung --------------------------------------------------------------------------------------------- */

static int choose_rung(struct plan_build *build)
{
	const struct host *host = build->host;
	enum rung rung = RUNG_PROCESS;

	if (host->has_seccomp && host->has_user_namespaces)
		rung = RUNG_NAMESPACE;
	else if (host->has_seccomp && host->landlock_abi > 0)
		rung = RUNG_LANDLOCK;
	build->plan->rung = rung;
	if (rung >= build->policy->rung)
		return 0;
	error_set(build->error, STAGE_HOST, EPERM,
		  "this host can isolate only up to the rung '%s', and the policy asks for '%s'", plan_rung_name(rung),
		  plan_rung_name(build->policy->rung));
	return error_hint(
		build->error, "%s; `belljar doctor` says more",
		!host->has_user_namespaces && build->policy->rung == RUNG_NAMESPACE
			? "allow user namespaces (sysctl kernel.unprivileged_userns_clone=1, or an AppArmor profile)"
			: "use a kernel with seccomp and Landlock, or accept less with --rung process");
}

/* --- the command -------------------------------------------------------------------------------------------- */

static int check_argument_sizes(struct plan_build *build, const struct string_list *list, enum stage stage,
				const char *what, uint64_t *total)
{
	for (size_t i = 0; i < list->count; i++) {
		size_t len = strlen(list->items[i]) + 1;

		if (len > ARGUMENT_MAX)
			return error_set(build->error, stage, E2BIG,
					 "%s %zu is %zu bytes long; the kernel takes %d at most", what, i, len - 1,
					 ARGUMENT_MAX - 1);
		*total += len + sizeof(char *);
	}
	return 0;
}

static int check_arguments(struct plan_build *build)
{
	uint64_t total = ARGUMENT_RESERVE;
	int rc = check_argument_sizes(build, &build->plan->core.argv, STAGE_USAGE, "argument", &total);

	if (rc == 0)
		rc = check_argument_sizes(build, &build->plan->core.env, STAGE_USAGE, "environment variable", &total);
	if (rc == 0 && total > build->host->argument_bytes_max) {
		error_set(build->error, STAGE_USAGE, E2BIG,
			  "arguments and environment are %llu bytes; the kernel takes %llu here",
			  (unsigned long long)total, (unsigned long long)build->host->argument_bytes_max);
		rc = error_hint(build->error, "pass large data in a file or on standard input");
	}
	return rc;
}

/* --- identity and namespaces -------------------------------------------------------------------------------- */

static void plan_identity(struct plan_build *build)
{
	struct plan *plan = build->plan;
	struct plan_step *step;

	if (plan->rung != RUNG_NAMESPACE) {
		plan_add(build, &plan->core.steps, STEP_SUBREAPER);
		plan_add(build, &plan->core.steps, STEP_RUN_DIRECTORY)->target = plan->core.run_directory;
		return;
	}
	plan->core.namespaces = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;
	if (build->policy->net != NET_HOST)
		plan->core.namespaces |= CLONE_NEWNET;
	build->is_id_mapped = build->host->uid == 0 && build->host->has_id_mapped_mounts;
	if (build->is_id_mapped) {
		plan_add(build, &plan->core.steps, STEP_PRIVATE_MOUNTS);
		plan_add(build, &plan->core.steps, STEP_BECOME)->as.become.id = build->host->jar_id;
		plan->owner_id = build->host->jar_id;
		return;
	}
	if (build->host->uid == 0)
		plan_missing(
			build, "identity",
			"Belljar cannot map ids here: uid 0 inside is the caller's own uid 0, without capabilities",
			"give Belljar CAP_SYS_ADMIN, and show only file systems that have id-mapped mounts (ext4, xfs, btrfs, "
			"tmpfs); or start it as an ordinary user");
	plan->core.namespaces |= CLONE_NEWUSER;
	step = plan_add(build, &plan->core.steps, STEP_ID_MAPS);
	step->as.id_maps.uid = build->host->uid;
	step->as.id_maps.gid = build->host->gid;
	plan_user_limits(build);
}

static int plan_network(struct plan_build *build)
{
	struct plan *plan = build->plan;
	int rc;

	plan->net = build->policy->net;
	if (plan->core.namespaces & CLONE_NEWNET)
		plan_add(build, &plan->core.steps, STEP_LOOPBACK);
	rc = plan_gate(build);
	if (build->policy->hostname && plan->rung == RUNG_NAMESPACE)
		plan_add(build, &plan->core.steps, STEP_HOSTNAME)->source = plan_string(build, build->policy->hostname);
	if (build->is_id_mapped)
		plan_add(build, &plan->core.steps, STEP_JOIN);
	return rc;
}

/* --- the whole ---------------------------------------------------------------------------------------------- */

static int choose_workdir(struct plan_build *build)
{
	const struct policy *policy = build->policy;
	const struct host_workdir *workdir = &build->host->workdir;
	bool is_named_rw = false;

	build->has_private_workdir = policy->workdir_choice == WORKDIR_PRIVATE;
	if (build->has_private_workdir || !workdir->unfit)
		return 0;
	for (size_t i = 0; i < policy->mounts.count; i++)
		is_named_rw |= policy->mounts.items[i].access == MOUNT_RW && build->host->mounts.items[i].path &&
			       !strcmp(build->host->mounts.items[i].path, workdir->path.path);
	if (is_named_rw)
		return 0;
	if (policy->workdir_choice == WORKDIR_NAMED) {
		error_set(build->error, STAGE_PLAN, EINVAL, "cannot use '%s' as the work directory: %s",
			  workdir->path.path, workdir->unfit);
		return error_hint(build->error,
				  "name a project directory, use -C none for a private one, or add --rw '%s'",
				  workdir->path.path);
	}
	build->has_private_workdir = true;
	plan_note(build, "workdir",
		  plan_format(build,
			      "the command does not get the current directory '%s': %s; it starts in a private, empty "
			      "directory",
			      workdir->path.path, workdir->unfit),
		  "start Belljar in a project directory, or name one with -C DIR");
	return 0;
}

/* Is @path, or the nearest thing around it that the policy names, named writable? */
static bool is_writable(const struct plan_build *build, const char *path)
{
	const struct policy *policy = build->policy;
	const struct host_path *workdir = &build->host->workdir.path;
	bool is_in_workdir = !build->has_private_workdir && workdir->path && path_is_within(path, workdir->path);
	bool is_writable = is_in_workdir && policy->workdir_mode != WORKDIR_RO && !build->host->has_workdir_layer;
	size_t len = is_in_workdir ? strlen(workdir->path) : 0;

	/* The view makes Belljar's own files read-only, or the policy is refused (plan_view_own.c). */
	for (size_t i = 0; i < build->host->own.count && build->plan->rung != RUNG_PROCESS; i++)
		if (path_is_within(path, build->host->own.items[i].path))
			return false;
	for (size_t i = 0; i < policy->mounts.count; i++) {
		const char *granted = build->host->mounts.items[i].path;

		if (granted && path_is_within(path, granted) && strlen(granted) >= len) {
			len = strlen(granted);
			is_writable = policy->mounts.items[i].access == MOUNT_RW;
		}
	}
	return is_writable;
}

/* Where the project's own tools are: the virtual environment that the caller works in, and what npm installed. */
static bool is_tool_directory(const struct plan_build *build, const char *path)
{
	static const char npm[] = "/node_modules/.bin", programs[] = "/bin";
	const char *environment = survey_variable(build->host->environment, "VIRTUAL_ENV");
	size_t len = strlen(path), environment_len = environment ? strlen(environment) : 0;

	if (len >= sizeof(npm) - 1 && !strcmp(path + len - (sizeof(npm) - 1), npm))
		return true;
	return environment_len && !strncmp(path, environment, environment_len) &&
	       !strcmp(path + environment_len, programs);
}

/*
 * What the command leaves in a directory of the caller's PATH runs when the caller types its name. In the directories where a
 * project has its tools that is so for every program, so people read of those only if they ask.
 */
static void note_path_directories(struct plan_build *build, bool are_tools)
{
	const struct host_path_list *directories = &build->host->path_directories;
	AUTO_TEXT names = {0};

	for (size_t i = 0; i < directories->count; i++)
		if (is_tool_directory(build, directories->items[i].path) == are_tools &&
		    is_writable(build, directories->items[i].path))
			text_append_format(&names, "%s'%s'", names.len ? ", " : "", directories->items[i].path);
	build->has_failed |= text_failed(&names);
	if (names.len)
		plan_note_at(
			build, are_tools ? REMARK_ON_REQUEST : REMARK_ALWAYS, "path",
			plan_format(
				build,
				"your PATH has %s, which the command may write to: a program that it leaves there runs when you type its name",
				text_string(&names)),
			"show the directory read-only with --ro, or take it out of PATH");
}

static int refuse_what_is_not_there(struct plan_build *build)
{
	const struct policy *policy = build->policy;

	if (build->plan->rung == RUNG_NAMESPACE)
		return 0;
	if (plan_is_for_calls(build->plan))
		return plan_needs_namespace(build, "a jar for calls");
	if (policy->hostname)
		return plan_needs_namespace(build, "a hostname of its own");
	if (policy->machine_facts == FACTS_NONE)
		return plan_needs_namespace(build, "covering what /proc shows of the machine");
	if (policy->exec == EXEC_TRUSTED && !(policy->optional >> GUARANTEE_EXEC & 1))
		return plan_needs_namespace(build, "executing trusted files only");
	if (policy->exec == EXEC_TRUSTED)
		plan_missing(build, "exec", "libraries in writable places can be loaded: only mounts forbid that",
			     "allow user namespaces; `belljar doctor` says how");
	if (build->host->hide_patterns.count)
		return plan_needs_namespace(build,
					    plan_format(build, "hiding '%s'", build->host->hide_patterns.items[0]));
	if (policy->has_hide_secrets)
		return plan_needs_namespace(build, "hiding secrets");
	if (policy->hide.count)
		return plan_needs_namespace(build, plan_format(build, "hiding '%s'", policy->hide.items[0]));
	return 0;
}

static void copy_matches(struct plan_build *build)
{
	const struct host_match_list *matches = &build->host->matches;

	for (size_t i = 0; i < matches->count; i++) {
		struct plan_match *match = list_add(&build->plan->matches);

		if (!match) {
			build->has_failed = true;
			return;
		}
		*match = (struct plan_match){matches->items[i].key, plan_string(build, matches->items[i].pattern),
					     plan_string(build, matches->items[i].path)};
	}
}

int plan_command(struct plan_build *build)
{
	int rc;

	if (string_list_copy(&build->plan->core.argv, build->request->argv) < 0)
		build->has_failed = true;
	rc = plan_environment(build);
	if (rc == 0)
		rc = check_arguments(build);
	if (rc == 0 && !build->has_failed)
		plan_candidates(build);
	return rc;
}

static int compile(struct plan *plan, enum plan_kind kind, const struct policy *policy, const struct host *host,
		   const struct plan_request *request, struct error *error)
{
	struct plan_build build = {
		.plan = plan, .policy = survey_policy(host, policy), .host = host, .request = request, .error = error};
	const char *agent;
	int rc;

	*plan = (struct plan){
		.kind = kind,
		.core = {.shell = "/bin/sh"},
		.optional = policy->optional,
		.has_redact_secrets = policy->has_redact_secrets,
	};
	if (host->real_home)
		plan->home = plan_string(&build, host->real_home);
	agent = survey_variable(host->environment, "SSH_AUTH_SOCK");
	if (agent && agent[0] == '/')
		plan->agent = plan_string(&build, agent);
	plan->limits = policy->limits;
	copy_matches(&build);
	/* Of a kept jar's commands each has its own. */
	if (plan_has_minders(plan))
		plan->limits.cpu_time_ns = LIMIT_NONE;
	rc = choose_rung(&build);
	if (rc == 0)
		rc = refuse_what_is_not_there(&build);
	if (rc == 0)
		rc = plan_check_network(&build);
	if (rc == 0)
		rc = choose_workdir(&build);
	if (rc == 0)
		rc = plan_layers(&build);
	if (rc == 0) {
		note_path_directories(&build, false);
		note_path_directories(&build, true);
	}
	if (rc == 0 && plan->rung != RUNG_NAMESPACE)
		plan->core.run_directory = plan_string(&build, host->run_directory);
	if (rc == 0 && request)
		rc = plan_command(&build);
	if (rc == 0)
		rc = plan_back_ends(&build);
	if (rc == 0) {
		plan_identity(&build);
		rc = plan_mounts(&build);
	}
	if (rc == 0) {
		plan_meter(&build);
		rc = plan_network(&build);
	}
	if (rc == 0) {
		plan_limits(&build);
		rc = plan_walls(&build);
		if (!plan_is_jar(plan))
			plan_process_limits(&build);
		plan_calls(&build);
	}
	if (rc == 0 && build.has_failed)
		rc = error_set(error, STAGE_ENGINE, ENOMEM, "out of memory");
	if (rc < 0)
		plan_done(plan);
	return rc;
}

int plan_compile(struct plan *plan, const struct policy *policy, const struct host *host,
		 const struct plan_request *request, struct error *error)
{
	return compile(plan, PLAN_ONCE, policy, host, request, error);
}

int plan_compile_jar(struct plan *plan, enum plan_kind kind, const struct policy *policy, const struct host *host,
		     const struct plan_request *zygote, struct error *error)
{
	return compile(plan, kind, policy, host, zygote, error);
}

void plan_done(struct plan *plan)
{
	if (!plan)
		return;
	/* A run's are its jar's. */
	if (plan->kind != PLAN_RUN) {
		free(plan->core.steps.items);
		free(plan->skeleton.items);
		free(plan->core.minder.items);
		free(plan->core.zygote.anew.items);
		free(plan->core.landlock.items);
		free(plan->core.filter.program);
		for (size_t i = 0; i < JAR_ASKING_MAX; i++)
			free(plan->core.asking[i].program);
		free(plan->core.zygote.filter.program);
		plan_gate_done(&plan->gate);
		free(plan->parts);
	}
	free(plan->core.entry.items);
	free(plan->missing.items);
	free(plan->notes.items);
	free(plan->matches.items);
	string_list_done(&plan->core.argv);
	string_list_done(&plan->core.candidates);
	string_list_done(&plan->core.env);
	string_list_done(&plan->redact);
	string_list_done(&plan->own);
	string_list_done(&plan->strings);
	*plan = (struct plan){0};
}
