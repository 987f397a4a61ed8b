/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/gate/engine_gate.c - the engine's side of a gate
 *
 * The process is this program, started anew. A copy of the engine would have the caller's environment and the
 * secrets of all runs in its memory.
 */
#include "engine/gate/engine_gate.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "engine/gate/engine_gate_parts.h"
#include "base/sys/calls.h"

/* The longest time that the process takes, and a little more. */
#define FINISH_NS 1300000000ULL
/* A command that ends before this time without using its network needs no process. */
#define START_NS 20000000ULL
#define MESSAGES_PER_TURN 64
/* Control socket, page, the jar's sockets, the vault, sockets of the host's. */
#define GATE_FDS_MAX (JAR_SOCKETS_MAX + 3 + PUBLISH_MAX)

/* --- starting ----------------------------------------------------------------------------------------------- */

static int make_page(struct gate *gate)
{
	const struct plan_gate *wanted = &gate->plan->gate;

	gate->page_len = sizeof(*gate->page) + wanted->rules.count * sizeof(*wanted->rules.items);
	gate->page_fd = memfd_create("gate", MFD_CLOEXEC);
	if (gate->page_fd < 0 || ftruncate(gate->page_fd, (off_t)gate->page_len) < 0)
		return -errno;
	gate->page = mmap(NULL, gate->page_len, PROT_READ | PROT_WRITE, MAP_SHARED, gate->page_fd, 0);
	if (gate->page == MAP_FAILED) {
		gate->page = NULL;
		return -errno;
	}
	gate->page->magic = GATE_PAGE_MAGIC;
	gate->page->rule_count = (uint32_t)wanted->rules.count;
	if (wanted->rules.count)
		memcpy(gate->page->rules, wanted->rules.items, wanted->rules.count * sizeof(*wanted->rules.items));
	gate->page->landlock_abi = gate->plan->core.landlock_abi;
	gate->page->may_ask = wanted->may_ask;
	gate->page->ask_timeout_ns = wanted->ask_timeout_ns;
	gate->page->id = gate->plan->owner_id;
	gate->page->connections_max = gate->plan->limits.net_connections;
	gate->page->bytes_max = gate->plan->limits.net_bytes;
	gate->page->published_count = (uint32_t)wanted->published_count;
	for (size_t i = 0; i < wanted->published_count; i++)
		gate->page->published[i] = wanted->published[i].port;
	return 0;
}

/* Before there is a jar: a port that is taken is an error, and nothing has run. */
static int publish(struct gate *gate, struct error *error)
{
	for (size_t i = 0; i < gate->plan->gate.published_count; i++) {
		const struct publish *entry = &gate->plan->gate.published[i];
		struct publish *made = &gate->published.published[i];
		int fd = engine_gate_bind(entry, &made->host_port, error);

		if (fd < 0)
			return fd;
		made->port = entry->port;
		gate->host_fds[gate->host_fd_count++] = fd;
		gate->published.published_count++;
	}
	return 0;
}

int engine_gate_new(struct loop *loop, const struct plan *plan, struct reap_family *family, struct gate **out,
		    struct error *error)
{
	struct gate *gate = calloc(1, sizeof(*gate));
	int rc;

	if (!gate)
		return error_set(error, STAGE_ENGINE, ENOMEM, "out of memory");
	*gate = (struct gate){.loop = loop,
			      .plan = plan,
			      .family = family,
			      .page_fd = -1,
			      .control_fd = -1,
			      .pidfd = -1,
			      .rules_fd = -1};
	rc = make_page(gate);
	if (rc < 0)
		error_set(error, STAGE_ENGINE, -rc, "cannot make a gate: %s", strerror(-rc));
	else
		rc = publish(gate, error);
	if (rc < 0) {
		engine_gate_free(gate);
		return rc;
	}
	*out = gate;
	return 0;
}

void engine_gate_tell_published(const struct gate *gate, struct network_seen *out)
{
	memcpy(out->published, gate->published.published, sizeof(out->published));
	out->published_count = gate->published.published_count;
}

/*
 * In a child that shares the engine's memory until it execs: system calls only. Descriptors go up first, out of the way of the
 * numbers that they will have.
 */
static void become_process(const int *fds, size_t count, int program_fd, int first_free)
	__attribute__((noreturn, noinline));
