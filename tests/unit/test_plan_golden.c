/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_plan_golden.c - plans for imagined hosts, compared with files
 *
 * tests/golden/NAME.case.json has a host, a policy and a command; NAME.plan what must come out: a plan, as its difference from
 * that of another case, or an error. tests/golden/README.md says how to read and renew them. Of the seccomp filter only the
 * names of its parts are kept: the rest depends on the architecture.
 */
#include "test.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include "imagined_host.h"
#include "plan/plan.h"
#include "plan/seccomp/seccomp_compile.h"
#include "plan_lines.h"
#include "policy/policy_build.h"

#define CASE_SUFFIX ".case.json"
#define PLAN_SUFFIX ".plan"

static char golden_directory[PATH_MAX];

/* --- files -------------------------------------------------------------------------------------------------- */

static bool read_golden(const char *name, const char *suffix, struct text *out)
{
	char path[2 * PATH_MAX];
	FILE *file;
	size_t len;

	snprintf(path, sizeof(path), "%s/%s%s", golden_directory, name, suffix);
	file = fopen(path, "re");
	if (!file)
		return false;
	do {
		char *end = text_reserve(out, 4096);

		len = end ? fread(end, 1, 4096, file) : 0;
		out->len += len;
	} while (len);
	if (out->data)
		out->data[out->len] = '\0';
	fclose(file);
	return true;
}

static void write_golden(const char *name, const char *suffix, const struct text *content)
{
	char path[2 * PATH_MAX];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s%s", golden_directory, name, suffix);
	file = fopen(path, "we");
	CHECK(file && fwrite(content->data, 1, content->len, file) == content->len);
	if (file)
		fclose(file);
}

static bool parse_golden(const char *name, const char *suffix, struct json_value *out)
{
	AUTO_TEXT bytes = {0};
	struct error error = {0};
	struct json_input input = {.name = name, .stage = STAGE_USAGE};

	if (!read_golden(name, suffix, &bytes)) {
		printf("no file %s%s\n", name, suffix);
		return false;
	}
	input.bytes = bytes.data;
	input.len = bytes.len;
	if (json_parse(&input, out, &error) < 0) {
		printf("%s\n", error.message);
		return false;
	}
	return true;
}

/* --- from JSON to facts ------------------------------------------------------------------------------------- */

static const struct json_value *find(const struct json_value *object, const char *name, enum json_type type)
{
	const struct json_member *member = object ? json_find(object, name) : NULL;

	if (member && member->value.type != type) {
		printf("'%s' is %s\n", name, json_type_name(member->value.type));
		test_failed_checks++;
		return NULL;
	}
	return member ? &member->value : NULL;
}

/* What a case is made into. */
struct golden {
	struct json_value document, base;
	struct imagined_files files;
	struct host host;
	struct policy policy;
	char *current_directory;
	char *unfit;
	char *inner_mount; /* in the workdir */
	char *skeletons;
	uint64_t frozen_layers, workdir_group;
	struct string_list toolchains;
	struct string_list path_directories;
	struct string_list own; /* Belljar's own files */
	char *started_by;
	struct string_list argv;
};

static void set_bool(const struct json_value *object, const char *name, bool *out)
{
	const struct json_value *value = find(object, name, JSON_BOOL);

	if (value)
		*out = value->boolean;
}

static void set_number(const struct json_value *object, const char *name, uint64_t *out)
{
	const struct json_value *value = find(object, name, JSON_INTEGER);

	if (value)
		*out = (uint64_t)value->number.integer;
}

static void set_string(const struct json_value *object, const char *name, char **out)
{
	const struct json_value *value = find(object, name, JSON_STRING);

	if (!value)
		return;
	free(*out);
	*out = value->string.len ? strdup(value->string.bytes) : NULL; /* "" takes back what the base said */
}

static void set_strings(const struct json_value *object, const char *name, struct string_list *out)
{
	const struct json_value *value = find(object, name, JSON_LIST);

	if (!value)
		return;
	string_list_clear(out);
	for (size_t i = 0; i < value->list.count; i++)
		string_list_add(out, value->list.items[i].string.bytes);
}

