/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_policy_build.c - presets, files and flags: what they give, and what they say when they are wrong
 */
#include "policy/policy_build.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json_read.h"
#include "policy/policy_presets.h"
#include "test.h"

#define SECOND UINT64_C(1000000000)
#define KIB UINT64_C(1024)
#define MIB (KIB * KIB)

static const struct policy_context context = {.current_directory = "/project/dir", .home = "/home/user"};

#define AUTO_POLICY AUTO(policy_done) struct policy

static void init(struct policy *policy)
{
	struct error error = {0};

	CHECK_INT(policy_init(policy, &context, &error), 0);
	CHECK_STRING(error.message, "");
}

static int load(struct policy *policy, const char *document, struct error *error)
{
	return policy_load_document(policy, document, strlen(document), "p.json", "/etc/p", &context, error);
}

static void check_loads(struct policy *policy, const char *document)
{
	struct error error = {0};

	CHECK_INT(load(policy, document, &error), 0);
	CHECK_STRING(error.message, "");
}

static void check_refused(const char *document, const char *message)
{
	AUTO_POLICY policy = {0};
	struct error error = {0};

	init(&policy);
	CHECK(load(&policy, document, &error) < 0);
	CHECK_INT(error.stage, STAGE_POLICY);
	CHECK_STRING(error.message, message);
	CHECK_INT(policy.limits.pids, 1024); /* untouched */
}

static int set(struct policy *policy, const char *flag, const char *value, struct error *error)
{
	bool is_negated = strncmp(flag, "no-", 3) == 0;
	const struct policy_key *key = policy_key_by_flag(is_negated ? flag + 3 : flag);

	CHECK(key != NULL);
	return policy_set_flag(policy, key, value, is_negated, &context, error);
}

static void check_flag(struct policy *policy, const char *flag, const char *value)
{
	struct error error = {0};

	CHECK_INT(set(policy, flag, value, &error), 0);
	CHECK_STRING(error.message, "");
}

static void check_flag_refused(const char *flag, const char *value, const char *message)
{
	AUTO_POLICY policy = {0};
	struct error error = {0};

	init(&policy);
	CHECK(set(&policy, flag, value, &error) < 0);
	CHECK_INT(error.stage, STAGE_USAGE);
	CHECK_STRING(error.message, message);
	CHECK_INT(policy.given_keys, 0);
}

/* --- presets --- */

static void test_agent_is_the_default_of_the_contract(void)
{
	static const char *const names[] = {"PATH",     "HOME",   "USER", "LOGNAME",      "LANG",
					    "LANGUAGE", "LC_*",   "TERM", "COLORTERM",    "NO_COLOR",
					    "SHELL",    "TMPDIR", "TZ",   "GIT_AUTHOR_*", "GIT_COMMITTER_*"};
	static const char *const places[] = {"/tmp", "/var/tmp", "/dev/shm", "/run", "/home/user"};
	AUTO_POLICY policy = {0};

	init(&policy);
	CHECK(policy.workdir_choice == WORKDIR_DEFAULT && !policy.workdir && !policy.cd && !policy.hostname);
	CHECK(policy.workdir_mode == WORKDIR_RW && policy.net == NET_NONE && policy.rung == RUNG_LANDLOCK);
	CHECK(policy.has_system && policy.has_toolchains && policy.has_protect);
	CHECK(!policy.has_redact_secrets && !policy.has_redact_env && policy.redact.count == 0);
	CHECK(policy.limits.overflow == OVERFLOW_TRUNCATE && policy.limits.keep == KEEP_HEAD && policy.optional == 0);
	CHECK(policy.limits.timeout_ns == LIMIT_NONE && policy.limits.grace_ns == 3 * SECOND &&
	      policy.limits.cpu_time_ns == LIMIT_NONE);
	CHECK(policy.limits.memory_bytes == LIMIT_NONE && policy.limits.pids == 1024 &&
	      policy.limits.disk_bytes == LIMIT_NONE);
	CHECK(policy.limits.file_size_bytes == LIMIT_NONE && policy.limits.fds == 1024 &&
	      policy.limits.core_bytes == 0);
	CHECK(policy.limits.output.total_bytes == LIMIT_NONE);
	CHECK(policy.mounts.count == 0 && policy.hide.count == 0 && policy.env.count == 0);
	CHECK_INT(policy.given_keys, 0);
	CHECK_INT(policy.pass_env.count, ARRAY_LEN(names));
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		CHECK_STRING(policy.pass_env.items[i], names[i]);
	CHECK_INT(policy.tmpfs.count, ARRAY_LEN(places));
	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		CHECK_STRING(policy.tmpfs.items[i].path, places[i]);
		CHECK(policy.tmpfs.items[i].size_bytes == LIMIT_NONE);
	}
}

static void test_agent_says_every_key(void)
{
	const char *document = policy_preset_document("agent");
	struct json_input input = {.name = "agent", .bytes = document, .len = strlen(document), .stage = STAGE_POLICY};
	AUTO_JSON root = {0};

	CHECK_INT(json_parse(&input, &root, NULL), 0);
	for (size_t i = 0; i < policy_key_count; i++) {
		bool is_told = json_find(&root, policy_keys[i].name) != NULL;

		CHECK(is_told || strcmp(policy_keys[i].name, "workdir") == 0 ||
		      strcmp(policy_keys[i].name, "extends") == 0);
	}
}

static void test_home_is_private_only_if_there_is_one(void)
{
	struct policy_context homeless = {.current_directory = "/"},
			      root_home = {.current_directory = "/", .home = "/"};
	struct policy_context odd = {.current_directory = "/", .home = "/tmp/"};
	AUTO_POLICY without = {0}, root = {0}, same = {0};

	CHECK_INT(policy_init(&without, &homeless, NULL), 0);
	CHECK_INT(without.tmpfs.count, 4);
	CHECK_INT(policy_init(&root, &root_home, NULL), 0);
	CHECK_INT(root.tmpfs.count, 4);
	CHECK_INT(policy_init(&same, &odd, NULL), 0);
	CHECK_INT(same.tmpfs.count, 4);
}

