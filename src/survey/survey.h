/* SPDX-License-Identifier: Apache-2.0 */
/*
 * survey/survey.h - the facts about this host that the planner needs: the kernel, the caller, and the policy's files
 *
 * Plain data. The planner uses nothing else, so that tests can plan for hosts that do not exist. Facts that cost time
 * to prove (does a user namespace really work here?) are assumed from their looks. If a step then fails, Belljar
 * corrects the fact and makes the plan again.
 */
#ifndef BELLJAR_SURVEY_SURVEY_H
#define BELLJAR_SURVEY_SURVEY_H

#include <sys/types.h>

#include "base/error.h"
#include "base/list.h"
#include "base/text.h"
#include "survey/survey_judge.h"
#include "policy/policy.h"

enum path_kind { PATH_ABSENT, PATH_DIRECTORY, PATH_FILE, PATH_SYMLINK, PATH_OTHER };

/* The kind of a path, and the exact object at it: a later mount must be of this object. */
struct host_path {
	char *path;   /* absolute, without symbolic links, unless kind is PATH_SYMLINK */
	char *target; /* PATH_SYMLINK: its text */
	enum path_kind kind;
	dev_t device;
	ino_t inode;
	mode_t mode;        /* permissions */
	int64_t changed_ns; /* when its inode last changed: file systems reuse free inode numbers at once */
	uint64_t size_bytes;
	int error;                /* a positive errno: why the look failed */
	struct string_list links; /* the symbolic links followed on the way, as far as it went ... */
	const char *planted;      /* ... and the one of them that a command may have put there; NULL: none */
};

LIST_TYPE(struct host_path, host_path_list);

/* What Belljar does about a file that other programs run or read. */
enum watch_kind {
	WATCH_PROTECTED, /* read-only in the jar; still reported if it is new or has changed */
	WATCH_REPORTED,  /* reported if it is new or has changed */
	WATCH_NEW,       /* reported if it is new: it changes in everyday work */
	WATCH_MUST_STAY, /* reported if it is gone */
};

struct watched {
	struct host_path path;
	enum watch_kind kind;
	const char *who; /* "git runs the programs in it" */
	bool is_fresh;   /* it changed so recently that another change may have the same time ... */
	char *content;   /* ... so this is its content; NULL: it could not be read, or is too long */
	size_t content_bytes;
};

struct watch_list {
	struct watched *items;
	size_t count;
	size_t capacity;
	bool is_cut_off; /* the search stopped at a bound */
	/* Borrowed; gets the absent paths that links and configurations name. NULL: not wanted. */
	struct risk_extra_list *absent;
};

/* A path that matches a pattern of the policy. */
struct host_match {
	const char *key; /* "hide", "ro", "rw" */
	char *pattern;   /* as written; for a path without a pattern, the reason: "a second name of '.env'" */
	char *path;      /* in the jar */
};

LIST_TYPE(struct host_match, host_match_list);

/* A virtual environment that the caller uses and the jar does not have, or not with its Python. */
struct host_unshown {
	char *path;
	char *base;      /* the hidden directory of its Python's programs; NULL: the whole environment is hidden */
	const char *why; /* "it is a home directory" */
};

LIST_TYPE(struct host_unshown, host_unshown_list);

struct host_workdir {
	struct host_path path;
	const char *unfit;    /* why it may not be a workdir ("it is a home directory"); NULL: it may */
	struct host_path top; /* of the git repository around it, where that is another directory; else PATH_ABSENT */
	struct host_path git; /* that repository's .git, or the workdir's own; elsewhere where .git is a file */
	struct host_path git_own; /* linked worktree: the part of `git` that is this worktree's own; else PATH_ABSENT */
	bool has_git_file;        /* .git is a file; `git` is what it names, and lies elsewhere */
	struct host_path refused_git;    /* the nearest .git, if the jar may not show it; else PATH_ABSENT */
	const char *refused_why;         /* ... since "it belongs to another user" */
	bool is_searched;                /* the search covers it, and no private one is in its place */
	struct watch_list watched;       /* files in it and in its repository that other programs run or read */
	struct host_path_list protected; /* those of them that the jar makes read-only */
	struct host_path_list pinned;    /* directories above those: must not be renamed away */
};

