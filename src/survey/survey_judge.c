/* SPDX-License-Identifier: Apache-2.0 */
/*
 * survey/survey_judge.c - judge one changed path by tables
 *
 * Names of the project's top count there. Repositories and what is in them, and instructions for agents, count at any depth: people
 * open subdirectories too. Letters are compared as the most generous file system does: without case, without characters that
 * no reader sees, with those that stand for two letters. A name that only looks alike is reported too often, never too rarely.
 */
#include "survey/survey_judge.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "survey/survey_names.h"

#define WHY_POINTER "git takes its repository from where it points"
#define WHY_LINK "git writes to files of such names, and through this link it would write where the link leads"
#define WHY_ABOVE "other programs take settings from files in it"
#define WHY_REPOSITORY                                                                                                 \
	"git or another program uses this repository's configuration when it runs in or above the directory"
#define WHY_BARE                                                                                                          \
	"with `objects` and `refs`, or `commondir`, beside HEAD git takes this directory for a repository, and uses the " \
	"`config` and the `hooks` in it"

/* --- names -------------------------------------------------------------------------------------------------- */

/* What file systems without case take for our letters, or for nothing: ranges of code points. */
static const struct {
	uint32_t first, last;
	const char *as;
} folded[] = {
	{0x00ad, 0x00ad, ""},   {0x00df, 0x00df, "ss"},  {0x017f, 0x017f, "s"},   {0x034f, 0x034f, ""},
	{0x061c, 0x061c, ""},   {0x115f, 0x1160, ""},    {0x17b4, 0x17b5, ""},    {0x180b, 0x180f, ""},
	{0x1e9e, 0x1e9e, "ss"}, {0x200b, 0x200f, ""},    {0x202a, 0x202e, ""},    {0x2060, 0x206f, ""},
	{0x212a, 0x212a, "k"},  {0x3164, 0x3164, ""},    {0xfb00, 0xfb00, "ff"},  {0xfb01, 0xfb01, "fi"},
	{0xfb02, 0xfb02, "fl"}, {0xfb03, 0xfb03, "ffi"}, {0xfb04, 0xfb04, "ffl"}, {0xfb05, 0xfb06, "st"},
	{0xfe00, 0xfe0f, ""},   {0xfeff, 0xfeff, ""},    {0xffa0, 0xffa0, ""},    {0xfff0, 0xfff8, ""},
	{0x1bca0, 0x1bca3, ""}, {0x1d173, 0x1d17a, ""},  {0xe0000, 0xe0fff, ""},
};

/* The code point that begins at @at, and its length in bytes; what is no UTF-8 counts as one byte of its own. */
static size_t read_point(const unsigned char *at, uint32_t *out)
{
	size_t len = *at >= 0xf0 ? 4 : *at >= 0xe0 ? 3 : *at >= 0xc0 ? 2 : 1;
	uint32_t point = *at & (len == 1 ? 0xffU : 0x7fU >> len);

	for (size_t i = 1; i < len; i++) {
		if ((at[i] & 0xc0) != 0x80) {
			*out = *at;
			return 1;
		}
		point = point << 6 | (at[i] & 0x3fU);
	}
	*out = point;
	return len;
}

/* No name becomes longer by that. */
static void fold(const char *path, char *out)
{
	const unsigned char *at = (const unsigned char *)path;

	while (*at) {
		uint32_t point;
		size_t len = read_point(at, &point), i = 0;

		while (point >= 0x80 && i < ARRAY_LEN(folded) && (point < folded[i].first || point > folded[i].last))
			i++;
		if (point < 0x80 || i == ARRAY_LEN(folded)) {
			memcpy(out, at, len);
			out += len;
		} else {
			memcpy(out, folded[i].as, strlen(folded[i].as));
			out += strlen(folded[i].as);
		}
		at += len;
	}
	*out = '\0';
}

static bool is_ascii_text(const char *text)
{
	while (*text && !(*text & 0x80))
		text++;
	return !*text;
}

/* Is @path @top, or something in it? Without regard to case. */
static bool is_within_name(const char *path, const char *top)
{
	size_t len;

	if ((path[0] | 0x20) != (top[0] | 0x20))
		return false;
	len = strlen(top);
	return !strncasecmp(path, top, len) && (!path[len] || path[len] == '/');
}

static const struct host_name *const tables[] = {survey_protected_names, survey_instruction_names};

