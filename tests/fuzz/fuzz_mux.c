/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/fuzz/fuzz_mux.c - any bytes as the stream of a client whose channels share it
 *
 * A server that answers everything stands behind: with output, with results, with files, directories and sockets, and
 * by hanging up. Whatever the client sends, what it gets are whole frames of known types; a channel ends no more often than it began,
 * no byte comes beyond the credit, and at the end nothing is left open. An input is a stream as it is, or, if its first byte is odd,
 * records of type, channel, length and payload, which are frames more often.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "door/serve/mux/mux.h"
#include "base/json_write.h"
#include "door/wire/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define INPUT_MAX 16384
#define SERVED_MAX 64
#define TURNS_MAX 100000
#define NUMBERS 8

static void fail(const char *what)
{
	fprintf(stderr, "%s\n", what);
	abort();
}

/* --- the server --------------------------------------------------------------------------------------------- */

struct scene {
	struct loop *loop;
	struct mux *mux;
	struct served *served[SERVED_MAX];
	size_t served_count;
	bool has_ended, is_broken;
	struct text heard;
	size_t heard_at;
	uint64_t credit[NUMBERS + 1]; /* of the channels that records have */
	unsigned begins[NUMBERS + 1]; /* how often each can have begun, and has not ended */
};

struct served {
	struct scene *scene;
	struct wire wire;
	bool is_done;
};

static void serve(void *owner, int fd);

static int open_something(char which)
{
	int ends[2];

	switch (which % 4) {
	case 0:
		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
			abort();
		if (send(ends[1], "from the other side", 19, MSG_NOSIGNAL) != 19)
			abort();
		close(ends[1]);
		return ends[0];
	case 1:
		return open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	case 2:
		return open("/dev/null", O_RDONLY | O_CLOEXEC); /* no file: it must be refused */
	default:
		return memfd_create("fuzz", MFD_CLOEXEC);
	}
}

static void answer(struct served *served, enum frame_type type, char which)
{
	static const char output[FRAME_OUTPUT_MAX_BYTES];
	int fd;

	if (type == FRAME_RUN || type == FRAME_JOIN) {
		wire_send(&served->wire, FRAME_STARTED, "{}", 2, -1);
		for (int i = 0; i < which % 8; i++)
			wire_send_stream(&served->wire, FRAME_OUTPUT, 1, output, sizeof(output));
		served->is_done = which & 8;
	} else if (type == FRAME_OPEN) {
		wire_send(&served->wire, FRAME_OPENED, "{}", 2, -1);
	} else if (type == FRAME_FILE || type == FRAME_CONNECT) {
		fd = open_something(which);
		wire_send(&served->wire, FRAME_DESCRIPTOR, "{}", 2, fd);
		close(fd);
		served->is_done = true;
	} else {
		wire_send(&served->wire, FRAME_FAILED, "{}", 2, -1);
		served->is_done = true;
	}
}

static void on_frame(void *owner, struct wire_frame *frame)
{
	struct served *served = owner;
	struct scene *scene = served->scene;
	char which = frame->len ? frame->payload[frame->len - 1] : 0, byte;

	if (frame_traits(frame->type) & FRAME_SHARED)
		fail("a frame of the stream reached the server");
	if (frame_traits(frame->type) & FRAME_JOINS) {
		size_t before = scene->served_count;

		if (!frame->fd_count || frame->fd_count > 2)
			fail("a request without its channel");
		if (frame->fd_count == 2 && read(frame->fds[1], &byte, 0) < 0)
			fail("an input that cannot be read");
		serve(scene, take_fd(&frame->fds[0]));
		if (scene->served_count > before)
			answer(scene->served[before], frame->type, which);
		return;
	}
	answer(served, frame->type, which);
}

static void on_drained(void *owner)
{
	(void)owner;
}

static void on_ended(void *owner, const struct error *error)
{
	struct served *served = owner;

	if (error)
		fail("the server was sent what is no frame");
	served->is_done = true;
}

static void serve(void *owner, int fd)
{
	struct scene *scene = owner;
	struct served *served = calloc(1, sizeof(*served));
	struct wire_listener listener = {served, on_frame, on_drained, on_ended};

	if (!served)
		abort();
	if (scene->served_count == SERVED_MAX) {
		close(fd);
		free(served);
		return;
	}
	served->scene = scene;
	if (wire_open(&served->wire, scene->loop, fd, &listener) < 0)
		fail("a channel is no socket");
	scene->served[scene->served_count++] = served;
}

