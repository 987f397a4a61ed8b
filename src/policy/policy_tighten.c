/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy/policy_tighten.c - apply a policy that may only tighten
 *
 * The file comes from the project that a command runs in, so Belljar trusts it no more than the command. Belljar
 * applies it to a copy of the policy like any document, then compares every key that it names with the old value, by
 * the rule in the key's row of policy_keys[]. Only if all of them pass does the copy become the policy.
 *
 * Removing an entry can also uncover something: below a writable directory, a read-only or private place protects the
 * files under it, and a variable that is set keeps Belljar from passing the caller's own. Belljar refuses a removal
 * that would uncover something, like any other change that loosens.
 */
#include "policy/policy_build.h"

#include <errno.h>
#include <string.h>

#include "base/json_read.h"
#include "base/paths.h"
#include "policy/net_rules.h"
#include "policy/policy_document.h"
#include "policy/policy_lists.h"
#include "policy/policy_patterns.h"
#include "policy/policy_value.h"

/* The policy before and after, and the value to judge. */
struct change {
	const struct policy *before;
	const struct policy *after;
	const struct policy_context *context;
	struct policy_origin origin;
};

typedef int judge_fn(const struct change *change);

/* Places that `system` shows, and thereby covers. */
static const char *const system_places[] = {"/usr",    "/bin", "/sbin", "/lib", "/lib32", "/lib64",
					    "/libx32", "/opt", "/etc",  "/nix", "/proc",  "/sys"};

/* A '..' may lead anywhere, since this code does not access the file system. */
static bool may_hold(const char *directory, const char *place)
{
	return strstr(directory, "/..") || strstr(place, "/..") || path_is_within(place, directory);
}

/* Return the nearest directory around all that @mount may show; NULL: unknown. */
static char *around_mount(const struct change *change, const struct policy_mount *mount)
{
	const char *workdir = change->before->workdir ? change->before->workdir : change->context->current_directory;
	char *around;

	if (!mount->is_pattern)
		return strdup(mount->dest);
	if (mount->path[0] != '/')
		return workdir ? strdup(workdir) : NULL;
	around = strndup(mount->path, policy_pattern_prefix(mount->path));
	if (around)
		policy_pattern_unquote(around);
	return around;
}

/* Can anything that @mount shows be at @place, or around it? A pattern may match anything. */
static bool may_show(const struct change *change, const struct policy_mount *mount, const char *place)
{
	AUTO_FREE char *around = around_mount(change, mount);

	return !around || may_hold(around, place);
}

/* Return what would show at @place if its entry were gone; NULL: nothing. */
static const char *what_is_beneath(const struct change *change, const char *place)
{
	const struct policy *after = change->after;
	const char *workdir =
		after->workdir_choice == WORKDIR_DEFAULT ? change->context->current_directory : after->workdir;

	for (size_t i = 0; i < after->mounts.count; i++) {
		if (may_show(change, &after->mounts.items[i], place))
			return after->mounts.items[i].dest;
	}
	if (workdir && may_hold(workdir, place))
		return workdir;
	for (size_t i = 0; after->has_system && i < ARRAY_LEN(system_places); i++) {
		if (path_is_within(place, system_places[i]))
			return system_places[i];
	}
	return NULL;
}

/* Below @around a pattern may have matched anything, so any entry there may have been beneath it. */
static const char *what_is_within(const struct change *change, const char *around)
{
	const struct policy *after = change->after;

	for (size_t i = 0; i < after->mounts.count; i++)
		if (after->mounts.items[i].is_pattern || path_is_within(after->mounts.items[i].dest, around))
			return after->mounts.items[i].dest;
	return after->workdir && path_is_within(after->workdir, around) ? after->workdir : NULL;
}

static int refuse_uncovering(const struct change *change, const char *what, const char *beneath)
{
	return policy_refuse(&change->origin, NULL, "taking '%s' away would uncover what is beneath it in '%s'", what,
			     beneath);
}

/* --- one value --- */

static int64_t number_of(const struct policy *policy, const struct policy_key *key)
{
	const void *member = policy_const_member(policy, key);
	uint64_t limit;

	if (key->type == POLICY_BOOL)
		return *(const bool *)member;
	if (key->type == POLICY_WORD || key->type == POLICY_SWITCH)
		return *(const int *)member;
	limit = *(const uint64_t *)member;
	return limit == LIMIT_NONE ? INT64_MAX : (int64_t)limit;
}

/* Without the operating system or the tools, a mount around their places would show through. */
static int judge_uncovering_bool(const struct change *change)
{
	const struct policy_key *key = change->origin.key;
	const char *beneath = NULL;

	if (key->offset == offsetof(struct policy, has_system)) {
		for (size_t i = 0; i < ARRAY_LEN(system_places) && !beneath; i++)
			beneath = what_is_beneath(change, system_places[i]);
	} else if (key->offset == offsetof(struct policy, has_toolchains) && change->context->home) {
		beneath = what_is_beneath(change, change->context->home);
	}
	return beneath ? refuse_uncovering(change, key->name, beneath) : 0;
}

