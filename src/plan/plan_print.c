/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan/plan_print.c - a plan in words and as JSON
 *
 * Both list every step in the order it is carried out; the JSON form is what golden files compare.
 */
#include "plan/plan.h"

#include <inttypes.h>
#include <sched.h>
#include <string.h>
#include <sys/resource.h>

#include "base/units.h"
#include "plan/seccomp_compile.h"

static const char *const step_names[] = {
	[STEP_CGROUP] = "cgroup",
	[STEP_PRIVATE_MOUNTS] = "private-mounts",
	[STEP_BECOME] = "become",
	[STEP_ID_MAPS] = "id-maps",
	[STEP_USER_LIMIT] = "user-limit",
	[STEP_ROOT] = "root",
	[STEP_SCRATCH] = "scratch",
	[STEP_DIRECTORY] = "directory",
	[STEP_SYMLINK] = "symlink",
	[STEP_FILE] = "file",
	[STEP_COPY] = "copy",
	[STEP_BIND] = "bind",
	[STEP_PRIVATE] = "private",
	[STEP_TMPFS] = "tmpfs",
	[STEP_HIDE] = "hide",
	[STEP_PIN] = "pin",
	[STEP_DEVPTS] = "devpts",
	[STEP_PROC] = "proc",
	[STEP_PROC_LOCK] = "proc-lock",
	[STEP_SEAL] = "seal",
	[STEP_ENTER] = "enter",
	[STEP_LOOPBACK] = "loopback",
	[STEP_HOSTNAME] = "hostname",
	[STEP_JOIN] = "join",
	[STEP_RUN_DIRECTORY] = "run-directory",
	[STEP_PLACES] = "places",
	[STEP_SUBREAPER] = "subreaper",
	[STEP_WORKDIR] = "workdir",
	[STEP_METER] = "meter",
	[STEP_RLIMIT] = "rlimit",
	[STEP_PRIVILEGES] = "privileges",
	[STEP_LANDLOCK] = "landlock",
	[STEP_SECCOMP] = "seccomp",
	[STEP_SCOPE] = "scope",
};
_Static_assert(ARRAY_LEN(step_names) == STEP_KIND_COUNT, "every step kind has a name");

const char *step_kind_name(enum step_kind kind)
{
	return step_names[kind];
}

struct flag_name {
	unsigned flag;
	const char *name;
};

static const struct flag_name flag_names[] = {
	{STEP_READ_ONLY, "read-only"},
	{STEP_RECURSIVE, "recursive"},
	{STEP_ON_FILE, "file"},
	{STEP_DEVICE, "device"},
	{STEP_ID_MAPPED, "id-mapped"},
	{STEP_IN_PLACE, "in-place"},
	{STEP_NO_EXEC, "no-exec"},
	{STEP_FOLLOW, "follow"},
	{STEP_COUNT_WRITES, "count-writes"},
	{STEP_UNPRIVILEGED, "unprivileged"},
};

struct namespace_name {
	uint64_t flag;
	const char *name;
};

static const struct namespace_name namespace_names[] = {
	{CLONE_NEWUSER, "user"}, {CLONE_NEWNS, "mount"}, {CLONE_NEWPID, "pid"},       {CLONE_NEWNET, "network"},
	{CLONE_NEWIPC, "ipc"},   {CLONE_NEWUTS, "uts"},  {CLONE_NEWCGROUP, "cgroup"},
};

static const char *resource_name(uint64_t resource)
{
	switch (resource) {
	case RLIMIT_NPROC:
		return "processes";
	case RLIMIT_CORE:
		return "core";
	case RLIMIT_FSIZE:
		return "file-size";
	case RLIMIT_NOFILE:
		return "descriptors";
	case RLIMIT_SIGPENDING:
		return "queued-signals";
	case RLIMIT_MSGQUEUE:
		return "message-queues";
	default:
		return "?";
	}
}

/* The limits that a step is for. */
static const struct {
	enum guarantee guarantee;
	const char *name;
} measured_names[] = {
	{GUARANTEE_MEMORY, "memory"},
	{GUARANTEE_PIDS, "pids"},
	{GUARANTEE_CPU_TIME, "cpu_time"},
	{GUARANTEE_DISK, "disk"},
};

static void describe_measured(uint64_t guarantees, struct text *out)
{
	for (size_t i = 0; i < ARRAY_LEN(measured_names); i++)
		if (guarantees >> measured_names[i].guarantee & 1)
			text_append_format(out, " %s", measured_names[i].name);
}

