/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor/doctor.c - examine, prove, and report to people or to programs
 *
 * The verdict comes first, because most people want one line: can full jars run here, and if not, what to do. It is taken from
 * probes that try each thing in a throw-away child, never from version numbers; in belljar-prove also from real jars.
 */
#include "doctor/doctor.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/json_write.h"
#include "doctor/doctor_report.h"
#include "plan/plan.h"
#include "plan/seccomp/seccomp_container.h"

/* Protections that a jar on each rung lacks. */
static const char *const namespace_lacks[] = {NULL};
static const char *const landlock_lacks[] = {
	"a private /tmp, /run and /dev/shm (TMPDIR and HOME point into a directory of the run)",
	"--hide, --hostname, --tmpfs, and DEST in --ro and --rw (Belljar refuses them)",
	"read-only protection for files that other programs run later (.git/hooks, .envrc ...)",
	"a private loopback (programs cannot make internet sockets at all)",
	"Unix sockets that programs inside connect to by name, before Landlock ABI 9",
	"a cover over the names of processes, and over names and attributes of files outside",
	NULL,
};
static const char *const process_lacks[] = {
	"every wall: the command can read, change and reach what you can. Belljar still gives it a clean environment, closed "
	"descriptors, no new privileges and limits, and ends all of it",
	NULL,
};
const char *const *const doctor_rung_lacks[] = {
	[RUNG_PROCESS] = process_lacks,
	[RUNG_LANDLOCK] = landlock_lacks,
	[RUNG_NAMESPACE] = namespace_lacks,
};

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
		json_write_string(writer, "name", plan_rung_name((enum rung)rung));
		json_write_bool(writer, "found", rung <= (int)best);
		json_open_array(writer, "lacks");
		for (const char *const *lack = doctor_rung_lacks[rung]; *lack; lack++)
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
	json_write_string(writer, "name", proof->name);
	json_write_string(writer, "what", proof->what);
	json_write_string(writer, "layer", proof->verdict == VERDICT_STOPPED ? proof->layer : NULL);
	if (is_known)
		json_write_bool(writer, "stopped", proof->verdict == VERDICT_STOPPED);
	else
		json_write_null(writer, "stopped");
	json_write_string(writer, "how", proof->how);
	json_write_bool(writer, "covered", proof->is_covered);
	json_write_bool(writer, "expected", proof->is_expected);
	json_close_object(writer);
}

/* Write the place, and what gives full jars there: null if nothing is missing, or no remedy is known. */
static void write_place(struct json_writer *writer, const struct examination *seen)
{
	AUTO_TEXT cure = {0};

	json_open_object(writer, "place");
	json_write_string(writer, "name", doctor_place_name(seen->place));
	if (seen->best < RUNG_NAMESPACE)
		doctor_place_cure(seen->place, &cure);
	while (cure.len && cure.data[cure.len - 1] == '\n')
		cure.data[--cure.len] = '\0';
	json_write_string(writer, "cure", cure.len ? text_string(&cure) : NULL);
	json_close_object(writer);
}

static void write_json(struct text *out, const struct examination *seen)
{
	struct json_writer writer = {.text = out, .indent = 2};

	json_open_object(&writer, NULL);
	json_write_integer(&writer, "version", 1);
	json_write_string(&writer, "belljar", BELLJAR_VERSION);
	json_write_string(&writer, "best_rung", plan_rung_name(seen->best));
	write_place(&writer, seen);
	json_open_array(&writer, "capabilities");
	for (size_t i = 0; i < seen->capabilities.count; i++)
		write_capability(&writer, &seen->capabilities.items[i]);
	json_close_array(&writer);
	write_rungs(&writer, seen->best);
	if (seen->has_proof) {
		json_write_string(&writer, "proved_rung", plan_rung_name(seen->proved));
		json_open_array(&writer, "attempts");
		for (size_t i = 0; i < seen->proofs.count; i++)
			write_proof(&writer, &seen->proofs.items[i]);
		json_close_array(&writer);
	}
	json_close_object(&writer);
	text_append_char(out, '\n');
}

/* --- both --------------------------------------------------------------------------------------------------- */

static int prove(const struct engine_doctor_request *request, struct examination *seen, struct error *error)
{
	enum rung rung_max = MIN_OF(request->rung_max, seen->best);
	int rc;

	seen->has_proof = true;
	rc = request->prove(request, rung_max, &seen->proofs, &seen->proved, error);
	/* A real jar knows better than any probe. */
	if (rc == 0 && seen->proved < rung_max)
		seen->best = seen->proved;
	return rc;
}

int doctor_engine(const struct engine_doctor_request *request, struct text *out, struct error *error)
{
	struct examination seen = {0};
	int status = doctor_examine_host(&seen.capabilities);

	if (status < 0)
		error_set(error, STAGE_ENGINE, -status, "out of memory");
	seen.best = doctor_host_best_rung(&seen.capabilities);
	seen.place = doctor_find_place(request->environment);
	if (status == 0 && request->prove)
		status = prove(request, &seen, error);
	if (status == 0) {
		if (request->is_json)
			write_json(out, &seen);
		else
			doctor_print(&seen, request->has_color, out);
		status = seen.best >= RUNG_LANDLOCK ? DOCTOR_GOOD : DOCTOR_BAD;
		for (size_t i = 0; i < seen.proofs.count; i++)
			if (doctor_proof_is_hole(&seen.proofs.items[i]) ||
			    (seen.proofs.items[i].is_covered && seen.proofs.items[i].verdict == VERDICT_UNKNOWN))
				status = DOCTOR_BAD;
	}
	free(seen.capabilities.items);
	free(seen.proofs.items);
	return status;
}

enum rung doctor_best_rung(void)
{
	struct capability_list capabilities = {0};
	enum rung best = doctor_examine_host(&capabilities) < 0 ? RUNG_PROCESS : doctor_host_best_rung(&capabilities);

	free(capabilities.items);
	return best;
}

int doctor_profile(const char *name, struct text *out, struct error *error)
{
	char program[PATH_MAX];
	ssize_t len;

	if (!strcmp(name, "seccomp")) {
		seccomp_write_container_profile(out);
		return 0;
	}
	len = readlink("/proc/self/exe", program, sizeof(program) - 1);
	if (len < 0)
		return error_set(error, STAGE_ENGINE, errno, "cannot find this program: %s", strerror(errno));
	program[len] = '\0';
	doctor_apparmor_profile(program, out);
	return 0;
}