/* "cgroups": {"version": 1, "memory": "/sys/fs/cgroup/memory", ...} */
static void set_cgroups(const struct json_value *facts, struct host_cgroups *cgroups)
{
	const struct json_value *object = find(facts, "cgroups", JSON_OBJECT);
	uint64_t version = (uint64_t)cgroups->version;

	if (!object)
		return;
	set_number(object, "version", &version);
	set_string(object, "memory", &cgroups->memory);
	set_string(object, "pids", &cgroups->pids);
	set_string(object, "cpu", &cgroups->cpu);
	set_string(object, "name", &cgroups->name);
	cgroups->version = (int)version;
}

static void set_facts(struct golden *golden, const struct json_value *facts, struct string_list *environment)
{
	struct host *host = &golden->host;
	uint64_t uid = host->uid, gid = host->gid, abi = (uint64_t)host->landlock_abi;
	const struct json_value *files = find(facts, "files", JSON_LIST);

	set_bool(facts, "user_namespaces", &host->has_user_namespaces);
	set_bool(facts, "id_mapped_mounts", &host->has_id_mapped_mounts);
	set_bool(facts, "seccomp", &host->has_seccomp);
	set_bool(facts, "seccomp_listeners", &host->has_seccomp_listeners);
	set_bool(facts, "hides_memory", &host->hides_memory);
	set_bool(facts, "pipes_core_dumps", &host->pipes_core_dumps);
	set_bool(facts, "task_clock", &host->has_task_clock);
	set_bool(facts, "lacks_nft", &host->lacks_nft);
	set_bool(facts, "lacks_overlay", &host->lacks_overlay);
	set_bool(facts, "skeleton", &host->has_skeleton);
	set_string(facts, "skeletons", &golden->skeletons);
	set_number(facts, "frozen_layers", &golden->frozen_layers);
	set_number(facts, "workdir_group", &golden->workdir_group);
	set_string(facts, "inner_mount", &golden->inner_mount);
	set_string(facts, "uncounted_path", &host->uncounted_path);
	set_cgroups(facts, &host->cgroups);
	set_number(facts, "landlock", &abi);
	set_number(facts, "uid", &uid);
	set_number(facts, "gid", &gid);
	set_number(facts, "memory_bytes", &host->memory_bytes);
	set_number(facts, "inotify_instances", &host->inotify_instances);
	set_number(facts, "inotify_watches", &host->inotify_watches);
	set_number(facts, "argument_bytes_max", &host->argument_bytes_max);
	set_string(facts, "home", &host->home);
	set_string(facts, "real_home", &host->real_home);
	set_string(facts, "run_directory", &host->run_directory);
	set_string(facts, "current_directory", &golden->current_directory);
	set_string(facts, "unfit", &golden->unfit);
	set_strings(facts, "environment", environment);
	set_strings(facts, "toolchains", &golden->toolchains);
	set_strings(facts, "path_directories", &golden->path_directories);
	set_strings(facts, "own", &golden->own);
	set_string(facts, "started_by", &golden->started_by);
	for (size_t i = 0; files && i < files->list.count; i++)
		imagine_file(&golden->files, files->list.items[i].string.bytes);
	host->uid = (uid_t)uid;
	host->jar_id = 1900000000;
	host->gid = (gid_t)gid;
	host->landlock_abi = (int)abi;
}

/* "flags": [["ro", "/srv:/data"], ["protect"], ["no-protect"]] */
static int set_flags(struct golden *golden, const struct policy_context *context, struct error *error)
{
	const struct json_value *flags = find(&golden->document, "flags", JSON_LIST);
	int rc = 0;

	for (size_t i = 0; flags && i < flags->list.count && rc == 0; i++) {
		const struct json_value *words = &flags->list.items[i];
		const char *name = words->list.items[0].string.bytes;
		bool is_negated = !strncmp(name, "no-", 3);
		const struct policy_key *key = policy_key_by_flag(is_negated ? name + 3 : name);

		CHECK(key);
		if (key)
			rc = policy_set_flag(&golden->policy, key,
					     words->list.count > 1 ? words->list.items[1].string.bytes : NULL,
					     is_negated, context, error);
	}
	return rc;
}