void plan_describe_step(const struct plan_step *step, struct text *out)
{
	switch (step->kind) {
	case STEP_CGROUP:
		text_append_format(out, "cgroup %s for:", step->target);
		describe_measured(step->value, out);
		break;
	case STEP_METER:
		text_append_string(out, "let the engine measure:");
		describe_measured(step->value, out);
		break;
	case STEP_PRIVATE_MOUNTS:
		text_append_string(out, "cut the mounts off from the host's");
		break;
	case STEP_BECOME:
		text_append_format(out, "become host id %" PRIu64 ", which nothing belongs to", step->value);
		break;
	case STEP_ID_MAPS:
		text_append_format(out, "user namespace with uid %" PRIu64 " and gid %" PRIu64 " only", step->value,
				   step->value2);
		break;
	case STEP_USER_LIMIT:
		text_append_format(out, "limit %s of the jar to %" PRIu64, step->source, step->value);
		break;
	case STEP_ROOT:
		text_append_string(out, "an empty root");
		break;
	case STEP_SCRATCH:
		text_append_string(out, "private memory-backed space of ");
		units_format_size(out, step->value);
		break;
	case STEP_DIRECTORY:
		text_append_format(out, "directory %s", step->target);
		break;
	case STEP_SYMLINK:
		text_append_format(out, "link %s -> %s", step->target, step->source);
		break;
	case STEP_FILE:
		text_append_format(out, "file %s", step->target);
		break;
	case STEP_COPY:
		text_append_format(out, "a copy of %s", step->target);
		break;
	case STEP_BIND:
		text_append_format(out, "show %s", step->target);
		if (strcmp(step->source, step->target) != 0)
			text_append_format(out, " (the host's %s)", step->source);
		text_append_string(out, step->flags & STEP_READ_ONLY ? ", read-only" : ", writable");
		break;
	case STEP_PRIVATE:
		text_append_format(out, "private, empty %s", step->target);
		break;
	case STEP_TMPFS:
		text_append_format(out, "private, empty %s of at most ", step->target);
		units_format_size(out, step->value);
		break;
	case STEP_HIDE:
		text_append_format(out, "hide %s", step->target);
		break;
	case STEP_PIN:
		text_append_format(out, "keep the host's %s in its place", step->target);
		break;
	case STEP_DEVPTS:
		text_append_format(out, "at most %" PRIu64 " terminals of its own in /dev/pts", step->value);
		break;
	case STEP_PROC:
		text_append_string(out, "a /proc that shows the jar only");
		break;
	case STEP_PROC_LOCK:
		text_append_format(out, "%s read-only", step->target);
		break;
	case STEP_SEAL:
		text_append_string(out, "the root itself read-only");
		break;
	case STEP_ENTER:
		text_append_string(out, "enter the new root");
		break;
	case STEP_LOOPBACK:
		text_append_string(out, "bring the private loopback up");
		break;
	case STEP_HOSTNAME:
		text_append_format(out, "hostname %s", step->source);
		break;
	case STEP_JOIN:
		text_append_string(out, "enter the user namespace where that id is 0");
		break;
	case STEP_RUN_DIRECTORY:
		text_append_format(out, "directory of the run's own, %s", step->target);
		break;
	case STEP_PLACES:
		text_append_string(out,
				   "hold the writable places, and change mode, owner, times and attributes only there");
		break;
	case STEP_SUBREAPER:
		text_append_string(out, "adopt every orphan of the tree");
		break;
	case STEP_WORKDIR:
		text_append_format(out, "start in %s", step->target);
		break;
	case STEP_RLIMIT:
		text_append_format(out, "limit %s to %" PRIu64, resource_name(step->value), step->value2);
		break;
	case STEP_PRIVILEGES:
		text_append_string(out, "drop all capabilities, for good");
		break;
	case STEP_LANDLOCK:
		text_append_string(out, "Landlock over the same paths");
		break;
	case STEP_SECCOMP:
		text_append_string(out, "seccomp filter");
		break;
	case STEP_SCOPE:
		text_append_string(out, "signals only to its own processes");
		break;
	case STEP_KIND_COUNT:
		break;
	}
}

static void print_steps(const struct plan_step_list *steps, struct text *out)
{
	for (size_t i = 0; i < steps->count; i++) {
		text_append_format(out, "  %3zu  ", i + 1);
		plan_describe_step(&steps->items[i], out);
		text_append_char(out, '\n');
	}
}

static void print_profile(const struct plan *plan, struct seccomp_profile *profile)
{
	*profile = (struct seccomp_profile){.parts = plan->filter_parts};
}

static void print_remarks(const char *title, const struct plan_remark_list *list, struct text *out)
{
	for (size_t i = 0; i < list->count; i++)
		text_append_format(out, "%s: %s: %s\n", title, list->items[i].name, list->items[i].why);
}

static void print_limit(struct text *out, const char *name, uint64_t value, void (*format)(struct text *, uint64_t))
{
	if (value == LIMIT_NONE)
		return;
	text_append_format(out, "  %s ", name);
	format(out, value);
}

static void print_count(struct text *out, uint64_t count)
{
	text_append_format(out, "%" PRIu64, count);
}

