/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host/host_names.c - the names of files that the default policy knows
 */
#include "host/host_names.h"

#include <stddef.h>

const char *const host_system_names[] = {
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store", "/gnu/store", NULL,
};

/* In byte order: the survey looks names up in it. Who and where, loader, certificates, shells, languages, tools. */
const char *const host_etc_names[] = {
	"ImageMagick-6",
	"ImageMagick-7",
	"OpenCL",
	"R",
	"alternatives",
	"bash.bashrc",
	"bash_completion.d",
	"bashrc",
	"chromium",
	"chromium.d",
	"crypto-policies",
	"debian_version",
	"default/locale",
	"dotnet",
	"fonts",
	"gai.conf",
	"gdb",
	"gitattributes",
	"gitconfig",
	"glvnd",
	"group",
	"host.conf",
	"hosts",
	"inputrc",
	"java",
	"java-11-openjdk",
	"java-17-openjdk",
	"java-21-openjdk",
	"java-25-openjdk",
	"java-8-openjdk",
	"ld-musl-aarch64.path",
	"ld-musl-x86_64.path",
	"ld.so.cache",
	"ld.so.conf",
	"ld.so.conf.d",
	"locale.alias",
	"locale.conf",
	"localtime",
	"lsb-release",
	"lua",
	"manpath.config",
	"maven",
	"mime.types",
	"mtab",
	"nsswitch.conf",
	"os-release",
	"passwd",
	"perl",
	"php",
	"pki/ca-trust",
	"pki/java",
	"pki/tls/certs",
	"pki/tls/openssl.cnf",
	"postgresql-common",
	"profile",
	"profile.d",
	"protocols",
	"python3",
	"python3.10",
	"python3.11",
	"python3.12",
	"python3.13",
	"python3.14",
	"python3.9",
	"resolv.conf",
	"ruby",
	"services",
	"sgml",
	"shells",
	"ssl/cert.pem",
	"ssl/certs",
	"ssl/openssl.cnf",
	"static",
	"terminfo",
	"texmf",
	"timezone",
	"tmux.conf",
	"vulkan",
	"xdg",
	"xml",
	"zsh",
	"zshenv",
	"zshrc",
	NULL,
};

const size_t host_etc_name_count = sizeof(host_etc_names) / sizeof(host_etc_names[0]) - 1;

const char *const host_device_names[] = {"null", "zero", "full", "random", "urandom", "tty", NULL};

const char *const host_protected_names[] = {
	".git/hooks",
	".git/config",
	".git/config.worktree",
	".git/commondir",
	".git/modules",
	".git/worktrees",
	".git/info/attributes",
	".gitmodules",
	".gitconfig",
	".bashrc",
	".bash_profile",
	".profile",
	".zshrc",
	".zprofile",
	".envrc",
	".ripgreprc",
	".mcp.json",
	".vscode",
	".idea",
	".cursor",
	".claude/commands",
	".claude/agents",
	".claude/settings.json",
	".claude/settings.local.json",
	".codex",
	".husky",
	".github/workflows",
	NULL,
};

const char *const host_system_trees[] = {
	"/usr",  "/bin", "/sbin", "/lib", "/lib32",     "/lib64",     "/libx32", "/etc",
	"/boot", "/dev", "/proc", "/sys", "/nix/store", "/gnu/store", NULL,
};

const char *const host_system_exceptions[] = {"/usr/src", "/usr/local/src", "/dev/shm", NULL};

const char *const host_system_tops[] = {
	"/",        "/usr/src", "/usr/local/src", "/dev/shm",   "/tmp", "/var",      "/var/tmp",
	"/var/lib", "/var/log", "/var/cache",     "/var/spool", "/run", "/run/user", "/opt",
	"/root",    "/home",    "/nix",           "/gnu",       NULL,
};

const struct host_toolchain host_toolchains[] = {
	{".cargo/bin", {".cargo/bin", ".cargo/env", ".rustup"}},
	{".local/bin", {".local/bin", ".local/lib", ".local/pipx", ".local/share/pipx", ".local/share/uv"}, true},
	{"go/bin", {"go/bin"}},
	{"bin", {"bin"}},
	{".pyenv/shims", {".pyenv"}},
	{".rbenv/shims", {".rbenv"}},
	{".asdf/shims", {".asdf"}},
	{".local/share/mise/shims", {".local/share/mise"}},
	{".local/share/pnpm", {".local/share/pnpm"}},
	{".yarn/bin", {".yarn/bin", ".config/yarn/global"}},
	{".npm-global/bin", {".npm-global"}},
	{".nix-profile/bin", {".nix-profile", ".local/state/nix"}},
	{NULL, {NULL}},
};