static int make_policy(struct golden *golden, const struct string_list *environment, struct error *error)
{
	const struct json_value *document = find(&golden->document, "policy", JSON_OBJECT);
	struct policy_context context = {.current_directory = golden->current_directory,
					 .home = golden->host.real_home};
	AUTO_TEXT bytes = {0};
	struct json_writer writer = {.text = &bytes};
	int rc;

	for (size_t i = 0; i < environment->count; i++)
		if (!strncmp(environment->items[i], "HOME=", 5))
			context.home = environment->items[i] + 5;
	rc = policy_init(&golden->policy, &context, error);
	if (rc == 0 && document) {
		json_copy(document, &writer, NULL);
		rc = policy_load_document(&golden->policy, bytes.data, bytes.len, "policy", golden->current_directory,
					  &context, error);
	}
	return rc < 0 ? rc : set_flags(golden, &context, error);
}

static void golden_done(struct golden *golden)
{
	json_value_done(&golden->document);
	json_value_done(&golden->base);
	survey_done(&golden->host);
	policy_done(&golden->policy);
	free(golden->current_directory);
	free(golden->unfit);
	free(golden->inner_mount);
	free(golden->skeletons);
	string_list_done(&golden->toolchains);
	string_list_done(&golden->path_directories);
	string_list_done(&golden->own);
	free(golden->started_by);
	string_list_done(&golden->argv);
}

static void set_layers(struct golden *golden)
{
	struct host *host = &golden->host;

	imagined_layers(host, &golden->files, &golden->policy, golden->frozen_layers);
	if (!host->layers.count)
		return;
	host->layers.items[0].inner_mount = golden->inner_mount ? strdup(golden->inner_mount) : NULL;
	if (golden->workdir_group)
		host->layers.items[0].group = (gid_t)golden->workdir_group;
}

/* --- one case ----------------------------------------------------------------------------------------------- */

static void print_error(const struct error *error, struct text *out)
{
	struct json_writer writer = {.text = out, .indent = 2};

	json_open_object(&writer, NULL);
	json_open_object(&writer, "error");
	json_write_string(&writer, "stage", stage_name(error->stage));
	json_write_string(&writer, "errno", errno_name(error->errno_value));
	json_write_string(&writer, "message", error->message);
	json_write_string(&writer, "hint", error->hint[0] ? error->hint : NULL);
	json_close_object(&writer);
	json_close_object(&writer);
	text_append_char(out, '\n');
}

static void write_list(struct json_writer *writer, const char *key, const struct string_list *list)
{
	json_open_array(writer, key);
	for (size_t i = 0; i < list->count; i++)
		json_write_string(writer, NULL, list->items[i]);
	json_close_array(writer);
}

/* The plan as users see it, and of what they do not see the filter's parts and the texts to redact. */
static void print_plan(struct plan *plan, struct text *out)
{
	struct json_writer writer = {.text = out, .indent = 2};
	AUTO_TEXT printed = {0}, indented = {0};

	json_open_object(&writer, NULL);
	json_open_array(&writer, "seccomp_parts");
	for (uint32_t part = 1; plan->core.filter.len && part <= SECCOMP_PART_ALL; part <<= 1)
		if (plan->filter_parts & part)
			json_write_string(&writer, NULL, seccomp_part_name(part));
	json_close_array(&writer);
	plan->core.filter.len = 0; /* so that the listing of calls is left out */
	write_list(&writer, "redact", &plan->redact);
	plan_print_json(plan, &printed);
	for (size_t i = 0; i + 1 < printed.len; i++) {
		text_append_char(&indented, printed.data[i]);
		if (printed.data[i] == '\n')
			text_append_string(&indented, "  ");
	}
	json_write_raw(&writer, "plan", text_string(&indented), indented.len);
	json_close_object(&writer);
	text_append_char(out, '\n');
}

