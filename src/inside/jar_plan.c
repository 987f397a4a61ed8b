/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inside/jar_plan.c - the rows of JAR_STEPS as data
 */
#include "inside/jar_plan.h"

const struct step_row inside_step_rows[] = {
#define STEP_ROW(kind, function, ...) [STEP_##kind] = {STEP_ROW_OF(__VA_ARGS__)},
#define STEP_ROW_OF(name, stage, traits, words, fields) name, STAGE_##stage, traits, words, fields
	JAR_STEPS(STEP_ROW)};
