/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor/place.h - where Belljar runs: a plain machine, or a place that withholds user namespaces
 *
 * For `belljar doctor`, which prints the one line that gives full jars there. No other decision depends on it.
 */
#ifndef BELLJAR_DOCTOR_PLACE_H
#define BELLJAR_DOCTOR_PLACE_H

#include "base/base.h"
#include "base/text.h"

enum host_place {
	HOST_PLACE_PLAIN,
	HOST_PLACE_DOCKER,
	HOST_PLACE_PODMAN,
	HOST_PLACE_KUBERNETES,
	HOST_PLACE_CONTAINER, /* some other container */
	HOST_PLACE_APPARMOR,  /* AppArmor removes the privileges of user namespaces, as on Ubuntu since 23.10 */
	HOST_PLACE_COUNT,
};

enum host_place doctor_find_place(char *const *environment);
/* "docker": for programs. */
const char *doctor_place_name(enum host_place place);
/* "This is a Docker container": a sentence without its full stop; NULL for a plain machine. */
const char *doctor_place_words(enum host_place place);
/* Append the commands that give full jars there, one per line. Nothing for a plain machine. */
void doctor_place_cure(enum host_place place, struct text *out);
/* Append an AppArmor profile that lets the program at @path have user namespaces, and restricts nothing else. */
void doctor_apparmor_profile(const char *path, struct text *out);

#endif