/* The plan or the error as lines; a plan's members without "plan." before them. */
static void print_lines(const struct text *printed, struct string_list *lines)
{
	struct json_input input = {.name = "plan",
				   .bytes = printed->data,
				   .len = printed->len,
				   .stage = STAGE_USAGE,
				   .has_byte_escapes = true};
	struct json_value document = {0};
	struct error error = {0};

	CHECK_INT(json_parse(&input, &document, &error), 0);
	for (size_t i = 0; document.type == JSON_OBJECT && i < document.object.count; i++) {
		const struct json_member *member = &document.object.members[i];

		lines_of_json(lines, strcmp(member->name, "plan") ? member->name : NULL, &member->value);
	}
	json_value_done(&document);
	for (size_t i = 0; i < lines->count; i++)
		for (size_t j = 0; j < i; j++)
			if (!strcmp(lines->items[i], lines->items[j])) {
				printf("this line stands twice in the plan: %s\n", lines->items[i]);
				test_failed_checks++;
			}
}

static void compare(const char *name, const struct text *actual)
{
	AUTO_TEXT expected = {0}, difference = {0};
	AUTO(string_list_done) struct string_list expected_lines = {0}, actual_lines = {0};

	if (getenv("BELLJAR_GOLDEN_UPDATE")) {
		write_golden(name, PLAN_SUFFIX, actual);
		return;
	}
	if (!read_golden(name, PLAN_SUFFIX, &expected)) {
		printf("there is no %s" PLAN_SUFFIX "; BELLJAR_GOLDEN_UPDATE=1 makes it\n", name);
		test_failed_checks++;
		return;
	}
	if (!strcmp(text_string(&expected), text_string(actual)))
		return;
	lines_of_text(&expected_lines, text_string(&expected));
	lines_of_text(&actual_lines, text_string(actual));
	CHECK(write_difference(&expected_lines, &actual_lines, &difference));
	printf("tests/golden/%s" PLAN_SUFFIX " is not what the planner makes; '-' is expected, '+' is made:\n%s", name,
	       text_string(&difference));
	test_failed_checks++;
}

static void compile(struct golden *golden, struct string_list *lines)
{
	AUTO_TEXT printed = {0};
	struct string_list environment = {0};
	struct plan_request request = {.argv = &golden->argv};
	AUTO(plan_done) struct plan plan = {0};
	struct error error = {0};
	const struct json_value *host = find(&golden->document, "host", JSON_OBJECT);
	int rc;

	if (golden->base.type == JSON_OBJECT)
		set_facts(golden, &golden->base, &environment);
	if (host)
		set_facts(golden, host, &environment);
	golden->host.environment = environment.items;
	set_strings(&golden->document, "argv", &golden->argv);
	rc = make_policy(golden, &environment, &error);
	if (rc == 0) {
		for (size_t i = 0; i < golden->toolchains.count && golden->policy.has_toolchains; i++)
			imagined_add(&golden->host.toolchains, &golden->files, golden->toolchains.items[i]);
		for (size_t i = 0; i < golden->path_directories.count; i++)
			imagined_add(&golden->host.path_directories, &golden->files, golden->path_directories.items[i]);
		for (size_t i = 0; i < golden->own.count; i++)
			imagined_add(&golden->host.own, &golden->files, golden->own.items[i]);
		if (golden->started_by) {
			struct host_path_list start = {0};

			imagined_add_resolved(&start, &golden->files, golden->started_by);
			golden->host.started_by = start.items[0];
			free(start.items);
		}
		if (golden->skeletons)
			golden->host.skeletons = imagined_path(&golden->files, golden->skeletons);
		imagined_survey(&golden->host, &golden->files, &golden->policy, golden->current_directory,
				golden->unfit);
		set_layers(golden);
		rc = plan_compile(&plan, &golden->policy, &golden->host, &request, &error);
	}
	if (rc == 0)
		print_plan(&plan, &printed);
	else
		print_error(&error, &printed);
	print_lines(&printed, lines);
	golden->host.environment = NULL;
	string_list_done(&environment);
}

