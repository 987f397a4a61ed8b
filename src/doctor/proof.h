/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor/proof.h - one attempt of `belljar doctor --prove`, and its result
 *
 * belljar-prove (prove/) makes the attempts; the report is the doctor's.
 */
#ifndef BELLJAR_DOCTOR_PROOF_H
#define BELLJAR_DOCTOR_PROOF_H

#include "base/base.h"
#include "base/list.h"

enum verdict {
	VERDICT_UNKNOWN, /* no answer came back */
	VERDICT_STOPPED,
	VERDICT_THROUGH,
	VERDICT_SKIPPED, /* cannot be tried on this host */
};

/* Strings are static. */
struct proof {
	const char *name;
	const char *what; /* "read a file outside" */
	enum verdict verdict;
	const char *layer;    /* the layer that stopped it; NULL: none did */
	const char *expected; /* the layer that must stop it on this rung */
	bool is_covered;
	bool is_expected; /* stopped by that layer, or by an equivalent one */
	char how[200];
};

LIST_TYPE(struct proof, proof_list);

#endif
