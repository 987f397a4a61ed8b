/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy/net_secrets.c - the entries of `secrets`: read and write
 */
#include "policy/net_secrets.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/json_write.h"

#define DEFAULT_HEADER "Authorization"
#define DEFAULT_FORMAT "Bearer {}"
#define OTHER_FORMAT "{}"

static int refuse(struct net_refusal *refusal, const char *why)
{
	snprintf(refusal->why, sizeof(refusal->why), "%s", why);
	refusal->hint[0] = '\0';
	return -EINVAL;
}

static bool is_name(const char *name)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";

	return *name && (*name < '0' || *name > '9') && strspn(name, letters) == strlen(name);
}

/* May a secret go into this header? Not if it decides where a request goes or where it ends. */
static bool is_header(const char *header)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
	static const char *const taken[] = {
		"Host", "Connection", "Content-Length", "Transfer-Encoding", "Keep-Alive", "Trailer",
		"TE",   "Upgrade",    "Expect"};

	if (!*header || strspn(header, letters) != strlen(header) || !strncasecmp(header, "Proxy-", 6))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(taken); i++)
		if (!strcasecmp(header, taken[i]))
			return false;
	return true;
}

static bool is_format(const char *format)
{
	const char *place = strstr(format, "{}");

	for (const char *at = format; *at; at++)
		if (*at < ' ' || *at > '~')
			return false;
	return place && !strstr(place + 2, "{}");
}

/* Fill in the defaults, and require the rest. */
static int complete(struct net_secret *secret, struct net_refusal *refusal)
{
	char host[NET_NAME_SIZE];

	if (!is_name(secret->name))
		return refuse(refusal, "the name of a secret is that of a variable: letters, digits and '_'");
	if (!net_name_clean(secret->host, strlen(secret->host), host) || !strchr(host, '.'))
		return refuse(refusal, "a secret is for one host, as in NAME@api.example.org");
	memcpy(secret->host, host, sizeof(host));
	if (!secret->header[0])
		snprintf(secret->header, sizeof(secret->header), "%s", DEFAULT_HEADER);
	if (!is_header(secret->header))
		return refuse(refusal, "a secret cannot be in this header");
	if (!secret->format[0])
		snprintf(secret->format, sizeof(secret->format), "%s",
			 strcasecmp(secret->header, DEFAULT_HEADER) ? OTHER_FORMAT : DEFAULT_FORMAT);
	if (!is_format(secret->format))
		return refuse(refusal, "\"format\" is one line of text that has {} once, as in \"Bearer {}\"");
	if (!secret->source[0])
		snprintf(secret->source, sizeof(secret->source), "%s", secret->name);
	if (secret->is_file ? secret->source[0] != '/' : !is_name(secret->source))
		return refuse(refusal, secret->is_file ? "\"from_file\" is an absolute path"
						       : "\"from_env\" is the name of a variable");
	return 0;
}

static bool copy(char *to, size_t size, const char *from, size_t len)
{
	if (!len || len >= size || memchr(from, '\0', len))
		return false;
	memcpy(to, from, len);
	to[len] = '\0';
	return true;
}

int net_secret_parse(const char *text, struct net_secret *secret, struct net_refusal *refusal)
{
	const char *at = strchr(text, '@'), *colon = at ? strchr(at, ':') : NULL;
	struct net_secret made = {0};
	int rc;

	if (text[0] == '{') {
		struct json_input input = {.name = "secret", .bytes = text, .len = strlen(text), .stage = STAGE_POLICY};
		AUTO_JSON object = {0};
		struct error error = {0};

		if (json_parse(&input, &object, &error) < 0)
			return refuse(refusal, "the object cannot be read as JSON");
		return net_secret_parse_object(&object, secret, refusal);
	}
	if (!at || !copy(made.name, sizeof(made.name), text, (size_t)(at - text)) ||
	    !copy(made.host, sizeof(made.host), at + 1, colon ? (size_t)(colon - at - 1) : strlen(at + 1)) ||
	    (colon && !copy(made.header, sizeof(made.header), colon + 1, strlen(colon + 1))))
		return refuse(refusal, "a secret is NAME@HOST or NAME@HOST:HEADER");
	rc = complete(&made, refusal);
	if (rc == 0)
		*secret = made;
	return rc;
}

int net_secret_parse_object(const struct json_value *object, struct net_secret *secret, struct net_refusal *refusal)
{
	struct net_secret made = {0};
	const struct {
		const char *name;
		char *to;
		size_t size;
	} members[] = {
		{"name", made.name, sizeof(made.name)},         {"host", made.host, sizeof(made.host)},
		{"header", made.header, sizeof(made.header)},   {"format", made.format, sizeof(made.format)},
		{"from_env", made.source, sizeof(made.source)}, {"from_file", made.source, sizeof(made.source)},
	};
	int rc;

	if (object->type != JSON_OBJECT)
		return refuse(refusal, "a secret must be a string or an object");
	if (json_find(object, "from_env") && json_find(object, "from_file"))
		return refuse(refusal, "a secret has \"from_env\" or \"from_file\", not both");
	for (size_t i = 0; i < object->object.count; i++) {
		const struct json_member *member = &object->object.members[i];
		size_t which = 0;

		while (which < ARRAY_LEN(members) && strcmp(members[which].name, member->name) != 0)
			which++;
		/* The text may be the secret itself, so the message does not show it. */
		if (which == ARRAY_LEN(members))
			return refuse(
				refusal,
				"a secret has \"name\", \"host\", \"header\", \"format\", and \"from_env\" or \"from_file\"");
		if (member->value.type != JSON_STRING ||
		    !copy(members[which].to, members[which].size, member->value.string.bytes, member->value.string.len))
			return refuse(refusal, "every member of a secret is a text of no great length");
	}
	made.is_file = json_find(object, "from_file");
	rc = complete(&made, refusal);
	if (rc == 0)
		*secret = made;
	return rc;
}

void net_secret_format(const struct net_secret *secret, struct text *out)
{
	struct json_writer writer = {.text = out};

	json_open_object(&writer, NULL);
	json_write_string(&writer, "name", secret->name);
	json_write_string(&writer, "host", secret->host);
	json_write_string(&writer, "header", secret->header);
	json_write_string(&writer, "format", secret->format);
	json_write_string(&writer, secret->is_file ? "from_file" : "from_env", secret->source);
	json_close_object(&writer);
}
