/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inside/command.c - a command on its way into an existing jar: write it, map it, check it
 *
 * It is a header, fixed-size steps, and strings that each end with a NUL: targets of steps, argv, environment,
 * candidates. The reader checks everything, because a command may be able to reach the data.
 */
#include "inside/command.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/text.h"

#define SPEC_MAGIC UINT32_C(0x314a4c42)
#define SPEC_BYTES_MAX (64U << 20)
#define SPEC_STRINGS_MAX (8U << 20)
#define SPEC_STEPS_MAX 64
#define SPEC_SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

struct spec_header {
	uint32_t magic;
	uint32_t argv_count, env_count, candidate_count, step_count;
	uint32_t extra_count;
	uint32_t has_pty;
	uint32_t is_metered;
	struct winsize window;
	struct reap_time time;
};

struct spec_step {
	uint32_t kind;
	uint32_t flags;
	uint64_t has_target;
	union step_detail as; /* of steps that a command may do, which have no pointer there */
	uint64_t device, inode;
};

/* --- writing ------------------------------------------------------------------------------------------------ */

static void append_strings(struct text *out, const struct string_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		text_append(out, list->items[i], strlen(list->items[i]) + 1);
}

static void append_spec(struct text *out, const struct jar_plan *plan, bool is_metered,
			const struct jar_streams *streams)
{
	struct spec_header header = {
		.magic = SPEC_MAGIC,
		.argv_count = (uint32_t)plan->argv.count,
		.env_count = (uint32_t)plan->env.count,
		.candidate_count = (uint32_t)plan->candidates.count,
		.step_count = (uint32_t)plan->entry.count,
		.extra_count = (uint32_t)streams->extra_count,
		.has_pty = streams->has_pty,
		.is_metered = is_metered,
		.window = streams->window,
		.time = streams->time,
	};

	text_append(out, &header, sizeof(header));
	for (size_t i = 0; i < plan->entry.count; i++) {
		const struct plan_step *step = &plan->entry.items[i];
		struct spec_step written = {.kind = (uint32_t)step->kind,
					    .flags = step->flags,
					    .has_target = step->target != NULL,
					    .as = step->as,
					    .device = step->device,
					    .inode = step->inode};

		text_append(out, &written, sizeof(written));
	}
	for (size_t i = 0; i < plan->entry.count; i++)
		if (plan->entry.items[i].target)
			text_append(out, plan->entry.items[i].target, strlen(plan->entry.items[i].target) + 1);
	append_strings(out, &plan->argv);
	append_strings(out, &plan->env);
	append_strings(out, &plan->candidates);
}

int inside_command_write(const struct jar_plan *plan, bool is_metered, const struct jar_streams *streams,
			 struct text *out)
{
	append_spec(out, plan, is_metered, streams);
	return text_failed(out) ? -ENOMEM : 0;
}

int inside_command_file(struct text *spec)
{
	AUTO_CLOSE int fd = memfd_create("belljar", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int rc;

	if (fd < 0)
		return -errno;
	rc = text_write_all(fd, text_string(spec), spec->len);
	if (rc == 0 && fcntl(fd, F_ADD_SEALS, SPEC_SEALS) < 0)
		rc = -errno;
	return rc < 0 ? rc : take_fd(&fd);
}

/* --- reading ------------------------------------------------------------------------------------------------ */

struct reader {
	const char *at, *end;
};

static const void *next_bytes(struct reader *reader, size_t len)
{
	const void *bytes = reader->at;

	if (len > (size_t)(reader->end - reader->at))
		return NULL;
	reader->at += len;
	return bytes;
}

static const char *next_string(struct reader *reader)
{
	const char *string = reader->at;
	const char *nul = memchr(string, '\0', (size_t)(reader->end - string));

	if (!nul)
		return NULL;
	reader->at = nul + 1;
	return string;
}

static bool read_strings(struct reader *reader, char **out, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		out[i] = (char *)next_string(reader);
		if (!out[i])
			return false;
	}
	out[count] = NULL;
	return true;
}

