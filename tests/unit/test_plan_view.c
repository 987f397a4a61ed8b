/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_plan_view.c - random policies over a small host: what must hold of every plan
 *
 * The plan's steps are read as the kernel would carry them out: of the mounts above a path the innermost counts. What is
 * hidden may be reached by no path; what is protected may be written by none; the mounts and the Landlock rules must
 * agree on what can be written.
 */
#include "test.h"

#include <errno.h>

#include "imagined_host.h"
#include "plan/plan.h"
#include "policy/policy_build.h"
#include "base/sys/calls.h"

#define ROUNDS 4000
#define LANDLOCK_MAKE_FILE (1ULL << 8)

static const struct policy_context context = {.current_directory = "/home/u/p", .home = "/home/u"};

static const char *const tree[] = {
	"/usr/bin/",
	"/bin -> usr/bin",
	"/etc/passwd",
	"/home/u/p/.git/hooks/",
	"/home/u/p/.git/info/attributes",
	"/home/u/p/.vscode/",
	"/home/u/p/a/b/c",
	"/home/u/p/a/d",
	"/home/u/p/link -> a/b",
	"/home/u/p/out -> /srv/x",
	"/home/u/p/.env",
	"/srv/x/y/z",
	"/srv/x/w",
	"/srv/l -> x/y",
	"/home/u/.ssh/key",
};

static const char *const names[] = {
	"/home/u",
	"/home/u/p",
	"/home/u/p/a",
	"/home/u/p/a/b",
	"/home/u/p/a/b/c",
	"/home/u/p/link",
	"/home/u/p/link/c",
	"/home/u/p/out",
	"/home/u/p/out/y",
	"/home/u/p/.git",
	"/home/u/p/.vscode",
	"/home/u/p/.env",
	"/srv",
	"/srv/x",
	"/srv/x/y",
	"/srv/l",
	"/srv/l/z",
	"/home/u/p/.git/hooks",
	"/home/u/.ssh/key",
	"/bin",
	"/usr/bin",
};

static const char *const places[] = {"/m",   "/m/x",   "/m/x/y",           "/n",    "/home/u/p/a",
				     "/srv", "/opt/q", "/home/u/p/link/q", "/etc/q"};

static uint64_t random_state = 11;

static uint32_t random_below(size_t bound)
{
	random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)((random_state >> 33) % bound);
}

/* --- reading a plan ----------------------------------------------------------------------------------------- */

static bool is_mount(const struct plan_step *step)
{
	return step->kind == STEP_BIND || step->kind == STEP_PRIVATE || step->kind == STEP_TMPFS ||
	       step->kind == STEP_HIDE;
}

/* What covers @path in the jar; NULL: the root. Of two at one place the later one. */
static const struct plan_step *covering(const struct plan *plan, const char *path)
{
	const struct plan_step *found = NULL;

	for (size_t i = 0; i < plan->core.steps.count; i++) {
		const struct plan_step *step = &plan->core.steps.items[i];

		if (is_mount(step) && path_is_within(path, step->target) &&
		    (!found || strlen(step->target) >= strlen(found->target)))
			found = step;
	}
	return found;
}

/* A mount covers what was mounted below it before: outer targets must come first. */
static void check_order(const struct plan *plan)
{
	for (size_t i = 0; i < plan->core.steps.count; i++)
		for (size_t j = i + 1; j < plan->core.steps.count; j++)
			CHECK(!is_mount(&plan->core.steps.items[i]) || !is_mount(&plan->core.steps.items[j]) ||
			      !path_is_within(plan->core.steps.items[i].target, plan->core.steps.items[j].target));
}

/* Every path of the jar at which the host's @path shows: 1 for visible, 2 for writable. */
static int access_to(const struct plan *plan, const char *path)
{
	int access = 0;

	for (size_t i = 0; i < plan->core.steps.count; i++) {
		const struct plan_step *step = &plan->core.steps.items[i];
		char target[PATH_MAX];

		if (step->kind != STEP_BIND || !path_is_within(path, step->source))
			continue;
		snprintf(target, sizeof(target), "%s%s", step->target, path + strlen(step->source));
		if (covering(plan, target) == step)
			access |= 1 | (step->flags & STEP_READ_ONLY ? 0 : 2);
	}
	return access;
}

