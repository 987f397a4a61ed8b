/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/engine_events.c - the lines of --events
 */
#include "engine/engine_events.h"

#include <arpa/inet.h>

#include "base/base64.h"
#include "engine/engine_redact.h"
#include "engine/result/result_denied.h"

static const char *const stream_names[] = {[STREAM_STDOUT] = "stdout", [STREAM_STDERR] = "stderr"};

static void open_event(struct event_stream *events, struct json_writer *writer, const char *name, uint64_t elapsed_us)
{
	json_open_object(writer, NULL);
	json_write_string(writer, "event", name);
	json_write_unsigned(writer, "seq", events->sequence++);
	json_write_milliseconds(writer, "t_ms", elapsed_us);
}

static void close_event(struct json_writer *writer)
{
	json_close_object(writer);
	text_append_char(writer->text, '\n');
}

void engine_event_write_start(const struct plan *plan, const struct observation *seen, struct json_writer *writer)
{
	struct engine_words words;

	engine_words_init(&words, plan);
	json_open_array(writer, "argv");
	for (size_t i = 0; i < plan->core.argv.count; i++)
		engine_words_write(&words, plan->core.argv.items[i], writer, NULL);
	json_close_array(writer);
	engine_words_write(&words, plan->core.workdir, writer, "workdir");
	engine_words_done(&words);
	json_write_string(writer, "rung", plan_rung_name(plan->rung));
	result_write_enforced(plan, seen, writer);
	result_write_missing(plan, seen, writer);
	plan_write_limits(&plan->limits, writer, "limits");
	if (seen && seen->network.published_count)
		result_write_published(&seen->network, writer);
}

void engine_event_write_question(const struct net_question *question, struct json_writer *writer)
{
	static const char *const places[] = {
		[NET_PLACE_PUBLIC] = "public", [NET_PLACE_PRIVATE] = "private", [NET_PLACE_HOST] = "host"};
	const struct net_rule *rule = &question->rule;
	char address[INET6_ADDRSTRLEN] = "";
	AUTO_TEXT words = {0};

	if (rule->kind == NET_RULE_ADDRESS)
		inet_ntop(rule->is_ipv6 ? AF_INET6 : AF_INET, rule->address, address, sizeof(address));
	net_rule_format(rule, &words);
	json_write_unsigned(writer, "id", question->id);
	json_write_string(writer, "kind", "net");
	json_write_string(writer, "host", rule->kind == NET_RULE_ADDRESS ? address : rule->name);
	json_write_unsigned(writer, "port", rule->ports[0].first);
	json_write_string(writer, "address", places[question->place]);
	json_write_string(writer, "rule", text_string(&words));
	json_write_milliseconds(writer, "timeout_ms", question->timeout_ns / 1000);
}

void engine_event_start(struct event_stream *events, uint64_t elapsed_us, const struct plan *plan,
			const struct observation *seen, struct text *out)
{
	struct json_writer writer = {.text = out};

	open_event(events, &writer, "start", elapsed_us);
	engine_event_write_start(plan, seen, &writer);
	close_event(&writer);
}

/* The arguments of write_output(). */
struct piece_target {
	struct event_stream *events;
	uint64_t elapsed_us;
	struct text *out;
};

static void write_output(void *owner, enum stream_index stream, const char *bytes, size_t len)
{
	const struct piece_target *target = owner;
	struct event_stream *events = target->events;
	struct json_writer writer = {.text = target->out};

	open_event(events, &writer, "output", target->elapsed_us);
	json_write_string(&writer, "stream", stream_names[stream]);
	if (events->has_bytes) {
		AUTO_TEXT encoded = {0};

		base64_append(&encoded, bytes, len);
		json_write_string(&writer, "base64", text_string(&encoded));
	} else {
		json_write_bytes(&writer, "text", bytes, len);
	}
	json_write_unsigned(&writer, "bytes", len);
	close_event(&writer);
}

void engine_event_output(struct event_stream *events, uint64_t elapsed_us, enum stream_index stream, const void *bytes,
			 size_t len, struct text *out)
{
	struct piece_target target = {events, elapsed_us, out};

	if (engine_pieces_feed(&events->pieces, stream, bytes, len, write_output, &target) < 0)
		out->has_failed = true;
}

void engine_event_output_end(struct event_stream *events, uint64_t elapsed_us, enum stream_index stream, bool is_cut,
			     struct text *out)
{
	struct piece_target target = {events, elapsed_us, out};

	/* Bytes stay exact at a cut; text drops an incomplete character. */
	engine_pieces_end(&events->pieces, stream, is_cut && !events->has_bytes, write_output, &target);
}

void engine_event_limit(struct event_stream *events, uint64_t elapsed_us, enum limit_name name,
			const struct limit_hit *hit, struct text *out)
{
	struct json_writer writer = {.text = out};

	open_event(events, &writer, "limit", elapsed_us);
	result_write_limit(name, hit, &writer, "limit");
	close_event(&writer);
}

void engine_event_question(struct event_stream *events, uint64_t elapsed_us, const struct net_question *question,
			   struct text *out)
{
	struct json_writer writer = {.text = out};

	open_event(events, &writer, "ask", elapsed_us);
	engine_event_write_question(question, &writer);
	close_event(&writer);
}

void engine_event_denied(struct event_stream *events, uint64_t elapsed_us, const struct plan *plan,
			 const struct denial *denial, struct text *out)
{
	struct json_writer writer = {.text = out};

	open_event(events, &writer, "denied", elapsed_us);
	result_write_denial(plan, denial, &writer, "denied");
	close_event(&writer);
}

void engine_event_result(struct event_stream *events, uint64_t elapsed_us, const struct result_source *source,
			 struct text *out)
{
	struct json_writer writer = {.text = out};

	open_event(events, &writer, "result", elapsed_us);
	result_write(source, &writer, "result");
	close_event(&writer);
}
