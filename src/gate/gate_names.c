/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate/gate_names.c - addresses that stand for names
 *
 * A name keeps its address as long as the gate lives: a program may hold it for hours.
 */
#include <string.h>

#include "gate/gate_process.h"
#include "plan/plan_gate.h"

static uint32_t find(const struct gate_process *gate, const char *name)
{
	for (size_t i = 0; i < gate->name_count; i++)
		if (!strcmp(gate->names[i], name))
			return GATE_FIRST_NAME + (uint32_t)i;
	return 0;
}

uint32_t gate_names_address(struct gate_process *gate, const char *name)
{
	uint32_t address = find(gate, name);

	if (address)
		return address;
	if (gate->name_count == GATE_NAMES_MAX)
		return 0;
	gate->names[gate->name_count] = strdup(name);
	return gate->names[gate->name_count] ? GATE_FIRST_NAME + (uint32_t)gate->name_count++ : 0;
}

uint32_t gate_names_address_to_ask(struct gate_process *gate, const char *name)
{
	uint32_t address = find(gate, name);

	if (address || gate->asked_name_count == GATE_NAMES_MAX / 2)
		return address;
	address = gate_names_address(gate, name);
	gate->asked_name_count += address != 0;
	return address;
}

const char *gate_names_find(const struct gate_process *gate, uint32_t address)
{
	if (address < GATE_FIRST_NAME || address - GATE_FIRST_NAME >= gate->name_count)
		return NULL;
	return gate->names[address - GATE_FIRST_NAME];
}
