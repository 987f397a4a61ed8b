/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate/inspect/inspect_websocket.c - the handshake after which a connection is no longer HTTP
 */
#include "gate/inspect/inspect_websocket.h"

#include <openssl/evp.h>
#include <string.h>

/* From RFC 6455: a server that knows it knows WebSocket. */
#define ACCEPT_TEXT "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

/* The value of a header that is there once; one without bytes: it is not. */
static struct http_slice find_one(const struct http_head *head, const char *name)
{
	struct http_slice found = {"", 0};
	size_t count = 0;

	for (size_t i = 0; i < head->header_count; i++)
		if (http_is(head->headers[i].name, name)) {
			found = head->headers[i].value;
			count++;
		}
	return count == 1 ? found : (struct http_slice){"", 0};
}

static bool is_key(struct http_slice key)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	if (key.len != WEBSOCKET_KEY_SIZE - 1 || memcmp(key.bytes + key.len - 2, "==", 2) != 0)
		return false;
	for (size_t i = 0; i < key.len - 2; i++)
		if (!memchr(digits, key.bytes[i], sizeof(digits) - 1))
			return false;
	return true;
}

const char *inspect_websocket_request_fault(const struct http_head *head)
{
	if (strcmp(head->method, "GET") != 0 || head->body_kind != HTTP_BODY_NONE || !head->is_upgrade_meant ||
	    head->is_last || !http_is(find_one(head, "Sec-WebSocket-Version"), "13") ||
	    !is_key(find_one(head, "Sec-WebSocket-Key")))
		return "an invalid request for a WebSocket";
	return NULL;
}

bool inspect_websocket_accept(const struct http_head *head, char out[WEBSOCKET_ACCEPT_SIZE])
{
	struct http_slice key = find_one(head, "Sec-WebSocket-Key");
	char text[WEBSOCKET_KEY_SIZE + sizeof(ACCEPT_TEXT)];
	unsigned char hash[EVP_MAX_MD_SIZE];
	unsigned hash_len = 0;

	if (!is_key(key))
		return false;
	memcpy(text, key.bytes, key.len);
	memcpy(text + key.len, ACCEPT_TEXT, sizeof(ACCEPT_TEXT) - 1);
	if (!EVP_Digest(text, key.len + sizeof(ACCEPT_TEXT) - 1, hash, &hash_len, EVP_sha1(), NULL))
		return false;
	return EVP_EncodeBlock((unsigned char *)out, hash, (int)hash_len) == WEBSOCKET_ACCEPT_SIZE - 1;
}

const char *inspect_websocket_answer_fault(const struct http_head *head, const char *accept)
{
	struct http_slice said = find_one(head, "Sec-WebSocket-Accept");

	if (head->upgrade != HTTP_UPGRADE_WEBSOCKET || !head->is_upgrade_meant || said.len != strlen(accept) ||
	    memcmp(said.bytes, accept, said.len) != 0)
		return "a change to a protocol other than WebSocket";
	return NULL;
}
