/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan/plan_mounts.c - from the view to mount steps (namespace rung) and Landlock rules (both rungs)
 *
 * A mount hides whatever lies beneath its target, so outer targets come first; the view is sorted that way. Landlock
 * cannot take back in a directory what it gave above it: protected files inside a writable directory are the mounts'
 * work alone.
 */
#include "plan/plan_view.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

#include "plan/plan_landlock.h"
#include "base/sys/calls.h"

/* Sockets of programs outside lie in shown directories too, so writing there does not include connecting. */
#define WRITE_RIGHTS (~(SYS_LANDLOCK_IOCTL_DEV | LANDLOCK_RESOLVE_UNIX))
#define READ_RIGHTS (SYS_LANDLOCK_EXECUTE | SYS_LANDLOCK_READ_FILE | SYS_LANDLOCK_READ_DIR)

static const char *const locked_proc_names[] = {"/proc/sys",  "/proc/irq",  "/proc/bus",          "/proc/fs",
						"/proc/acpi", "/proc/scsi", "/proc/sysrq-trigger"};

/* --- mounts ------------------------------------------------------------------------------------------------- */

static const enum step_kind step_of_place[] = {
	[PLACE_BIND] = STEP_BIND,   [PLACE_OVERLAY] = STEP_OVERLAY, [PLACE_PRIVATE] = STEP_PRIVATE,
	[PLACE_TMPFS] = STEP_TMPFS, [PLACE_SYMLINK] = STEP_SYMLINK, [PLACE_FILE] = STEP_FILE,
	[PLACE_HIDDEN] = STEP_HIDE, [PLACE_PROC] = STEP_PROC,       [PLACE_DEVPTS] = STEP_DEVPTS,
	[PLACE_PIN] = STEP_PIN,
};

/* Return how many files a tmpfs of @size_bytes may have: one for each kilobyte, but at least a thousand. */
static uint64_t files_for(uint64_t size_bytes)
{
	return MAX_OF(size_bytes >> 10, (uint64_t)1024);
}

/* In a host directory a copy would be a file of the host's, and in a private place the command's. */
static enum step_kind step_kind_of(const struct place *place)
{
	return place->is_copied && place->around == SIZE_MAX ? STEP_COPY : step_of_place[place->kind];
}

/* Does all that stands there lie in the jar's own root, the same at every start? */
static bool is_of_skeleton(const struct place *place)
{
	return place->around == SIZE_MAX && !place->is_own &&
	       (place->is_copied || place->kind == PLACE_SYMLINK || place->kind == PLACE_FILE);
}

/* Something to mount on. */
static void add_mount_point(struct plan_build *build, const char *target, bool is_file)
{
	struct plan_step *step = plan_add(build, &build->plan->skeleton, is_file ? STEP_FILE : STEP_DIRECTORY);

	step->target = target;
	step->source = is_file ? "" : NULL;
	step->mode = is_file ? 0444 : 0755;
}

static void set_detail(struct plan_step *step, const struct place *place)
{
	if (step->kind == STEP_FILE && place->content) {
		step->as.file.bytes = place->content->data;
		step->as.file.len = place->content->len;
	} else if (step->kind == STEP_TMPFS) {
		step->as.tmpfs.bytes = place->limit;
		step->as.tmpfs.files = files_for(place->limit);
	} else if (step->kind == STEP_DEVPTS) {
		step->as.devpts.limit = place->limit;
	} else if (step->kind == STEP_COPY) {
		step->flags = 0;
		step->as.copy.changed_ns = place->changed_ns;
		step->as.copy.size_bytes = place->size_bytes;
	}
}

static void add_step(struct plan_build *build, const struct place *place)
{
	bool has_skeleton = build->host->has_skeleton && place->around == SIZE_MAX;
	bool is_in_skeleton = has_skeleton && is_of_skeleton(place);
	struct plan_step *step = plan_add(build, is_in_skeleton ? &build->plan->skeleton : &build->plan->core.steps,
					  step_kind_of(place));

	step->source = place->source;
	step->target = place->target;
	step->flags = place->flags | (place->is_in_host ? STEP_IN_PLACE : 0);
	step->mode = place->mode;
	step->device = place->device;
	step->inode = place->inode;
	step->place_device = place->place_device;
	step->place_inode = place->place_inode;
	if (place->layer)
		plan_set_layer(build, step, place->layer);
	if (!build->is_id_mapped)
		step->flags &= ~(unsigned)STEP_ID_MAPPED;
	set_detail(step, place);
	if (is_in_skeleton)
		step->flags = 0;
	if (!has_skeleton || is_in_skeleton)
		return;
	step->flags |= STEP_STANDS;
	if (place->kind != PLACE_PROC)
		add_mount_point(build, place->target, place->flags & STEP_ON_FILE);
}

