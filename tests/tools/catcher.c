/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/tools/catcher.c - say which signals arrive
 *
 * catcher N [TAG]   prints "ready TAG", then "got SIGTERM TAG" for INT, TERM, HUP, QUIT, WINCH, CONT, USR1 as they come.
 * N is the exit status to leave with after the first INT, TERM, HUP or QUIT; "stay" means: never leave.
 * Ends by itself after 1000 seconds.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const struct {
	int number;
	const char *name;
	int is_ending;
} signals[] = {
	{SIGINT, "SIGINT", 1},   {SIGTERM, "SIGTERM", 1},   {SIGHUP, "SIGHUP", 1},   {SIGQUIT, "SIGQUIT", 1},
	{SIGCONT, "SIGCONT", 0}, {SIGWINCH, "SIGWINCH", 0}, {SIGUSR1, "SIGUSR1", 0},
};
enum { SIGNAL_COUNT = sizeof(signals) / sizeof(signals[0]) };

static void say(const char *word, const char *tag)
{
	char line[256];
	int len = snprintf(line, sizeof(line), "%s %s\n", word, tag);

	if (write(1, line, (size_t)len) != len)
		_exit(3);
}

int main(int argc, char **argv)
{
	const char *tag = argc > 2 ? argv[2] : "";
	struct timespec patience = {.tv_sec = 1000};
	sigset_t set;

	if (argc < 2)
		return 2;
	/* Blocked and taken one by one: the order is kept and nothing is lost between two waits. */
	sigemptyset(&set);
	for (int i = 0; i < SIGNAL_COUNT; i++)
		sigaddset(&set, signals[i].number);
	sigprocmask(SIG_BLOCK, &set, NULL);
	say("ready", tag);
	for (;;) {
		int number = sigtimedwait(&set, NULL, &patience);
		char word[32];

		if (number < 0)
			return 4;
		for (int i = 0; i < SIGNAL_COUNT; i++) {
			if (signals[i].number != number)
				continue;
			snprintf(word, sizeof(word), "got %s", signals[i].name);
			say(word, tag);
			if (signals[i].is_ending && strcmp(argv[1], "stay") != 0)
				return atoi(argv[1]);
		}
	}
}
