/* SPDX-License-Identifier: MIT */
/* Private to lib/agent/pulse: the state of a pulse and of its thread. */
#ifndef AGENT_PULSE_STATE_H
#define AGENT_PULSE_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "agent/pulse/pulse.h"
#include "base/worker.h"
#include "proto/view.h"

/* How many tasks one exchange of beats found in each state. */
struct pulse_tally {
	uint64_t late, unknown, restarted, lost;
};

struct pulse {
	struct pulse_options options;
	uint64_t token;
	struct worker *worker;
	int *streams; /* [count]: stream_claim of each task; -1: not claimed */
	int broken;   /* bell: the group is broken, or the attempt is over for us */

	_Atomic uint64_t *steps;     /* [count] */
	_Atomic int64_t answered_at; /* when the store last took our beats; 0: not yet */
	_Atomic bool begun, watching, silent;
	_Atomic bool needed;  /* pulse_is_needed */
	pthread_mutex_t lock; /* over why */
	char why[256], class[64];

	/* Of the thread alone. */
	struct attempt attempt;
	char group[KEYS_GROUP];
	struct store *store;
	uint64_t count;		      /* beats so far */
	struct heartbeat_peer *peers; /* [tasks] */
	bool *out;		      /* [tasks]: has left or is dead, by its keys */
	struct view view; /* read when a task is suspected; with follow at each change */
	struct pulse_tally tally;
	uint64_t waited; /* exchanges for which lost tasks were not declared dead yet */
	bool told;	 /* broken was rung */
};

static inline bool pulse_has_task(const struct pulse *pulse, uint64_t task)
{
	return task >= pulse->options.first && task - pulse->options.first < pulse->options.count;
}

#endif
