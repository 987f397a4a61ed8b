/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/jar/jar_send.c - what the engine sends to the first process of a session, and to minders
 */
#include "engine/jar/jar_send.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "inside/command.h"

int jar_send_run(int control_fd, const struct jar_plan *plan, bool is_metered, bool is_detached,
		 const struct jar_streams *streams)
{
	struct jar_message message = {.kind = JAR_RUN, .run = {.is_detached = is_detached}};
	AUTO_CLOSE int spec_fd = -1;
	AUTO_TEXT spec = {0};
	int fds[JAR_ATTACHED_MAX];
	size_t count = 0;
	int rc = inside_command_write(plan, is_metered, streams, &spec);

	if (rc < 0)
		return rc;
	if (streams->extra_count > JAR_EXTRA_MAX)
		return -E2BIG;
	if (spec.len > JAR_TEXT_MAX) {
		spec_fd = inside_command_file(&spec);
		if (spec_fd < 0)
			return spec_fd;
		message.run.has_file = 1;
		fds[count++] = spec_fd;
	}
	if (!streams->has_pty) {
		fds[count++] = streams->stdin_fd;
		fds[count++] = streams->stdout_fd;
		fds[count++] = streams->stderr_fd;
	}
	for (size_t i = 0; i < streams->extra_count; i++)
		fds[count++] = streams->extra_fds[i];
	return control_send_all(control_fd, &message, text_string(&spec), message.run.has_file ? 0 : spec.len, fds,
				count);
}

int jar_send_minder(int control_fd, uint32_t number, int minder_end, const int *cgroup_fds, size_t cgroup_count)
{
	struct jar_message message = {.kind = JAR_MINDER, .minder = {.number = number}};
	int fds[JAR_ATTACHED_MAX];

	if (cgroup_count > JAR_ATTACHED_MAX - 1)
		return -E2BIG;
	fds[0] = minder_end;
	for (size_t i = 0; i < cgroup_count; i++)
		fds[i + 1] = cgroup_fds[i];
	return control_send_all(control_fd, &message, NULL, 0, fds, cgroup_count + 1);
}