/* Repositories: names of the tables that are in one count at any depth. */
static const char *const repositories[] = {".git", ".hg", ".jj", ".sl", ".pijul", "_darcs"};
/* Files that git uses in a repository without a work tree, then the names that make a directory one. */
static const char *const bare_names[] = {"config", "config.worktree", "commondir", "hooks", "info/attributes"};
static const char *const core_names[] = {"HEAD", "objects", "refs"};

static bool is_in_repository(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(repositories); i++)
		if (is_within_name(name, repositories[i]))
			return true;
	return false;
}

typedef bool name_function(void *context, const char *name, size_t len);

/* @each name that is part of one of the tables; true: it was found. */
static bool each_name(name_function *each, void *context)
{
	for (size_t i = 0; i < ARRAY_LEN(tables); i++)
		for (const struct host_name *row = tables[i]; row->name; row++)
			for (const char *part = row->name; part; part = strchr(part, '/')) {
				part += *part == '/';
				if (each(context, part, strcspn(part, "/")))
					return true;
			}
	for (size_t i = 0; i < ARRAY_LEN(core_names); i++)
		if (each(context, core_names[i], strlen(core_names[i])))
			return true;
	return false;
}

/* FNV-1a over ASCII letters without their case. */
static uint32_t hash_name(const char *name, size_t len)
{
	uint32_t hash = 2166136261U;

	for (size_t i = 0; i < len; i++)
		hash = (hash ^ ((unsigned char)name[i] | 0x20)) * 16777619U;
	return (hash ^ hash >> 16) % RISK_NAME_BITS;
}

static bool note_name(void *context, const char *name, size_t len)
{
	struct risk_names *names = context;
	uint32_t bit = hash_name(name, len);

	names->bits[bit / 64] |= UINT64_C(1) << bit % 64;
	return false;
}

void survey_risk_names_init(struct risk_names *names)
{
	*names = (struct risk_names){{0}};
	each_name(note_name, names);
}

struct sought_name {
	const char *name;
	size_t len;
};

static bool is_sought(void *context, const char *name, size_t len)
{
	const struct sought_name *sought = context;

	return len == sought->len && !strncasecmp(name, sought->name, len);
}

bool survey_risk_is_known_name(const struct risk_names *names, const char *name, size_t len)
{
	struct sought_name sought = {name, len};
	uint32_t bit = hash_name(name, len);

	if (!(names->bits[bit / 64] & UINT64_C(1) << bit % 64))
		return !is_ascii_text(name);
	return !is_ascii_text(name) || each_name(is_sought, &sought);
}

/* --- the judge ---------------------------------------------------------------------------------------------- */

struct judging {
	const struct risk_rules *rules;
	const struct risk_change *change;
	const char *path;  /* folded */
	const char *exact; /* as it is */
	const char *who;
};

static enum risk found(struct judging *judging, enum risk risk, const char *who)
{
	judging->who = who;
	return risk;
}

/* Is it something that cannot have the names below it that it should have? */
static bool is_no_directory(const struct judging *judging)
{
	return !S_ISDIR(judging->change->mode);
}

/*
 * In a repository's own directory, whose contents begin at @inside. In `modules` and `worktrees` there are more of them, of which
 * the same counts; the rest of them is everyday work.
 */
static enum risk judge_in_git(struct judging *judging, const char *inside)
{
	bool is_nested = false;

	for (;;) {
		const char *next = strchr(inside, '/');

		if (!is_within_name(inside, "modules") && !is_within_name(inside, "worktrees"))
			break;
		if (!next)
			return found(judging, RISK_PROTECTED, "it holds configuration and hooks, which git uses");
		inside = next + 1;
		is_nested = true;
	}
	/* A submodule may have a name with slashes. */
	for (const char *part = inside; part; part = is_nested ? strchr(part, '/') : NULL) {
		part += *part == '/';
		for (size_t i = 0; i < ARRAY_LEN(tables); i++)
			for (const struct host_name *row = tables[i]; row->name; row++) {
				if (strncmp(row->name, ".git/", 5) != 0)
					continue;
				if (is_within_name(part, row->name + 5))
					return found(judging, i ? RISK_REPORTED : RISK_PROTECTED, row->who);
				if (!is_nested && is_within_name(row->name + 5, part) && is_no_directory(judging) &&
				    judging->change->mode)
					return found(judging, RISK_PROTECTED, WHY_ABOVE);
			}
	}
	if (S_ISLNK(judging->change->mode))
		return found(judging, RISK_PROTECTED, WHY_LINK);
	return RISK_NONE;
}

