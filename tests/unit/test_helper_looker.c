/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_helper_looker.c - a process that looks, waits, dies, and is ended
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "helper/looker.h"
#include "base/sys/calls.h"
#include "test.h"

#define SECONDS UINT64_C(1000000000)

struct scene {
	struct loop *loop;
	struct reap_family family;
	struct meter meter;
	struct looker *looker;
	struct looker_answer answer;
	unsigned answers, losses;
};

static void on_answer(void *owner, const struct looker_answer *answer)
{
	struct scene *scene = owner;

	if (!answer) {
		scene->losses++;
		return;
	}
	scene->answer = *answer;
	scene->answers++;
}

static void begin(struct scene *scene, looker_look *look)
{
	static const struct plan no_plan;
	struct looker_question question = {.first_written_bytes = 42};

	*scene = (struct scene){.loop = loop_new()};
	helper_meter_init(&scene->meter, &no_plan);
	CHECK_INT(helper_meter_follow(&scene->meter, getpid()), 0);
	CHECK_INT(helper_looker_new(scene->loop, &scene->family, &scene->meter, look, on_answer, scene, &scene->looker),
		  0);
	CHECK_INT(scene->family.count, 1);
	CHECK_INT(helper_looker_ask(scene->looker, &question), 0);
}

static void await(struct scene *scene)
{
	while (!scene->answers && !scene->losses && loop_turn(scene->loop) == 0)
		;
}

/* Whatever it does, it is gone then. */
static void end(struct scene *scene)
{
	helper_looker_free(scene->looker);
	loop_drain(scene->loop, sys_monotonic_ns() + 60 * SECONDS);
	CHECK_INT(scene->family.count, 0);
	CHECK_INT(waitpid(-1, NULL, WNOHANG | __WALL), -1);
	free(scene->family.items);
	helper_meter_done(&scene->meter);
	loop_free(scene->loop);
}

static unsigned count_descriptors(void)
{
	DIR *directory = opendir("/proc/self/fd");
	unsigned count = 0;

	while (directory && readdir(directory))
		count++;
	closedir(directory);
	return count - 3; /* itself, and two names that are none */
}

static void look(void *owner, const struct looker_question *question, struct looker_answer *answer)
{
	(void)owner;
	answer->reading.written_bytes = question->first_written_bytes;
	answer->reading.processes = count_descriptors();
	answer->hidden_pid = getsid(0);
}

static void test_a_question_is_answered(void)
{
	int stranger = open("/dev/null", O_RDONLY | O_CLOEXEC);
	struct scene scene;

	begin(&scene, look);
	await(&scene);
	CHECK_INT(scene.answers, 1);
	CHECK_INT(scene.answer.reading.written_bytes, 42);
	/* Its socket and its /proc: nothing that the engine holds for others. */
	CHECK_INT(scene.answer.reading.processes, 2);
	CHECK_INT(scene.answer.hidden_pid, scene.family.items[0]);
	CHECK(!helper_looker_is_blocked(scene.looker));
	end(&scene);
	close(stranger);
}

static void die(void *owner, const struct looker_question *question, struct looker_answer *answer)
{
	(void)owner;
	(void)question;
	(void)answer;
	_exit(1);
}

static void test_one_that_dies_is_missed(void)
{
	struct scene scene;

	begin(&scene, die);
	await(&scene);
	CHECK_INT(scene.answers, 0);
	CHECK_INT(scene.losses, 1);
	end(&scene);
}

/* Whoever has made a process by vfork() waits for it as for a lock: only a signal that kills reaches it. */
static void wait_for_ever(void *owner, const struct looker_question *question, struct looker_answer *answer)
{
	(void)owner;
	(void)question;
	(void)answer;
	if (vfork() == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		sleep(60);
		_exit(0);
	}
}

static void test_one_that_waits_is_noticed_and_ended(void)
{
	struct scene scene;

	begin(&scene, wait_for_ever);
	for (int i = 0; i < 6000 && !helper_looker_is_blocked(scene.looker); i++)
		usleep(10000);
	CHECK(helper_looker_is_blocked(scene.looker));
	CHECK_INT(scene.answers + scene.losses, 0);
	end(&scene);
}

int main(void)
{
	static const struct test tests[] = {
		TEST(test_a_question_is_answered),
		TEST(test_one_that_dies_is_missed),
		TEST(test_one_that_waits_is_noticed_and_ended),
	};

	return test_main(tests, sizeof(tests) / sizeof(tests[0]));
}
