/* SPDX-License-Identifier: MIT */
/*
 * Commands that are over as lines of a joblog, in the columns of GNU parallel's --joblog, so that
 * what reads those reads these. Pure.
 */
#ifndef QUEUE_OUTPUT_JOBLOG_H
#define QUEUE_OUTPUT_JOBLOG_H

#include "base/text.h"
#include "queue/records.h"

/* The first line, with its newline. */
#define JOBLOG_HEADING "Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand\n"

/* The words as a shell would be given them, control characters escaped: on one line. */
void joblog_command(struct text *text, const struct queue_item *item);

/*
 * One line, with its newline. Starttime is in seconds since 1970 and JobRuntime in seconds, both to
 * the millisecond; 0 where it never started. Receive: bytes of its stdout. Exitval is 0 where a
 * signal ended it.
 */
void joblog_row(
	struct text *text, const struct queue_item *item, const struct queue_result *result);

#endif
