/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate/gate_address.h - which addresses are the host's own
 */
#ifndef BELLJAR_GATE_GATE_ADDRESS_H
#define BELLJAR_GATE_GATE_ADDRESS_H

#include "policy/net_address.h"

/* To reach it the host would use the same address as the source: it is its own. Nothing is sent. */
bool gate_address_is_own(bool is_ipv6, const uint8_t *address);

#endif
