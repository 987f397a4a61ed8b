/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_run_streams.c - what a listener is handed of two pipes, and when it is told that no more comes
 */
#include "test.h"

#include <unistd.h>

#include "engine/run/streams.h"

/* Everything that was told, in order: bytes, "!" and a name for an overflow, ")" or "]" for the end of stdout or stderr. */
struct told {
	char words[512];
	bool is_drained;
};

static void tell(struct told *told, const char *words, size_t len)
{
	size_t used = strlen(told->words);

	CHECK(used + len < sizeof(told->words));
	memcpy(told->words + used, words, MIN_OF(len, sizeof(told->words) - 1 - used));
}

static bool on_output(void *owner, enum stream_index stream, const void *bytes, size_t len)
{
	tell(owner, stream == STREAM_STDOUT ? "o:" : "e:", 2);
	tell(owner, bytes, len);
	return len == 1; /* to be asked to wait */
}

static void on_overflow(void *owner, const char *what, uint64_t limit_bytes, uint64_t delivered_bytes)
{
	char words[64];

	snprintf(words, sizeof(words), "!%s:%d/%d", what, (int)delivered_bytes, (int)limit_bytes);
	tell(owner, words, strlen(words));
}

static void on_ended(void *owner, enum stream_index stream)
{
	tell(owner, stream == STREAM_STDOUT ? ")" : "]", 1);
}

static void on_drained(void *owner)
{
	((struct told *)owner)->is_drained = true;
}

struct scene {
	struct loop *loop;
	struct plan plan;
	struct streams streams;
	struct told told;
	int writers[STREAM_COUNT];
};

static void scene_init(struct scene *scene, struct output_limit limit, bool is_merged)
{
	struct streams_listener listener = {&scene->told, on_output, on_overflow, on_ended, on_drained};
	struct error error = {0};

	*scene = (struct scene){.loop = loop_new(), .plan = {.limits.output = limit}, .writers = {-1, -1}};
	CHECK_INT(run_streams_init(&scene->streams, scene->loop, &scene->plan, false, &listener, &error), 0);
	CHECK_INT(run_streams_make_pipes(&scene->streams, is_merged, scene->writers, &error), 0);
	CHECK_INT(run_streams_watch(&scene->streams), 0);
}

static void scene_done(struct scene *scene)
{
	for (size_t i = 0; i < STREAM_COUNT; i++)
		close_fd(&scene->writers[i]);
	run_streams_done(&scene->streams);
	loop_free(scene->loop);
}

static void write_to(struct scene *scene, enum stream_index stream, const char *bytes)
{
	CHECK_INT(write(scene->writers[stream], bytes, strlen(bytes)), (int)strlen(bytes));
	loop_turn(scene->loop);
}

#define TOTAL(bytes) ((struct output_limit){bytes, {LIMIT_NONE, LIMIT_NONE}})
#define EACH(out, err) ((struct output_limit){LIMIT_NONE, {out, err}})

static void test_a_stream_ends_when_its_last_writer_is_gone(void)
{
	struct scene scene;

	scene_init(&scene, TOTAL(LIMIT_NONE), false);
	run_streams_read(&scene.streams);
	write_to(&scene, STREAM_STDOUT, "last");
	close_fd(&scene.writers[STREAM_STDOUT]);
	loop_turn(scene.loop);
	write_to(&scene, STREAM_STDERR, "more");
	CHECK_STRING(scene.told.words, "o:last)e:more");
	run_streams_drain(&scene.streams, false);
	CHECK(scene.told.is_drained);
	CHECK_STRING(scene.told.words, "o:last)e:more]");
	scene_done(&scene);
}