/* A directory for a layer and, once it is made, the store that takes the changes. */
struct host_layer {
	struct host_path path;
	char *inner_mount;            /* a mount point in it; NULL: none */
	gid_t group;                  /* of the directory */
	bool may_lack_maps;           /* overlayfs knows no id-mapped mounts, tmpfs since Linux 6.3 */
	struct host_path store;       /* the directory with `upper` and `work` in it */
	struct host_path upper;       /* a copy of the whole directory, where there are no layers */
	struct host_path_list frozen; /* the layers between `upper` and the directory, topmost first */
	bool is_found;                /* an earlier jar made the store */
	bool is_copied;               /* the store has a copy, since it was made on a host without layers */
	bool is_from_before_boot;     /* the host has restarted since the last write to the store */
};

LIST_TYPE(struct host_layer, host_layer_list);

/* Directories in which Belljar can make a run's cgroups, or NULL; in version 2 all are the same. */
struct host_cgroups {
	int version; /* 0: none to be had, or none needed */
	char *memory;
	char *pids;
	char *cpu;
	char *name;  /* free, for a run's own */
	bool is_own; /* version 2: we are alone in this cgroup, and must leave it before it can have children */
};

/* The authorities that a jar trusts if the gate inspects requests; belljar-gate makes them and holds the key. */
struct host_trust {
	char *program;            /* belljar-gate; NULL: not installed, or not needed */
	char *source;             /* the host's list of authorities; NULL: none */
	struct string_list paths; /* where programs look for that list, symbolic links followed */
	char *java_path;          /* likewise Java's; NULL: none */
	struct text bundle, java; /* both lists with the jar's own authority; empty: not made */
};

/* Kinds of speculation that a process can turn off: past stores, and past indirect branches. */
#define HOST_SPECULATIONS 2

struct host {
	/* kernel */
	bool has_user_namespaces; /* may be true and yet fail: see above */
	bool has_id_mapped_mounts;
	bool has_seccomp;
	bool has_seccomp_listeners; /* a filter can ask; likewise */
	bool hides_memory;          /* of processes of the same user that are our descendants (Yama) */
	bool lacks_nft;             /* a gate was refused nf_tables */
	bool lacks_overlay;         /* a layer was refused */
	unsigned overlay_attempts;  /* how often one that was found was refused: a killed jar may still let go of it */
	bool pipes_core_dumps;      /* the kernel pipes them to a program, unless the limit on their size is 1 */
	int landlock_abi;           /* 0: none */
	int speculation
		[HOST_SPECULATIONS]; /* PR_GET_SPECULATION_CTRL's result for each kind; negative: no such control */
	bool has_task_clock;         /* a clock of all CPU time of a tree; looked for where the policy limits that */
	bool hides_processes; /* /proc hides processes that the caller may not trace (hidepid), even from their user */
	bool hides_jar;       /* root without CAP_SYS_PTRACE cannot look at processes of the id that its jars run as */
	/* caller */
	uid_t uid;
	gid_t gid;
	uid_t jar_id;                 /* root only: an unused host id for this jar alone */
	char *home;                   /* where HOME points inside: the caller's, or a made-up one where that is unfit */
	char *real_home;              /* the caller's home directory, resolved; NULL: none */
	char *run_directory;          /* a name that is free, for a run that cannot have private mounts */
	struct string_list git_files; /* where the caller's git has its configuration, of this user and of all */
	struct string_list git_commands; /* what variables of the caller's make git run */
	char *git_name, *git_email;      /* user.name and user.email of the caller's git; NULL: not set */
	char *const *environment;        /* borrowed */
	char *const *prefixes;    /* borrowed: where the caller's own interpreter and its library are; NULL: not said */
	bool is_caller_elsewhere; /* the current directory is not this process's, and known by its name only */
	uint64_t argument_bytes_max; /* what the kernel takes as arguments and environment together */
	uint64_t memory_bytes;
	uint64_t process_count; /* processes and threads of the whole host, about; 0: not known */
	uint64_t inotify_instances,
		inotify_watches; /* of one user, on the whole host; 0: unknown, or a jar's share cannot be set */
	char *uncounted_path; /* a writable directory whose writes the kernel does not count; NULL: none, or unknown */
	struct host_trust trust;
	struct host_cgroups cgroups; /* survey_cgroups(): where the policy has a limit that they could hold */
	/* files; filled for one policy by survey_host() */
	struct policy *matched; /* the policy with matches in place of its patterns; NULL: it has no patterns */
	struct string_list hide_patterns; /* the policy's own `hide` */
	struct host_match_list matches;
	struct host_path_list system;     /* /usr, /bin, /lib ..., as they are */
	struct host_path_list etc;        /* the allowed names of /etc that exist */
	struct host_path_list toolchains; /* directories that PATH needs: below home, and virtual environments */
	struct host_unshown_list unshown;
	struct host_path_list path_directories; /* those of PATH that are not the system's, where they really are */
	struct host_path_list devices;
	struct host_path_list mounts; /* one per policy.mounts: the source, symbolic links followed */
	struct host_path_list nested; /* directories above a place inside a writable one: must not move */
	struct host_path_list
		places; /* one per policy.mounts: what is at its destination, if that is a host directory */
	struct host_path_list hidden;       /* one per policy.hide */
	struct host_path_list tmpfs_places; /* one per policy.tmpfs */
	struct host_path_list grants;       /* those of `mounts` that are directories which the command may write */
	struct host_path_list policy_files; /* one per policy.files, symbolic links followed */
	struct host_path_list cow_places;   /* one per policy.cow_dirs, symbolic links followed */
	struct host_path_list own;   /* Belljar's programs, packages and what holds them: no command may write there */
	struct host_path started_by; /* the path by which this program was started; PATH_ABSENT: not known */
	struct host_workdir workdir;
	bool has_workdir_layer;            /* the first of `layers` is the workdir's */
	struct host_layer_list layers;     /* directories under layers */
	struct host_path_list stores;      /* where workspaces are kept, for no jar to see ... */
	struct host_path_list held_stores; /* ... and those of these that contain any now */
	struct host_path skeletons;        /* where those of roots are kept, for no jar to see; PATH_ABSENT: nowhere */
	bool has_skeleton;                 /* one of them may be used: see struct plan */
	char *hosts;           /* the content of a world-readable /etc/hosts; read for a jar with its own network */
	bool has_unsteady_etc; /* something in /etc was replaced while a jar was made: see survey_etc_files() */
};

