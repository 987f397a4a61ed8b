/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/engine_doctor.c - examine, prove, print
 */
#include "engine/engine_doctor.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/json_write.h"
#include "engine/engine_prove.h"
#include "host/host_doctor.h"
#include "plan/plan.h"

#define NAME_WIDTH 18
#define STATE_WIDTH 9

/* SPEC's table of guarantees, as seen from what a rung does not give. */
static const char *const namespace_lacks[] = {NULL};
static const char *const landlock_lacks[] = {
	"a private /tmp, home, /run and /dev/shm: TMPDIR and HOME point into a directory of the run instead",
	"--hide, --hostname, --tmpfs, and DEST in --ro and --rw, which are refused",
	"the protection of files that other programs execute later inside the workdir",
	"a private loopback: internet sockets cannot be made at all",
	"connections by name to Unix sockets inside the jar (before Landlock ABI 9)",
	"a cover over the names of files and processes outside",
	"a hold on mode, times and attributes of files outside",
	NULL,
};
static const char *const process_lacks[] = {
	"every wall: the command can read, change and reach what the caller can; what holds is a clean environment, closed "
	"descriptors, no new privileges, limits, and that nothing outlives the run",
	NULL,
};
static const char *const *const lacks[] = {
	[RUNG_PROCESS] = process_lacks,
	[RUNG_LANDLOCK] = landlock_lacks,
	[RUNG_NAMESPACE] = namespace_lacks,
};

struct examination {
	struct capability_list capabilities;
	enum rung best;
	struct proof_list proofs;
	enum rung proved; /* the rung the proof ran on */
	bool has_proof;
};

static bool is_hole(const struct proof *proof)
{
	return proof->is_covered && proof->verdict == VERDICT_THROUGH;
}

/* --- for people --------------------------------------------------------------------------------------------- */

/* Each line of @lines, below the column of values. */
static void print_indented(struct text *out, const char *lines)
{
	while (*lines) {
		size_t len = strcspn(lines, "\n");

		text_append_format(out, "%*s%.*s\n", NAME_WIDTH + STATE_WIDTH, "", (int)len, lines);
		lines += len + (lines[len] == '\n');
	}
}

static void print_capability(struct text *out, const struct capability *capability)
{
	const struct finding *finding = &capability->finding;

	text_append_format(out, "%-*s%-*s%s (for: %s)\n", NAME_WIDTH, capability->name, STATE_WIDTH,
			   finding->is_found ? "found" : "missing", finding->value, capability->purpose);
	print_indented(out, finding->remedy);
}

static void print_rungs(struct text *out, enum rung best)
{
	text_append_format(out, "\nbest rung: %s\n", rung_name(best));
	for (int rung = RUNG_NAMESPACE; rung >= RUNG_PROCESS; rung--) {
		text_append_format(out, "%-*s%s\n", NAME_WIDTH, rung_name((enum rung)rung),
				   rung <= (int)best ? "can be had" : "cannot be had");
		for (const char *const *lack = lacks[rung]; *lack; lack++)
			text_append_format(out, "%*slacks %s\n", NAME_WIDTH, "", *lack);
	}
}

static const char *verdict_words(const struct proof *proof)
{
	if (!proof->is_covered)
		return "not covered";
	switch (proof->verdict) {
	case VERDICT_STOPPED:
		return "stopped";
	case VERDICT_THROUGH:
		return "GOT THROUGH";
	case VERDICT_SKIPPED:
		return "not tried";
	case VERDICT_UNKNOWN:
		return "no answer";
	}
	return "";
}

static void print_proof(struct text *out, const struct proof *proof, enum rung rung)
{
	const char *layer = proof->verdict == VERDICT_STOPPED ? layer_name(proof->layer) : "-";

	text_append_format(out, "%-*s%-13s%-14s%-44s %s", NAME_WIDTH, proof->attempt->name, verdict_words(proof), layer,
			   proof->how, proof->attempt->what);
	if (proof->is_covered && proof->verdict == VERDICT_STOPPED && !proof->is_expected)
		text_append_format(out, " (expected: %s)", layer_name(proof->attempt->layers[rung]));
	text_append_char(out, '\n');
}

static void print_proofs(struct text *out, const struct examination *seen)
{
	size_t holes = 0, stopped = 0, uncovered = 0;

	text_append_format(out, "\nproof on the rung '%s':\n", rung_name(seen->proved));
	for (size_t i = 0; i < seen->proofs.count; i++) {
		const struct proof *proof = &seen->proofs.items[i];

		print_proof(out, proof, seen->proved);
		holes += is_hole(proof);
		uncovered += !proof->is_covered;
		stopped += proof->is_covered && proof->verdict == VERDICT_STOPPED;
	}
	text_append_format(out, "%zu attempts: %zu stopped, %zu got through, %zu not covered on this rung\n",
			   seen->proofs.count, stopped, holes, uncovered);
}

/* --- for programs ------------------------------------------------------------------------------------------- */

