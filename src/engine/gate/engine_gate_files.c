/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/gate/engine_gate_files.c - read for a gate what the host's files say of names
 *
 * A gate's process has no files. The engine reads these two before the process starts, and when it asks for them: they may be
 * other files by then, since programs that configure a network put new ones in their place.
 */
#include <fcntl.h>
#include <unistd.h>

#include "engine/gate/engine_gate_parts.h"

#define CONFIGURATION_SIZE (16 << 10)

/* Read a file; an unreadable one gives an empty text. */
static void read_text(const char *path, char *text, size_t size)
{
	/* Never block, whatever kind of file this is. */
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	ssize_t len = fd < 0 ? 0 : read(fd, text, size - 1);

	text[len < 0 ? 0 : len] = '\0';
}

void engine_gate_files_read(struct gate_page *page)
{
	struct resolver_servers servers;
	char text[CONFIGURATION_SIZE];

	read_text("/etc/hosts", page->hosts_text, sizeof(page->hosts_text));
	read_text("/etc/resolv.conf", text, sizeof(text));
	/* Not in the page, which the process could write to meanwhile. */
	gate_resolver_read_configuration(text, &servers);
	page->servers = servers;
}
