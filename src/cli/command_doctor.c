/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"

int command_doctor(const struct invocation *invocation, struct run_options *options, const struct messenger *messenger)
{
	(void)invocation;
	(void)options;
	message_note(messenger, "doctor: to be written");
	return EXIT_BELLJAR;
}