static void add_root_step(struct plan_build *build)
{
	struct plan_step_list *steps = &build->plan->core.steps;

	if (!build->host->has_skeleton) {
		plan_add(build, steps, STEP_ROOT);
		return;
	}
	plan_add(build, steps, STEP_SKELETON)->flags = STEP_READ_ONLY;
	add_mount_point(build, "/proc", false); /* for the scratch space */
}

/* A cover is a file of the jar's own, mounted over one of /proc. */
void plan_machine_facts(struct plan_build *build, struct plan_step_list *steps)
{
	static const struct {
		const char *target, *content;
	} covers[] = {
		{"/proc/sys/kernel/random/boot_id", "00000000-0000-4000-8000-000000000000\n"},
		{"/proc/cmdline", "\n"},
		/* From here on: FACTS_NONE. */
		{"/proc/stat", "cpu  0 0 0 0 0 0 0 0 0 0\nbtime 0\n"},
		{"/proc/uptime", "0.00 0.00\n"},
		{"/proc/loadavg", "0.00 0.00 0.00 1/1 1\n"},
		{"/proc/vmstat", ""},
		{"/proc/diskstats", ""},
		{"/proc/interrupts", ""},
		{"/proc/softirqs", ""},
		{"/proc/swaps", ""},
		{"/proc/partitions", ""},
		{"/proc/buddyinfo", ""},
		{"/proc/zoneinfo", ""},
		{"/proc/schedstat", ""},
		{"/proc/pressure/cpu", ""},
		{"/proc/pressure/io", ""},
		{"/proc/pressure/memory", ""},
	};
	size_t few = 2, count = build->policy->machine_facts == FACTS_NONE ? ARRAY_LEN(covers) : few;

	for (size_t i = 0; i < count && build->policy->machine_facts != FACTS_HOST; i++) {
		struct plan_step *step = plan_add(build, steps, STEP_FILE);

		step->target = covers[i].target;
		step->source = covers[i].content;
		step->mode = 0444;
		step->flags = STEP_IN_PLACE | STEP_MAY_BE_GONE;
	}
}

/* Without a size of its own, the scratch space may take what the run may store, else what it may use, else half of RAM. */
static uint64_t scratch_size(const struct plan_build *build)
{
	if (build->policy->limits.disk_bytes != LIMIT_NONE)
		return build->policy->limits.disk_bytes;
	if (build->policy->limits.memory_bytes != LIMIT_NONE)
		return build->policy->limits.memory_bytes;
	return build->host->memory_bytes / 2;
}

static void add_mount_steps(struct plan_build *build, const struct view *view, const struct view *pins)
{
	struct plan_step_list *steps = &build->plan->core.steps;
	const struct place *proc = NULL;
	struct plan_step *step;

	add_root_step(build);
	step = plan_add(build, steps, STEP_SCRATCH);
	step->mode = 0755;
	step->flags = build->policy->exec == EXEC_TRUSTED ? STEP_NO_EXEC : 0;
	step->as.scratch.bytes = scratch_size(build);
	step->as.scratch.files = files_for(step->as.scratch.bytes);
	for (size_t i = 0; i < view->count; i++) {
		if (view->items[i].kind == PLACE_PROC)
			proc = &view->items[i]; /* last: until then the scratch space stands there */
		else
			add_step(build, &view->items[i]);
	}
	for (size_t i = 0; i < pins->count; i++)
		add_step(build, &pins->items[i]);
	if (proc)
		add_step(build, proc);
	else
		plan_add(build, steps, STEP_HIDE)->target = "/proc"; /* else the scratch space would stay there */
	if (build->host->uid == 0 && !build->is_id_mapped)
		for (size_t i = 0; i < ARRAY_LEN(locked_proc_names); i++)
			plan_add(build, steps, STEP_PROC_LOCK)->target = locked_proc_names[i];
	plan_machine_facts(build, steps);
	/* One that was made before is read-only from the beginning. */
	if (!build->host->has_skeleton)
		plan_add(build, steps, STEP_SEAL);
	plan_add(build, steps, STEP_ENTER);
}

/* --- Landlock ----------------------------------------------------------------------------------------------- */

static struct plan_landlock_rule *add_rule(struct plan_build *build, const char *path, uint64_t access)
{
	static struct plan_landlock_rule spare;
	struct plan_landlock_rule *rule = list_add(&build->plan->core.landlock);

	if (!rule) {
		build->has_failed = true;
		return &spare;
	}
	*rule = (struct plan_landlock_rule){.path = path, .access = access & build->plan->core.landlock_files};
	rule->is_writable = !(WRITE_RIGHTS & ~(access | SYS_LANDLOCK_EXECUTE));
	return rule;
}

static uint64_t write_rights(const struct place *place)
{
	return WRITE_RIGHTS & ~(place->flags & STEP_NO_EXEC ? (uint64_t)SYS_LANDLOCK_EXECUTE : 0);
}

