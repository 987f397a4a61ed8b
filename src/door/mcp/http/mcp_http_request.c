/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/mcp/http/mcp_http_request.c - check whether a request may be served
 *
 * Every program of this machine can connect to a port of the loopback address. A page in a browser can too, if its own
 * host name resolves to this address (DNS rebinding). So the server checks Host, Origin and the token. Headers that
 * repeat parts of the body must agree with it: a proxy may have decided by the headers.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "door/mcp/http/mcp_http.h"

enum code { CODE_REQUEST = -32600, CODE_PARAMS = -32602, CODE_HEADERS = -32020, CODE_SERVER = -32000 };

static struct mcp_verdict refuse(int status, int code, const char *why)
{
	return (struct mcp_verdict){status, code, why};
}

static bool is_text(struct http_slice slice, const char *string)
{
	return slice.len == strlen(string) && !memcmp(slice.bytes, string, slice.len);
}

int mcp_find_header(const struct http_head *head, const char *name, struct http_slice *out)
{
	int count = 0;

	*out = (struct http_slice){0};
	for (size_t i = 0; i < head->header_count; i++)
		if (http_is(head->headers[i].name, name)) {
			*out = head->headers[i].value;
			count++;
		}
	return count > 1 ? -EINVAL : count;
}

/* Headers that decide something, and would decide it twice. */
static const char *const single[] = {"Authorization",        "Origin",     "Content-Type", "Accept", "Mcp-Session-Id",
				     "MCP-Protocol-Version", "Mcp-Method", "Mcp-Name",     "Expect"};

static bool has_repeated_header(const struct http_head *head)
{
	struct http_slice value;

	for (size_t i = 0; i < ARRAY_LEN(single); i++)
		if (mcp_find_header(head, single[i], &value) < 0)
			return true;
	return false;
}

/* --- where it comes from ------------------------------------------------------------------------------------ */

/* One of the names of this machine for itself, with our port. */
static bool is_own_host(struct http_slice host, uint16_t port)
{
	static const char *const names[] = {"127.0.0.1", "localhost"};
	char own[32];

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		snprintf(own, sizeof(own), "%s:%u", names[i], port);
		if (http_is(host, own))
			return true;
	}
	return false;
}

static bool is_own_origin(struct http_slice origin, uint16_t port)
{
	static const char scheme[] = "http://";
	size_t len = sizeof(scheme) - 1;

	return origin.len > len && !memcmp(origin.bytes, scheme, len) &&
	       is_own_host((struct http_slice){origin.bytes + len, origin.len - len}, port);
}

/* Takes as long however much of it is right. */
static bool is_secret(struct http_slice given, const char *secret)
{
	size_t len = strlen(secret);
	volatile unsigned char difference = given.len != len;

	for (size_t i = 0; i < given.len; i++)
		difference = difference | (unsigned char)(given.bytes[i] ^ secret[i % len]);
	return difference == 0;
}

static bool shows_token(const struct http_head *head, const char *token)
{
	static const char scheme[] = "Bearer ";
	size_t len = sizeof(scheme) - 1;
	struct http_slice value;

	return mcp_find_header(head, "Authorization", &value) > 0 && value.len > len &&
	       http_is((struct http_slice){value.bytes, len}, scheme) &&
	       is_secret((struct http_slice){value.bytes + len, value.len - len}, token);
}

static struct http_slice without_parameters(struct http_slice value)
{
	const char *semicolon = memchr(value.bytes, ';', value.len);

	if (semicolon)
		value.len = (size_t)(semicolon - value.bytes);
	while (value.len && (value.bytes[value.len - 1] == ' ' || value.bytes[value.len - 1] == '\t'))
		value.len--;
	return value;
}

bool mcp_accepts(const struct http_head *head, const char *type)
{
	struct http_slice list, word;
	char all[32];

	if (mcp_find_header(head, "Accept", &list) <= 0)
		return true; /* without the header the client takes anything */
	snprintf(all, sizeof(all), "%.*s/*", (int)strcspn(type, "/"), type);
	while (http_next_word(&list, &word)) {
		word = without_parameters(word);
		if (http_is(word, type) || http_is(word, all) || http_is(word, "*/*"))
			return true;
	}
	return false;
}

