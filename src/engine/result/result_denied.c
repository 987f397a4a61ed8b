/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/result/result_denied.c - the ledger: what was refused, why, and what would allow it
 *
 * Reasons and cures are plan_explain's; here they are put beside what was seen. The last refusals before the end come first: a
 * command that fails does so soon after what stopped it. What programs try in passing and do without comes after all else.
 */
#include "engine/result/result_denied.h"

#include <string.h>

#include "base/escape.h"
#include "base/paths.h"
#include "plan/explain/plan_explain.h"
#include "policy/policy_build.h"
#include "engine/result/result.h"

static const char *const kind_names[] = {[DENIAL_NET] = "net",
					 [DENIAL_NAME] = "name",
					 [DENIAL_HTTP] = "http",
					 [DENIAL_CALL] = "syscall",
					 [DENIAL_FILE] = "file"};
_Static_assert(ARRAY_LEN(kind_names) == DENIAL_KIND_COUNT, "every kind has a name");

/* --- what there is to say about one ------------------------------------------------------------------------- */

/* Whether programs continue without it: UDP, facts about the machine, the terminal that every shell opens. */
static bool is_passing(const struct denial *denial)
{
	if (denial->path)
		return path_is_within(denial->path->path, "/sys") || !strcmp(denial->path->path, "/dev/tty");
	return denial->reason == DENIAL_DATAGRAM;
}

static const char *kind_of(const struct denial *denial)
{
	return denial->path && denial->path->access == PLAN_EXECUTE ? "exec" : kind_names[denial->kind];
}

/*
 * Write a sentence for language models, so that they neither try again blindly nor think that the program is
 * broken. The cure is for the owner: an option for the command line, and a key for the packages.
 */
static void write_sentence(const char *what, const char *access, const struct plan_explanation *explanation,
			   struct json_writer *writer)
{
	static const struct {
		const char *access, *words;
	} phrases[] = {{"more", "more"},       {"call", "the system call"}, {"connect", "to connect to"},
		       {"send", "to send to"}, {"request", "the request"},  {"resolve", "to look up"}};
	const char *phrase = NULL;
	AUTO_TEXT words = {0};

	for (size_t i = 0; i < ARRAY_LEN(phrases) && !phrase; i++)
		phrase = strcmp(access, phrases[i].access) == 0 ? phrases[i].words : NULL;
	text_append_format(&words, "The sandbox refused %s%s %s: %s. Trying again will not help", phrase ? "" : "to ",
			   phrase ? phrase : access, what, text_string(&explanation->why));
	if (explanation->flag.len)
		text_append_format(&words, "; the owner of the sandbox can allow it with %s",
				   text_string(&explanation->flag));
	if (explanation->flag.len && explanation->policy.len)
		text_append_format(&words, ", in a policy %s", text_string(&explanation->policy));
	if (explanation->warning.len)
		text_append_format(&words, "; %s", text_string(&explanation->warning));
	text_append_char(&words, '.');
	json_write_string(writer, "sentence", text_string(&words));
}

static const char *access_of(const struct denial *denial)
{
	if (denial->kind == DENIAL_FILE)
		return denial->path ? plan_access_names[denial->path->access] : plan_access_names[PLAN_READ];
	if (denial->kind == DENIAL_NAME)
		return "resolve";
	if (denial->kind == DENIAL_HTTP)
		return "request";
	if (denial->kind == DENIAL_CALL)
		return "call";
	return denial->reason == DENIAL_DATAGRAM ? "send" : "connect";
}

static bool endpoint_of(const struct denial *denial, struct plan_endpoint *out)
{
	if (!plan_read_endpoint(denial->what, out))
		return false;
	out->port = denial->port;
	return true;
}

/* METHOD HOST:PORT/PATH where that is what was refused, else HOST:PORT. */
static void format_what(const struct denial *denial, struct text *out)
{
	const char *space =
		denial->reason == DENIAL_REQUEST ? memchr(denial->detail, ' ', sizeof(denial->detail)) : NULL;
	struct plan_endpoint endpoint;

	if (denial->kind == DENIAL_CALL) {
		escape_append(out, denial->what, sizeof(denial->what));
		return;
	}
	if (denial->path) {
		escape_append(out, denial->path->path, PATH_MAX);
		return;
	}
	if (space && endpoint_of(denial, &endpoint)) {
		char method[DENIAL_WHAT_SIZE] = "";

		memcpy(method, denial->detail, (size_t)(space - denial->detail));
		escape_append(out, method, sizeof(method));
		text_append_char(out, ' ');
		plan_format_endpoint(&endpoint, out);
		escape_append(out, space + 1, sizeof(denial->detail) - (size_t)(space + 1 - denial->detail));
		return;
	}
	if (endpoint_of(denial, &endpoint))
		plan_format_endpoint(&endpoint, out);
	else
		escape_append(out, denial->what, sizeof(denial->what));
}

