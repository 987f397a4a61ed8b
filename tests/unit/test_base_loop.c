/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_base_loop.c - descriptors, deadlines, and callbacks that change both while they run
 */
#include "test.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "base/loop.h"

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000ULL + (uint64_t)now.tv_nsec;
}

/* What was called, by the names that the owners are. */
#define NAMED(text)                                                                                                    \
	({                                                                                                             \
		static char named[] = text;                                                                            \
		named;                                                                                                 \
	})
static char called[64];

static void note(const char *name)
{
	strncat(called, name, sizeof(called) - strlen(called) - 1);
}

static struct loop *fresh(void)
{
	struct loop *loop = loop_new();

	called[0] = '\0';
	CHECK(loop);
	if (!loop)
		exit(1);
	return loop;
}

/* --- timers ------------------------------------------------------------------------------------------------- */

static void on_timer(struct loop_timer *timer)
{
	CHECK(!timer->loop); /* it is disarmed before it is called */
	note(timer->owner);
}

static void test_timers_fire_in_order_of_deadline_then_of_arming(void)
{
	struct loop *loop = fresh();
	struct loop_timer a = {0}, b = {0}, c = {0}, d = {0};

	loop_arm(loop, &c, 3, on_timer, NAMED("c"));
	loop_arm(loop, &a, 1, on_timer, NAMED("a"));
	loop_arm(loop, &b, 1, on_timer, NAMED("b"));
	loop_arm(loop, &d, UINT64_MAX, on_timer, NAMED("d"));
	CHECK_INT(loop_turn(loop), 0);
	CHECK_STRING(called, "abc");
	CHECK(d.loop == loop);
	loop_disarm(&d);
	loop_disarm(&d);
	CHECK(!d.loop);
	loop_free(loop);
}

static void test_arming_again_moves_the_deadline(void)
{
	struct loop *loop = fresh();
	struct loop_timer a = {0}, b = {0};

	loop_arm(loop, &a, 1, on_timer, NAMED("a"));
	loop_arm(loop, &b, 2, on_timer, NAMED("b"));
	loop_arm(loop, &a, 3, on_timer, NAMED("A"));
	loop_turn(loop);
	CHECK_STRING(called, "bA");
	loop_free(loop);
}

static struct loop *loop_of_callback;
static struct loop_timer *other_timer;

static void on_timer_disarming(struct loop_timer *timer)
{
	note(timer->owner);
	loop_disarm(other_timer);
}

static void test_a_timer_disarmed_by_another_does_not_fire(void)
{
	struct loop *loop = fresh();
	struct loop_timer a = {0}, b = {0};

	other_timer = &b;
	loop_arm(loop, &a, 1, on_timer_disarming, NAMED("a"));
	loop_arm(loop, &b, 2, on_timer, NAMED("b"));
	loop_turn(loop);
	CHECK_STRING(called, "a");
	loop_free(loop);
}

static void on_timer_rearming(struct loop_timer *timer)
{
	note(timer->owner);
	if (strlen(called) < 3)
		loop_arm(loop_of_callback, timer, now_ns() + 1000000000ULL, on_timer_rearming, timer->owner);
}

static void test_a_timer_may_arm_itself_for_later(void)
{
	struct loop *loop = fresh();
	struct loop_timer a = {0};

	loop_of_callback = loop;
	loop_arm(loop, &a, 1, on_timer_rearming, NAMED("a"));
	loop_turn(loop);
	CHECK_STRING(called, "a");
	CHECK(a.loop == loop);
	loop_disarm(&a);
	loop_free(loop);
}

static void test_a_turn_waits_until_the_deadline_and_never_less(void)
{
	struct loop *loop = fresh();
	struct loop_timer a = {0};
	uint64_t begun = now_ns(), deadline = begun + 20 * 1000000ULL + 1;
	int turns = 0;

	loop_arm(loop, &a, deadline, on_timer, NAMED("a"));
	while (!called[0] && turns++ < 100)
		loop_turn(loop);
	CHECK(now_ns() >= deadline);
	CHECK(turns <= 2); /* no turning in a circle */
	loop_free(loop);
}

/* --- descriptors -------------------------------------------------------------------------------------------- */

static void on_readable(struct loop_watch *watch, uint32_t events)
{
	char byte;

	if (events & EPOLLIN && read(watch->fd, &byte, 1) == 1)
		note(watch->owner);
	else if (events & EPOLLHUP)
		note("hup");
}

