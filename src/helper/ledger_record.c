/* SPDX-License-Identifier: Apache-2.0 */
/*
 * helper/ledger_record.c - the helper's reports to the engine: one packet for each denial
 *
 * The helper reads names that a command chose, so the engine does not trust it and refuses malformed packets.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/descriptors.h"
#include "helper/ledger_look.h"

#define TEXT_MAX 4096
#define TEXT_COUNT 5

struct record {
	uint32_t word, kind, access, port;
	uint64_t count, last_ns;
	char process[DENIAL_PROCESS_SIZE];
	char what[DENIAL_WHAT_SIZE];
};

struct denial_path *helper_ledger_path(enum plan_access access, const char *const texts[TEXT_COUNT])
{
	struct denial_path *path;
	size_t len = sizeof(*path);
	char *at;

	for (size_t i = 0; i < TEXT_COUNT; i++)
		len += strlen(texts[i]) + 1;
	path = malloc(len);
	if (!path)
		return NULL;
	path->access = access;
	at = (char *)(path + 1);
	for (size_t i = 0; i < TEXT_COUNT; i++) {
		const char **members[] = {&path->path, &path->why, &path->flag, &path->policy, &path->warning};

		*members[i] = at;
		at = stpcpy(at, texts[i]) + 1;
	}
	return path;
}

int helper_ledger_send(int socket_fd, enum ledger_word word, const struct denial *denial)
{
	struct record record = {.word = (uint32_t)word};
	struct iovec parts[1 + TEXT_COUNT] = {{.iov_base = &record, .iov_len = sizeof(record)}};
	size_t count = 1;

	if (denial) {
		record.kind = (uint32_t)denial->kind;
		record.port = denial->port;
		record.count = denial->count;
		record.last_ns = denial->last_ns;
		memcpy(record.process, denial->process, sizeof(record.process));
		memcpy(record.what, denial->what, sizeof(record.what));
	}
	if (denial && denial->path) {
		const struct denial_path *path = denial->path;
		const char *texts[] = {path->path, path->why, path->flag, path->policy, path->warning};

		record.access = (uint32_t)path->access;
		for (; count <= TEXT_COUNT; count++)
			parts[count] = (struct iovec){.iov_base = (void *)texts[count - 1],
						      .iov_len = strlen(texts[count - 1]) + 1};
	}
	return (int)MIN_OF(descriptors_send(socket_fd, parts, count, NULL, 0, 0), 0);
}

/* Five texts, each with its end. */
static int read_texts(const char *bytes, size_t len, enum plan_access access, struct denial *denial)
{
	const char *texts[TEXT_COUNT];

	for (size_t i = 0; i < TEXT_COUNT; i++) {
		const char *end = memchr(bytes, '\0', len);

		if (!end || (size_t)(end - bytes) > TEXT_MAX)
			return -EPROTO;
		texts[i] = bytes;
		len -= (size_t)(end - bytes) + 1;
		bytes = end + 1;
	}
	denial->path = helper_ledger_path(access, texts);
	return denial->path ? 1 : -ENOMEM;
}

int helper_ledger_receive(int socket_fd, enum ledger_word *word, struct denial *denial)
{
	struct record record = {0};
	char texts[TEXT_COUNT * (TEXT_MAX + 1)];
	struct iovec parts[] = {{.iov_base = &record, .iov_len = sizeof(record)},
				{.iov_base = texts, .iov_len = sizeof(texts)}};
	struct descriptors none;
	ssize_t len = descriptors_receive(socket_fd, parts, ARRAY_LEN(parts), 0, &none);

	if (len <= 0)
		return (int)len;
	if ((size_t)len < sizeof(record) || none.flags & MSG_TRUNC || record.access >= PLAN_ACCESS_COUNT ||
	    (record.kind != DENIAL_FILE && record.kind != DENIAL_NET))
		return -EPROTO;
	*word = record.word == LEDGER_ANEW ? LEDGER_ANEW : LEDGER_FOUND;
	*denial = (struct denial){.kind = (enum denial_kind)record.kind,
				  .port = (uint16_t)record.port,
				  .count = record.count,
				  .last_ns = record.last_ns,
				  .is_inferred = true};
	snprintf(denial->process, sizeof(denial->process), "%.*s", (int)sizeof(record.process) - 1, record.process);
	snprintf(denial->what, sizeof(denial->what), "%.*s", (int)sizeof(record.what) - 1, record.what);
	if (*word == LEDGER_ANEW || denial->kind != DENIAL_FILE)
		return 1;
	return read_texts(texts, (size_t)len - sizeof(record), (enum plan_access)record.access, denial);
}
