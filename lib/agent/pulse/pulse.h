/* SPDX-License-Identifier: MIT */
/*
 * The pulse: a thread that beats for the tasks of one agent, watches the others, and declares the
 * dead. It has a store handle of its own, because a beat must never wait behind a transaction: if a
 * process were stopped while it holds the store's lock, all tasks that wait for the lock would look
 * dead.
 *
 * Every pulse reads the beats of the lowest task that lives (the monitor); the monitor's pulse
 * reads those of all tasks. When the monitor is silent, the next pulse finds no live task before
 * its own, and so takes over. A death is committed (DEAD/i, and SEAL unless the attempt is sealed
 * already): the other tasks and their agreements learn of it from these keys alone. As long as no
 * task is suspected, a pulse (without follow) takes no lock and reads no page of the database: per
 * period it writes a small file for each of its tasks and reads one; the monitor reads all.
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
	const struct process_identity *who; /* the process that the beats are for */
	bool follow;			    /* also read the attempt, for pulse_descriptor */
};

/* Start the thread; it does nothing before pulse_begin. All signals are blocked in it. */
enum status pulse_start(
	struct pulse **pulse, const struct pulse_options *options, struct error *err);

/* Beat from now on, as tasks of this attempt. From any thread. */
void pulse_begin(struct pulse *pulse, const struct attempt *attempt);
/* All tasks have joined: watch the others, too. */
void pulse_watch(struct pulse *pulse);

/* Set the step that the beats of task first + index carry. */
void pulse_tell_step(struct pulse *pulse, uint64_t index, uint64_t step);

/* Whether the store has taken a beat of ours less than two periods and a timeout ago. */
bool pulse_is_answered(const struct pulse *pulse);

/*
 * With follow: whether our silence would break the group, because other tasks are in the attempt
 * and no preemption is under way.
 */
bool pulse_is_needed(const struct pulse *pulse);

/*
 * With follow: readable once the group is broken, one of our tasks was declared dead, or the
 * attempt is over for all of them.
 */
int pulse_descriptor(const struct pulse *pulse);
/* Why, in one line: the group is broken, or our task was declared dead. class: of the error of
 * another task (keys_error_class). False: neither. */
bool pulse_why(struct pulse *pulse, char text[256], char class[64]);

/* Let pulse_stop send no farewell, so that the others declare our tasks dead. NULL is fine. */
void pulse_fall_silent(struct pulse *pulse);

/*
 * Beat a farewell and end the thread. If it hangs in the filesystem for longer than patience (ms),
 * it is left alone. NULL is fine.
 */
void pulse_stop(struct pulse *pulse, int64_t patience);

/* The token in the beats of a process: always the same for the same process, never 0. */
uint64_t pulse_token(const struct process_identity *who);

#endif