static void sweep(struct scene *scene, bool is_all)
{
	for (size_t i = 0; i < scene->served_count;) {
		struct served *served = scene->served[i];

		if (!is_all && !(served->is_done && wire_is_empty(&served->wire))) {
			i++;
			continue;
		}
		wire_done(&served->wire);
		free(served);
		scene->served[i] = scene->served[--scene->served_count];
	}
}

/* --- the client --------------------------------------------------------------------------------------------- */

static void hello(void *owner, struct json_writer *writer)
{
	(void)owner;
	json_write_integer(writer, "version", WIRE_VERSION);
}

static void ended(void *owner, const struct error *error)
{
	struct scene *scene = owner;

	if (scene->has_ended)
		fail("it ended twice");
	if (error && (error->stage == STAGE_NONE || !error->message[0]))
		fail("an error without a message");
	scene->has_ended = true;
	scene->is_broken = error;
}

static void check_frame(struct scene *scene, const struct frame_header *header)
{
	const struct frame_row *row = frame_row(header->type);

	if (!row || row->sender == FRAME_FROM_CLIENT)
		fail("the client got a frame that is not the engine's");
	if (header->channel == 0 && header->type != FRAME_ANSWER && header->type != FRAME_FAILED)
		fail("a frame on channel 0");
	if (header->channel > NUMBERS || !header->channel)
		return;
	if (!scene->begins[header->channel])
		fail("a frame on a channel that has ended");
	scene->begins[header->channel] -= header->type == FRAME_END;
	if (!(row->traits & FRAME_COUNTED))
		return;
	if (header->len > scene->credit[header->channel])
		fail("more than the credit came");
	scene->credit[header->channel] -= header->len;
}

static void hear(struct scene *scene, int fd)
{
	char *room = text_reserve(&scene->heard, 65536);
	ssize_t count = room ? read(fd, room, 65536) : -1;

	if (count > 0)
		scene->heard.len += (size_t)count;
	while (scene->heard.len - scene->heard_at >= FRAME_HEADER_BYTES) {
		struct frame_header header;

		frame_header_read((const unsigned char *)scene->heard.data + scene->heard_at, &header);
		if (header.len > FRAME_ANSWER_MAX_BYTES)
			fail("a frame without bounds");
		if (scene->heard.len - scene->heard_at - FRAME_HEADER_BYTES < header.len)
			break;
		check_frame(scene, &header);
		scene->heard_at += FRAME_HEADER_BYTES + header.len;
	}
	text_consume(&scene->heard, scene->heard_at);
	scene->heard_at = 0;
}

static void add_frame(struct text *stream, enum frame_type type, uint32_t channel, const void *payload, size_t len)
{
	unsigned char header[FRAME_HEADER_BYTES];

	frame_header_write(header, type, len, channel);
	text_append(stream, header, sizeof(header));
	text_append(stream, payload, len);
}

/* A request that parses, or bytes as they are. */
static void add_record(struct text *stream, unsigned type, uint32_t channel, const uint8_t *bytes, size_t len)
{
	static const char run[] = "{\"version\":2,\"run\":{\"argv\":[\"a\"],\"stdin\":\"descriptor\"}} ";
	static const char join[] = "{\"version\":2,\"argv\":[\"a\"],\"stdin\":\"descriptor\"} ";
	AUTO_TEXT payload = {0};
	unsigned char number[4] = {0};

	if (frame_traits(type) & FRAME_JOINS && len) {
		number[0] = bytes[0] % (NUMBERS + 1);
		text_append(&payload, number, sizeof(number));
	}
	if (len % 2 && type == FRAME_RUN)
		text_append(&payload, run, sizeof(run) - 1);
	if (len % 2 && type == FRAME_JOIN)
		text_append(&payload, join, sizeof(join) - 1);
	text_append(&payload, bytes, len);
	add_frame(stream, (enum frame_type)type, channel, text_string(&payload), payload.len);
}

