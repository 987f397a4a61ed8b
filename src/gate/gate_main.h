/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate/gate_main.h - the main function of a gate's process
 */
#ifndef BELLJAR_GATE_GATE_MAIN_H
#define BELLJAR_GATE_GATE_MAIN_H

#include "base/base.h"

struct gate_inspector;
/* Run as a gate's process; @inspector may be NULL. Never returns. */
int gate_main(struct gate_inspector *inspector);

#endif