static uint64_t landlock_rights(const struct plan *plan, const char *path)
{
	uint64_t rights = 0;

	for (size_t i = 0; i < plan->core.landlock.count; i++)
		if (path_is_within(path, plan->core.landlock.items[i].path))
			rights |= plan->core.landlock.items[i].access;
	return rights;
}

/* --- what must hold ----------------------------------------------------------------------------------------- */

static void check_hidden(const struct plan *plan, const struct policy *policy, const struct host *host,
			 const struct imagined_files *files)
{
	for (size_t i = 0; i < policy->hide.count; i++) {
		const char *name = policy->hide.items[i];
		const struct plan_step *step = covering(plan, name);
		char on_host[PATH_MAX], resolved[PATH_MAX];

		/* By its name: nothing of the host stands there, unless a link leads to what is hidden elsewhere. */
		if (step && step->kind == STEP_BIND) {
			snprintf(on_host, sizeof(on_host), "%s%s", step->source, name + strlen(step->target));
			if (imagined_resolve(files, on_host, resolved) == 0 && !strcmp(on_host, resolved)) {
				printf("at hidden %s there is %s\n", name, resolved);
				CHECK(false);
			}
		}
		/* By what it is: it shows nowhere. */
		if (host->hidden.items[i].kind == PATH_ABSENT)
			continue;
		if (access_to(plan, host->hidden.items[i].path)) {
			printf("hidden %s, that is %s, can be reached\n", policy->hide.items[i],
			       host->hidden.items[i].path);
			CHECK(false);
		}
	}
}

static bool is_named_rw(const struct policy *policy, const struct host *host, const char *path)
{
	for (size_t i = 0; i < policy->mounts.count; i++)
		if (policy->mounts.items[i].access == MOUNT_RW && host->mounts.items[i].path &&
		    path_is_within(path, host->mounts.items[i].path) &&
		    !path_is_within("/home/u/p", host->mounts.items[i].path) &&
		    !path_is_within("/home/u/p/.git", host->mounts.items[i].path))
			return true;
	return false;
}

static void check_protected(const struct plan *plan, const struct policy *policy, const struct host *host)
{
	for (size_t i = 0; i < host->workdir.protected.count; i++) {
		const char *path = host->workdir.protected.items[i].path;

		if (access_to(plan, path) & 2 && !is_named_rw(policy, host, path)) {
			printf("protected %s can be written\n", path);
			CHECK(false);
		}
	}
}

/* What the mounts let be written or read, Landlock must too; what lies nowhere in the jar, it must not. */
static void check_landlock(const struct plan *plan)
{
	for (size_t i = 0; i < plan->core.steps.count; i++) {
		const struct plan_step *step = &plan->core.steps.items[i];
		uint64_t rights = step->target ? landlock_rights(plan, step->target) : 0;

		if (step->kind == STEP_BIND && !(step->flags & STEP_DEVICE))
			CHECK(rights & SYS_LANDLOCK_READ_FILE);
		if (step->kind == STEP_PRIVATE || step->kind == STEP_TMPFS ||
		    (step->kind == STEP_BIND && !(step->flags & STEP_READ_ONLY)))
			CHECK(rights & SYS_LANDLOCK_WRITE_FILE);
	}
	for (size_t i = 0; i < plan->core.landlock.count; i++) {
		const struct plan_landlock_rule *rule = &plan->core.landlock.items[i];
		const struct plan_step *step = covering(plan, rule->path);

		if (rule->access & LANDLOCK_MAKE_FILE)
			CHECK(step && !(step->flags & STEP_READ_ONLY) && step->kind != STEP_HIDE);
	}
}

