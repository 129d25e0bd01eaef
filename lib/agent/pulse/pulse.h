/* SPDX-License-Identifier: MIT */
/*
 * The pulse: a thread that beats for the tasks of one agent, watches the others, and declares the
 * dead. It has a store of its own, because a beat must never wait behind a transaction: if a
 * process were stopped while it holds the store's lock, all tasks that wait for the lock would look
 * dead.
 *
 * Who watches whom: every pulse reads the lowest task that lives (the monitor), and that one reads
 * all. When the monitor is silent, the next one reads on from there, so it takes over by itself. A
 * death is committed (DEAD/i and, where nothing else sealed the attempt, SEAL), which is how the
 * others and their agreements learn of it; the pulse notifies no task in another way (except its
 * own with follow). As long as no task is suspected it takes no lock and reads no page of the
 * database: it writes one small file and reads one per period.
 */
#ifndef AGENT_PULSE_PULSE_H
#define AGENT_PULSE_PULSE_H

#include "base/process/process.h"
#include "live/heartbeat.h"
#include "proto/keys.h"

struct pulse;

struct pulse_options {
	const char *store; /* URL; must stay valid */
	struct heartbeat_rules rules;
	uint64_t first, count;		    /* tasks first .. first + count - 1 */
	const struct process_identity *who; /* the incarnation of all of them */
	bool follow;			    /* tell by pulse_descriptor when the group is broken */
};

/* Start the thread; it does nothing before pulse_begin. All signals are blocked in it. */
enum status pulse_start(
	struct pulse **pulse, const struct pulse_options *options, struct error *err);

/* Beat from now on, as tasks of this attempt. From any thread. */
void pulse_begin(struct pulse *pulse, const struct attempt *attempt);
/* All have joined: watch them, too. */
void pulse_watch(struct pulse *pulse);

/* How far a task (first + index) is: it travels with its beats. */
void pulse_tell_step(struct pulse *pulse, uint64_t index, uint64_t step);

/* Whether the store took our last beat in time: less than two periods and a timeout ago. */
bool pulse_is_answered(const struct pulse *pulse);

/*
 * With follow: whether our silence would break the group: another task is in, and no preemption is
 * under way.
 */
bool pulse_is_needed(const struct pulse *pulse);

/*
 * With follow: readable once the group is broken, one of our tasks was declared dead, or the
 * attempt is over for all of them.
 */
int pulse_descriptor(const struct pulse *pulse);
/* Then: why it is broken, one line. False: it is only over. */
bool pulse_why(struct pulse *pulse, char text[256]);

/* pulse_stop will not say that we stop on purpose: the silence is to be seen. NULL is fine. */
void pulse_fall_silent(struct pulse *pulse);

/*
 * Beat once more, to say that we stop on purpose, and end the thread; one that hangs in the
 * filesystem for longer than patience (ms) is left alone. NULL is fine.
 */
void pulse_stop(struct pulse *pulse, int64_t patience);

/* The token of an incarnation: the same for the same process, never 0. */
uint64_t pulse_token(const struct process_identity *who);

#endif
