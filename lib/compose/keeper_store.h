/* SPDX-License-Identifier: MIT */
/* What the keeper (keeper.h) reads and writes in the store, apart from its beats. */
#ifndef COMPOSE_KEEPER_STORE_H
#define COMPOSE_KEEPER_STORE_H

#include "compose/keeper.h"
#include "proto/keys.h"
#include "proto/writes.h"

/*
 * Find the attempt. *where becomes store_where, for the caller to free. STATUS_TEMPORARY: the store
 * does not answer, or a joined store (outage.h) is missing. STATUS_NO: there is no such attempt.
 */
enum status keeper_find(const struct keeper_options *options, struct attempt *attempt, char **where,
	struct error *err);

/* Declare our own task dead, unless it was declared already. */
void keeper_declare_dead(const struct keeper_options *options, const struct attempt *attempt,
	const struct death *death);

#endif
