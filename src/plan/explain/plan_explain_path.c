/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan/explain/plan_explain_path.c - may a command read, write or execute this path?
 *
 * With mounts, the steps of the plan show the object at each place; without, the rules of Landlock apply to the
 * host's own tree. The code walks a path as the kernel does, component by component. It follows links where they are,
 * in the jar or in a directory of the host that the jar shows; a struct plan_looker looks at the host. Modes count
 * for the command's id.
 *
 * One file for both ways, since the walk is the same: only the lookup of a place differs.
 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/paths.h"
#include "survey/survey_names.h"
#include "survey/survey_secrets.h"
#include "plan/explain/plan_explain.h"
#include "base/sys/calls.h"

#define LINKS_MAX 40
#define LANDLOCK_MAKE_FILE (1ULL << 8)

const char *const plan_access_names[] = {[PLAN_READ] = "read", [PLAN_WRITE] = "write", [PLAN_EXECUTE] = "exec"};
_Static_assert(ARRAY_LEN(plan_access_names) == PLAN_ACCESS_COUNT, "every access has a name");

/* What a place in the jar is. */
enum standing {
	STANDS_NOTHING,   /* the jar has no such place */
	STANDS_DIRECTORY, /* of the jar's own, read-only */
	STANDS_FILE,      /* of the jar's own, read-only */
	STANDS_LINK,
	STANDS_PRIVATE, /* what the command itself makes there */
	STANDS_HIDDEN,
	STANDS_KERNEL, /* /proc, terminals */
	STANDS_HOST,   /* what the host has there */
};

struct spot {
	enum standing standing;
	const struct plan_step *step; /* whose place it is in; NULL: the root's */
	char host_path[PATH_MAX];     /* STANDS_HOST */
	struct plan_object object;    /* of the host or the kernel, or a link's text */
	bool is_absent;               /* nothing stands there yet */
};

/* A walk under way. */
struct walk {
	const struct plan *plan;
	const struct plan_looker *looker;
	enum plan_access access;
	char path[PATH_MAX];   /* what is walked, without links so far */
	unsigned links;        /* followed */
	struct spot above, at; /* the last two places */
	const char *refusal;   /* why it ended early; NULL: it did not */
	bool is_absent;        /* nothing stands at its end, which is the last component */
};

/* --- what stands at a place --------------------------------------------------------------------------------- */

/* What a step puts at its target; STANDS_NOTHING: it is no place. */
static const enum standing standing_of_step[STEP_KIND_COUNT] = {
	[STEP_SYMLINK] = STANDS_LINK, [STEP_FILE] = STANDS_FILE,           [STEP_COPY] = STANDS_FILE,
	[STEP_BIND] = STANDS_HOST,    [STEP_PRIVATE] = STANDS_PRIVATE,     [STEP_TMPFS] = STANDS_PRIVATE,
	[STEP_HIDE] = STANDS_HIDDEN,  [STEP_DIRECTORY] = STANDS_DIRECTORY, [STEP_DEVPTS] = STANDS_KERNEL,
	[STEP_PROC] = STANDS_KERNEL,
};

/* The step whose place @path is, or is in: outer ones come first, so it is the last. *@has_inner: there are places below. */
static const struct plan_step *step_around(const struct plan *plan, const char *path, bool *has_inner)
{
	const struct plan_step *found = NULL;

	*has_inner = false;
	for (size_t i = 0; i < plan->core.steps.count; i++) {
		const struct plan_step *step = &plan->core.steps.items[i];

		if (!standing_of_step[step->kind] || !step->target)
			continue;
		if (path_is_within(path, step->target))
			found = step;
		else if (path_is_within(step->target, path))
			*has_inner = true;
	}
	return found;
}

static bool is_in_proc(const char *path)
{
	return path_is_within(path, "/proc");
}

static void look_at_host(const struct walk *walk, const char *path, struct spot *out)
{
	out->standing = STANDS_HOST;
	snprintf(out->host_path, sizeof(out->host_path), "%s", path);
	/* Without mounts it is the host's, and a process finds itself there. */
	if (is_in_proc(path))
		plan_look_at_proc(walk->plan, walk->looker, path, &out->object);
	else
		walk->looker->look(walk->looker->owner, path, &out->object);
}