static void test_one_that_was_read_before_is_the_same(void)
{
	static const struct policy_context nobody = {.current_directory = "/"};
	AUTO_POLICY agent = {0};
	AUTO_POLICY anew = {0};
	AUTO_POLICY from = {0};
	AUTO_TEXT expected = {0};
	AUTO_TEXT printed = {0};

	init(&anew);
	CHECK_INT(policy_init(&agent, &nobody, NULL), 0);
	CHECK_INT(policy_init_from(&from, &agent, &context, NULL), 0);
	policy_print(&anew, &expected, 2);
	policy_print(&from, &printed, 2);
	CHECK_STRING(text_string(&printed), text_string(&expected));
	CHECK_INT(from.given_keys, anew.given_keys);
}

static void test_presets_of_the_contract(void)
{
	AUTO_POLICY policy = {0};
	struct error error = {0};

	init(&policy);
	CHECK_INT(policy_load(&policy, "readonly", &context, &error), 0);
	CHECK(policy.workdir_mode == WORKDIR_RO && policy.workdir_choice == WORKDIR_DEFAULT);
	CHECK(policy_is_given(&policy, "workdir_mode") && !policy_is_given(&policy, "timeout"));

	CHECK_INT(policy_load(&policy, "strict", &context, &error), 0);
	CHECK(policy.workdir_mode == WORKDIR_RW && policy.workdir_choice == WORKDIR_PRIVATE && !policy.workdir);
	CHECK(!policy.has_toolchains && policy.has_system && policy.rung == RUNG_NAMESPACE);
	CHECK(policy.limits.timeout_ns == 10 * SECOND && policy.limits.memory_bytes == 256 * MIB &&
	      policy.limits.pids == 64);
	CHECK(policy.limits.disk_bytes == 64 * MIB && policy.limits.output.total_bytes == 100 * KIB);
	CHECK(policy_is_given(&policy, "timeout") && !policy_is_given(&policy, "grace"));

	CHECK_INT(policy_load(&policy, "agent", &context, &error), 0);
	CHECK(policy.limits.timeout_ns == LIMIT_NONE && policy.given_keys == 0);
}

static void test_unknown_presets_are_refused(void)
{
	AUTO_POLICY policy = {0};
	struct error error = {0}, far_error = {0};

	init(&policy);
	CHECK(policy_load(&policy, "stirct", &context, &error) < 0);
	CHECK_INT(error.stage, STAGE_POLICY);
	CHECK_STRING(error.message, "there is no preset 'stirct' (did you mean 'strict'?)");
	CHECK(error.hint[0]);
	CHECK(policy_load(&policy, "", &context, &far_error) < 0);
	CHECK_STRING(far_error.message, "there is no preset ''");
	check_refused("{\"extends\": \"agnet\"}",
		      "p.json:1:13: extends: there is no preset 'agnet' (did you mean 'agent'?)");
	check_refused("{\"extends\": 7}", "p.json:1:13: extends: must be the name of a preset or a file, not a number");
}

/* --- documents --- */

static void test_the_example_of_the_contract(void)
{
	AUTO_POLICY policy = {0};

	init(&policy);
	check_loads(
		&policy,
		"{ \"extends\": \"agent\",\n"
		"  \"ro\": [\"~/datasets\", {\"path\": \"/srv/models\", \"dest\": \"/models\"}], \"hide\": [\".env\"],\n"
		"  \"pass_env\": [\"PATH\", \"LANG\", \"CI\"], \"env\": {\"PYTHONUNBUFFERED\": \"1\"},\n"
		"  \"timeout\": \"2m\", \"memory\": \"1G\", \"output\": \"1M\", \"redact_secrets\": true, \"optional\": "
		"[\"cpu_time\"] }");
	CHECK_INT(policy.mounts.count, 2);
	CHECK_STRING(policy.mounts.items[0].path, "/home/user/datasets");
	CHECK_STRING(policy.mounts.items[0].dest, "/home/user/datasets");
	CHECK_STRING(policy.mounts.items[1].path, "/srv/models");
	CHECK_STRING(policy.mounts.items[1].dest, "/models");
	CHECK(policy.mounts.items[1].access == MOUNT_RO && !policy.mounts.items[1].is_optional);
	CHECK_STRING(policy.hide.items[0], "/etc/p/.env");
	CHECK_INT(policy.pass_env.count, 3);
	CHECK_STRING(policy.env.items[0].name, "PYTHONUNBUFFERED");
	CHECK_STRING(policy.env.items[0].value, "1");
	CHECK(policy.limits.timeout_ns == 120 * SECOND && policy.limits.memory_bytes == 1024 * MIB &&
	      policy.limits.output.total_bytes == MIB);
	CHECK(policy.has_redact_secrets && policy.optional == 1u << GUARANTEE_CPU_TIME);
	CHECK(policy_is_given(&policy, "timeout") && policy_is_given(&policy, "ro") && !policy_is_given(&policy, "rw"));
	CHECK_INT(policy.tmpfs.count, 5);
}

