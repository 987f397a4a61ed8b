/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/cli/parent.c - the process that started Belljar, for --die-with-parent
 *
 * Not PR_SET_PDEATHSIG: that signal comes when the thread ends that forked, and is lost where the parent was gone before.
 */
#include "door/cli/parent.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/base.h"

static int refuse_gone(struct error *error)
{
	error_set(error, STAGE_HOST, ESRCH, "the process that started Belljar is gone already; nothing was run");
	return error_hint(error, "leave --die-with-parent out if Belljar may outlive its parent");
}

/*
 * Report whether the original parent died before this check, so that the kernel gave this process to init or a
 * subreaper. The kernel does not report this. But a child starts in its parent's session: if it is in neither its
 * parent's session nor one of its own, it has another parent now. If it began a session after that, it looks like a
 * service of init; accept it.
 */
static bool is_handed_on(pid_t parent)
{
	pid_t session = getsid(0);

	return session != getpid() && session != getsid(parent);
}

int cli_parent_open(int *fd_out, struct error *error)
{
	pid_t parent = getppid();
	AUTO_CLOSE int fd = -1;

	if (parent == 0) {
		error_set(error, STAGE_HOST, ESRCH, "the process that started Belljar is in another pid namespace");
		return error_hint(error, "Belljar cannot see it end from here: leave --die-with-parent out");
	}
	fd = (int)syscall(SYS_pidfd_open, parent, 0U);
	/* It is still the parent: so the descriptor is not of another process that got its pid since. */
	if (getppid() != parent || is_handed_on(parent))
		return refuse_gone(error);
	if (fd < 0) {
		error_set(error, STAGE_HOST, errno, "cannot watch the process that started Belljar: %s",
			  strerror(errno));
		return error_hint(error, "--die-with-parent needs pidfd_open(2): Linux 5.3, allowed by the container");
	}
	*fd_out = take_fd(&fd);
	return 0;
}