/* The lines of case @name, and the case that its plan is compared with: its own name for one that is kept whole. */
static bool make_case(const char *name, struct string_list *lines, struct text *base_out)
{
	struct golden *golden = calloc(1, sizeof(*golden));
	const struct json_value *like = NULL, *base;
	bool is_read = golden && parse_golden(name, CASE_SUFFIX, &golden->document);

	if (is_read)
		like = find(&golden->document, "like", JSON_STRING);
	if (like)
		is_read = parse_golden(like->string.bytes, ".host.json", &golden->base);
	CHECK(is_read);
	if (is_read) {
		compile(golden, lines);
		base = find(&golden->document, "base", JSON_STRING);
		if (!base && like)
			base = find(&golden->base, "base", JSON_STRING);
		text_append_string(base_out, base ? base->string.bytes : name);
	}
	if (golden)
		golden_done(golden);
	free(golden);
	return is_read;
}

static bool is_error(const struct string_list *lines)
{
	return lines->count && !strncmp(lines->items[0], "error.", strlen("error."));
}

static void run_case(const char *name)
{
	AUTO(string_list_done) struct string_list lines = {0}, base_lines = {0};
	AUTO_TEXT base = {0}, ignored = {0}, difference = {0}, actual = {0};

	if (!make_case(name, &lines, &base))
		return;
	if (!strcmp(text_string(&base), name) || is_error(&lines)) {
		for (size_t i = 0; i < lines.count; i++)
			text_append_format(&actual, "%s\n", lines.items[i]);
	} else {
		if (make_case(text_string(&base), &base_lines, &ignored))
			CHECK(write_difference(&base_lines, &lines, &difference));
		text_append_format(&actual, "# as %s%s\n%s", text_string(&base), difference.len ? ", but for:" : "",
				   text_string(&difference));
	}
	compare(name, &actual);
}

/* --- all of them -------------------------------------------------------------------------------------------- */

/* The program stands somewhere below the checkout: tests/golden is found from there, wherever it was started. */
static bool find_directory(void)
{
	char directory[PATH_MAX], path[PATH_MAX + 32];
	ssize_t len = readlink("/proc/self/exe", directory, sizeof(directory) - 1);

	if (getenv("BELLJAR_GOLDEN_DIR")) {
		snprintf(golden_directory, sizeof(golden_directory), "%s", getenv("BELLJAR_GOLDEN_DIR"));
		return true;
	}
	directory[len < 0 ? 0 : len] = '\0';
	for (char *slash = strrchr(directory, '/'); slash; slash = strrchr(directory, '/')) {
		*slash = '\0';
		snprintf(path, sizeof(path), "%s/tests/golden", directory);
		if (access(path, R_OK) == 0) {
			snprintf(golden_directory, sizeof(golden_directory), "%.*s", (int)sizeof(golden_directory) - 1,
				 path);
			return true;
		}
	}
	return false;
}

static int is_case(const struct dirent *entry)
{
	size_t len = strlen(entry->d_name), suffix_len = strlen(CASE_SUFFIX);

	return len > suffix_len && !strcmp(entry->d_name + len - suffix_len, CASE_SUFFIX);
}

int main(int argc, char **argv)
{
	struct dirent **entries = NULL;
	int count = find_directory() ? scandir(golden_directory, &entries, is_case, alphasort) : -1;
	int failed = 0;

	if (count <= 0) {
		printf("no cases in '%s'\nFAIL golden\n", golden_directory);
		return 1;
	}
	for (int i = 0; i < count; i++) {
		entries[i]->d_name[strlen(entries[i]->d_name) - strlen(CASE_SUFFIX)] = '\0';
		if (argc < 2 || strstr(entries[i]->d_name, argv[1])) {
			test_failed_checks = 0;
			run_case(entries[i]->d_name);
			printf("%s golden_%s\n", test_failed_checks ? "FAIL" : "ok", entries[i]->d_name);
			failed += test_failed_checks != 0;
			fflush(stdout);
		}
		free(entries[i]);
	}
	free(entries);
	return failed != 0;
}
