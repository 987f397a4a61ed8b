/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workspace/workspace_digest.h - SHA-256 of files for people's tools, SHA-1 of blobs because git's patches name them
 */
#ifndef BELLJAR_WORKSPACE_WORKSPACE_DIGEST_H
#define BELLJAR_WORKSPACE_WORKSPACE_DIGEST_H

#include "base/base.h"

#define DIGEST_SHA1_HEX 41
#define DIGEST_SHA256_HEX 65

struct digest {
	uint32_t state[8];
	uint64_t len;
	unsigned char block[64];
	bool is_sha1;
};

void workspace_digest_init_sha1(struct digest *digest);
void workspace_digest_init_sha256(struct digest *digest);
void workspace_digest_add(struct digest *digest, const void *bytes, size_t len);
/* In hexadecimal digits: 40 or 64, and a NUL. */
void workspace_digest_hex(struct digest *digest, char *out);

#endif