static void test_a_list_in_a_file_replaces(void)
{
	AUTO_POLICY policy = {0};

	init(&policy);
	check_loads(&policy, "{\"tmpfs\": [], \"pass_env\": [], \"ro\": []}");
	CHECK(policy.tmpfs.count == 0 && policy.pass_env.count == 0);
	check_loads(&policy,
		    "{\"extends\": \"strict\", \"tmpfs\": [\"/scratch:1M\", \"~/x\", \"/scratch:2M\", \"/a\\\\:b\"]}");
	CHECK_INT(policy.tmpfs.count, 3);
	CHECK_STRING(policy.tmpfs.items[0].path, "/home/user/x");
	CHECK_STRING(policy.tmpfs.items[1].path, "/scratch");
	CHECK(policy.tmpfs.items[1].size_bytes == 2 * MIB);
	CHECK_STRING(policy.tmpfs.items[2].path, "/a:b");
	CHECK(policy.workdir_choice == WORKDIR_PRIVATE && policy_is_given(&policy, "memory"));
}

static void test_numbers_and_strings_for_limits(void)
{
	AUTO_POLICY policy = {0};

	init(&policy);
	check_loads(&policy,
		    "{\"timeout\": 1.5, \"grace\": 0, \"cpu_time\": 1e1, \"memory\": 2000000, \"output\": 0, \"core\": "
		    "\"0\", \"disk\": \"1.5G\", \"pids\": null, \"fds\": 7, \"file_size\": 1e6}");
	CHECK(policy.limits.timeout_ns == SECOND * 3 / 2 && policy.limits.grace_ns == 0 &&
	      policy.limits.cpu_time_ns == 10 * SECOND);
	CHECK(policy.limits.memory_bytes == 2000000 && policy.limits.output.total_bytes == 0 &&
	      policy.limits.core_bytes == 0);
	CHECK(policy.limits.disk_bytes == 1536 * MIB && policy.limits.pids == LIMIT_NONE && policy.limits.fds == 7);
	CHECK_INT(policy.limits.file_size_bytes, 1000000);
	check_loads(&policy, "{\"timeout\": 0.30000000000000004, \"cpu_time\": 2.5e-1, \"memory\": null}");
	CHECK(policy.limits.timeout_ns == SECOND / 10 * 3 && policy.limits.cpu_time_ns == SECOND / 4);
	CHECK(policy.limits.memory_bytes == LIMIT_NONE && policy_is_given(&policy, "memory"));
}

static void test_bad_limits_in_a_document(void)
{
	check_refused("{\"timeout\": \"5x\"}",
		      "p.json:1:13: timeout '5x': not a duration (such as 500ms, 30s, 5m, 1h)");
	check_refused("{\"timeout\": -1}", "p.json:1:13: timeout '-1': not a duration (such as 500ms, 30s, 5m, 1h)");
	check_refused("{\"timeout\": 0}", "p.json:1:13: timeout '0': 0 is not a limit; write null for no limit");
	check_refused("{\"timeout\": 1e-12}",
		      "p.json:1:13: timeout '1e-12': 0 is not a limit; write null for no limit");
	check_refused("{\"timeout\": 1e300}", "p.json:1:13: timeout '1e300': too large");
	check_refused("{\"timeout\": \"none\"}", "p.json:1:13: timeout 'none': write null for no limit");
	check_refused("{\"timeout\": []}",
		      "p.json:1:13: timeout: must be a duration: a number of seconds, or a string such as "
		      "\"500ms\", not a list");
	check_refused("{\n\t\"memory\":\n\t\t\"0K\"}",
		      "p.json:3:3: memory '0K': 0 is not a limit; write null for no limit");
	check_refused("{\"memory\": 5}", "p.json:1:12: memory '5': too small; the minimum is 1M");
	check_refused("{\"memory\": 1.5}", "p.json:1:12: memory '1.5': not a size in bytes (such as 100K, 512M, 2G)");
	check_refused("{\"memory\": \"9999999T\"}", "p.json:1:12: memory '9999999T': too large");
	check_refused("{\"pids\": \"64\"}", "p.json:1:10: pids: must be a number, not a string");
	check_refused("{\"pids\": 1.5}", "p.json:1:10: pids '1.5': not a count (such as 64)");
	check_refused("{\"grace\": null}", "p.json:1:11: grace 'null': must be a duration; 0 leaves no time at all");
	check_refused(
		"{\"memory\": true}",
		"p.json:1:12: memory: must be a size: a number of bytes, or a string such as \"512M\", not a bool");
}

static void test_unknown_and_repeated_keys(void)
{
	check_refused("{\n  \"tiemout\": 5}", "p.json:2:3: unknown key 'tiemout' (did you mean 'timeout'?)");
	check_refused("{\"cpu-time\": 5}", "p.json:1:2: unknown key 'cpu-time' (did you mean 'cpu_time'?)");
	check_refused("{\"banana\": 5}", "p.json:1:2: unknown key 'banana'");
	check_refused("{\"net\": \"none\", \"net\": \"host\"}", "p.json:1:17: repeated key 'net' (first on line 1)");
	check_refused("{\"env\": {\"A\": \"1\", \"A\": \"2\"}}", "p.json:1:20: repeated key 'A' (first on line 1)");
	check_refused("[]", "p.json:1:1: a policy must be an object, not a list");
	check_refused("", "p.json:1:1: the document ends where a value should be");
	check_refused("{\"version\": 2}", "p.json:1:13: version '2': this engine knows version 1 only");
	check_refused("{\"version\": \"1\"}", "p.json:1:13: version: must be a number, not a string");
}