static void write_capability(struct json_writer *writer, const struct capability *capability)
{
	const struct finding *finding = &capability->finding;
	size_t len = strlen(finding->remedy);

	while (len && finding->remedy[len - 1] == '\n')
		len--;
	json_open_object(writer, NULL);
	json_write_string(writer, "name", capability->name);
	json_write_bool(writer, "found", finding->is_found);
	json_write_string(writer, "value", finding->value);
	json_write_string(writer, "purpose", capability->purpose);
	if (len)
		json_write_bytes(writer, "remedy", finding->remedy, len);
	else
		json_write_null(writer, "remedy");
	json_close_object(writer);
}

static void write_rungs(struct json_writer *writer, enum rung best)
{
	json_open_array(writer, "rungs");
	for (int rung = RUNG_NAMESPACE; rung >= RUNG_PROCESS; rung--) {
		json_open_object(writer, NULL);
		json_write_string(writer, "name", rung_name((enum rung)rung));
		json_write_bool(writer, "found", rung <= (int)best);
		json_open_array(writer, "lacks");
		for (const char *const *lack = lacks[rung]; *lack; lack++)
			json_write_string(writer, NULL, *lack);
		json_close_array(writer);
		json_close_object(writer);
	}
	json_close_array(writer);
}

static void write_proof(struct json_writer *writer, const struct proof *proof)
{
	bool is_known = proof->verdict == VERDICT_STOPPED || proof->verdict == VERDICT_THROUGH;

	json_open_object(writer, NULL);
	json_write_string(writer, "name", proof->attempt->name);
	json_write_string(writer, "what", proof->attempt->what);
	json_write_string(writer, "layer", proof->verdict == VERDICT_STOPPED ? layer_name(proof->layer) : NULL);
	if (is_known)
		json_write_bool(writer, "stopped", proof->verdict == VERDICT_STOPPED);
	else
		json_write_null(writer, "stopped");
	json_write_string(writer, "how", proof->how);
	json_write_bool(writer, "covered", proof->is_covered);
	json_write_bool(writer, "expected", proof->is_expected);
	json_close_object(writer);
}

static void write_json(struct text *out, const struct examination *seen)
{
	struct json_writer writer = {.text = out, .indent = 2};

	json_open_object(&writer, NULL);
	json_write_integer(&writer, "version", 1);
	json_write_string(&writer, "belljar", BELLJAR_VERSION);
	json_write_string(&writer, "best_rung", rung_name(seen->best));
	json_open_array(&writer, "capabilities");
	for (size_t i = 0; i < seen->capabilities.count; i++)
		write_capability(&writer, &seen->capabilities.items[i]);
	json_close_array(&writer);
	write_rungs(&writer, seen->best);
	if (seen->has_proof) {
		json_write_string(&writer, "proved_rung", rung_name(seen->proved));
		json_open_array(&writer, "attempts");
		for (size_t i = 0; i < seen->proofs.count; i++)
			write_proof(&writer, &seen->proofs.items[i]);
		json_close_array(&writer);
	}
	json_close_object(&writer);
	text_append_char(out, '\n');
}

/* --- both --------------------------------------------------------------------------------------------------- */

static void write_text(struct text *out, const struct examination *seen)
{
	for (size_t i = 0; i < seen->capabilities.count; i++)
		print_capability(out, &seen->capabilities.items[i]);
	print_rungs(out, seen->best);
	if (seen->has_proof)
		print_proofs(out, seen);
}

static int prove(const struct engine_doctor_request *request, struct examination *seen, struct error *error)
{
	char program[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", program, sizeof(program) - 1);
	struct prove_request prove_request = {
		.environment = request->environment,
		.rung_max = MIN_OF(request->rung_max, seen->best),
		.program = program,
		.area = request->area,
		.area_len = request->area_len,
	};
	int rc;

	if (len < 0)
		return error_set(error, STAGE_ENGINE, errno, "cannot find this program: %s", strerror(errno));
	program[len] = '\0';
	seen->has_proof = true;
	rc = engine_prove(&prove_request, &seen->proofs, &seen->proved, error);
	/* A real jar knows better than any probe. */
	if (rc == 0 && seen->proved < prove_request.rung_max)
		seen->best = seen->proved;
	return rc;
}

int engine_doctor(const struct engine_doctor_request *request, struct text *out, struct error *error)
{
	struct examination seen = {0};
	int status = host_examine(&seen.capabilities);

	if (status < 0)
		error_set(error, STAGE_ENGINE, -status, "out of memory");
	seen.best = host_best_rung(&seen.capabilities);
	if (status == 0 && request->has_prove)
		status = prove(request, &seen, error);
	if (status == 0) {
		if (request->is_json)
			write_json(out, &seen);
		else
			write_text(out, &seen);
		status = seen.best >= RUNG_LANDLOCK ? DOCTOR_GOOD : DOCTOR_BAD;
		for (size_t i = 0; i < seen.proofs.count; i++)
			if (is_hole(&seen.proofs.items[i]) ||
			    (seen.proofs.items[i].is_covered && seen.proofs.items[i].verdict == VERDICT_UNKNOWN))
				status = DOCTOR_BAD;
	}
	free(seen.capabilities.items);
	free(seen.proofs.items);
	return status;
}