/* A repository's directory is at @part: at the top or below. */
static enum risk judge_repository(struct judging *judging, const char *part)
{
	const char *inside = strchr(part, '/');

	if (!inside && judging->change->mode && is_no_directory(judging))
		return found(judging, RISK_PROTECTED, WHY_POINTER);
	if (!inside)
		return judging->change->before == RISK_BEFORE_ABSENT ? found(judging, RISK_PROTECTED, WHY_REPOSITORY)
								     : RISK_NONE;
	if (is_within_name(part, ".git"))
		return judge_in_git(judging, inside + 1);
	for (const struct host_name *row = survey_protected_names; row->name; row++) {
		if (is_within_name(part, row->name))
			return found(judging, RISK_PROTECTED, row->who);
		if (is_within_name(row->name, part) && is_no_directory(judging))
			return found(judging, RISK_PROTECTED, WHY_ABOVE);
	}
	return RISK_NONE;
}

/* Is there @name in the directory that @part lies in? */
static bool is_beside(const struct judging *judging, const char *part, const char *name)
{
	const struct risk_rules *rules = judging->rules;
	const char *directory = judging->exact, *end = directory;

	for (const char *at = judging->path; at < part; at++)
		if (*at == '/')
			end = strchr(end, '/') + 1;
	return rules->has &&
	       rules->has(rules->context, directory, end == directory ? 0 : (size_t)(end - directory) - 1, name);
}

/* Does git take the directory that @part lies in for a repository, or would it with `refs` there too? */
static bool is_bare(const struct judging *judging, const char *part)
{
	return is_beside(judging, part, "HEAD") &&
	       (is_beside(judging, part, "commondir") || is_beside(judging, part, "objects"));
}

/* Does it contain a file that git would use? */
static bool has_obeyed(const struct judging *judging, const char *part)
{
	for (size_t i = 0; i < ARRAY_LEN(bare_names); i++)
		if (is_beside(judging, part, bare_names[i]))
			return true;
	return false;
}

/*
 * @part in a repository without a work tree, or in one whose directory has another name than `.git`. HEAD changes in everyday
 * work. A name that makes the directory a repository counts if it is new: what git obeys may have come before.
 */
static enum risk judge_bare(struct judging *judging, const char *part)
{
	bool is_core = false, is_obeyed = false, is_link = S_ISLNK(judging->change->mode);

	for (size_t i = 0; i < ARRAY_LEN(bare_names); i++)
		is_obeyed |= is_within_name(part, bare_names[i]);
	for (size_t i = 0; i < ARRAY_LEN(core_names); i++)
		is_core |= !strcasecmp(part, core_names[i]);
	is_core &= judging->change->before != RISK_BEFORE_THERE && judging->change->mode;
	if ((!is_core && !is_obeyed && !is_link) || !is_bare(judging, part))
		return RISK_NONE;
	if (is_obeyed || (is_core && has_obeyed(judging, part)))
		return found(judging, RISK_PROTECTED, WHY_BARE);
	if (is_link)
		return found(judging, RISK_PROTECTED, WHY_LINK);
	return strcasecmp(part, "HEAD") != 0 ? RISK_NONE : found(judging, RISK_REPORTED, WHY_BARE);
}

/* A name that counts in any directory: programs started there use it, and Belljar protects it at the top only. */
static enum risk judge_rows(struct judging *judging, const struct host_name *rows, const char *part)
{
	for (const struct host_name *row = rows; row->name; row++) {
		if (row->is_of_top || is_in_repository(row->name))
			continue;
		if (is_within_name(part, row->name))
			return found(judging, RISK_REPORTED, row->who);
		if (S_ISLNK(judging->change->mode) && is_within_name(row->name, part))
			return found(judging, RISK_REPORTED, WHY_ABOVE);
	}
	return RISK_NONE;
}

/* Names that count in every directory; @part is one of the path and what comes behind it. */
static enum risk judge_part(struct judging *judging, const char *part)
{
	if (is_in_repository(part))
		return judge_repository(judging, part);
	for (size_t i = 0; i < ARRAY_LEN(tables); i++)
		if (judge_rows(judging, tables[i], part))
			return RISK_REPORTED;
	return judge_bare(judging, part);
}

static enum risk judge_top(struct judging *judging)
{
	for (const struct host_name *row = survey_protected_names; row->name; row++) {
		if (is_in_repository(row->name))
			continue;
		if (is_within_name(judging->path, row->name))
			return found(judging, RISK_PROTECTED, row->who);
		/* Something else in place of a directory above it. */
		if (is_within_name(row->name, judging->path) && is_no_directory(judging))
			return found(judging, RISK_PROTECTED, WHY_ABOVE);
	}
	return RISK_NONE;
}

