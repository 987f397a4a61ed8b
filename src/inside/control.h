/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inside/control.h - the messages between the engine and a jar
 *
 * A message is one packet on a control socket: a header, the part of its kind, and a text if the kind has one.
 * Both ends are the same program, but the jar's end is closer to the command. So the engine refuses a message
 * whose size differs from that of its kind.
 */
#ifndef BELLJAR_INSIDE_CONTROL_H
#define BELLJAR_INSIDE_CONTROL_H

#include <sys/resource.h>

#include "base/descriptors.h"

enum jar_message_kind {
	/* from the jar */
	JAR_STEP_FAILED = 1, /* nothing has run */
	JAR_EXEC_FAILED,
	JAR_VIEW,   /* attached: something for the engine's meter; before JAR_STARTED */
	JAR_SOCKET, /* attached: one of STEP_SOCKETS, or nothing if it is not there; before JAR_STARTED and JAR_READY */
	JAR_TERMINAL, /* attached: the master of the command's pty; before JAR_STARTED */
	JAR_STARTED,
	JAR_WRITTEN,
	JAR_DENIED,      /* a system call was refused: sent the first time, and with the count at the command's end */
	JAR_TRIED,       /* a traced command tried for the first time what may be refused */
	JAR_TRIED_AGAIN, /* with the count at the command's end */
	JAR_EXITED,
	JAR_LEFT,  /* in place of JAR_EXITED: the command has ended, and its other processes continue */
	JAR_EMPTY, /* the engine outlives the sender: every other process of its tree is dead and reaped */
	/* to the jar */
	JAR_SIGNAL, /* for every process of the command's tree */
	JAR_KILL,
	/* from a session (engine/jar/) */
	JAR_READY,       /* a command can be sent, or a minder asked for */
	JAR_MINDER_GONE, /* the minder and all it started are dead and reaped */
	/* from the process that carries out a task, on the socket that came with it (inside/task/) */
	JAR_PROCESS,   /* a process of the jar; its name and its arguments follow as text, each with its NUL */
	JAR_TASK_DONE, /* attached: what was opened */
	/* to a session */
	JAR_RUN,    /* a command (inside/command.h) follows as text, or attached; attached: its descriptors */
	JAR_MINDER, /* make one; attached: its own control socket, and cgroups to enter */
	JAR_TASK,   /* carry it out; paths follow as text, each with its NUL; attached: the socket for the answer */
	JAR_MESSAGE_KIND_COUNT,
};

/* The kernel's name of a process. */
#define JAR_NAME_BYTES 16

/* Longer paths are not reported. */
#define JAR_PATH_BYTES 1024

/* The access that a traced command asks for. */
enum jar_access {
	JAR_READS,
	JAR_WRITES,
	JAR_EXECUTES,
	JAR_CONNECTS,
	JAR_LOOKS,   /* whether it is there */
	JAR_RENAMES, /* makes, removes or renames it */
	JAR_ACCESS_COUNT
};

/* Views of the jar for the engine's meter. */
enum jar_view {
	JAR_VIEW_PROC,   /* the jar's /proc */
	JAR_VIEW_ROOT,   /* the jar's root directory (O_PATH), for its private places */
	JAR_VIEW_SHARED, /* the lists of what System V keeps for the jar: shared memory ... */
	JAR_VIEW_QUEUES,
	JAR_VIEW_SEMAPHORES,
	JAR_VIEW_CLOCK, /* a clock of all CPU time of the jar */
	JAR_VIEW_COUNT,
};

struct jar_end {
	uint64_t ended_ns; /* when the sender saw the end */
	int32_t status;    /* the command's wait status */
	uint32_t is_last;  /* its tree is gone, and JAR_EMPTY reports this end */
};

struct jar_task {
	uint32_t operation; /* enum task_operation */
	uint32_t flags;     /* TASK_PARENTS ... */
	uint32_t number;    /* a mode, a port, or a signal */
	int32_t pid;
};

