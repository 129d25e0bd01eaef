/* SPDX-License-Identifier: MIT */
/* What people and programs are told of commands and workers: names, joblogs, progress. */
#ifndef QUEUE_SAY_H
#define QUEUE_SAY_H

#include "base/text.h"
#include "queue/work.h"

/* Choose name and index, from the options and the environment; also slots, period and limit. */
void say_name(const struct queue_work *options, struct queue_worker *worker);

/* The columns of a terminal; 0: it is none. */
size_t say_width(int descriptor);
size_t say_characters(const char *text);
/* Cut text to so many characters, the last of which is then "…"; 0: any. */
void say_cut(struct text *text, size_t width);

/* Commands that are over as lines, in the columns of GNU parallel's --joblog. */
#define JOBLOG_HEADING "Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand\n"
/* The words, quoted for a shell, with control characters escaped: always one line. */
void joblog_command(struct text *text, const struct queue_item *item);
/* One line, with its newline. Times are in seconds, to the millisecond; 0: it never started. */
void joblog_row(
	struct text *text, const struct queue_item *item, const struct queue_result *result);

/* Show on the terminal "[####----] 12/100, 4 running, 1 failed, 35s left". over: of them, took ms;
 * 0: not known. */
void say_progress(const uint64_t in[QUEUE_STATES], uint64_t over, int64_t took);

#endif
