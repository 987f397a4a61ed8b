/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate/inspect/inspect_trust.c - one more authority in Java's list
 *
 * The format JKS: a magic number, a version, a count, the entries, and a hash over a fixed text and all of that. Everybody knows the
 * password: the list has no secrets.
 */
#include <openssl/evp.h>
#include <string.h>
#include <time.h>

#include "gate/inspect/inspect.h"

#define JAVA_MAGIC 0xfeedfeedU
#define JAVA_VERSION 2
#define JAVA_CERTIFICATE 2
#define JAVA_HEADER 12
#define JAVA_HASH 20

static uint32_t number_at(const char *bytes)
{
	const unsigned char *at = (const unsigned char *)bytes;

	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static void append_number(struct text *out, uint64_t number, int size)
{
	while (size--)
		text_append_char(out, (char)(number >> size * 8));
}

static void append_word(struct text *out, const char *word)
{
	append_number(out, strlen(word), 2);
	text_append_string(out, word);
}

static bool append_hash(struct text *out)
{
	static const char password[] = "changeit", salt[] = "Mighty Aphrodite";
	unsigned char hash[EVP_MAX_MD_SIZE];
	unsigned hash_len = 0;
	AUTO_TEXT all = {0};

	for (const char *at = password; *at; at++)
		append_number(&all, (uint64_t)*at, 2);
	text_append_string(&all, salt);
	text_append(&all, out->data, out->len);
	if (text_failed(&all) || !EVP_Digest(all.data, all.len, hash, &hash_len, EVP_sha1(), NULL))
		return false;
	text_append(out, hash, hash_len);
	return true;
}

bool inspect_trust_add_to_java(const struct text *list, const struct text *certificate_der, struct text *out)
{
	if (list->len < JAVA_HEADER + JAVA_HASH || number_at(list->data) != JAVA_MAGIC ||
	    number_at(list->data + 4) != JAVA_VERSION)
		return false;
	append_number(out, JAVA_MAGIC, 4);
	append_number(out, JAVA_VERSION, 4);
	append_number(out, number_at(list->data + 8) + 1, 4);
	text_append(out, list->data + JAVA_HEADER, list->len - JAVA_HEADER - JAVA_HASH);
	append_number(out, JAVA_CERTIFICATE, 4);
	append_word(out, "belljar");
	append_number(out, (uint64_t)time(NULL) * 1000, 8);
	append_word(out, "X.509");
	append_number(out, certificate_der->len, 4);
	text_append(out, certificate_der->data, certificate_der->len);
	return append_hash(out) && !text_failed(out);
}
