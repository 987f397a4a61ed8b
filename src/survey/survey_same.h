/* SPDX-License-Identifier: Apache-2.0 */
/*
 * survey/survey_same.h - would the same jar be made now?
 *
 * A jar that was made ahead shows the host as it was then. Before it is used the host is surveyed anew, and all that the
 * planner decides on is compared: paths by device and inode, which nothing else can have as long as the jar holds the object.
 */
#ifndef BELLJAR_SURVEY_SURVEY_SAME_H
#define BELLJAR_SURVEY_SURVEY_SAME_H

#include "survey/survey.h"

/*
 * Everything but what is new for each jar, its id and its directory; the environment; and where cgroups can be made, since a
 * jar that stands has its own.
 */
bool survey_is_same(const struct host *left, const struct host *right);

#endif
