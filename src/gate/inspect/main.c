/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate/inspect/main.c - belljar-gate: make an authority for a jar, and be the gate that uses it
 */
#include <errno.h>
#include <fcntl.h>
#include <nghttp2/nghttp2.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "base/json_write.h"
#include "gate/gate_main.h"
#include "gate/gate_vault.h"
#include "gate/inspect/inspect.h"

#define EXIT_FAILED 125

static bool read_all(int fd, struct text *out)
{
	struct stat status;
	size_t size;
	char *room;

	if (fd < 0 || fstat(fd, &status) < 0 || status.st_size < 0 || (uint64_t)status.st_size > VAULT_FILE_MAX)
		return false;
	size = (size_t)status.st_size;
	room = text_reserve(out, size);
	while (room && out->len < size) {
		ssize_t len = pread(fd, out->data + out->len, size - out->len, (off_t)out->len);

		if (len <= 0)
			return false;
		out->len += (size_t)len;
	}
	return room;
}

static bool write_text(int fd, const struct text *text)
{
	return !text_failed(text) && text_write_all(fd, text->data, text->len) == 0;
}

/* --- make --------------------------------------------------------------------------------------------------- */

static int fail(const char *format, ...) PRINTF_LIKE(1, 2);
static int fail(const char *format, ...)
{
	AUTO_TEXT reason = {0};
	va_list arguments;

	va_start(arguments, format);
	text_append_format_list(&reason, format, arguments);
	va_end(arguments);
	write_text(VAULT_FD, &reason);
	return EXIT_FAILED;
}

static bool read_path(const char *path, struct text *out)
{
	AUTO_CLOSE int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;

	return read_all(fd, out);
}

/* The value of one secret, out of a file. */
static int read_secret_file(const char *path, struct text *out)
{
	if (!read_path(path, out))
		return fail("cannot read the secret in '%s': %s", path, strerror(errno));
	if (out->len && out->data[out->len - 1] == '\n')
		out->len--;
	return 0;
}

static int write_secret(struct json_writer *writer, const struct json_value *secret)
{
	static const char *const names[] = {"name", "host", "header", "format"};
	const struct json_member *found = secret->type == JSON_OBJECT ? json_find(secret, "value") : NULL;
	const struct json_value *value = found && found->value.type == JSON_STRING ? &found->value : NULL;
	AUTO_TEXT text = {0};
	const char *fault;
	int rc = 0;

	if (secret->type != JSON_OBJECT || !json_string_of(secret, "name"))
		return fail("the request cannot be read");
	if (value)
		text_append(&text, value->string.bytes, value->string.len);
	else
		rc = read_secret_file(json_string_of(secret, "file"), &text);
	if (rc)
		return rc;
	fault = inspect_secret_value_fault(text_string(&text), text.len);
	if (fault)
		return fail("cannot use the value of the secret %s: %s", json_string_of(secret, "name"), fault);
	json_open_object(writer, NULL);
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		json_write_string(writer, names[i], json_string_of(secret, names[i]));
	json_write_bytes(writer, "value", text.data, text.len);
	json_close_object(writer);
	OPENSSL_cleanse(text.data, text.len);
	return 0;
}

static int write_secrets(const struct json_value *request, struct text *out)
{
	struct json_writer writer = {.text = out, .has_byte_escapes = true};
	const struct json_member *list = json_find(request, "secrets");
	int rc = 0;

	json_open_array(&writer, NULL);
	for (size_t i = 0; list && list->value.type == JSON_LIST && i < list->value.list.count && !rc; i++)
		rc = write_secret(&writer, &list->value.list.items[i]);
	json_close_array(&writer);
	return rc;
}

static int make_files(const struct json_value *request, const struct authority *authority, struct text *vault)
{
	AUTO_TEXT trust = {0}, java = {0}, java_made = {0}, der = {0}, key = {0}, secrets = {0};
	int rc = write_secrets(request, &secrets);
	struct vault_header header = {.magic = VAULT_MAGIC};
	const char *bundle_path = json_string_of(request, "bundle");

	if (rc)
		return rc;
	if (!read_path(bundle_path, &trust) || !trust.len)
		return fail("cannot read the authorities that this host trusts, '%s': %s",
			    bundle_path ? bundle_path : "", strerror(errno));
	if (!inspect_authority_write(authority, &key) || !inspect_authority_write_der(authority, &der))
		return fail("cannot write the certificate of the jar's authority");
	header.authority_len = (uint32_t)key.len;
	header.trust_len = (uint32_t)trust.len;
	header.secrets_len = (uint32_t)secrets.len;
	text_append(vault, &header, sizeof(header));
	text_append(vault, key.data, key.len);
	text_append(vault, trust.data, trust.len);
	text_append(vault, secrets.data, secrets.len);
	OPENSSL_cleanse(key.data, key.len);
	OPENSSL_cleanse(secrets.data, secrets.len);
	if (trust.data[trust.len - 1] != '\n')
		text_append_char(&trust, '\n');
	if (!inspect_authority_write_pem(authority, &trust) || !write_text(VAULT_BUNDLE_FD, &trust))
		return fail("cannot write the jar's list of authorities");
	if (read_path(json_string_of(request, "java"), &java) && inspect_trust_add_to_java(&java, &der, &java_made) &&
	    !write_text(VAULT_JAVA_FD, &java_made))
		return fail("cannot write Java's list of authorities");
	return 0;
}

