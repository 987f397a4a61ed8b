/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_inspect_exchange.c - HTTP/1.1 over one inspected connection, and what becomes of it behind an upgrade
 */
#include "gate/inspect/inspect_websocket.h"

#include <errno.h>

#include "gate/inspect/inspect_frames.h"

#include "inspect_world.h"
#include "test.h"

#define UPGRADE                                                                                                        \
	"GET /live HTTP/1.1\r\nHost: " WORLD_HOST "\r\nConnection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\n"      \
	"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
/* As RFC 6455 has it. */
#define ACCEPTED                                                                                                       \
	"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"                            \
	"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"

static void jar_says(const char *text)
{
	text_append_string(&world.inspection.client.in, text);
	while (!world.inspection.is_closing && inspect_http1_protocol.work(&world.inspection) > 0)
		continue;
}

static void host_says(const char *text)
{
	text_append_string(&world.inspection.server.in, text);
	while (!world.inspection.is_closing && inspect_http1_protocol.work(&world.inspection) > 0)
		continue;
}

static const char *jar_has(void)
{
	return text_string(&world.inspection.client.wire);
}

static const char *host_has(void)
{
	return text_string(&world.inspection.server.wire);
}

static void begin(bool has_secret)
{
	world_begin(&inspect_http1_protocol, has_secret);
}

static void test_a_websocket_passes(void)
{
	begin(false);
	net_method_add(&world.rules[0], WEBSOCKET_METHOD, strlen(WEBSOCKET_METHOD));
	jar_says(UPGRADE "Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n");
	CHECK(strstr(host_has(), "GET /live HTTP/1.1\r\n") && strstr(host_has(), "permessage-deflate"));
	CHECK(strstr(host_has(), "\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"));
	text_clear(&world.inspection.server.wire);
	host_says(ACCEPTED "\r\nfirst");
	CHECK(strstr(jar_has(), "HTTP/1.1 101 Switching Protocols\r\n") && strstr(jar_has(), "\r\n\r\nfirst"));
	jar_says("GET / HTTP/1.1\r\n\r\n");
	CHECK_STRING(host_has(), "GET / HTTP/1.1\r\n\r\n");
	host_says("second");
	CHECK(strstr(jar_has(), "firstsecond"));
	world.inspection.server.is_ended = true;
	host_says("third");
	CHECK(strstr(jar_has(), "firstsecondthird") && world.inspection.is_closing);
	world_end();
}

static void test_who_ends_first_is_followed(void)
{
	begin(false);
	jar_says(UPGRADE "\r\n");
	host_says(ACCEPTED "\r\n");
	world.inspection.client.is_ended = true;
	jar_says("last words");
	CHECK(strstr(host_has(), "last words") && world.inspection.server.is_shut && world.inspection.deadline_ns);
	world_end();
}

static void check_refused(const char *request, const char *why)
{
	jar_says(request);
	if (!strstr(jar_has(), why))
		printf("%s\n%s\n", request, jar_has());
	CHECK(strstr(jar_has(), why));
	CHECK_STRING(host_has(), "");
	world_end();
}

static void test_what_is_no_request_for_a_websocket(void)
{
#define BEGIN "GET / HTTP/1.1\r\nHost: " WORLD_HOST "\r\n"
#define KEY "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
#define UP "Connection: Upgrade\r\nUpgrade: websocket\r\n"
#define VERSION "Sec-WebSocket-Version: 13\r\n"
	static const char *const bad[] = {
		BEGIN UP VERSION "\r\n",
		BEGIN UP KEY "\r\n",
		BEGIN UP KEY KEY VERSION "\r\n",
		BEGIN UP VERSION "Sec-WebSocket-Key: short\r\n\r\n",
		BEGIN UP VERSION "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZ\"==\r\n\r\n",
		BEGIN "Upgrade: websocket\r\n" KEY VERSION "\r\n",
		BEGIN UP KEY VERSION "Content-Length: 5\r\n\r\nhello",
		BEGIN UP KEY VERSION "Connection: close\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: " WORLD_HOST "\r\n" UP KEY VERSION "\r\n",
	};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		begin(false);
		check_refused(bad[i], "an invalid request for a WebSocket");
	}
	begin(false);
	check_refused("WEBSOCKET / HTTP/1.1\r\nHost: " WORLD_HOST "\r\n\r\n", "a word of rules");
	/* The rules name other methods. */
	begin(false);
	net_method_add(&world.rules[0], "GET", 3);
	check_refused(UPGRADE "\r\n", "WEBSOCKET /live is not allowed");
	CHECK_INT(world_denials("WEBSOCKET /live"), 1);
}

