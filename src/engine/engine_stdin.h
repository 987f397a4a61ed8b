/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/engine_stdin.h - which descriptor a command may have as standard input, and which must be relayed
 */
#ifndef BELLJAR_ENGINE_ENGINE_STDIN_H
#define BELLJAR_ENGINE_ENGINE_STDIN_H

#include "engine/engine.h"
#include "survey/survey.h"

struct engine_input {
	int direct_fd; /* for the command as it is; -1: relayed */
	int relay_fd;  /* -1: direct */
	int opened_fd; /* opened here, and closed by engine_input_done(); -1: none */
	bool is_terminal;
	struct host_path found; /* of a file that the caller named: where it is, and the links on the way there */
};

int engine_input_open(const struct engine_request *request, struct engine_input *out, struct error *error);
void engine_input_done(struct engine_input *input);

#endif
