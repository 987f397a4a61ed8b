/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workspace/workspace_meta.h - the description of a workspace: meta.json
 */
#ifndef BELLJAR_WORKSPACE_WORKSPACE_META_H
#define BELLJAR_WORKSPACE_WORKSPACE_META_H

#include <sys/types.h>

#include "base/error.h"
#include "base/text.h"

/* Two pronounceable words of five letters, 32 random bits: "lusab-babad". */
#define WORKSPACE_ID_SIZE 12
#define WORKSPACE_NAME_MAX 64
/* Frozen layers below the one that is written to. */
#define WORKSPACE_LAYERS_MAX 32
#define WORKSPACE_META_BYTES_MAX ((size_t)64 << 10)

enum workspace_kind {
	WORKSPACE_OVERLAY, /* the upper holds what differs from the workdir */
	WORKSPACE_COPY,    /* the upper is a whole copy of the workdir */
};

struct workspace_meta {
	char id[WORKSPACE_ID_SIZE];
	char *name; /* NULL: none */
	enum workspace_kind kind;
	char *workdir; /* absolute */
	dev_t workdir_device;
	ino_t workdir_inode;
	int64_t created_ns;   /* of the wall clock */
	int64_t stamp_ns;     /* a file of the workdir with this ctime or a later one was touched since */
	int64_t copied_ns;    /* WORKSPACE_COPY: files of the copy with an older ctime are unchanged; 0: incomplete */
	char *place;          /* where upper and work are, if not in the store: absolute; NULL */
	bool has_user_xattrs; /* overlay wrote its marks as user.overlay.*, not as trusted.overlay.* */
	bool is_frozen;       /* a layer that other stores use: never written to, and not listed */
	char *note;           /* of a checkpoint: the user's note; NULL */
	struct string_list layers; /* ids of frozen ones, the topmost first; the workdir is below them all */
};

void workspace_meta_done(struct workspace_meta *meta);
/* Parse strictly: any text that this program would not write is an error. @id is the name of its directory. */
int workspace_meta_parse(struct workspace_meta *out, const char *id, const char *bytes, size_t len,
			 struct error *error);
void workspace_meta_print(const struct workspace_meta *meta, struct text *out);

bool workspace_id_is_valid(const char *id);
/* Letters, digits, '.', '_' and '-', beginning with a letter or digit, and not of the shape of an id. */
bool workspace_name_is_valid(const char *name);
/* 32 bits as an id. */
void workspace_id_make(uint32_t bits, char out[WORKSPACE_ID_SIZE]);

#endif
