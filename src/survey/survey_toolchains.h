/* SPDX-License-Identifier: Apache-2.0 */
/*
 * survey/survey_toolchains.h - tools below the caller's home directory that PATH leads to, with what they need
 */
#ifndef BELLJAR_SURVEY_SURVEY_TOOLCHAINS_H
#define BELLJAR_SURVEY_SURVEY_TOOLCHAINS_H

#include "survey/survey.h"

/* Into host->toolchains. -ENOMEM only: what cannot be found is left out. Needs the workdir and host->mounts. */
int survey_find_toolchains(struct host *host, const struct policy *policy);

/* For survey_python.c. Is it in host->toolchains already, by itself or with what is around it? */
bool survey_toolchain_is_shown(const struct host *host, const char *path);
/* The links from @first on that lie in @within, as they are; NULL: anywhere. */
int survey_toolchain_add_links(struct host *host, const struct string_list *links, size_t first, const char *within);
/* Names below home, a list that ends with NULL. */
int survey_toolchain_add_needs(struct host *host, const char *const *needs);
/* Below home: what many programs keep their data in (~/.local/share), and no tool's own. */
bool survey_is_collection(const struct host *host, const char *path);

#endif
