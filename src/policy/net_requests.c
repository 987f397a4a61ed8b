/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy/net_requests.c - rules about requests to a host: methods and paths
 *
 * The gate compares a path as the server will read it, with escapes of ordinary characters decoded. Servers differ on
 * dot segments (also with blanks or parameters), empty segments, escaped slashes, question marks and number signs,
 * backslashes, double escapes, broken UTF-8, and characters that some fold into these. A path with any of them matches
 * no pattern, so the server cannot read an allowed path as another. Some servers cut parts off: compare both ways.
 */
#include "policy/net_rules.h"

#include <errno.h>
#include <string.h>

#include "base/http.h"
#include "base/utf8.h"
#include "policy/policy.h"

static bool is_method_char(char c)
{
	return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

/* Is @word one of the words in @list, each of which @separator ends? */
static bool list_has(const char *list, char separator, const char *word, size_t len)
{
	for (const char *at = list; *at;) {
		size_t here = (size_t)(strchrnul(at, separator) - at);

		if (here == len && !memcmp(at, word, len))
			return true;
		at += here + (at[here] == separator);
	}
	return false;
}

/* Insert @word in sorted order, so that equal lists have equal texts. */
static int list_insert(char *list, size_t size, char separator, const char *word, size_t len)
{
	size_t whole = strlen(list);
	char *at = list;

	if (list_has(list, separator, word, len))
		return 0;
	if (whole + len + 2 > size)
		return -E2BIG;
	while (*at) {
		size_t here = (size_t)(strchrnul(at, separator) - at);
		int order = memcmp(at, word, MIN_OF(here, len));

		if (order > 0 || (!order && here > len))
			break;
		at += here + 1;
	}
	memmove(at + len + 1, at, whole - (size_t)(at - list) + 1);
	memcpy(at, word, len);
	at[len] = separator;
	return 0;
}

int net_method_add(struct net_rule *rule, const char *method, size_t len)
{
	if (!len || len > HTTP_METHOD_MAX)
		return -EINVAL;
	for (size_t i = 0; i < len; i++)
		if (!is_method_char(method[i]))
			return -EINVAL;
	return list_insert(rule->methods, sizeof(rule->methods), ' ', method, len);
}

int net_path_add(struct net_rule *rule, const char *path, size_t len)
{
	char clean[NET_TARGET_MAX] = "";

	if (!len || path[0] != '/')
		return -EINVAL;
	for (size_t i = 0; i < len; i++)
		if (path[i] <= ' ' || path[i] > '~' || strchr("?#\\%", path[i]))
			return -EINVAL;
	/* Refuse a pattern that no path can match. */
	if (!net_path_clean(path, len, clean))
		return -EINVAL;
	return list_insert(rule->paths, sizeof(rule->paths), '\n', path, len);
}

/* --- paths -------------------------------------------------------------------------------------------------- */

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Return the next character of a path, decoded; -1: servers differ on it. */
static int next_char(const char *path, size_t len, size_t *at)
{
	char c = path[(*at)++];
	int high, low, escaped;

	if (c <= ' ' || c > '~' || c == '\\')
		return -1;
	if (c != '%')
		return (unsigned char)c;
	if (len - *at < 2)
		return -1;
	high = hex_digit(path[*at]);
	low = hex_digit(path[*at + 1]);
	if (high < 0 || low < 0)
		return -1;
	*at += 2;
	escaped = high << 4 | low;
	/* Characters that end a path or a segment, control characters, and '%', which could begin another escape. */
	if (escaped < ' ' || escaped == 0x7f || strchr("/\\%?#", escaped))
		return -1;
	return escaped;
}

/* Return the length without parameters behind a semicolon and trailing dots and blanks, which some servers cut off. */
static size_t plain_len(const char *segment, size_t len)
{
	const char *parameters = memchr(segment, ';', len);

	if (parameters)
		len = (size_t)(parameters - segment);
	while (len && (segment[len - 1] == '.' || segment[len - 1] == ' '))
		len--;
	return len;
}

/* Is it empty, or only dots and characters that some servers drop beside them: blanks, and those outside ASCII? */
static bool is_odd_segment(const char *segment, size_t len)
{
	len = plain_len(segment, len);
	for (size_t i = 0; i < len; i++)
		if (segment[i] != '.' && segment[i] != ' ' && !(segment[i] & 0x80))
			return false;
	return !len || memchr(segment, '.', len);
}

/* Characters that some servers drop, or read as dots, slashes, backslashes, percent signs, semicolons and the like. */
static const struct {
	const char *first, *last;
} folded[] = {
	{"\xc2\x80", "\xc2\x9f"},         /* control characters */
	{"\xc2\xa5", "\xc2\xa5"},         /* a backslash in some character sets */
	{"\xc2\xad", "\xc2\xad"},         /* not shown */
	{"\xe2\x80\x8b", "\xe2\x80\x8f"}, /* likewise */
	{"\xe2\x80\xa4", "\xe2\x80\xae"}, /* one dot and two; line ends; directions */
	{"\xe2\x81\x84", "\xe2\x81\x84"}, /* slashes */
	{"\xe2\x81\xa0", "\xe2\x81\xaf"}, /* not shown */
	{"\xe2\x82\xa9", "\xe2\x82\xa9"}, /* a backslash in some character sets */
	{"\xe2\x88\x95", "\xe2\x88\x96"}, /* slashes */
	{"\xe2\xa7\xb5", "\xe2\xa7\xb9"}, /* likewise */
	{"\xef\xb8\x80", "\xef\xb8\x8f"}, /* not shown */
	{"\xef\xb9\x90", "\xef\xb9\xaf"}, /* small forms */
	{"\xef\xbb\xbf", "\xef\xbb\xbf"}, /* not shown */
	{"\xef\xbc\x80", "\xef\xbd\xa1"}, /* wide forms */
};

/* Is it valid UTF-8 without characters that servers fold? */
static bool has_plain_characters(const char *path, size_t len)
{
	const unsigned char *bytes = (const unsigned char *)path;

	if (!utf8_is_valid(bytes, len))
		return false;
	for (size_t at = 0; at < len; at++)
		for (size_t i = 0; bytes[at] & 0x80 && i < ARRAY_LEN(folded); i++) {
			size_t size = strlen(folded[i].first);

			if (len - at >= size && memcmp(path + at, folded[i].first, size) >= 0 &&
			    memcmp(path + at, folded[i].last, size) <= 0)
				return false;
		}
	return true;
}

bool net_path_clean(const char *path, size_t len, char out[NET_TARGET_MAX])
{
	size_t count = 0, segment = 1;

	if (!len || path[0] != '/')
		return false;
	for (size_t at = 0; at < len;) {
		int c = next_char(path, len, &at);

		if (c < 0 || count + 1 >= NET_TARGET_MAX)
			return false;
		if (c == '/' && count && is_odd_segment(out + segment, count - segment))
			return false;
		out[count++] = (char)c;
		if (c == '/')
			segment = count;
	}
	out[count] = '\0';
	/* An empty last segment is usual. */
	return (segment == count || !is_odd_segment(out + segment, count - segment)) &&
	       has_plain_characters(out, count);
}

/* Cut off the parts of a clean path that some servers cut off. */
static void take_off(const char *path, size_t len, char out[NET_TARGET_MAX])
{
	size_t count = 0;

	for (size_t at = 0; at < len;) {
		const char *slash = memchr(path + at, '/', len - at);
		size_t here = slash ? (size_t)(slash - path) - at : len - at, kept = plain_len(path + at, here);

		memmove(out + count, path + at, kept);
		count += kept;
		at += here;
		if (at++ < len)
			out[count++] = '/';
	}
	out[count] = '\0';
}

/* A star matches any text, slashes too. */
static bool is_match(const char *pattern, size_t len, const char *path)
{
	const char *end = pattern + len, *star = NULL, *behind = NULL;

	while (*path) {
		if (pattern < end && *pattern == '*') {
			star = ++pattern;
			behind = path;
		} else if (pattern < end && *pattern == *path) {
			pattern++;
			path++;
		} else if (star) {
			pattern = star;
			path = ++behind;
		} else {
			return false;
		}
	}
	while (pattern < end && *pattern == '*')
		pattern++;
	return pattern == end;
}

static bool has_path(const struct net_rule *rule, const char *target)
{
	char path[NET_TARGET_MAX] = "", rest[NET_TARGET_MAX], pattern[NET_TARGET_MAX];

	if (!rule->paths[0])
		return true;
	if (!net_path_clean(target, strcspn(target, "?"), path))
		return false;
	take_off(path, strlen(path), rest);
	for (const char *at = rule->paths; *at;) {
		size_t len = (size_t)(strchrnul(at, '\n') - at);

		take_off(at, len, pattern);
		if (is_match(at, len, path) && is_match(pattern, strlen(pattern), rest))
			return true;
		at += len + 1;
	}
	return false;
}

static bool has_method(const struct net_rule *rule, const char *method)
{
	return !rule->methods[0] || list_has(rule->methods, ' ', method, strlen(method));
}

bool net_rule_is_limited(const struct net_rule *rule)
{
	return rule->methods[0] || rule->paths[0];
}

struct net_verdict net_decide_request(const struct net_rule_list *rules, const char *name, uint16_t port,
				      const char *method, const char *target)
{
	struct net_verdict verdict = net_decide_name(rules, name, port);

	bool is_private;

	if (!verdict.is_allowed || !net_rule_is_limited(verdict.rule))
		return verdict;
	is_private = verdict.rule->may_be_private;
	verdict.is_allowed = false;
	for (size_t i = 0; i < rules->count && !verdict.is_allowed; i++) {
		const struct net_rule *rule = &rules->items[i];
		const struct net_rule_list alone = {.items = (struct net_rule *)rule, .count = 1};

		/* The rule that chose the address allows private ones, or does not. */
		if (net_decide_name(&alone, name, port).is_allowed && rule->may_be_private == is_private &&
		    has_method(rule, method) && has_path(rule, target))
			verdict = (struct net_verdict){true, rule};
	}
	return verdict;
}

/* Is every word of @narrow one of @wide's? An empty list means every word. */
static bool is_shorter(const char *narrow, const char *wide, char separator)
{
	if (!*wide)
		return true;
	if (!*narrow)
		return false;
	while (*narrow) {
		size_t len = (size_t)(strchrnul(narrow, separator) - narrow);

		if (!list_has(wide, separator, narrow, len))
			return false;
		narrow += len + 1;
	}
	return true;
}

bool net_rule_is_within(const struct net_rule *narrow, const struct net_rule *wide)
{
	return narrow->kind == wide->kind && !narrow->is_deny && !wide->is_deny &&
	       narrow->may_be_private <= wide->may_be_private && narrow->is_inspected >= wide->is_inspected &&
	       narrow->is_ipv6 == wide->is_ipv6 && narrow->prefix_len == wide->prefix_len &&
	       !memcmp(narrow->address, wide->address, sizeof(narrow->address)) && !strcmp(narrow->name, wide->name) &&
	       narrow->port_count == wide->port_count &&
	       !memcmp(narrow->ports, wide->ports, sizeof(*narrow->ports) * narrow->port_count) &&
	       is_shorter(narrow->methods, wide->methods, ' ') && is_shorter(narrow->paths, wide->paths, '\n');
}

bool policy_is_inspecting(const struct policy *policy)
{
	struct net_refusal refusal;
	struct net_rule rule;

	if (policy->secrets.count)
		return true;
	for (size_t i = 0; i < policy->allow_net.count; i++)
		if (policy->allow_net.items[i][0] == '{' &&
		    net_rule_parse(policy->allow_net.items[i], &rule, &refusal) == 0 && rule.is_inspected)
			return true;
	return false;
}
