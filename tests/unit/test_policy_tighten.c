/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_policy_tighten.c - a project's policy may tighten, and nothing else
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "policy/policy_build.h"
#include "test.h"

#define SECOND UINT64_C(1000000000)
#define MIB (UINT64_C(1) << 20)

static const struct policy_context context = {.current_directory = "/project/dir", .home = "/home/user"};

#define AUTO_POLICY AUTO(policy_done) struct policy

/* Paths of the base start at /base; a tightening file lies in a directory of its own, so it names them in full. */
static void load_base(struct policy *policy, const char *base)
{
	struct error error = {0};

	policy_done(policy);
	CHECK_INT(policy_init(policy, &context, &error), 0);
	CHECK_INT(policy_load_document(policy, base, strlen(base), "base", "/base", &context, &error), 0);
	CHECK_STRING(error.message, "");
}

static int tighten(struct policy *policy, const char *document, struct error *error)
{
	char directory[] = "/tmp/belljar-test-XXXXXX", path[64];
	struct policy_context here = {.current_directory = directory, .home = context.home};
	int fd, rc;

	CHECK(mkdtemp(directory) != NULL);
	snprintf(path, sizeof(path), "%s/t.json", directory);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	CHECK_INT(write(fd, document, strlen(document)), strlen(document));
	close(fd);
	rc = policy_tighten(policy, "t.json", &here, error);
	unlink(path);
	rmdir(directory);
	return rc;
}

static void check_accepted(struct policy *policy, const char *base, const char *document)
{
	struct error error = {0};

	load_base(policy, base);
	CHECK_INT(tighten(policy, document, &error), 0);
	CHECK_STRING(error.message, "");
}

static void check_refused(const char *base, const char *document, const char *message)
{
	AUTO_POLICY policy = {0};
	AUTO_TEXT before = {0}, after = {0};
	struct error error = {0};

	load_base(&policy, base);
	policy_print(&policy, &before, 0);
	CHECK(tighten(&policy, document, &error) < 0);
	CHECK_INT(error.stage, STAGE_POLICY);
	CHECK_STRING(error.message, message);
	policy_print(&policy, &after, 0);
	CHECK_STRING(text_string(&after), text_string(&before));
}

static void test_limits_may_be_lowered(void)
{
	AUTO_POLICY policy = {0};

	check_accepted(
		&policy, "{\"memory\": \"1G\"}",
		"{\"version\": 1, \"timeout\": \"10s\", \"grace\": 0, \"cpu_time\": 5, \"memory\": \"512M\", \"pids\": 10, \"disk\": "
		"\"1M\", \"file_size\": 1, \"fds\": 1024, \"core\": 0, \"output\": 0}");
	CHECK(policy.limits.timeout_ns == 10 * SECOND && policy.limits.grace_ns == 0 &&
	      policy.limits.memory_bytes == 512 * MIB);
	CHECK(policy.limits.pids == 10 && policy.limits.output.total_bytes == 0);
	CHECK(policy_is_given(&policy, "timeout"));
}

static void test_limits_may_not_be_raised(void)
{
	static const char *const keys[] = {"timeout", "grace",  "cpu_time",        "memory",
					   "pids",    "disk",   "file_size",       "fds",
					   "core",    "output", "net_connections", "net_bytes"};

	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		AUTO_TEXT base = {0}, document = {0}, message = {0};

		text_append_format(&base, "{\"%s\": 2000000}", keys[i]);
		text_append_format(&document, "{\n\"%s\": 2000001}", keys[i]);
		text_append_format(&message, "t.json:2:%zu: %s: a tightening policy may not raise it",
				   strlen(keys[i]) + 5, keys[i]);
		check_refused(text_string(&base), text_string(&document), text_string(&message));
		if (strcmp(keys[i], "grace") == 0)
			continue;
		text_clear(&document);
		text_append_format(&document, "{\n\"%s\": null}", keys[i]);
		check_refused(text_string(&base), text_string(&document), text_string(&message));
	}
}

