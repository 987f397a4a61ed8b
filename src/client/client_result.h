/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/client_result.h - the result of a run
 */
#ifndef BELLJAR_CLIENT_CLIENT_RESULT_H
#define BELLJAR_CLIENT_CLIENT_RESULT_H

#include "client/client.h"

struct client_denial {
	char *members[BELLJAR_DENIED_SENTENCE + 1]; /* NULL: there is none */
	uint64_t count;
};

struct belljar_result {
	struct text streams[2]; /* kept bytes of stdout and stderr */
	char *json;
	enum belljar_outcome outcome;
	char *result_outcome_name;
	char *rung;
	int exit_code;
	int signal;
	bool is_truncated;
	struct string_list limits;
	struct client_denial *denials;
	size_t denial_count;
	uint64_t usage[BELLJAR_PEAK_PROCESSES + 1];
};

/* Append a piece of kept output; checks @stream. */
int client_result_append(struct belljar_result *result, int stream, const char *bytes, size_t len,
			 struct belljar_error *failure);
/* Read the result object. A run that never started is a failure. */
int client_result_read(struct belljar_result *result, const char *json, size_t len, struct belljar_error *failure);

#endif
