/* SPDX-License-Identifier: MIT */
/* One round: hold the task, report where it stands, decide, follow the decision. */
#ifndef PROTO_AGREEMENT_ROUND_H
#define PROTO_AGREEMENT_ROUND_H

#include "proto/agreement/agreement.h"

#define HOLD_SETTLES 1 /* ms between writing hold = wait and reading step */

/* When the store counts as lost to a training process that waits since then; an instant. */
int64_t agreement_store_lost(const struct agreement *a, int64_t waits);
bool agreement_announce(const struct agreement *a, struct agreement_plan *plan);
/* Plan what the board's hold must say to a command that runs; may conclude instead. */
void agreement_hold(struct agreement *a, int64_t now, struct agreement_plan *plan);

#endif