static void test_output_of_each_stream_may_be_lowered(void)
{
	static const struct {
		const char *before, *after;
		bool is_accepted;
	} rows[] = {
		{"null", "{\"stdout\": 5, \"stderr\": null}", true},
		{"10", "{\"stdout\": 5, \"stderr\": 5}", true},
		{"10", "{\"stdout\": 6, \"stderr\": 5}", false},
		{"10", "{\"stdout\": 6, \"stderr\": null}", false},
		{"{\"stdout\": 5, \"stderr\": 7}", "5", true},
		{"{\"stdout\": 5, \"stderr\": 7}", "6", false},
		{"{\"stdout\": 5, \"stderr\": null}", "5", true},
		{"{\"stdout\": 5, \"stderr\": 7}", "{\"stdout\": 5, \"stderr\": 6}", true},
		{"{\"stdout\": 5, \"stderr\": 7}", "{\"stdout\": 4, \"stderr\": 8}", false},
		{"{\"stdout\": 5, \"stderr\": 7}", "null", false},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		AUTO_POLICY policy = {0};
		AUTO_TEXT base = {0}, document = {0};

		text_append_format(&base, "{\"output\": %s}", rows[i].before);
		text_append_format(&document, "{\n\"output\": %s}", rows[i].after);
		if (rows[i].is_accepted)
			check_accepted(&policy, text_string(&base), text_string(&document));
		else
			check_refused(text_string(&base), text_string(&document),
				      "t.json:2:11: output: a tightening policy may not raise it");
	}
}

static void test_switches_and_words_go_one_way(void)
{
	AUTO_POLICY policy = {0};
	static const char loose[] =
		"{\"net\": \"host\", \"protect\": false, \"rung\": \"process\", \"overflow\": \"truncate\"}";

	check_accepted(
		&policy, loose,
		"{\"net\": \"none\", \"system\": false, \"toolchains\": false, \"protect\": true, \"redact_secrets\": true, "
		"\"redact_env\": true, \"rung\": \"namespace\", \"overflow\": \"kill\", \"workdir_mode\": \"ro\"}");
	CHECK(policy.net == NET_NONE && !policy.has_system && !policy.has_toolchains && policy.has_protect);
	CHECK(policy.has_redact_secrets && policy.has_redact_env && policy.rung == RUNG_NAMESPACE);
	CHECK(policy.limits.overflow == OVERFLOW_KILL && policy.workdir_mode == WORKDIR_RO);

	check_refused("{}", "{\"net\": \"host\"}", "t.json:1:9: net: a tightening policy may not widen it");
	check_refused("{\"system\": false}", "{\"system\": true}",
		      "t.json:1:12: system: a tightening policy may not turn it on");
	check_refused("{\"toolchains\": false}", "{\"toolchains\": true}",
		      "t.json:1:16: toolchains: a tightening policy may not turn it on");
	check_refused("{}", "{\"protect\": false}", "t.json:1:13: protect: a tightening policy may not turn it off");
	check_refused("{\"redact_env\": true}", "{\"redact_env\": false}",
		      "t.json:1:16: redact_env: a tightening policy may not turn it off");
	check_refused("{\"redact_secrets\": true}", "{\"redact_secrets\": false}",
		      "t.json:1:20: redact_secrets: a tightening policy may not turn it off");
	check_refused("{\"workspace\": \"cow\"}", "{\"workspace\": \"direct\"}",
		      "t.json:1:15: workspace: a tightening policy may not weaken it");
	check_refused("{\"workspace\": \"cow\"}", "{\"workspace_name\": \"other\"}",
		      "t.json:1:20: workspace_name: a tightening policy may not change it");
	check_refused("{\"cow_dirs\": [\"/a\"]}", "{\"cow_dirs\": [\"/a\", \"/b\"]}",
		      "t.json:1:14: cow_dirs '/b': a tightening policy may only shorten the list; this is not in it");
	check_refused("{}", "{\"rung\": \"process\"}", "t.json:1:10: rung: a tightening policy may not weaken it");
	check_refused("{\"overflow\": \"kill\"}", "{\"overflow\": \"truncate\"}",
		      "t.json:1:14: overflow: a tightening policy may not weaken it");
	check_refused("{\"workdir_mode\": \"ro\"}", "{\"workdir_mode\": \"rw\"}",
		      "t.json:1:18: workdir_mode: a tightening policy may not weaken it");
}

