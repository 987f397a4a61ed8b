/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run/denials.h - names of what was refused are redacted like what the command prints: it chose them
 */
#ifndef BELLJAR_RUN_DENIALS_H
#define BELLJAR_RUN_DENIALS_H

#include "limits/denial.h"

struct redactor;

/* @redactor may be NULL. */
void denials_redact(const struct redactor *redactor, struct denial *denials, size_t count);

#endif
