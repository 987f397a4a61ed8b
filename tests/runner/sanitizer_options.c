/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/runner/sanitizer_options.c - how the belljar built under the sanitizers reports, whatever its environment is
 *
 * Tests start the engine with an environment of their own, so options cannot come from there. Reports go to files in
 * the folder sanitizer-logs beside the program's own, where the runner looks, and not into output that tests compare.
 * Leaks are left to the unit tests: finding them means tracing oneself, which a jar forbids.
 */
#include <sys/syscall.h>
#include <unistd.h>

#define OPTIONS "detect_leaks=0:exitcode=99:print_stacktrace=1:detect_stack_use_after_return=0"
#define LOG_FOLDER "/sanitizer-logs"

const char *__asan_default_options(void);
const char *__ubsan_default_options(void);

/* The sanitizers call this before they are ready: no instrumentation, and no function of libc that they replace. */
__attribute__((no_sanitize("address", "undefined"))) static const char *options(void)
{
	static char text[4096 + sizeof(OPTIONS) + 64];
	static char path[4096];
	long len = syscall(SYS_readlink, "/proc/self/exe", path, sizeof(path) - sizeof(LOG_FOLDER) - sizeof("/report"));
	int slashes = 0;

	while (len > 0 && slashes < 2)
		slashes += path[--len] == '/';
	if (len <= 0)
		return OPTIONS;
	__builtin_memcpy(path + len, LOG_FOLDER, sizeof(LOG_FOLDER));
	if (syscall(SYS_access, path, W_OK) != 0)
		return OPTIONS;
	__builtin_memcpy(path + len + sizeof(LOG_FOLDER) - 1, "/report", sizeof("/report"));
	len = 0;
	for (const char *from = OPTIONS ":log_path="; *from; from++)
		text[len++] = *from;
	for (const char *from = path; *from; from++)
		text[len++] = *from;
	return text;
}

const char *__asan_default_options(void)
{
	return options();
}

const char *__ubsan_default_options(void)
{
	return options();
}
