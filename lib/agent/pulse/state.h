/* SPDX-License-Identifier: MIT */
/* What the thread of a pulse has and knows; its callers use pulse.h. */
#ifndef AGENT_PULSE_STATE_H
#define AGENT_PULSE_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "agent/pulse/pulse.h"
#include "proto/view.h"

/* What was seen in one exchange. */
struct pulse_tally {
	uint64_t late, unknown, restarted, lost;
};

struct pulse {
	struct pulse_options options;
	uint64_t token;
	pthread_t thread;
	int *streams; /* [count]: stream_claim of each task; -1: not claimed */
	int wake;     /* eventfd: something new for the thread */
	int broken;   /* eventfd: the verdict is there */

	_Atomic uint64_t *steps;     /* [count] */
	_Atomic int64_t answered_at; /* 0: not yet */
	_Atomic bool begun, watching, silent, stopping;
	_Atomic bool needed;  /* pulse_is_needed */
	pthread_mutex_t lock; /* over attempt (until begun) and why */
	char why[256];

	/* Of the thread alone. */
	struct attempt attempt;
	char group[192];
	struct store *store;
	uint64_t count;		      /* beats so far */
	struct heartbeat_peer *peers; /* [tasks] */
	bool *out;		      /* [tasks]: has left or is dead, by its key */
	struct view view;	      /* read when a task is suspected; with follow at changes */
	struct pulse_tally tally;
	uint64_t waited; /* exchanges for which a conclusion was put off */
	bool told;	 /* the verdict */
};

#endif
