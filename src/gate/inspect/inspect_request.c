/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate/inspect/inspect_request.c - what becomes of a request, and of an answer, whatever protocol they came in
 *
 * The head is understood already. Here it is compared with the host that the connection is for, with the rules, and with the places
 * where a placeholder may stand.
 */
#include "gate/inspect/inspect_request.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "gate/inspect/inspect_websocket.h"

void inspect_own_answer_set(struct own_answer *answer, int status, const char *format, ...)
{
	va_list arguments;
	int len;

	*answer = (struct own_answer){.status = status};
	len = snprintf(answer->sentence, sizeof(answer->sentence), "belljar: ");
	va_start(arguments, format);
	vsnprintf(answer->sentence + len, sizeof(answer->sentence) - (size_t)len, format, arguments);
	va_end(arguments);
}

const char *inspect_own_answer_phrase(const struct own_answer *answer)
{
	static const struct {
		int status;
		const char *phrase;
	} phrases[] = {{400, "Bad Request"}, {403, "Forbidden"}, {421, "Misdirected Request"}, {502, "Bad Gateway"}};

	for (size_t i = 0; i < ARRAY_LEN(phrases); i++)
		if (phrases[i].status == answer->status)
			return phrases[i].phrase;
	return "";
}

void inspect_request_record(const struct inspection *inspection, enum denial_reason reason, const char *detail)
{
	gate_account_refusal(inspection->gate, &(struct refusal){.kind = DENIAL_HTTP,
								 .reason = reason,
								 .host = inspection->host,
								 .port = inspection->port,
								 .detail = detail});
}

void inspect_request_refuse(const struct inspection *inspection, const char *why, struct own_answer *answer)
{
	inspect_request_record(inspection, DENIAL_MALFORMED, why);
	inspect_own_answer_set(answer, 400, "the gate does not pass on %s", why);
}

/* --- the host ----------------------------------------------------------------------------------------------- */

static bool is_for_this_host(const struct inspection *inspection, const struct http_head *head)
{
	const char *colon = memchr(head->host.bytes, ':', head->host.len);
	size_t len = colon ? (size_t)(colon - head->host.bytes) : head->host.len;
	char name[NET_NAME_SIZE], port[8];

	if (!net_name_clean(head->host.bytes, len, name) || strcmp(name, inspection->host) != 0)
		return false;
	snprintf(port, sizeof(port), "%u", inspection->port);
	return !colon || http_is((struct http_slice){colon + 1, head->host.len - len - 1}, port);
}

/* --- placeholders ------------------------------------------------------------------------------------------- */

enum secret_use inspect_request_look(const struct inspection *inspection, const struct http_header *header,
				     const struct secret **out)
{
	return inspect_secrets_look(&inspection->inspector->secrets, inspection->host, inspection->is_safe,
				    header->name, header->value, out);
}

static bool is_alone(const struct http_head *head, const struct http_header *header)
{
	size_t count = 0;

	for (size_t i = 0; i < head->header_count; i++)
		count += head->headers[i].name.len == header->name.len &&
			 !strncasecmp(head->headers[i].name.bytes, header->name.bytes, header->name.len);
	return count == 1;
}

static const struct secret *find_misplaced(const struct inspection *inspection, const struct http_head *head)
{
	const struct http_header target = {{"", 0}, head->target};
	const struct secret *secret;

	if (inspect_request_look(inspection, &target, &secret) != SECRET_NONE)
		return secret;
	for (size_t i = 0; i < head->header_count; i++) {
		enum secret_use use = inspect_request_look(inspection, &head->headers[i], &secret);
		const struct http_header name = {{"", 0}, head->headers[i].name};

		if (use == SECRET_MISPLACED || (use == SECRET_PUT && !is_alone(head, &head->headers[i])) ||
		    inspect_request_look(inspection, &name, &secret) != SECRET_NONE)
			return secret;
	}
	return NULL;
}

/* --- requests ----------------------------------------------------------------------------------------------- */

static void refuse_by_rule(const struct inspection *inspection, struct http_slice method, struct http_slice target,
			   const struct net_rule *rule, struct own_answer *answer)
{
	int method_len = (int)MIN_OF(method.len, (size_t)HTTP_METHOD_MAX);
	char detail[DENIAL_WHAT_SIZE];

	snprintf(detail, sizeof(detail), "%.*s %.*s", method_len, method.bytes, (int)MIN_OF(target.len, sizeof(detail)),
		 target.bytes);
	detail[strcspn(detail, "?")] = '\0';
	inspect_request_record(inspection, DENIAL_REQUEST, detail);
	inspect_own_answer_set(answer, 403, "%.*s %.*s is not allowed for %s by this jar's policy%s%s", method_len,
			       method.bytes, (int)MIN_OF(target.len, (size_t)256), target.bytes, inspection->host,
			       rule && rule->reason[0] ? ": " : "", rule ? rule->reason : "");
	answer->is_by_rule = true;
}

/*
 * Headers by which many servers take another method, or another path, than the first line has. What they say must be allowed
 * too: else a rule about methods would hold only for servers that do not know them.
 */