/* The jar's own /proc, or its own terminals, which there are none of until the command makes one. */
static void look_at_kernel(const struct walk *walk, const char *path, struct spot *out)
{
	const char *rest = path + strlen(out->step->target);

	out->standing = STANDS_KERNEL;
	if (out->step->kind == STEP_PROC)
		plan_look_at_proc(walk->plan, walk->looker, path, &out->object);
	else if (!*rest)
		out->object.mode = S_IFDIR | 0755;
	else if (!strcmp(rest, "/ptmx"))
		out->object.mode = S_IFCHR | 0666;
}

static void look_by_steps(const struct walk *walk, const char *path, struct spot *out)
{
	bool has_inner;
	const struct plan_step *step = step_around(walk->plan, path, &has_inner);
	const char *rest = step ? path + strlen(step->target) : path;
	char host_path[PATH_MAX];

	*out = (struct spot){.standing = has_inner || !strcmp(path, "/") ? STANDS_DIRECTORY : STANDS_NOTHING,
			     .step = step};
	if (!step)
		return;
	switch (standing_of_step[step->kind]) {
	case STANDS_LINK:
		out->standing = STANDS_LINK;
		snprintf(out->object.link, sizeof(out->object.link), "%s", step->source);
		break;
	case STANDS_FILE:
		out->standing = *rest ? STANDS_NOTHING : STANDS_FILE;
		break;
	case STANDS_DIRECTORY:
		out->standing = !*rest ? STANDS_DIRECTORY : out->standing;
		break;
	case STANDS_PRIVATE:
		out->standing = STANDS_PRIVATE;
		out->is_absent = *rest && !has_inner;
		break;
	case STANDS_HOST:
		snprintf(host_path, sizeof(host_path), "%s%s", step->source ? step->source : step->target, rest);
		look_at_host(walk, host_path, out);
		if (!out->object.mode && has_inner)
			out->standing = STANDS_DIRECTORY;
		break;
	case STANDS_KERNEL:
		look_at_kernel(walk, path, out);
		break;
	case STANDS_HIDDEN:
	case STANDS_NOTHING:
		out->standing = standing_of_step[step->kind];
		break;
	}
}

/* Type, mode and owner of what stands there are known, and count. */
static bool has_object(const struct spot *spot)
{
	return spot->standing == STANDS_HOST || spot->standing == STANDS_KERNEL;
}

static void look(const struct walk *walk, const char *path, struct spot *out)
{
	if (walk->plan->rung == RUNG_NAMESPACE) {
		look_by_steps(walk, path, out);
		return;
	}
	*out = (struct spot){.standing = STANDS_HOST};
	look_at_host(walk, path, out);
}

/* --- modes -------------------------------------------------------------------------------------------------- */

/* May the command's id do that? @bit as in the modes of others: 4, 2, 1. */
static bool has_mode(const struct walk *walk, const struct spot *spot, unsigned bit)
{
	const struct plan_object *object = &spot->object;
	uid_t uid = walk->plan->owner_id ? walk->plan->owner_id : walk->looker->uid;
	gid_t gid = walk->plan->owner_id ? walk->plan->owner_id : walk->looker->gid;
	bool is_mapped = spot->step && spot->step->flags & STEP_ID_MAPPED;
	uid_t owner = is_mapped && object->uid == 0 ? uid : object->uid;
	gid_t group = is_mapped && object->gid == 0 ? gid : object->gid;

	if (owner == uid)
		return object->mode & bit << 6;
	return object->mode & (group == gid ? bit << 3 : bit);
}

/* --- the walk ----------------------------------------------------------------------------------------------- */

