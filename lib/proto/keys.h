/* SPDX-License-Identifier: MIT */
/*
 * The keys of the protocol and the values in them. Everything of an attempt lies under
 * run/RUN/ATTEMPT/, so that nothing left over by an earlier attempt can touch a later one.
 *
 *   run/RUN/LAST                                number of the newest attempt
 *   run/RUN/MEASURE                             the longest save, kept across attempts
 *   saved/RUN                                   the newest save (run/history.h)
 *   .../OPEN                                    launch id, tasks, life (base/process/life.h)
 *   .../TASK/i                                  task i has joined: its agent's process
 *   .../ALL_JOINED                              all tasks have joined
 *   .../SEAL                                    why no task can join: claim, death, ...
 *   .../TERMINATED_WORKER                       the claim
 *   .../DEADLINE                                when a machine goes away; only moves earlier
 *   .../ROUND/r                                 round r was opened
 *   .../STEP/r/i                                report of task i
 *   .../RUN_TO_CHECKPOINT                       decision of round 1
 *   .../LAST_RUN_TO_CHECKPOINT/r                decision of round r > 1
 *   .../RECEIVED_SIGNAL_<decision>_i            acknowledgement of task i (keys_decision)
 *   .../SAVED/r/i                               task i has saved
 *   .../ALL_SAVED/r                             no save of round r is outstanding
 *   .../RESUME                                  the checkpoint that all tasks resume from
 *   .../ERROR                                   the first failure
 *   .../DEAD/i, .../LEFT/i                      task i was declared dead; has left
 *   .../CLOSED                                  the attempt is over, and how (run/outcome.h)
 *   .../NEXT                                    the decision whether a next attempt follows
 *   .../REFUSED                                 the decision, after the job, not to run again
 *
 * Writing most of these keys notifies all tasks of the attempt (news, store.h). TASK, STEP, SAVED
 * and the acknowledgements do not: only a task that waits for all records of a kind reads them. The
 * transaction that writes TASK, STEP or SAVED also counts that kind (view.h). So the task whose
 * record is the last knows that all are there, and reads them, once. LEFT notifies only in a small
 * attempt, and only while other tasks wait in a round for the task that leaves.
 *
 * Values are JSON objects on one line. A value that cannot be parsed never crashes a reader; the
 * comment at each reader says how it is treated (scenario SY-11, docs/scenarios.md).
 */
#ifndef PROTO_KEYS_H
#define PROTO_KEYS_H

#include <stdint.h>

#include "base/process/life.h"
#include "base/process/process.h"
#include "base/text.h"
#include "proto/agreement/agreement.h"

#define KEYS_MAX 512 /* bytes of a key with its NUL */

/* The largest boundary. Steps have at most 18 digits, as on a board (client/board.h); the boundary
 * after a step may be one more. */
#define KEYS_STEP_MAX UINT64_C(1000000000000000000)

/* The attempt that a key or a program belongs to. */
struct attempt {
	char run[129];
	uint64_t number; /* 1, 2, ... */
	uint64_t tasks;
	char prefix[192]; /* "run/RUN/000001/" */
	/* From the record OPEN; "" if that was not read: */
	char launch[160]; /* launch id (run/identity.h) */
	char life[LIFE_SIZE];
};
void attempt_name(struct attempt *attempt, const char *run, uint64_t number, uint64_t tasks);

/* "RUN/000001": the group of its beats and news (store.h). */
#define KEYS_GROUP 192
void keys_group(const struct attempt *attempt, char group[KEYS_GROUP]);

/* "run/RUN/000001/" + the formatted rest. */
void keys_of(const struct attempt *attempt, char key[KEYS_MAX], const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* "RUN_TO_CHECKPOINT" or "LAST_RUN_TO_CHECKPOINT/r", without the prefix. */
void keys_decision(uint64_t round, char name[64]);

/* The words in values for these enums. The parsers return false for an unknown word. */
const char *keys_then_word(enum agreement_then then);
bool keys_then_parse(const char *word, enum agreement_then *then);
const char *keys_kind_word(enum agreement_kind kind);
bool keys_kind_parse(const char *word, enum agreement_kind *kind);
const char *keys_reason_word(enum agreement_reason reason);
bool keys_reason_parse(const char *word, enum agreement_reason *reason);

/* Why a task was declared dead. */
enum death_cause { DEATH_SILENT, DEATH_GONE, DEATH_RESTARTED, DEATH_HUNG };
const char *keys_death_word(enum death_cause cause);

/* A set of tasks as text: "0-3,7"; "" for none. chosen(context, i) says whether i is in it. */
void keys_write_set(uint64_t tasks, bool (*chosen)(const void *context, uint64_t task),
	const void *context, struct text *text);
/* The same for the tasks with marks[task]. */
void keys_write_marks(uint64_t tasks, const bool *marks, struct text *text);
/* Mark the tasks of the text in set[tasks]; false if it cannot be parsed. */
bool keys_read_set(const char *text, uint64_t tasks, bool *set);

/*
 * The name of the exception that the line names, without its module: OutOfMemoryError of "[rank1]:
 * torch.OutOfMemoryError: CUDA out of memory". "": it names none, as "bash: line 3: ...".
 */
void keys_error_class(const char *line, char class[64]);

#endif
