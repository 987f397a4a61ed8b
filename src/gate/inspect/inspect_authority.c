/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate/inspect/inspect_authority.c - a certificate authority for one jar, and certificates for the names that it asks for
 *
 * Valid from a day ago, since the client's clock may be slow. All names share one key. A key for each name would delay
 * the first connection to every host and protect nothing, since this process has them all.
 */
#include "gate/inspect/inspect.h"

#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>

#define DAY_SECONDS 86400L
#define VALID_DAYS 30
#define LEAVES_MAX 256

struct leaf {
	char name[NET_NAME_SIZE];
	X509 *certificate;
};

struct authority {
	X509 *certificate;
	EVP_PKEY *key;
	EVP_PKEY *leaf_key;
	struct leaf leaves[LEAVES_MAX];
	size_t leaf_count;
};

static bool add_extension(X509 *certificate, X509 *issuer, int kind, const char *value)
{
	X509_EXTENSION *extension;
	X509V3_CTX context;
	bool is_added;

	X509V3_set_ctx(&context, issuer, certificate, NULL, NULL, 0);
	extension = X509V3_EXT_conf_nid(NULL, &context, kind, value);
	is_added = extension && X509_add_ext(certificate, extension, -1);
	X509_EXTENSION_free(extension);
	return is_added;
}

static bool set_serial(X509 *certificate)
{
	BIGNUM *number = BN_new();
	bool is_set = number && BN_rand(number, 127, BN_RAND_TOP_ANY, BN_RAND_BOTTOM_ANY) &&
		      BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate));

	BN_free(number);
	return is_set;
}

static X509 *new_certificate(const char *name, EVP_PKEY *key, X509 *issuer)
{
	X509 *made = X509_new();
	X509_NAME *subject = made ? X509_get_subject_name(made) : NULL;

	if (!made || !X509_set_version(made, X509_VERSION_3) || !set_serial(made) ||
	    !X509_gmtime_adj(X509_getm_notBefore(made), -DAY_SECONDS) ||
	    !X509_gmtime_adj(X509_getm_notAfter(made), VALID_DAYS * DAY_SECONDS) ||
	    !X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, (const unsigned char *)name, -1, -1, 0) ||
	    !X509_set_issuer_name(made, X509_get_subject_name(issuer ? issuer : made)) || !X509_set_pubkey(made, key)) {
		X509_free(made);
		return NULL;
	}
	return made;
}

static bool make_root(struct authority *authority)
{
	X509 *made = new_certificate("Belljar, for one jar", authority->key, NULL);

	authority->certificate = made;
	return made && add_extension(made, made, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
	       add_extension(made, made, NID_key_usage, "critical,keyCertSign,cRLSign") &&
	       add_extension(made, made, NID_subject_key_identifier, "hash") &&
	       X509_sign(made, authority->key, EVP_sha256());
}

static X509 *make_leaf(const struct authority *authority, const char *name)
{
	/* A common name has room for 64 characters; clients ignore it if there are alternative names. */
	X509 *made = new_certificate("belljar", authority->leaf_key, authority->certificate);
	char names[NET_NAME_SIZE + 8];

	snprintf(names, sizeof(names), "DNS:%s", name);
	if (made && add_extension(made, authority->certificate, NID_basic_constraints, "critical,CA:FALSE") &&
	    add_extension(made, authority->certificate, NID_key_usage, "critical,digitalSignature") &&
	    add_extension(made, authority->certificate, NID_ext_key_usage, "serverAuth") &&
	    add_extension(made, authority->certificate, NID_subject_alt_name, names) &&
	    add_extension(made, authority->certificate, NID_subject_key_identifier, "hash") &&
	    add_extension(made, authority->certificate, NID_authority_key_identifier, "keyid") &&
	    X509_sign(made, authority->key, EVP_sha256()))
		return made;
	X509_free(made);
	return NULL;
}

void inspect_authority_free(struct authority *authority)
{
	if (!authority)
		return;
	for (size_t i = 0; i < authority->leaf_count; i++)
		X509_free(authority->leaves[i].certificate);
	X509_free(authority->certificate);
	EVP_PKEY_free(authority->key);
	EVP_PKEY_free(authority->leaf_key);
	free(authority);
}

struct authority *inspect_authority_new(void)
{
	struct authority *made = calloc(1, sizeof(*made));

	if (!made)
		return NULL;
	made->key = EVP_EC_gen("P-256");
	if (made->key && make_root(made))
		return made;
	inspect_authority_free(made);
	return NULL;
}

/* --- kept and shown ----------------------------------------------------------------------------------------- */

bool inspect_authority_write_der(const struct authority *authority, struct text *out)
{
	unsigned char *bytes = NULL;
	int len = i2d_X509(authority->certificate, &bytes);

	if (len > 0)
		text_append(out, bytes, (size_t)len);
	OPENSSL_free(bytes);
	return len > 0 && !text_failed(out);
}

bool inspect_authority_write(const struct authority *authority, struct text *out)
{
	unsigned char *bytes = NULL;
	int len = i2d_PrivateKey(authority->key, &bytes);

	if (len > 0)
		text_append(out, bytes, (size_t)len);
	OPENSSL_clear_free(bytes, len > 0 ? (size_t)len : 0);
	return len > 0 && inspect_authority_write_der(authority, out);
}

bool inspect_authority_write_pem(const struct authority *authority, struct text *out)
{
	BIO *memory = BIO_new(BIO_s_mem());
	char *bytes;
	long len;
	bool is_written = memory && PEM_write_bio_X509(memory, authority->certificate);

	len = is_written ? BIO_get_mem_data(memory, &bytes) : 0;
	if (len > 0)
		text_append(out, bytes, (size_t)len);
	BIO_free(memory);
	return len > 0 && !text_failed(out);
}

struct authority *inspect_authority_read(const uint8_t *bytes, size_t len)
{
	struct authority *made = calloc(1, sizeof(*made));
	const unsigned char *at = bytes;

	if (!made)
		return NULL;
	made->key = d2i_AutoPrivateKey(NULL, &at, (long)len);
	if (made->key)
		made->certificate = d2i_X509(NULL, &at, (long)(bytes + len - at));
	made->leaf_key = made->certificate ? EVP_EC_gen("P-256") : NULL;
	if (made->leaf_key)
		return made;
	inspect_authority_free(made);
	return NULL;
}

bool inspect_authority_use(struct authority *authority, SSL *ssl, const char *name)
{
	X509 *found = NULL;
	bool is_used;

	for (size_t i = 0; i < authority->leaf_count && !found; i++)
		if (!strcmp(authority->leaves[i].name, name))
			found = authority->leaves[i].certificate;
	if (found)
		return SSL_use_certificate(ssl, found) && SSL_use_PrivateKey(ssl, authority->leaf_key);
	found = make_leaf(authority, name);
	is_used = found && SSL_use_certificate(ssl, found) && SSL_use_PrivateKey(ssl, authority->leaf_key);
	if (found && authority->leaf_count < LEAVES_MAX) {
		struct leaf *leaf = &authority->leaves[authority->leaf_count++];

		snprintf(leaf->name, sizeof(leaf->name), "%s", name);
		leaf->certificate = found;
	} else {
		X509_free(found);
	}
	return is_used;
}