static void test_bad_values_in_a_document(void)
{
	check_refused("{\"net\": \"hots\"}",
		      "p.json:1:9: net 'hots': not one of none, gate, host (did you mean 'host'?)");
	check_refused("{\"net\": null}", "p.json:1:9: net: must be a string, not null");
	check_refused("{\"system\": \"yes\"}", "p.json:1:12: system: must be true or false, not a string");
	check_refused("{\"ro\": \"/x\"}", "p.json:1:8: ro: must be a list, not a string");
	check_refused(
		"{\"ro\": [\"/a\", 7]}",
		"p.json:1:15: ro: an entry must be \"PATH\", \"PATH:DEST\" or {\"path\", \"dest\", \"optional\"}, not a number");
	check_refused("{\"ro\": [{\"dest\": \"/a\"}]}", "p.json:1:9: ro: an entry needs a \"path\"");
	check_refused("{\"ro\": [{\"path\": 7}]}", "p.json:1:18: ro 'path': must be a string, not a number");
	check_refused("{\"rw\": [{\"path\": \"/a\", \"optinal\": true}]}",
		      "p.json:1:24: rw 'optinal': not one of path, dest, optional (did you mean 'optional'?)");
	check_refused("{\"rw\": [\"/a:b\"]}", "p.json:1:9: rw 'b': the place in the jar must be an absolute path");
	check_refused("{\"rw\": [\"/a:/b/../c\"]}",
		      "p.json:1:9: rw '/b/../c': a place in the jar may not have '..' in it");
	check_refused("{\"rw\": [\"/a:\"]}", "p.json:1:9: rw '': the path is empty");
	check_refused("{\"rw\": [\"\"]}", "p.json:1:9: rw '': the path is empty");
	check_refused("{\"rw\": [\"/a:/b:/c\"]}",
		      "p.json:1:9: rw '/a:/b:/c': more than one ':'; write '\\:' for a colon in a name");
	check_refused("{\"tmpfs\": [\"/a:x\"]}",
		      "p.json:1:12: tmpfs '/a:x': what follows ':' is not a size (such as 100K, 512M, 2G)");
	check_refused("{\"tmpfs\": [\"/a:0\"]}",
		      "p.json:1:12: tmpfs '/a:0': what follows ':' is not a size (such as 100K, 512M, 2G)");
	check_refused("{\"tmpfs\": [\"/a/..\"]}",
		      "p.json:1:12: tmpfs '/a/..': a place in the jar may not have '..' in it");
	check_refused("{\"tmpfs\": [\"//.\"]}",
		      "p.json:1:12: tmpfs '//.': a private directory cannot take the place of the whole jar");
	check_refused("{\"env\": []}", "p.json:1:9: env: must be an object of strings, not a list");
	check_refused("{\"env\": {\"A\": 1}}", "p.json:1:15: env 'A': must be a string, not a number");
	check_refused("{\"env\": {\"A=B\": \"\"}}",
		      "p.json:1:10: env: the name of a variable may not be empty, nor have a '=' in it");
	check_refused("{\"env\": {\"\": \"\"}}",
		      "p.json:1:10: env: the name of a variable may not be empty, nor have a '=' in it");
	check_refused("{\"pass_env\": [\"A*B\"]}", "p.json:1:15: pass_env 'A*B': '*' may be at the end only");
	check_refused("{\"pass_env\": [\"\"]}", "p.json:1:15: pass_env '': the name of a variable is empty");
	check_refused("{\"redact\": [\"four\", \"abc\"]}",
		      "p.json:1:21: redact: a text must have at least 4 bytes; this one has 3");
	check_refused(
		"{\"optional\": [\"memry\"]}",
		"p.json:1:15: optional 'memry': not one of rung, filesystem, network, processes, syscalls, memory, pids, "
		"cpu_time, disk, exec, speculation (did you mean 'memory'?)");
	check_refused("{\"hostname\": \"\"}", "p.json:1:14: hostname '': a host name has 1 to 64 characters");
	check_refused("{\"hostname\": \"a b\"}",
		      "p.json:1:14: hostname 'a b': a host name is made of letters, digits, '-', "
		      "'_' and '.', and begins with none of '-.'");
	check_refused("{\"workdir\": true}", "p.json:1:13: workdir: must be a path or null, not a bool");
}

static void test_a_list_has_a_bound(void)
{
	AUTO_POLICY policy = {0};
	AUTO_TEXT document = {0};
	struct error error = {0};
	char name[32];

	init(&policy);
	text_append_string(&document, "{\"pass_env\": [");
	for (int i = 0; i < 1000; i++)
		text_append_format(&document, "\"V%d\",", i);
	text_append_string(&document, "]}");
	check_loads(&policy, text_string(&document));
	CHECK_INT(policy.pass_env.count, 1000);
	check_flag(&policy, "pass-env", "V999");
	CHECK(set(&policy, "pass-env", "V1000", &error) < 0);
	CHECK_STRING(error.message, "--pass-env: more than 1000 entries");
	for (int i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "/m%d", i);
		check_flag(&policy, "ro", name);
	}
	error = (struct error){0};
	check_flag(&policy, "rw", "/m1000");
	CHECK(set(&policy, "ro", "/m1000", &error) < 0);
	CHECK_INT(policy.mounts.count, 1001);
	check_flag(&policy, "rw", "/m5");
	check_flag(&policy, "ro", "/m1000");
}

/* --- paths --- */

