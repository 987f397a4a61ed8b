/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan/plan_print.c - a plan in words and as JSON
 *
 * Both list every step in the order it is carried out; the JSON form is what golden files compare.
 */
#include "plan/plan.h"

#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/units.h"
#include "plan/seccomp/seccomp_compile.h"

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
	{STEP_IF_POSSIBLE, "if-possible"},
	{STEP_MAY_BE_GONE, "may-be-gone"},
	{STEP_STANDS, "stands"},
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

/* What a letter of JAR_STEPS means where it is of the union. */
static uint64_t number_of(const struct plan_step *step, char letter)
{
	const union step_detail *as = &step->as;

	switch (letter) {
	case 'h':
		return step->kind == STEP_CGROUP ? as->cgroup.holds : as->meter.holds;
	case 'i':
		return as->become.id;
	case 'u':
		return as->id_maps.uid;
	case 'g':
		return as->id_maps.gid;
	case 'l':
		return step->kind == STEP_RLIMIT   ? as->rlimit.limit
		       : step->kind == STEP_DEVPTS ? as->devpts.limit
						   : as->user_limit.limit;
	case 'b':
		return step->kind == STEP_TMPFS ? as->tmpfs.bytes : as->scratch.bytes;
	case 'a':
		return as->netlink.acknowledged;
	case 'c':
		return as->sockets.count;
	case 'r':
		return (uint64_t)as->rlimit.resource;
	case 'x':
		return as->speculation.turned_off;
	case 'y':
		return as->speculation.held;
	}
	return 0;
}

/* One argument, for the letters that JAR_STEPS has. */
static void describe_argument(const struct plan_step *step, char letter, struct text *out)
{
	switch (letter) {
	case 't':
		text_append_string(out, step->target ? step->target : "of its own");
		break;
	case 's':
		text_append_string(out, step->source);
		break;
	case 'o':
		if (strcmp(step->source, step->target) != 0)
			text_append_format(out, " (the host's %s)", step->source);
		break;
	case 'w':
		text_append_string(out, step->flags & STEP_READ_ONLY ? ", read-only" : ", writable");
		break;
	case 'b':
		units_format_size(out, number_of(step, letter));
		break;
	case 'h':
		describe_measured(number_of(step, letter), out);
		break;
	case 'r':
		text_append_string(out, resource_name(number_of(step, letter)));
		break;
	default:
		text_append_format(out, "%" PRIu64, number_of(step, letter));
		break;
	}
}