static struct mcp_verdict judge_post(const struct http_head *head)
{
	struct http_slice type;

	if (mcp_find_header(head, "Content-Type", &type) <= 0 || !http_is(without_parameters(type), "application/json"))
		return refuse(415, CODE_REQUEST, "the Content-Type must be application/json");
	if (!mcp_accepts(head, "application/json") && !mcp_accepts(head, "text/event-stream"))
		return refuse(406, CODE_REQUEST, "answers are application/json or text/event-stream");
	if (head->body_kind == HTTP_BODY_NONE)
		return refuse(400, CODE_REQUEST, "there is no body");
	if (head->body_kind == HTTP_BODY_LENGTH && head->body_bytes > MCP_LINE_MAX)
		return refuse(413, CODE_REQUEST, "the request is too long");
	return refuse(0, 0, NULL);
}

struct mcp_verdict mcp_judge_head(const struct mcp_http *http, const struct http_head *head, bool *has_token)
{
	struct http_slice value;

	*has_token = false;
	if (has_repeated_header(head))
		return refuse(400, CODE_REQUEST, "a header occurs twice that may occur only once");
	if (!is_own_host(head->host, http->port))
		return refuse(403, CODE_SERVER, "the Host is not this server's");
	if (mcp_find_header(head, "Origin", &value) > 0 && !is_own_origin(value, http->port))
		return refuse(403, CODE_SERVER, "pages of other origins are not served");
	if (!is_text(head->target, MCP_HTTP_PATH))
		return refuse(404, CODE_SERVER, "there is only " MCP_HTTP_PATH);
	if (!shows_token(head, http->token))
		return refuse(401, CODE_SERVER, "the request does not show the token: 'Authorization: Bearer TOKEN'");
	*has_token = true;
	if (head->upgrade != HTTP_UPGRADE_NONE)
		return refuse(400, CODE_REQUEST, "there is no other protocol here");
	if (!strcmp(head->method, "POST"))
		return judge_post(head);
	if (strcmp(head->method, "GET") != 0 && strcmp(head->method, "DELETE") != 0)
		return refuse(405, CODE_SERVER, "only POST, GET and DELETE are served");
	if (head->body_kind != HTTP_BODY_NONE)
		return refuse(400, CODE_REQUEST, "a request of this method has no body");
	if (!strcmp(head->method, "GET") && !mcp_accepts(head, "text/event-stream"))
		return refuse(406, CODE_REQUEST, "a GET is answered with text/event-stream");
	return refuse(0, 0, NULL);
}

/* --- what it says ------------------------------------------------------------------------------------------- */

static const struct json_value *member_of(const struct json_value *object, const char *name)
{
	const struct json_member *member = object && object->type == JSON_OBJECT ? json_find(object, name) : NULL;

	return member ? &member->value : NULL;
}

/* As it is, or where it cannot stand in a header, "=?base64?...?=". */
static bool is_name(struct http_slice header, const char *name)
{
	AUTO_TEXT encoded = {0};

	text_append_string(&encoded, "=?base64?");
	if (header.len > encoded.len && !memcmp(header.bytes, encoded.data, encoded.len)) {
		base64_append(&encoded, name, strlen(name));
		text_append_string(&encoded, "?=");
		return is_text(header, text_string(&encoded));
	}
	return is_text(header, name);
}

/* The member of the params that the Mcp-Name of a method repeats. */
static const struct {
	const char *method, *member;
} named[] = {{"tools/call", "name"}, {"prompts/get", "name"}, {"resources/read", "uri"}};

