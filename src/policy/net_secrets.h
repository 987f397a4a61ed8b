/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy/net_secrets.h - the entries of `secrets`: values that the gate puts into one header of requests to one host
 *
 * An entry is a text, NAME@HOST[:HEADER], or an object; its canonical form is an object. It names the source of the
 * value, and never contains the value.
 */
#ifndef BELLJAR_POLICY_NET_SECRETS_H
#define BELLJAR_POLICY_NET_SECRETS_H

#include "policy/net_rules.h"

#define NET_SECRET_NAME_SIZE 65
#define NET_SECRET_HEADER_SIZE 65
#define NET_SECRET_FORMAT_SIZE 129
#define NET_SECRET_SOURCE_SIZE 4096
#define NET_SECRETS_MAX 32
/* An attacker could guess a shorter value, and responses would contain it by chance. */
#define NET_SECRET_MIN 8
#define NET_SECRET_MAX 8192
/* Inside the jar, this and the secret's name replace the value. */
#define NET_SECRET_PLACEHOLDER "belljar-placeholder-for-"

struct net_secret {
	char name[NET_SECRET_NAME_SIZE]; /* the variable that has the placeholder inside the jar */
	char host[NET_NAME_SIZE];        /* a name, not a pattern */
	char header[NET_SECRET_HEADER_SIZE];
	char format[NET_SECRET_FORMAT_SIZE]; /* has {} once, where the value goes */
	bool is_file;
	char source[NET_SECRET_SOURCE_SIZE]; /* a file, or a variable of the caller's */
};

/* Returns 0, or -EINVAL with a reason. */
int net_secret_parse(const char *text, struct net_secret *secret, struct net_refusal *refusal);
int net_secret_parse_object(const struct json_value *object, struct net_secret *secret, struct net_refusal *refusal);
void net_secret_format(const struct net_secret *secret, struct text *out);

#endif
