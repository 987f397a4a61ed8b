/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/serve_house.h - a jar that runs are given to: kept, or prepared for one run
 *
 * It is made from a policy as a run's own jar is, and made again where the host gives less than it seemed. It can go only
 * when no run is in it any more.
 */
#ifndef BELLJAR_ENGINE_SERVE_HOUSE_H
#define BELLJAR_ENGINE_SERVE_HOUSE_H

#include "engine/engine_job.h"
#include "engine/serve.h"
#include "run/kept.h"
#include "wire/request.h"

struct house {
	struct body body; /* first: it is freed through it */
	struct request request;
	struct policy policy;
	struct making making;
	struct string_list zygote; /* empty: none */
	int zygote_fds[FRAME_MAX_EXTRA];
	size_t zygote_fd_count;
	struct kept_jar *jar; /* NULL: there is none yet, or none could be made */
	unsigned jar_number;
	unsigned run_count;
	struct loop_timer later;
	bool is_standing; /* it stands or stood */
	bool is_gone;
	/* It stands; it is gone, or could not be made: then making.error says why. Called from within the loop. */
	void (*stands)(struct house *house);
	void (*gone)(struct house *house);
};

/* Takes over @request and @policy. */
void house_init(struct house *house, struct server *server, enum plan_kind kind, struct request *request,
		struct policy *policy);
/* Make it a jar for calls: forks of @argv, which has @fds from 4 on; they are the house's from here on. 0 or -ENOMEM. */
int house_set_zygote(struct house *house, char *const *argv, int *fds, size_t fd_count);
/*
 * Begin; what goes wrong is told by gone(), never from within this call. @host: what a survey for the same policy found a
 * moment ago, which is taken over; NULL: look at the host now.
 */
void house_build(struct house *house, struct host *host);
/* Kill what is in it; gone() follows. */
void house_close(struct house *house);
void house_done(struct house *house);

/* For a job in it; house_leave() when the job is done. */
struct job_jar house_enter(struct house *house);
void house_leave(struct house *house);

#endif
