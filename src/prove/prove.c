/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prove/prove.c - one jar for each attempt, and a look outside after each
 *
 * Every attempt has a jar of its own, so that one that succeeds cannot help the next. The attempt says what it was answered, but what
 * counts is what is seen outside afterwards: an attempt may be wrong about itself, and one that got through may lie.
 */
#include "prove/prove.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "engine/engine.h"
#include "prove/attempt.h"
#include "prove/prove_stage.h"
#include "survey/survey_own.h"
#include "policy/policy_build.h"
#include "policy/policy_lists.h"
#include "base/sys/calls.h"

#define ATTEMPT_TIMEOUT_NS 10000000000ULL
#define ATTEMPT_PIDS 12
#define ANSWER_BYTES 512
/* Of a run that Belljar ended for a limit; engine/result/result.c. */
#define EXIT_LIMIT 137

struct prover {
	const struct engine_doctor_request *request;
	const char *program; /* this program's path */
	enum rung rung_max;  /* what is above it is treated as absent */
	struct prove_stage stage;
	struct string_list environment;
	const char *home;
	enum rung rung;
	struct error *error;
};

/* The report of one jar. */
struct jar_answer {
	struct answer answer;
	char call[32];
	bool has_gap;  /* `missing` names the attempt's gap */
	bool is_ended; /* for the number of its processes, before it could answer */
	int exit_status;
};

static int fill_environment(struct prover *prover)
{
	int rc = string_list_add(&prover->environment, PROVE_SECRET_VARIABLE "=1");

	for (char *const *variable = prover->request->environment; variable && *variable && rc == 0; variable++) {
		rc = string_list_add(&prover->environment, *variable);
		if (!strncmp(*variable, "HOME=/", 6))
			prover->home = *variable + 5;
	}
	return rc;
}

void prove_roots(char *path, size_t capacity)
{
	snprintf(path, capacity, geteuid() ? "/run/user/%u/belljar" : "/run/belljar", (unsigned)geteuid());
}

static int set_scene(const struct prover *prover, const struct attempt *attempt, struct policy *policy)
{
	const char *base = prover->stage.facts.base;
	char path[2 * PROVE_PATH_MAX];

	switch (attempt->scene) {
	case SCENE_ROOTS:
		prove_roots(path, sizeof(path));
		return policy_add_mount(policy, path, path, MOUNT_RW, false);
	case SCENE_LINK:
		free(policy->workdir);
		policy->workdir = NULL;
		return asprintf(&policy->workdir, "%s/work/planted", base) < 0 ? -ENOMEM : 0;
	case SCENE_COVER:
		return string_list_add_format(&policy->hide, "%s/" PROVE_HIDDEN, base);
	case SCENE_PACKAGE: /* said by the environment of this process, as a client does */
	case SCENE_NONE:
		break;
	}
	return 0;
}

/* The default policy, with the planted workdir and this program visible; less than it asks for is reported, not refused. */
static int make_policy(const struct prover *prover, const struct attempt *attempt, struct policy *policy)
{
	struct policy_context context = {.current_directory = prover->stage.work, .home = prover->home};
	struct prove_facts facts = prover->stage.facts;
	char place[2 * PROVE_PATH_MAX];
	AUTO_TEXT text = {0};
	int rc = policy_init(policy, &context, prover->error);

	if (rc < 0)
		return rc;
	facts.pids_max = ATTEMPT_PIDS;
	prove_facts_print(&facts, &text);
	policy->workdir = strdup(prover->stage.work);
	policy->workdir_choice = WORKDIR_NAMED;
	policy->limits.timeout_ns = ATTEMPT_TIMEOUT_NS;
	policy->limits.grace_ns = 0;
	policy->limits.pids = ATTEMPT_PIDS;
	if (attempt->memory_bytes)
		policy->limits.memory_bytes = attempt->memory_bytes;
	policy->rung = RUNG_PROCESS;
	if (attempt->has_gate) {
		policy->net = NET_GATE;
		if (string_list_add_format(&policy->allow_net, "host:%d", prover->stage.facts.gate_port) < 0) {
			policy_done(policy);
			return error_set(prover->error, STAGE_ENGINE, ENOMEM, "out of memory");
		}
	}
	policy->optional = ~0U;
	snprintf(place, sizeof(place), "%s/%s", prover->stage.facts.base, PROVE_PLACE);
	if (!policy->workdir || text_failed(&text) || set_scene(prover, attempt, policy) < 0 ||
	    policy_add_mount(policy, place, place, MOUNT_RW, false) < 0 ||
	    policy_add_mount(policy, prover->program, prover->program, MOUNT_RO, false) < 0 ||
	    policy_add_env(policy, PROVE_FACTS_VARIABLE, text_string(&text)) < 0) {
		policy_done(policy);
		return error_set(prover->error, STAGE_ENGINE, ENOMEM, "out of memory");
	}
	return 0;
}

