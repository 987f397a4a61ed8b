/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workspace/workspace_risk.c - which changes are not applied unless they are named, and which are shown apart
 *
 * Refused: what the judge of risk protects (survey/survey_judge.h), everything in a repository that is new or replaced, links that
 * lead out, set-id bits, anything that is no file, directory or link.
 *
 * Shown apart: programs that are new, and files that people's tools run while they work.
 */
#include "workspace/workspace_risk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "survey/survey_judge.h"
#include "survey/survey_names.h"
#include "survey/survey_rules.h"

/* Repositories: what is in one is protected at any depth, and a new one as a whole. */
static const char *const repositories[] = {".git", ".hg", ".jj", ".sl"};

#define WHY_REPOSITORY "a repository, whose configuration git or another program uses"

bool workspace_change_is_within(const char *path, const char *top)
{
	size_t len = strlen(top);

	while (len && top[len - 1] == '/')
		len--;
	if (!len || (len == 1 && top[0] == '.'))
		return true;
	return !strncmp(path, top, len) && (!path[len] || path[len] == '/');
}

/* The same without regard to case: some file systems have none. */
static bool is_within_name(const char *path, const char *top)
{
	size_t len;

	/* Asked for every part of every path and every name: most of them differ in the first letter. */
	if ((path[0] | 0x20) != (top[0] | 0x20))
		return false;
	len = strlen(top);
	return !strncasecmp(path, top, len) && (!path[len] || path[len] == '/');
}

static bool part_is(const char *part, const char *name)
{
	size_t len;

	if ((part[0] | 0x20) != (name[0] | 0x20))
		return false;
	len = strlen(name);
	return !strncasecmp(part, name, len) && (!part[len] || part[len] == '/');
}

static bool is_repository_part(const char *part)
{
	if (part[0] != '.')
		return false;
	for (size_t i = 0; i < ARRAY_LEN(repositories); i++)
		if (part_is(part, repositories[i]))
			return true;
	return false;
}

/* --- links -------------------------------------------------------------------------------------------------------- */

bool workspace_link_leads_out(const char *workdir, const char *path, const char *text)
{
	size_t depth = 0;
	bool has_names = false;

	if (text[0] == '/') {
		size_t len = strlen(workdir);

		/* Absolute, but in the workdir: only without any step back. */
		if (strncmp(text, workdir, len) != 0 || (text[len] && text[len] != '/'))
			return true;
		for (const char *part = text + len; *part; part += strcspn(part, "/")) {
			part += strspn(part, "/");
			if (part_is(part, ".."))
				return true;
		}
		return false;
	}
	for (const char *at = path; (at = strchr(at, '/')); at++)
		depth++;
	for (const char *part = text; *part;) {
		size_t len = strcspn(part, "/");

		if (len == 2 && part[0] == '.' && part[1] == '.') {
			/* After a name, ".." goes to wherever that name leads: it may be a link itself. */
			if (has_names || !depth--)
				return true;
		} else if (len && !(len == 1 && part[0] == '.')) {
			has_names = true;
		}
		part += len;
		part += strspn(part, "/");
	}
	return false;
}

static bool has_wild_link(const struct workspace_view *view, const struct change *change)
{
	const char *name;
	AUTO_CLOSE int parent =
		workspace_view_open_parent(view->fds[change->layer], workspace_change_layer_path(change), &name);
	char text[WORKSPACE_LINK_MAX + 1];
	ssize_t len = parent < 0 ? -1 : readlinkat(parent, name, text, sizeof(text) - 1);

	if (len < 0)
		return true;
	text[len] = '\0';
	return workspace_link_leads_out(view->workdir, change->path, text);
}

/* --- names -------------------------------------------------------------------------------------------------------- */