/* Without namespaces, the host's other processes and terminals are in /proc and /dev/pts too. */
static uint64_t rights_of(const struct place *place, enum rung rung)
{
	if (place->flags & STEP_DEVICE)
		return SYS_LANDLOCK_READ_FILE | SYS_LANDLOCK_WRITE_FILE | SYS_LANDLOCK_IOCTL_DEV;
	switch (place->kind) {
	case PLACE_BIND:
		return place->flags & STEP_READ_ONLY ? READ_RIGHTS : write_rights(place);
	case PLACE_OVERLAY:
	case PLACE_PRIVATE:
	case PLACE_TMPFS:
		return write_rights(place);
	case PLACE_PROC:
		return SYS_LANDLOCK_READ_FILE | SYS_LANDLOCK_READ_DIR |
		       (rung == RUNG_NAMESPACE ? SYS_LANDLOCK_WRITE_FILE | SYS_LANDLOCK_TRUNCATE : 0);
	case PLACE_DEVPTS:
		if (rung != RUNG_NAMESPACE)
			return 0;
		return SYS_LANDLOCK_READ_FILE | SYS_LANDLOCK_READ_DIR | SYS_LANDLOCK_WRITE_FILE |
		       SYS_LANDLOCK_IOCTL_DEV;
	case PLACE_FILE:
		return READ_RIGHTS;
	case PLACE_SYMLINK:
	case PLACE_HIDDEN:
	case PLACE_PIN:
		return 0;
	}
	return 0;
}

/* Where there are no mounts, a private place is not the host's directory of that name. */
static bool is_on_host(const struct place *place)
{
	switch (place->kind) {
	case PLACE_BIND:
	case PLACE_OVERLAY:
	case PLACE_PROC:
	case PLACE_DEVPTS:
		return true;
	case PLACE_PRIVATE:
	case PLACE_TMPFS:
	case PLACE_SYMLINK:
	case PLACE_FILE:
	case PLACE_HIDDEN:
	case PLACE_PIN:
		return false;
	}
	return false;
}

/* Without mounts the rule names the host's own object: it must be the one that was seen. */
static void add_place_rule(struct plan_build *build, const struct place *place, uint64_t rights)
{
	struct plan_landlock_rule *rule = add_rule(build, place->target, rights);

	if (build->plan->rung == RUNG_NAMESPACE)
		return;
	/* An earlier command of the same jar may have removed it. */
	rule->may_be_absent = true;
	/* What is in /etc is root's: whatever stands there by then is meant. */
	if (place->flags & STEP_FOLLOW)
		return;
	rule->device = place->device;
	rule->inode = place->inode;
}

static void add_rules(struct plan_build *build, const struct view *view)
{
	struct plan *plan = build->plan;
	bool has_mounts = plan->rung == RUNG_NAMESPACE;

	/* ABI 1 forbids every rename across directories; where the mounts hold already, that is not worth it. */
	plan->core.landlock_abi = has_mounts && build->host->landlock_abi < 2 ? 0 : build->host->landlock_abi;
	if (!plan->core.landlock_abi || plan->rung == RUNG_PROCESS)
		return;
	plan->core.landlock_files = plan_landlock_rights_of_abi(plan->core.landlock_abi);
	/* With mounts the sockets of the host are absent, but for those in a directory that the policy shows. */
	if (has_mounts)
		plan->core.landlock_files &= ~LANDLOCK_RESOLVE_UNIX;
	if (plan->core.landlock_abi >= 6)
		plan->core.landlock_scopes = SYS_LANDLOCK_SCOPE_ABSTRACT_UNIX | SYS_LANDLOCK_SCOPE_SIGNAL;
	if (has_mounts) {
		add_rule(build, "/", SYS_LANDLOCK_READ_DIR);
		add_rule(build, "/etc", READ_RIGHTS)->may_be_absent = true;
	} else {
		/* Each run is a domain of its own: runs of one session reach each other's sockets only here. */
		add_rule(build, plan->core.run_directory, WRITE_RIGHTS | LANDLOCK_RESOLVE_UNIX);
	}
	for (size_t i = 0; i < view->count; i++) {
		const struct place *place = &view->items[i];
		const struct place *around = plan_view_around(view, i);
		uint64_t rights = rights_of(place, plan->rung);

		if (!rights || (!has_mounts && !is_on_host(place)))
			continue;
		/* Said once for all of /etc, above. */
		if (has_mounts && !(rights & ~READ_RIGHTS) && path_is_within(place->target, "/etc"))
			continue;
		/* Rights add up on the way down: what the place around it has need not be said again. */
		if (around && (has_mounts || is_on_host(around)) && (rights & ~rights_of(around, plan->rung)) == 0)
			continue;
		add_place_rule(build, place, rights);
	}
}