static void test_both_streams_end_when_their_cap_is_passed(void)
{
	struct scene scene;

	scene_init(&scene, TOTAL(4), false);
	run_streams_read(&scene.streams);
	write_to(&scene, STREAM_STDERR, "1234");
	CHECK_STRING(scene.told.words, "e:1234");
	write_to(&scene, STREAM_STDOUT, "5");
	CHECK_STRING(scene.told.words, "e:1234)]!output:5/4");
	/* The command can go on, and is counted. */
	write_to(&scene, STREAM_STDERR, "67");
	CHECK_STRING(scene.told.words, "e:1234)]!output:5/4!output:7/4");
	CHECK(scene.streams.items[STREAM_STDERR].is_cut && scene.streams.items[STREAM_STDERR].bytes == 6);
	run_streams_drain(&scene.streams, false);
	CHECK_STRING(scene.told.words, "e:1234)]!output:5/4!output:7/4");
	scene_done(&scene);
}

static void test_a_stream_with_a_cap_of_its_own_ends_alone(void)
{
	struct scene scene;

	scene_init(&scene, EACH(3, LIMIT_NONE), false);
	run_streams_read(&scene.streams);
	write_to(&scene, STREAM_STDOUT, "12345");
	write_to(&scene, STREAM_STDERR, "still");
	write_to(&scene, STREAM_STDOUT, "6");
	CHECK_STRING(scene.told.words, "o:123)!stdout:5/3e:still!stdout:6/3");
	CHECK(scene.streams.is_truncated && !scene.streams.items[STREAM_STDERR].is_cut);
	scene_done(&scene);
}

static void test_a_cap_of_nothing_ends_a_stream_with_its_first_byte(void)
{
	struct scene scene;

	scene_init(&scene, EACH(0, 0), false);
	run_streams_read(&scene.streams);
	CHECK_STRING(scene.told.words, "");
	write_to(&scene, STREAM_STDERR, "x");
	CHECK_STRING(scene.told.words, "]!stderr:1/0");
	scene_done(&scene);
}

static void test_a_stream_that_there_is_not_ends_at_once(void)
{
	struct scene scene;

	scene_init(&scene, TOTAL(LIMIT_NONE), true);
	CHECK_STRING(scene.told.words, "");
	run_streams_read(&scene.streams);
	CHECK_STRING(scene.told.words, "]");
	scene_done(&scene);
}

static void test_streams_of_a_command_that_never_started_do_not_end(void)
{
	struct scene scene;

	/* The run may be started once more, in another jar, with the same listener. */
	scene_init(&scene, TOTAL(LIMIT_NONE), false);
	run_streams_drain(&scene.streams, false);
	CHECK(scene.told.is_drained);
	CHECK_STRING(scene.told.words, "");
	scene_done(&scene);
}

static void test_the_rest_waits_for_the_listener_or_is_taken_at_once(void)
{
	struct scene scene;

	for (int is_rest_taken = 0; is_rest_taken <= 1; is_rest_taken++) {
		scene_init(&scene, TOTAL(LIMIT_NONE), false);
		run_streams_read(&scene.streams);
		write_to(&scene, STREAM_STDOUT, "1");
		write_to(&scene, STREAM_STDERR, "two");
		CHECK_INT(write(scene.writers[STREAM_STDOUT], "three", 5), 5);
		run_streams_drain(&scene.streams, is_rest_taken);
		CHECK_INT(scene.told.is_drained, is_rest_taken);
		CHECK_STRING(scene.told.words, is_rest_taken ? "o:1e:twoo:three)]" : "o:1e:two]");
		run_streams_resume(&scene.streams, STREAM_STDOUT);
		CHECK(scene.told.is_drained);
		CHECK_STRING(scene.told.words, is_rest_taken ? "o:1e:twoo:three)]" : "o:1e:two]o:three)");
		scene_done(&scene);
	}
}

static const struct test tests[] = {
	TEST(test_the_rest_waits_for_the_listener_or_is_taken_at_once),
	TEST(test_a_stream_ends_when_its_last_writer_is_gone),
	TEST(test_both_streams_end_when_their_cap_is_passed),
	TEST(test_a_stream_with_a_cap_of_its_own_ends_alone),
	TEST(test_a_cap_of_nothing_ends_a_stream_with_its_first_byte),
	TEST(test_a_stream_that_there_is_not_ends_at_once),
	TEST(test_streams_of_a_command_that_never_started_do_not_end),
};

TEST_MAIN(tests)