static void become_process(const int *fds, size_t count, int program_fd, int first_free)
{
	static char *const arguments[] = {(char *)"belljar", (char *)GATE_ARGUMENT, NULL};
	static char *const environment[] = {NULL};
	int high[GATE_FDS_MAX];
	int program = fcntl(program_fd, F_DUPFD_CLOEXEC, first_free);
	sigset_t none;

	for (size_t i = 0; i < count; i++) {
		high[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, first_free);
		if (high[i] < 0)
			_exit(125);
	}
	for (size_t i = 0; i < count; i++)
		if (dup2(high[i], GATE_CONTROL_FD + (int)i) < 0)
			_exit(125);
	/* 0, 1 and 2 stay taken by something that says nothing. */
	for (int fd = 0; fd < GATE_CONTROL_FD; fd++)
		dup2(GATE_CONTROL_FD, fd);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	/* Exec closes the engine's own descriptors. Close those that the engine inherited without that flag. */
	sys_close_range((unsigned)GATE_CONTROL_FD + (unsigned)count, (unsigned)first_free - 1);
	syscall(SYS_execveat, program, "", arguments, environment, AT_EMPTY_PATH);
	_exit(125);
}

static void on_control(struct loop_watch *watch, uint32_t events);
static void on_process(struct loop_watch *watch, uint32_t events);

static int start(struct gate *gate)
{
	/* Another program, belljar-gate, inspects requests. */
	AUTO_CLOSE int program_fd = gate->plan->gate.has_vault ? fcntl(gate->plan->gate.program_fd, F_DUPFD_CLOEXEC, 0)
							       : open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	AUTO_CLOSE int their_end = -1;
	const struct plan_gate *wanted = &gate->plan->gate;
	int fds[GATE_FDS_MAX], ends[2], rc;
	size_t count = gate->fd_count + 2;

	if (program_fd < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) < 0)
		return -errno;
	gate->control_fd = ends[0];
	their_end = ends[1];
	gate->page->socket_count = (uint32_t)gate->fd_count;
	engine_gate_files_read(gate->page);
	fds[0] = their_end;
	fds[1] = gate->page_fd;
	memcpy(fds + 2, gate->fds, gate->fd_count * sizeof(*fds));
	gate->page->has_vault = wanted->has_vault;
	if (wanted->has_vault)
		fds[count++] = wanted->vault_fd;
	memcpy(fds + count, gate->host_fds, gate->host_fd_count * sizeof(*fds));
	count += gate->host_fd_count;
	gate->pid = vfork();
	if (gate->pid == 0)
		become_process(fds, count, program_fd,
			       GATE_CONTROL_FD + GATE_FDS_MAX); /* NOLINT(clang-analyzer-unix.Vfork) */
	if (gate->pid < 0) {
		gate->pid = 0;
		return -errno;
	}
	rc = reap_family_add(gate->family, gate->pid);
	gate->pidfd = sys_pidfd_open(gate->pid);
	if (rc == 0 && gate->pidfd < 0)
		rc = gate->pidfd;
	if (rc == 0)
		rc = loop_add(gate->loop, &gate->control, gate->control_fd, EPOLLIN, on_control, gate);
	if (rc == 0)
		rc = loop_add(gate->loop, &gate->process, gate->pidfd, EPOLLIN, on_process, gate);
	return rc;
}

static void close_sockets(struct gate *gate)
{
	for (size_t i = 0; i < gate->fd_count; i++)
		loop_remove(&gate->first_use[i]);
	while (gate->fd_count)
		close(gate->fds[--gate->fd_count]);
	while (gate->host_fd_count)
		close(gate->host_fds[--gate->host_fd_count]);
}

static void stop_waiting(struct gate *gate)
{
	gate->is_waiting = false;
	loop_disarm(&gate->later);
	close_sockets(gate);
}

static void kill_process(struct gate *gate);

/* Start the process now. Connections made meanwhile wait in the sockets. */
static int start_now(struct gate *gate)
{
	int rc = start(gate);

	/* Only the process keeps the sockets: when it ends, they close. */
	stop_waiting(gate);
	if (rc < 0) {
		gate->has_died = true;
		kill_process(gate);
	}
	return rc;
}

static void on_first_use(struct loop_watch *watch, uint32_t events)
{
	struct gate *gate = watch->owner;

	(void)events;
	if (gate->is_waiting)
		start_now(gate);
}

static void on_later(struct loop_timer *timer)
{
	start_now(timer->owner);
}