static void test_paths_are_made_absolute_and_clean(void)
{
	AUTO_POLICY policy = {0};

	init(&policy);
	check_loads(
		&policy,
		"{\"ro\": [\"a//b/./c/\", \"..\", \"/x/../y\", \"~\", \"~x\", \".\", \"/\", \"a\\\\:b:~/c\", \"\\\\a\"], "
		"\"workdir\": \"../w/\", \"cd\": \"a/./b/\", \"hide\": [\"/a\", \"/a/\", \"b/..\"]}");
	CHECK_INT(policy.mounts.count, 9);
	CHECK_STRING(policy.mounts.items[0].path, "/etc/p/a/b/c");
	CHECK_STRING(policy.mounts.items[1].path, "/etc/p/..");
	CHECK_STRING(policy.mounts.items[2].path, "/x/../y");
	CHECK_STRING(policy.mounts.items[3].path, "/home/user");
	CHECK_STRING(policy.mounts.items[4].path, "/etc/p/~x");
	CHECK_STRING(policy.mounts.items[5].path, "/etc/p");
	CHECK_STRING(policy.mounts.items[6].path, "/");
	CHECK_STRING(policy.mounts.items[7].path, "/etc/p/a:b");
	CHECK_STRING(policy.mounts.items[7].dest, "/home/user/c");
	CHECK_STRING(policy.mounts.items[8].path, "/etc/p/\\a");
	CHECK_STRING(policy.workdir, "/etc/p/../w");
	CHECK_STRING(policy.cd, "a/b");
	CHECK_INT(policy.hide.count, 2);
	CHECK_STRING(policy.hide.items[1], "/etc/p/b/..");
	check_flag(&policy, "cd", ".//.");
	CHECK_STRING(policy.cd, ".");
	check_flag(&policy, "cd", "/x//y/");
	CHECK_STRING(policy.cd, "/x/y");
	check_flag(&policy, "cd", "~/z");
	CHECK_STRING(policy.cd, "/home/user/z");
	check_flag(&policy, "cd", "./~/z");
	CHECK_STRING(policy.cd, "./~/z");
}

static void test_home_must_be_known_for_a_tilde(void)
{
	struct policy_context homeless = {.current_directory = "/w"};
	AUTO_POLICY policy = {0};
	struct error error = {0};

	CHECK_INT(policy_init(&policy, &homeless, NULL), 0);
	CHECK(policy_set_flag(&policy, policy_key_by_name("ro"), "~/x", false, &homeless, &error) < 0);
	CHECK_STRING(error.message, "--ro ~/x: cannot expand '~': the home directory is unknown");
	CHECK_INT(policy.mounts.count, 0);
}

static void test_long_paths_are_refused(void)
{
	AUTO_POLICY policy = {0};
	struct error error = {0};
	char path[4200];

	init(&policy);
	memset(path, 'a', sizeof(path));
	path[0] = '/';
	path[4095] = '\0';
	check_flag(&policy, "ro", path);
	path[4095] = 'a';
	path[4096] = '\0';
	CHECK(set(&policy, "ro", path, &error) < 0);
	CHECK(strstr(error.message, "...: the path is longer than 4095 bytes"));
}

static void test_the_last_word_on_a_place_wins(void)
{
	AUTO_POLICY policy = {0};

	init(&policy);
	check_flag(&policy, "ro", "/a");
	check_flag(&policy, "rw", "/b");
	check_flag(&policy, "rw", "/a");
	CHECK_INT(policy.mounts.count, 2);
	CHECK_STRING(policy.mounts.items[1].dest, "/a");
	CHECK(policy.mounts.items[1].access == MOUNT_RW && policy.mounts.items[1].order > policy.mounts.items[0].order);
	check_flag(&policy, "ro", "/x:/b");
	CHECK_INT(policy.mounts.count, 2);
	CHECK_STRING(policy.mounts.items[1].path, "/x");
	check_flag(&policy, "rw", "/tmp");
	CHECK_INT(policy.tmpfs.count, 4);
	check_flag(&policy, "tmpfs", "/tmp:5M");
	CHECK_INT(policy.tmpfs.count, 5);
	CHECK_INT(policy.mounts.count, 2);
	CHECK(policy.tmpfs.items[4].size_bytes == 5 * MIB);
}

static void test_ro_and_rw_replace_only_their_own(void)
{
	AUTO_POLICY policy = {0};
	char directory[] = "/tmp/belljar-test-XXXXXX", base[64], file[64];
	struct error error = {0};
	int fd;

	CHECK(mkdtemp(directory) != NULL);
	snprintf(base, sizeof(base), "%s/base.json", directory);
	snprintf(file, sizeof(file), "%s/file.json", directory);
	fd = open(base, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	CHECK(dprintf(fd, "{\"ro\": [\"r1\"], \"rw\": [\"w1\"], \"timeout\": 5}") > 0);
	close(fd);
	fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	CHECK(dprintf(fd, "{\"ro\": [\"r2\"], \"extends\": \"base.json\"}") > 0);
	close(fd);
	init(&policy);
	CHECK_INT(policy_load(&policy, file, &context, &error), 0);
	CHECK_STRING(error.message, "");
	CHECK_INT(policy.mounts.count, 2);
	CHECK(policy.limits.timeout_ns == 5 * SECOND);
	CHECK(policy.mounts.count == 2 && policy.mounts.items[0].access == MOUNT_RW &&
	      policy.mounts.items[1].access == MOUNT_RO);
	CHECK(strcmp(strrchr(policy.mounts.items[1].path, '/'), "/r2") == 0);
	CHECK(strncmp(policy.mounts.items[1].path, directory, strlen(directory)) == 0);
	unlink(base);
	unlink(file);
	rmdir(directory);
}

/* --- files --- */

struct scratch {
	char directory[64];
	char previous[4096];
};

/* Tests of files run in a directory of their own. */
static void scratch_enter(struct scratch *scratch)
{
	strcpy(scratch->directory, "/tmp/belljar-test-XXXXXX");
	CHECK(getcwd(scratch->previous, sizeof(scratch->previous)) != NULL);
	CHECK(mkdtemp(scratch->directory) != NULL);
	CHECK_INT(chdir(scratch->directory), 0);
}

static void scratch_leave(struct scratch *scratch)
{
	CHECK_INT(chdir(scratch->previous), 0);
	rmdir(scratch->directory);
}

static void write_file(const char *name, const char *content)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	CHECK_INT(write(fd, content, strlen(content)), strlen(content));
	close(fd);
}

