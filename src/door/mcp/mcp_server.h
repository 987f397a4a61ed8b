/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/mcp/mcp_server.h - what the files of the server share: the server, its jars, a request, an answer
 *
 * A server has one client, or all clients of HTTP without a session. mcp.c reads and writes lines. mcp_message.c has
 * JSON-RPC and both eras of the protocol. mcp_tools.c has the table of tools; mcp_jars.c, mcp_run.c, mcp_code.c,
 * mcp_files.c and mcp_workspace.c carry them out. A tool answers at once, or begins a call, which answers later.
 */
#ifndef BELLJAR_DOOR_MCP_MCP_SERVER_H
#define BELLJAR_DOOR_MCP_MCP_SERVER_H

#include "base/clock.h"
#include "base/json_read.h"
#include "base/json_write.h"
#include "base/loop.h"
#include "belljar.h"
#include "door/mcp/mcp.h"
#include "base/redact/redact.h"

/* Everything that a client can grow has an end. */
#define MCP_LINE_MAX ((size_t)8 << 20)
#define MCP_QUEUE_MAX ((size_t)64 << 20) /* of answers that the client does not read; then no requests are read */
#define MCP_CALLS_MAX 256
#define MCP_JARS_MAX 64
#define MCP_NAME_SIZE 40

#define MCP_MODERN_VERSION "2026-07-28"
#define MCP_META "io.modelcontextprotocol/"

enum mcp_language { LANGUAGE_PYTHON, LANGUAGE_JAVASCRIPT, LANGUAGE_BASH, LANGUAGE_COUNT };
struct mcp_interpreter;

/* A jar that tools work in. The first is made when it is needed, and has the server's own policy. */
struct mcp_jar {
	struct mcp_jar *next;
	char name[MCP_NAME_SIZE];
	struct belljar_jar *jar;
	uint64_t timeout_ns;        /* what a command may have at most */
	struct output_limit output; /* that the owner gave; without an end where the owner gave none */
	uint64_t used_ns;           /* when a tool last worked in it */
	unsigned call_count;        /* calls that are under way in it */
	unsigned output_count;      /* long outputs that were put into its files */
	bool is_for_one_call;
	struct string_list tightened; /* keys that jar_open was given */
	struct redactor *redactor;    /* NULL: nothing is secret */
	char *shown;                  /* what the tool `diff` listed last, as the engine answered; NULL: nothing */
	struct mcp_interpreter *interpreters[LANGUAGE_COUNT];
};

/* The receiver of an answer: the parts of a request that are needed after it was read. */
struct mcp_asker {
	struct text id;             /* JSON text; empty: a notification, which has no answer */
	struct text progress_token; /* JSON text; empty: none was given */
	bool is_modern;             /* 2026-07-28: answers say what they are */
	uint64_t exchange;          /* behind HTTP: the number of the request */
};
void mcp_asker_done(struct mcp_asker *asker);

struct mcp_server;
struct mcp_call;
/* Stop a cancelled call: end its work soon, then call mcp_end(). With @is_final do both at once: the server ends. */
typedef void mcp_stop_function(struct mcp_call *call, bool is_final);

/* A tool at work: embedded in what the tool itself needs. */
struct mcp_call {
	struct mcp_call *next;
	struct mcp_server *server;
	struct mcp_asker asker;
	struct mcp_jar *jar; /* NULL: it is a run of its own */
	mcp_stop_function *stop;
	bool is_cancelled; /* send no answer */
	unsigned progress_count;
	uint64_t progress_ns;
};

struct mcp_server {
	const struct mcp_options *options;
	struct loop *loop; /* NULL: a test, which looks at @output itself */
	struct loop_watch in, out;
	int out_fd;
	struct loop_timer sweep;
	struct text input, output;
	bool is_skipping; /* the rest of a line that was too long */
	bool is_over;
	bool has_begun; /* a request has come */
	struct belljar_engine *engine;
	struct mcp_jar *jars;
	unsigned jar_count, brief_jar_count; /* those with a name; those for one call */
	struct mcp_call *calls;
	unsigned call_count;
};

struct mcp_request {
	struct mcp_server *server;
	struct mcp_asker asker;
	const char *method;
	const struct json_value *params;    /* NULL: none */
	const struct json_value *arguments; /* of a tool; NULL: none */
	const char *tool;
};

