/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy/policy_presets.h - the policies built into Belljar
 */
#ifndef BELLJAR_POLICY_POLICY_PRESETS_H
#define BELLJAR_POLICY_POLICY_PRESETS_H

#define POLICY_PRESET_AGENT "agent"

/* Return the preset's document, or NULL. `agent` sets every key with a default; the others build on it. */
const char *policy_preset_document(const char *name);

#endif