/* Return the ABI of Landlock, 0 without Landlock. */
int survey_landlock_abi(void);
/* Find the caller's home directory by host->environment and host->uid. Returns 0 or -ENOMEM. */
int survey_find_home(struct host *host);
/* Find the facts about the kernel and the caller. */
int survey_probe(struct host *host, char *const *environment, struct error *error);
/* Write an id that changes each time the host starts. Returns its length; 0: unknown. */
#define HOST_BOOT_ID_BYTES 40
size_t survey_boot_id(char id[HOST_BOOT_ID_BYTES]);
/* Return the value of a variable; NULL: it is not set. */
const char *survey_variable(char *const *environment, const char *name);
/* Adapt the facts of one jar for another with the same policy; @number as for survey_jar_id(). 0 or an error. */
int survey_hand_on(struct host *host, char *const *environment, unsigned number);
/*
 * Survey the files of @policy, in two parts: first those that the command may write, then the rest. Between them, or
 * after both, the caller fills workdir.protected and workdir.pinned, since survey_watch() may take long.
 */
int survey_writable(struct host *host, const struct policy *policy, const char *current_directory, struct error *error);
int survey_rest(struct host *host, const struct policy *policy, struct error *error);
/* Record that survey_watch() failed with @rc. */
int survey_failed(int rc, struct error *error);
/* Do all of the survey. */
int survey_host(struct host *host, const struct policy *policy, const char *current_directory, struct error *error);
/* Find only the facts that survey_watch() needs for the project @workdir. */
int survey_project(struct host *host, const char *workdir, struct error *error);
/* Survey /etc again. Returns 0 or a negative errno. */
int survey_etc_files(struct host *host);
/* Return the policy by which to plan a jar for this host. */
static inline const struct policy *survey_policy(const struct host *host, const struct policy *policy)
{
	return host->matched ? host->matched : policy;
}
/* Is there anything that survey_watch() looks at? */
static inline bool survey_is_searched(const struct host *host)
{
	return host->workdir.is_searched || host->grants.count;
}
void survey_done(struct host *host);

#endif
