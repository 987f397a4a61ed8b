/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prove/prove_table.c - what is tried, and which layer must stop it on each rung
 *
 * An empty place in a row means that the rung does not promise it: the attempt is made and reported as not covered,
 * whatever comes of it.
 */
#include "prove/attempt.h"

#include <string.h>

static const char *const layer_names[] = {
	[LAYER_NONE] = "none",
	[LAYER_MOUNT_NS] = "mount-ns",
	[LAYER_PID_NS] = "pid-ns",
	[LAYER_NET_NS] = "net-ns",
	[LAYER_IPC_NS] = "ipc-ns",
	[LAYER_IDENTITY] = "identity",
	[LAYER_LANDLOCK] = "landlock",
	[LAYER_SECCOMP] = "seccomp",
	[LAYER_PRIVILEGES] = "privileges",
	[LAYER_NOT_DUMPABLE] = "not-dumpable",
	[LAYER_DESCRIPTORS] = "descriptors",
	[LAYER_ENVIRONMENT] = "environment",
	[LAYER_SESSION] = "session",
	[LAYER_TREE] = "tree",
	[LAYER_LIMITS] = "limits",
	[LAYER_GATE] = "gate",
	[LAYER_ENGINE] = "engine",
	[LAYER_HOST] = "host",
};
_Static_assert(ARRAY_LEN(layer_names) == LAYER_COUNT, "every layer has a name");

const char *prove_layer_name(enum layer layer)
{
	return layer_names[layer];
}

enum layer prove_layer_by_name(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(layer_names); i++)
		if (!strcmp(layer_names[i], name))
			return (enum layer)i;
	return LAYER_COUNT;
}

