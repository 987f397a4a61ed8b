/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor/doctor_report.h - what `belljar doctor` found, and its report for people
 */
#ifndef BELLJAR_DOCTOR_DOCTOR_REPORT_H
#define BELLJAR_DOCTOR_DOCTOR_REPORT_H

#include "policy/policy.h"
#include "doctor/proof.h"
#include "doctor/probe.h"
#include "doctor/place.h"

struct examination {
	struct capability_list capabilities;
	enum rung best;
	enum host_place place;
	struct proof_list proofs;
	enum rung proved; /* the rung the proof ran on */
	bool has_proof;
};

/* Protections that a rung lacks, NULL-terminated, by enum rung. */
extern const char *const *const doctor_rung_lacks[];

static inline bool doctor_proof_is_hole(const struct proof *proof)
{
	return proof->is_covered && proof->verdict == VERDICT_THROUGH;
}

/* Print the verdict in one line, then advice, then the findings, then the proof. */
void doctor_print(const struct examination *seen, bool has_color, struct text *out);

#endif
