/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/serve/server_jar.h - a jar of the server: a session, or prepared for one run
 *
 * It is made from a policy, as a run's own jar is, and made again if the host provides less than the survey found. It
 * is freed only when no run is in it any more.
 */
#ifndef BELLJAR_DOOR_SERVE_SERVER_JAR_H
#define BELLJAR_DOOR_SERVE_SERVER_JAR_H

#include "engine/engine_job.h"
#include "door/serve/serve_request.h"
#include "engine/jar/jar.h"

struct server_jar {
	struct object object; /* first: it is freed through it */
	struct serve_request *request;
	struct launch launch;
	struct string_list zygote; /* empty: none */
	int zygote_fds[FRAME_MAX_EXTRA];
	size_t zygote_fd_count;
	struct engine_guard guard;
	struct error breach; /* why the guard ended the jar */
	struct session *jar; /* NULL: there is none yet, or none could be made */
	unsigned jar_number;
	unsigned run_count;
	struct loop_timer later;
	struct engine_baseline
		*baseline;           /* of the last search in a jar that is kept; NULL: there is nothing to search */
	struct engine_search search; /* when it is gone */
	void (*searched_last)(void *owner);
	struct risky_list risky;  /* what all searches in it have found */
	struct risky_list looked; /* of these, what only answers to LOOK had: the next run's result has it too */
	bool has_unseen;          /* its processes may have changed something since that search */
	bool is_standing;         /* it is or was ready */
	bool is_gone;
	bool is_closed; /* perhaps before it was built */
	/* It is ready; it is gone, or could not be made: then launch.error has the cause. Called from within the loop. */
	void (*stands)(struct server_jar *server_jar);
	void (*gone)(struct server_jar *server_jar);
};

/* Holds @request as long as the jar is there. */
void server_jar_init(struct server_jar *server_jar, struct server *server, enum plan_kind kind,
		     struct serve_request *request);
/* Make it a jar for calls: forks of @argv, which has @fds from 4 on. Takes @fds over. 0 or -ENOMEM. */
int server_jar_set_zygote(struct server_jar *server_jar, char *const *argv, int *fds, size_t fd_count);
/*
 * Begin to build it. gone() reports failures, never from within this call. @host: the result of a survey for the same
 * policy a moment ago, taken over; NULL: survey the host now.
 */
void server_jar_build(struct server_jar *server_jar, struct host *host);
/* Kill what is in it; gone() follows. */
void server_jar_close(struct server_jar *server_jar);
/* Give up building it: gone() follows. */
void server_jar_give_up(struct server_jar *server_jar);
void server_jar_done(struct server_jar *server_jar);

/* Enter it for a job; call server_jar_leave() when the job is done. */
struct job_jar server_jar_enter(struct server_jar *server_jar);
/* Hold it for another use; call server_jar_leave() after that too. */
void server_jar_hold(struct server_jar *server_jar);
void server_jar_leave(struct server_jar *server_jar);
/* Report whether its processes can change files that other programs execute or read as configuration. */
bool server_jar_is_searched(const struct server_jar *server_jar);
/* Search for new risky changes, then call over(@owner), from within the loop or at once. */
void server_jar_search(struct server_jar *server_jar, struct engine_search *search, void (*over)(void *owner),
		       void *owner);
/* A search in it is over: the next one compares with what it found. @has_more: processes may change something from now on. */
void server_jar_found(struct server_jar *server_jar, struct engine_search *search, bool has_more);
/* A job in it is over: its result also has what LOOK found. @is_left: processes of it live on. */
void server_jar_searched(struct server_jar *server_jar, struct job *job, bool is_left);
/* The search of a LOOK is over. */
void server_jar_looked(struct server_jar *server_jar, struct engine_search *search);
/* It is gone: search for what is not known yet, then call over(). The result is in server_jar->risky. */
void server_jar_search_last(struct server_jar *server_jar, void (*over)(void *owner));

#endif