/* Without mounts Landlock is alone: nothing may be writable that the policy does not name so. */
static void check_landlock_alone(const struct plan *plan, const struct policy *policy, const struct host *host)
{
	static const char *const probes[] = {"/home/u",  "/home/u/.ssh/key", "/home/u/p/a/b/c", "/home/u/p/a/d",
					     "/srv/x/w", "/srv/x/y/z",       "/usr/bin/q"};

	for (size_t i = 0; i < ARRAY_LEN(probes); i++) {
		bool may_write = path_is_within(probes[i], "/home/u/p"),
		     may_read = may_write || path_is_within(probes[i], "/usr");
		size_t longest = may_write ? strlen("/home/u/p") : 0;
		uint64_t rights = landlock_rights(plan, probes[i]);

		for (size_t j = 0; j < policy->mounts.count; j++) {
			const char *path = host->mounts.items[j].path;

			if (host->mounts.items[j].kind == PATH_ABSENT || !path_is_within(probes[i], path) ||
			    strlen(path) < longest)
				continue;
			longest = strlen(path);
			may_read = true;
			may_write = policy->mounts.items[j].access == MOUNT_RW;
		}
		if ((!may_write && rights & SYS_LANDLOCK_WRITE_FILE) ||
		    (!may_read && rights & SYS_LANDLOCK_READ_FILE)) {
			printf("%s has rights %llx\n", probes[i], (unsigned long long)rights);
			CHECK(false);
		}
	}
}

/* Can the host's directory @path be renamed or replaced: is it inside something writable, and not pinned? */
static bool can_move(const struct plan *plan, const char *path)
{
	for (size_t i = 0; i < plan->core.steps.count; i++)
		if (plan->core.steps.items[i].kind == STEP_PIN && !strcmp(plan->core.steps.items[i].target, path))
			return false;
	/* What stands on it in one place holds it in all. */
	for (size_t i = 0; i < plan->core.steps.count; i++) {
		const struct plan_step *step = &plan->core.steps.items[i], *around = NULL;
		char on_host[PATH_MAX];

		for (size_t j = 0; is_mount(step) && j < i; j++)
			if (is_mount(&plan->core.steps.items[j]) &&
			    path_is_within(step->target, plan->core.steps.items[j].target) &&
			    (!around || strlen(plan->core.steps.items[j].target) >= strlen(around->target)))
				around = &plan->core.steps.items[j];
		if (!around || around->kind != STEP_BIND)
			continue;
		snprintf(on_host, sizeof(on_host), "%s%s", around->source, step->target + strlen(around->target));
		if (!strcmp(on_host, path))
			return false;
	}
	for (size_t i = 0; i < plan->core.steps.count; i++) {
		const struct plan_step *step = &plan->core.steps.items[i];
		char target[PATH_MAX];

		if (step->kind != STEP_BIND || step->flags & STEP_READ_ONLY || !path_is_within(path, step->source) ||
		    !strcmp(path, step->source))
			continue;
		snprintf(target, sizeof(target), "%s%s", step->target,
			 path + (step->source[1] ? strlen(step->source) : 0));
		if (covering(plan, target) == step)
			return true;
	}
	return false;
}

/* What is named is found by its path the next time: no directory on the way there can be another one by then. */
static void check_pinned(const struct plan *plan, const struct host *host)
{
	const struct host_path_list *lists[] = {&host->mounts, &host->hidden, &host->tmpfs_places};

	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		for (size_t j = 0; j < lists[i]->count; j++) {
			const struct host_path *path = &lists[i]->items[j];
			char part[PATH_MAX];

			for (size_t len = 1; path->kind != PATH_ABSENT && len <= strlen(path->path); len++) {
				if (path->path[len] != '/' && (path->path[len] || path->kind != PATH_DIRECTORY))
					continue;
				snprintf(part, sizeof(part), "%.*s", (int)len, path->path);
				if (can_move(plan, part)) {
					printf("%s, above %s, can be moved away\n", part, path->path);
					CHECK(false);
				}
			}
		}
}