static const struct {
	const char *name;
	bool is_path;
} replacements[] = {
	{"X-HTTP-Method-Override", false}, {"X-HTTP-Method", false}, {"X-Method-Override", false},
	{"X-Original-URL", true},          {"X-Rewrite-URL", true},
};

static struct net_verdict decide(const struct inspection *inspection, struct http_slice method,
				 struct http_slice target)
{
	AUTO_TEXT method_text = {0}, target_text = {0};

	text_append(&method_text, method.bytes, method.len);
	text_append(&target_text, target.bytes, target.len);
	/* Without memory they are others: nothing is allowed then. */
	if (text_failed(&method_text) || text_failed(&target_text))
		return (struct net_verdict){false, NULL};
	return gate_rules_decide_request(inspection->gate, inspection->host, inspection->port,
					 text_string(&method_text), text_string(&target_text));
}

/* By what the first line says, and by what any header says in its place. What decided is in @method and @target. */
static struct net_verdict decide_all(const struct inspection *inspection, const struct http_head *head,
				     struct http_slice *method, struct http_slice *target)
{
	const struct http_slice said_method = *method, said_target = *target;
	struct net_verdict verdict = decide(inspection, said_method, said_target);

	for (size_t i = 0; i < head->header_count && verdict.is_allowed; i++) {
		const struct http_header *header = &head->headers[i];

		for (size_t j = 0; j < ARRAY_LEN(replacements) && verdict.is_allowed; j++) {
			if (!http_is(header->name, replacements[j].name))
				continue;
			*method = replacements[j].is_path ? said_method : header->value;
			*target = replacements[j].is_path ? header->value : said_target;
			verdict = decide(inspection, *method, *target);
		}
	}
	return verdict;
}

/* Of a request that would leave HTTP: only a WebSocket may. Plain HTTP goes on without what it is offered, as servers do. */
static const char *upgrade_fault(const struct inspection *inspection, const struct http_head *head)
{
	if (head->upgrade == HTTP_UPGRADE_WEBSOCKET)
		return inspect_websocket_request_fault(head);
	return head->upgrade == HTTP_UPGRADE_OTHER && inspection->client.ssl
		       ? "an upgrade to another protocol than WebSocket"
		       : NULL;
}

bool inspect_request_check(const struct inspection *inspection, const struct http_head *head, struct own_answer *answer)
{
	/* For the rules it is a method of its own: what passes afterwards is no request that could be looked at. */
	const char *word = head->upgrade == HTTP_UPGRADE_WEBSOCKET ? WEBSOCKET_METHOD : head->method;
	struct http_slice method = {word, strlen(word)}, target = head->target;
	const struct secret *misplaced;
	struct net_verdict verdict;

	if (!is_for_this_host(inspection, head)) {
		inspect_request_record(inspection, DENIAL_MALFORMED, "a Host header that is not the host");
		inspect_own_answer_set(answer, 421, "the Host header is not the host that this connection is for, %s",
				       inspection->host);
		return false;
	}
	if (inspection->failure[0]) {
		inspect_own_answer_set(answer, 502, "%s", inspection->failure);
		return false;
	}
	if (!strcmp(head->method, WEBSOCKET_METHOD) || upgrade_fault(inspection, head)) {
		inspect_request_refuse(inspection,
				       !strcmp(head->method, WEBSOCKET_METHOD) ? "a method that is a word of rules"
									       : upgrade_fault(inspection, head),
				       answer);
		return false;
	}
	verdict = decide_all(inspection, head, &method, &target);
	if (!verdict.is_allowed) {
		refuse_by_rule(inspection, method, target, verdict.rule, answer);
		return false;
	}
	misplaced = find_misplaced(inspection, head);
	if (!misplaced)
		return true;
	inspect_request_record(inspection, DENIAL_MALFORMED, "a placeholder of a secret where it may not stand");
	inspect_own_answer_set(
		answer, 403,
		"the placeholder of the secret %s may stand in the header %s of requests to %s over TLS, and "
		"nowhere else in the head of a request",
		misplaced->name, misplaced->header, misplaced->host);
	return false;
}

bool inspect_request_is_for_search(const struct inspection *inspection, const struct http_header *header)
{
	static const char *const names[] = {"Accept-Encoding", "Range", "If-Range", "Grpc-Accept-Encoding",
					    "Sec-WebSocket-Extensions"};

	for (size_t i = 0; i < ARRAY_LEN(names) && inspection->has_secret; i++)
		if (http_is(header->name, names[i]))
			return true;
	return false;
}

/* --- answers ------------------------------------------------------------------------------------------------ */

const char *inspect_answer_fault(const struct inspection *inspection, const struct http_head *head)
{
	if (!inspection->has_secret)
		return NULL;
	/* 226: what has changed since another answer, or a packed one. */
	if (head->status == 206 || head->status == 226)
		return "a part of an answer, in which a secret could not be found";
	for (size_t i = 0; i < head->header_count; i++) {
		const struct http_header *header = &head->headers[i];

		if ((http_is(header->name, "Content-Encoding") || http_is(header->name, "Grpc-Encoding")) &&
		    !http_is(header->value, "identity"))
			return "a compressed answer, in which a secret could not be found";
		if (http_is(header->name, "Sec-WebSocket-Extensions"))
			return "an extension of WebSocket, behind which a secret could not be found";
	}
	return NULL;
}