/* While a command starts there is enough to do. */
static int start_soon(struct gate *gate)
{
	int rc = 0;

	gate->is_waiting = true;
	for (size_t i = 0; i < gate->fd_count && rc == 0; i++)
		rc = loop_add(gate->loop, &gate->first_use[i], gate->fds[i], EPOLLIN, on_first_use, gate);
	loop_arm(gate->loop, &gate->later, sys_monotonic_ns() + START_NS, on_later, gate);
	return rc < 0 ? start_now(gate) : 0;
}

static bool is_used(const struct gate *gate)
{
	struct pollfd sockets[JAR_SOCKETS_MAX];

	for (size_t i = 0; i < gate->fd_count; i++)
		sockets[i] = (struct pollfd){.fd = gate->fds[i], .events = POLLIN};
	return poll(sockets, gate->fd_count, 0) != 0;
}

int engine_gate_take(struct gate *gate, int fd)
{
	if (gate->taken >= gate->plan->gate.socket_count) {
		close_fd(&fd);
		return 0;
	}
	gate->taken++;
	if (gate->plan->gate.sockets[gate->taken - 1].address.any.sa_family == AF_NETLINK)
		gate->rules_fd = take_fd(&fd);
	if (fd >= 0)
		gate->fds[gate->fd_count++] = fd;
	return gate->taken == gate->plan->gate.socket_count ? start_soon(gate) : 0;
}

/* --- runs --------------------------------------------------------------------------------------------------- */

static uint64_t add_up_to(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? LIMIT_NONE : sum;
}

/* Set the strictest limits of the current runs, for all of them. */
static void set_limits(struct gate *gate)
{
	uint64_t connections = gate->plan->limits.net_connections, bytes = LIMIT_NONE;

	for (const struct gate_visit *visit = gate->visits; visit; visit = visit->next) {
		connections = MIN_OF(connections, visit->limits->net_connections);
		bytes = MIN_OF(bytes, add_up_to(visit->bytes_before, visit->limits->net_bytes));
	}
	gate->page->connections_max = connections;
	gate->page->bytes_max = bytes;
	gate->page->is_out_of_bytes = 0;
}

static void tell_bytes(struct gate_visit *visit, uint64_t bytes)
{
	struct limit_hit hit = {.is_hit = true,
				.limit = visit->limits->net_bytes,
				.peak = bytes,
				.has_peak = true,
				.enforced_by = "gate"};

	snprintf(hit.evidence, sizeof(hit.evidence), "the gate counted %llu bytes", (unsigned long long)bytes);
	visit->limit(visit->owner, LIMIT_NET_BYTES, &hit, CAUSE_NET);
}

static void tell_connections(struct gate_visit *visit, uint64_t refused)
{
	struct limit_hit hit = {.is_hit = true,
				.limit = visit->limits->net_connections,
				.peak = visit->gate->page->connections_peak,
				.has_peak = true,
				.enforced_by = "gate"};

	snprintf(hit.evidence, sizeof(hit.evidence), "the gate refused %llu connections", (unsigned long long)refused);
	visit->limit(visit->owner, LIMIT_NET_CONNECTIONS, &hit, CAUSE_NONE);
}

/* The gate could have written anything there. False: nothing of it is new to @visit. */
static bool read_denial(const struct gate_visit *visit, uint32_t number, struct denial *out)
{
	const struct gate_denial *row = &visit->gate->page->denials[number];
	uint64_t count = row->count, before = visit->denials_before[number];

	if (count <= before)
		return false;
	*out = (struct denial){
		.kind = MIN_OF(row->kind, DENIAL_KIND_COUNT - 1U),
		.reason = MIN_OF(row->reason, DENIAL_REASON_COUNT - 1U),
		.port = (uint16_t)row->port,
		.count = count - before,
		.last_ns = row->last_ns,
	};
	snprintf(out->what, sizeof(out->what), "%.*s", (int)sizeof(row->host) - 1, row->host);
	snprintf(out->detail, sizeof(out->detail), "%.*s", (int)sizeof(row->detail) - 1, row->detail);
	return true;
}

static uint32_t denial_count(const struct gate *gate)
{
	return MIN_OF(gate->page->denial_count, (uint32_t)DENIALS_MAX);
}

static void tell_denials(struct gate_visit *visit)
{
	struct denial denial;

	for (uint32_t i = 0; visit->gate && i < denial_count(visit->gate); i++) {
		if (visit->is_denial_told[i] || !read_denial(visit, i, &denial))
			continue;
		visit->is_denial_told[i] = true;
		visit->denied(visit->owner, &denial);
	}
}