static bool read_steps(struct reader *reader, struct plan_step *out, size_t count)
{
	const char *steps = next_bytes(reader, count * sizeof(struct spec_step));

	if (!steps)
		return false;
	for (size_t i = 0; i < count; i++) {
		struct spec_step step;

		memcpy(&step, steps + i * sizeof(step), sizeof(step));
		if (step.kind >= STEP_KIND_COUNT || !(inside_step_rows[step.kind].traits & STEP_MAY_ENTER) ||
		    step.flags & ~(uint32_t)STEP_UNPRIVILEGED)
			return false;
		out[i] = (struct plan_step){.kind = (enum step_kind)step.kind,
					    .flags = step.flags,
					    .as = step.as,
					    .device = (dev_t)step.device,
					    .inode = (ino_t)step.inode};
		if (step.has_target && !(out[i].target = next_string(reader)))
			return false;
		if (out[i].kind == STEP_WORKDIR && !out[i].target)
			return false;
	}
	return true;
}

static bool read_spec(struct reader *reader, const struct spec_header *header, void *memory,
		      struct jar_command *command)
{
	struct plan_step *steps = memory;
	char **argv = (char **)(steps + header->step_count);
	char **env = argv + header->argv_count + 1;
	char **candidates = env + header->env_count + 1;

	if (!read_steps(reader, steps, header->step_count) || !read_strings(reader, argv, header->argv_count) ||
	    !read_strings(reader, env, header->env_count) ||
	    !read_strings(reader, candidates, header->candidate_count) || reader->at != reader->end)
		return false;
	command->argv = argv;
	command->argv_count = header->argv_count;
	command->env = env;
	command->env_count = header->env_count;
	command->candidates = candidates;
	command->candidate_count = header->candidate_count;
	command->entry = (struct plan_step_list){.items = steps, .count = header->step_count};
	command->has_pty = header->has_pty;
	command->is_metered = header->is_metered;
	command->window = header->window;
	command->time = header->time;
	return true;
}

static bool is_sound(const struct spec_header *header, size_t fd_count)
{
	return header->magic == SPEC_MAGIC && header->argv_count > 0 && header->argv_count <= SPEC_STRINGS_MAX &&
	       header->env_count <= SPEC_STRINGS_MAX && header->candidate_count <= SPEC_STRINGS_MAX &&
	       header->step_count <= SPEC_STEPS_MAX && header->extra_count <= JAR_EXTRA_MAX && header->has_pty <= 1 &&
	       header->is_metered <= 1 && fd_count == header->extra_count + (header->has_pty ? 0 : JAR_STREAM_FDS);
}

int inside_command_parse(const char *bytes, size_t len, size_t fd_count, struct jar_command *command)
{
	struct reader reader = {.at = bytes, .end = bytes + len};
	const void *start = next_bytes(&reader, sizeof(struct spec_header));
	struct spec_header header;
	size_t lists_len;
	void *lists;

	if (!start)
		return -EBADMSG;
	memcpy(&header, start, sizeof(header));
	if (!is_sound(&header, fd_count))
		return -EBADMSG;
	lists_len = header.step_count * sizeof(struct plan_step) +
		    ((size_t)header.argv_count + header.env_count + header.candidate_count + 3) * sizeof(char *);
	lists = mmap(NULL, lists_len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (lists == MAP_FAILED)
		return -ENOMEM;
	if (!read_spec(&reader, &header, lists, command)) {
		munmap(lists, lists_len);
		return -EBADMSG;
	}
	command->spec = NULL;
	command->spec_len = 0;
	command->lists = lists;
	command->lists_len = lists_len;
	return 0;
}

int inside_command_map(int fd, size_t fd_count, struct jar_command *command)
{
	struct stat status;
	size_t len;
	char *file;
	int rc;

	if (fstat(fd, &status) < 0)
		return -errno;
	if (fcntl(fd, F_GET_SEALS) != SPEC_SEALS || status.st_size < (off_t)sizeof(struct spec_header) ||
	    status.st_size > (off_t)SPEC_BYTES_MAX)
		return -EBADMSG;
	len = (size_t)status.st_size;
	file = mmap(NULL, len, PROT_READ, MAP_PRIVATE, fd, 0);
	if (file == MAP_FAILED)
		return -errno;
	rc = inside_command_parse(file, len, fd_count, command);
	if (rc < 0) {
		munmap(file, len);
		return rc;
	}
	command->spec = file;
	command->spec_len = len;
	return 0;
}

void inside_command_done(struct jar_command *command)
{
	if (command->spec_len)
		munmap(command->spec, command->spec_len);
	if (command->lists_len)
		munmap(command->lists, command->lists_len);
	*command = (struct jar_command){0};
}