static void test_what_has_no_stricter_value_stays(void)
{
	AUTO_POLICY policy = {0};
	static const char base[] = "{\"hostname\": \"h\", \"cd\": \"sub\", \"keep\": \"tail\"}";

	check_accepted(&policy, base, base);
	check_refused(base, "{\"keep\": \"both\"}", "t.json:1:10: keep: a tightening policy may not change it");
	check_refused(base, "{\"hostname\": \"x\"}", "t.json:1:14: hostname: a tightening policy may not change it");
	check_refused(base, "{\"hostname\": null}", "t.json:1:14: hostname: a tightening policy may not change it");
	check_refused("{}", "{\"cd\": \"/\"}", "t.json:1:8: cd: a tightening policy may not change it");
	check_refused("{}", "{\"extends\": \"strict\"}", "t.json:1:13: extends: a tightening policy may not have it");
	check_refused("{}", "{\"version\": 2}", "t.json:1:13: version '2': this engine knows version 1 only");
	check_refused("{}", "{\"tiemout\": 2}", "t.json:1:2: unknown key 'tiemout' (did you mean 'timeout'?)");
}

static void test_the_workdir_may_become_private(void)
{
	AUTO_POLICY named = {0}, by_default = {0}, same = {0}, private = {0};

	check_accepted(&named, "{\"workdir\": \"/w\"}", "{\"workdir\": null}");
	CHECK_INT(named.workdir_choice, WORKDIR_PRIVATE);
	check_accepted(&by_default, "{}", "{\"workdir\": null}");
	CHECK_INT(by_default.workdir_choice, WORKDIR_PRIVATE);
	check_accepted(&same, "{\"workdir\": \"/w\"}", "{\"workdir\": \"/w\"}");
	check_accepted(&private, "{\"workdir\": null}", "{\"workdir\": null}");
	check_refused("{\"workdir\": null}", "{\"workdir\": \"/w\"}",
		      "t.json:1:13: workdir: a tightening policy may only make it private (null)");
	check_refused("{\"workdir\": \"/w\"}", "{\"workdir\": \"/w/x\"}",
		      "t.json:1:13: workdir: a tightening policy may only make it private (null)");
	check_refused("{\"workdir\": \"/w\", \"workdir_mode\": \"ro\", \"rw\": [\"/\"]}", "{\"workdir\": null}",
		      "t.json:1:13: workdir: taking '/w' away would uncover what is beneath it in '/'");
}

static void test_hide_and_redact_are_added_to(void)
{
	AUTO_POLICY policy = {0};

	check_accepted(&policy, "{\"hide\": [\"/a\"], \"redact\": [\"aaaa\"]}",
		       "{\"hide\": [\"/b\", \"/a\"], \"redact\": [\"bbbb\"]}");
	CHECK_INT(policy.hide.count, 2);
	CHECK_STRING(policy.hide.items[1], "/b");
	CHECK_INT(policy.redact.count, 2);
	check_accepted(&policy, "{\"hide\": [\"/a\"]}", "{\"hide\": []}");
	CHECK_INT(policy.hide.count, 1);
}

static void test_rw_may_become_ro_or_go(void)
{
	AUTO_POLICY turned = {0}, shorter = {0}, gone = {0};
	static const char base[] = "{\"ro\": [\"/r\", \"/s:/t\"], \"rw\": [\"/w\", \"/x:/y\"]}";

	check_accepted(&turned, base, "{\"ro\": [\"/r\", \"/x:/y\"]}");
	CHECK_INT(turned.mounts.count, 3);
	for (size_t i = 0; i < turned.mounts.count; i++)
		CHECK_INT(turned.mounts.items[i].access,
			  strcmp(turned.mounts.items[i].path, "/w") == 0 ? MOUNT_RW : MOUNT_RO);
	check_accepted(&shorter, base, "{\"rw\": [\"/w\"]}");
	CHECK_INT(shorter.mounts.count, 3);
	check_accepted(&gone, base, "{\"rw\": [], \"ro\": []}");
	CHECK_INT(gone.mounts.count, 0);
}