/* clang-format off */
#define ON(namespace_layer, landlock_layer) \
	{[RUNG_NAMESPACE] = LAYER_##namespace_layer, [RUNG_LANDLOCK] = LAYER_##landlock_layer}
#define ON_ALL(layer) \
	{[RUNG_NAMESPACE] = LAYER_##layer, [RUNG_LANDLOCK] = LAYER_##layer, [RUNG_PROCESS] = LAYER_##layer}

const struct attempt attempts[] = {
	/* files */
	{"read-outside", "read a file outside", ON(MOUNT_NS, LANDLOCK), NULL, 0, attempt_read},
	{"stat-outside", "see that a file outside exists", ON(MOUNT_NS, NONE), NULL, 0, attempt_on_path, .call = "stat", .path = "outside/secret"},
	{"list-outside", "list a directory outside", ON(MOUNT_NS, LANDLOCK), NULL, 0, attempt_on_path, .call = "open", .path = "outside"},
	{"write-outside", "write to a file outside", ON(MOUNT_NS, LANDLOCK), NULL, 0, attempt_write},
	{"create-outside", "create a file outside", ON(MOUNT_NS, LANDLOCK), NULL, 0, attempt_on_path, .call = "creat", .path = "outside/new"},
	{"remove-outside", "remove a file outside", ON(MOUNT_NS, LANDLOCK), NULL, 0, attempt_on_path, .call = "unlink", .path = "outside/removable"},
	{"link-outside", "link a file outside into the workdir", ON(MOUNT_NS, LANDLOCK), NULL, 0, attempt_on_path, .call = "link_from", .path = "outside/secret"},
	{"truncate-outside", "truncate a file outside by its path", ON(MOUNT_NS, LANDLOCK), NULL, 3, attempt_on_path, .call = "truncate", .path = "outside/secret"},
	{"chmod-outside", "change the mode of a file outside", ON(MOUNT_NS, SECCOMP), "metadata", 0, attempt_chmod},
	{"chmod-descriptor", "the same by a descriptor of it", ON(MOUNT_NS, SECCOMP), "metadata", 0,
	 attempt_chmod_by_descriptor},
	{"times-outside", "change the times of a file outside", ON(MOUNT_NS, SECCOMP), "metadata", 0, attempt_times},
	{"attribute-outside", "give a file outside an extended attribute", ON(SECCOMP, SECCOMP), "metadata", 0,
	 attempt_attribute, LAYER_HOST},
	{"mark", "leave a mark of overlayfs on a file of the workdir", ON(SECCOMP, SECCOMP), "metadata", 0, attempt_mark},
	{"read-by-engine", "read a file outside by way of the engine's /proc/PID/root", ON(PID_NS, LANDLOCK), NULL, 0,
	 attempt_read_by_engine},
	{"proc-sys", "open a setting of the kernel in /proc/sys for writing", ON(MOUNT_NS, LANDLOCK), NULL, 0, attempt_proc_sys,
	 LAYER_IDENTITY},
	{"protected", "change, add to or move away .git/hooks in the workdir", ON(MOUNT_NS, MOUNT_NS), "protect", 0,
	 attempt_protected},
	{"move-above", "move away a directory above what is shown by itself in the workdir", ON(MOUNT_NS, NONE), NULL, 0,
	 attempt_move_above},
	{"guard-config", "change or move away the hooks that .git/config names", ON(MOUNT_NS, MOUNT_NS), "protect", 0,
	 attempt_protected_by_config},
	{"guard-link", "change or move away what a protected name leads to by a link", ON(MOUNT_NS, MOUNT_NS), "protect",
	 0, attempt_protected_by_link},
	{"guard-gitlink", "change or move away the configuration of a repository that .gitmodules names",
	 ON(MOUNT_NS, MOUNT_NS), "protect", 0, attempt_protected_by_gitlink},
	{"overwrite-engine", "open the engine's own program for writing by /proc/PID/exe", ON(NOT_DUMPABLE, LANDLOCK), NULL, 0,
	 attempt_overwrite_engine},
	{"replace-engine", "change or move away the package of Belljar, installed in the workdir", ON(MOUNT_NS, ENGINE), NULL, 0,
	 attempt_replace_engine, .scene = SCENE_PACKAGE},
	{"shared-roots", "plant a root for later jars, in a directory that is named writable", ON(MOUNT_NS, ENGINE), NULL, 0,
	 attempt_shared_roots, .scene = SCENE_ROOTS},
	{"link-workdir", "make a link in the workdir the next work directory", ON_ALL(ENGINE), NULL, 0, attempt_control,
	 .scene = SCENE_LINK},
	{"uncover", "read a hidden file after the host has saved over it", ON(ENGINE, ENGINE), NULL, 0, attempt_uncover,
	 LAYER_MOUNT_NS, .scene = SCENE_COVER},
	{"descriptor", "use a descriptor that Belljar's caller left open", ON_ALL(DESCRIPTORS), NULL, 0, attempt_descriptors},
	{"environment", "read a variable of the caller that was not passed", ON_ALL(ENVIRONMENT), NULL, 0, attempt_environment},

	/* network and sockets */
	{"tcp", "connect to a TCP port on the host's loopback", ON(NET_NS, SECCOMP), NULL, 0, attempt_tcp},
	{"tcp-fast-open", "the same by TCP fast open", ON(SECCOMP, SECCOMP), NULL, 0, attempt_tcp_fast_open},
	{"udp", "send a UDP datagram to the host's loopback", ON(NET_NS, SECCOMP), NULL, 0, attempt_udp},
	{"unix-stream", "connect to a Unix socket outside by its path", ON(MOUNT_NS, SECCOMP), "unix_sockets", 0,
	 attempt_unix_stream, LAYER_LANDLOCK},
	{"unix-datagram", "send a datagram to a Unix socket outside by its path", ON(MOUNT_NS, SECCOMP), "unix_sockets", 0,
	 attempt_unix_datagram, LAYER_LANDLOCK},
	{"abstract-stream", "connect to an abstract Unix socket of the host", ON(NET_NS, SECCOMP), "abstract_sockets", 0,
	 attempt_abstract_stream, LAYER_LANDLOCK},
	{"abstract-datagram", "send a datagram to an abstract Unix socket of the host", ON(NET_NS, SECCOMP), "abstract_sockets",
	 0, attempt_abstract_datagram, LAYER_LANDLOCK},
	{"pair-datagram", "the same by one end of a socket pair", ON(NET_NS, SECCOMP), "abstract_sockets", 0,
	 attempt_pair_datagram, LAYER_LANDLOCK},
	{"abstract-name", "take an abstract name of the host", ON(NET_NS, SECCOMP), "abstract_names", 0, attempt_abstract_name},
	{"gate", "reach a port of the host's that allow_net does not name, beside one that it does", ON(GATE, NONE), NULL, 0,
	 attempt_gate, .has_gate = true},
	{"packet-socket", "make a packet socket", ON(SECCOMP, SECCOMP), NULL, 0, attempt_socket, .call = "socket_packet"},
	{"vsock", "make a socket to the hypervisor", ON(SECCOMP, SECCOMP), NULL, 0, attempt_socket, .call = "socket_vsock"},

	/* processes */
	{"signal-engine", "send the engine a signal", ON(PID_NS, SECCOMP), NULL, 0, attempt_on_engine, .call = "kill", .probe = "kill_nothing"},
	{"signal-other", "send a process outside a signal", ON(PID_NS, LANDLOCK), NULL, 6, attempt_on_victim, .call = "kill", .probe = "kill_nothing"},
	{"pidfd-other", "the same by a pidfd", ON(PID_NS, LANDLOCK), NULL, 6, attempt_pidfd_other},
	{"owner-other", "the same by making it a descriptor's owner", ON(PID_NS, LANDLOCK), NULL, 6, attempt_owner_other},
	{"trace-engine", "trace the engine", ON(PID_NS, SECCOMP), NULL, 0, attempt_on_engine, .call = "seize", .probe = "peek"},
	{"trace-other", "trace a process outside", ON(PID_NS, LANDLOCK), NULL, 0, attempt_on_victim, .call = "seize", .probe = "peek"},
	{"write-memory", "write into the memory of a process outside", ON(PID_NS, LANDLOCK), NULL, 0, attempt_write_memory},
	{"other-environ", "read /proc/PID/environ of a process outside", ON(PID_NS, LANDLOCK), NULL, 0,
	 attempt_other_environment},
	{"other-mem", "open /proc/PID/mem of a process outside", ON(PID_NS, LANDLOCK), NULL, 0, attempt_other_memory},
	{"see-other", "see the name of a process outside", ON(PID_NS, PID_NS), "process_names", 0, attempt_see_other},
	{"limit-other", "set a resource limit of a process outside", ON(PID_NS, SECCOMP), NULL, 0, attempt_on_victim, .call = "prlimit64", .probe = "prlimit64_nothing"},
	{"renice-other", "set the priority of a process outside", ON(PID_NS, SECCOMP), NULL, 0, attempt_on_victim, .call = "setpriority", .probe = "setpriority_nothing"},
	{"limit-init", "set a resource limit of process 1", ON(SECCOMP, SECCOMP), NULL, 0, attempt_on_first, .call = "prlimit64_nothing", .probe = "prlimit64_nothing"},
	{"schedule-init", "change how process 1 is scheduled", ON(SECCOMP, SECCOMP), NULL, 0, attempt_on_first, .call = "sched_setscheduler_nothing", .probe = "sched_setscheduler_nothing"},
	{"init-environ", "read the environment of process 1", ON(NOT_DUMPABLE, LANDLOCK), NULL, 0, attempt_init_environment},
	{"init-cmdline", "read the arguments of process 1", ON(NOT_DUMPABLE, PID_NS), "process_names", 0, attempt_init_arguments},
	{"shared-memory", "attach a shared memory segment of the host", ON(IPC_NS, SECCOMP), NULL, 0, attempt_shared_memory},
	{"outlive", "leave a daemon behind (two forks, own session)", ON_ALL(TREE), NULL, 0, attempt_outlive},
	{"fork-bomb", "make more processes than the limit allows", ON_ALL(LIMITS), "pids", 0, attempt_processes},

	/* limits, and what is shared with the user's other programs */
	{"hidden-memory", "hold more memory than the limit allows, in none of its processes", ON_ALL(LIMITS), "memory", 0,
	 attempt_hidden_memory, LAYER_NONE, 64 << 20},
	{"secret-memory", "reach memfd_secret", ON(SECCOMP, SECCOMP), NULL, 0, attempt_reach, .call = "memfd_secret"},
	{"aio", "reach io_setup, whose rings are counted for the whole host", ON(SECCOMP, SECCOMP), NULL, 0, attempt_reach, .call = "io_setup"},
	{"terminals", "take the pseudo terminals of all jars", ON(LIMITS, LANDLOCK), NULL, 0, attempt_terminals},
	{"inotify", "take more than half of the user's inotify instances", ON(LIMITS, LIMITS), "user_limits", 0, attempt_inotify,
	 LAYER_IDENTITY},
	{"queued-signals", "queue more signals than a jar's share", ON_ALL(LIMITS), NULL, 0, attempt_queued_signals},
	{"message-queues", "make more message queues than a jar's share", ON(LANDLOCK, SECCOMP), NULL, 0, attempt_message_queues,
	 LAYER_LIMITS},

	/* the kernel */
	{"remount", "make a read-only mount writable", ON(SECCOMP, SECCOMP), NULL, 0, attempt_remount},
	{"mount", "mount a tmpfs", ON(SECCOMP, SECCOMP), NULL, 0, attempt_mount},
	{"chroot", "change the root", ON(SECCOMP, SECCOMP), NULL, 0, attempt_reach, .call = "chroot"},
	{"unshare-user", "make a user namespace with unshare", ON(SECCOMP, SECCOMP), NULL, 0, attempt_unshare_user},
	{"clone-user", "make a user namespace with clone", ON(SECCOMP, SECCOMP), NULL, 0, attempt_clone, .call = "clone_user"},
	{"clone3-user", "make a user namespace with clone3", ON(SECCOMP, SECCOMP), NULL, 0, attempt_clone, .call = "clone3"},
	{"setns", "enter a namespace", ON(SECCOMP, SECCOMP), NULL, 0, attempt_reach, .call = "setns"},
	{"bpf", "reach bpf", ON(SECCOMP, SECCOMP), NULL, 0, attempt_reach, .call = "bpf"},
	{"perf", "reach perf_event_open", ON(SECCOMP, SECCOMP), NULL, 0, attempt_reach, .call = "perf_event_open"},
	{"keyctl", "reach the kernel's key rings", ON(SECCOMP, SECCOMP), NULL, 0, attempt_reach, .call = "keyctl"},
	{"io-uring", "reach io_uring", ON(SECCOMP, SECCOMP), NULL, 0, attempt_reach, .call = "io_uring_setup"},
	{"userfaultfd", "reach userfaultfd", ON(SECCOMP, SECCOMP), NULL, 0, attempt_reach, .call = "userfaultfd"},
	{"kexec", "reach kexec_load", ON(SECCOMP, SECCOMP), NULL, 0, attempt_reach, .call = "kexec_load"},
	{"module", "reach init_module", ON(SECCOMP, SECCOMP), NULL, 0, attempt_reach, .call = "init_module"},
	{"file-handle", "reach open_by_handle_at", ON(SECCOMP, SECCOMP), NULL, 0, attempt_reach, .call = "open_by_handle_at"},
	{"reboot", "reach reboot", ON(SECCOMP, SECCOMP), NULL, 0, attempt_reach, .call = "reboot"},
	{"page-cache", "ask which pages of files are in memory (mincore)", ON(SECCOMP, SECCOMP), NULL, 0, attempt_reach, .call = "mincore"},
	{"kcmp", "compare kernel objects of processes", ON(SECCOMP, SECCOMP), NULL, 0, attempt_reach, .call = "kcmp"},
	{"vmsplice", "give pages of memory to a pipe", ON(SECCOMP, SECCOMP), NULL, 0, attempt_reach, .call = "vmsplice"},
	{"out-of-band", "send a byte out of band", ON(SECCOMP, SECCOMP), NULL, 0, attempt_answered, .call = "out_of_band"},
	{"socket-filter", "attach a BPF program to a socket", ON(SECCOMP, SECCOMP), NULL, 0, attempt_answered, .call = "socket_filter"},
	{"tcp-ulp", "put another protocol on top of TCP", ON(SECCOMP, SECCOMP), NULL, 0, attempt_answered, .call = "tcp_ulp"},
	{"verity", "make a file immutable by fs-verity", ON(SECCOMP, SECCOMP), NULL, 0, attempt_answered, .call = "verity"},
	{"encryption-key", "give a file system an encryption key", ON(SECCOMP, SECCOMP), NULL, 0, attempt_answered, .call = "encryption_key"},
	{"foreign-call", "make a system call of another architecture", ON(SECCOMP, SECCOMP), NULL, 0, attempt_foreign_call,
	 LAYER_HOST},
	{"personality", "take an execution domain with executable data", ON(SECCOMP, SECCOMP), NULL, 0, attempt_personality},
	{"tiocsti", "type into a terminal", ON(SECCOMP, SECCOMP), NULL, 0, attempt_terminal},
	{"terminal", "open the caller's terminal", ON_ALL(SESSION), NULL, 0, attempt_controlling_terminal, LAYER_LANDLOCK},
	{"raise-limit", "raise an own resource limit", ON_ALL(PRIVILEGES), NULL, 0, attempt_raise_limit},
	{"setuid", "gain privileges by a set-user-id program", ON_ALL(PRIVILEGES), NULL, 0, attempt_setuid},
	{"capabilities", "use a capability", ON_ALL(PRIVILEGES), NULL, 0, attempt_capabilities},
};
/* clang-format on */
const size_t attempt_count = ARRAY_LEN(attempts);

static const struct attempt control = {"control",      "write in the workdir, which is allowed", {LAYER_NONE}, NULL, 0,
				       attempt_control};

const struct attempt *attempt_by_name(const char *name)
{
	if (!strcmp(name, control.name))
		return &control;
	for (size_t i = 0; i < attempt_count; i++)
		if (!strcmp(attempts[i].name, name))
			return &attempts[i];
	return NULL;
}