/* Put @rest behind what @link leads to. False: that is too long. */
static bool follow(struct walk *walk, const char *link, const char *rest, char todo[PATH_MAX])
{
	char next[PATH_MAX];
	int len;

	rest += strspn(rest, "/");
	len = snprintf(next, sizeof(next), *rest ? "%s/%s" : "%s%s", link, rest);
	if (len < 0 || (size_t)len >= sizeof(next) || ++walk->links > LINKS_MAX)
		return false;
	if (link[0] == '/')
		walk->path[0] = '\0';
	else
		*strrchr(walk->path, '/') = '\0';
	memcpy(todo, next, (size_t)len + 1);
	return true;
}

static void leave_component(char *path)
{
	char *slash = strrchr(path, '/');

	if (slash)
		*slash = '\0';
}

/* Take the next component of @todo; false: there is none. */
static bool next_component(char todo[PATH_MAX], char name[NAME_MAX + 1])
{
	size_t at = strspn(todo, "/"), len = strcspn(todo + at, "/");

	if (!len || len > NAME_MAX)
		return false;
	memcpy(name, todo + at, len);
	name[len] = '\0';
	memmove(todo, todo + at + len, strlen(todo + at + len) + 1);
	return true;
}

/* One component further. False: the walk has ended. */
static bool step_down(struct walk *walk, const char *name, char todo[PATH_MAX])
{
	size_t len = strlen(walk->path);
	bool is_last = strspn(todo, "/") == strlen(todo);

	if (!strcmp(name, "."))
		return true;
	if (!strcmp(name, "..")) {
		leave_component(walk->path);
		look(walk, walk->path[0] ? walk->path : "/", &walk->at);
		return true;
	}
	if (has_object(&walk->at) && !has_mode(walk, &walk->at, 1)) {
		walk->refusal = "the permissions of a directory above it keep the command out";
		return false;
	}
	if (snprintf(walk->path + len, sizeof(walk->path) - len, "/%s", name) >= (int)(sizeof(walk->path) - len)) {
		walk->refusal = "the path is too long";
		return false;
	}
	walk->above = walk->at;
	look(walk, walk->path, &walk->at);
	if (walk->at.standing == STANDS_LINK || (has_object(&walk->at) && S_ISLNK(walk->at.object.mode))) {
		char link[PATH_MAX];

		memcpy(link, walk->at.object.link, sizeof(link));
		walk->at = walk->above;
		if (follow(walk, link, todo, todo)) {
			if (link[0] == '/')
				look(walk, "/", &walk->at);
			return true;
		}
		walk->refusal = "its symbolic links form a loop, or are too long";
		return false;
	}
	walk->is_absent = walk->at.standing == STANDS_NOTHING || walk->at.is_absent ||
			  (has_object(&walk->at) && !walk->at.object.mode);
	return is_last || !(walk->is_absent && walk->at.standing != STANDS_PRIVATE);
}

static bool walk_path(struct walk *walk, const char *path)
{
	char todo[PATH_MAX], name[NAME_MAX + 1];
	size_t len;

	if (snprintf(todo, sizeof(todo), "%s", path) >= (int)sizeof(todo)) {
		walk->refusal = "the path is too long";
		return false;
	}
	look(walk, "/", &walk->at);
	while (next_component(todo, name)) {
		if (step_down(walk, name, todo))
			continue;
		/* The jar has nothing there; what was meant is the whole of it. */
		len = strlen(walk->path);
		snprintf(walk->path + len, sizeof(walk->path) - len, "%s", todo);
		return false;
	}
	return true;
}

/* --- cures -------------------------------------------------------------------------------------------------- */

/* Is @path, or does it lie in or around, a place of @name? */
static bool is_about(const char *path, const char *name)
{
	char part[PATH_MAX];
	const char *at;
	size_t len;

	if (name[0] == '/')
		return path_is_within(path, name) || path_is_within(name, path);
	snprintf(part, sizeof(part), "/%s", name);
	len = strlen(part);
	for (at = path; (at = strstr(at, part)); at++)
		if (!at[len] || at[len] == '/')
			return true;
	return false;
}

static mode_t mode_on_host(const struct walk *walk, const char *path)
{
	struct plan_object object = {0};

	walk->looker->look(walk->looker->owner, path, &object);
	return object.mode;
}