/* Without TLS the offer of another protocol is left out: the server never hears of it. */
static void test_no_other_upgrade_passes(void)
{
	begin(false);
	jar_says("GET / HTTP/1.1\r\nHost: " WORLD_HOST "\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
		 "HTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA\r\n\r\n");
	CHECK_STRING(host_has(), "GET / HTTP/1.1\r\nHost: " WORLD_HOST "\r\n\r\n");
	host_says("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n");
	CHECK(strstr(jar_has(), "502") && strstr(jar_has(), "did not ask for"));
	world_end();
	begin(false);
	jar_says("GET / HTTP/1.1\r\nHost: " WORLD_HOST
		 "\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nUpgrade: h2c\r\n\r\n");
	CHECK_STRING(host_has(), "GET / HTTP/1.1\r\nHost: " WORLD_HOST "\r\n\r\n");
	world_end();
}

static void test_what_is_no_answer_for_a_websocket(void)
{
	static const char *const bad[] = {
		"HTTP/1.1 101 Yes\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
		"HTTP/1.1 101 Yes\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xoo=\r\n\r\n",
		"HTTP/1.1 101 Yes\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n",
		"HTTP/1.1 101 Yes\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n",
		"HTTP/1.1 101 Yes\r\nUpgrade: h2c\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n",
	};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		begin(false);
		jar_says(UPGRADE "\r\n");
		host_says(bad[i]);
		CHECK(strstr(jar_has(), "502") && strstr(jar_has(), "other than WebSocket") &&
		      world.inspection.is_closing);
		world_end();
	}
	/* A server that will not is one that answers. */
	begin(false);
	jar_says(UPGRADE "\r\n");
	host_says("HTTP/1.1 404 No\r\nContent-Length: 2\r\n\r\nno");
	CHECK(strstr(jar_has(), "404 No") && strstr(jar_has(), "\r\n\r\nno") && !world.inspection.is_closing);
	text_clear(&world.inspection.server.wire);
	jar_says("GET /two HTTP/1.1\r\nHost: " WORLD_HOST "\r\n\r\n");
	CHECK(strstr(host_has(), "GET /two"));
	world_end();
}

/* An endless line neither grows nor waits for ever. */
static void test_the_head_of_an_answer_has_an_end(void)
{
	begin(false);
	jar_says(UPGRADE "\r\n");
	host_says("HTTP/1.1 101 Switching Protocols\r\nX: ");
	CHECK(world.inspection.deadline_ns);
	for (int i = 0; i < 2000 && !world.inspection.is_closing; i++)
		host_says("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
	CHECK(strstr(jar_has(), "502") && strstr(jar_has(), "64 KiB"));
	CHECK(world.inspection.server.in.len <= HTTP_HEAD_MAX + 128);
	world_end();
}

static void test_a_secret_does_not_come_back_over_a_websocket(void)
{
	begin(true);
	jar_says(UPGRADE "Authorization: " WORLD_HOLDER "\r\nSec-WebSocket-Extensions: permessage-deflate\r\n\r\n");
	CHECK(strstr(host_has(), "Authorization: Bearer " WORLD_VALUE "\r\n") && !strstr(host_has(), "Extensions"));
	host_says(ACCEPTED "X-Said: " WORLD_VALUE "\r\n\r\n");
	CHECK(strstr(jar_has(), "X-Said: " WORLD_STARS "\r\n"));
	text_clear(&world.inspection.client.wire);
	host_says("\x81\x1bs3cr3t-val");
	CHECK_STRING(jar_has(), "\x81\x1b");
	/* Who waits for the last letter gets it at once. */
	host_says("ue-0123456789 yes");
	CHECK_STRING(jar_has(), "\x81\x1b" WORLD_STARS " yes");
	text_clear(&world.inspection.client.wire);
	/* Cut by the frames of one message, and with a sign of life between them. */
	host_says("\x01\x0cx s3cr3t-val\x89\x02hi\x80\x0fue-0123456789 y");
	CHECK_INT(world.inspection.client.wire.len, 2 + 4 + 2 + 27);
	CHECK(!memcmp(jar_has(), "\x01\0\x89\x02hi\x80\x1bx " WORLD_STARS " y", 2 + 4 + 2 + 27));
	world_end();
	begin(true);
	jar_says(UPGRADE "\r\n");
	host_says(ACCEPTED "\r\n");
	text_clear(&world.inspection.client.wire);
	host_says("\x88\x19..s3cr3t-value-0123456789");
	CHECK_STRING(jar_has(), "\x88\x19.." WORLD_STARS);
	world_end();
	/* What is packed could not be searched. */
	begin(true);
	jar_says(UPGRADE "\r\n");
	host_says(ACCEPTED "Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n");
	CHECK(strstr(jar_has(), "502") && strstr(jar_has(), "extension"));
	world_end();
}

/* What cannot be searched does not pass. */
static void test_odd_frames_do_not_pass_where_there_is_a_secret(void)
{
	static const char *const bad[] = {"\x81\x81keyyx",      "\xc1\x01x", "\x80\x01x",
					  "\x01\x01x\x01\x01x", "\x83\x01x", "\x09\x01x"};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		begin(true);
		jar_says(UPGRADE "\r\n");
		host_says(ACCEPTED "\r\n");
		text_append_string(&world.inspection.server.in, bad[i]);
		CHECK_INT(inspect_http1_protocol.work(&world.inspection), -EPIPE);
		CHECK_INT(world_denials("a frame of a WebSocket"), 1);
		world_end();
	}
}

