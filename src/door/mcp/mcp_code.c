/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/mcp/mcp_code.c - the tool `run_code`: interpreters in a jar that keep their variables
 *
 * An interpreter is a run that does not end by itself: a small program (drivers/) that reads pieces of code from a
 * pipe and answers each on another. Its output has pipes of its own that lead here: what was written before an answer
 * is in them when the answer comes, so nothing in the output has to mark its end. What the inside answers is only what
 * it says about itself: it is read with bounds and passed on.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>

#include "base/units.h"
#include "door/mcp/mcp_drivers.h"
#include "door/mcp/mcp_server.h"

#define CODE_MAX ((size_t)512 << 10)
#define PIPE_BYTES (1 << 20) /* more than a piece of code, so that writing one never waits */
#define ANSWER_MAX ((size_t)16 << 20)
#define OUTPUT_MAX ((size_t)1 << 20)
#define NANOSECONDS_PER_MILLISECOND 1000000
#define GRACE_NS ((uint64_t)2 * 1000000000)

static const struct language {
	const char *name;
	const char *argv[6]; /* the driver is put in place of NULL at @driver_at */
	int driver_at;
	const char *driver;
	bool has_interrupt; /* SIGINT ends the piece and keeps the state */
} languages[] = {
	[LANGUAGE_PYTHON] = {"python", {"python3", "-c", NULL}, 2, mcp_driver_python, true},
	[LANGUAGE_JAVASCRIPT] = {"javascript",
				 {"sh", "-c", "exec node -e \"$1\" >&5 2>&6 5>&- 6>&-", "sh", NULL},
				 4,
				 mcp_driver_javascript,
				 false},
	[LANGUAGE_BASH] = {"bash", {"bash", "-c", NULL}, 2, mcp_driver_bash, false},
};
_Static_assert(ARRAY_LEN(languages) == LANGUAGE_COUNT, "every language has a row");

/* One way out of the interpreter: its answers, its stdout, its stderr. */
struct outlet {
	struct mcp_interpreter *interpreter;
	struct loop_watch watch;
	int fd;
	struct text text;
	size_t lost_bytes;
	struct redact_stream *redaction; /* of this piece; NULL: nothing was written, or nothing is secret */
};

struct code_call {
	struct mcp_call call;
	struct mcp_interpreter *interpreter;
	struct loop_timer timer;
	uint64_t allowed_ns;
	bool is_late; /* its time was over, and it got a signal */
};

enum { OUTLET_ANSWER, OUTLET_STDOUT, OUTLET_STDERR, OUTLET_COUNT };

struct mcp_interpreter {
	struct mcp_server *server;
	struct mcp_jar *jar;
	enum mcp_language language;
	struct belljar_handle *handle;
	struct loop_watch watch;
	int request_fd;
	struct outlet outlets[OUTLET_COUNT];
	struct code_call *call; /* at work; NULL: none */
	int64_t number;         /* of the last piece: an answer has to be about it */
};

void mcp_interpreter_free(struct mcp_interpreter *interpreter)
{
	if (!interpreter)
		return;
	if (interpreter->jar->interpreters[interpreter->language] == interpreter)
		interpreter->jar->interpreters[interpreter->language] = NULL;
	loop_remove(&interpreter->watch);
	for (size_t i = 0; i < OUTLET_COUNT; i++) {
		loop_remove(&interpreter->outlets[i].watch);
		close_fd(&interpreter->outlets[i].fd);
		text_done(&interpreter->outlets[i].text);
		redact_stream_free(interpreter->outlets[i].redaction);
	}
	close_fd(&interpreter->request_fd);
	belljar_free(interpreter->handle);
	free(interpreter);
}

/* --- the end of a piece ------------------------------------------------------------------------------------- */

static void copy_number(const struct json_value *answer, struct json_writer *writer, const char *name)
{
	const struct json_member *member = json_find(answer, name);

	if (member && member->value.type == JSON_INTEGER)
		json_write_value(writer, name, &member->value);
	else
		json_write_null(writer, name);
}

