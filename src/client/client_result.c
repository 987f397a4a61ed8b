/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/client_result.c - how a run ended: read the result object once, answer questions about it
 *
 * What programs ask for most is read into members when the result comes, so that the accessors cannot fail. The object
 * itself is kept as text for everything else: a newer engine may say more than this library knows.
 */
#include "client/client_result.h"

#include <errno.h>
#include <string.h>

#include "base/signals.h"

static const char *const outcome_names[] = {
	[BELLJAR_EXITED] = "exited", [BELLJAR_SIGNALED] = "signaled",   [BELLJAR_TIMEOUT] = "timeout",
	[BELLJAR_CPU] = "cpu",       [BELLJAR_MEMORY] = "memory",       [BELLJAR_DISK] = "disk",
	[BELLJAR_OUTPUT] = "output", [BELLJAR_CANCELLED] = "cancelled",
};

/* Milliseconds in the object, microseconds for the program. */
static const struct {
	const char *name;
	int factor;
} usage_names[] = {
	[BELLJAR_WALL_US] = {"wall_ms", 1000},
	[BELLJAR_USER_US] = {"user_ms", 1000},
	[BELLJAR_SYSTEM_US] = {"system_ms", 1000},
	[BELLJAR_PEAK_MEMORY_BYTES] = {"peak_memory_bytes", 1},
	[BELLJAR_PEAK_PROCESSES] = {"peak_processes", 1},
};

int client_result_append(struct belljar_result *result, int stream, const char *bytes, size_t len,
			 struct belljar_error *failure)
{
	struct text *text = &result->streams[stream - BELLJAR_STDOUT];

	text_append(text, bytes, len);
	return text_failed(text) ? client_no_memory(failure) : 0;
}

static enum belljar_outcome outcome_of(const char *name)
{
	for (size_t i = 1; i < ARRAY_LEN(outcome_names); i++) {
		if (strcmp(outcome_names[i], name) == 0)
			return (enum belljar_outcome)i;
	}
	return BELLJAR_UNKNOWN;
}

static void read_usage(struct belljar_result *result, const struct json_value *document)
{
	const struct json_value *usage = json_member(document, "usage", JSON_OBJECT);

	for (size_t i = 0; i < ARRAY_LEN(usage_names); i++) {
		const struct json_member *found =
			usage && usage_names[i].name ? json_find(usage, usage_names[i].name) : NULL;
		double number = -1;

		if (found && found->value.type == JSON_INTEGER)
			number = (double)found->value.number.integer;
		else if (found && found->value.type == JSON_REAL)
			number = found->value.number.real;
		result->usage[i] = number < 0 || number > (double)INT64_MAX / 1000
					   ? UINT64_MAX
					   : (uint64_t)(number * usage_names[i].factor + 0.5);
	}
}

static int read_limits(struct belljar_result *result, const struct json_value *document)
{
	const struct json_value *limits = json_member(document, "limits_hit", JSON_LIST);
	int rc = 0;

	for (size_t i = 0; limits && i < limits->list.count && rc == 0; i++) {
		const struct json_value *item = &limits->list.items[i];
		const char *name = item->type == JSON_OBJECT ? json_string_of(item, "name") : NULL;

		if (name)
			rc = string_list_add(&result->limits, name);
	}
	return rc;
}

static const char *const denied_names[] = {
	[BELLJAR_DENIED_KIND] = "kind",         [BELLJAR_DENIED_WHAT] = "what",
	[BELLJAR_DENIED_ACCESS] = "access",     [BELLJAR_DENIED_PROCESS] = "process",
	[BELLJAR_DENIED_WHY] = "why",           [BELLJAR_DENIED_CURE] = "flag",
	[BELLJAR_DENIED_WARNING] = "warning",   [BELLJAR_DENIED_CERTAINTY] = "certainty",
	[BELLJAR_DENIED_SENTENCE] = "sentence",
};

static int read_denial(struct client_denial *denial, const struct json_value *item)
{
	const struct json_value *cure = json_member(item, "cure", JSON_OBJECT),
				*count = json_member(item, "count", JSON_INTEGER);

	denial->count = count && count->number.integer > 0 ? (uint64_t)count->number.integer : 0;
	for (size_t i = 0; i < ARRAY_LEN(denied_names); i++) {
		const struct json_value *holder = i == BELLJAR_DENIED_CURE ? cure : item;
		const char *value = holder ? json_string_of(holder, denied_names[i]) : NULL;

		denial->members[i] = value ? strdup(value) : NULL;
		if (value && !denial->members[i])
			return -ENOMEM;
	}
	return 0;
}