void plan_describe_step(const struct plan_step *step, struct text *out)
{
	for (const char *at = inside_step_rows[step->kind].words; *at; at++) {
		if (*at == '%')
			describe_argument(step, *++at, out);
		else
			text_append_char(out, *at);
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

static void print_limits(const struct limits *limits, struct text *out)
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
	print_limit(out, "net_connections", limits->net_connections, print_count);
	print_limit(out, "net_bytes", limits->net_bytes, units_format_size);
	print_limit(out, "output", limits->output.total_bytes, units_format_size);
	print_limit(out, "stdout", limits->output.stream_bytes[0], units_format_size);
	print_limit(out, "stderr", limits->output.stream_bytes[1], units_format_size);
	text_append_char(out, '\n');
}

void plan_print(const struct plan *plan, struct text *out)
{
	struct seccomp_profile profile;

	text_append_format(out, "rung: %s\nnamespaces:", plan_rung_name(plan->rung));
	for (size_t i = 0; i < ARRAY_LEN(namespace_names); i++)
		if (plan->core.namespaces & namespace_names[i].flag)
			text_append_format(out, " %s", namespace_names[i].name);
	text_append_format(out, "%s\nthe jar's first process:\n", plan->core.namespaces ? "" : " none");
	print_steps(&plan->core.steps, out);
	text_append_string(out, "the command, before it runs:\n");
	print_steps(&plan->core.entry, out);
	for (size_t i = 0; i < plan->matches.count; i++)
		text_append_format(out, "%s: '%s' matches %s\n", plan->matches.items[i].key,
				   plan->matches.items[i].pattern, plan->matches.items[i].path);
	print_limits(&plan->limits, out);
	for (size_t i = 0; i < plan->gate.rules.count; i++) {
		text_append_string(out, i ? " " : "through the gate: ");
		net_rule_format(&plan->gate.rules.items[i], out);
	}
	if (plan->gate.leads_out)
		text_append_string(out, plan->gate.rules.count ? "\n" : "through the gate: nothing\n");
	if (plan->gate.may_ask)
		text_append_string(out, "what no rule decides is asked\n");
	for (size_t i = 0; i < plan->gate.published_count; i++) {
		text_append_string(out, i ? " " : "published at 127.0.0.1: ");
		policy_publish_format(&plan->gate.published[i], out);
	}
	if (plan->gate.published_count)
		text_append_char(out, '\n');
	text_append_string(out, "environment:");
	for (size_t i = 0; i < plan->core.env.count; i++)
		text_append_format(out, " %.*s", (int)strcspn(plan->core.env.items[i], "="), plan->core.env.items[i]);
	text_append_string(out, "\ncommand:");
	for (size_t i = 0; i < plan->core.argv.count; i++)
		text_append_format(out, " %s", plan->core.argv.items[i]);
	text_append_char(out, '\n');
	if (plan->core.filter.len) {
		print_profile(plan, &profile);
		seccomp_print(&profile, syscall_native_arch(), out);
	}
	print_remarks("missing", &plan->missing, out);
	print_remarks("note", &plan->notes, out);
}

/* --- JSON --------------------------------------------------------------------------------------------------- */

static void write_argument(const struct plan_step *step, char letter, struct json_writer *writer, const char *key)
{
	switch (letter) {
	case 'm':
		json_write_unsigned(writer, key, step->mode);
		break;
	case 'r':
		json_write_string(writer, key, resource_name(number_of(step, letter)));
		break;
	case 'h':
		json_open_array(writer, key);
		for (size_t i = 0; i < ARRAY_LEN(measured_names); i++)
			if (number_of(step, letter) >> measured_names[i].guarantee & 1)
				json_write_string(writer, NULL, measured_names[i].name);
		json_close_array(writer);
		break;
	default:
		json_write_unsigned(writer, key, number_of(step, letter));
		break;
	}
}

/* What is sent to the kernel, byte by byte. */
static void write_messages(const struct plan_step *step, struct json_writer *writer)
{
	const unsigned char *bytes = step->as.netlink.messages;
	AUTO_TEXT digits = {0};

	for (size_t i = 0; i < step->as.netlink.len; i++)
		text_append_format(&digits, "%02x", bytes[i]);
	json_write_string(writer, "messages", text_string(&digits));
}

static void write_parts(const struct plan_step *step, struct json_writer *writer)
{
	json_open_array(writer, "parts");
	for (size_t i = 0; i < step->as.overlay.count; i++)
		json_write_string(writer, NULL, step->as.overlay.parts[i].path);
	json_close_array(writer);
}

static void write_step(const struct plan_step *step, struct json_writer *writer)
{
	char key[16], letter;
	int len;

	json_open_object(writer, NULL);
	json_write_string(writer, "step", inside_step_rows[step->kind].name);
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
	for (const char *at = inside_step_rows[step->kind].fields;
	     sscanf(at, " %15[a-z]=%c%n", key, &letter, &len) == 2; at += len)
		write_argument(step, letter, writer, key);
	if (step->kind == STEP_NETLINK)
		write_messages(step, writer);
	if (step->kind == STEP_OVERLAY)
		write_parts(step, writer);
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

static void write_matches(const struct plan *plan, struct json_writer *writer)
{
	if (!plan->matches.count)
		return;
	json_open_array(writer, "matches");
	for (size_t i = 0; i < plan->matches.count; i++) {
		json_open_object(writer, NULL);
		json_write_string(writer, "key", plan->matches.items[i].key);
		json_write_string(writer, "pattern", plan->matches.items[i].pattern);
		json_write_string(writer, "path", plan->matches.items[i].path);
		json_close_object(writer);
	}
	json_close_array(writer);
}

static void write_published(const struct plan_gate *gate, struct json_writer *writer)
{
	json_open_array(writer, "publish");
	for (size_t i = 0; i < gate->published_count; i++) {
		AUTO_TEXT entry = {0};

		policy_publish_format(&gate->published[i], &entry);
		json_write_string(writer, NULL, text_string(&entry));
	}
	json_close_array(writer);
}

static void write_rules(const struct plan_gate *gate, struct json_writer *writer)
{
	json_open_array(writer, "allow_net");
	for (size_t i = 0; i < gate->rules.count; i++) {
		AUTO_TEXT rule = {0};

		net_rule_format(&gate->rules.items[i], &rule);
		if (text_string(&rule)[0] == '{')
			json_write_raw(writer, NULL, rule.data, rule.len);
		else
			json_write_string(writer, NULL, text_string(&rule));
	}
	json_close_array(writer);
	if (gate->may_ask)
		json_write_string(writer, "ask", "net");
}

static void write_limit(struct json_writer *writer, const char *key, uint64_t value, uint64_t divisor)
{
	if (value == LIMIT_NONE)
		json_write_null(writer, key);
	else
		json_write_unsigned(writer, key, value / divisor);
}

void plan_write_limits(const struct limits *limits, struct json_writer *writer, const char *key)
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
	write_limit(writer, "net_connections", limits->net_connections, 1);
	write_limit(writer, "net_bytes", limits->net_bytes, 1);
	if (policy_output_is_split(&limits->output)) {
		json_open_object(writer, "output");
		write_limit(writer, "stdout", limits->output.stream_bytes[0], 1);
		write_limit(writer, "stderr", limits->output.stream_bytes[1], 1);
		json_close_object(writer);
	} else {
		write_limit(writer, "output", limits->output.total_bytes, 1);
	}
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
	json_write_string(&writer, "rung", plan_rung_name(plan->rung));
	json_open_array(&writer, "namespaces");
	for (size_t i = 0; i < ARRAY_LEN(namespace_names); i++)
		if (plan->core.namespaces & namespace_names[i].flag)
			json_write_string(&writer, NULL, namespace_names[i].name);
	json_close_array(&writer);
	write_strings(&plan->core.argv, &writer, "argv");
	write_strings(&plan->core.env, &writer, "env");
	json_write_string(&writer, "workdir", plan->core.workdir);
	if (plan->skeleton.count)
		write_steps(&plan->skeleton, &writer, "skeleton");
	write_steps(&plan->core.steps, &writer, "steps");
	write_steps(&plan->core.entry, &writer, "entry");
	if (plan_has_minders(plan))
		write_steps(&plan->core.minder, &writer, "minder");
	write_matches(plan, &writer);
	write_landlock(plan, &writer);
	write_rules(&plan->gate, &writer);
	write_published(&plan->gate, &writer);
	print_profile(plan, &profile);
	if (plan->core.filter.len)
		seccomp_print_json(&profile, syscall_native_arch(), &writer, "seccomp");
	else
		json_write_null(&writer, "seccomp");
	plan_write_limits(&plan->limits, &writer, "limits");
	plan_write_remarks(&plan->missing, &writer, "missing");
	plan_write_remarks(&plan->notes, &writer, "notes");
	json_close_object(&writer);
	text_append_char(out, '\n');
}
