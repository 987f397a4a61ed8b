/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate/gate_address.h - which addresses are the host's own
 */
#ifndef BELLJAR_GATE_GATE_ADDRESS_H
#define BELLJAR_GATE_GATE_ADDRESS_H

#include "policy/net_address.h"

/* Report whether @address is the host's own: the host would also use it as the source to reach it. Sends nothing. */
bool gate_address_is_own(bool is_ipv6, const uint8_t *address);

#endif
