/* SPDX-License-Identifier: MIT */
/* What the keeper (keeper.h) reads and writes in the store, besides its beats. */
#ifndef COMPOSE_KEEPER_STORE_H
#define COMPOSE_KEEPER_STORE_H

#include "compose/keeper.h"
#include "proto/keys.h"
#include "proto/writes.h"

/*
 * Find the attempt, and add to rules what the store remembers of earlier ones. *where becomes
 * store_where, for the caller to free. STATUS_TEMPORARY: the store is away, also one that was
 * joined (outage.h) and is missing. STATUS_NO: there is no such attempt.
 */
enum status keeper_find(const struct keeper_options *options, struct attempt *attempt,
	struct progress_rules *rules, char **where, struct error *err);

/* Our own task is dead: the others learn it as from any other task. */
void keeper_declare_dead(const struct keeper_options *options, const struct attempt *attempt,
	const struct death *death);

/* Let the next attempt know what rules have learned. */
void keeper_remember(const struct keeper_options *options, const struct progress_rules *rules);

#endif
