/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor/doctor.h - the door for `belljar doctor`: what this host can enforce, and the proof that it does
 */
#ifndef BELLJAR_DOCTOR_DOCTOR_H
#define BELLJAR_DOCTOR_DOCTOR_H

#include "base/error.h"
#include "base/text.h"
#include "doctor/proof.h"
#include "policy/policy.h"

struct engine_doctor_request;

/* Make every attempt in real jars, on the rung @rung_max at most. 0, or a negative errno with @error. */
typedef int doctor_prove_function(const struct engine_doctor_request *request, enum rung rung_max,
				  struct proof_list *proofs, enum rung *rung_out, struct error *error);

struct engine_doctor_request {
	bool is_json;
	bool has_color;
	doctor_prove_function *prove; /* NULL: only examine. Only belljar-prove has one */
	enum rung rung_max;           /* prove this rung: treat stronger ones as absent */
	char *const *environment;
	char *argv_memory; /* see engine_request */
	size_t argv_memory_len;
};

/* The result of an examination, as exit status. */
enum doctor_status {
	DOCTOR_GOOD = 0, /* the default policy can be enforced; with a proof: nothing got through */
	DOCTOR_BAD = 1,
};

/* Examine, prove if asked to, and print. Returns enum doctor_status or a negative errno. */
int doctor_engine(const struct engine_doctor_request *request, struct text *out, struct error *error);

/* Find the strongest rung of this host, by trying it in child processes. */
enum rung doctor_best_rung(void);

/* Print a profile that lets Belljar run: @name is "seccomp" (for containers) or "apparmor" (for this program). */
int doctor_profile(const char *name, struct text *out, struct error *error);

#endif