static void test_mounts_may_not_be_added_or_widened(void)
{
	static const char base[] = "{\"ro\": [\"/r\", \"/s:/t\"], \"rw\": [\"/w\"]}";
	static const char *const refused[][2] = {
		{"{\"ro\": [\"/new\"]}", "ro '/new'"},     {"{\"rw\": [\"/r\"]}", "rw '/r'"},
		{"{\"ro\": [\"/s\"]}", "ro '/s'"},         {"{\"ro\": [\"/q:/t\"]}", "ro '/q'"},
		{"{\"ro\": [\"/w/sub\"]}", "ro '/w/sub'"}, {"{\"rw\": [\"/w:/z\"]}", "rw '/w'"},
		{"{\"ro\": [\"/tmp\"]}", "ro '/tmp'"},
	};

	for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
		AUTO_TEXT message = {0};

		text_append_format(&message,
				   "t.json:1:8: %s: a tightening policy may only shorten the list; this is not in it",
				   refused[i][1]);
		check_refused(base, refused[i][0], text_string(&message));
	}
}

static void test_nothing_is_uncovered(void)
{
	AUTO_POLICY policy = {0};

	check_refused("{\"rw\": [\"/p\"], \"ro\": [\"/p/.git\"]}", "{\"ro\": []}",
		      "t.json:1:8: ro: taking '/p/.git' away would uncover what is beneath it in '/p'");
	check_refused("{\"workdir\": \"/w\", \"ro\": [\"/w/keys\"]}", "{\"ro\": []}",
		      "t.json:1:8: ro: taking '/w/keys' away would uncover what is beneath it in '/w'");
	check_refused("{\"ro\": [\"/p\"], \"tmpfs\": [\"/p/secret\"]}", "{\"tmpfs\": []}",
		      "t.json:1:11: tmpfs: taking '/p/secret' away would uncover what is beneath it in '/p'");
	check_refused("{\"tmpfs\": [\"/opt/secret\"]}", "{\"tmpfs\": []}",
		      "t.json:1:11: tmpfs: taking '/opt/secret' away would uncover what is beneath it in '/opt'");
	check_refused("{\"workdir\": \"/a/../w\", \"tmpfs\": [\"/w/secret\"]}", "{\"tmpfs\": []}",
		      "t.json:1:11: tmpfs: taking '/w/secret' away would uncover what is beneath it in '/a/../w'");
	check_refused("{\"ro\": [\"/\"]}", "{\"system\": false}",
		      "t.json:1:12: system: taking 'system' away would uncover what is beneath it in '/'");
	check_refused(
		"{\"rw\": [\"~\"]}", "{\"toolchains\": false}",
		"t.json:1:16: toolchains: taking 'toolchains' away would uncover what is beneath it in '/home/user'");
	check_accepted(&policy, "{\"rw\": [\"/p\"], \"ro\": [\"/p/.git\"]}", "{\"ro\": [], \"rw\": []}");
	CHECK_INT(policy.mounts.count, 0);
}

