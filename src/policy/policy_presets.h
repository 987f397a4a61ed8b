/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy/policy_presets.h - policies that have a name
 */
#ifndef BELLJAR_POLICY_POLICY_PRESETS_H
#define BELLJAR_POLICY_POLICY_PRESETS_H

#define POLICY_PRESET_AGENT "agent"

/* The preset's document, or NULL. That of `agent` says every key with a default; the others are laid over it. */
const char *policy_preset_document(const char *name);

#endif
