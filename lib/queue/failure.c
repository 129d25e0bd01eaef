/* SPDX-License-Identifier: MIT */
/* The failure of a queue: reading it, and describing it. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "queue/moves.h"

void queue_failure_of(const struct queue_item *item, const struct queue_result *result,
	struct queue_failure *failure)
{
	struct text command = {.limit = 4096};
	*failure = (struct queue_failure){
		.id = item->id, .ending = result->ending, .utc = result->ended, .halt = item->halt};
	memcpy(failure->worker, result->worker, sizeof(failure->worker));
	memcpy(failure->host, result->host, sizeof(failure->host));
	if (item->tag)
		text_escape(failure->tag, sizeof(failure->tag), item->tag, strlen(item->tag));
	for (size_t i = 0; item->argv && item->argv[i]; i++) {
		text_add(&command, i ? " " : "");
		text_add_shell_word(&command, item->argv[i]);
	}
	text_escape(failure->command, sizeof(failure->command), text_string(&command),
		strlen(text_string(&command)));
	text_release(&command);
}

void queue_ending_describe(const struct queue_ending *ending, char text[64])
{
	switch (ending->kind) {
	case ENDING_EXITED: snprintf(text, 64, "ended with exit code %d", ending->code); break;
	case ENDING_SIGNALLED: snprintf(text, 64, "died of signal %d", ending->number); break;
	case ENDING_TIMED_OUT: snprintf(text, 64, "took longer than its timeout"); break;
	case ENDING_LOST: snprintf(text, 64, "lost its worker too many times"); break;
	case ENDING_CANNOT: snprintf(text, 64, "could not be started"); break;
	case ENDING_PREEMPTED:
	case ENDING_CANCELLED: snprintf(text, 64, "was %s", queue_ending_word(ending->kind)); break;
	}
}

void queue_failure_say(
	const struct queue *queue, const struct queue_failure *failure, struct error *err)
{
	char how[64], cancelled[96] = "", others[64] = "";
	queue_ending_describe(&failure->ending, how);
	if (failure->cancelled)
		snprintf(cancelled, sizeof(cancelled),
			"; %" PRIu64 " %s cancelled (retry --cancelled puts them back)",
			failure->cancelled, failure->cancelled == 1 ? "other was" : "others were");
	if (failure->others)
		snprintf(others, sizeof(others), "; so did %" PRIu64 " %s", failure->others,
			failure->others == 1 ? "other" : "others");
	error_set(err, STATUS_BROKEN,
		"queue %s: command %" PRIu64 "%s%s%s (%s) %s on %s%s%s%s%s; "
		"join says so until it is retried or forgotten",
		queue->name, failure->id, *failure->tag ? " [" : "", failure->tag,
		*failure->tag ? "]" : "", failure->command, how, failure->worker,
		*failure->ending.text ? ": " : "", failure->ending.text, others, cancelled);
}