static void test_a_descriptor_is_watched_until_it_is_removed(void)
{
	struct loop *loop = fresh();
	struct loop_watch watch;
	int fds[2];

	CHECK_INT(pipe(fds), 0);
	CHECK_INT(loop_add(loop, &watch, fds[0], EPOLLIN, on_readable, NAMED("r")), 0);
	CHECK_INT(write(fds[1], "12", 2), 2);
	loop_turn(loop);
	loop_turn(loop);
	CHECK_STRING(called, "rr");
	close(fds[1]);
	loop_turn(loop);
	CHECK_STRING(called, "rrhup");
	loop_remove(&watch);
	loop_remove(&watch);
	CHECK(!watch.loop);
	close(fds[0]);
	loop_free(loop);
}

static void test_events_can_be_switched_off_and_on(void)
{
	struct loop *loop = fresh();
	struct loop_watch watch;
	struct loop_timer stop = {0};
	int fds[2];

	CHECK_INT(pipe(fds), 0);
	CHECK_INT(loop_add(loop, &watch, fds[0], 0, on_readable, NAMED("r")), 0);
	CHECK_INT(write(fds[1], "1", 1), 1);
	loop_arm(loop, &stop, now_ns() + 1000000, on_timer, NAMED("t"));
	loop_turn(loop);
	CHECK_STRING(called, "t");
	loop_change(&watch, EPOLLIN);
	loop_turn(loop);
	CHECK_STRING(called, "tr");
	loop_remove(&watch);
	loop_change(&watch, EPOLLIN); /* in no loop: nothing happens */
	close(fds[0]);
	close(fds[1]);
	loop_free(loop);
}

static struct loop_watch *partner;

static void on_readable_removing(struct loop_watch *watch, uint32_t events)
{
	(void)events;
	note(watch->owner);
	/* Both have an event pending in this turn: whoever comes first takes the other away. */
	loop_remove(watch == &partner[0] ? &partner[1] : &partner[0]);
	loop_remove(watch);
	memset(partner, 0x5a, 2 * sizeof(*partner));
}

static void test_a_watch_removed_within_a_callback_is_not_called_in_that_turn(void)
{
	struct loop *loop = fresh();
	struct loop_watch watches[2];
	struct loop_timer stop = {0};
	int first[2], second[2];

	partner = watches;
	CHECK(pipe(first) == 0 && pipe(second) == 0);
	loop_add(loop, &watches[0], first[0], EPOLLIN, on_readable_removing, NAMED("x"));
	loop_add(loop, &watches[1], second[0], EPOLLIN, on_readable_removing, NAMED("x"));
	CHECK(write(first[1], "1", 1) == 1 && write(second[1], "1", 1) == 1);
	loop_turn(loop);
	CHECK_STRING(called, "x");
	loop_arm(loop, &stop, now_ns(), on_timer, NAMED("t"));
	loop_turn(loop);
	CHECK_STRING(called, "xt");
	for (int i = 0; i < 2; i++) {
		close(first[i]);
		close(second[i]);
	}
	loop_free(loop);
}

/* --- descriptors that epoll does not take ------------------------------------------------------------------- */

static void on_file(struct loop_watch *watch, uint32_t events)
{
	CHECK_INT(events, watch->events);
	note(watch->owner);
	if (strlen(called) >= 3)
		loop_remove(watch);
}

static int temporary_file(void)
{
	char path[] = "/tmp/belljar-loop-XXXXXX";
	int fd = mkstemp(path);

	unlink(path);
	return fd;
}

static void test_a_regular_file_is_always_ready(void)
{
	struct loop *loop = fresh();
	struct loop_watch watch;
	struct loop_timer never = {0};
	int fd = temporary_file();

	CHECK_INT(loop_add(loop, &watch, fd, EPOLLIN, on_file, NAMED("f")), 0);
	CHECK(watch.is_always_ready);
	loop_arm(loop, &never, UINT64_MAX, on_timer, NAMED("n"));
	for (int i = 0; i < 3; i++)
		loop_turn(loop);
	CHECK_STRING(called, "fff");
	CHECK(!watch.loop);
	loop_disarm(&never);
	close(fd);
	loop_free(loop);
}

static void test_a_file_with_no_events_does_not_keep_the_loop_awake(void)
{
	struct loop *loop = fresh();
	struct loop_watch watch;
	struct loop_timer stop = {0};
	int fd = temporary_file();
	uint64_t deadline = now_ns() + 5 * 1000000ULL;

	loop_add(loop, &watch, fd, 0, on_file, NAMED("f"));
	loop_arm(loop, &stop, deadline, on_timer, NAMED("t"));
	while (!called[0])
		loop_turn(loop);
	CHECK_STRING(called, "t");
	CHECK(now_ns() >= deadline);
	loop_change(&watch, EPOLLOUT);
	loop_turn(loop);
	CHECK_STRING(called, "tf");
	loop_remove(&watch);
	close(fd);
	loop_free(loop);
}

static void on_greedy_file(struct loop_watch *watch, uint32_t events)
{
	(void)events;
	if (strlen(called) < 40)
		note(watch->owner);
}