/* The process says so when a limit is reached, and when something is refused for the first time. */
static void look(struct gate *gate)
{
	uint64_t bytes = gate->page->bytes, refused = gate->page->connections_refused;
	struct gate_visit *next;

	for (struct gate_visit *visit = gate->visits; visit; visit = next) {
		next = visit->next;
		tell_denials(visit);
		if (visit->gate && refused > visit->refused_before && visit->limits->net_connections != LIMIT_NONE)
			tell_connections(visit, refused - visit->refused_before);
		if (visit->gate && bytes - visit->bytes_before >= visit->limits->net_bytes)
			tell_bytes(visit, bytes - visit->bytes_before);
	}
}

int engine_gate_send(struct gate *gate, const struct gate_message *message)
{
	uint8_t bytes[GATE_MESSAGE_MAX];
	size_t len = gate_message_write(message, bytes);

	if (!len)
		return -EMSGSIZE;
	if (gate->is_waiting)
		start_now(gate);
	if (!gate->pid || gate->finished)
		return -EPIPE;
	return send(gate->control_fd, bytes, len, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

static void on_control(struct loop_watch *watch, uint32_t events)
{
	struct gate *gate = watch->owner;
	uint8_t bytes[GATE_MESSAGE_MAX];
	bool is_stale = false;
	ssize_t len;

	(void)events;
	for (size_t i = 0; i < MESSAGES_PER_TURN; i++) {
		struct gate_message message;

		len = recv(gate->control_fd, bytes, sizeof(bytes), MSG_DONTWAIT | MSG_TRUNC);
		if (len < 0 && (errno == EAGAIN || errno == EINTR))
			break;
		if (len <= 0) {
			loop_remove(watch); /* the pidfd reports the rest */
			break;
		}
		if (!gate_message_read(bytes, (size_t)len, GATE_FROM_PROCESS, &message))
			continue;
		if (message.kind == GATE_DONE || message.kind == GATE_FULL)
			engine_gate_changes_done(gate, message.number, message.kind == GATE_DONE ? 0 : -ENOSPC);
		else if (message.kind == GATE_QUESTION)
			engine_gate_questions_take(gate, message.number, &message.rule);
		else if (message.kind == GATE_WITHDRAWN)
			engine_gate_questions_withdraw(gate, message.number);
		is_stale |= message.kind == GATE_STALE;
	}
	/* Once a turn, however often it asks; at its end it reads what is there already. */
	if (is_stale && !gate->finished) {
		engine_gate_files_read(gate->page);
		engine_gate_send(gate, &(struct gate_message){.kind = GATE_FILES});
	}
	look(gate);
}

/* The gate could have written anything there. */
static void read_host(const struct gate_page *page, uint32_t number, struct network_host *out)
{
	const struct gate_host *host = &page->hosts[number];

	*out = (struct network_host){.port = (uint16_t)host->port,
				     .connections = host->connections,
				     .bytes_out = host->bytes_out,
				     .bytes_in = host->bytes_in};
	snprintf(out->host, sizeof(out->host), "%.*s", (int)sizeof(host->host) - 1, host->host);
}

/* Copy the counts so far, less those in @before. */
static int read_hosts(const struct gate *gate, const struct network_host_list *before, struct network_host_list *out)
{
	uint32_t count = MIN_OF(gate->page->host_count, (uint32_t)GATE_HOSTS_MAX);

	for (uint32_t i = 0; i < count; i++) {
		struct network_host *host = list_add(out);

		if (!host)
			return -ENOMEM;
		read_host(gate->page, i, host);
		if (before && i < before->count) {
			host->connections -= MIN_OF(host->connections, before->items[i].connections);
			host->bytes_out -= MIN_OF(host->bytes_out, before->items[i].bytes_out);
			host->bytes_in -= MIN_OF(host->bytes_in, before->items[i].bytes_in);
		}
		if (before && !host->connections && !host->bytes_out && !host->bytes_in)
			out->count--;
	}
	return 0;
}

static int add_denials(const struct gate_visit *visit, struct denied_seen *out)
{
	struct denial denial;

	for (uint32_t i = 0; i < denial_count(visit->gate); i++) {
		struct denial *added = read_denial(visit, i, &denial) ? list_add(&out->list) : &denial;

		if (!added)
			return -ENOMEM;
		if (added != &denial)
			*added = denial;
	}
	out->more += visit->gate->page->denials_more - visit->denials_more_before;
	return 0;
}

/* A new run wants to hear of what earlier ones have heard of. */
static void begin_denials(const struct gate *gate, struct gate_visit *visit)
{
	memset(visit->denials_before, 0, sizeof(visit->denials_before));
	memset(visit->is_denial_told, 0, sizeof(visit->is_denial_told));
	visit->denials_more_before = gate->page->denials_more;
	for (uint32_t i = 0; i < denial_count(gate); i++) {
		visit->denials_before[i] = gate->page->denials[i].count;
		gate->page->denials[i].is_told = 0;
	}
}

int engine_gate_enter(struct gate *gate, struct gate_visit *visit)
{
	visit->before = (struct network_host_list){0};
	visit->bytes_before = gate->page->bytes;
	visit->refused_before = gate->page->connections_refused;
	begin_denials(gate, visit);
	if (read_hosts(gate, NULL, &visit->before) < 0) {
		free(visit->before.items);
		return -ENOMEM;
	}
	visit->gate = gate;
	visit->next = gate->visits;
	gate->visits = visit;
	engine_gate_questions_enter(gate, visit);
	set_limits(gate);
	return 0;
}

void engine_gate_leave(struct gate_visit *visit, struct observation *out)
{
	struct gate *gate = visit->gate;

	if (!gate)
		return;
	engine_gate_questions_leave(gate, visit);
	if (out) {
		/* The process's last messages may be unread. */
		look(gate);
		out->network.has_gate = true;
		out->network.has_died = gate->has_died;
		read_hosts(gate, &visit->before, &out->network.hosts);
		add_denials(visit, &out->denied);
	}
	for (struct gate_visit **at = &gate->visits; *at; at = &(*at)->next) {
		if (*at == visit) {
			*at = visit->next;
			break;
		}
	}
	free(visit->before.items);
	visit->before = (struct network_host_list){0};
	visit->gate = NULL;
	set_limits(gate);
}

/* --- the end ------------------------------------------------------------------------------------------------ */

static void forget_process(struct gate *gate)
{
	engine_gate_changes_fail(gate, -EPIPE);
	engine_gate_questions_end(gate);
	loop_remove(&gate->control);
	loop_remove(&gate->process);
	loop_disarm(&gate->timer);
	close_fd(&gate->control_fd);
	close_fd(&gate->pidfd);
	if (gate->pid) {
		reap_family_remove(gate->family, gate->pid);
		gate->pid = 0;
	}
}

static void tell_finished(struct gate *gate)
{
	void (*function)(void *owner) = gate->finished;

	gate->finished = NULL;
	if (function)
		function(gate->owner);
}

static void on_process(struct loop_watch *watch, uint32_t events)
{
	struct gate *gate = watch->owner;

	(void)events;
	look(gate);
	gate->has_died = !gate->finished;
	while (waitpid(gate->pid, NULL, __WALL) < 0 && errno == EINTR)
		;
	forget_process(gate);
	tell_finished(gate);
}

static void on_timer(struct loop_timer *timer)
{
	struct gate *gate = timer->owner;

	if (gate->pid)
		reap_signal(gate->pidfd, SIGKILL); /* the pidfd reports its end */
	else
		tell_finished(gate);
}

void engine_gate_finish(struct gate *gate, void (*function)(void *owner), void *owner)
{
	/* The jar may have sent its last bytes after the last turn of the loop. */
	if (gate->is_waiting && is_used(gate))
		start_now(gate);
	gate->finished = function;
	gate->owner = owner;
	stop_waiting(gate);
	if (gate->pid)
		shutdown(gate->control_fd, SHUT_WR);
	loop_arm(gate->loop, &gate->timer, gate->pid ? sys_monotonic_ns() + FINISH_NS : 0, on_timer, gate);
}

static void kill_process(struct gate *gate)
{
	if (gate->pid) {
		kill(gate->pid, SIGKILL); /* only this function waits for it */
		while (waitpid(gate->pid, NULL, __WALL) < 0 && errno == EINTR)
			;
	}
	forget_process(gate);
}

void engine_gate_free(struct gate *gate)
{
	if (!gate)
		return;
	while (gate->visits)
		engine_gate_leave(gate->visits, NULL);
	stop_waiting(gate);
	kill_process(gate);
	close_fd(&gate->page_fd);
	close_fd(&gate->rules_fd);
	free(gate->led.items);
	if (gate->page)
		munmap(gate->page, gate->page_len);
	free(gate);
}
