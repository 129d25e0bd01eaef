/* SPDX-License-Identifier: MIT */
/*
 * Which tasks of an attempt and which workers of a queue are alive, decided from observations: pure
 * functions of what was read and of this machine's monotonic clock. They use no wall clock, and
 * silence alone proves nothing (docs/design.md, section 5). A peer is a task or a worker.
 *
 * One observation of silence is: our own beat was written, then the peer's was read unchanged, at
 * least a period (ours, or the peer's if that is longer) after the last observation. `limit`
 * observations in a row mean death. So an event that stops the observer as well (a filesystem that
 * stalls, a suspended machine, a pause) can never make a peer look dead. An answer that took longer
 * than `timeout` does not count as an observation.
 */
#ifndef LIVE_HEARTBEAT_H
#define LIVE_HEARTBEAT_H

#include <stdbool.h>
#include <stdint.h>

#include "store/store.h"

enum heartbeat_state {
	HEARTBEAT_UNKNOWN, /* has never beaten */
	HEARTBEAT_ALIVE,
	HEARTBEAT_LATE, /* observed silent, but less often than `limit` */
	HEARTBEAT_DEAD,
	HEARTBEAT_RESTARTED, /* beats as another incarnation */
	HEARTBEAT_LEFT,	     /* announced that it stops */
};

struct heartbeat_rules {
	int64_t period;	 /* ms between two beats; at least 1 */
	int64_t timeout; /* ms that a beat or a reading may take */
	uint64_t limit;	 /* observations of silence in a row that mean death; at least 1 */
	int64_t first;	 /* ms after joining in which a peer must begin to beat; 0: no limit */
	int64_t cut_off; /* ms without the store after which a task ends (cut_off.h); 0: never */
};
#define HEARTBEAT_PERIOD 5000 /* the defaults of these rules */
#define HEARTBEAT_LIMIT	 3
#define HEARTBEAT_FIRST	 300000

/*
 * The live peer with the lowest number is the monitor: it reads the beats of all others and
 * declares the dead. Each other peer reads from the lowest number up to the monitor.
 */
#define HEARTBEAT_UNPROVED 8 /* stop reading after this many peers that beat but are unproved */
#define HEARTBEAT_DEPUTY   5 /* observations beyond the limit after which any peer may declare */

/* max(period - 10 s, 2 s), as in DTensor's service. */
int64_t heartbeat_timeout(int64_t period);

/* ---- The record of a beat (struct store_beat) ---- */

#define HEARTBEAT_NO_STEP UINT64_MAX

/* The sequence contains the period: observers wait longer for a peer whose period is longer. */
uint64_t heartbeat_sequence(uint64_t count, int64_t period);
/* The last beat of a task that stops on purpose. */
uint64_t heartbeat_farewell(int64_t period);
bool heartbeat_is_farewell(uint64_t sequence);
uint64_t heartbeat_count(uint64_t sequence);
int64_t heartbeat_period(uint64_t sequence);

/* ---- Judging a peer ---- */

/* One round in which an observer beats and reads the others. */
struct heartbeat_exchange {
	int64_t began; /* before our own beat was written; a period or more after the last round */
	bool beaten;   /* our own beats were written, each within the timeout */
	bool paused;   /* the round began more than a period late: this process was stopped */
};

enum heartbeat_seen { SEEN_BEAT, SEEN_NOTHING, SEEN_ERROR };

struct heartbeat_look {
	enum heartbeat_seen seen; /* SEEN_NOTHING: no beat was ever written there */
	struct store_beat beat;
	int64_t took;  /* ms that the reading took */
	bool expected; /* the peer has joined and is one that beats: its first beat is due */
	bool reused;   /* the number may get a new owner: a new token is a change, no restart */
	bool gone;     /* its process ran on this machine and no longer exists */
};

/* What an observer knows of a peer. Zeroed: nothing. */
struct heartbeat_peer {
	enum heartbeat_state state;
	bool proved; /* its beat has changed between two observations: it lives */
	struct store_beat beat;
	uint64_t silent;     /* observations of silence in a row */
	int64_t observed_at; /* when the last observation began */
	int64_t changed_at;  /* when its beat changed last, or since when its first beat is due */
};

/*
 * How many observations of silence in a row mean the death of this peer: rules->limit; for a peer
 * that has never beaten, as many as fit into rules->first, if that is more.
 */
uint64_t heartbeat_limit(const struct heartbeat_peer *peer, const struct heartbeat_rules *rules);
static inline bool heartbeat_has_beaten(const struct heartbeat_peer *peer)
{
	return peer->beat.token != 0;
}

/* Take in one reading. Return the new peer->state. */
enum heartbeat_state heartbeat_observe(struct heartbeat_peer *peer,
	const struct heartbeat_rules *rules, const struct heartbeat_exchange *exchange,
	const struct heartbeat_look *look);

/* Whether a peer in this state is lost: its attempt ends, or its queue commands go back. */
static inline bool heartbeat_is_lost(enum heartbeat_state state)
{
	return state == HEARTBEAT_DEAD || state == HEARTBEAT_RESTARTED;
}

/*
 * Return true if an observer may declare this peer dead: the peer is lost, and the observer is the
 * monitor, or the peer has restarted, or it was silent for HEARTBEAT_DEPUTY observations beyond its
 * limit, and so the monitor has failed to declare it.
 */
bool heartbeat_may_declare(
	const struct heartbeat_peer *peer, const struct heartbeat_rules *rules, bool monitor);

#endif