/* Frames of every length, in pieces of every size: the same message comes out, in as many frames. */
static void test_frames_keep_their_message(void)
{
	static const size_t lengths[] = {0, 1, 62, 63, 64, 125, 126, 300, 70000};

	for (size_t i = 0; i < ARRAY_LEN(lengths); i++)
		for (size_t step = 1; step < 200; step += 66) {
			struct secret secret = {.value = "0123456789", .value_len = 10};
			const struct secrets secrets = {&secret, 1};
			struct frames frames = {0}, again = {0};
			const struct secrets none = {0};
			AUTO_TEXT in = {0}, out = {0}, plain = {0};
			size_t len = lengths[i];

			/* Two frames of that length, and an empty one. */
			for (int part = 0; part < 3; part++) {
				size_t here = part < 2 ? len : 0;

				text_append_char(&in, (char)(part == 0 ? 0x02 : part == 1 ? 0x00 : 0x80));
				text_append_char(&in, here < 126 ? (char)here : 127);
				for (int shift = 56; here >= 126 && shift >= 0; shift -= 8)
					text_append_char(&in, (char)(here >> shift));
				for (size_t k = 0; k < here; k++)
					text_append_char(&in, "xyz"[k % 3]);
			}
			for (size_t at = 0; at < in.len; at += step)
				CHECK(inspect_frames_hide(&frames, &secrets,
							  (struct http_slice){in.data + at, MIN_OF(step, in.len - at)},
							  &out));
			CHECK(!frames.is_in_frame && !frames.is_in_message &&
			      !inspect_secret_search_tail(&frames.search));
			/* Without secrets nothing waits, so the frames are taken as they are. */
			CHECK(inspect_frames_hide(&again, &none, (struct http_slice){out.data, out.len}, &plain));
			CHECK(!again.is_in_frame && !again.is_in_message && plain.len == out.len);
			CHECK_INT(out.data[0], 0x02);
			inspect_frames_done(&frames);
			inspect_frames_done(&again);
		}
}

static const struct test tests[] = {
	TEST(test_a_websocket_passes),
	TEST(test_who_ends_first_is_followed),
	TEST(test_what_is_no_request_for_a_websocket),
	TEST(test_no_other_upgrade_passes),
	TEST(test_what_is_no_answer_for_a_websocket),
	TEST(test_the_head_of_an_answer_has_an_end),
	TEST(test_a_secret_does_not_come_back_over_a_websocket),
	TEST(test_odd_frames_do_not_pass_where_there_is_a_secret),
	TEST(test_frames_keep_their_message),
};

int main(void)
{
	return test_main(tests, sizeof(tests) / sizeof(tests[0]));
}
