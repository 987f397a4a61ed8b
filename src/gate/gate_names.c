/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate/gate_names.c - addresses that stand for names
 *
 * A name keeps its address as long as the gate lives: a program may hold it for hours.
 */
#include <string.h>

#include "gate/gate_process.h"
#include "plan/plan_gate.h"

uint32_t names_address(struct gate_process *gate, const char *name)
{
	for (size_t i = 0; i < gate->name_count; i++)
		if (!strcmp(gate->names[i], name))
			return GATE_FIRST_NAME + (uint32_t)i;
	if (gate->name_count == GATE_NAMES_MAX)
		return 0;
	gate->names[gate->name_count] = strdup(name);
	return gate->names[gate->name_count] ? GATE_FIRST_NAME + (uint32_t)gate->name_count++ : 0;
}

const char *names_find(const struct gate_process *gate, uint32_t address)
{
	if (address < GATE_FIRST_NAME || address - GATE_FIRST_NAME >= gate->name_count)
		return NULL;
	return gate->names[address - GATE_FIRST_NAME];
}