static void print_limits(const struct plan_limits *limits, struct text *out)
{
	text_append_string(out, "limits:");
	print_limit(out, "timeout", limits->timeout_ns, units_format_duration);
	print_limit(out, "grace", limits->grace_ns, units_format_duration);
	print_limit(out, "cpu_time", limits->cpu_time_ns, units_format_duration);
	print_limit(out, "memory", limits->memory_bytes, units_format_size);
	print_limit(out, "pids", limits->pids, print_count);
	print_limit(out, "disk", limits->disk_bytes, units_format_size);
	print_limit(out, "file_size", limits->file_size_bytes, units_format_size);
	print_limit(out, "fds", limits->fds, print_count);
	print_limit(out, "core", limits->core_bytes, units_format_size);
	print_limit(out, "output", limits->output_bytes, units_format_size);
	text_append_char(out, '\n');
}

void plan_print(const struct plan *plan, struct text *out)
{
	struct seccomp_profile profile;

	text_append_format(out, "rung: %s\nnamespaces:", rung_name(plan->rung));
	for (size_t i = 0; i < ARRAY_LEN(namespace_names); i++)
		if (plan->core.namespaces & namespace_names[i].flag)
			text_append_format(out, " %s", namespace_names[i].name);
	text_append_format(out, "%s\nthe jar's first process:\n", plan->core.namespaces ? "" : " none");
	print_steps(&plan->core.steps, out);
	text_append_string(out, "the command, before it runs:\n");
	print_steps(&plan->core.entry, out);
	print_limits(&plan->limits, out);
	text_append_string(out, "environment:");
	for (size_t i = 0; i < plan->core.env.count; i++)
		text_append_format(out, " %.*s", (int)strcspn(plan->core.env.items[i], "="), plan->core.env.items[i]);
	text_append_string(out, "\ncommand:");
	for (size_t i = 0; i < plan->core.argv.count; i++)
		text_append_format(out, " %s", plan->core.argv.items[i]);
	text_append_char(out, '\n');
	if (plan->core.filter_len) {
		print_profile(plan, &profile);
		seccomp_print(&profile, syscall_native_arch(), out);
	}
	print_remarks("missing", &plan->missing, out);
	print_remarks("note", &plan->notes, out);
}

/* --- JSON --------------------------------------------------------------------------------------------------- */

static void write_step(const struct plan_step *step, struct json_writer *writer)
{
	json_open_object(writer, NULL);
	json_write_string(writer, "step", step_kind_name(step->kind));
	if (step->target)
		json_write_string(writer, "target", step->target);
	if (step->source)
		json_write_string(writer, "source", step->source);
	if (step->flags) {
		json_open_array(writer, "flags");
		for (size_t i = 0; i < ARRAY_LEN(flag_names); i++)
			if (step->flags & flag_names[i].flag)
				json_write_string(writer, NULL, flag_names[i].name);
		json_close_array(writer);
	}
	switch (step->kind) {
	case STEP_PRIVATE:
	case STEP_TMPFS:
	case STEP_DIRECTORY:
	case STEP_FILE:
	case STEP_COPY:
		json_write_unsigned(writer, "mode", step->mode);
		if (step->kind == STEP_TMPFS)
			json_write_unsigned(writer, "size", step->value);
		break;
	case STEP_SCRATCH:
		json_write_unsigned(writer, "size", step->value);
		break;
	case STEP_DEVPTS:
		json_write_unsigned(writer, "limit", step->value);
		break;
	case STEP_BECOME:
		json_write_unsigned(writer, "id", step->value);
		break;
	case STEP_ID_MAPS:
		json_write_unsigned(writer, "uid", step->value);
		json_write_unsigned(writer, "gid", step->value2);
		break;
	case STEP_CGROUP:
	case STEP_METER:
		json_open_array(writer, "holds");
		for (size_t i = 0; i < ARRAY_LEN(measured_names); i++)
			if (step->value >> measured_names[i].guarantee & 1)
				json_write_string(writer, NULL, measured_names[i].name);
		json_close_array(writer);
		break;
	case STEP_USER_LIMIT:
		json_write_unsigned(writer, "limit", step->value);
		break;
	case STEP_RLIMIT:
		json_write_string(writer, "resource", resource_name(step->value));
		json_write_unsigned(writer, "limit", step->value2);
		break;
	case STEP_PRIVATE_MOUNTS:
	case STEP_ROOT:
	case STEP_SYMLINK:
	case STEP_BIND:
	case STEP_HIDE:
	case STEP_PIN:
	case STEP_PROC:
	case STEP_PROC_LOCK:
	case STEP_SEAL:
	case STEP_ENTER:
	case STEP_LOOPBACK:
	case STEP_HOSTNAME:
	case STEP_JOIN:
	case STEP_RUN_DIRECTORY:
	case STEP_PLACES:
	case STEP_SUBREAPER:
	case STEP_WORKDIR:
	case STEP_PRIVILEGES:
	case STEP_LANDLOCK:
	case STEP_SECCOMP:
	case STEP_SCOPE:
	case STEP_KIND_COUNT:
		break;
	}
	json_close_object(writer);
}