static void explain_other_name(const struct denial *denial, struct plan_explanation *out)
{
	text_append_string(&out->why, "the first bytes were for the host '");
	escape_append(&out->why, denial->detail, sizeof(denial->detail));
	text_append_string(&out->why, "', and a connection must be for the host that it was made to");
}

/* The rules may have changed since, while the jar lived: then only that it was refused is known. */
static void explain_by_rule(const struct plan_network_rules *network, const struct plan_endpoint *endpoint,
			    struct plan_explanation *out)
{
	plan_explain_host(network, endpoint, out);
	if (!out->is_allowed)
		return;
	plan_explanation_done(out);
	*out = (struct plan_explanation){0};
	text_append_string(&out->why, "the rules that held then did not allow it");
}

static void explain(const struct plan *plan, const struct denial *denial, struct plan_explanation *out)
{
	struct plan_network_rules network = plan_network_rules(plan);
	struct plan_endpoint endpoint = {0}, address = {0};

	if (denial->kind == DENIAL_CALL) {
		plan_explain_call(plan, denial->what, true, out);
		return;
	}
	/* The helper that checked the host explained it; the engine never looks at paths that a command names. */
	if (denial->path) {
		escape_append(&out->why, denial->path->why, PATH_MAX);
		text_append_string(&out->flag, denial->path->flag);
		text_append_string(&out->policy, denial->path->policy);
		text_append_string(&out->warning, denial->path->warning);
		return;
	}
	/* A name that was redacted is none that a rule could be about. */
	if (!endpoint_of(denial, &endpoint)) {
		text_append_string(&out->why, "no rule allows it");
		return;
	}
	switch (denial->reason) {
	case DENIAL_BY_RULE:
		explain_by_rule(&network, &endpoint, out);
		break;
	case DENIAL_OTHER_NAME:
		explain_other_name(denial, out);
		break;
	case DENIAL_NO_NAME:
		text_append_string(&out->why, "on ports 80 and 443 the first bytes must say which host they are for, "
					      "by TLS with a server name or by HTTP with a Host");
		break;
	case DENIAL_ADDRESS:
		if (plan_read_endpoint(denial->detail, &address) && address.is_address)
			plan_explain_address(&endpoint, &address, out);
		break;
	case DENIAL_MANY_NAMES:
		text_append_string(&out->why, "the command has asked for more names than a gate has room for");
		break;
	case DENIAL_DATAGRAM:
		text_append_string(&out->why,
				   "UDP is refused, whatever the rules; programs that speak QUIC fall back to TCP");
		break;
	case DENIAL_REQUEST:
		plan_explain_request(&endpoint, denial->detail, out);
		break;
	case DENIAL_MALFORMED:
		text_append_string(&out->why, "the gate does not pass on ");
		escape_append(&out->why, denial->detail, sizeof(denial->detail));
		break;
	case DENIAL_UNTRUSTED:
		text_append_string(&out->why, "the host cannot be trusted: ");
		escape_append(&out->why, denial->detail, sizeof(denial->detail));
		break;
	case DENIAL_UNTRUSTING:
		text_append_string(
			&out->why,
			"the program does not trust the jar's own certificate authority, so the gate cannot read its requests: it has its own list of authorities, or expects one certificate");
		break;
	case DENIAL_ANSWER:
		explain_by_rule(&network, &endpoint, out);
		text_clear(&out->why);
		text_append_string(&out->why,
				   "no rule matches it, and the answer to the question about it was no, or none came");
		break;
	case DENIAL_REASON_COUNT:
		break;
	}
}

/* The resource that each limit is about. */
static const char *const limit_words[] = {
	[LIMIT_TIMEOUT] = "time",
	[LIMIT_CPU_TIME] = "CPU time",
	[LIMIT_MEMORY] = "memory",
	[LIMIT_PIDS] = "processes and threads",
	[LIMIT_DISK] = "room for files",
	[LIMIT_FILE_SIZE] = "room in one file",
	[LIMIT_FDS] = "open files",
	[LIMIT_NET_CONNECTIONS] = "connections at once",
	[LIMIT_NET_BYTES] = "bytes over the network",
	[LIMIT_OUTPUT] = "output",
};
_Static_assert(ARRAY_LEN(limit_words) == LIMIT_NAME_COUNT, "every limit has a word");