/* A string of the answer as a client may see it; NULL: there is none. */
static const char *string_of(const struct json_value *answer, const char *name, const struct redactor *redactor,
			     struct text *shown)
{
	const struct json_member *member = json_find(answer, name);

	if (!member || member->value.type != JSON_STRING)
		return NULL;
	redact_string(redactor, member->value.string.bytes, shown);
	return text_string(shown);
}

static size_t room_of(uint64_t limit, size_t used)
{
	return limit > used ? (size_t)MIN_OF(limit - used, (uint64_t)OUTPUT_MAX) : 0;
}

/* More of what was written, without secrets, as far as there is room: OUTPUT_MAX, and less where the owner of the jar allows less. */
static void keep(struct outlet *outlet, const char *bytes, size_t len)
{
	const struct output_limit *limit = &outlet->interpreter->jar->output;
	const struct outlet *outlets = outlet->interpreter->outlets;
	size_t used = outlets[OUTLET_STDOUT].text.len + outlets[OUTLET_STDERR].text.len;
	size_t room = room_of(OUTPUT_MAX, outlet->text.len);

	room = MIN_OF(room, room_of(limit->total_bytes, used));
	room = MIN_OF(room, room_of(limit->stream_bytes[outlet != &outlets[OUTLET_STDOUT]], outlet->text.len));

	text_append(&outlet->text, bytes, MIN_OF(len, room));
	outlet->lost_bytes += len - MIN_OF(len, room);
}

static void take_output(struct outlet *outlet, const char *bytes, size_t len)
{
	const struct redactor *redactor = outlet->interpreter->jar->redactor;
	AUTO_TEXT clean = {0};

	if (!redactor) {
		keep(outlet, bytes, len);
		return;
	}
	if (!outlet->redaction)
		outlet->redaction = redact_stream_new(redactor);
	if (outlet->redaction)
		redact_feed(outlet->redaction, bytes, len, &clean);
	else
		outlet->lost_bytes += len;
	keep(outlet, text_string(&clean), clean.len);
}

/* Pass on the bytes that waited because they could begin a secret. */
static void finish_output(struct outlet *outlet)
{
	AUTO_TEXT clean = {0};

	if (!outlet->redaction)
		return;
	redact_finish(outlet->redaction, &clean);
	keep(outlet, text_string(&clean), clean.len);
	redact_stream_free(take_ptr(outlet->redaction));
}

/* The value, the error and the images of a piece: each as long as all its output may be, where the owner bounds that. */
static size_t most_of_answer(const struct mcp_jar *jar)
{
	const struct output_limit *limit = &jar->output;
	uint64_t most = limit->total_bytes;

	if (most == LIMIT_NONE && policy_output_is_bounded(limit))
		most = MAX_OF(limit->stream_bytes[0], limit->stream_bytes[1]);
	return (size_t)MIN_OF(most, (uint64_t)SIZE_MAX);
}

