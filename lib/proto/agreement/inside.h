/* SPDX-License-Identifier: MIT */
/*
 * Shared by the files of the agreement, and by nobody else:
 * agreement.c (what happened), round.c (hold, report, decide, follow),
 * alone.c (the same without the store), leave.c (park, judge, leave).
 */
#ifndef PROTO_AGREEMENT_INSIDE_H
#define PROTO_AGREEMENT_INSIDE_H

#include "base/clock.h"
#include "proto/agreement/agreement.h"

#define POLL_OFTEN  1000 /* ms between views while something is awaited: of a few tasks */
#define POLL_SELDOM 4000 /* of the others */
#define POLL_SHARE  8	 /* of the time, at most, is one view */
#define LOOKERS	    16	 /* tasks that look more often than the rest */

static inline int64_t deadline_of(const struct agreement *a)
{
	return clock_earlier(a->view->deadline, a->own_deadline);
}

/* At the latest; our own machine's is known, so that is never later than it. */
static inline int64_t latest_deadline_of(const struct agreement *a)
{
	return clock_earlier(a->view->deadline_latest, a->own_deadline);
}

static inline const struct agreement_peer *self(const struct agreement *a)
{
	return &a->view->peers[a->config.task];
}

/* Until then the store has answered, and taken what this task had to write. */
static inline int64_t answered_until(const struct agreement *a)
{
	return a->unanswered_at ? clock_earlier(a->answered_at, a->unanswered_at) : a->answered_at;
}

/* Whether this attempt ends: somebody was noticed, and it was not only a checkpoint on demand. */
static inline bool preempted(const struct agreement *a)
{
	return a->noticed || a->view->claimed;
}

static inline bool is_final(const struct agreement_view *view)
{
	return view->decided && view->decision.kind != KIND_SAVE;
}

/* The decision is there, but of this task nothing is known until it calls. */
static inline bool awaits_first_call(const struct agreement *a)
{
	return a->view->decided && !a->called;
}

static inline void wake_at(struct agreement_plan *plan, int64_t instant)
{
	plan->wake = clock_earlier(plan->wake, instant);
}

/* Whether the instant has come. Until then the plan wakes at it: never at one that is over. */
static inline bool has_come(struct agreement_plan *plan, int64_t instant, int64_t now)
{
	if (now < instant)
		wake_at(plan, instant);
	return now >= instant;
}

/* agreement.c */
int64_t agreement_pace(const struct agreement *a);
void agreement_await(const struct agreement *a, struct agreement_plan *plan, uint64_t awaited);

/* Something is awaited from the others. */
static inline void view_by(const struct agreement *a, struct agreement_plan *plan)
{
	plan->look = clock_earlier(
		plan->look, clock_later(a->answered_at, a->awaits_at) + agreement_pace(a));
}

/* alone.c */
bool agreement_is_of_round(enum agreement_write what);
/* Agree with the tasks of the same agent only. */
void agreement_begin_alone(struct agreement *a, int64_t now);
/* Take part if another task of the agent has begun that. */
void agreement_follow_alone(struct agreement *a, int64_t now);
/* Do what is wanted of a round in memory. True: something was done. */
bool agreement_write_alone(struct agreement *a, struct agreement_plan *plan);
/* Whether every task that is not dead or done is one of this agent's. */
bool agreement_knows_all(const struct agreement *a);

/* Wanted until it is done; after an unclear or refusing answer only with a fresh view. */
static inline void want(const struct agreement *a, struct agreement_plan *plan,
	enum agreement_write what, uint64_t round)
{
	bool in_memory = a->solo && agreement_is_of_round(what);
	if (a->done[what] == round || (a->pending[what] && !in_memory))
		return;
	if (a->poll_first && !in_memory)
		plan->look = a->answered_at;
	else
		plan->write[what] = round;
}

/* agreement.c */
/* The view has changed: note what is new in it. */
void agreement_take_in(struct agreement *a, int64_t now);

/* What was measured here and what the reports of the newest round say. */
struct grace_measure agreement_measure(const struct agreement *a);

/* round.c */
bool agreement_announce(const struct agreement *a, struct agreement_plan *plan);
void agreement_hold(struct agreement *a, int64_t now, struct agreement_plan *plan);

/* leave.c */
/* What is to be expected of the save of the newest round. */
enum agreement_prospect {
	PROSPECT_COMPLETE, /* a checkpoint, and nobody is saving any more */
	PROSPECT_OPEN,	   /* somebody is saving, and may be done in time */
	PROSPECT_NONE,	   /* somebody who is needed cannot save there any more, or not in time */
};
/* While it is open, measure learns how long it has taken. */
enum agreement_prospect agreement_prospect(
	const struct agreement *a, int64_t now, struct grace_measure *measure);
/* The newest checkpoint is complete, and without a task that died or left none can be after it. */
bool agreement_no_newer(const struct agreement *a);
bool agreement_final_save_done(const struct agreement *a);
bool agreement_report_saved(const struct agreement *a, struct agreement_plan *plan);
/* Whoever saves last tells those who wait for it. */
void agreement_tell_all_saved(const struct agreement *a, struct agreement_plan *plan);
void agreement_reach(struct agreement *a, enum agreement_reason reason, int code);
void agreement_conclude(struct agreement *a, int64_t now, struct agreement_plan *plan);
void agreement_leave(struct agreement *a, int64_t now, struct agreement_plan *plan);

#endif