/* Output that passes the new limit must pass the old one too, whichever of them splits it by stream. */
static int judge_output(const struct change *change)
{
	const struct output_limit *before = policy_const_member(change->before, change->origin.key);
	const struct output_limit *after = policy_const_member(change->after, change->origin.key);
	uint64_t sum;
	bool is_raised = false;

	for (int i = 0; i < 2; i++)
		is_raised |= MIN_OF(after->stream_bytes[i], after->total_bytes) > before->stream_bytes[i];
	if (__builtin_add_overflow(after->stream_bytes[0], after->stream_bytes[1], &sum))
		sum = LIMIT_NONE;
	if (is_raised || MIN_OF(after->total_bytes, sum) > before->total_bytes)
		return policy_refuse(&change->origin, NULL, "a tightening policy may not raise it");
	return 0;
}

static int judge_lower(const struct change *change)
{
	const struct policy_key *key = change->origin.key;
	int64_t before, after;

	if (key->type == POLICY_OUTPUT)
		return judge_output(change);
	before = number_of(change->before, key);
	after = number_of(change->after, key);
	if (after > before)
		return policy_refuse(&change->origin, NULL, "a tightening policy may not %s",
				     key->type == POLICY_BOOL   ? "turn it on"
				     : key->type == POLICY_WORD ? "widen it"
								: "raise it");
	return after < before && key->type == POLICY_BOOL ? judge_uncovering_bool(change) : 0;
}

static int judge_higher(const struct change *change)
{
	const struct policy_key *key = change->origin.key;

	if (number_of(change->after, key) < number_of(change->before, key))
		return policy_refuse(&change->origin, NULL, "a tightening policy may not %s",
				     key->type == POLICY_BOOL ? "turn it off" : "weaken it");
	return 0;
}