static struct mcp_verdict judge_modern(const struct http_head *head, const char *method,
				       const struct json_value *params, const struct json_value *version)
{
	struct http_slice value;

	if (mcp_find_header(head, "MCP-Protocol-Version", &value) <= 0)
		return refuse(400, CODE_HEADERS, "the header MCP-Protocol-Version is missing");
	if (!version || version->type != JSON_STRING)
		return refuse(400, CODE_PARAMS, "_meta must name the version of the protocol");
	if (!is_text(value, version->string.bytes))
		return refuse(400, CODE_HEADERS, "MCP-Protocol-Version is not the version in _meta");
	if (mcp_find_header(head, "Mcp-Method", &value) <= 0 || !is_text(value, method))
		return refuse(400, CODE_HEADERS, "the header Mcp-Method must be there, and be the request's method");
	for (size_t i = 0; i < ARRAY_LEN(named); i++) {
		const struct json_value *name = member_of(params, named[i].member);

		if (!strcmp(method, named[i].method) &&
		    (mcp_find_header(head, "Mcp-Name", &value) <= 0 || !name || name->type != JSON_STRING ||
		     !is_name(value, name->string.bytes)))
			return refuse(400, CODE_HEADERS,
				      "the header Mcp-Name must be there, and be what the request names");
	}
	if (!strcmp(version->string.bytes, MCP_MODERN_VERSION) && !mcp_tells_capabilities(params))
		return refuse(400, CODE_PARAMS, MCP_NO_CAPABILITIES);
	return refuse(0, 0, NULL);
}

static struct mcp_verdict judge_older(const struct http_head *head, const struct mcp_message *message)
{
	struct http_slice value;

	if (mcp_find_header(head, "MCP-Protocol-Version", &value) > 0 &&
	    !mcp_is_handshake_version(value.bytes, value.len))
		return refuse(400, CODE_SERVER, "Unsupported protocol version in MCP-Protocol-Version");
	if (!message->session_id.len && !message->is_initialize)
		return refuse(400, CODE_SERVER, "the header Mcp-Session-Id is missing; initialize begins a session");
	return refuse(0, 0, NULL);
}

/* Find the jar of a tool call, to pass the call to the jar's process, which checks the arguments. */
static void find_jar(const char *method, const struct json_value *params, struct mcp_message *out)
{
	const struct json_value *name = member_of(params, "name");
	const struct json_value *jar = member_of(member_of(params, "arguments"), "jar");

	if (strcmp(method, "tools/call") != 0)
		return;
	out->opens_jar = name && name->type == JSON_STRING && !strcmp(name->string.bytes, "jar_open");
	if (jar && jar->type == JSON_STRING)
		out->jar = (struct http_slice){jar->string.bytes, strlen(jar->string.bytes)};
}

struct mcp_verdict mcp_judge_message(const struct http_head *head, const struct json_value *document,
				     struct mcp_message *out)
{
	const struct json_value *method = member_of(document, "method"), *params = member_of(document, "params");
	const struct json_value *version = member_of(member_of(params, "_meta"), MCP_META "protocolVersion");
	const struct json_value *id = member_of(document, "id");
	bool is_answer = member_of(document, "result") || member_of(document, "error");
	struct http_slice value;

	*out = (struct mcp_message){.kind = KIND_NOTIFICATION};
	if (document->type != JSON_OBJECT)
		return refuse(400, CODE_REQUEST, "one request at a time, as an object");
	if (method ? method->type != JSON_STRING : !is_answer)
		return refuse(400, CODE_REQUEST, "this is not a request of JSON-RPC 2.0");
	if (id && id->type != JSON_STRING && id->type != JSON_INTEGER && id->type != JSON_REAL)
		return refuse(400, CODE_REQUEST, "the id must be a string or a number");
	if (method && id)
		out->kind = KIND_REQUEST;
	out->is_modern = version || (mcp_find_header(head, "MCP-Protocol-Version", &value) > 0 &&
				     is_text(value, MCP_MODERN_VERSION));
	if (out->is_modern && out->kind == KIND_REQUEST) {
		find_jar(method->string.bytes, params, out);
		return judge_modern(head, method->string.bytes, params, version);
	}
	if (out->is_modern)
		return refuse(0, 0, NULL);
	out->is_initialize = out->kind == KIND_REQUEST && !strcmp(method->string.bytes, "initialize");
	mcp_find_header(head, "Mcp-Session-Id", &out->session_id);
	return judge_older(head, out);
}
