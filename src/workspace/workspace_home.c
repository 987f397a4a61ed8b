/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workspace/workspace_home.c - the directory of all stores, and every other directory that has parts of them
 *
 * No jar may see any of these: a command that reaches a layer changes what a user reviews and applies. Which directories
 * that are must not depend on the environment of one caller alone. So there are several homes, the one that the environment
 * names and those without it, and each home lists the places that its stores ever had elsewhere (`.places`).
 */
#include "workspace/workspace_inside.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/directory.h"
#include "workspace/workspace_place.h"

#define BELOW_STATE "/belljar/ws"
#define BELOW_HOME "/.local/state" BELOW_STATE
#define PLACES ".places"
#define PLACES_BYTES_MAX ((size_t)64 << 10)

static const char *absolute_variable(char *const *environment, const char *name)
{
	size_t len = strlen(name);

	for (; environment && *environment; environment++)
		if (!strncmp(*environment, name, len) && (*environment)[len] == '=')
			return (*environment)[len + 1] == '/' ? *environment + len + 1 : NULL;
	return NULL;
}

static int add_home(struct string_list *out, const char *base, const char *below)
{
	size_t len = base ? strlen(base) : 0;
	AUTO_TEXT path = {0};

	if (!len || base[0] != '/')
		return 0;
	while (len && base[len - 1] == '/')
		len--;
	text_append(&path, base, len);
	text_append_string(&path, below);
	if (text_failed(&path))
		return -ENOMEM;
	for (size_t i = 0; i < out->count; i++)
		if (!strcmp(out->items[i], path.data))
			return 0;
	return string_list_add(out, path.data);
}

int workspace_homes(char *const *environment, struct string_list *out)
{
	const struct passwd *account = getpwuid(geteuid());
	int rc = add_home(out, absolute_variable(environment, "XDG_STATE_HOME"), BELOW_STATE);

	if (rc == 0)
		rc = add_home(out, absolute_variable(environment, "HOME"), BELOW_HOME);
	return rc == 0 && account ? add_home(out, account->pw_dir, BELOW_HOME) : rc;
}

/* Every directory on the way that is missing; the state directory itself may well be a link of the user's. */
static int make_way(char *path)
{
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(path, 0700) < 0 && errno != EEXIST && access(path, F_OK) < 0) {
			*slash = '/';
			return -errno;
		}
		*slash = '/';
	}
	return mkdir(path, 0700) < 0 && errno != EEXIST ? -errno : 0;
}

/* The home @path, made if it is missing: a descriptor or a negative errno. */
static int open_home(const char *path)
{
	AUTO_FREE char *state = strndup(path, strlen(path) - strlen(BELOW_STATE));
	AUTO_CLOSE int state_fd = -1, own_fd = -1;
	int rc = 0;

	if (!state)
		return -ENOMEM;
	state_fd = open(state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (state_fd < 0 && errno == ENOENT) {
		rc = make_way(state);
		state_fd = rc < 0 ? rc : open(state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	}
	if (state_fd < 0)
		return rc < 0 ? rc : -errno;
	own_fd = workspace_make_private(state_fd, "belljar");
	return own_fd < 0 ? take_fd(&own_fd) : workspace_make_private(own_fd, "ws");
}

int workspace_home_make(const char *path)
{
	AUTO_CLOSE int fd = open_home(path);

	return MIN_OF(fd, 0);
}

int workspace_home_open(char *const *environment, struct workspace_home *out, struct error *error)
{
	AUTO(string_list_done) struct string_list homes = {0};
	AUTO_CLOSE int fd = -1;

	if (!absolute_variable(environment, "XDG_STATE_HOME") && !absolute_variable(environment, "HOME"))
		return error_set(error, STAGE_FILES, ENOENT,
				 "neither XDG_STATE_HOME nor HOME says where workspaces are to be kept");
	if (workspace_homes(environment, &homes) < 0)
		return error_set(error, STAGE_ENGINE, ENOMEM, "out of memory");
	fd = open_home(homes.items[0]);
	if (fd < 0) {
		error_set(error, STAGE_FILES, -fd, "cannot keep workspaces in '%s': %s", homes.items[0], strerror(-fd));
		return error_hint(error, "it must be a directory of yours; XDG_STATE_HOME chooses another");
	}
	out->path = strdup(homes.items[0]);
	if (!out->path)
		return error_set(error, STAGE_ENGINE, ENOMEM, "out of memory");
	out->fd = take_fd(&fd);
	return 0;
}

void workspace_home_done(struct workspace_home *home)
{
	if (!home || !home->path)
		return;
	free(home->path);
	close_fd(&home->fd);
	*home = (struct workspace_home){.fd = -1};
}

int workspace_store_lock_home(const struct workspace_home *home, struct error *error)
{
	AUTO_CLOSE int fd = openat(home->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0 || flock(fd, LOCK_EX) < 0)
		return error_set(error, STAGE_FILES, errno, "cannot lock '%s': %s", home->path, strerror(errno));
	return take_fd(&fd);
}

/* --- other places ------------------------------------------------------------------------------------------------- */

/* Add the lines of the file @fd to @out. */
static int read_places(int fd, struct string_list *out)
{
	AUTO_FREE char *text = fd < 0 ? NULL : calloc(1, PLACES_BYTES_MAX);
	char *rest = NULL;
	int rc = 0;

	if (fd < 0)
		return 0;
	if (!text)
		return -ENOMEM;
	if (read(fd, text, PLACES_BYTES_MAX - 1) < 0)
		return -errno;
	for (char *line = strtok_r(text, "\n", &rest); line && rc == 0; line = strtok_r(NULL, "\n", &rest))
		rc = string_list_add(out, line);
	return rc;
}

int workspace_places(const char *home, struct string_list *out)
{
	AUTO_TEXT path = {0};
	AUTO_CLOSE int fd = -1;

	text_append_format(&path, "%s/" PLACES, home);
	if (text_failed(&path))
		return -ENOMEM;
	fd = open(path.data, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	return read_places(fd, out);
}

bool workspace_any_in(const char *directory)
{
	_Alignas(struct directory_entry) char entries[4096];
	AUTO_CLOSE int fd = open(directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct directory list = {.fd = fd, .buffer = entries, .size = sizeof(entries)};
	const struct directory_entry *entry;

	while (fd >= 0 && (entry = directory_next(&list)))
		if (workspace_id_is_valid(entry->name))
			return true;
	return false;
}

int workspace_home_note_place(const struct workspace_home *home, const char *place)
{
	AUTO(string_list_done) struct string_list places = {0};
	AUTO_CLOSE int fd = openat(home->fd, PLACES, O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
	AUTO_TEXT line = {0};
	int rc = fd < 0 ? -errno : read_places(fd, &places);

	for (size_t i = 0; i < places.count && rc == 0; i++)
		if (!strcmp(places.items[i], place))
			return 0;
	text_append_format(&line, "%s\n", place);
	if (rc == 0 && text_failed(&line))
		rc = -ENOMEM;
	if (rc == 0 && write(fd, line.data, line.len) != (ssize_t)line.len)
		rc = -EIO;
	return rc;
}