/* --- mcp_message.c --- */

void mcp_receive(struct mcp_server *server, uint64_t exchange, const char *line, size_t len);
/* Report whether a request has the client's capabilities: every request of the newer protocol does. */
bool mcp_tells_capabilities(const struct json_value *params);
#define MCP_NO_CAPABILITIES "_meta must tell the client's capabilities, an object"
/* A version that begins with a handshake. */
bool mcp_is_handshake_version(const char *version, size_t len);

struct mcp_result;
void mcp_answer(struct mcp_server *server, const struct mcp_asker *asker, struct mcp_result *result);
/* Report the progress of a call, if the client asked for that, and not too often. */
void mcp_progress(struct mcp_call *call, const char *message, size_t len);
/* One line for the client. Behind HTTP @status is that of the answer, or 0: there is more to come. */
void mcp_send(struct mcp_server *server, uint64_t exchange, int status, const struct text *line);

/* --- mcp_result.c: the output of a jar, apart from Belljar's own words --- */

#define MCP_MARK_SIZE 9
#define MCP_SHOWN_BYTES ((size_t)16 << 10) /* of one stream */

/* The result of a tool. Belljar adds at least one line to each. */
struct mcp_result {
	char mark[MCP_MARK_SIZE];
	struct text blocks;     /* JSON values, separated by commas: what came out of the jar */
	struct text words;      /* Belljar's own, whole lines without the mark */
	struct text structured; /* a JSON object; empty: none */
	bool ends_in_line;      /* the last block does */
	bool is_error;
};
#define AUTO_RESULT AUTO(mcp_result_done) struct mcp_result
void mcp_result_done(struct mcp_result *result);

/* Output of a jar: a command may have chosen every byte of it. */
struct mcp_piece {
	const char *name;  /* for the model, and of the member of the structured content */
	const char *bytes; /* NULL: there is none, which the structured content says with null */
	size_t len;
	const char *path;       /* a file of the jar that has all of it; NULL: none */
	size_t max;             /* bytes that are shown; 0: MCP_SHOWN_BYTES */
	bool is_for_model_only; /* the structured content has it in another shape */
};
/* A block of the answer and a member of the structured content for each piece, all at once: the mark occurs in none of them. */
void mcp_show(struct mcp_result *result, struct json_writer *writer, const struct mcp_piece *pieces, size_t count);
void mcp_show_image(struct mcp_result *result, const char *type, const char *base64);
/* One line of Belljar's own. Control characters in it are escaped, so that it stays one line. */
void mcp_say(struct mcp_result *result, const char *format, ...) PRINTF_LIKE(2, 3);
/* Append a name that a command may have chosen, in quotes, so that it cannot go on as Belljar's words. */
void mcp_quote(struct text *out, const char *string);
/* Write Belljar's words and the mark as the last members. Add no words after that. */
void mcp_close_structured(struct mcp_result *result, struct json_writer *writer);
void mcp_write_content(struct mcp_result *result, struct json_writer *writer);
/* Random letters. False: the kernel gives no random bytes. */
bool mcp_make_mark(char *mark);
/* @otherwise: the text if @error is NULL. */
void mcp_say_error(struct mcp_result *result, const struct belljar_error *error, const char *otherwise);
/* A tool failed before it did anything; what the model should know, in one line. */
void mcp_refuse(const struct mcp_request *request, const char *format, ...) PRINTF_LIKE(2, 3);
void mcp_refuse_error(const struct mcp_request *request, const struct belljar_error *error);

/* --- mcp_tools.c --- */

void mcp_list_tools(struct mcp_server *server, struct json_writer *writer);
/* False: there is no such tool. */
bool mcp_call_tool(struct mcp_request *request);

/* Arguments; a wrong one is answered, and false returned. One that is not there leaves *out as it is. */
bool mcp_string(const struct mcp_request *request, const char *name, bool is_needed, const char **out);
bool mcp_number(const struct mcp_request *request, const char *name, double min, double max, double *out);
bool mcp_bool(const struct mcp_request *request, const char *name, bool *out);

/* --- mcp_jars.c --- */