static void read_answer(int fd, struct jar_answer *out)
{
	char text[ANSWER_BYTES];
	ssize_t len = pread(fd, text, sizeof(text) - 1, 0);

	text[len > 0 ? len : 0] = '\0';
	if (!prove_answer_read(text, &out->answer, out->call, sizeof(out->call)))
		out->answer.verdict = VERDICT_UNKNOWN;
}

static bool run_has_gap(const struct engine_run *run, const char *gap)
{
	const char *name, *why;

	for (size_t i = 0; gap && engine_missing(run, i, &name, &why); i++)
		if (!strcmp(name, gap))
			return true;
	return false;
}

/* Wait for the jar to be gone. */
static int finish_run(struct prover *prover, struct loop *loop, struct engine_run *run, const char *gap,
		      struct jar_answer *out)
{
	const struct error *failure;
	int rc = 0;

	while (!engine_is_done(run) && rc == 0)
		rc = loop_turn(loop);
	failure = engine_error(run);
	if (failure) {
		*prover->error = *failure;
		return -EIO;
	}
	if (rc < 0)
		return error_set(prover->error, STAGE_ENGINE, -rc, "cannot wait for the jar: %s", strerror(-rc));
	prover->rung = policy_rung_named(engine_rung(run));
	out->is_ended = engine_is_over_pids(run);
	/* What is only measured overshoots, which `missing` says; it held all the same. */
	out->has_gap = run_has_gap(run, gap) && !out->is_ended;
	out->exit_status = engine_exit_status(run);
	return 0;
}

/* A program of the host's: save over the hidden file as soon as the command is there. */
static pid_t start_saver(const struct prover *prover)
{
	struct timespec nap = {.tv_nsec = 1000000};
	const char *base = prover->stage.facts.base;
	char ready[2 * PROVE_PATH_MAX], hidden[2 * PROVE_PATH_MAX], saved[2 * PROVE_PATH_MAX];
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	snprintf(ready, sizeof(ready), "%s/" PROVE_READY, base);
	snprintf(hidden, sizeof(hidden), "%s/" PROVE_HIDDEN, base);
	snprintf(saved, sizeof(saved), "%s/" PROVE_HIDDEN ".saved", base);
	while (access(ready, F_OK) < 0)
		nanosleep(&nap, NULL);
	_exit(rename(saved, hidden) < 0);
}

