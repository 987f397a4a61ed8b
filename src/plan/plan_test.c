/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan/plan_test.c - leave a layer out of a plan (test builds only)
 *
 * "mount-ns" leaves the host's own file system in view; the namespace itself stays, so that nothing can happen to the
 * host's mounts.
 */
#include "plan/plan_test.h"

#ifdef BELLJAR_TEST_BUILD

#include <sched.h>
#include <string.h>

#define VARIABLE "BELLJAR_TEST_WITHOUT="
#define KIND(kind) (1ULL << STEP_##kind)
#define BUILD_STEPS                                                                                                    \
	(KIND(ROOT) | KIND(SKELETON) | KIND(SCRATCH) | KIND(DIRECTORY) | KIND(SYMLINK) | KIND(FILE) | KIND(COPY) |     \
	 KIND(BIND) | KIND(PRIVATE) | KIND(TMPFS) | KIND(HIDE) | KIND(PIN) | KIND(DEVPTS) | KIND(PROC) |               \
	 KIND(PROC_LOCK) | KIND(SEAL) | KIND(ENTER))
_Static_assert(STEP_KIND_COUNT <= 64, "a set of step kinds fits a word");

static const struct {
	const char *name;
	uint64_t steps;
	uint64_t namespaces;
} layers[] = {
	{"mount-ns", BUILD_STEPS, 0},
	{"pid-ns", 0, CLONE_NEWPID},
	{"net-ns", KIND(LOOPBACK) | KIND(NETLINK) | KIND(SOCKETS), CLONE_NEWNET},
	{"ipc-ns", 0, CLONE_NEWIPC},
	{"landlock", KIND(LANDLOCK) | KIND(SCOPE), 0},
	{"seccomp", KIND(SECCOMP), 0},
	{"privileges", KIND(PRIVILEGES), 0},
	{"limits", KIND(RLIMIT) | KIND(USER_LIMIT), 0},
	{"tree", KIND(SUBREAPER), CLONE_NEWPID},
};

static void drop_steps(struct plan_step_list *list, uint64_t kinds)
{
	size_t kept = 0;

	for (size_t i = 0; i < list->count; i++)
		if (!(kinds >> list->items[i].kind & 1))
			list->items[kept++] = list->items[i];
	list->count = kept;
}

/* A new /proc cannot be mounted for a pid namespace that is not ours: the host's is shown instead. */
static void show_host_proc(struct plan *plan)
{
	for (size_t i = 0; i < plan->core.steps.count; i++) {
		struct plan_step *step = &plan->core.steps.items[i];

		if (step->kind == STEP_PROC)
			*step = (struct plan_step){.kind = STEP_BIND,
						   .source = "/proc",
						   .target = "/proc",
						   .flags = STEP_RECURSIVE | STEP_IN_PLACE};
	}
}

static int leave_out(struct plan *plan, const char *name, size_t len, struct error *error)
{
	for (size_t i = 0; i < ARRAY_LEN(layers); i++) {
		if (strlen(layers[i].name) != len || memcmp(layers[i].name, name, len) != 0)
			continue;
		drop_steps(&plan->core.steps, layers[i].steps);
		drop_steps(&plan->core.entry, layers[i].steps);
		plan->core.namespaces &= ~layers[i].namespaces;
		if (layers[i].namespaces & CLONE_NEWPID)
			show_host_proc(plan);
		/* What a gate does to a network is never done to the host's. */
		if (layers[i].namespaces & CLONE_NEWNET)
			plan->gate.is_wanted = false;
		return 0;
	}
	return error_set(error, STAGE_USAGE, 0, VARIABLE " there is no layer '%.*s'", (int)len, name);
}

int plan_leave_out(struct plan *plan, char *const *environment, struct error *error)
{
	const char *names = "";

	for (; environment && *environment; environment++)
		if (!strncmp(*environment, VARIABLE, sizeof(VARIABLE) - 1))
			names = *environment + sizeof(VARIABLE) - 1;
	while (*names) {
		size_t len = strcspn(names, ",");
		int rc = leave_out(plan, names, len, error);

		if (rc < 0)
			return rc;
		names += len + (names[len] == ',');
	}
	return 0;
}

#endif