/* A name that cannot be guessed, of less than MCP_NAME_SIZE letters. */
int mcp_make_jar_name(char *name);
/* The jar that the request names, or the server's own; NULL: it was answered. */
struct mcp_jar *mcp_find_jar(const struct mcp_request *request);
/* Those of the jar, and their state. */
void mcp_end_interpreters(struct mcp_jar *jar);
/* A call that names no jar, where none is kept for it: a command needs no more than a run of its own. */
bool mcp_is_alone(const struct mcp_request *request);
int mcp_start_alone(const struct mcp_request *request, struct belljar_command *command, struct belljar_handle **handle,
		    struct belljar_error **error);
void mcp_close_jar(struct mcp_server *server, struct mcp_jar *jar);
/* Those whose one call is over. */
void mcp_close_brief_jars(struct mcp_server *server);
uint64_t mcp_sweep_ns(const struct mcp_options *options);
void mcp_sweep(struct loop_timer *timer);
void mcp_tool_jar_open(struct mcp_request *request);
void mcp_tool_jar_close(struct mcp_request *request);
void mcp_tool_policy_show(struct mcp_request *request);

/* --- calls: mcp.c --- */

/* Take the request's asker over. False: there are too many calls, and it was answered. */
bool mcp_begin(struct mcp_call *call, struct mcp_request *request, struct mcp_jar *jar, mcp_stop_function *stop);
/* End a call: answer unless it was cancelled, and free the asker. The tool owns the call itself. */
void mcp_end(struct mcp_call *call, struct mcp_result *result);
void mcp_cancel(struct mcp_server *server, const char *id);

/* --- the tools --- */

void mcp_tool_run(struct mcp_request *request);
void mcp_tool_run_code(struct mcp_request *request);
void mcp_tool_read_file(struct mcp_request *request);
void mcp_tool_write_file(struct mcp_request *request);
void mcp_tool_edit_file(struct mcp_request *request);
void mcp_tool_list_files(struct mcp_request *request);
void mcp_tool_diff(struct mcp_request *request);
void mcp_tool_apply(struct mcp_request *request);
/* Report whether jars write to layers, and whether a model may apply changes. */
bool mcp_offers_diff(const struct mcp_options *options);
bool mcp_offers_apply(const struct mcp_options *options);
void mcp_interpreter_free(struct mcp_interpreter *interpreter);

/* --- mcp_words.c: what a model reads --- */

/*
 * Append @bytes, shortened to about @max bytes: the beginning and the end, whole lines. Between them is one line of
 * Belljar's, with @mark, which says how much is left out and, where @path is not NULL, which file has all of it.
 */
void mcp_shorten(struct text *out, const char *bytes, size_t len, size_t max, const char *path, const char *mark);
/*
 * All of a long output is put into a file of the jar, which the model can read piece by piece: its path. NULL: it is
 * short, or no file could be made, or the jar does not stay.
 */
const char *mcp_keep_output(struct mcp_jar *jar, const char *stream, const char *bytes, size_t len, char *path,
			    size_t size);
/* A limit that was reached: its amount, and what can be done about it. */
struct mcp_limit {
	const char *name;          /* the key of a policy */
	uint64_t amount;           /* milliseconds, bytes or a count */
	const char *flag;          /* the option that allows more; NULL: none is known */
	const struct mcp_jar *jar; /* NULL: a run of its own */
	bool is_of_the_call;       /* the call's own argument was less than what the jar allows */
};
/* Was jar_open given this key? @jar may be NULL. */
bool mcp_is_tightened(const struct mcp_jar *jar, const char *key);
void mcp_say_limit(struct mcp_result *result, const struct mcp_limit *limit);
/* Report the risky files in the list @member of @json: in words, and as `risky`. */
void mcp_tell_risky(struct mcp_result *result, struct json_writer *writer, const char *json, const char *member);
/* The same for files that processes of the jar changed since the last search. */
void mcp_look(struct mcp_result *result, struct json_writer *writer, const struct mcp_jar *jar);
/* The limits that a run reached. */
void mcp_say_limits(struct mcp_result *result, const struct belljar_result *ended, const struct mcp_jar *jar);
/* Report a run: its output, words, and the structured content. @is_own_timeout: the call asked for less time than allowed. */
void mcp_tell_run(const struct belljar_result *ended, const struct mcp_jar *jar, const struct mcp_piece streams[2],
		  bool is_own_timeout, struct mcp_result *told);

#endif
