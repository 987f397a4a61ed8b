/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy/policy_edit.h - add a rule to a policy file, and leave everything else in it as it is
 */
#ifndef BELLJAR_POLICY_POLICY_EDIT_H
#define BELLJAR_POLICY_POLICY_EDIT_H

#include "policy/policy_build.h"

/*
 * The document with @rule, in its canonical form, at the end of allow_net; comments and layout stay. -EINVAL: there is no
 * place for it.
 */
int policy_edit_text(const char *document, size_t len, const char *rule, struct text *out);
/*
 * The same in a file: another one takes its place, whole or not at all. What the file would say then is read before, and must be
 * what it says now and @rule.
 */
int policy_edit_file(const char *path, const char *rule, const struct policy_context *context, struct error *error);

#endif
