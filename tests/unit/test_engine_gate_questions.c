/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_engine_gate_questions.c - who is asked about what no rule decides, and when
 */
#include "engine/gate/engine_gate_parts.h"
#include "test.h"

/* Two runs in the network of one jar, and what they hear. */
struct scene {
	struct gate gate;
	struct gate_page *page;
	struct plan plan;
	struct gate_visit runs[2];
	unsigned asked[2];
};

static void on_question(void *owner, const struct net_question *question)
{
	++*(unsigned *)owner;
	CHECK_STRING(question->rule.name, "good.test");
}

/* What it heard counts down again. */
static void on_withdrawn(void *owner, uint32_t id)
{
	--*(unsigned *)owner;
	CHECK(id);
}

static void open_scene(struct scene *scene)
{
	*scene = (struct scene){.plan.gate = {.may_ask = true, .ask_timeout_ns = 60000000000ULL}};
	scene->page = calloc(1, sizeof(*scene->page));
	CHECK(scene->page);
	scene->gate = (struct gate){.loop = loop_new(),
				    .plan = &scene->plan,
				    .page = scene->page,
				    .control_fd = -1,
				    .pidfd = -1,
				    .rules_fd = -1};
	for (size_t i = 0; i < ARRAY_LEN(scene->runs); i++)
		scene->runs[i] = (struct gate_visit){
			.owner = &scene->asked[i], .question = on_question, .withdrawn = on_withdrawn};
}

static void close_scene(struct scene *scene)
{
	engine_gate_questions_end(&scene->gate);
	loop_free(scene->gate.loop);
	free(scene->page);
}

static void enter(struct scene *scene, size_t number)
{
	struct gate_visit *run = &scene->runs[number];

	run->gate = &scene->gate;
	run->next = scene->gate.visits;
	scene->gate.visits = run;
	engine_gate_questions_enter(&scene->gate, run);
}

static void ask(struct scene *scene, uint32_t number)
{
	struct net_rule rule;
	struct net_refusal refusal;

	CHECK_INT(net_rule_parse("good.test:443", &rule, &refusal), 0);
	engine_gate_questions_take(&scene->gate, number, &rule);
}

/* Else the process would say of every name that there is none. */
static void test_a_run_can_be_asked_before_its_start_is_heard_of(void)
{
	struct scene scene;

	open_scene(&scene);
	CHECK(!scene.page->can_ask);
	enter(&scene, 0);
	CHECK(scene.page->can_ask);
	ask(&scene, 1);
	CHECK_INT(scene.asked[0], 0);
	engine_gate_begin_answering(&scene.runs[0]);
	CHECK_INT(scene.asked[0], 1);
	ask(&scene, 2);
	CHECK_INT(scene.asked[0], 2);
	engine_gate_begin_answering(&scene.runs[0]);
	CHECK_INT(scene.asked[0], 2);
	engine_gate_questions_leave(&scene.gate, &scene.runs[0]);
	CHECK(!scene.page->can_ask && !scene.gate.questions);
	close_scene(&scene);
}

static void test_a_run_that_never_starts_hears_of_nothing(void)
{
	struct scene scene;

	open_scene(&scene);
	enter(&scene, 0);
	ask(&scene, 1);
	ask(&scene, 2);
	engine_gate_questions_withdraw(&scene.gate, 1);
	engine_gate_questions_leave(&scene.gate, &scene.runs[0]);
	CHECK_INT(scene.asked[0], 0);
	CHECK(!scene.gate.questions);
	close_scene(&scene);
}

static void test_a_run_that_has_started_comes_before_an_older_one_that_has_not(void)
{
	struct scene scene;

	open_scene(&scene);
	enter(&scene, 0);
	enter(&scene, 1);
	engine_gate_begin_answering(&scene.runs[1]);
	ask(&scene, 1);
	CHECK_INT(scene.asked[1], 1);
	engine_gate_questions_leave(&scene.gate, &scene.runs[1]);
	CHECK_INT(scene.asked[0], 0);
	engine_gate_begin_answering(&scene.runs[0]);
	CHECK_INT(scene.asked[0], 1);
	close_scene(&scene);
}

static void test_a_run_without_an_answer_is_not_asked(void)
{
	struct scene scene;

	open_scene(&scene);
	scene.runs[0].question = NULL;
	enter(&scene, 0);
	engine_gate_begin_answering(&scene.runs[0]);
	CHECK(!scene.page->can_ask);
	scene.plan.gate.may_ask = false;
	enter(&scene, 1);
	CHECK(!scene.page->can_ask);
	close_scene(&scene);
}

static const struct test tests[] = {
	TEST(test_a_run_can_be_asked_before_its_start_is_heard_of),
	TEST(test_a_run_that_never_starts_hears_of_nothing),
	TEST(test_a_run_that_has_started_comes_before_an_older_one_that_has_not),
	TEST(test_a_run_without_an_answer_is_not_asked),
};

TEST_MAIN(tests)
