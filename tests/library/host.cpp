/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/library/host.cpp - a host in C++98: the header compiles, the functions link, a run works
 */
#include <belljar.h>

#include <cstring>
#include <string>

static int keep(void *data, int, const void *bytes, size_t len)
{
	static_cast<std::string *>(data)->append(static_cast<const char *>(bytes), len);
	return 0;
}

int main()
{
	const char *const argv[] = {"echo", "from C++", 0};
	const char *const options[] = {"workdir=none", 0};
	struct belljar_command command;
	struct belljar_engine *engine = 0;
	struct belljar_result *result = 0;
	std::string seen;

	std::memset(&command, 0, sizeof(command));
	command.size = sizeof(command);
	command.argv = argv;
	command.options = options;
	command.on_output = keep;
	command.data = &seen;
	if (belljar_engine_open(0, &engine, 0) < 0 || belljar_run(engine, &command, &result, 0) < 0)
		return 1;
	if (belljar_result_outcome(result) != BELLJAR_EXITED || belljar_result_stdout(result, 0) != seen)
		return 2;
	belljar_result_free(result);
	belljar_engine_close(engine);
	return seen == "from C++\n" ? 0 : 3;
}