static bool host_has(const struct walk *walk, const char *directory, const char *name)
{
	char path[PATH_MAX];

	return snprintf(path, sizeof(path), "%s/%s", directory, name) < (int)sizeof(path) && mode_on_host(walk, path);
}

/* Showing a directory shows everything in it: ~/.config contains ~/.config/gcloud. */
static bool has_inside(const struct walk *walk, const char *path, const char *name)
{
	size_t len = strlen(path);

	if (host_has(walk, path, name))
		return true;
	for (const char *slash = strchr(name, '/'); slash; slash = strchr(slash + 1, '/')) {
		size_t part = (size_t)(slash - name);

		if (part < len && path[len - part - 1] == '/' && !strncmp(path + len - part, name, part) &&
		    host_has(walk, path, slash + 1))
			return true;
	}
	return false;
}

static bool warn_of_inner_secrets(const struct walk *walk, const char *path, struct plan_explanation *out)
{
	if (!S_ISDIR(mode_on_host(walk, path)))
		return false;
	for (const struct host_name *secret = survey_secret_names; secret->name; secret++) {
		if (secret->name[0] == '/' || secret->name[0] == '~' || !has_inside(walk, path, secret->name))
			continue;
		text_append_format(&out->warning, "'%s' is in it: %s; name only the other paths that the command needs",
				   secret->name, secret->who);
		return true;
	}
	return false;
}

/* Where the host's @path leads, as far as it exists. */
static void resolve_on_host(const struct walk *walk, const char *path, char out[PATH_MAX])
{
	/* Without mounts every path is the host's. */
	static const struct plan host_plan = {.rung = RUNG_LANDLOCK};
	struct walk inner = {.plan = walk->plan->rung == RUNG_NAMESPACE ? &host_plan : walk->plan,
			     .looker = walk->looker};

	walk_path(&inner, path);
	snprintf(out, PATH_MAX, "%s", inner.path[0] ? inner.path : "/");
}

/* The caller's agent, which signs with the caller's keys: is @path its socket, or around it? */
static bool holds_agent(const struct walk *walk, const char *path)
{
	char place[PATH_MAX];

	if (!walk->plan->agent)
		return false;
	resolve_on_host(walk, walk->plan->agent, place);
	return path_is_within(place, path) || path_is_within(walk->plan->agent, path);
}

/* Of the place of secrets that @path is, or lies in or around. */
static const char *secret_about(const struct walk *walk, const char *path)
{
	const char *who = survey_secret_at(walk->looker->home, path);
	char place[PATH_MAX];

	if (!strcmp(path, "/"))
		return NULL;
	for (const struct host_name *secret = survey_secret_names; secret->name && !who; secret++)
		if ((secret->name[0] == '/' && path_is_within(secret->name, path)) ||
		    (survey_secret_in_home(walk->looker->home, secret->name, place) && path_is_within(place, path) &&
		     strlen(path) > strlen(walk->looker->home) && mode_on_host(walk, place)))
			who = secret->who;
	return who || !holds_agent(walk, path) ? who : "a command that reaches the agent in it can use your keys";
}

static bool warn_of_place(const struct walk *walk, const char *path, struct plan_explanation *out)
{
	const char *who = secret_about(walk, path);

	if (who) {
		text_append_format(&out->warning, "%s; Belljar proposes no change", who);
		return true;
	}
	for (size_t i = 0; walk->access == PLAN_WRITE && survey_system_trees[i]; i++) {
		if (!path_is_within(path, survey_system_trees[i]))
			continue;
		text_append_string(&out->warning,
				   "the file belongs to the operating system; Belljar proposes no change");
		return true;
	}
	if (walk->looker->home && path_is_within(walk->looker->home, path)) {
		text_append_string(
			&out->warning,
			"it holds the home directory with all its secrets; name only the paths that the command needs");
		return true;
	}
	return warn_of_inner_secrets(walk, path, out);
}