/* --- order -------------------------------------------------------------------------------------------------- */

static int compare(const void *left, const void *right)
{
	const struct denial *const *a = left, *const *b = right;

	if (is_passing(*a) != is_passing(*b))
		return is_passing(*a) ? 1 : -1;
	if ((*a)->last_ns == (*b)->last_ns)
		return 0;
	return (*a)->last_ns > (*b)->last_ns ? -1 : 1;
}

struct order {
	const struct denial *items[DENIALS_MAX + DENIED_CALLS_MAX + DENIALS_MAX];
	size_t count;
};

static void put_in_order(const struct denied_seen *denied, struct order *order)
{
	order->count = MIN_OF(denied->list.count, ARRAY_LEN(order->items));
	for (size_t i = 0; i < order->count; i++)
		order->items[i] = &denied->list.items[i];
	qsort(order->items, order->count, sizeof(*order->items), compare);
}

/* --- as data ------------------------------------------------------------------------------------------------ */

void result_write_denial(const struct plan *plan, const struct denial *denial, struct json_writer *writer,
			 const char *key)
{
	AUTO(plan_explanation_done) struct plan_explanation explanation = {0};
	AUTO_TEXT what = {0}, process = {0};

	explain(plan, denial, &explanation);
	format_what(denial, &what);
	escape_append(&process, denial->process, sizeof(denial->process));
	json_open_object(writer, key);
	json_write_string(writer, "kind", kind_of(denial));
	json_write_string(writer, "what", text_string(&what));
	json_write_string(writer, "access", access_of(denial));
	json_write_unsigned(writer, "count", denial->count);
	json_write_string(writer, "process", process.len ? text_string(&process) : NULL);
	json_write_string(writer, "why", text_string(&explanation.why));
	plan_write_cure(&explanation, writer, "cure");
	json_write_string(writer, "warning", explanation.warning.len ? text_string(&explanation.warning) : NULL);
	json_write_string(writer, "certainty", denial->is_inferred ? "inferred" : "seen");
	write_sentence(text_string(&what), access_of(denial), &explanation, writer);
	json_close_object(writer);
}

/* A limit that was asked for this run alone: the model may have chosen it, and can choose a higher one. */
static void write_own_sentence(const char *what, const struct plan_explanation *explanation, struct json_writer *writer)
{
	AUTO_TEXT words = {0};

	text_append_format(
		&words,
		"The command used up the %s that this call allowed it: %s. Call again with a higher limit if it "
		"needs more.",
		what, text_string(&explanation->why));
	json_write_string(writer, "sentence", text_string(&words));
}

static void write_limit(const struct plan *plan, enum limit_name name, const struct limit_hit *hit,
			struct json_writer *writer)
{
	AUTO(plan_explanation_done) struct plan_explanation explanation = {0};

	plan_explain_limit(result_limit_name(name), hit->limit, &explanation);
	json_open_object(writer, NULL);
	json_write_string(writer, "kind", "limit");
	json_write_string(writer, "what", result_limit_name(name));
	json_write_string(writer, "access", "use");
	json_write_unsigned(writer, "count", 1);
	json_write_null(writer, "process");
	json_write_string(writer, "why", text_string(&explanation.why));
	plan_write_cure(&explanation, writer, "cure");
	json_write_null(writer, "warning");
	json_write_string(writer, "certainty", "seen");
	if (policy_is_own_limit(plan->own_limits, result_limit_name(name)))
		write_own_sentence(limit_words[name], &explanation, writer);
	else
		write_sentence(limit_words[name], "more", &explanation, writer);
	json_close_object(writer);
}

/* Whether the command continued: Belljar drops the rest of its output. Other limits end it or refuse something. */
static bool is_passing_limit(const struct observation *seen, enum limit_name name)
{
	return name == LIMIT_OUTPUT && seen->cause != CAUSE_OUTPUT;
}

static void write_limits(const struct plan *plan, const struct observation *seen, bool are_passing,
			 struct json_writer *writer)
{
	for (int i = 0; i < LIMIT_NAME_COUNT; i++)
		if (seen->limits[i].is_hit && is_passing_limit(seen, (enum limit_name)i) == are_passing)
			write_limit(plan, (enum limit_name)i, &seen->limits[i], writer);
}

