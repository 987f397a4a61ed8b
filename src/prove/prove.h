/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prove/prove.h - make every forbidden attempt from inside a jar, and report which layer stopped it
 *
 * The proof has two sides. Outside, prove_all() plants objects on the host (a secret, listeners, a process to attack),
 * runs this same program in a fresh jar for each row of the table, and checks the planted objects afterwards. These
 * checks overrule the report from inside. Inside, `belljar-prove --attempt NAME` makes one attempt. The errno shows
 * which layer stopped it; if two layers give the same errno, a second, harmless call tells them apart.
 *
 * Every attempt is harmless if it succeeds: signals that do nothing, files opened and not written, calls that the
 * kernel rejects for their arguments. An attempt outside of a jar is harmless too.
 */
#ifndef BELLJAR_PROVE_PROVE_H
#define BELLJAR_PROVE_PROVE_H

#include "base/error.h"
#include "base/list.h"
#include "base/text.h"
#include "doctor/doctor.h"
#include "doctor/proof.h"
#include "policy/policy.h"

enum layer {
	LAYER_NONE, /* in the table: this rung does not cover it */
	LAYER_MOUNT_NS,
	LAYER_PID_NS,
	LAYER_NET_NS,
	LAYER_IPC_NS,
	LAYER_IDENTITY, /* the command's user id: file permissions, and ids that are not mapped */
	LAYER_LANDLOCK,
	LAYER_SECCOMP,
	LAYER_PRIVILEGES,   /* no capabilities, no new privileges */
	LAYER_NOT_DUMPABLE, /* other processes cannot read the jar's first process, and it has wiped its secrets */
	LAYER_DESCRIPTORS,  /* closed before anything of the jar runs */
	LAYER_ENVIRONMENT,  /* only what the policy names is passed */
	LAYER_SESSION,      /* a session of its own, without a controlling terminal */
	LAYER_TREE,         /* processes left at the end of the run are killed: pid namespace or subreaper */
	LAYER_LIMITS,       /* rlimit or cgroup */
	LAYER_GATE,         /* the process that leads out of the jar, to the hosts that the policy names */
	LAYER_ENGINE,       /* the engine refuses the policy, or ends the jar */
	LAYER_HOST,         /* the host's own settings, not Belljar */
	LAYER_COUNT,
};

const char *prove_layer_name(enum layer layer);
enum layer prove_layer_by_name(const char *name); /* LAYER_COUNT: no such layer */

/* The report of an attempt. */
struct answer {
	enum verdict verdict;
	enum layer layer; /* stopped by */
	const char *call; /* the last thing that was called; never with a blank in it */
	int errno_value;
};

/* Extra parts of an attempt's jar, or actions outside during the attempt. */
enum prove_scene {
	SCENE_NONE,
	SCENE_PACKAGE, /* a package of Belljar's lies in the workdir */
	SCENE_ROOTS,   /* the roots that jars share lie in a place that is named writable */
	SCENE_LINK,    /* the workdir is named by a link that a command may have put there */
	SCENE_COVER,   /* a program of the host saves over a hidden file */
};

#define PROVE_PATH_MAX 80
/* Below BASE: a directory of the workdir that the policy names by itself. */
#define PROVE_PLACE "work/above/deep/place"
/* Hidden in the jar; the host saves over it as soon as the other one is there. */
#define PROVE_HIDDEN "work/hidden"
#define PROVE_READY "work/ready"
#define PROVE_TOKEN_MAX 20

struct corpus_call;

/* The objects planted outside; passed on as one environment variable. */
struct prove_facts {
	char base[PROVE_PATH_MAX]; /* BASE/outside is forbidden, BASE/work is the workdir */
	char token[PROVE_TOKEN_MAX];
	int tcp_port;
	int udp_port;
	int gate_port; /* the port that the gate allows, in jars that have one; a server of the proof answers there */
	int shared_memory_id;
	int engine_pid;
	int victim_pid;
	uintptr_t victim_address;
	int pids_max;
	const struct corpus_call *call, *probe; /* inside: these are of the attempt, and not passed on */
	const char *path;
};

/* The one line an attempt prints: this word, verdict, layer, call, errno. */
#define PROVE_ANSWER_WORD "belljar-attempt"
#define PROVE_FACTS_VARIABLE "BELLJAR_ATTEMPT_FACTS"
#define PROVE_SECRET_VARIABLE "BELLJAR_ATTEMPT_SECRET"
#define PROVE_FD 37
#define PROVE_OLD_TIME 1000000000
#define PROVE_ATTRIBUTE "user.belljar"
#define PROVE_ENGINE_PID_LEAST 100 /* a lower pid could also be one of the jar's own */

/* To and from text; attempt.c. @call takes the name that *@answer points at. */
void prove_facts_print(const struct prove_facts *facts, struct text *out);
bool prove_answer_read(const char *line, struct answer *answer, char *call, size_t capacity);

typedef struct answer attempt_function(const struct prove_facts *facts);

struct attempt {
	const char *name;
	const char *what;     /* "read a file outside" */
	enum layer layers[3]; /* which must stop it, by enum rung */
	const char *gap;      /* the name in `missing` that means: not covered in this run; NULL: none */
	int landlock_abi;     /* on the landlock rung covered from this ABI on */
	attempt_function *function;
	enum layer alternative; /* equivalent: depends on the kernel or on the caller */
	uint64_t memory_bytes;  /* the jar's limit, which must end the attempt; 0: none */
	bool has_gate;          /* the jar has one, to `gate_port` of the host; only on the rung namespace */
	enum prove_scene scene;
	const char *
		call; /* a row of prove_corpus_calls, with @path of prove_corpus_paths, with @probe of prove_corpus_process; NULL: none */
	const char *probe; /* a row that the kernel refuses too, but not with EPERM */
	const char *path;  /* of what was planted */
};

extern const struct attempt attempts[];
extern const size_t attempt_count;
/* Also "control", which must succeed. NULL: no such attempt. */
const struct attempt *attempt_by_name(const char *name);

/* The directory around the roots that this user's jars share. */
void prove_roots(char *path, size_t capacity);
/* Make one attempt, from inside a jar, and append its one line. */
int prove_attempt(const char *name, struct text *out, struct error *error);
/* Make all attempts, each in a jar of its own. Fails only if no jar could be made or the control attempt did not work. */
doctor_prove_function prove_all;

#endif
