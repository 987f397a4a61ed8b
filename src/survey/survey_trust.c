/* SPDX-License-Identifier: Apache-2.0 */
/*
 * survey/survey_trust.c - where the host's lists of certificate authorities are
 */
#include "survey/survey_trust.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "survey/survey_names.h"

#define PROGRAM_NAME "belljar-gate"

static bool is_regular(const char *path, int access_mode)
{
	struct stat status;

	return stat(path, &status) == 0 && S_ISREG(status.st_mode) && access(path, access_mode) == 0;
}

static int take_if(char **out, const char *path, int access_mode)
{
	if (*out || !path || path[0] != '/' || !is_regular(path, access_mode))
		return 0;
	*out = strdup(path);
	return *out ? 0 : -ENOMEM;
}

static int find_program(struct host *host)
{
	static const char *const places[] = {"/usr/libexec/belljar/" PROGRAM_NAME, "/usr/local/bin/" PROGRAM_NAME,
					     "/usr/bin/" PROGRAM_NAME};
	char beside[PATH_MAX + sizeof(PROGRAM_NAME)];
	ssize_t len = readlink("/proc/self/exe", beside, PATH_MAX);
	char *slash;
	int rc = take_if(&host->trust.program, survey_variable(host->environment, "BELLJAR_GATE"), X_OK);

	beside[len > 0 ? len : 0] = '\0';
	slash = strrchr(beside, '/');
	if (slash && rc == 0) {
		memcpy(slash + 1, PROGRAM_NAME, sizeof(PROGRAM_NAME));
		rc = take_if(&host->trust.program, beside, X_OK);
	}
	for (size_t i = 0; i < ARRAY_LEN(places) && rc == 0; i++)
		rc = take_if(&host->trust.program, places[i], X_OK);
	return rc;
}

/* Links are followed: what programs open in the end is what has to be replaced. */
static int add_list(struct host_trust *trust, const char *path)
{
	AUTO_FREE char *real = realpath(path, NULL);

	if (!real || !is_regular(real, R_OK))
		return 0;
	for (size_t i = 0; i < trust->paths.count; i++)
		if (!strcmp(trust->paths.items[i], real))
			return 0;
	return string_list_add(&trust->paths, real);
}

int survey_trust(struct host *host)
{
	struct host_trust *trust = &host->trust;
	int rc = find_program(host);

	for (const char *const *name = survey_trust_names; *name && rc == 0; name++)
		rc = add_list(trust, *name);
	if (rc == 0)
		rc = take_if(&trust->source, survey_variable(host->environment, "SSL_CERT_FILE"), R_OK);
	if (rc == 0 && trust->paths.count)
		rc = take_if(&trust->source, trust->paths.items[0], R_OK);
	for (const char *const *name = survey_java_trust_names; *name && rc == 0 && !trust->java_path; name++) {
		trust->java_path = realpath(*name, NULL);
		if (trust->java_path && !is_regular(trust->java_path, R_OK)) {
			free(trust->java_path);
			trust->java_path = NULL;
		}
	}
	return rc;
}

void survey_trust_done(struct host_trust *trust)
{
	free(trust->program);
	free(trust->source);
	free(trust->java_path);
	string_list_done(&trust->paths);
	text_done(&trust->bundle);
	text_done(&trust->java);
	*trust = (struct host_trust){0};
}
