/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor/place.c - recognise containers and AppArmor's rule, and say how to start Belljar there
 *
 * A container is recognised by what its engine leaves in it (/.dockerenv, /run/.containerenv, a service variable); any
 * other one by a seccomp filter that was there before us. What each withholds:
 *
 *   Docker, Kubernetes   clone and unshare with namespaces, and mount (their seccomp profile); a new /proc (theirs is
 *                        covered in places); mounts (AppArmor, where the machine has it)
 *   Podman               a new /proc only
 *   Ubuntu               the capabilities of a new user namespace (AppArmor), unless a profile names the program
 */
#include "doctor/place.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/sys/calls.h"

/* The profile itself comes from `belljar doctor --profile seccomp`. */
#define SECCOMP_FILE "belljar-seccomp.json"

static const struct {
	const char *name;
	const char *words;
} places[] = {
	[HOST_PLACE_PLAIN] = {"plain", NULL},
	[HOST_PLACE_DOCKER] = {"docker", "This is a Docker container"},
	[HOST_PLACE_PODMAN] = {"podman", "This is a Podman container"},
	[HOST_PLACE_KUBERNETES] = {"kubernetes", "This is a Kubernetes pod"},
	[HOST_PLACE_CONTAINER] = {"container", "This is a container: a system call filter was here before Belljar"},
	[HOST_PLACE_APPARMOR] = {"apparmor", "AppArmor withholds user namespaces from programs without a profile"},
};
_Static_assert(ARRAY_LEN(places) == HOST_PLACE_COUNT, "every place has a name");

static bool exists(const char *path)
{
	struct stat status;

	return stat(path, &status) == 0;
}

static bool has_variable(char *const *environment, const char *name)
{
	size_t len = strlen(name);

	for (; environment && *environment; environment++)
		if (!strncmp(*environment, name, len) && (*environment)[len] == '=')
			return true;
	return false;
}

static bool file_begins(const char *path, const char *expected)
{
	char content[64];

	return sys_read_file(AT_FDCWD, path, content, sizeof(content)) > 0 &&
	       !strncmp(content, expected, strlen(expected));
}

static bool has_filter(void)
{
	char content[4096];

	return sys_read_file(AT_FDCWD, "/proc/self/status", content, sizeof(content)) > 0 &&
	       strstr(content, "\nSeccomp:\t2");
}

static bool has_apparmor(void)
{
	return file_begins("/sys/module/apparmor/parameters/enabled", "Y");
}

enum host_place doctor_find_place(char *const *environment)
{
	if (has_variable(environment, "KUBERNETES_SERVICE_HOST"))
		return HOST_PLACE_KUBERNETES;
	if (exists("/.dockerenv"))
		return HOST_PLACE_DOCKER;
	if (exists("/run/.containerenv"))
		return HOST_PLACE_PODMAN;
	if (has_filter())
		return HOST_PLACE_CONTAINER;
	if (file_begins("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1"))
		return HOST_PLACE_APPARMOR;
	return HOST_PLACE_PLAIN;
}

const char *doctor_place_name(enum host_place place)
{
	return places[place].name;
}

const char *doctor_place_words(enum host_place place)
{
	return places[place].words;
}

static void cure_docker(struct text *out)
{
	text_append_string(out,
			   "belljar doctor --profile seccomp > " SECCOMP_FILE "\n"
			   "docker run --security-opt seccomp=" SECCOMP_FILE " --security-opt systempaths=unconfined");
	if (has_apparmor())
		text_append_string(out, " --security-opt apparmor=unconfined");
	text_append_string(out, " ...\n");
}

void doctor_place_cure(enum host_place place, struct text *out)
{
	switch (place) {
	case HOST_PLACE_PLAIN:
		break;
	case HOST_PLACE_DOCKER:
	case HOST_PLACE_CONTAINER:
		cure_docker(out);
		break;
	case HOST_PLACE_PODMAN:
		text_append_string(out, "podman run --security-opt unmask=ALL ...\n");
		break;
	case HOST_PLACE_KUBERNETES:
		text_append_string(
			out, "in the pod: hostUsers: false; in its container's securityContext: procMount: Unmasked,\n"
			     "seccompProfile: {type: Localhost, localhostProfile: " SECCOMP_FILE "}\n"
			     "(belljar doctor --profile seccomp prints that file)\n");
		break;
	case HOST_PLACE_APPARMOR:
		text_append_string(out, "belljar doctor --profile apparmor | sudo tee /etc/apparmor.d/belljar\n"
					"sudo apparmor_parser -r /etc/apparmor.d/belljar\n");
		break;
	case HOST_PLACE_COUNT:
		break;
	}
}

void doctor_apparmor_profile(const char *path, struct text *out)
{
	text_append_format(
		out,
		"# Lets Belljar make user namespaces, where AppArmor withholds them from programs without a\n"
		"# profile; restricts nothing. Commands run behind Belljar's own walls.\n"
		"abi <abi/4.0>,\n"
		"include <tunables/global>\n"
		"\n"
		"profile belljar \"%s\" flags=(unconfined) {\n"
		"  userns,\n"
		"\n"
		"  include if exists <local/belljar>\n"
		"}\n",
		path);
}