/* Where a link leads counts as much as the path that was named. */
static bool warn_of_secrets(const struct walk *walk, const char *path, struct plan_explanation *out)
{
	char place[PATH_MAX];

	if (warn_of_place(walk, path, out))
		return true;
	resolve_on_host(walk, path, place);
	return strcmp(place, path) != 0 && warn_of_place(walk, place, out);
}

static void append_quoted(struct text *out, const char *word)
{
	bool is_plain = strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+@%,=:\\") ==
			strlen(word);

	if (is_plain && !strchr(word, '\\')) {
		text_append_string(out, word);
		return;
	}
	text_append_char(out, '\'');
	for (; *word; word++) {
		if (*word == '\'')
			text_append_string(out, "'\\''");
		else
			text_append_char(out, *word);
	}
	text_append_char(out, '\'');
}

static bool is_showable(mode_t mode)
{
	return S_ISREG(mode) || S_ISDIR(mode) || S_ISLNK(mode);
}

static void show(const struct walk *walk, const char *path, const char *key, struct plan_explanation *out)
{
	struct json_writer writer = {.text = &out->policy};
	AUTO_TEXT value = {0};

	if (warn_of_secrets(walk, path, out))
		return;
	if (mode_on_host(walk, path) && !is_showable(mode_on_host(walk, path))) {
		text_append_string(&out->warning,
				   "it is neither a file nor a directory, and a jar can show nothing else");
		return;
	}
	for (const char *at = path; *at; at++) {
		if (*at == ':' || *at == '\\')
			text_append_char(&value, '\\');
		text_append_char(&value, *at);
	}
	text_append_format(&out->flag, "--%s ", key);
	append_quoted(&out->flag, text_string(&value));
	json_open_object(&writer, NULL);
	json_open_array(&writer, key);
	json_write_string(&writer, NULL, text_string(&value));
	json_close_array(&writer);
	json_close_object(&writer);
}

static void cure(const struct walk *walk, const char *path, struct plan_explanation *out)
{
	show(walk, path, walk->access == PLAN_WRITE ? "rw" : "ro", out);
}

/* A jar can have its directory, and so all of them in it. Not a place that many share, such as /tmp. */
static void cure_socket(const struct walk *walk, const char *path, const char *place, struct plan_explanation *out)
{
	if (warn_of_secrets(walk, path, out))
		return;
	if (!(walk->at.step && !strcmp(walk->at.step->target, place)))
		show(walk, place, "ro", out);
	if (!out->warning.len)
		text_append_string(
			&out->warning,
			out->flag.len
				? "the command could then reach every socket in that directory, and the programs behind them run outside the jar"
				: "a program outside the jar listens there; Belljar proposes no change");
}

/*
 * A change of the policy shows what the host has; if it has nothing there, there is nothing to show. What is to be
 * made needs the directory that it comes into.
 */
static void cure_if_on_host(const struct walk *walk, const char *path, struct plan_explanation *out)
{
	char place[PATH_MAX];
	mode_t mode;

	snprintf(place, sizeof(place), "%s", path);
	leave_component(place);
	mode = mode_on_host(walk, path);
	if (S_ISSOCK(mode))
		cure_socket(walk, path, place, out);
	else if (mode)
		cure(walk, path, out);
	else if (walk->access == PLAN_WRITE && place[0] && mode_on_host(walk, place))
		cure(walk, place, out);
	else
		text_append_string(&out->warning, "the host has no such file either");
}

/* --- the answer --------------------------------------------------------------------------------------------- */

static const char *protected_name(const char *path)
{
	for (const struct host_name *name = survey_protected_names; name->name; name++)
		if (is_about(path, name->name))
			return name->who;
	return NULL;
}

static void refuse(struct plan_explanation *out, const char *why)
{
	text_append_string(&out->why, why);
}

static void allow(struct plan_explanation *out, const char *why)
{
	out->is_allowed = true;
	text_append_string(&out->why, why);
}

