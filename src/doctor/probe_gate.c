/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor/probe_gate.c - what a gate, through which a jar reaches hosts, can do here
 */
#include "doctor/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "survey/survey.h"
#include "survey/survey_trust.h"
#include "plan/plan_gate.h"
#include "base/sys/calls.h"

#define ANSWER_BYTES 8192
#define FILE_BYTES 16384
#define VERSION_MS 5000

/* Send messages, and read @awaited acknowledgements: 0 or a negative errno. */
static int exchange(int fd, const struct text *messages, uint64_t awaited)
{
	_Alignas(struct nlmsghdr) char answer[ANSWER_BYTES];

	if (send(fd, messages->data, messages->len, 0) < 0)
		return -errno;
	while (awaited) {
		ssize_t len = recv(fd, answer, sizeof(answer), 0);

		if (len < 0)
			return -errno;
		for (struct nlmsghdr *at = (void *)answer; NLMSG_OK(at, (size_t)len); at = NLMSG_NEXT(at, len)) {
			const struct nlmsgerr *result = NLMSG_DATA(at);

			if (at->nlmsg_type == NLMSG_ERROR && result->error)
				return result->error;
			awaited -= at->nlmsg_type == NLMSG_ERROR && awaited;
		}
	}
	return 0;
}

/* In a network of its own, which is gone with this child. */
static void try_nf_tables(struct finding *finding)
{
	AUTO_CLOSE int fd = -1;
	AUTO_TEXT messages = {0};
	uint64_t awaited = plan_gate_sample(&messages);
	int rc = unshare(CLONE_NEWNET | (geteuid() ? CLONE_NEWUSER : 0)) < 0 ? -errno : 0;

	if (rc == 0) {
		fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);
		rc = fd < 0 ? -errno : exchange(fd, &messages, awaited);
	}
	finding->is_found = rc == 0;
	doctor_finding_value(finding, "%s", rc < 0 ? strerror(-rc) : "with tproxy");
}

void probe_nf_tables(struct finding *finding)
{
	doctor_finding_in_child(finding, try_nf_tables);
	if (!finding->is_found)
		doctor_finding_remedy(
			finding, "load the kernel modules nf_tables and nft_tproxy; without them a gate has at most 24 "
				 "ports, which servers in the jar cannot use\n");
}

void probe_ipv6(struct finding *finding)
{
	AUTO_CLOSE int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);

	finding->is_found = fd >= 0;
	doctor_finding_value(finding, "%s", fd < 0 ? strerror(errno) : "sockets can be made");
}

void probe_name_servers(struct finding *finding)
{
	char content[FILE_BYTES];
	unsigned count = 0;

	if (sys_read_file(AT_FDCWD, "/etc/resolv.conf", content, sizeof(content)) < 0)
		content[0] = '\0';
	for (const char *line = content; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		count += !strncmp(line, "nameserver", 10) && strchr(" \t", line[10]) && line[10];
	}
	finding->is_found = count > 0;
	if (count)
		doctor_finding_value(finding, "%u in /etc/resolv.conf", count);
	else
		doctor_finding_value(finding, "none in /etc/resolv.conf: Belljar asks 127.0.0.1");
	if (!count)
		doctor_finding_remedy(finding, "name a server in /etc/resolv.conf, or run one on 127.0.0.1\n");
}

/* Read the program's version, one line; empty: it does not run. */
static void ask_version(const char *program, char *out, size_t size)
{
	char *const arguments[] = {(char *)program, (char *)"--version", NULL}, *const environment[] = {NULL};
	struct pollfd answer = {.events = POLLIN};
	posix_spawn_file_actions_t actions;
	int fds[2], status;
	ssize_t len = 0;
	pid_t pid = -1;

	out[0] = '\0';
	if (pipe2(fds, O_CLOEXEC) < 0)
		return;
	if (posix_spawn_file_actions_init(&actions) == 0) {
		if (posix_spawn_file_actions_adddup2(&actions, fds[1], STDOUT_FILENO) ||
		    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0) ||
		    posix_spawn(&pid, program, &actions, NULL, arguments, environment))
			pid = -1;
		posix_spawn_file_actions_destroy(&actions);
	}
	close(fds[1]);
	answer.fd = fds[0];
	if (pid > 0 && poll(&answer, 1, VERSION_MS) == 1)
		len = read(fds[0], out, size - 1);
	out[len > 0 ? len : 0] = '\0';
	out[strcspn(out, "\n")] = '\0';
	close(fds[0]);
	if (pid > 0) {
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
	}
}

void probe_inspecting_gate(struct finding *finding)
{
	static const char expected[] = "belljar-gate " BELLJAR_VERSION " ";
	struct host host = {.environment = environ};
	char said[128];

	if (survey_trust(&host) < 0 || !host.trust.program) {
		doctor_finding_value(finding, "not installed");
	} else {
		ask_version(host.trust.program, said, sizeof(said));
		finding->is_found = !strncmp(said, expected, strlen(expected));
		/* Show the version of OpenSSL, for administrators who follow its security updates. */
		doctor_finding_value(finding, "%s: %s", host.trust.program, said[0] ? said : "it does not run here");
	}
	if (!finding->is_found)
		doctor_finding_remedy(
			finding,
			"install belljar-gate " BELLJAR_VERSION
			"; the packages for Python and Node include it (glibc 2.34 or later). In Belljar's source: ./dev "
			"build library && meson install -C build/lib\n");
	survey_trust_done(&host.trust);
}