static void end_saver(pid_t pid)
{
	if (pid <= 0)
		return;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* The engine did not begin, or did not go on: that is what must stop attempts in a scene. */
static bool was_refused(const struct attempt *attempt, const struct error *error)
{
	return attempt->scene != SCENE_NONE &&
	       (error->stage == STAGE_PLAN || error->stage == STAGE_HOST || error->stage == STAGE_ISOLATE);
}

/* Run `belljar-prove --attempt NAME` in a fresh jar. */
static int run_attempt(struct prover *prover, const struct attempt *attempt, struct jar_answer *out)
{
	const char *command[] = {prover->program, "--attempt", attempt->name, NULL};
	AUTO_CLOSE int output = memfd_create("belljar-answer", MFD_CLOEXEC);
	AUTO_CLOSE int noise = memfd_create("belljar-noise", MFD_CLOEXEC);
	struct policy policy;
	struct engine_request request = {
		.policy = &policy,
		.command = (char *const *)command,
		.command_count = (int)ARRAY_LEN(command) - 1,
		.mode = ENGINE_PASS,
		.stdout_fd = output,
		.stderr_fd = noise,
		.status_fd = -1,
		.stdin_choice = ENGINE_STDIN_NULL,
		.stdin_fd = -1,
		.environment = prover->environment.items,
		.current_directory = prover->stage.work,
		.is_rung_limited = true,
		.rung_max = prover->rung_max,
		.argv_memory = prover->request->argv_memory,
		.argv_memory_len = prover->request->argv_memory_len,
		.spared_pid = prover->stage.facts.victim_pid,
	};
	struct engine_run *run = NULL;
	struct loop *loop = loop_new();
	char roots[PROVE_PATH_MAX];
	pid_t saver = 0;
	int rc;

	/* There is no gate on other rungs, and none leads anywhere without internet sockets. */
	if (attempt->scene == SCENE_ROOTS) {
		prove_roots(roots, sizeof(roots));
		if (access(roots, F_OK) < 0) {
			loop_free(loop);
			out->answer = prove_answer_skipped("open");
			return 0;
		}
	}
	if (attempt->has_gate && (prover->rung != RUNG_NAMESPACE || !prover->stage.facts.gate_port)) {
		loop_free(loop);
		errno = EOPNOTSUPP;
		out->answer = prove_answer_skipped("connect");
		return 0;
	}
	if (output < 0 || noise < 0 || !loop) {
		loop_free(loop);
		return error_set(prover->error, STAGE_ENGINE, errno, "cannot run an attempt: %s", strerror(errno));
	}
	rc = make_policy(prover, attempt, &policy);
	if (rc == 0) {
		if (attempt->scene == SCENE_COVER)
			saver = start_saver(prover);
		if (attempt->scene == SCENE_PACKAGE)
			setenv(HOST_PACKAGE_VARIABLE, attempt_path(&prover->stage.facts, "work/package"), true);
		rc = engine_start(loop, &request, &run);
		if (rc == 0)
			rc = finish_run(prover, loop, run, attempt->gap, out);
		engine_free(run);
		policy_done(&policy);
		if (attempt->scene == SCENE_PACKAGE)
			unsetenv(HOST_PACKAGE_VARIABLE);
	}
	loop_free(loop);
	end_saver(saver);
	if (rc < 0 && was_refused(attempt, prover->error)) {
		out->answer = prove_answer_stopped(LAYER_ENGINE, "run", prover->error->errno_value);
		*prover->error = (struct error){0};
		return 0;
	}
	if (rc == 0 && out->is_ended)
		out->answer = (struct answer){.verdict = VERDICT_STOPPED, .layer = LAYER_LIMITS, .call = "fork"};
	else if (rc == 0)
		read_answer(output, out);
	/* A jar that cannot be held to a limit is not made; that is no proof of anything. */
	if (rc < 0 && attempt->memory_bytes && prover->error->stage == STAGE_LIMITS) {
		*prover->error = (struct error){0};
		out->answer = prove_answer_skipped("mmap");
		return 0;
	}
	/* A process that the memory limit ended cannot report it. */
	if (rc == 0 && attempt->memory_bytes && out->answer.verdict == VERDICT_UNKNOWN &&
	    out->exit_status == EXIT_LIMIT)
		out->answer = prove_answer_stopped(LAYER_LIMITS, "mmap", 0);
	return rc;
}

/* --- what it means ------------------------------------------------------------------------------------------ */

static bool is_covered(const struct prover *prover, const struct attempt *attempt, bool has_gap)
{
	if (attempt->layers[prover->rung] == LAYER_NONE || has_gap)
		return false;
	return prover->rung != RUNG_LANDLOCK || survey_landlock_abi() >= attempt->landlock_abi;
}

/* The same errno can come from the kernel's own rules; a layer that a rung does not have cannot be what stopped it. */
static enum layer layer_on_rung(enum layer layer, enum rung rung)
{
	bool is_wall = layer == LAYER_LANDLOCK || layer == LAYER_SECCOMP || layer == LAYER_MOUNT_NS;

	return rung == RUNG_PROCESS && is_wall ? LAYER_HOST : layer;
}

static void judge(struct prover *prover, const struct attempt *attempt, const struct jar_answer *said,
		  struct proof *proof)
{
	const char *seen = prove_stage_look(&prover->stage);
	const struct answer *answer = &said->answer;
	enum layer layer =
		answer->verdict == VERDICT_STOPPED && !seen ? layer_on_rung(answer->layer, prover->rung) : LAYER_NONE;

	*proof = (struct proof){
		.name = attempt->name,
		.what = attempt->what,
		.expected = prove_layer_name(attempt->layers[prover->rung]),
		.verdict = seen ? VERDICT_THROUGH : answer->verdict,
		.layer = layer == LAYER_NONE ? NULL : prove_layer_name(layer),
		.is_covered = is_covered(prover, attempt, said->has_gap),
		.is_expected = layer == attempt->layers[prover->rung] ||
			       (attempt->alternative && layer == attempt->alternative),
	};
	if (seen)
		snprintf(proof->how, sizeof(proof->how), "%s", seen);
	else if (answer->verdict == VERDICT_UNKNOWN)
		snprintf(proof->how, sizeof(proof->how), "no answer from inside (exit status %d)", said->exit_status);
	else if (answer->verdict == VERDICT_THROUGH)
		snprintf(proof->how, sizeof(proof->how), "%s got through", answer->call);
	else if (attempt->memory_bytes && answer->verdict == VERDICT_STOPPED)
		snprintf(proof->how, sizeof(proof->how), "the jar was ended for its memory");
	else if (said->is_ended)
		snprintf(proof->how, sizeof(proof->how), "the run was killed");
	else if (answer->errno_value)
		snprintf(proof->how, sizeof(proof->how), "%s: %s", answer->call, errno_name(answer->errno_value));
	else
		snprintf(proof->how, sizeof(proof->how), "%s had no effect", answer->call);
}

static int prove_one(struct prover *prover, const struct attempt *attempt, struct proof_list *proofs)
{
	struct jar_answer said = {0};
	int rc = run_attempt(prover, attempt, &said);
	struct proof *proof = rc == 0 ? list_add(proofs) : NULL;

	if (rc < 0)
		return rc;
	if (!proof)
		return error_set(prover->error, STAGE_ENGINE, ENOMEM, "out of memory");
	judge(prover, attempt, &said, proof);
	if (proof->verdict != VERDICT_THROUGH)
		return 0;
	/* The planted objects may have changed: plant them again for the next attempt. */
	prove_stage_done(&prover->stage);
	return prove_stage_build(&prover->stage, prover->error);
}

static int prove_control(struct prover *prover)
{
	struct jar_answer said = {0};
	int rc = run_attempt(prover, attempt_by_name("control"), &said);

	if (rc < 0 || said.answer.verdict == VERDICT_THROUGH)
		return rc;
	error_set(prover->error, STAGE_ENGINE, said.answer.errno_value,
		  "what is allowed does not work inside the jar, so nothing can be proved (exit status %d)",
		  said.exit_status);
	return error_hint(prover->error, "`belljar run -v -- true` shows whether a jar can be made");
}

/* In test builds BELLJAR_TEST_ATTEMPTS=tcp,udp chooses attempts: a proof that there is a hole need not try the rest. */
static bool is_chosen(const struct attempt *attempt)
{
#ifdef BELLJAR_TEST_BUILD
	const char *names = getenv("BELLJAR_TEST_ATTEMPTS");
	size_t len = strlen(attempt->name);

	for (; names; names = strchr(names, ',') ? strchr(names, ',') + 1 : NULL)
		if (!strncmp(names, attempt->name, len) && (!names[len] || names[len] == ','))
			return true;
	return !getenv("BELLJAR_TEST_ATTEMPTS");
#else
	return attempt;
#endif
}

static bool is_told_to_end(void)
{
	sigset_t pending;

	sigpending(&pending);
	return sigismember(&pending, SIGINT) == 1 || sigismember(&pending, SIGTERM) == 1 ||
	       sigismember(&pending, SIGHUP) == 1 || sigismember(&pending, SIGQUIT) == 1;
}

int prove_all(const struct engine_doctor_request *request, enum rung rung_max, struct proof_list *proofs,
	      enum rung *rung_out, struct error *error)
{
	char program[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", program, sizeof(program) - 1);
	struct prover prover = {.request = request, .program = program, .rung_max = rung_max, .error = error};
	sigset_t held, before;
	int rc;

	if (len < 0)
		return error_set(error, STAGE_ENGINE, errno, "cannot find this program: %s", strerror(errno));
	program[len] = '\0';
	/* Signals that would end this process wait until everything is cleared away. SIGURG is what attempts send. */
	sigemptyset(&held);
	sigaddset(&held, SIGINT);
	sigaddset(&held, SIGTERM);
	sigaddset(&held, SIGHUP);
	sigaddset(&held, SIGQUIT);
	sigaddset(&held, SIGURG);
	sigprocmask(SIG_BLOCK, &held, &before);
	prove_stage_init(&prover.stage);
	rc = fill_environment(&prover) < 0 ? error_set(error, STAGE_ENGINE, ENOMEM, "out of memory") : 0;
	if (rc == 0)
		rc = prove_stage_build(&prover.stage, error);
	if (rc == 0)
		rc = prove_control(&prover);
	for (size_t i = 0; i < attempt_count && rc == 0 && !is_told_to_end(); i++)
		rc = is_chosen(&attempts[i]) ? prove_one(&prover, &attempts[i], proofs) : 0;
	prove_stage_done(&prover.stage);
	string_list_done(&prover.environment);
	sigprocmask(SIG_SETMASK, &before, NULL);
	*rung_out = prover.rung;
	return rc;
}
