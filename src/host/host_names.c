/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host/host_names.c - the names of files that the default policy knows
 */
#include "host/host_names.h"

#include <stddef.h>

const char *const host_system_names[] = {
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store", "/gnu/store", NULL,
};

const char *const host_etc_names[] = {
	/* who and where */
	"passwd", "group", "nsswitch.conf", "hosts", "host.conf", "resolv.conf", "services", "protocols", "networks", "rpc",
	"gai.conf", "localtime", "timezone", "adjtime", "locale.alias", "locale.conf", "default/locale", "os-release",
	"lsb-release", "debian_version", "redhat-release", "alpine-release", "arch-release", "shells", "login.defs",
	"mime.types", "mailcap", "magic", "magic.mime",
	/* loader, certificates, tools by other names */
	"ld.so.cache", "ld.so.conf", "ld.so.conf.d", "ld-musl-x86_64.path", "ld-musl-aarch64.path", "ssl/certs",
	"ssl/openssl.cnf", "ssl/cert.pem", "ca-certificates", "ca-certificates.conf", "pki/tls/certs", "pki/tls/openssl.cnf",
	"pki/ca-trust", "pki/java", "crypto-policies", "alternatives",
	/* shells, terminals, editors */
	"profile", "profile.d", "bash.bashrc", "bashrc", "bash_completion.d", "zsh", "zshenv", "zshrc", "inputrc", "terminfo",
	"tmux.conf", "screenrc", "vim", "nanorc", "emacs", "DIR_COLORS", "manpath.config", "man_db.conf",
	/* languages and build tools */
	"gitconfig", "gitattributes", "java", "java-8-openjdk", "java-11-openjdk", "java-17-openjdk", "java-21-openjdk",
	"java-25-openjdk", "maven", "gradle", "python3", "python3.9", "python3.10", "python3.11", "python3.12", "python3.13",
	"python3.14", "perl", "php", "ruby", "R", "lua", "octave.conf", "texmf", "xml", "sgml", "fonts", "ImageMagick-6",
	"ImageMagick-7", "ghostscript", "papersize", "gdb", "glvnd", "vulkan", "OpenCL", "drirc", "xdg", "chromium",
	"chromium.d", "postgresql-common", "dpkg", "wgetrc", "mke2fs.conf", "odbcinst.ini", NULL,
};

const char *const host_device_names[] = {"null", "zero", "full", "random", "urandom", "tty", NULL};

const char *const host_protected_names[] = {
	".git/hooks", ".git/config", ".git/config.worktree", ".git/commondir", ".git/modules", ".git/worktrees",
	".git/info/attributes", ".gitmodules", ".gitconfig", ".bashrc", ".bash_profile", ".profile", ".zshrc", ".zprofile",
	".envrc", ".ripgreprc", ".mcp.json", ".vscode", ".idea", ".cursor", ".claude/commands", ".claude/agents",
	".claude/settings.json", ".claude/settings.local.json", ".codex", ".husky", ".github/workflows", NULL,
};

const char *const host_system_trees[] = {
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/boot", "/dev", "/proc", "/sys", "/nix/store",
	"/gnu/store", NULL,
};

const char *const host_system_exceptions[] = {"/usr/src", "/usr/local/src", "/dev/shm", NULL};

const char *const host_system_tops[] = {
	"/", "/usr/src", "/usr/local/src", "/dev/shm", "/tmp", "/var", "/var/tmp", "/var/lib", "/var/log", "/var/cache",
	"/var/spool", "/run", "/run/user", "/opt", "/root", "/home", "/nix", "/gnu", NULL,
};

const struct host_toolchain host_toolchains[] = {
	{".cargo/bin", {".cargo/bin", ".cargo/env", ".rustup"}},
	{".local/bin", {".local/bin", ".local/lib", ".local/pipx", ".local/share/pipx", ".local/share/uv"}},
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
