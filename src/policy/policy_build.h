/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy/policy_build.h - make a policy: preset, then file, then flags from left to right, then tighten
 */
#ifndef BELLJAR_POLICY_POLICY_BUILD_H
#define BELLJAR_POLICY_POLICY_BUILD_H

#include "base/json_read.h"
#include "policy/policy_keys.h"

/* The bases of relative paths and '~'. Borrowed strings, absolute paths. */
struct policy_context {
	const char *current_directory; /* NULL: it no longer exists, and a relative path is an error */
	const char *home;              /* NULL: '~' is an error */
};

/* Make an `agent` policy. *@policy need not be initialised; it is written only on success. */
int policy_init(struct policy *policy, const struct policy_context *context, struct error *error);
/* The same from @agent, which was made without a home: faster than reading the preset again. */
int policy_init_from(struct policy *policy, const struct policy *agent, const struct policy_context *context,
		     struct error *error);
void policy_done(struct policy *policy);

/* Copy @from; the copy shares no memory with it. *@out need not be initialised. -ENOMEM leaves it unchanged. */
int policy_copy(const struct policy *from, struct policy *out);

/*
 * Replace *policy (initialised) by the preset or file that --policy names. A name with a '/' or with ".json" at its
 * end is a file. Here and below, a failure leaves *policy unchanged.
 */
int policy_load(struct policy *policy, const char *file_or_preset, const struct policy_context *context,
		struct error *error);
/* The same for a document in memory; @name is for error messages, @directory is the base of its relative paths. */
int policy_load_document(struct policy *policy, const char *document, size_t len, const char *name,
			 const char *directory, const struct policy_context *context, struct error *error);
/* A document of keywords on top of *policy: as with flags, lists are appended to; `extends` is refused. */
int policy_append_document(struct policy *policy, const char *document, size_t len, const char *name,
			   const char *directory, const struct policy_context *context, struct error *error);

/*
 * The same two for objects from a program: messages name the key only, and relative paths of keywords start at the
 * current directory, as those of flags do.
 */
int policy_load_value(struct policy *policy, const struct json_value *value, const char *directory,
		      const struct policy_context *context, struct error *error);
int policy_append_value(struct policy *policy, const struct json_value *value, const struct policy_context *context,
			struct error *error);

/* Set one flag. @value is NULL for a bool; @is_negated for the --no- form. A list grows. */
int policy_set_flag(struct policy *policy, const struct policy_key *key, const char *value, bool is_negated,
		    const struct policy_context *context, struct error *error);

/*
 * Apply a file that may only tighten; refuse anything that loosens, and name the key. A door with its own defaults sets
 * them before this, or else a file could raise them.
 */
int policy_tighten(struct policy *policy, const char *file, const struct policy_context *context, struct error *error);
/* The same for a document in memory; relative paths in it start at the current directory. */
int policy_tighten_document(struct policy *policy, const char *document, size_t len, const char *name,
			    const struct policy_context *context, struct error *error);

/* Which limits apply to a jar as a whole, and so to each run in it, whether they were given or not. */
enum policy_sharing {
	SHARES_NOTHING, /* the jar is the run's own */
	SHARES_FILES,   /* a jar for calls: only its private places exist before the call */
	SHARES_ALL,     /* a jar for commands */
};

/*
 * Lower each limit of @run to that of @jar, which it was copied from, where the jar's was given or is shared. Sets
 * run->own_limits. @named_keys: bits, as in given_keys, of the keys that the run named itself.
 */
void policy_hold(struct policy *run, const struct policy *jar, uint64_t named_keys, enum policy_sharing sharing);
/* Did the run name this limit itself, below the jar's? @own_limits: as in struct policy. */
bool policy_is_own_limit(uint64_t own_limits, const char *key_name);

/* Did a file, a flag or a preset other than agent set the key? If not, a door's own default holds. */
bool policy_is_given(const struct policy *policy, const char *key_name);
/* Did a document set it, so that a list keeps none of the default? Flags and keywords append. */
bool policy_is_replaced(const struct policy *policy, const char *key_name);

/*
 * Print the effective policy as JSON, every key in table order; it loads back to the same policy. @indent as in
 * json_writer. A default `workdir` is left out, since no value means it. Bytes that are not UTF-8, in paths and
 * variables from flags, are lost.
 */
void policy_print(const struct policy *policy, struct text *out, int indent);
/* Print the keys that decide how a jar is made, with the CPU time of one command. Equal texts make equal jars. */
void policy_print_jar(const struct policy *policy, struct text *out);
/* Print a JSON Schema (draft 2020-12) made from the table. */
void policy_print_schema(struct text *out);

/* Preset names for messages and completions; NULL-terminated. */
extern const char *const policy_preset_names[];

#endif
