/* SPDX-License-Identifier: MIT */
/*
 * Restarts that fail again and again from the same checkpoint: it is given up, and the one before
 * it is tried. What failed is read from the attempts in the store, so there is no counter that
 * could be wrong. Private to lib/agent.
 */
#ifndef AGENT_BAD_RESTARTS_H
#define AGENT_BAD_RESTARTS_H

#include "agent/agent.h"
#include "proto/keys.h"

/*
 * As options->find_checkpoint. With max_bad_restarts, a checkpoint from which that many restarts
 * have failed is given up by options->give_up_checkpoint, and the next one is looked for.
 */
enum status bad_restarts_find(struct store *store, const struct attempt *attempt,
	const struct agent_options *options, struct agent_checkpoint *found, struct error *err);

#endif