static void test_other_lists_may_be_shortened(void)
{
	AUTO_POLICY policy = {0};
	static const char base[] =
		"{\"env\": {\"A\": \"1\", \"B\": \"2\"}, \"optional\": [\"memory\", \"pids\"], \"tmpfs\": [\"/t:5M\", "
		"\"/u\"]}";

	check_accepted(
		&policy, base,
		"{\"pass_env\": [\"PATH\", \"LC_ALL\", \"GIT_AUTHOR_N*\"], \"env\": {\"B\": \"2\"}, \"optional\": [\"pids\"], "
		"\"tmpfs\": [\"/t:4M\"]}");
	CHECK_INT(policy.pass_env.count, 3);
	CHECK_INT(policy.env.count, 1);
	CHECK_INT(policy.optional, 1 << GUARANTEE_PIDS);
	CHECK_INT(policy.tmpfs.count, 1);
	CHECK(policy.tmpfs.items[0].size_bytes == 4 * MIB);

	check_refused(
		base, "{\"pass_env\": [\"AWS_TOKEN\"]}",
		"t.json:1:14: pass_env 'AWS_TOKEN': a tightening policy may only shorten the list; this is not in it");
	check_refused(base, "{\"pass_env\": [\"*\"]}",
		      "t.json:1:14: pass_env '*': a tightening policy may only shorten the list; this is not in it");
	check_refused(base, "{\"pass_env\": [\"LC*\"]}",
		      "t.json:1:14: pass_env 'LC*': a tightening policy may only shorten the list; this is not in it");
	check_refused(base, "{\"env\": {\"A\": \"x\"}}",
		      "t.json:1:9: env 'A': a tightening policy may only shorten the list; this is not in it");
	check_refused(base, "{\"env\": {\"LD_PRELOAD\": \"x\"}}",
		      "t.json:1:9: env 'LD_PRELOAD': a tightening policy may only shorten the list; this is not in it");
	check_refused(base, "{\"optional\": [\"disk\"]}",
		      "t.json:1:14: optional 'disk': a tightening policy may only shorten the list; this is not in it");
	check_refused(base, "{\"tmpfs\": [\"/new\"]}",
		      "t.json:1:11: tmpfs '/new': a tightening policy may only shorten the list; this is not in it");
	check_refused(base, "{\"tmpfs\": [\"/t:6M\"]}",
		      "t.json:1:11: tmpfs '/t': a tightening policy may not raise its size");
	check_refused(base, "{\"tmpfs\": [\"/t\"]}",
		      "t.json:1:11: tmpfs '/t': a tightening policy may not raise its size");
	check_refused("{\"env\": {\"LANG\": \"C\"}}", "{\"env\": {}}",
		      "t.json:1:9: env 'LANG': taking it away would pass the caller's own, by 'LANG' in pass_env");
}

static void test_an_unreadable_file_is_refused(void)
{
	AUTO_POLICY policy = {0};
	struct error error = {0};

	load_base(&policy, "{}");
	CHECK_INT(policy_tighten(&policy, "/no/such/file", &context, &error), -ENOENT);
	CHECK_STRING(error.message, "cannot open the policy file '/no/such/file': No such file or directory");
}

/* A preset is no looser than itself, and strict no looser than agent. */
static void test_every_preset_tightens_itself(void)
{
	for (size_t i = 0; policy_preset_names[i]; i++) {
		AUTO_POLICY policy = {0};
		AUTO_TEXT text = {0}, after = {0}, document = {0};
		struct error error = {0};

		CHECK_INT(policy_init(&policy, &context, NULL), 0);
		CHECK_INT(policy_load(&policy, policy_preset_names[i], &context, NULL), 0);
		policy_print(&policy, &text, 0);
		/* `extends` may not stand there. */
		text_append_string(&document, "{");
		text_append_string(&document, strchr(strstr(text_string(&text), "\"extends\""), ',') + 1);
		CHECK_INT(tighten(&policy, text_string(&document), &error), 0);
		CHECK_STRING(error.message, "");
		policy_print(&policy, &after, 0);
		CHECK_STRING(text_string(&after), text_string(&text));
	}
}

