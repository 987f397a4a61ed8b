/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy/policy_keys.h - the table of policy keys, the only source for everything about a key
 *
 * One row gives the JSON key, the flag, its parsing and checking, its line in --help, in the man page, in the shell
 * completions and in the JSON Schema.
 */
#ifndef BELLJAR_POLICY_POLICY_KEYS_H
#define BELLJAR_POLICY_POLICY_KEYS_H

#include "policy/policy.h"

enum policy_type {
	POLICY_BOOL,
	POLICY_WORD,     /* one of `words`, stored as the enum value that is the word's index in it */
	POLICY_SWITCH,   /* one of two `words`; its flag is a switch, for the second of them */
	POLICY_DURATION, /* stored in nanoseconds */
	POLICY_SIZE,     /* stored in bytes */
	POLICY_OUTPUT,   /* a size, or one for each stream */
	POLICY_COUNT,
	POLICY_STRING,
	POLICY_WORKDIR, /* path or null/none */
	POLICY_PATH,
	POLICY_MOUNTS, /* PATH[:DEST] */
	POLICY_PATHS,
	POLICY_PATTERNS, /* paths and patterns */
	POLICY_TMPFS,    /* PATH[:SIZE] */
	POLICY_STRINGS,
	POLICY_RULES,   /* of the network: HOST[:PORTS]; in JSON also an object */
	POLICY_SECRETS, /* NAME@HOST[:HEADER]; in JSON also an object */
	POLICY_PORTS,   /* [HOSTPORT:]PORT; in JSON also a number */
	POLICY_NAMES,   /* names of environment variables */
	POLICY_ENV,     /* NAME=VALUE; in JSON an object */
	POLICY_GUARANTEES,
	POLICY_VERSION, /* file only */
	POLICY_EXTENDS, /* file only */
};

enum policy_scope { SCOPE_JAR, SCOPE_RUN, SCOPE_BOTH };

/* How a tightening policy may change the key's value. It may always repeat the value unchanged. */
enum policy_tightening {
	TIGHTEN_NOT,     /* it has no stricter value */
	TIGHTEN_LOWER,   /* a smaller number; for a bool false; for a word an earlier one */
	TIGHTEN_HIGHER,  /* for a bool true; for a word a later one */
	TIGHTEN_SHORTEN, /* every entry must be among those of the policy; `ro` may name what is in `rw` */
	TIGHTEN_ADD,     /* entries are added to those of the policy */
	TIGHTEN_TO_NULL, /* workdir: private instead of named */
	TIGHTEN_REFUSED, /* not allowed in such a file */
};

struct policy_key {
	const char *name;         /* JSON key: "cpu_time" */
	const char *flag;         /* "cpu-time"; NULL: no flag */
	char short_flag;          /* 'C'; 0: none */
	const char *placeholder;  /* "D", "PATH[:DEST]"; NULL for a switch, which also has a --no- form */
	const char *help;         /* what it does, for --help and the man page; one sentence, no full stop */
	const char *default_text; /* for --help and the man page; NULL: nothing to say */
	enum policy_type type;
	enum policy_scope scope;
	const char *const *words; /* POLICY_WORD: NULL-terminated */
	bool may_be_zero;         /* core, output, grace */
	uint64_t least;           /* of a limit: the least that a program can run with; 0: any */
	bool may_be_none;         /* null in JSON; for limits and the workdir the flag word none too */
	size_t offset;            /* of the member in struct policy */
	enum policy_tightening tightening;
};

/* Is its flag a switch? */
static inline bool policy_key_is_switch(const struct policy_key *key)
{
	return key->type == POLICY_BOOL || key->type == POLICY_SWITCH;
}

extern const struct policy_key policy_keys[];
extern const size_t policy_key_count;

/* Names of enum guarantee, which are the keys of `enforced`; NULL-terminated. */
extern const char *const policy_guarantee_names[];

const struct policy_key *policy_key_by_name(const char *name);
const struct policy_key *policy_key_by_flag(const char *flag); /* without the dashes, without "no-" */

#endif