struct jar_message {
	uint32_t kind;
	uint32_t steps_done, entry_done; /* from the jar: how many of either list are carried out */
	union {
		struct {
			int32_t step; /* index in the list; -1: not a step */
			uint32_t is_entry;
			int32_t error; /* errors are positive errnos */
		} step_failed;
		struct {
			int32_t error;
			uint32_t interpreter_missing; /* ENOENT: the file exists, its interpreter does not */
		} exec_failed;
		struct {
			uint64_t clock_ns; /* JAR_VIEW_CLOCK: what it showed before the command began */
			uint32_t what;     /* enum jar_view */
		} view;
		struct {
			uint32_t number; /* in the order of the step */
		} socket;
		struct {
			uint64_t begun_ns;    /* when the command's process was made */
			struct rusage making; /* what making the jar cost, to be taken off the tree's usage */
		} started;
		struct {
			uint64_t bytes; /* by all reaped processes */
		} written;
		struct {
			uint64_t count;   /* so far; number -1: all that did not fit the table */
			uint64_t last_ns; /* the last time */
			int32_t number;
			char process[JAR_NAME_BYTES]; /* the first that tried */
		} denied;
		struct {
			uint64_t last_ns;
			uint32_t number; /* of this attempt */
			uint32_t access; /* enum jar_access */
			char process[JAR_NAME_BYTES];
			char path[JAR_PATH_BYTES]; /* absolute, or ADDRESS:PORT; untrusted */
		} tried;
		struct {
			uint64_t count;
			uint64_t last_ns;
			uint32_t number;
		} tried_again;
		struct jar_end exited;
		struct {
			struct rusage usage; /* by the tree */
			struct jar_end end;  /* if it `is_last`: this stands for JAR_EXITED too */
		} empty;
		struct {
			struct rusage usage; /* of what has ended by then */
			struct jar_end end;
		} left;
		struct {
			int32_t number;
		} signal;
		struct {
			uint32_t minder; /* end this one only; 0: the jar */
		} kill;
		struct {
			int32_t pid; /* the sender's, inside */
		} ready;
		struct {
			uint64_t written_bytes; /* by all of the jar */
			struct rusage usage;
			uint32_t minder;
		} minder_gone;
		struct {
			uint64_t started_ns; /* since the host was started */
			int32_t pid, parent; /* as seen inside */
			uint32_t minder;     /* its run's minder */
			uint32_t state;      /* a letter, as in /proc/PID/stat */
		} process;
		struct {
			int64_t modified_ns; /* TASK_STAT; also the next two */
			uint64_t size;
			uint32_t mode;
			int32_t error; /* 0: it was done */
		} task_done;
		struct {
			uint32_t has_file;    /* the first attached descriptor has the command */
			uint32_t is_detached; /* its other processes outlive it */
		} run;
		struct {
			uint32_t number; /* not 0 */
		} minder;
		struct jar_task task;
	};
};

/* The most text and descriptors that a message can have. */
#define JAR_TEXT_MAX 4095
#define JAR_ATTACHED_MAX DESCRIPTORS_MAX

struct jar_attached {
	struct descriptors passed;
	char bytes[sizeof(struct jar_message) + JAR_TEXT_MAX + 1];
	const char *text; /* in `bytes`, NUL-terminated */
	size_t text_len;
};

/* Make the two ends of a control socket. */
int control_socket_pair(int *engine_end, int *jar_end);

/* Send without waiting. -EAGAIN: the other side has left too much unread. */
int control_send(int control_fd, const struct jar_message *message, int fd);
int control_send_all(int control_fd, const struct jar_message *message, const char *text, size_t text_len,
		     const int *fds, size_t fd_count);

/*
 * Receive one message. *@fd_out is the descriptor that came with it, or -1: none, or this process has no
 * free number. 1, 0 at the end, -EAGAIN, -EPROTO: not a message, or another negative errno.
 */
int control_receive(int control_fd, struct jar_message *message, int *fd_out);
/* Receive one message with all that came with it. -EMFILE: descriptors are missing. */
int control_receive_all(int control_fd, struct jar_message *message, struct jar_attached *attached);

#endif
