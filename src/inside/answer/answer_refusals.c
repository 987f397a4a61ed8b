/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inside/answer/answer_refusals.c - which system calls were refused, how often, and to whom first
 *
 * A command can cause any number of refusals. The table has KINDS_MAX kinds; a repeated one is counted.
 */
#include "inside/answer/answer_refusals.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "inside/answer/answer.h"
#include "inside/answer/answer_trace.h"
#include "base/sys/calls.h"

#define KINDS_MAX 64

struct refusal {
	int number;
	uint64_t count, told, last_ns;
	char process[JAR_NAME_BYTES];
};

/* A supervisor serves one command, so these are of that command alone. */
static struct refusal refusals[KINDS_MAX + 1] = {[KINDS_MAX] = {.number = -1}};
static size_t refusal_count;

void answer_read_name(pid_t pid, char name[JAR_NAME_BYTES])
{
	AUTO_CLOSE int fd = -1;
	char path[32];
	ssize_t len;

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	fd = sys_open(path, O_RDONLY);
	len = fd < 0 ? 0 : read(fd, name, JAR_NAME_BYTES - 1);
	name[len > 0 && name[len - 1] == '\n' ? len - 1 : MAX_OF(len, 0)] = '\0';
}

void answer_note_refusal(const struct answer_question *question)
{
	size_t i = 0;

	while (i < refusal_count && refusals[i].number != question->number)
		i++;
	if (i == refusal_count && i < KINDS_MAX) {
		refusals[i].number = question->number;
		answer_read_name(question->pid, refusals[i].process);
		refusal_count++;
	}
	refusals[i].count++;
	refusals[i].last_ns = sys_monotonic_ns();
}

bool answer_next_refusal(struct jar_message *message, bool is_end)
{
	for (size_t i = 0; i <= KINDS_MAX; i++) {
		struct refusal *refusal = &refusals[i];

		if (refusal->count == refusal->told || (refusal->told && !is_end))
			continue;
		*message = (struct jar_message){
			.kind = JAR_DENIED,
			.denied = {.count = refusal->count, .last_ns = refusal->last_ns, .number = refusal->number}};
		memcpy(message->denied.process, refusal->process, sizeof(refusal->process));
		refusal->told = refusal->count;
		return true;
	}
	return answer_next_attempt(message, is_end);
}
