/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate/inspect/inspect_websocket.h - the handshake after which a connection is no longer HTTP
 *
 * Pure. A server that has not understood the request must not be able to make the gate believe that it has. A client
 * must not be able to bypass inspection with any other request.
 */
#ifndef BELLJAR_GATE_INSPECT_INSPECT_WEBSOCKET_H
#define BELLJAR_GATE_INSPECT_INSPECT_WEBSOCKET_H

#include "base/http.h"

/* The name of such a request in rules. */
#define WEBSOCKET_METHOD "WEBSOCKET"
/* 16 bytes, 20 bytes, in base 64, and a NUL. */
#define WEBSOCKET_KEY_SIZE 25
#define WEBSOCKET_ACCEPT_SIZE 29

/* Return what is wrong with a head with HTTP_UPGRADE_WEBSOCKET; NULL: nothing. */
const char *inspect_websocket_request_fault(const struct http_head *head);
/* Compute the value that the server must answer with. False: the library refuses. */
bool inspect_websocket_accept(const struct http_head *head, char out[WEBSOCKET_ACCEPT_SIZE]);
/* Return what is wrong with an answer with status 101; NULL: nothing. */
const char *inspect_websocket_answer_fault(const struct http_head *head, const char *accept);

#endif