static void as_records(struct text *stream, const uint8_t *data, size_t size)
{
	static const unsigned char types[] = {FRAME_RUN,    FRAME_OPEN,     FRAME_JOIN,   FRAME_FILE,
					      FRAME_DATA,   FRAME_DATA_END, FRAME_CREDIT, FRAME_END,
					      FRAME_SIGNAL, FRAME_CONNECT,  FRAME_DATA,   FRAME_END,
					      99,           FRAME_OUTPUT,   FRAME_HELLO,  FRAME_DATA_STOP};

	while (size >= 2) {
		unsigned type = types[data[0] % ARRAY_LEN(types)];
		uint32_t channel = data[0] / ARRAY_LEN(types) % NUMBERS + 1;
		size_t len = MIN_OF(data[1] % 64, size - 2);
		unsigned char number[4];

		if (type == FRAME_CREDIT) {
			frame_number_write(number, data[1] < 250 ? data[1] * 1024U : UINT32_MAX, 4);
			add_frame(stream, FRAME_CREDIT, channel, number, 4);
			len = 0;
		} else if (type == FRAME_DATA_END || type == FRAME_END || type == FRAME_DATA_STOP) {
			add_frame(stream, (enum frame_type)type, channel, "", 0);
			len = 0;
		} else if (type == FRAME_DATA && data[1] > 200) {
			char bytes[FRAME_DATA_MAX_BYTES] = {0};

			add_frame(stream, FRAME_DATA, channel, bytes, sizeof(bytes));
			len = 0;
		} else {
			add_record(stream, type, channel, data + 2, len);
		}
		data += 2 + len;
		size -= 2 + len;
	}
}

/* What the client could have given, at most; and a window for each channel that could have begun. */
static void count_credit(struct scene *scene, const struct text *stream)
{
	for (size_t at = 0; stream->len - at >= FRAME_HEADER_BYTES;) {
		struct frame_header header;

		frame_header_read((const unsigned char *)stream->data + at, &header);
		if (header.len > stream->len - at - FRAME_HEADER_BYTES)
			break;
		at += FRAME_HEADER_BYTES;
		if (header.type == FRAME_CREDIT && header.channel <= NUMBERS)
			scene->credit[header.channel] += frame_number(stream->data + at, MIN_OF(header.len, 4));
		for (size_t i = 1; i <= NUMBERS; i++)
			if ((frame_traits(header.type) & FRAME_BEGINS && header.channel == i) ||
			    frame_traits(header.type) & FRAME_JOINS) {
				scene->credit[i] += FRAME_WINDOW_BYTES;
				scene->begins[i]++;
			}
		at += header.len;
	}
}

static void on_tick(struct loop_timer *timer)
{
	(void)timer;
}

/* One turn that waits for nothing. */
static void turn(struct scene *scene)
{
	struct loop_timer tick = {0};

	loop_arm(scene->loop, &tick, 0, on_tick, scene);
	if (loop_turn(scene->loop) < 0)
		abort();
	loop_disarm(&tick);
	sweep(scene, false);
	mux_turn(scene->mux);
}

static size_t open_descriptors(void)
{
	size_t count = 0;

	for (int fd = 0; fd < 256; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

static void play(const struct text *stream)
{
	struct scene scene = {.loop = loop_new()};
	struct mux_listener listener = {&scene, hello, serve, ended};
	size_t sent = 0, quiet = 0;
	struct error error = {0};
	int in[2], out[2];

	if (!scene.loop || pipe2(in, O_CLOEXEC | O_NONBLOCK) < 0 || pipe2(out, O_CLOEXEC | O_NONBLOCK) < 0)
		abort();
	count_credit(&scene, stream);
	scene.mux = mux_new(scene.loop, in[0], out[1], &listener, &error);
	if (!scene.mux)
		fail(error.message);
	for (size_t i = 0; i < TURNS_MAX && !scene.has_ended && quiet < 8; i++) {
		ssize_t count = sent < stream->len ? write(in[1], stream->data + sent, stream->len - sent) : -1;

		sent += count > 0 ? (size_t)count : 0;
		quiet = count > 0 || sent < stream->len ? 0 : quiet + 1;
		turn(&scene);
		hear(&scene, out[0]);
	}
	if (sent < stream->len && !scene.has_ended)
		fail("it does not read any more");
	close(in[1]);
	for (size_t i = 0; i < TURNS_MAX && !scene.has_ended; i++) {
		turn(&scene);
		hear(&scene, out[0]);
	}
	if (!scene.has_ended)
		fail("the end of the client is not noticed");
	mux_free(scene.mux);
	hear(&scene, out[0]);
	close(out[0]);
	sweep(&scene, true);
	loop_free(scene.loop);
	text_done(&scene.heard);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char greeting[] = "{\"version\":2}";
	size_t before = open_descriptors();
	AUTO_TEXT stream = {0};

	if (!size || size > INPUT_MAX)
		return 0;
	if (data[0] % 4)
		add_frame(&stream, FRAME_HELLO, 0, greeting, sizeof(greeting) - 1);
	if (data[0] % 2)
		as_records(&stream, data + 1, size - 1);
	else
		text_append(&stream, data + 1, size - 1);
	play(&stream);
	if (open_descriptors() != before)
		fail("descriptors are left open");
	return 0;
}