static int make(void)
{
	AUTO_TEXT text = {0}, vault = {0}, version = {0};
	struct json_input input = {.name = "request", .stage = STAGE_ENGINE, .has_byte_escapes = true};
	struct authority *authority;
	AUTO_JSON request = {0};
	struct error error = {0};
	int rc;

	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	if (!read_all(VAULT_REQUEST_FD, &text))
		return EXIT_FAILED;
	input.bytes = text.data;
	input.len = text.len;
	if (json_parse(&input, &request, &error) < 0)
		return fail("the request cannot be read");
	text_append_format(&version, VAULT_VERSION_FORMAT, VAULT_VERSION_ARGUMENTS);
	if (!json_string_of(&request, "version") ||
	    strcmp(json_string_of(&request, "version"), text_string(&version)) != 0)
		return fail("belljar-gate and belljar are of different versions");
	authority = inspect_authority_new();
	if (!authority)
		return fail("cannot make a certificate authority: %s", ERR_reason_error_string(ERR_peek_error()));
	rc = make_files(&request, authority, &vault);
	inspect_authority_free(authority);
	if (rc == 0 && !write_text(VAULT_FD, &vault))
		rc = EXIT_FAILED;
	if (vault.len)
		OPENSSL_cleanse(vault.data, vault.len);
	return rc;
}

/* --- the gate ----------------------------------------------------------------------------------------------- */

static bool read_trust(SSL_CTX *context, const char *bytes, size_t len)
{
	BIO *memory = BIO_new_mem_buf(bytes, (int)len);
	X509_STORE *store = SSL_CTX_get_cert_store(context);
	size_t count = 0;
	X509 *certificate;

	while (memory && (certificate = PEM_read_bio_X509(memory, NULL, NULL, NULL))) {
		count += X509_STORE_add_cert(store, certificate) == 1;
		X509_free(certificate);
	}
	ERR_clear_error();
	BIO_free(memory);
	return count;
}

static bool make_contexts(struct inspector *inspector, const char *trust, size_t trust_len)
{
	SSL_CTX *server = SSL_CTX_new(TLS_server_method()), *client = SSL_CTX_new(TLS_client_method());

	inspector->server_context = server;
	inspector->client_context = client;
	if (!server || !client || !SSL_CTX_set_min_proto_version(server, TLS1_2_VERSION) ||
	    !SSL_CTX_set_min_proto_version(client, TLS1_2_VERSION))
		return false;
	inspect_prepare_context(server);
	SSL_CTX_set_options(server, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
	SSL_CTX_set_options(client, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
	SSL_CTX_set_session_cache_mode(server, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_session_cache_mode(client, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_verify(client, SSL_VERIFY_PEER, NULL);
	return read_trust(client, trust, trust_len);
}

static bool read_secrets(struct inspector *inspector, const char *bytes, size_t len)
{
	struct json_input input = {
		.name = "vault", .bytes = bytes, .len = len, .stage = STAGE_ENGINE, .has_byte_escapes = true};
	AUTO_JSON list = {0};
	struct error error = {0};

	return json_parse(&input, &list, &error) == 0 && inspect_secrets_read(&inspector->secrets, &list);
}

static bool has_secret(const struct gate_inspector *gate_inspector, const char *host)
{
	const struct inspector *inspector = gate_inspector->state;

	return inspect_secrets_are_for(&inspector->secrets, host);
}

static int begin(struct gate_inspector *gate_inspector, int vault_fd)
{
	struct inspector *inspector = gate_inspector->state;
	struct vault_header header;
	AUTO_TEXT vault = {0};
	const char *at;
	int rc = -EINVAL;

	/* Before any of it is in memory. */
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return -errno;
	if (!read_all(vault_fd, &vault) || vault.len < sizeof(header))
		return -EINVAL;
	memcpy(&header, vault.data, sizeof(header));
	at = vault.data + sizeof(header);
	if (header.magic == VAULT_MAGIC &&
	    vault.len == sizeof(header) + (uint64_t)header.authority_len + header.trust_len + header.secrets_len) {
		inspector->authority = inspect_authority_read((const uint8_t *)at, header.authority_len);
		if (inspector->authority && make_contexts(inspector, at + header.authority_len, header.trust_len) &&
		    read_secrets(inspector, at + header.authority_len + header.trust_len, header.secrets_len))
			rc = 0;
	}
	OPENSSL_cleanse(vault.data, vault.len);
	return rc;
}

int main(int argc, char **argv)
{
	static struct inspector inspector;
	static struct gate_inspector gate_inspector = {
		.methods = &inspect_connection_methods, .begin = begin, .has_secret = has_secret, .state = &inspector};

	if (argc == 2 && !strcmp(argv[1], VAULT_ARGUMENT))
		return make();
	if (argc == 2 && !strcmp(argv[1], GATE_ARGUMENT))
		return gate_main(&gate_inspector);
	if (argc == 2 && !strcmp(argv[1], "--version")) {
		/* Of the libraries as they are now, which need not be those that it was built with. */
		printf("belljar-gate " BELLJAR_VERSION " (%s, nghttp2 %s)\n", OpenSSL_version(OPENSSL_VERSION),
		       nghttp2_version(0)->version_str);
		return 0;
	}
	fputs("belljar starts belljar-gate itself, for jars whose policy has rules about requests\n", stderr);
	return EXIT_FAILED;
}