/* @risk: what the tables say. */
static enum risk judge_extra(struct judging *judging, enum risk risk)
{
	for (size_t i = 0; i < judging->rules->extra.count; i++) {
		const struct risk_extra *extra = &judging->rules->extra.items[i];
		bool is_above = is_within_name(extra->path, judging->exact) && is_no_directory(judging);

		if (extra->risk <= risk || (extra->is_only_new && judging->change->before == RISK_BEFORE_THERE))
			continue;
		if (extra->is_only_file &&
		    (!S_ISREG(judging->change->mode) || strcmp(judging->exact, extra->path) != 0))
			continue;
		if (is_above || is_within_name(judging->exact, extra->path))
			risk = found(judging, extra->risk, extra->who);
	}
	return risk;
}

/* Is it text that a terminal can print? Continuation bytes of UTF-8 are checked, overlong forms and surrogates are not text. */
static bool is_printable_text(const char *name)
{
	const unsigned char *at = (const unsigned char *)name;

	while (*at) {
		static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
		uint32_t point;
		size_t len = read_point(at, &point);

		if (point < 0x20 || (point >= 0x7f && point < 0xa0 && len == 2) || point == 0x7f)
			return false;
		if (*at >= 0x80 &&
		    (len == 1 || point < least[len] || point > 0x10ffff || (point >= 0xd800 && point < 0xe000)))
			return false;
		at += len;
	}
	return true;
}

const char survey_risk_why_misleading[] =
	"its name begins with a dash, has control characters or is not UTF-8: programs take it for something else";

bool survey_risk_counts_as_a_whole(const char *directory)
{
	static const struct risk_rules no_rules;
	AUTO_FREE char *inside = NULL;
	const char *who;

	if (asprintf(&inside, "%s/-", directory) < 0) {
		inside = NULL;
		return true;
	}
	return survey_risk_judge(&no_rules, &(struct risk_change){inside, S_IFREG, RISK_BEFORE_THERE}, &who) !=
	       RISK_NONE;
}

bool survey_risk_is_misleading(const char *name)
{
	return name[0] == '-' || !is_printable_text(name);
}

static enum risk judge_last_name(struct judging *judging)
{
	const char *slash = strrchr(judging->exact, '/');

	if (judging->change->before == RISK_BEFORE_THERE || !judging->change->mode ||
	    !survey_risk_is_misleading(slash ? slash + 1 : judging->exact))
		return RISK_NONE;
	return found(judging, RISK_REPORTED, survey_risk_why_misleading);
}

static enum risk judge(struct judging *judging)
{
	enum risk risk = judge_top(judging);

	for (const char *part = judging->path; part && !risk; part = strchr(part, '/')) {
		part += *part == '/';
		risk = judge_part(judging, part);
		if (is_in_repository(part))
			break;
	}
	risk = judge_extra(judging, risk);
	return risk ? risk : judge_last_name(judging);
}

enum risk survey_risk_judge(const struct risk_rules *rules, const struct risk_change *change, const char **who_out)
{
	struct judging judging = {.rules = rules, .change = change, .path = change->path, .exact = change->path};
	AUTO_FREE char *copy = NULL;
	enum risk risk;

	if (!is_ascii_text(change->path)) {
		copy = malloc(strlen(change->path) + 1);
		if (!copy) {
			*who_out = "there was no memory to judge it";
			return RISK_PROTECTED;
		}
		fold(change->path, copy);
		judging.path = copy;
	}
	risk = judge(&judging);
	if (risk)
		*who_out = judging.who;
	return risk;
}

/* --- rules -------------------------------------------------------------------------------------------------- */

int survey_risk_rules_add(struct risk_rules *rules, const char *path, const struct risk_extra *extra)
{
	AUTO_FREE char *copy = strdup(path);
	struct risk_extra *item = copy ? list_add(&rules->extra) : NULL;

	if (!item)
		return -ENOMEM;
	*item = *extra;
	item->path = take_ptr(copy);
	return 0;
}

void survey_risk_rules_done(struct risk_rules *rules)
{
	for (size_t i = 0; i < rules->extra.count; i++)
		free(rules->extra.items[i].path);
	free(rules->extra.items);
	rules->extra = (struct risk_extra_list){0};
}