static bool is_same_string(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

/* Numbers and words are ints or longer; strings are pointers. No other type has this rule. */
static int judge_not(const struct change *change)
{
	const struct policy_key *key = change->origin.key;
	bool is_same = true;

	if (key->type == POLICY_WORD)
		is_same = number_of(change->after, key) == number_of(change->before, key);
	else if (key->type == POLICY_STRING || key->type == POLICY_PATH)
		is_same = is_same_string(*(char *const *)policy_const_member(change->after, key),
					 *(char *const *)policy_const_member(change->before, key));
	return is_same ? 0 : policy_refuse(&change->origin, NULL, "a tightening policy may not change it");
}

static int judge_to_null(const struct change *change)
{
	const struct policy *before = change->before, *after = change->after;
	const char *workdir =
		before->workdir_choice == WORKDIR_DEFAULT ? change->context->current_directory : before->workdir;
	const char *beneath;

	if (after->workdir_choice != WORKDIR_PRIVATE) {
		if (workdir && is_same_string(workdir, after->workdir))
			return 0;
		return policy_refuse(&change->origin, NULL, "a tightening policy may only make it private (null)");
	}
	beneath = workdir ? what_is_beneath(change, workdir) : NULL;
	return beneath ? refuse_uncovering(change, workdir, beneath) : 0;
}

static int judge_refused(const struct change *change)
{
	return policy_refuse(&change->origin, NULL, "a tightening policy may not have it");
}

/* --- lists --- */

static int refuse_entry(const struct change *change, const char *entry)
{
	return policy_refuse(&change->origin, entry,
			     "a tightening policy may only shorten the list; this is not in it");
}

static int judge_mounts(const struct change *change)
{
	enum mount_access access = policy_key_access(change->origin.key);

	for (size_t i = 0; i < change->after->mounts.count; i++) {
		const struct policy_mount *mount = &change->after->mounts.items[i];
		const struct policy_mount *earlier = policy_find_mount(change->before, mount->dest);

		if (mount->access != access)
			continue;
		if (!earlier || strcmp(earlier->path, mount->path) != 0 || earlier->access < access ||
		    earlier->is_pattern != mount->is_pattern)
			return refuse_entry(change, mount->path);
	}
	for (size_t i = 0; i < change->before->mounts.count; i++) {
		const struct policy_mount *mount = &change->before->mounts.items[i];
		AUTO_FREE char *around = NULL;
		const char *beneath;

		if (mount->access != access || policy_find_mount(change->after, mount->dest))
			continue;
		around = around_mount(change, mount);
		beneath = around ? what_is_beneath(change, around) : "the work directory";
		if (!beneath && mount->is_pattern)
			beneath = what_is_within(change, around);
		if (beneath)
			return refuse_uncovering(change, mount->dest, beneath);
	}
	return 0;
}

static int judge_tmpfs(const struct change *change)
{
	for (size_t i = 0; i < change->after->tmpfs.count; i++) {
		const struct policy_tmpfs *tmpfs = &change->after->tmpfs.items[i];
		const struct policy_tmpfs *earlier = policy_find_tmpfs(change->before, tmpfs->path);

		if (!earlier)
			return refuse_entry(change, tmpfs->path);
		if (tmpfs->size_bytes > earlier->size_bytes)
			return policy_refuse(&change->origin, tmpfs->path,
					     "a tightening policy may not raise its size");
	}
	for (size_t i = 0; i < change->before->tmpfs.count; i++) {
		const char *path = change->before->tmpfs.items[i].path;
		const char *beneath;

		if (policy_find_tmpfs(change->after, path))
			continue;
		beneath = what_is_beneath(change, path);
		if (beneath)
			return refuse_uncovering(change, path, beneath);
	}
	return 0;
}

/* Return the pattern that lets @name through, or NULL. */
static const char *find_pattern(const struct policy *policy, const char *name)
{
	for (size_t i = 0; i < policy->pass_env.count; i++) {
		if (policy_name_matches(policy->pass_env.items[i], name))
			return policy->pass_env.items[i];
	}
	return NULL;
}

static int judge_names(const struct change *change)
{
	for (size_t i = 0; i < change->after->pass_env.count; i++) {
		const char *name = change->after->pass_env.items[i];

		if (!find_pattern(change->before, name))
			return refuse_entry(change, name);
	}
	return 0;
}

static int judge_env(const struct change *change)
{
	for (size_t i = 0; i < change->after->env.count; i++) {
		const struct policy_env *env = &change->after->env.items[i];
		const struct policy_env *earlier = policy_find_env(change->before, env->name);

		if (!earlier || strcmp(earlier->value, env->value) != 0)
			return refuse_entry(change, env->name);
	}
	for (size_t i = 0; i < change->before->env.count; i++) {
		const char *name = change->before->env.items[i].name;
		const char *pattern = find_pattern(change->after, name);

		if (!policy_find_env(change->after, name) && pattern)
			return policy_refuse(&change->origin, name,
					     "taking it away would pass the caller's own, by '%s' in pass_env",
					     pattern);
	}
	return 0;
}

static bool is_deny(const char *rule_text)
{
	struct net_refusal refusal;
	struct net_rule rule;

	return net_rule_parse(rule_text, &rule, &refusal) == 0 && rule.is_deny;
}

/* Is it about the same hosts and ports as a rule before, with fewer methods and paths? */
static bool is_narrower(const char *rule_text, const struct string_list *before)
{
	struct net_refusal refusal;
	struct net_rule rule, wide;

	if (net_rule_parse(rule_text, &rule, &refusal) < 0)
		return false;
	for (size_t i = 0; i < before->count; i++)
		if (net_rule_parse(before->items[i], &wide, &refusal) == 0 && net_rule_is_within(&rule, &wide))
			return true;
	return false;
}

/* A file may add exceptions, not remove them. If the host's network was allowed, any list is shorter. */
static int judge_rules(const struct change *change)
{
	const struct string_list *before = &change->before->allow_net, *after = &change->after->allow_net;

	for (size_t i = 0; i < after->count && change->before->net != NET_HOST; i++)
		if (!policy_string_list_has(before, after->items[i]) && !is_deny(after->items[i]) &&
		    !is_narrower(after->items[i], before))
			return refuse_entry(change, after->items[i]);
	for (size_t i = 0; i < before->count; i++)
		if (!policy_string_list_has(after, before->items[i]) && is_deny(before->items[i]))
			return policy_refuse(&change->origin, before->items[i],
					     "a tightening policy may not take away what denies");
	return 0;
}

/* Directories with a layer of their own. */
static int judge_paths(const struct change *change)
{
	const struct string_list *before = policy_const_member(change->before, change->origin.key);
	const struct string_list *after = policy_const_member(change->after, change->origin.key);

	for (size_t i = 0; i < after->count; i++)
		if (!policy_string_list_has(before, after->items[i]))
			return refuse_entry(change, after->items[i]);
	for (size_t i = 0; i < before->count; i++) {
		const char *beneath = policy_string_list_has(after, before->items[i])
					      ? NULL
					      : what_is_beneath(change, before->items[i]);

		if (beneath)
			return refuse_uncovering(change, before->items[i], beneath);
	}
	return 0;
}

static int judge_ports(const struct change *change)
{
	for (size_t i = 0; i < change->after->publish.count; i++)
		if (!policy_string_list_has(&change->before->publish, change->after->publish.items[i]))
			return refuse_entry(change, change->after->publish.items[i]);
	return 0;
}

static int judge_secrets(const struct change *change)
{
	const struct string_list *before = &change->before->secrets, *after = &change->after->secrets;

	for (size_t i = 0; i < after->count; i++)
		if (!policy_string_list_has(before, after->items[i]))
			return refuse_entry(change, after->items[i]);
	return 0;
}

static int judge_guarantees(const struct change *change)
{
	uint32_t added = change->after->optional & ~change->before->optional;

	return added ? refuse_entry(change, policy_guarantee_names[__builtin_ctz(added)]) : 0;
}

static int judge_shorten(const struct change *change)
{
	static judge_fn *const judges[POLICY_TYPE_COUNT] = {
		[POLICY_MOUNTS] = judge_mounts,         [POLICY_TMPFS] = judge_tmpfs,
		[POLICY_NAMES] = judge_names,           [POLICY_ENV] = judge_env,
		[POLICY_GUARANTEES] = judge_guarantees, [POLICY_RULES] = judge_rules,
		[POLICY_PATHS] = judge_paths,           [POLICY_PORTS] = judge_ports,
		[POLICY_SECRETS] = judge_secrets,
	};

	return judges[change->origin.key->type](change);
}

/* Belljar added the file's entries to the policy's, so none can be missing. */
static int judge_add(const struct change *change)
{
	(void)change;
	return 0;
}

static judge_fn *const judges_by_rule[] = {
	[TIGHTEN_NOT] = judge_not,         [TIGHTEN_LOWER] = judge_lower, [TIGHTEN_HIGHER] = judge_higher,
	[TIGHTEN_SHORTEN] = judge_shorten, [TIGHTEN_ADD] = judge_add,     [TIGHTEN_TO_NULL] = judge_to_null,
	[TIGHTEN_REFUSED] = judge_refused,
};
_Static_assert(ARRAY_LEN(judges_by_rule) == TIGHTEN_REFUSED + 1, "every rule has a judge");

/* Apply the whole file to @after before judging any key, so the order of its keys does not matter. */
static int apply_and_judge(const struct policy *before, struct policy *after, const struct json_value *document,
			   const struct policy_source *source, const struct policy_context *context)
{
	const struct policy_key *key = NULL;
	int rc;

	for (size_t i = 0; i < document->object.count; i++) {
		const struct json_member *member = &document->object.members[i];

		rc = policy_document_key(member, source, &key);
		if (rc == 0)
			rc = policy_document_apply_member(after, key, member, key->tightening == TIGHTEN_ADD, source);
		if (rc < 0)
			return rc;
	}
	/* A file that names hosts where all were reachable means only those hosts. */
	if (after->net == NET_HOST && json_find(document, "allow_net"))
		after->net = NET_GATE;
	for (size_t i = 0; i < document->object.count; i++) {
		const struct json_member *member = &document->object.members[i];
		struct change change = {.before = before, .after = after, .context = context};

		rc = policy_document_key(member, source, &key);
		if (rc < 0)
			return rc;
		change.origin = (struct policy_origin){
			.source = source, .key = key, .line = member->value.line, .column = member->value.column};
		rc = judges_by_rule[key->tightening](&change);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int tighten_document(struct policy *policy, const char *bytes, size_t len, const struct policy_source *source,
			    const struct policy_context *context)
{
	AUTO(policy_done) struct policy after = {0};
	AUTO_JSON document = {0};
	int rc = policy_document_parse(bytes, len, source->name, &document, source->error);

	if (rc < 0)
		return rc;
	rc = policy_copy(policy, &after);
	if (rc < 0)
		return error_set(source->error, STAGE_POLICY, -rc, "no memory for the policy");
	rc = apply_and_judge(policy, &after, &document, source, context);
	if (rc < 0)
		return rc;
	policy_done(policy);
	*policy = after;
	after = (struct policy){0};
	return 0;
}

int policy_tighten(struct policy *policy, const char *file, const struct policy_context *context, struct error *error)
{
	AUTO_POLICY_FILE read_file = {0};
	AUTO_FREE char *path = NULL;
	struct policy_source source = {.name = file, .home = context->home, .error = error};
	int rc = policy_file_path(file, context, &path, error);

	if (rc == 0)
		rc = policy_file_read(path, file, NULL, &read_file, error);
	if (rc < 0)
		return rc;
	source.directory = read_file.directory;
	rc = tighten_document(policy, text_string(&read_file.bytes), read_file.bytes.len, &source, context);
	if (rc == 0 && string_list_add(&policy->files, path) < 0)
		rc = error_set(error, STAGE_POLICY, ENOMEM, "no memory for the policy");
	return rc;
}

int policy_tighten_document(struct policy *policy, const char *document, size_t len, const char *name,
			    const struct policy_context *context, struct error *error)
{
	struct policy_source source = {
		.name = name, .directory = context->current_directory, .home = context->home, .error = error};

	return tighten_document(policy, document, len, &source, context);
}
