/* SPDX-License-Identifier: MIT */
/*
 * A worker's exchange, on a queue in which two commands run and two wait. (What schedules: rows of
 * queue.rows.) Tokens are drawn and clocks go on: fixture_inspect skips both in the values of
 * "queue/...".
 */
#ifndef FAULTS_MOVES_H
#define FAULTS_MOVES_H

#include "acts.h"

/* Put the queue into the store, and remember the leases of what runs. */
enum status moves_fill(struct store *store, struct error *err);

/* Two results are handed in, what waits is taken. */
enum status moves_exchange(struct store *store, struct outcome *outcome);
/* One command is given back, one fails, and both its failure and its output are noted. */
enum status moves_give_back(struct store *store, struct outcome *outcome);
/*
 * After one of these that gave no answer: the worker asks again, as it always does, and is answered
 * as it would have been.
 */
void moves_exchange_again(struct store *store, struct outcome *outcome);
void moves_give_back_again(struct store *store, struct outcome *outcome);

#endif
