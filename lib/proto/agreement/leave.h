/* SPDX-License-Identifier: MIT */
/* The save of a round, and how the task leaves. */
#ifndef PROTO_AGREEMENT_LEAVE_H
#define PROTO_AGREEMENT_LEAVE_H

#include "proto/agreement/agreement.h"

/* Whether the save of the newest round is, or can become, a complete checkpoint. */
enum agreement_prospect {
	PROSPECT_COMPLETE, /* it is complete, and no task is saving any more */
	PROSPECT_OPEN,	   /* a task is saving, and may be done in time */
	PROSPECT_NONE,	   /* a task that is needed cannot save there any more, or not in time */
};
/* With PROSPECT_OPEN, measure->longest_save becomes at least what this save has taken so far. */
enum agreement_prospect agreement_prospect(
	const struct agreement *a, int64_t now, struct grace_measure *measure);
/* Whether the newest checkpoint is complete, and no newer can be: a task that must save is gone. */
bool agreement_no_newer(const struct agreement *a);
/* How many tasks, from task 0 on, have to save for a complete checkpoint. */
uint64_t agreement_savers(const struct agreement *a);
bool agreement_final_save_done(const struct agreement *a);
bool agreement_report_saved(const struct agreement *a, struct agreement_plan *plan);
/* Plan ALL_SAVED, which the task that saves last, or one that stands in for it, writes. */
void agreement_tell_all_saved(struct agreement *a, struct agreement_plan *plan);
/* Conclude how this task leaves. After a request to stop, only a completed task keeps its code. */
void agreement_reach(struct agreement *a, enum agreement_reason reason, int code);
/* Conclude if the attempt is over for this task; otherwise plan when to look again. */
void agreement_conclude(struct agreement *a, int64_t now, struct agreement_plan *plan);
/* Carry out the conclusion: let the command end, write the goodbye, finish. */
void agreement_leave(struct agreement *a, int64_t now, struct agreement_plan *plan);

#endif