static void check_load_refused(const struct scratch *scratch, const char *name, int errno_value, const char *message)
{
	struct policy_context here = {.current_directory = scratch->directory, .home = "/home/user"};
	AUTO_POLICY policy = {0};
	struct error error = {0};

	init(&policy);
	CHECK(policy_load(&policy, name, &here, &error) < 0);
	CHECK_INT(error.stage, STAGE_POLICY);
	CHECK_INT(error.errno_value, errno_value);
	CHECK_STRING(error.message, message);
}

static void test_what_is_no_readable_file_is_refused_at_once(void)
{
	struct scratch scratch;
	int fd;

	scratch_enter(&scratch);
	mkdir("d.json", 0700);
	mkfifo("fifo.json", 0600);
	fd = open("large.json", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	CHECK_INT(ftruncate(fd, (1 << 20) + 1), 0);
	close(fd);
	check_load_refused(&scratch, "./missing", ENOENT,
			   "cannot open the policy file './missing': No such file or directory");
	check_load_refused(&scratch, "d.json", EISDIR, "a policy must be a file, not a directory: 'd.json'");
	check_load_refused(&scratch, "fifo.json", EINVAL, "a policy must be a regular file: 'fifo.json'");
	check_load_refused(&scratch, "/dev/null", EINVAL, "a policy must be a regular file: '/dev/null'");
	check_load_refused(&scratch, "large.json", EFBIG, "a policy may not be larger than 1 MiB: 'large.json'");
	write_file("x.json", "{\"timeout\":\n 0}");
	check_load_refused(&scratch, "x.json", 0, "x.json:2:2: timeout '0': 0 is not a limit; write null for no limit");
	write_file("x.json", "");
	check_load_refused(&scratch, "x.json", 0, "x.json:1:1: the document ends where a value should be");
	rmdir("d.json");
	unlink("fifo.json");
	unlink("large.json");
	unlink("x.json");
	scratch_leave(&scratch);
}

static void test_extends_follows_files_but_not_in_circles(void)
{
	struct scratch scratch;
	AUTO_TEXT message = {0};
	char name[32], content[64];

	scratch_enter(&scratch);
	write_file("a.json", "{\"extends\": \"./b.json\"}");
	write_file("b.json", "{\n\"extends\": \"a.json\"}");
	text_append_format(&message, "%s/b.json:2:12: extends: these files extend each other in a circle",
			   scratch.directory);
	check_load_refused(&scratch, "a.json", 0, text_string(&message));
	write_file("a.json", "{\"extends\": \"a.json\"}");
	check_load_refused(&scratch, "a.json", 0, "a.json:1:13: extends: these files extend each other in a circle");
	write_file("a.json", "{\"extends\": \"missing.json\"}");
	text_clear(&message);
	text_append_format(
		&message,
		"a.json:1:13: extends: cannot open the policy file '%s/missing.json': No such file or directory",
		scratch.directory);
	check_load_refused(&scratch, "a.json", ENOENT, text_string(&message));
	unlink("a.json");
	unlink("b.json");

	for (int i = 1; i <= 9; i++) {
		snprintf(name, sizeof(name), "%d.json", i);
		snprintf(content, sizeof(content), i == 1 ? "{\"pids\": 7}" : "{\"extends\": \"%d.json\"}", i - 1);
		write_file(name, content);
	}
	text_clear(&message);
	text_append_format(&message, "%s/2.json:1:13: extends: more than 8 files extend one another",
			   scratch.directory);
	check_load_refused(&scratch, "9.json", 0, text_string(&message));
	{
		struct policy_context here = {.current_directory = scratch.directory};
		AUTO_POLICY policy = {0};

		CHECK_INT(policy_init(&policy, &here, NULL), 0);
		CHECK_INT(policy_load(&policy, "8.json", &here, NULL), 0);
		CHECK_INT(policy.limits.pids, 7);
	}
	for (int i = 1; i <= 9; i++) {
		snprintf(name, sizeof(name), "%d.json", i);
		unlink(name);
	}
	scratch_leave(&scratch);
}

static void test_files_found_by_a_detour_have_clean_directories(void)
{
	struct scratch scratch;
	struct policy_context here = {.current_directory = scratch.directory};
	AUTO_POLICY policy = {0};
	AUTO_TEXT expected = {0};

	scratch_enter(&scratch);
	mkdir("sub", 0700);
	write_file("p.json", "{\"tmpfs\": [\"t\"]}");
	CHECK_INT(policy_init(&policy, &here, NULL), 0);
	CHECK_INT(policy_load(&policy, "sub/../p.json", &here, NULL), 0);
	text_append_format(&expected, "%s/t", scratch.directory);
	CHECK_STRING(policy.tmpfs.items[0].path, text_string(&expected));
	unlink("p.json");
	rmdir("sub");
	scratch_leave(&scratch);
}

/* --- flags --- */

static void test_flags_of_every_type(void)
{
	AUTO_POLICY policy = {0};

	init(&policy);
	check_flag(&policy, "workdir", "sub");
	CHECK_STRING(policy.workdir, "/project/dir/sub");
	CHECK_INT(policy.workdir_choice, WORKDIR_NAMED);
	check_flag(&policy, "workdir", "none");
	CHECK(!policy.workdir && policy.workdir_choice == WORKDIR_PRIVATE);
	check_flag(&policy, "workdir", "./none");
	CHECK_STRING(policy.workdir, "/project/dir/none");
	check_flag(&policy, "workdir-mode", "ro");
	CHECK_INT(policy.workdir_mode, WORKDIR_RO);
	check_flag(&policy, "net", "host");
	CHECK_INT(policy.net, NET_HOST);
	check_flag(&policy, "rung", "namespace");
	CHECK_INT(policy.rung, RUNG_NAMESPACE);
	check_flag(&policy, "rung", "process");
	CHECK_INT(policy.rung, RUNG_PROCESS);
	check_flag(&policy, "keep", "both");
	CHECK_INT(policy.limits.keep, KEEP_BOTH);
	check_flag(&policy, "overflow", "kill");
	CHECK_INT(policy.limits.overflow, OVERFLOW_KILL);
	check_flag(&policy, "no-system", NULL);
	CHECK(!policy.has_system);
	check_flag(&policy, "system", NULL);
	CHECK(policy.has_system);
	check_flag(&policy, "no-protect", NULL);
	check_flag(&policy, "no-toolchains", NULL);
	check_flag(&policy, "redact-secrets", NULL);
	check_flag(&policy, "redact-env", NULL);
	CHECK(!policy.has_protect && !policy.has_toolchains && policy.has_redact_secrets && policy.has_redact_env);
	check_flag(&policy, "timeout", "1.5");
	check_flag(&policy, "memory", "none");
	check_flag(&policy, "pids", "none");
	check_flag(&policy, "core", "none");
	check_flag(&policy, "grace", "0");
	CHECK(policy.limits.timeout_ns == SECOND * 3 / 2 && policy.limits.memory_bytes == LIMIT_NONE &&
	      policy.limits.pids == LIMIT_NONE);
	CHECK(policy.limits.core_bytes == LIMIT_NONE && policy.limits.grace_ns == 0);
	check_flag(&policy, "hostname", "none");
	CHECK_STRING(policy.hostname, "none");
	check_flag(&policy, "optional", "pids");
	check_flag(&policy, "optional", "disk");
	CHECK_INT(policy.optional, 1 << GUARANTEE_PIDS | 1 << GUARANTEE_DISK);
	check_flag(&policy, "redact", "hunter22");
	check_flag(&policy, "hide", "x");
	CHECK_STRING(policy.hide.items[0], "/project/dir/x");
	check_flag(&policy, "env", "A=1");
	check_flag(&policy, "env", "B=x=y");
	check_flag(&policy, "env", "A=");
	CHECK_INT(policy.env.count, 2);
	CHECK_STRING(policy.env.items[0].value, "");
	CHECK_STRING(policy.env.items[1].value, "x=y");
	check_flag(&policy, "pass-env", "CI");
	check_flag(&policy, "pass-env", "CI");
	CHECK_INT(policy.pass_env.count, 16);
	check_flag(&policy, "tmpfs", "/scratch:64M");
	CHECK_INT(policy.tmpfs.count, 6);
	check_flag(&policy, "tmpfs", "/tmp:1G");
	CHECK_INT(policy.tmpfs.count, 6);
	CHECK(policy_is_given(&policy, "tmpfs") && policy_is_given(&policy, "system") &&
	      !policy_is_given(&policy, "ro"));
}

static void test_bad_flags_are_named(void)
{
	check_flag_refused("timeout", "5x", "--timeout 5x: not a duration (such as 500ms, 30s, 5m, 1h)");
	check_flag_refused("timeout", "0", "--timeout 0: 0 is not a limit; write none for no limit");
	check_flag_refused("timeout", "99999999999999", "--timeout 99999999999999: too large");
	check_flag_refused("timeout", NULL, "--timeout: needs a value: D");
	check_flag_refused("no-timeout", NULL, "--no-timeout: only switches have a --no- form");
	check_flag_refused("grace", "none", "--grace none: must be a duration; 0 leaves no time at all");
	check_flag_refused("memory", "", "--memory : not a size in bytes (such as 100K, 512M, 2G)");
	check_flag_refused("pids", "many", "--pids many: not a count (such as 64)");
	check_flag_refused("fds", "0", "--fds 0: 0 is not a limit; write none for no limit");
	check_flag_refused("fds", "3", "--fds 3: too small; the minimum is 4");
	check_flag_refused("memory", "5", "--memory 5: too small; the minimum is 1M");
	check_flag_refused("memory", "1023K", "--memory 1023K: too small; the minimum is 1M");
	check_flag_refused("net", "off", "--net off: not one of none, gate, host");
	check_flag_refused("system", "yes", "--system yes: takes no value; the opposite is --no-system");
	check_flag_refused("ro", "", "--ro : the path is empty");
	check_flag_refused("ro", "a:b", "--ro b: the place in the jar must be an absolute path");
	check_flag_refused("env", "NAME", "--env: must be NAME=VALUE");
	check_flag_refused("env", "=x", "--env: the name of a variable may not be empty, nor have a '=' in it");
	check_flag_refused("pass-env", "A=secret",
			   "--pass-env: the name of a variable has no '='; to set one, use --env");
	check_flag_refused("redact", "abc", "--redact: a text must have at least 4 bytes; this one has 3");
	check_flag_refused("tmpfs", "/a:none",
			   "--tmpfs /a:none: what follows ':' is not a size (such as 100K, 512M, 2G)");
}

static void test_keys_without_a_flag_have_none(void)
{
	AUTO_POLICY policy = {0};
	struct error error = {0};

	CHECK(!policy_key_by_flag("version") && !policy_key_by_flag("extends"));
	init(&policy);
	CHECK(policy_set_flag(&policy, policy_key_by_name("extends"), "strict", false, &context, &error) < 0);
	CHECK_STRING(error.message, "only a policy file can say 'extends'");
}

static void test_the_table_is_consistent(void)
{
	for (size_t i = 0; i < policy_key_count; i++) {
		const struct policy_key *key = &policy_keys[i];

		CHECK(policy_key_by_name(key->name) == key);
		CHECK(key->help && key->help[strlen(key->help) - 1] != '.');
		CHECK((key->words != NULL) == (key->type == POLICY_WORD || key->type == POLICY_SWITCH));
		if (!key->flag)
			continue;
		CHECK(policy_key_by_flag(key->flag) == key);
		CHECK((key->placeholder == NULL) == policy_key_is_switch(key));
	}
	CHECK_INT(policy_key_by_name("workdir")->short_flag, 'C');
}

static void test_a_layer_and_its_name(void)
{
	AUTO_POLICY policy = {0};
	struct error error = {0};
	static const char named[] = "{\"workspace_name\": \"attempt\"}";
	static const char neither[] = "{\"workspace_name\": \"attempt\", \"workspace\": \"direct\"}";

	CHECK_INT(policy_init(&policy, &context, &error), 0);
	CHECK_INT(policy.workspace, WORKSPACE_DIRECT);
	CHECK_INT(policy_set_flag(&policy, policy_key_by_flag("cow"), NULL, false, &context, &error), 0);
	CHECK_INT(policy.workspace, WORKSPACE_COW);
	CHECK_INT(policy_set_flag(&policy, policy_key_by_flag("cow"), NULL, true, &context, &error), 0);
	CHECK_INT(policy.workspace, WORKSPACE_DIRECT);
	CHECK(policy_set_flag(&policy, policy_key_by_flag("cow"), "yes", false, &context, &error) < 0);
	error = (struct error){0};
	CHECK_INT(policy_set_flag(&policy, policy_key_by_flag("workspace"), "attempt", false, &context, &error), 0);
	CHECK_INT(policy.workspace, WORKSPACE_COW);
	CHECK_STRING(policy.workspace_name, "attempt");
	CHECK(policy_set_flag(&policy, policy_key_by_flag("workspace"), "../x", false, &context, &error) < 0);
	error = (struct error){0};
	CHECK_INT(policy_load_document(&policy, named, strlen(named), "p", "/", &context, &error), 0);
	CHECK_INT(policy.workspace, WORKSPACE_COW);
	CHECK_INT(policy_load_document(&policy, neither, strlen(neither), "p", "/", &context, &error), 0);
	CHECK_INT(policy.workspace, WORKSPACE_DIRECT);
}

static void test_keywords_append(void)
{
	static const char document[] =
		"{\"ro\": [{\"path\": \"x\", \"optional\": true}], \"pass_env\": [\"CI\"], \"env\": {\"A\": "
		"\"1\"}, \"timeout\": 5}";
	static const char bad[] = "{\"pass_env\": [\"MORE\"], \"extends\": \"strict\"}",
			  late[] = "{\"pids\": 5, \"fds\": 0}";
	AUTO_POLICY policy = {0};
	struct error error = {0}, late_error = {0};

	init(&policy);
	check_flag(&policy, "ro", "/a");
	CHECK_INT(policy_append_document(&policy, document, strlen(document), "k", "/kw", &context, NULL), 0);
	CHECK(policy.mounts.count == 2 && policy.mounts.items[1].is_optional && policy.pass_env.count == 16);
	CHECK_STRING(policy.mounts.items[1].path, "/kw/x");
	CHECK(policy_append_document(&policy, bad, strlen(bad), "k", "/kw", &context, &error) < 0);
	CHECK_STRING(error.message, "k:1:24: extends: only a policy file can have it");
	CHECK(policy_append_document(&policy, late, strlen(late), "k", "/kw", &context, &late_error) < 0);
	CHECK_INT(policy.limits.pids, 1024);
}

static void test_a_copy_shares_nothing(void)
{
	AUTO_POLICY policy = {0}, copy = {0};

	init(&policy);
	check_loads(
		&policy,
		"{\"workdir\": \"/w\", \"cd\": \"x\", \"hostname\": \"h\", \"ro\": [\"/a\"], \"rw\": [\"/b\"], \"env\": "
		"{\"A\": \"1\"}, \"redact\": [\"abcd\"], \"hide\": [\"/h\"]}");
	CHECK_INT(policy_copy(&policy, &copy), 0);
	policy_done(&policy);
	CHECK_STRING(copy.workdir, "/w");
	CHECK_STRING(copy.mounts.items[1].path, "/b");
	CHECK_STRING(copy.env.items[0].value, "1");
	CHECK_STRING(copy.redact.items[0], "abcd");
	CHECK(copy.given_keys != 0);
}

static const struct test tests[] = {
	TEST(test_agent_is_the_default_of_the_contract),
	TEST(test_agent_says_every_key),
	TEST(test_home_is_private_only_if_there_is_one),
	TEST(test_one_that_was_read_before_is_the_same),
	TEST(test_presets_of_the_contract),
	TEST(test_unknown_presets_are_refused),
	TEST(test_the_example_of_the_contract),
	TEST(test_a_list_in_a_file_replaces),
	TEST(test_numbers_and_strings_for_limits),
	TEST(test_bad_limits_in_a_document),
	TEST(test_unknown_and_repeated_keys),
	TEST(test_bad_values_in_a_document),
	TEST(test_a_list_has_a_bound),
	TEST(test_paths_are_made_absolute_and_clean),
	TEST(test_home_must_be_known_for_a_tilde),
	TEST(test_long_paths_are_refused),
	TEST(test_the_last_word_on_a_place_wins),
	TEST(test_ro_and_rw_replace_only_their_own),
	TEST(test_what_is_no_readable_file_is_refused_at_once),
	TEST(test_extends_follows_files_but_not_in_circles),
	TEST(test_files_found_by_a_detour_have_clean_directories),
	TEST(test_flags_of_every_type),
	TEST(test_bad_flags_are_named),
	TEST(test_keys_without_a_flag_have_none),
	TEST(test_the_table_is_consistent),
	TEST(test_a_layer_and_its_name),
	TEST(test_keywords_append),
	TEST(test_a_copy_shares_nothing),
};

TEST_MAIN(tests)