static bool is_base64(const char *text)
{
	return text[strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=")] == '\0';
}

static void add_images(const struct json_value *answer, const struct mcp_jar *jar, struct mcp_result *result)
{
	const struct json_member *images = json_find(answer, "images");
	size_t left = most_of_answer(jar), lost = 0;

	for (size_t i = 0; images && images->value.type == JSON_LIST && i < images->value.list.count; i++) {
		const struct json_value *image = &images->value.list.items[i];

		if (image->type != JSON_STRING || !is_base64(image->string.bytes))
			continue;
		if (image->string.len > left) {
			lost++;
			continue;
		}
		left -= image->string.len;
		mcp_show_image(result, "image/png", image->string.bytes);
	}
	if (lost)
		mcp_say(result, "%zu image%s left out: the owner's limit of output allows no more", lost,
			lost == 1 ? " was" : "s were");
}

static struct mcp_piece stream_piece(struct outlet *outlet, const char *name, char *path, size_t size)
{
	struct mcp_piece piece = {.name = name};

	finish_output(outlet);
	piece.bytes = text_string(&outlet->text);
	piece.len = outlet->text.len;
	piece.path = mcp_keep_output(outlet->interpreter->jar, name, piece.bytes, piece.len, path, size);
	return piece;
}

/* Cuts no character in two. */
static struct mcp_piece string_piece(const struct mcp_jar *jar, const char *name, const char *string)
{
	struct mcp_piece piece = {.name = name, .bytes = string, .len = string ? strlen(string) : 0};
	size_t most = most_of_answer(jar);

	if (piece.len > most) {
		piece.len = most;
		while (piece.len && ((unsigned char)string[piece.len] & 0xC0) == 0x80)
			piece.len--;
	}
	return piece;
}

static void say_cut(struct mcp_result *result, const struct mcp_piece *piece)
{
	size_t len = piece->bytes ? strlen(piece->bytes) : 0;

	if (len > piece->len)
		mcp_say(result, "%s: %zu bytes more than the owner's limit of output allows were left out", piece->name,
			len - piece->len);
}

static void say_lost(struct mcp_result *result, struct outlet *outlet, const char *name)
{
	if (outlet->lost_bytes)
		mcp_say(result, "%s: %zu bytes more were written and are lost", name, outlet->lost_bytes);
	text_clear(&outlet->text);
	outlet->lost_bytes = 0;
}

/* The time of a piece was over. */
static void say_late(struct mcp_result *result, const struct code_call *code)
{
	AUTO_TEXT flag = {0};
	struct mcp_limit limit = {.name = "timeout",
				  .amount = code->allowed_ns / NANOSECONDS_PER_MILLISECOND,
				  .jar = code->call.jar,
				  .is_of_the_call = code->allowed_ns < code->call.jar->timeout_ns};
	uint64_t twice;

	if (!__builtin_mul_overflow(code->allowed_ns, 2, &twice)) {
		text_append_string(&flag, "--timeout ");
		units_format_duration(&flag, twice);
		limit.flag = text_string(&flag);
	}
	mcp_say_limit(result, &limit);
}

/*
 * @answer: what the inside says, an object; NULL: it says no more. @words: what Belljar has to say, or NULL. @ended:
 * the end of the interpreter, or NULL.
 */
static void end_piece(struct mcp_interpreter *interpreter, const struct json_value *answer, const char *words,
		      const struct belljar_result *ended)
{
	const struct mcp_jar *jar = interpreter->jar;
	const struct redactor *redactor = jar->redactor;
	struct code_call *code = interpreter->call;
	AUTO_TEXT shown_value = {0}, shown_error = {0};
	AUTO_RESULT result = {0};
	struct json_writer writer = {.text = &result.structured};
	const struct json_member *status = answer ? json_find(answer, "exit_code") : NULL;
	const char *error = answer ? string_of(answer, "error", redactor, &shown_error) : NULL;
	struct outlet *out = &interpreter->outlets[OUTLET_STDOUT], *err = &interpreter->outlets[OUTLET_STDERR];
	char out_path[64], err_path[64];
	const struct mcp_piece pieces[] = {
		stream_piece(out, "stdout", out_path, sizeof(out_path)),
		stream_piece(err, "stderr", err_path, sizeof(err_path)),
		string_piece(jar, "value", answer ? string_of(answer, "value", redactor, &shown_value) : NULL),
		string_piece(jar, "error", error),
	};

	json_open_object(&writer, NULL);
	mcp_show(&result, &writer, pieces, ARRAY_LEN(pieces));
	if (answer)
		copy_number(answer, &writer, "exit_code");
	else
		json_write_null(&writer, "exit_code");
	if (answer)
		add_images(answer, jar, &result);
	say_lost(&result, out, "stdout");
	say_lost(&result, err, "stderr");
	for (size_t i = 2; i < ARRAY_LEN(pieces); i++)
		say_cut(&result, &pieces[i]);
	if (code->is_late)
		say_late(&result, code);
	if (ended) {
		mcp_say_limits(&result, ended, jar);
		mcp_tell_risky(&result, &writer, belljar_result_json(ended), "risky");
	} else {
		mcp_look(&result, &writer, jar);
	}
	if (words)
		mcp_say(&result, "%s", words);
	if (status && status->value.type == JSON_INTEGER)
		mcp_say(&result, "exit status %lld", (long long)status->value.number.integer);
	else if (answer)
		mcp_say(&result, "the interpreter reports %s", error ? "an error" : "no error");
	result.is_error = error || !answer;
	mcp_close_structured(&result, &writer);
	interpreter->call = NULL;
	loop_disarm(&code->timer);
	mcp_end(&code->call, &result);
	free(code);
}

/* The interpreter is of no use any more, or there is none. */
static void give_up(struct mcp_interpreter *interpreter, const char *words)
{
	if (interpreter->call)
		end_piece(interpreter, NULL, words, NULL);
	mcp_interpreter_free(interpreter);
}

/* --- what comes from the inside ----------------------------------------------------------------------------- */

/* Read all bytes in the pipe now; later ones belong to the next piece. Negative: the pipe has no writer. */
static int drain(struct outlet *outlet)
{
	int waiting = 0;

	if (ioctl(outlet->fd, FIONREAD, &waiting) < 0)
		return -errno;
	while (waiting > 0) {
		char buffer[16384];
		ssize_t count = read(outlet->fd, buffer, MIN_OF(sizeof(buffer), (size_t)waiting));

		if (count <= 0)
			return count < 0 && errno == EAGAIN ? 0 : -EPIPE;
		take_output(outlet, buffer, (size_t)count);
		waiting -= (int)count;
	}
	return 0;
}

static void on_stream(struct loop_watch *watch, uint32_t events)
{
	struct outlet *outlet = watch->owner;
	struct mcp_interpreter *interpreter = outlet->interpreter;
	size_t before = outlet->text.len;

	drain(outlet);
	if (interpreter->call && outlet->text.len > before)
		mcp_progress(&interpreter->call->call, outlet->text.data + before,
			     MIN_OF(outlet->text.len - before, (size_t)400));
	if (outlet->text.len == before && (events & (EPOLLHUP | EPOLLERR)))
		loop_remove(watch);
}

static bool is_about(const struct json_value *answer, int64_t number)
{
	const struct json_member *member = json_find(answer, "number");

	return member && member->value.type == JSON_INTEGER && member->value.number.integer == number;
}

static void take_answer(struct mcp_interpreter *interpreter, size_t len)
{
	struct outlet *outlet = &interpreter->outlets[OUTLET_ANSWER];
	struct json_input input = {.name = "answer",
				   .bytes = outlet->text.data,
				   .len = len,
				   .stage = STAGE_ENGINE,
				   .max_bytes = ANSWER_MAX};
	AUTO_JSON answer = {0};
	struct error error = {0};
	bool is_good = json_parse(&input, &answer, &error) == 0 && answer.type == JSON_OBJECT &&
		       is_about(&answer, interpreter->number);

	text_consume(&outlet->text, len + 1);
	drain(&interpreter->outlets[OUTLET_STDOUT]);
	drain(&interpreter->outlets[OUTLET_STDERR]);
	if (!is_good || !interpreter->call)
		give_up(interpreter,
			"the interpreter sent an answer that Belljar cannot read; Belljar ended it, and its variables are gone");
	else
		end_piece(interpreter, &answer, interpreter->call->is_late ? "the variables are kept" : NULL, NULL);
}

static void on_answer(struct loop_watch *watch, uint32_t events)
{
	struct outlet *outlet = watch->owner;
	char *room = text_reserve(&outlet->text, 65536);
	ssize_t count = room ? read(outlet->fd, room, 65536) : -1;
	const char *end;

	if (count < 0 && errno == EAGAIN)
		return;
	if (count > 0)
		outlet->text.len += (size_t)count;
	end = outlet->text.len ? memchr(outlet->text.data, '\0', outlet->text.len) : NULL;
	if (end)
		take_answer(outlet->interpreter, (size_t)(end - outlet->text.data));
	else if (count <= 0)
		loop_remove(watch); /* the end of the run ends it too */
	else if (outlet->text.len > ANSWER_MAX)
		give_up(outlet->interpreter,
			"the interpreter's answer is too long; Belljar ended it, and its variables are gone");
}

static void on_run(struct loop_watch *watch, uint32_t events)
{
	struct mcp_interpreter *interpreter = watch->owner;
	struct belljar_error *error = NULL;
	int rc = belljar_process(interpreter->handle, &error);
	struct belljar_result *ended;
	AUTO_TEXT words = {0};

	if (rc == 0)
		return;
	drain(&interpreter->outlets[OUTLET_STDOUT]);
	drain(&interpreter->outlets[OUTLET_STDERR]);
	ended = rc < 0 ? NULL : belljar_take_result(interpreter->handle);
	if (!ended)
		text_append_string(&words, error ? belljar_error_message(error) : "the interpreter is gone");
	else if (interpreter->call && interpreter->call->is_late)
		text_append_string(&words, "Belljar ended the interpreter, and its variables are gone");
	else
		text_append_format(&words, "the interpreter has ended (%s), and its variables are gone",
				   belljar_result_outcome_name(ended));
	if (interpreter->call)
		end_piece(interpreter, NULL, text_string(&words), interpreter->call->is_late ? NULL : ended);
	mcp_interpreter_free(interpreter);
	belljar_result_free(ended);
	belljar_error_free(error);
}

/* --- the beginning ------------------------------------------------------------------------------------------ */

static int open_pipe(int *ours, int *theirs, bool is_read)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	*ours = fds[is_read ? 0 : 1];
	*theirs = fds[is_read ? 1 : 0];
	fcntl(*ours, F_SETPIPE_SZ, PIPE_BYTES);
	return fcntl(*ours, F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
}

static int start_run(struct mcp_interpreter *interpreter, int theirs[4], struct belljar_error **error)
{
	const struct language *language = &languages[interpreter->language];
	const char *argv[ARRAY_LEN(language->argv)];
	int32_t fds[4] = {theirs[0], theirs[1], theirs[2], theirs[3]};
	struct belljar_command command = {
		.size = sizeof(command),
		.flags = BELLJAR_NO_CAPTURE | BELLJAR_CELLS,
		.argv = argv,
		.environment = (const char *const *)interpreter->server->options->environment,
		.fds = fds,
		.fd_count = 4,
	};

	memcpy(argv, language->argv, sizeof(argv));
	argv[language->driver_at] = language->driver;
	return belljar_jar_start(interpreter->jar->jar, &command, &interpreter->handle, error);
}

static int watch_all(struct mcp_interpreter *interpreter)
{
	int rc = loop_add(interpreter->server->loop, &interpreter->watch, belljar_fd(interpreter->handle), EPOLLIN,
			  on_run, interpreter);

	for (size_t i = 0; i < OUTLET_COUNT && rc == 0; i++)
		rc = loop_add(interpreter->server->loop, &interpreter->outlets[i].watch, interpreter->outlets[i].fd,
			      EPOLLIN, i == OUTLET_ANSWER ? on_answer : on_stream, &interpreter->outlets[i]);
	return rc;
}

/* NULL: it was answered. */
static struct mcp_interpreter *start(const struct mcp_request *request, struct mcp_jar *jar, enum mcp_language language)
{
	struct mcp_interpreter *interpreter = calloc(1, sizeof(*interpreter));
	struct belljar_error *error = NULL;
	int theirs[4] = {-1, -1, -1, -1}, rc = interpreter ? 0 : -ENOMEM;

	if (rc == 0) {
		interpreter->server = request->server;
		interpreter->jar = jar;
		interpreter->language = language;
		interpreter->request_fd = -1;
		for (size_t i = 0; i < OUTLET_COUNT; i++)
			interpreter->outlets[i] = (struct outlet){.interpreter = interpreter, .fd = -1};
		rc = open_pipe(&interpreter->request_fd, &theirs[0], false);
	}
	for (size_t i = 0; i < OUTLET_COUNT && rc == 0; i++)
		rc = open_pipe(&interpreter->outlets[i].fd, &theirs[1 + i], true);
	if (rc == 0)
		rc = start_run(interpreter, theirs, &error);
	for (size_t i = 0; i < ARRAY_LEN(theirs); i++)
		close_fd(&theirs[i]);
	if (rc == 0)
		rc = watch_all(interpreter);
	if (rc < 0) {
		if (error)
			mcp_refuse_error(request, error);
		else
			mcp_refuse(request, "cannot start the interpreter: %s", strerror(-rc));
		belljar_error_free(error);
		mcp_interpreter_free(interpreter);
		return NULL;
	}
	jar->interpreters[language] = interpreter;
	return interpreter;
}

/* --- the tool ----------------------------------------------------------------------------------------------- */

/* Ask the interpreter to stop at the first timeout; end it at the second. */
static void on_late(struct loop_timer *timer)
{
	struct code_call *code = timer->owner;
	struct mcp_interpreter *interpreter = code->interpreter;
	bool is_second = code->is_late;

	code->is_late = true;
	if (!is_second && languages[interpreter->language].has_interrupt) {
		belljar_signal(interpreter->handle, SIGINT);
		loop_arm(interpreter->server->loop, timer, clock_ns() + GRACE_NS, on_late, code);
	} else {
		belljar_cancel(interpreter->handle, SIGKILL);
	}
}

static void stop(struct mcp_call *call, bool is_final)
{
	struct code_call *code = (struct code_call *)call;

	if (is_final)
		give_up(code->interpreter, "the server ends");
	else
		on_late(&code->timer);
}

static bool find_language(const struct mcp_request *request, enum mcp_language *out)
{
	const char *name = NULL;

	if (!mcp_string(request, "language", true, &name))
		return false;
	for (size_t i = 0; i < LANGUAGE_COUNT; i++)
		if (!strcmp(languages[i].name, name)) {
			*out = (enum mcp_language)i;
			return true;
		}
	mcp_refuse(request, "language must be python, javascript or bash");
	return false;
}

static bool send_code(struct mcp_interpreter *interpreter, const char *code)
{
	AUTO_TEXT piece = {0};

	text_append_format(&piece, "%lld\n%s", (long long)++interpreter->number, code);
	/* The pipe has room for all of it, and is empty between pieces unless the inside does not read. */
	return !text_failed(&piece) &&
	       write(interpreter->request_fd, piece.data, piece.len + 1) == (ssize_t)piece.len + 1;
}

void mcp_tool_run_code(struct mcp_request *request)
{
	enum mcp_language language = LANGUAGE_PYTHON;
	struct mcp_interpreter *interpreter;
	struct code_call *code;
	const char *text = NULL;
	double seconds = 0;
	struct mcp_jar *jar;

	if (!find_language(request, &language) || !mcp_string(request, "code", true, &text) ||
	    !mcp_number(request, "timeout_seconds", 0.001, 1e6, &seconds))
		return;
	if (strlen(text) > CODE_MAX) {
		mcp_refuse(request, "the code has more than %zu bytes; write it to a file, and run that", CODE_MAX);
		return;
	}
	jar = mcp_find_jar(request);
	if (!jar)
		return;
	interpreter = jar->interpreters[language];
	if (interpreter && interpreter->call) {
		mcp_refuse(request,
			   "the %s interpreter of this jar is at work; wait for its answer, or use another jar",
			   languages[language].name);
		return;
	}
	if (!interpreter)
		interpreter = start(request, jar, language);
	code = interpreter ? calloc(1, sizeof(*code)) : NULL;
	if (!code || !mcp_begin(&code->call, request, jar, stop)) {
		free(code);
		return;
	}
	code->interpreter = interpreter;
	code->timer.owner = code;
	interpreter->call = code;
	code->allowed_ns = jar->timeout_ns;
	if (seconds > 0 && seconds * 1e9 < (double)code->allowed_ns)
		code->allowed_ns = (uint64_t)(seconds * 1e9);
	mcp_progress(&code->call, "started", 7);
	if (!send_code(interpreter, text))
		give_up(interpreter, "the interpreter takes no more code; it was ended, and its variables are gone");
	else if (code->allowed_ns != LIMIT_NONE)
		loop_arm(request->server->loop, &code->timer, clock_ns() + code->allowed_ns, on_late, code);
}
