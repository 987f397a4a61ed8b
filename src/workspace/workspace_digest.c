/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workspace/workspace_digest.c - SHA-1 and SHA-256 (FIPS 180-4)
 */
#include "workspace/workspace_digest.h"

#include <string.h>

static const uint32_t sha256_constants[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
	0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
	0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
	0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
	0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
	0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
	0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t left(uint32_t word, unsigned bits)
{
	return word << bits | word >> (32 - bits);
}

static uint32_t right(uint32_t word, unsigned bits)
{
	return word >> bits | word << (32 - bits);
}

static uint32_t load(const unsigned char *bytes)
{
	return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static void sha1_block(uint32_t *state, const unsigned char *block)
{
	uint32_t w[80] = {0}, a = state[0], b = state[1], c = state[2], d = state[3], e = state[4];

	for (int i = 0; i < 80; i++)
		w[i] = i < 16 ? load(block + 4 * i) : left(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
	for (int i = 0; i < 80; i++) {
		uint32_t f, k, next;

		if (i < 20) {
			f = (b & c) | (~b & d);
			k = 0x5a827999;
		} else if (i < 40) {
			f = b ^ c ^ d;
			k = 0x6ed9eba1;
		} else if (i < 60) {
			f = (b & c) | (b & d) | (c & d);
			k = 0x8f1bbcdc;
		} else {
			f = b ^ c ^ d;
			k = 0xca62c1d6;
		}
		next = left(a, 5) + f + e + k + w[i];
		e = d;
		d = c;
		c = left(b, 30);
		b = a;
		a = next;
	}
	state[0] += a;
	state[1] += b;
	state[2] += c;
	state[3] += d;
	state[4] += e;
}

static void sha256_block(uint32_t *state, const unsigned char *block)
{
	uint32_t w[64] = {0}, v[8];

	for (int i = 0; i < 64; i++)
		w[i] = i < 16 ? load(block + 4 * i)
			      : w[i - 16] + (right(w[i - 15], 7) ^ right(w[i - 15], 18) ^ w[i - 15] >> 3) + w[i - 7] +
					(right(w[i - 2], 17) ^ right(w[i - 2], 19) ^ w[i - 2] >> 10);
	memcpy(v, state, sizeof(v));
	/* Instead of moving the eight words on, each round calls them by the next names. */
	for (unsigned i = 0; i < 64; i++) {
		const uint32_t a = v[-i & 7], b = v[(1 - i) & 7], c = v[(2 - i) & 7];
		const uint32_t e = v[(4 - i) & 7], f = v[(5 - i) & 7], g = v[(6 - i) & 7];
		uint32_t one = v[(7 - i) & 7] + (right(e, 6) ^ right(e, 11) ^ right(e, 25)) + ((e & f) ^ (~e & g)) +
			       sha256_constants[i] + w[i];

		v[(3 - i) & 7] += one;
		v[(7 - i) & 7] = one + (right(a, 2) ^ right(a, 13) ^ right(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
	}
	for (int i = 0; i < 8; i++)
		state[i] += v[i];
}

void workspace_digest_init_sha1(struct digest *digest)
{
	*digest =
		(struct digest){.is_sha1 = true, .state = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0}};
}

void workspace_digest_init_sha256(struct digest *digest)
{
	*digest = (struct digest){.state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c,
					    0x1f83d9ab, 0x5be0cd19}};
}

static void one_block(struct digest *digest, const unsigned char *block)
{
	if (digest->is_sha1)
		sha1_block(digest->state, block);
	else
		sha256_block(digest->state, block);
}

void workspace_digest_add(struct digest *digest, const void *bytes, size_t len)
{
	const unsigned char *at = bytes;
	size_t filled = digest->len % 64;

	digest->len += len;
	while (len) {
		size_t count = MIN_OF(64 - filled, len);

		if (!filled && len >= 64) {
			one_block(digest, at);
			count = 64;
		} else {
			memcpy(digest->block + filled, at, count);
			filled += count;
			if (filled == 64) {
				one_block(digest, digest->block);
				filled = 0;
			}
		}
		at += count;
		len -= count;
	}
}

void workspace_digest_hex(struct digest *digest, char *out)
{
	static const char digits[] = "0123456789abcdef";
	unsigned char end[136] = {0x80};
	uint64_t bits = digest->len * 8;
	size_t padding = (digest->len % 64 < 56 ? 56 : 120) - digest->len % 64;
	int words = digest->is_sha1 ? 5 : 8;

	for (size_t i = 0; i < 8; i++)
		end[padding + i] = (unsigned char)(bits >> (56 - 8 * i));
	workspace_digest_add(digest, end, padding + 8);
	for (int i = 0; i < words * 8; i++)
		out[i] = digits[digest->state[i / 8] >> (28 - 4 * (i % 8)) & 15];
	out[words * 8] = '\0';
}
