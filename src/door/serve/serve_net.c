/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/serve/serve_net.c - a rule for the network of a session, while it lives
 *
 * The answer comes after the gate has taken the rule, so the next connection of the jar is under that rule.
 */
#include "door/serve/serve_net.h"

#include <errno.h>
#include <string.h>

#include "policy/net_rules.h"

struct serve_change {
	struct object object;
	struct channel *channel; /* NULL: the client is gone */
	struct server_jar *server_jar;
	struct gate_change *change; /* NULL: it is over */
};

static void leave(struct serve_change *change)
{
	change->change = NULL;
	change->channel = NULL;
	change->object.is_dead = true;
}

static void kill_change(struct object *object)
{
	(void)object;
}

static void free_change(struct object *object)
{
	struct serve_change *change = (struct serve_change *)object;

	if (change->change)
		jar_forget_change(change->change);
	server_jar_leave(change->server_jar);
	free(change);
}

static void change_on_frame(struct channel *channel, struct wire_frame *frame)
{
	serve_channel_refuse(channel, frame);
}

/* The rule may be taken all the same. */
static void change_on_gone(struct channel *channel)
{
	struct serve_change *change = channel->object;

	if (change->change)
		jar_forget_change(change->change);
	leave(change);
}

static const struct channel_role change_role = {change_on_frame, NULL, change_on_gone};

static int refuse(int rc, struct error *error)
{
	switch (-rc) {
	case ENOTCONN:
		error_set(error, STAGE_POLICY, EINVAL, "this jar has no gate: its network cannot be changed");
		return error_hint(error, "open it with net=\"gate\", which reaches nothing until something is allowed");
	case EOPNOTSUPP:
	case EPERM:
		error_set(
			error, STAGE_HOST, EOPNOTSUPP,
			"this jar's network was made without these addresses or ports, and this host cannot add them");
		return error_hint(error, "open the jar with the rule in allow_net");
	case EPROTONOSUPPORT:
		error_set(error, STAGE_POLICY, EINVAL, "this jar was opened without a gate that reads requests");
		return error_hint(error, "open the jar with a rule that says \"tls\": \"inspect\"");
	case ENOSPC:
		return error_set(error, STAGE_POLICY, E2BIG, "this jar has as many rules as a gate can have");
	case EPIPE:
	case ECONNRESET:
		error_set(error, STAGE_ENGINE, ECONNRESET, "the jar's gate is gone");
		return error_hint(error, "open another jar");
	case EAGAIN:
	case ETIMEDOUT:
		return error_set(error, STAGE_ENGINE, ETIMEDOUT,
				 "the jar's gate does not answer: whether the rule holds is not known");
	default:
		return error_set(error, STAGE_ENGINE, -rc, "cannot change the jar's network: %s", strerror(-rc));
	}
}

static void change_on_done(void *owner, int rc)
{
	struct serve_change *change = owner;
	struct channel *channel = change->channel;
	struct error error = {0};

	leave(change);
	serve_channel_set_role(channel, NULL, NULL);
	if (rc < 0) {
		refuse(rc, &error);
		serve_channel_fail(channel, &error, NULL);
		return;
	}
	wire_send(&channel->wire, FRAME_ANSWER, "{}", 2, -1);
	serve_channel_end(channel);
}

static int read_rule(const struct wire_frame *frame, struct net_rule *rule, struct error *error)
{
	AUTO_REQUEST request = {0};
	struct net_refusal refusal = {0};
	int rc = serve_check_descriptors_sent(frame, 1, error);

	if (rc == 0)
		rc = wire_request_parse(REQUEST_NET, frame->payload, frame->len, &request, error);
	if (rc < 0)
		return rc;
	rc = net_rule_parse_change(request.rule, request.change == REQUEST_DENY, rule, &refusal);
	if (rc == 0)
		return 0;
	error_set(error, STAGE_POLICY, EINVAL, "%s: %s", request.change == REQUEST_DENY ? "deny_net" : "allow_net",
		  refusal.why);
	return refusal.hint[0] ? error_hint(error, "%s", refusal.hint) : -EINVAL;
}

static int begin(struct channel *channel, struct server_jar *server_jar, const struct wire_frame *frame,
		 struct error *error)
{
	struct serve_change *change;
	struct net_rule rule;
	int rc = read_rule(frame, &rule, error);

	if (rc < 0)
		return rc;
	if (plan_is_for_calls(&server_jar->launch.plan))
		return error_set(error, STAGE_USAGE, EINVAL, "this is a jar for calls: its network cannot be changed");
	change = calloc(1, sizeof(*change));
	if (!change)
		return error_set(error, STAGE_ENGINE, ENOMEM, "out of memory");
	change->object = (struct object){.kill = kill_change, .free = free_change};
	change->server_jar = server_jar;
	server_jar_hold(server_jar);
	server_add(channel->server, &change->object);
	rc = jar_change_rules(server_jar->jar, &rule, change_on_done, change, &change->change);
	if (rc < 0) {
		change->object.is_dead = true;
		return refuse(rc, error);
	}
	change->channel = channel;
	serve_channel_set_role(channel, &change_role, change);
	return 0;
}

void serve_net_begin(struct channel *channel, struct server_jar *server_jar, const struct wire_frame *frame)
{
	struct error error = {0};

	if (begin(channel, server_jar, frame, &error) < 0)
		serve_channel_fail(channel, &error, NULL);
}