/* Two files are both always ready, a pipe has data, a timer is due: each must get its turn. */
static void test_files_do_not_starve_each_other_nor_pipes_nor_timers(void)
{
	struct loop *loop = fresh();
	struct loop_watch first, second, pipe_watch;
	struct loop_timer timer = {0};
	int one = temporary_file(), two = temporary_file(), fds[2];

	CHECK_INT(pipe(fds), 0);
	loop_add(loop, &first, one, EPOLLIN, on_greedy_file, NAMED("1"));
	loop_add(loop, &second, two, EPOLLIN, on_greedy_file, NAMED("2"));
	loop_add(loop, &pipe_watch, fds[0], EPOLLIN, on_readable, NAMED("p"));
	loop_arm(loop, &timer, 1, on_timer, NAMED("t"));
	CHECK_INT(write(fds[1], "1", 1), 1);
	for (int i = 0; i < 10; i++)
		loop_turn(loop);
	CHECK(strchr(called, '1'));
	CHECK(strchr(called, '2'));
	CHECK(strchr(called, 'p'));
	CHECK(strchr(called, 't'));
	loop_remove(&first);
	loop_remove(&second);
	loop_remove(&pipe_watch);
	close(one);
	close(two);
	close(fds[0]);
	close(fds[1]);
	loop_free(loop);
}

static void test_a_bad_descriptor_is_an_error_and_leaves_the_watch_out(void)
{
	struct loop *loop = fresh();
	struct loop_watch watch;

	CHECK(loop_add(loop, &watch, -1, EPOLLIN, on_readable, NAMED("r")) < 0);
	CHECK(!watch.loop);
	loop_remove(&watch);
	loop_free(loop);
	loop_free(NULL);
}

static void stay_busy(void)
{
	uint64_t until = now_ns() + 2000000;

	while (now_ns() < until)
		;
}

static void on_long_timer(struct loop_timer *timer)
{
	stay_busy();
	note(timer->owner);
}

static void write_byte(struct loop_timer *timer)
{
	stay_busy();
	CHECK_INT(write(*(int *)timer->owner, "x", 1), 1);
}

static void take_byte(struct loop_watch *watch, uint32_t events)
{
	char byte;

	(void)events;
	CHECK_INT(read(watch->fd, &byte, 1), 1);
	note(watch->owner);
}

/* What takes long is one thing in a turn: descriptors have theirs before the next. */
static void test_long_timers_do_not_keep_descriptors_waiting(void)
{
	struct loop *loop = fresh();
	struct loop_timer a = {0}, b = {0};
	struct loop_watch watch = {0};
	int ends[2];

	CHECK_INT(pipe(ends), 0);
	CHECK_INT(loop_add(loop, &watch, ends[0], EPOLLIN, take_byte, NAMED("r")), 0);
	loop_arm(loop, &a, 1, write_byte, &ends[1]);
	loop_arm(loop, &b, 2, on_long_timer, NAMED("b"));
	CHECK_INT(loop_turn(loop), 0);
	CHECK_INT(loop_turn(loop), 0);
	CHECK_STRING(called, "rb");
	loop_remove(&watch);
	close(ends[0]);
	close(ends[1]);
	loop_free(loop);
}

static void test_draining_waits_for_timers(void)
{
	struct loop *loop = fresh();
	struct loop_timer a = {0}, b = {0};

	loop_arm(loop, &a, now_ns() + 2000000, on_timer, NAMED("a"));
	loop_drain(loop, UINT64_MAX);
	CHECK_STRING(called, "a");
	loop_arm(loop, &b, UINT64_MAX, on_timer, NAMED("b"));
	loop_drain(loop, 0);
	CHECK_STRING(called, "a");
	loop_disarm(&b);
	loop_free(loop);
}

static const struct test tests[] = {
	TEST(test_timers_fire_in_order_of_deadline_then_of_arming),
	TEST(test_arming_again_moves_the_deadline),
	TEST(test_a_timer_disarmed_by_another_does_not_fire),
	TEST(test_a_timer_may_arm_itself_for_later),
	TEST(test_a_turn_waits_until_the_deadline_and_never_less),
	TEST(test_a_descriptor_is_watched_until_it_is_removed),
	TEST(test_events_can_be_switched_off_and_on),
	TEST(test_a_watch_removed_within_a_callback_is_not_called_in_that_turn),
	TEST(test_a_regular_file_is_always_ready),
	TEST(test_a_file_with_no_events_does_not_keep_the_loop_awake),
	TEST(test_files_do_not_starve_each_other_nor_pipes_nor_timers),
	TEST(test_a_bad_descriptor_is_an_error_and_leaves_the_watch_out),
	TEST(test_long_timers_do_not_keep_descriptors_waiting),
	TEST(test_draining_waits_for_timers),
};

TEST_MAIN(tests)