static bool mode_allows(struct walk *walk, struct plan_explanation *out)
{
	static const unsigned bits[] = {[PLAN_READ] = 4, [PLAN_WRITE] = 2, [PLAN_EXECUTE] = 1};

	/* To make a file one must write to its directory. */
	if (has_mode(walk, walk->is_absent ? &walk->above : &walk->at, walk->is_absent ? 2 : bits[walk->access]))
		return true;
	refuse(out, "the permissions of the file or directory do not allow it");
	return false;
}

static void explain_read_only(struct walk *walk, struct plan_explanation *out)
{
	const struct plan_step *step = walk->at.step;
	const char *who = protected_name(walk->path);

	for (size_t i = 0; i < walk->plan->own.count; i++) {
		if (!path_is_within(walk->path, walk->plan->own.items[i]))
			continue;
		text_append_format(&out->why, "Belljar itself runs from '%s'", walk->plan->own.items[i]);
		text_append_string(&out->warning, "no policy makes it writable: install Belljar elsewhere");
		return;
	}
	if (who && step->flags & STEP_IN_PLACE) {
		text_append_format(&out->why, "it is protected: %s", who);
		cure(walk, walk->path, out);
		text_append_string(&out->warning,
				   out->warning.len ? "" : "other programs run it or take instructions from it");
		return;
	}
	text_append_format(&out->why, "'%s' is shown read-only", step->target);
	cure_if_on_host(walk, walk->at.host_path, out);
}

static void explain_host(struct walk *walk, struct plan_explanation *out)
{
	const struct plan_step *step = walk->at.step;
	unsigned flags = step ? step->flags : 0;

	if (walk->access == PLAN_WRITE && flags & STEP_READ_ONLY) {
		explain_read_only(walk, out);
		return;
	}
	if (walk->is_absent && walk->access != PLAN_WRITE) {
		refuse(out, "the host has nothing there");
		return;
	}
	if (walk->access == PLAN_EXECUTE && (flags & STEP_NO_EXEC || S_ISDIR(walk->at.object.mode))) {
		refuse(out, flags & STEP_NO_EXEC ? "nothing can be executed there" : "it is a directory");
		return;
	}
	/* A socket is reached by writing; nothing else opens one. */
	if (!mode_allows(walk, out))
		return;
	if (step)
		text_append_format(&out->why, "'%s' is shown%s", step->target,
				   flags & STEP_READ_ONLY ? " read-only" : "");
	out->is_allowed = true;
}

static void explain_kernel(struct walk *walk, struct plan_explanation *out)
{
	bool is_proc = walk->at.step->kind == STEP_PROC, is_directory = S_ISDIR(walk->at.object.mode);
	bool is_write = walk->access == PLAN_WRITE;

	if (walk->is_absent)
		refuse(out, is_proc ? "the kernel has nothing there" : "no terminal has that name");
	else if (is_directory && walk->access != PLAN_READ)
		refuse(out, is_write ? "nothing can be made there" : "it is a directory");
	else if (is_write && is_proc && !plan_part_of_process(walk->path) && !(walk->at.object.mode & 02))
		refuse(out, "in /proc a process can write only to its own files, and to files that all may write");
	else if (mode_allows(walk, out))
		allow(out, is_proc ? "the jar has a /proc of its own" : "the jar has terminals of its own");
}

/* Copies have the mode of what they are copies of. */
static bool is_program(const struct spot *spot)
{
	return spot->standing == STANDS_FILE && spot->step->mode & 0111;
}

/* The name stands for the terminal of the process that opens it. A policy gives a command none. */
static bool is_missing_terminal(const struct walk *walk)
{
	return !strcmp(walk->path, "/dev/tty");
}

/* The place may be there because of a pattern. */
static void name_pattern(const struct walk *walk, struct plan_explanation *out)
{
	const struct plan_match_list *matches = &walk->plan->matches;

	for (size_t i = 0; walk->at.step && walk->at.step->target && i < matches->count; i++)
		if (!strcmp(matches->items[i].path, walk->at.step->target))
			text_append_format(&out->why, " (by '%s' in `%s`)", matches->items[i].pattern,
					   matches->items[i].key);
}

