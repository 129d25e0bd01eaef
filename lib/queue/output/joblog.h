/* SPDX-License-Identifier: MIT */
/*
 * Finished commands as lines of a joblog, in the columns of GNU parallel's --joblog, so that the
 * same programs can read it. Pure.
 */
#ifndef QUEUE_OUTPUT_JOBLOG_H
#define QUEUE_OUTPUT_JOBLOG_H

#include "base/text.h"
#include "queue/records.h"

/* The first line, with its newline. */
#define JOBLOG_HEADING "Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand\n"

/* The words, quoted for a shell, with control characters escaped: always one line. */
void joblog_command(struct text *text, const struct queue_item *item);

/*
 * One line, with its newline. Starttime is in seconds since 1970 and JobRuntime in seconds, both to
 * the millisecond; 0 if the command never started. Receive: bytes of its stdout. Exitval is 0 if a
 * signal ended it.
 */
void joblog_row(
	struct text *text, const struct queue_item *item, const struct queue_result *result);

#endif
