/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy/policy_presets.c - the policies built into Belljar
 *
 * They are documents like those of users, read by the same parser: a preset cannot say anything that a file could not.
 * Two defaults are not data: the work directory (the current one, if it is fit) and the private home.
 */
#include "policy/policy_presets.h"

#include <string.h>

#include "policy/policy_build.h"

static const char agent[] =
	"{\n"
	"  \"version\": 1,\n"
	"  \"workdir_mode\": \"rw\",\n"
	"  \"workspace\": \"direct\", \"workspace_name\": null, \"cow_dirs\": [],\n"
	"  \"cd\": null,\n"
	"  \"ro\": [], \"rw\": [], \"hide\": [], \"hide_secrets\": false,\n"
	"  \"tmpfs\": [\"/tmp\", \"/var/tmp\", \"/dev/shm\", \"/run\"],\n"
	"  \"system\": true, \"toolchains\": true, \"protect\": true,\n"
	"  \"exec\": \"any\", \"speculation\": \"on\", \"machine_facts\": \"few\",\n"
	"  \"net\": \"none\", \"allow_net\": [], \"secrets\": [], \"ask\": \"none\", \"ask_timeout\": \"60s\", \"publish\": [],\n"
	"  \"hostname\": null,\n"
	"  \"pass_env\": [\"PATH\", \"HOME\", \"USER\", \"LOGNAME\", \"LANG\", \"LANGUAGE\", \"LC_*\", \"TERM\",\n"
	"    \"COLORTERM\", \"NO_COLOR\", \"SHELL\", \"TMPDIR\", \"TZ\", \"GIT_AUTHOR_*\", \"GIT_COMMITTER_*\"],\n"
	"  \"env\": {},\n"
	"  \"timeout\": null, \"grace\": \"3s\", \"cpu_time\": null,\n"
	"  \"memory\": null, \"pids\": 1024, \"disk\": null,\n"
	"  \"file_size\": null, \"fds\": 1024, \"core\": 0,\n"
	"  \"net_connections\": null, \"net_bytes\": null,\n"
	"  \"output\": null, \"overflow\": \"truncate\", \"keep\": \"head\", \"ledger\": \"basic\",\n"
	"  \"redact\": [], \"redact_secrets\": false, \"redact_env\": false,\n"
	"  \"rung\": \"landlock\",\n"
	"  \"optional\": []\n"
	"}\n";

static const char readonly[] = "{\"workdir_mode\": \"ro\"}\n";

static const char strict[] =
	"{\n"
	"  \"workdir\": null,\n"
	"  \"toolchains\": false,\n"
	"  \"rung\": \"namespace\",\n"
	"  \"timeout\": \"10s\", \"memory\": \"256M\", \"pids\": 64, \"disk\": \"64M\", \"output\": \"100K\"\n"
	"}\n";

const char *const policy_preset_names[] = {POLICY_PRESET_AGENT, "readonly", "strict", NULL};
static const char *const documents[] = {agent, readonly, strict};
_Static_assert(ARRAY_LEN(documents) + 1 == ARRAY_LEN(policy_preset_names), "every preset has a document");

const char *policy_preset_document(const char *name)
{
	for (size_t i = 0; policy_preset_names[i]; i++) {
		if (strcmp(policy_preset_names[i], name) == 0)
			return documents[i];
	}
	return NULL;
}