static const struct change *find(const struct change_list *list, const char *path)
{
	size_t low = 0, high = list->count;

	while (low < high) {
		size_t middle = (low + high) / 2;
		int order = strcmp(list->items[middle].path, path);

		if (!order)
			return &list->items[middle];
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

/* What the judge of risk asks about. */
struct judged {
	const struct workspace_view *view;
	const struct change_list *list;
};

/* Will there be @directory/@name, by the layer or because the workdir has it? */
static bool will_be(void *context, const char *directory, size_t len, const char *name)
{
	const struct judged *judged = context;
	AUTO_FREE char *path = NULL;
	const struct change *change;
	const char *last;
	struct stat status;
	AUTO_CLOSE int parent = -1;

	if (asprintf(&path, "%.*s%s%s", (int)len, directory, len ? "/" : "", name) < 0) {
		path = NULL;
		return true;
	}
	change = find(judged->list, path);
	if (change)
		return change->kind != CHANGE_DELETED;
	parent = workspace_view_open_parent(workspace_view_workdir(judged->view), path, &last);
	return parent >= 0 && fstatat(parent, last, &status, AT_SYMLINK_NOFOLLOW) == 0;
}

/* The first directory on the way, or the path itself, that is a repository which the change makes, removes or replaces. */
static bool is_in_new_repository(const struct change_list *list, const char *path)
{
	for (const char *part = path; part; part = strchr(part, '/')) {
		AUTO_FREE char *top = NULL;
		const struct change *change;

		part += *part == '/';
		if (!is_repository_part(part))
			continue;
		top = strndup(path, (size_t)(part - path) + strcspn(part, "/"));
		change = top ? find(list, top) : NULL;
		if (!top || (change && (change->kind != CHANGE_MODE || !S_ISDIR(change->after.mode))))
			return true;
	}
	return false;
}

static const struct host_name *const tables[] = {survey_protected_names, survey_instruction_names, survey_build_names};

/* With which letters the names of all tables begin: few parts of a path need a closer look. */
struct letters {
	bool is_first[256];
};

static void find_letters(struct letters *out)
{
	*out = (struct letters){0};
	for (size_t i = 0; i < ARRAY_LEN(tables); i++)
		for (const struct host_name *name = tables[i]; name->name; name++)
			for (int letter = 0; letter < 256; letter++)
				if ((letter | 0x20) == ((unsigned char)name->name[0] | 0x20))
					out->is_first[letter] = true;
}

static const char *why_apart(const char *path, const struct letters *letters)
{
	for (const char *part = path; part; part = strchr(part, '/')) {
		part += *part == '/';
		if (!letters->is_first[(unsigned char)part[0]])
			continue;
		for (size_t i = 0; i < ARRAY_LEN(tables); i++)
			for (const struct host_name *name = tables[i]; name->name; name++)
				if (is_within_name(part, name->name))
					return name->who;
	}
	return NULL;
}

static const char *why_refused(const struct workspace_view *view, const struct change_list *list,
			       const struct change *change)
{
	mode_t mode = change->after.mode;

	if (change->flags & CHANGE_IS_CLOSED)
		return "its permissions keep Belljar from reading it, but a command in the workspace can change them";
	if (mode && !S_ISREG(mode) && !S_ISDIR(mode) && !S_ISLNK(mode))
		return S_ISSOCK(mode) ? "a socket" : S_ISFIFO(mode) ? "a pipe with a name" : "a device";
	if (mode & (S_ISUID | S_ISGID) && S_ISREG(mode) &&
	    (mode & (S_ISUID | S_ISGID)) != (change->before.mode & (S_ISUID | S_ISGID)))
		return "it would run with the rights of its owner or group";
	if (mode & (S_ISUID | S_ISGID) && S_ISREG(mode) && change->flags & CHANGE_HAS_CONTENT)
		return "it runs with the rights of its owner or group";
	if (S_ISLNK(mode) && has_wild_link(view, change))
		return "the link leads out of the workdir";
	return is_in_new_repository(list, change->path) ? WHY_REPOSITORY : NULL;
}

/* A new directory that is refused takes with it what is in it. It comes before them in the list. */
static const char *why_with_its_directory(const struct change_list *list, const char *path)
{
	for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		AUTO_FREE char *above = strndup(path, (size_t)(slash - path));
		const struct change *change = above ? find(list, above) : NULL;

		if (!above)
			return WHY_REPOSITORY;
		if (change && change->flags & CHANGE_IS_REFUSED &&
		    (change->kind == CHANGE_ADDED || change->kind == CHANGE_TYPE))
			return change->why;
	}
	return NULL;
}

/* What a change is to the judge of risk. */
static struct risk_change as_risk(const struct change *change)
{
	return (struct risk_change){
		.path = change->path,
		.mode = change->kind == CHANGE_DELETED ? 0 : change->after.mode,
		.before = change->before.mode ? RISK_BEFORE_THERE : RISK_BEFORE_ABSENT,
	};
}

static const char *why_shown_apart(const struct change *change, const struct letters *letters)
{
	bool can_run = S_ISREG(change->after.mode) && change->after.mode & 0111;

	if (can_run && !(S_ISREG(change->before.mode) && change->before.mode & 0111))
		return "a program that is new";
	return change->kind == CHANGE_DELETED ? NULL : why_apart(change->path, letters);
}

/* What the judge says. Where nothing is known of what the project's own files name, every change may be a risk. */
static enum risk judge(const struct risk_rules *rules, bool is_known, const struct change *change, const char **who)
{
	struct risk_change risk_change = as_risk(change);
	enum risk risk = survey_risk_judge(rules, &risk_change, who);

	if (is_known || risk == RISK_PROTECTED)
		return risk;
	*who = "Belljar could not read what git's configuration and links in the project name";
	return RISK_PROTECTED;
}

/* What is in a closed directory is unknown, and would be lost. */
static bool is_allowed(const struct change *change, const struct string_list *allowed)
{
	for (size_t i = 0; allowed && i < allowed->count && !(change->flags & CHANGE_IS_CLOSED); i++)
		if (workspace_change_is_within(change->path, allowed->items[i]))
			return true;
	return false;
}

void workspace_judge(const struct workspace_view *view, struct change_list *list, const struct string_list *allowed)
{
	struct judged judged = {view, list};
	struct risk_rules rules = {.has = will_be, .context = &judged};
	struct letters letters;
	bool is_known = !list->count || survey_find_rules(view->workdir, environ, &rules) == 0;

	find_letters(&letters);
	for (size_t i = 0; i < list->count; i++) {
		struct change *change = &list->items[i];
		const char *who = NULL;
		enum risk risk = judge(&rules, is_known, change, &who);

		change->flags &= ~(unsigned)(CHANGE_IS_REFUSED | CHANGE_IS_APART);
		change->why = why_refused(view, list, change);
		if (!change->why && risk == RISK_PROTECTED)
			change->why = who;
		if (!change->why)
			change->why = why_with_its_directory(list, change->path);
		if (change->why) {
			change->flags |= is_allowed(change, allowed) ? CHANGE_IS_APART : CHANGE_IS_REFUSED;
			continue;
		}
		change->why = risk ? who : why_shown_apart(change, &letters);
		if (change->why)
			change->flags |= CHANGE_IS_APART;
	}
	survey_risk_rules_done(&rules);
}