static void explain_by_steps(struct walk *walk, struct plan_explanation *out)
{
	switch (walk->at.standing) {
	case STANDS_HOST:
		explain_host(walk, out);
		break;
	case STANDS_KERNEL:
		explain_kernel(walk, out);
		break;
	case STANDS_PRIVATE:
		if (!walk->is_absent || (walk->access == PLAN_WRITE && !walk->looker->was_refused)) {
			text_append_format(&out->why, "'%s' is private: it is the jar's own, and not the host's",
					   walk->at.step->target);
			out->is_allowed = walk->is_absent || walk->access != PLAN_EXECUTE;
			break;
		}
		text_append_format(&out->why, "'%s' is private and empty", walk->at.step->target);
		cure_if_on_host(walk, walk->path, out);
		break;
	case STANDS_HIDDEN:
		text_append_format(&out->why, "'%s' is hidden", walk->at.step->target);
		text_append_string(&out->warning, "what hides it wins over everything: take it out of `hide`");
		break;
	case STANDS_FILE:
	case STANDS_DIRECTORY:
		if (walk->access == PLAN_READ || (walk->access == PLAN_EXECUTE && is_program(&walk->at)))
			allow(out, "it is the jar's own");
		else
			refuse(out, "it is the jar's own, and read-only");
		break;
	case STANDS_LINK:
	case STANDS_NOTHING:
		refuse(out, "the jar does not show it");
		cure_if_on_host(walk, walk->path, out);
		break;
	}
}

/* --- without mounts ----------------------------------------------------------------------------------------- */

static uint64_t rights_at(const struct walk *walk, const char *path)
{
	const struct plan_rule_list *rules = &walk->plan->core.landlock;
	uint64_t rights = 0;

	for (size_t i = 0; i < rules->count; i++) {
		char place[PATH_MAX];

		resolve_on_host(walk, rules->items[i].path, place);
		if (path_is_within(path, place))
			rights |= rules->items[i].access;
	}
	return rights;
}

static void explain_by_rules(struct walk *walk, struct plan_explanation *out)
{
	bool is_directory = S_ISDIR(walk->at.object.mode);
	uint64_t wanted[] = {
		[PLAN_READ] = is_directory ? SYS_LANDLOCK_READ_DIR : SYS_LANDLOCK_READ_FILE,
		[PLAN_WRITE] = walk->is_absent || is_directory ? LANDLOCK_MAKE_FILE : SYS_LANDLOCK_WRITE_FILE,
		[PLAN_EXECUTE] = SYS_LANDLOCK_EXECUTE,
	};
	const char *path = walk->path[0] ? walk->path : "/";

	if (walk->is_absent && walk->access != PLAN_WRITE) {
		refuse(out, "the host has nothing there");
		return;
	}
	if (walk->access == PLAN_EXECUTE && is_directory) {
		refuse(out, "it is a directory");
		return;
	}
	if (!plan_is_of_open_file(path) &&
	    walk->plan->core.landlock_files & ~rights_at(walk, path) & wanted[walk->access]) {
		refuse(out, "no rule allows it");
		cure_if_on_host(walk, path, out);
		return;
	}
	if (!mode_allows(walk, out))
		return;
	allow(out, walk->plan->core.landlock_files ? "a rule allows it" : "the rung 'process' restricts no files");
}

void plan_explain_path(const struct plan *plan, const struct plan_looker *looker, const char *path,
		       enum plan_access access, struct plan_explanation *out)
{
	struct walk walk = {.plan = plan->jar ? plan->jar : plan, .looker = looker, .access = access};

	if (!walk_path(&walk, path) && walk.refusal) {
		refuse(out, walk.refusal);
		return;
	}
	if (!walk.path[0])
		snprintf(walk.path, sizeof(walk.path), "/");
	if (is_missing_terminal(&walk)) {
		refuse(out, "the command has no terminal of its own");
		text_append_string(&out->warning, "--pty gives it one; a policy has no key for it");
	} else if (walk.plan->rung == RUNG_NAMESPACE)
		explain_by_steps(&walk, out), name_pattern(&walk, out);
	else
		explain_by_rules(&walk, out);
}