static void test_hosts_may_be_taken_away_and_denied(void)
{
	static const char base[] =
		"{\"allow_net\": [\"a.test\", \"b.test:22\", {\"host\": \"c.test\", \"deny\": true}]}";
	AUTO_POLICY shorter = {0}, denied = {0}, none = {0}, from_host = {0}, narrow = {0}, narrower = {0};

	check_accepted(&shorter, base, "{\"allow_net\": [\"A.test\", {\"host\": \"c.test\", \"deny\": true}]}");
	CHECK(shorter.net == NET_GATE && shorter.allow_net.count == 2);
	check_accepted(
		&denied, base,
		"{\"allow_net\": [\"a.test\", {\"host\": \"c.test\", \"deny\": true}, {\"host\": \"x.a.test\", \"deny\": true}]}");
	CHECK_INT(denied.allow_net.count, 3);
	check_accepted(&none, base, "{\"net\": \"none\"}");
	CHECK_INT(none.net, NET_NONE);
	/* Who could reach every host may be left with some. */
	check_accepted(&from_host, "{\"net\": \"host\"}", "{\"allow_net\": [\"a.test\"]}");
	CHECK(from_host.net == NET_GATE && from_host.allow_net.count == 1);

	/* Fewer methods and paths for the same host. */
	check_accepted(&narrow, "{\"allow_net\": [\"a.test\"]}",
		       "{\"allow_net\": [{\"host\": \"a.test\", \"methods\": [\"GET\"]}]}");
	CHECK_INT(narrow.allow_net.count, 1);
	check_accepted(&narrower, "{\"allow_net\": [{\"host\": \"a.test\", \"methods\": [\"GET\", \"PUT\"]}]}",
		       "{\"allow_net\": [{\"host\": \"a.test\", \"methods\": [\"GET\"], \"paths\": [\"/v1\"]}]}");
	CHECK_INT(narrower.allow_net.count, 1);
	check_refused(
		"{\"allow_net\": [{\"host\": \"a.test\", \"methods\": [\"GET\"]}]}", "{\"allow_net\": [\"a.test\"]}",
		"t.json:1:15: allow_net 'a.test': a tightening policy may only shorten the list; this is not in it");
	check_refused(
		"{\"allow_net\": [{\"host\": \"a.test\", \"methods\": [\"GET\"]}]}",
		"{\"allow_net\": [{\"host\": \"a.test\", \"paths\": [\"/\"]}]}",
		"t.json:1:15: allow_net '{\"host\":\"a.test\",\"ports\":\"80,443\",\"paths\":[\"/\"],\"tls\":\"inspect\"}': a "
		"tightening policy may only shorten the list; this is not in it");
	check_refused(
		base, "{\"allow_net\": [\"d.test\", {\"host\": \"c.test\", \"deny\": true}]}",
		"t.json:1:15: allow_net 'd.test': a tightening policy may only shorten the list; this is not in it");
	check_refused(
		base, "{\"allow_net\": [\"b.test\", {\"host\": \"c.test\", \"deny\": true}]}",
		"t.json:1:15: allow_net 'b.test': a tightening policy may only shorten the list; this is not in it");
	check_refused(
		base, "{\"allow_net\": [\"a.test\"]}",
		"t.json:1:15: allow_net '{\"host\":\"c.test\",\"ports\":\"*\",\"deny\":true}': a tightening policy may not take "
		"away what denies");
	check_refused(
		"{}", "{\"allow_net\": [\"a.test\"]}",
		"t.json:1:15: allow_net 'a.test': a tightening policy may only shorten the list; this is not in it");
	check_refused(base, "{\"net\": \"host\"}", "t.json:1:9: net: a tightening policy may not widen it");
	check_refused("{}", "{\"net\": \"gate\"}", "t.json:1:9: net: a tightening policy may not widen it");
}

static void test_published_ports_may_be_taken_away(void)
{
	AUTO(policy_done) struct policy shorter = {0};

	check_accepted(&shorter, "{\"publish\": [8000, \"9000:8001\"]}", "{\"publish\": [\"0:8000\"]}");
	CHECK_INT(shorter.publish.count, 1);
	check_refused("{\"publish\": [8000]}", "{\"publish\": [8001]}",
		      "t.json:1:13: publish '8001': a tightening policy may only shorten the list; this is not in it");
	check_refused(
		"{\"publish\": [8000]}", "{\"publish\": [\"9000:8000\"]}",
		"t.json:1:13: publish '9000:8000': a tightening policy may only shorten the list; this is not in it");
}

static const struct test tests[] = {
	TEST(test_limits_may_be_lowered),
	TEST(test_limits_may_not_be_raised),
	TEST(test_output_of_each_stream_may_be_lowered),
	TEST(test_switches_and_words_go_one_way),
	TEST(test_what_has_no_stricter_value_stays),
	TEST(test_the_workdir_may_become_private),
	TEST(test_hide_and_redact_are_added_to),
	TEST(test_rw_may_become_ro_or_go),
	TEST(test_mounts_may_not_be_added_or_widened),
	TEST(test_nothing_is_uncovered),
	TEST(test_other_lists_may_be_shortened),
	TEST(test_an_unreadable_file_is_refused),
	TEST(test_every_preset_tightens_itself),
	TEST(test_hosts_may_be_taken_away_and_denied),
	TEST(test_published_ports_may_be_taken_away),
};

TEST_MAIN(tests)