void result_write_denied(const struct plan *plan, const struct observation *seen, struct json_writer *writer)
{
	struct order order = {.count = 0};

	if (plan && seen)
		put_in_order(&seen->denied, &order);
	json_open_array(writer, "denied");
	if (plan && seen)
		write_limits(plan, seen, false, writer);
	for (size_t i = 0; i < order.count; i++)
		result_write_denial(plan, order.items[i], writer, NULL);
	if (plan && seen)
		write_limits(plan, seen, true, writer);
	json_close_array(writer);
	json_write_unsigned(writer, "denied_more",
			    plan && seen ? seen->denied.more + seen->denied.more_calls + seen->denied.more_paths : 0);
}

/* --- in words ----------------------------------------------------------------------------------------------- */

/* Whether this limit ended the run; result_explain() reports that one. */
static bool is_the_end(const struct observation *seen, enum limit_name name)
{
	static const enum cause causes[] = {
		[LIMIT_TIMEOUT] = CAUSE_TIMEOUT, [LIMIT_CPU_TIME] = CAUSE_CPU,    [LIMIT_MEMORY] = CAUSE_MEMORY,
		[LIMIT_PIDS] = CAUSE_PIDS,       [LIMIT_DISK] = CAUSE_DISK,       [LIMIT_NET_BYTES] = CAUSE_NET,
		[LIMIT_OUTPUT] = CAUSE_OUTPUT,   [LIMIT_NAME_COUNT] = CAUSE_NONE,
	};

	return causes[name] != CAUSE_NONE && causes[name] == seen->cause;
}

/* Find the reported limit *@number. LIMIT_NAME_COUNT: there are fewer, and their count is subtracted. */
static enum limit_name limit_of(const struct observation *seen, size_t *number)
{
	for (int i = 0; i < LIMIT_NAME_COUNT; i++)
		if (seen->limits[i].is_hit && !is_passing_limit(seen, (enum limit_name)i) && (*number)-- == 0)
			return (enum limit_name)i;
	return LIMIT_NAME_COUNT;
}

static void tell_limit(const struct observation *seen, enum limit_name name, struct text *what, struct text *cure)
{
	AUTO(plan_explanation_done) struct plan_explanation explanation = {0};

	plan_explain_limit(result_limit_name(name), seen->limits[name].limit, &explanation);
	if (!is_the_end(seen, name))
		text_append_format(what, "more %s: %s", limit_words[name], text_string(&explanation.why));
	if (explanation.flag.len)
		text_append_format(cure, "%s allows more", text_string(&explanation.flag));
}

bool result_tell_denial(const struct plan *plan, const struct observation *seen, size_t number, struct text *what,
			struct text *cure)
{
	static const char *const verbs[] = {[DENIAL_NET] = "connect to",
					    [DENIAL_NAME] = "look up",
					    [DENIAL_HTTP] = "request",
					    [DENIAL_CALL] = "the system call",
					    [DENIAL_FILE] = "read"};
	static const char *const file_verbs[] = {
		[PLAN_READ] = "read", [PLAN_WRITE] = "write", [PLAN_EXECUTE] = "execute"};
	AUTO(plan_explanation_done) struct plan_explanation explanation = {0};
	struct order order = {.count = 0};
	const struct denial *denial;
	enum limit_name limit = limit_of(seen, &number);

	if (limit != LIMIT_NAME_COUNT) {
		tell_limit(seen, limit, what, cure);
		return true;
	}
	put_in_order(&seen->denied, &order);
	if (number >= order.count || is_passing(order.items[number]))
		return false;
	denial = order.items[number];
	explain(plan, denial, &explanation);
	text_append_format(what, "%s ", denial->path ? file_verbs[denial->path->access] : verbs[denial->kind]);
	format_what(denial, what);
	if (denial->process[0]) {
		text_append_string(what, " by ");
		escape_append(what, denial->process, sizeof(denial->process));
	}
	if (denial->count > 1)
		text_append_format(what, " (%llu times)", (unsigned long long)denial->count);
	text_append_format(what, ": %s", text_string(&explanation.why));
	if (explanation.flag.len)
		text_append_format(cure, "%s allows it", text_string(&explanation.flag));
	else
		text_append_string(cure, text_string(&explanation.warning));
	return true;
}
