/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan/explain/plan_explain.h - may a command do this? By which rule, and what is the smallest change to allow it?
 *
 * Pure: a plan and a question give an answer. Everything that explains a refusal calls this: `belljar why`, `belljar
 * net check`, `belljar policy test`, and the cures of the ledger.
 */
#ifndef BELLJAR_PLAN_EXPLAIN_PLAN_EXPLAIN_H
#define BELLJAR_PLAN_EXPLAIN_PLAN_EXPLAIN_H

#include <linux/limits.h>

#include "base/json_write.h"
#include "plan/plan.h"

struct plan_explanation {
	bool is_allowed;
	struct text why;     /* a clause: the rule that decides */
	struct text flag;    /* options that would allow it; empty: no option does */
	struct text policy;  /* the same as members of a policy, a JSON object; empty with `flag` */
	struct text warning; /* why there is no cure, or a caution before taking it; may be empty */
};

void plan_explanation_done(struct plan_explanation *explanation);
/* Write the cure as a member @key: {"flag","policy"}, or null. */
void plan_write_cure(const struct plan_explanation *explanation, struct json_writer *writer, const char *key);

/* A host to reach. */
struct plan_endpoint {
	bool is_address, is_ipv6;
	uint8_t address[16];
	char name[NET_NAME_SIZE];  /* clean, unless it is an address */
	uint16_t port;             /* 0: on any port */
	const char *method, *path; /* of a request there; NULL: not given */
};

/* Read HOST[:PORT] or [ADDRESS]:PORT. Returns false if it is neither. */
bool plan_read_endpoint(const char *text, struct plan_endpoint *out);
/* Write such a text. */
void plan_format_endpoint(const struct plan_endpoint *endpoint, struct text *out);

/* The part of a plan about networks. */
struct plan_network_rules {
	enum net_mode net;
	bool may_have_gate; /* the rung can have one */
	const struct net_rule_list *rules;
	bool is_asked; /* Belljar asks if no rule decides; false for a past connection, whose answer is known */
};

struct plan_network_rules plan_network_rules(const struct plan *plan);
void plan_explain_host(const struct plan_network_rules *network, const struct plan_endpoint *endpoint,
		       struct plan_explanation *out);
/* Explain that a rule allows the name, but not @address, to which it resolves. */
void plan_explain_address(const struct plan_endpoint *endpoint, const struct plan_endpoint *address,
			  struct plan_explanation *out);
/* Explain @request, a method and a path that the rules about the host do not allow. */
void plan_explain_request(const struct plan_endpoint *endpoint, const char *request, struct plan_explanation *out);

/* --- paths -------------------------------------------------------------------------------------------------- */

enum plan_access { PLAN_READ, PLAN_WRITE, PLAN_EXECUTE, PLAN_ACCESS_COUNT };

extern const char *const plan_access_names[]; /* "read", "write", "exec" */

/* The object at a path of the host, links not followed. */
struct plan_object {
	mode_t mode; /* with its type; 0: nothing is there */
	uid_t uid;
	gid_t gid;
	char link[PATH_MAX]; /* the target of a link */
};

/* The function that looks at the host for plan_explain_path(). */
struct plan_looker {
	void (*look)(void *owner, const char *path, struct plan_object *out);
	void *owner;
	uid_t uid; /* the caller */
	gid_t gid;
	const char *home; /* its home directory; NULL: none */
	/* The command tried it and was refused, so the jar's own places did not contain the file by then. */
	bool was_refused;
};

/* Return the part behind the process in a path of /proc, "" for its directory; NULL: the path is of the machine. */
const char *plan_part_of_process(const char *path);
/* Look at @path, which is /proc or in it. Of other processes only the first differs from the command itself. */
void plan_look_at_proc(const struct plan *plan, const struct plan_looker *looker, const char *path,
		       struct plan_object *out);

/* Does it lead to a file that a process has open, so that the rules about that file decide? */
bool plan_is_of_open_file(const char *path);

/* Explain @path, absolute and clean, as a command would name it. Modes count, access control lists do not. */
void plan_explain_path(const struct plan *plan, const struct plan_looker *looker, const char *path,
		       enum plan_access access, struct plan_explanation *out);

/* A file of the host, or a directory above it. */
struct plan_node {
	const char *path;
	dev_t device;
	ino_t inode;
};

/* Return where the jar shows the file way[0], in any mode, or NULL. way[1] is its directory, and so on up to "/". */
const char *plan_shows(const struct plan *plan, const struct plan_node *way, size_t count);

/* --- limits ------------------------------------------------------------------------------------------------- */

/* Explain a limit. @name is its key; @limit in bytes, milliseconds or a count, as in a result. */
void plan_explain_limit(const char *name, uint64_t limit, struct plan_explanation *out);

/* --- system calls ------------------------------------------------------------------------------------------- */

/* Explain a call. @was_told: the ledger has the refusal, so only rows reported to it count. False: an unknown call. */
bool plan_explain_call(const struct plan *plan, const char *name, bool was_told, struct plan_explanation *out);

#endif