static void write_steps(const struct plan_step_list *steps, struct json_writer *writer, const char *key)
{
	json_open_array(writer, key);
	for (size_t i = 0; i < steps->count; i++)
		write_step(&steps->items[i], writer);
	json_close_array(writer);
}

static void write_landlock(const struct plan *plan, struct json_writer *writer)
{
	json_open_object(writer, "landlock");
	json_write_integer(writer, "abi", plan->core.landlock_abi);
	json_write_unsigned(writer, "handled", plan->core.landlock_files);
	json_write_unsigned(writer, "scoped", plan->core.landlock_scopes);
	json_open_array(writer, "rules");
	for (size_t i = 0; i < plan->core.landlock.count; i++) {
		json_open_object(writer, NULL);
		json_write_string(writer, "path", plan->core.landlock.items[i].path);
		json_write_unsigned(writer, "access", plan->core.landlock.items[i].access);
		json_close_object(writer);
	}
	json_close_array(writer);
	json_close_object(writer);
}

static void write_limit(struct json_writer *writer, const char *key, uint64_t value, uint64_t divisor)
{
	if (value == LIMIT_NONE)
		json_write_null(writer, key);
	else
		json_write_unsigned(writer, key, value / divisor);
}

void plan_write_limits(const struct plan_limits *limits, struct json_writer *writer, const char *key)
{
	json_open_object(writer, key);
	write_limit(writer, "timeout_ms", limits->timeout_ns, 1000000);
	write_limit(writer, "grace_ms", limits->grace_ns, 1000000);
	write_limit(writer, "cpu_time_ms", limits->cpu_time_ns, 1000000);
	write_limit(writer, "memory", limits->memory_bytes, 1);
	write_limit(writer, "pids", limits->pids, 1);
	write_limit(writer, "disk", limits->disk_bytes, 1);
	write_limit(writer, "file_size", limits->file_size_bytes, 1);
	write_limit(writer, "fds", limits->fds, 1);
	write_limit(writer, "core", limits->core_bytes, 1);
	write_limit(writer, "output", limits->output_bytes, 1);
	json_close_object(writer);
}

static void write_strings(const struct string_list *list, struct json_writer *writer, const char *key)
{
	json_open_array(writer, key);
	for (size_t i = 0; i < list->count; i++)
		json_write_string(writer, NULL, list->items[i]);
	json_close_array(writer);
}

void plan_write_remark(const struct plan_remark *remark, struct json_writer *writer)
{
	json_open_object(writer, NULL);
	json_write_string(writer, "name", remark->name);
	json_write_string(writer, "why", remark->why);
	json_write_string(writer, "hint", remark->hint);
	json_close_object(writer);
}

void plan_write_remarks(const struct plan_remark_list *list, struct json_writer *writer, const char *key)
{
	json_open_array(writer, key);
	for (size_t i = 0; i < list->count; i++)
		plan_write_remark(&list->items[i], writer);
	json_close_array(writer);
}

void plan_print_json(const struct plan *plan, struct text *out)
{
	struct json_writer writer = {.text = out, .indent = 2};
	struct seccomp_profile profile;

	json_open_object(&writer, NULL);
	json_write_integer(&writer, "version", 1);
	json_write_string(&writer, "rung", rung_name(plan->rung));
	json_open_array(&writer, "namespaces");
	for (size_t i = 0; i < ARRAY_LEN(namespace_names); i++)
		if (plan->core.namespaces & namespace_names[i].flag)
			json_write_string(&writer, NULL, namespace_names[i].name);
	json_close_array(&writer);
	write_strings(&plan->core.argv, &writer, "argv");
	write_strings(&plan->core.env, &writer, "env");
	json_write_string(&writer, "workdir", plan->core.workdir);
	write_steps(&plan->core.steps, &writer, "steps");
	write_steps(&plan->core.entry, &writer, "entry");
	if (plan->kind == PLAN_SESSION)
		write_steps(&plan->core.minder, &writer, "minder");
	write_landlock(plan, &writer);
	print_profile(plan, &profile);
	if (plan->core.filter_len)
		seccomp_print_json(&profile, syscall_native_arch(), &writer, "seccomp");
	else
		json_write_null(&writer, "seccomp");
	plan_write_limits(&plan->limits, &writer, "limits");
	plan_write_remarks(&plan->missing, &writer, "missing");
	plan_write_remarks(&plan->notes, &writer, "notes");
	json_close_object(&writer);
	text_append_char(out, '\n');
}