/*
 * Landlock adds rights up on the way down and takes none back, and without mounts nothing stands over the host's own
 * directory: a part of a shown directory that should have less than the whole cannot be had. Protected files are the
 * one exception: they are reported as missing.
 */
static int check_nested(struct plan_build *build, const struct view *view)
{
	const uint64_t harmless = SYS_LANDLOCK_EXECUTE;

	for (size_t i = 0; i < view->count; i++) {
		const struct place *place = &view->items[i];
		uint64_t meant = is_on_host(place) ? rights_of(place, RUNG_LANDLOCK) | harmless : harmless;

		if (place->is_protected || place->kind == PLACE_SYMLINK)
			continue;
		for (size_t j = 0; j < i; j++) {
			const struct place *outer = &view->items[j];

			if (!plan_place_shows_host(outer) || !path_is_within(place->target, outer->target) ||
			    !(rights_of(outer, RUNG_LANDLOCK) & ~meant))
				continue;
			if (build->policy->optional & (1U << GUARANTEE_FILESYSTEM)) {
				plan_missing(build, "filesystem",
					     plan_format(build, "'%s' has the same rights as '%s' around it",
							 place->target, outer->target),
					     "allow user namespaces; `belljar doctor` says how");
				break;
			}
			error_set(build->error, STAGE_HOST, EPERM,
				  "cannot keep '%s' %s inside '%s' without the rung 'namespace'", place->target,
				  is_on_host(place) ? "read-only" : "private", outer->target);
			return error_hint(build->error,
					  "allow user namespaces (`belljar doctor` says how), or show less than '%s'",
					  outer->target);
		}
	}
	return 0;
}

static bool is_private_home(const struct plan_build *build, size_t index)
{
	const char *path = build->policy->tmpfs.items[index].path;
	const char *resolved = build->host->tmpfs_places.items[index].path;
	const struct host *host = build->host;

	if (!strcmp(path, host->home) || (resolved && host->real_home && !strcmp(resolved, host->real_home)))
		return true;
	/* A HOME that does not exist, as services have, stands in the policy as the caller's environment has it. */
	for (char *const *variable = host->environment; variable && *variable; variable++)
		if (!strncmp(*variable, "HOME=", 5) && !strcmp(*variable + 5, path))
			return true;
	return false;
}

/* Without mounts nothing can be shown elsewhere than where it is, and nothing made private but one directory. */
static int check_without_mounts(struct plan_build *build)
{
	const struct policy *policy = build->policy;

	for (size_t i = 0; i < policy->mounts.count; i++)
		if (strcmp(policy->mounts.items[i].path, policy->mounts.items[i].dest) != 0)
			return plan_needs_namespace(build, plan_format(build, "showing '%s' at '%s'",
								       policy->mounts.items[i].path,
								       policy->mounts.items[i].dest));
	for (size_t i = 0; i < policy->tmpfs.count; i++) {
		const struct policy_tmpfs *tmpfs = &policy->tmpfs.items[i];
		static const char *const standard[] = {"/tmp", "/var/tmp", "/dev/shm", "/run"};
		bool is_standard = tmpfs->size_bytes == LIMIT_NONE && is_private_home(build, i);

		for (size_t j = 0; j < ARRAY_LEN(standard); j++)
			is_standard |= tmpfs->size_bytes == LIMIT_NONE && !strcmp(tmpfs->path, standard[j]);
		if (!is_standard)
			return plan_needs_namespace(build, plan_format(build, "a private '%s'", tmpfs->path));
	}
	return 0;
}

/* Without mounts it could be replaced; it is the run's own, and goes with it. */
static void add_plain_gitconfig(struct plan_build *build)
{
	struct plan_step *step = plan_add(build, &build->plan->core.steps, STEP_FILE);

	step->target = plan_format(build, "%s/home/.gitconfig", build->plan->core.run_directory);
	step->source = plan_gitconfig(build);
	step->mode = 0444;
}

int plan_mounts(struct plan_build *build)
{
	AUTO(plan_view_done) struct view view = {0}, pins = {0};
	int rc = build->plan->rung == RUNG_NAMESPACE ? 0 : check_without_mounts(build);

	if (rc == 0)
		rc = plan_view_make(build, &view, &pins);
	for (size_t i = 0; rc == 0 && i < view.count; i++)
		build->plan->writes_host |=
			plan_place_writes_host(&view.items[i]) && !(view.items[i].flags & STEP_DEVICE);
	if (rc == 0 && !build->has_failed && build->plan->rung == RUNG_LANDLOCK)
		rc = check_nested(build, &view);
	if (rc == 0 && !build->has_failed) {
		if (build->plan->rung == RUNG_NAMESPACE)
			add_mount_steps(build, &view, &pins);
		else
			add_plain_gitconfig(build);
		add_rules(build, &view);
	}
	return rc;
}