static int read_denied(struct belljar_result *result, const struct json_value *document)
{
	const struct json_value *denied = json_member(document, "denied", JSON_LIST);
	int rc = 0;

	if (!denied || !denied->list.count)
		return 0;
	result->denials = calloc(denied->list.count, sizeof(*result->denials));
	if (!result->denials)
		return -ENOMEM;
	for (size_t i = 0; i < denied->list.count && rc == 0; i++)
		if (denied->list.items[i].type == JSON_OBJECT)
			rc = read_denial(&result->denials[result->denial_count++], &denied->list.items[i]);
	return rc;
}

static int read_document(struct belljar_result *result, const struct json_value *document,
			 struct belljar_error *failure)
{
	const struct json_value *exit_code = json_member(document, "exit_code", JSON_INTEGER);
	const struct json_value *enforced = json_member(document, "enforced", JSON_OBJECT);
	const struct json_value *truncated = json_member(document, "truncated", JSON_BOOL);
	const char *outcome = json_string_of(document, "outcome"), *signal = json_string_of(document, "signal");
	const char *rung = enforced ? json_string_of(enforced, "rung") : NULL;

	if (!outcome)
		return client_engine_nonsense(failure);
	if (strcmp(outcome, "failed") == 0)
		return client_read_failure(document, failure);
	result->outcome = outcome_of(outcome);
	result->result_outcome_name = strdup(outcome);
	result->rung = strdup(rung ? rung : "process");
	result->exit_code = exit_code ? (int)exit_code->number.integer : -1;
	result->signal = signal ? signal_number(signal) : 0;
	result->is_truncated = truncated && truncated->boolean;
	read_usage(result, document);
	if (read_limits(result, document) < 0 || read_denied(result, document) < 0 || !result->result_outcome_name ||
	    !result->rung)
		return client_no_memory(failure);
	return 0;
}

int client_result_read(struct belljar_result *result, const char *json, size_t len, struct belljar_error *failure)
{
	AUTO_JSON document = {0};
	int rc = client_parse(json, len, &document, failure);

	if (rc == 0)
		rc = read_document(result, &document, failure);
	if (rc < 0)
		return rc;
	result->json = strndup(json, len);
	return result->json ? 0 : client_no_memory(failure);
}

/* --- public --- */

enum belljar_outcome belljar_result_outcome(const struct belljar_result *result)
{
	return result ? result->outcome : BELLJAR_UNKNOWN;
}

const char *belljar_result_outcome_name(const struct belljar_result *result)
{
	return result ? result->result_outcome_name : "unknown";
}

int belljar_result_exit_code(const struct belljar_result *result)
{
	return result && result->outcome == BELLJAR_EXITED ? result->exit_code : -1;
}

int belljar_result_signal(const struct belljar_result *result)
{
	return result ? result->signal : 0;
}

static const char *stream_bytes(const struct belljar_result *result, int stream, size_t *len_out)
{
	static const struct text empty = {0};
	const struct text *text = result ? &result->streams[stream - BELLJAR_STDOUT] : &empty;

	if (len_out)
		*len_out = text->len;
	return text_string(text);
}

const char *belljar_result_stdout(const struct belljar_result *result, size_t *len_out)
{
	return stream_bytes(result, BELLJAR_STDOUT, len_out);
}

const char *belljar_result_stderr(const struct belljar_result *result, size_t *len_out)
{
	return stream_bytes(result, BELLJAR_STDERR, len_out);
}

int belljar_result_is_truncated(const struct belljar_result *result)
{
	return result && result->is_truncated;
}

const char *belljar_result_limit(const struct belljar_result *result, size_t index)
{
	return result && index < result->limits.count ? result->limits.items[index] : NULL;
}

const char *belljar_result_denied(const struct belljar_result *result, size_t index, enum belljar_denied member)
{
	if (!result || index >= result->denial_count || (unsigned)member > BELLJAR_DENIED_SENTENCE)
		return NULL;
	return result->denials[index].members[member];
}

uint64_t belljar_result_denied_count(const struct belljar_result *result, size_t index)
{
	return result && index < result->denial_count ? result->denials[index].count : 0;
}

uint64_t belljar_result_usage(const struct belljar_result *result, enum belljar_usage what)
{
	return result && what >= BELLJAR_WALL_US && what <= BELLJAR_PEAK_PROCESSES ? result->usage[what] : UINT64_MAX;
}

const char *belljar_result_rung(const struct belljar_result *result)
{
	return result ? result->rung : "process";
}

const char *belljar_result_json(const struct belljar_result *result)
{
	return result ? result->json : "null";
}

void belljar_result_free(struct belljar_result *result)
{
	if (!result)
		return;
	text_done(&result->streams[0]);
	text_done(&result->streams[1]);
	string_list_done(&result->limits);
	for (size_t i = 0; i < result->denial_count; i++)
		for (size_t j = 0; j < ARRAY_LEN(denied_names); j++)
			free(result->denials[i].members[j]);
	free(result->denials);
	free(result->json);
	free(result->result_outcome_name);
	free(result->rung);
	free(result);
}