/* A link in a writable directory may be an earlier command's: nothing is shown or hidden because of what it says. */
static void check_no_written_links(const struct plan *plan, const struct host *host)
{
	const struct host_path_list *lists[] = {&host->mounts, &host->hidden, &host->tmpfs_places};

	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		for (size_t j = 0; j < lists[i]->count; j++)
			for (size_t k = 0; k < lists[i]->items[j].links.count; k++)
				CHECK(!(access_to(plan, lists[i]->items[j].links.items[k]) & 2));
}

/* --- random policies ---------------------------------------------------------------------------------------- */

static void add_flag(struct policy *policy, const char *flag, const char *value, struct text *words)
{
	struct error error = {0};

	policy_set_flag(policy, policy_key_by_flag(flag), value, false, &context, &error);
	text_append_format(words, " --%s %s", flag, value);
}

static void random_policy(struct policy *policy, bool has_mounts, struct text *words)
{
	for (uint32_t i = 1 + random_below(5); i > 0; i--) {
		const char *name = names[random_below(ARRAY_LEN(names))];
		char value[128];

		switch (random_below(has_mounts ? 5 : 2)) {
		case 0:
			add_flag(policy, "ro", name, words);
			break;
		case 1:
			add_flag(policy, "rw", name, words);
			break;
		case 2:
			snprintf(value, sizeof(value), "%s:%s", name, places[random_below(ARRAY_LEN(places))]);
			add_flag(policy, random_below(2) ? "ro" : "rw", value, words);
			break;
		case 3:
			add_flag(policy, "hide", name, words);
			break;
		default:
			add_flag(policy, "tmpfs", name, words);
			break;
		}
	}
}

static bool round_holds(bool has_mounts, const struct imagined_files *files, int *compiled)
{
	AUTO(policy_done) struct policy policy = {0};
	AUTO(plan_done) struct plan plan = {0};
	AUTO_TEXT words = {0};
	struct string_list argv = {0};
	struct error error = {0};
	struct host host = {
		.has_user_namespaces = has_mounts,
		.has_seccomp = true,
		.landlock_abi = 7,
		.uid = 1000,
		.home = strdup("/home/u"),
		.real_home = strdup("/home/u"),
		.run_directory = strdup("/tmp/run"),
		.argument_bytes_max = 1 << 20,
	};
	int failed_before = test_failed_checks, rc;

	CHECK_INT(policy_init(&policy, &context, &error), 0);
	random_policy(&policy, has_mounts, &words);
	imagined_survey(&host, files, &policy, "/home/u/p", NULL);
	string_list_add(&argv, "true");
	rc = plan_compile(&plan, &policy, &host, &(struct plan_request){.argv = &argv}, &error);
	CHECK((rc == 0) == (error.stage == STAGE_NONE));
	if (rc == 0 && has_mounts) {
		check_order(&plan);
		check_hidden(&plan, &policy, &host, files);
		check_protected(&plan, &policy, &host);
		check_landlock(&plan);
		check_pinned(&plan, &host);
		check_no_written_links(&plan, &host);
	} else if (rc == 0) {
		check_landlock_alone(&plan, &policy, &host);
	}
	*compiled += rc == 0;
	if (test_failed_checks != failed_before)
		printf("with:%s\n", text_string(&words));
	string_list_done(&argv);
	survey_done(&host);
	return test_failed_checks == failed_before;
}

static void run_rounds(bool has_mounts)
{
	static struct imagined_files files;
	int compiled = 0;

	files.count = 0;
	for (size_t i = 0; i < ARRAY_LEN(tree); i++)
		imagine_file(&files, tree[i]);
	for (int i = 0; i < ROUNDS && round_holds(has_mounts, &files, &compiled); i++)
		;
	CHECK(compiled > ROUNDS / 10 || test_failed_checks);
}

static void test_every_plan_with_mounts_hides_protects_and_agrees_with_landlock(void)
{
	run_rounds(true);
}

static void test_every_plan_without_mounts_grants_no_more_than_the_policy(void)
{
	run_rounds(false);
}

static const struct test tests[] = {
	TEST(test_every_plan_with_mounts_hides_protects_and_agrees_with_landlock),
	TEST(test_every_plan_without_mounts_grants_no_more_than_the_policy),
};

TEST_MAIN(tests)
