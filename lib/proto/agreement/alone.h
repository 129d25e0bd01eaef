/* SPDX-License-Identifier: MIT */
/* Without the store: the tasks of one agent agree in memory. */
#ifndef PROTO_AGREEMENT_ALONE_H
#define PROTO_AGREEMENT_ALONE_H

#include "proto/agreement/agreement.h"

/* Whether this write belongs to a round, which may be one that is kept in memory. */
bool agreement_is_of_round(enum agreement_write what);
/* Agree with the tasks of the same agent only. */
void agreement_begin_alone(struct agreement *a, int64_t now);
/* Whether all tasks that have neither left nor died are of this agent. */
bool agreement_are_all_ours(const struct agreement *a);
/* Take part if another task of the agent has begun such an agreement. */
void agreement_follow_alone(struct agreement *a, int64_t now);
/* Carry out what the plan wants written to the round in memory. False: it wants nothing there. */
bool agreement_write_alone(struct agreement *a, struct agreement_plan *plan);
/* False: this task follows a round in memory, and tasks outside that round may still run. */
bool agreement_knows_all(const struct agreement *a);

#endif
