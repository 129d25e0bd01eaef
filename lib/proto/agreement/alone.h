/* SPDX-License-Identifier: MIT */
/* Without the store: the tasks of one agent agree in memory. */
#ifndef PROTO_AGREEMENT_ALONE_H
#define PROTO_AGREEMENT_ALONE_H

#include "proto/agreement/agreement.h"

bool agreement_is_of_round(enum agreement_write what);
/* Agree with the tasks of the same agent only. */
void agreement_begin_alone(struct agreement *a, int64_t now);
/* Take part if another task of the agent has begun that. */
void agreement_follow_alone(struct agreement *a, int64_t now);
/* Do what is wanted of a round in memory. True: something was done. */
bool agreement_write_alone(struct agreement *a, struct agreement_plan *plan);
/* Whether every task that is not dead or done is one of this agent's. */
bool agreement_knows_all(const struct agreement *a);

#endif
