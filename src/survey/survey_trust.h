/* SPDX-License-Identifier: Apache-2.0 */
/*
 * survey/survey_trust.h - where the host's lists of certificate authorities are, and the program that adds one for a jar
 */
#ifndef BELLJAR_SURVEY_SURVEY_TRUST_H
#define BELLJAR_SURVEY_SURVEY_TRUST_H

#include "survey/survey.h"

/*
 * Find belljar-gate, and the lists. What is not there stays NULL. The program is looked for beside this one, then where the
 * variable BELLJAR_GATE of the caller says, then where packages put it; never by PATH, in which a project's own directory may be.
 * 0 or -ENOMEM.
 */
int survey_trust(struct host *host);
void survey_trust_done(struct host_trust *trust);

#endif
