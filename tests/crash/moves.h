/* SPDX-License-Identifier: MIT */
/*
 * What is done to a queue in the sweep: a worker's exchange and a scheduler's batch, as a worker
 * and a scheduler make them, on a queue in which two commands run and two wait. Tokens are drawn
 * and clocks go on: fixture_inspect skips both in the values of "queue/...".
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

/* Two more commands; under a name, so that doing it again adds none. */
enum status moves_schedule(struct store *store, struct outcome *outcome);
enum status moves_schedule_once(struct store *store, struct outcome *outcome);
void moves_schedule_once_again(struct store *store, struct outcome *outcome);

#endif
