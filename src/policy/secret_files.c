/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy/secret_files.c - the table of files that usually hold secrets in a project
 *
 * A name is compared in every directory of a project. Where a name is common for other files too, the content decides.
 */
#include "policy/secret_files.h"

#include <stdio.h>
#include <string.h>

#include "policy/policy_patterns.h"

/* Exceptions, which come first. */
static const char *const exceptions[] = {".env.example", ".env.sample",   ".env.template",
					 ".env.dist",    ".env.defaults", "id_*.pub"};

static const struct {
	const char *glob;
	const char *content[3]; /* one of them is in it; none: the name is enough */
} secrets[] = {
	{".env", {NULL}},
	{".env.*", {NULL}},
	{"*.env", {NULL}},
	{"*.pem", {NULL}},
	{"*.p12", {NULL}},
	{"*.pfx", {NULL}},
	{"*.jks", {NULL}},
	{"*.keystore", {NULL}},
	{"*.kdbx", {NULL}},
	{"*.ppk", {NULL}},
	{"*.key", {"PRIVATE KEY"}},
	{"id_*", {"PRIVATE KEY"}},
	{".npmrc", {"_auth", "_password"}},
	{".yarnrc.yml", {"npmAuthToken", "npmAuthIdent"}},
	{".pypirc", {NULL}},
	{".netrc", {NULL}},
	{"_netrc", {NULL}},
	{".pgpass", {NULL}},
	{".git-credentials", {NULL}},
	{".htpasswd", {NULL}},
	{".vault-token", {NULL}},
	{".vault_pass", {NULL}},
	{"credentials.json", {NULL}},
	{"client_secret*.json", {NULL}},
	{"*service-account*.json", {"private_key"}},
	{"*service_account*.json", {"private_key"}},
	{"*serviceAccount*.json", {"private_key"}},
	{"*firebase-adminsdk*.json", {"private_key"}},
	{"*.tfstate", {NULL}},
	{"*.tfstate.backup", {NULL}},
	{"terraform.tfvars", {NULL}},
	{"master.key", {NULL}},
	{"secrets.toml", {NULL}},
	{"kubeconfig", {NULL}},
	{".dockercfg", {NULL}},
};

static const char *const tools[] = {"node_modules",  "bower_components", ".venv",       "venv",        ".tox", ".nox",
				    "site-packages", "dist-packages",    "__pycache__", ".mypy_cache", ".git", ".hg",
				    ".svn"};

static bool is_in(const char *name, const char *const *globs, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (policy_pattern_matches(globs[i], strlen(globs[i]), name))
			return true;
	return false;
}

/* A cheap filter that rejects most names. */
static bool may_match(const char *glob, const char *name, size_t len)
{
	size_t glob_len = strlen(glob);

	return (glob[0] == '*' || glob[0] == name[0]) &&
	       (glob[glob_len - 1] == '*' || glob[glob_len - 1] == name[len - 1]);
}

enum secret_file policy_secret_file_of(const char *name, const char **glob_out)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < ARRAY_LEN(secrets) && len; i++) {
		if (!may_match(secrets[i].glob, name, len) ||
		    !policy_pattern_matches(secrets[i].glob, strlen(secrets[i].glob), name))
			continue;
		if (is_in(name, exceptions, ARRAY_LEN(exceptions)))
			return SECRET_NONE;
		*glob_out = secrets[i].glob;
		return secrets[i].content[0] ? SECRET_BY_CONTENT : SECRET_BY_NAME;
	}
	return SECRET_NONE;
}

bool policy_secret_file_has(const char *glob, const char *content, size_t len)
{
	for (size_t i = 0; i < ARRAY_LEN(secrets); i++)
		for (size_t j = 0; !strcmp(secrets[i].glob, glob) && j < ARRAY_LEN(secrets[i].content); j++) {
			const char *sought = secrets[i].content[j];

			if (sought && memmem(content, len, sought, strlen(sought)))
				return true;
		}
	return false;
}

bool policy_secret_file_is_tools(const char *directory)
{
	for (size_t i = 0; i < ARRAY_LEN(tools); i++)
		if (!strcmp(directory, tools[i]))
			return true;
	return false;
}

#define GLOBS (ARRAY_LEN(secrets) + ARRAY_LEN(exceptions))

/* An exception has '!' before it. */
static const char *write_glob(size_t index, char out[SECRET_GLOB_BYTES])
{
	bool is_exception = index >= ARRAY_LEN(secrets);

	snprintf(out, SECRET_GLOB_BYTES, "%s**/%s", is_exception ? "!" : "",
		 is_exception ? exceptions[index - ARRAY_LEN(secrets)] : secrets[index].glob);
	return out;
}

void policy_secret_files_write(struct json_writer *writer, const char *key)
{
	char glob[SECRET_GLOB_BYTES];

	json_open_array(writer, key);
	for (size_t i = 0; i < GLOBS; i++)
		json_write_string(writer, NULL, write_glob(i, glob));
	json_close_array(writer);
}

bool policy_secret_files_are(const struct json_value *list)
{
	char glob[SECRET_GLOB_BYTES];

	if (list->type != JSON_LIST || list->list.count != GLOBS)
		return false;
	for (size_t i = 0; i < GLOBS; i++)
		if (list->list.items[i].type != JSON_STRING ||
		    strcmp(list->list.items[i].string.bytes, write_glob(i, glob)) != 0)
			return false;
	return true;
}
