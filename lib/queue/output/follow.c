/* SPDX-License-Identifier: MIT */
#include "queue/output/follow.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process/process.h"
#include "base/process/tree.h"
#include "queue/workers/workers.h"

enum {
	PAUSE = 300,	  /* ms between two looks */
	CALL_EVERY = 5000 /* ms between two calls of while_waiting */
};

/* One start of the command. */
struct start {
	char token[17]; /* of the lease; "": no start seen yet */
	int descriptor; /* of the file that it writes; -1: not found yet */
	uint64_t written;
};

/* ---- Finding the output ---- */

/* Whether this process is this start of the command, by its environment. */
static bool is_of_start(pid_t pid, const struct queue_view *view)
{
	char id[64], attempt[64];
	snprintf(id, sizeof(id), "PREEMPT_ITEM_ID=%" PRIu64, view->item.id);
	snprintf(attempt, sizeof(attempt), "PREEMPT_ITEM_ATTEMPT=%" PRIu64,
		view->lease.history.starts);
	return process_has_variable(pid, id) == STATUS_OK &&
	       process_has_variable(pid, attempt) == STATUS_OK;
}

/* Open the stdout or stderr of a process; -1: it is not an unnamed file (output_open). */
static int open_stream(pid_t pid, enum output_stream stream)
{
	char path[64];
	struct stat st;
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid,
		stream == OUTPUT_OUT ? STDOUT_FILENO : STDERR_FILENO);
	int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (descriptor < 0 ||
		(fstat(descriptor, &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink == 0))
		return descriptor;
	close(descriptor);
	return -1;
}

/* Look among the children of the worker. -1: not found. */
static int find_stream(pid_t worker, const struct queue_view *view, enum output_stream stream)
{
	struct tree_process *below = NULL;
	size_t count = 0;
	int descriptor = -1;
	if (tree_list(worker, SIGTERM, &below, &count, NULL) != STATUS_OK)
		return -1;
	for (size_t i = 0; i < count && descriptor < 0; i++)
		if (below[i].parent == worker && is_of_start(below[i].pid, view))
			descriptor = open_stream(below[i].pid, stream);
	free(below);
	return descriptor;
}

static enum status open_start(struct queue *queue, const struct queue_view *view,
	enum output_stream stream, int *descriptor, struct error *err)
{
	char key[QUEUE_KEY_MAX];
	struct queue_worker worker;
	workers_key(queue, key, view->lease.worker_token);
	enum status status = queue_get(queue, key, &queue_worker_record, &worker, NULL, err);
	if (status != STATUS_OK)
		return status == STATUS_NO ? STATUS_OK : status;
	if (process_check(&worker.process) == PROCESS_ELSEWHERE)
		return error_set(err, STATUS_TEMPORARY,
			"command %" PRIu64 " runs on %s, on another machine or in another "
			"container: its output can be read there while it runs, and everywhere "
			"when it is over (fetch --wait)",
			view->item.id, view->lease.host);
	*descriptor = find_stream(worker.process.pid, view, stream);
	return STATUS_OK;
}

/* ---- Writing it ---- */

static enum status write_until(
	struct start *start, uint64_t until, const struct follow *how, struct error *err)
{
	bool read_failed;
	if (until <= start->written)
		return STATUS_OK;
	int number = output_copy(start->descriptor, how->to, start->written, until, &read_failed);
	if (number)
		return error_errno(err, number, "%s the output", read_failed ? "read" : "write");
	start->written = until;
	return STATUS_OK;
}

static enum status write_more(struct start *start, const struct follow *how, struct error *err)
{
	struct stat st;
	if (start->descriptor < 0 || fstat(start->descriptor, &st) < 0)
		return STATUS_OK;
	return write_until(start, (uint64_t)st.st_size, how, err);
}

/* The command is over: write the rest. */
static enum status write_rest(struct queue *queue, struct start *start, const struct follow *how,
	const struct queue_view *view, struct error *err)
{
	const struct queue_result *result = &view->result;
	bool is_same = start->descriptor >= 0 && !strcmp(start->token, result->token);
	if (is_same)
		return write_until(
			start, how->stream == OUTPUT_OUT ? result->out : result->err, how, err);
	return view->state == QUEUE_CANCELLED
		       ? STATUS_OK
		       : output_print(queue, view->item.id, result, how->stream, how->to, err);
}

static void leave_start(struct start *start)
{
	if (start->descriptor >= 0)
		close(start->descriptor);
	*start = (struct start){.descriptor = -1};
}

/* The command runs: write its new output. */
static enum status go_on(struct queue *queue, struct start *start, const struct follow *how,
	const struct queue_view *view, struct error *err)
{
	enum status status = STATUS_OK;
	if (strcmp(start->token, view->lease.token) != 0) {
		status = write_more(start, how, err);
		leave_start(start);
		memcpy(start->token, view->lease.token, sizeof(start->token));
	}
	if (status == STATUS_OK && start->descriptor < 0)
		status = open_start(queue, view, how->stream, &start->descriptor, err);
	return status == STATUS_OK ? write_more(start, how, err) : status;
}

enum status output_follow(struct queue *queue, uint64_t id, const struct follow *how,
	struct queue_view *view, struct error *err)
{
	char prefix[QUEUE_KEY_MAX];
	struct start start = {.descriptor = -1};
	int64_t called = 0;
	enum status status = queue_inspect(queue, id, view, err);
	queue_key_at(queue, prefix, "done", id);
	while (status == STATUS_OK && view->state < QUEUE_SUCCEEDED) {
		store_revision since = view->revision;
		int64_t next = clock_after(PAUSE);
		if (view->state == QUEUE_RUNNING) {
			status = go_on(queue, &start, how, view, err);
		} else if (clock_now() - called >= CALL_EVERY) {
			called = clock_now();
			status = how->while_waiting(queue, err);
		}
		if (status != STATUS_OK)
			break;
		status = store_wait(queue->store, prefix, &since,
			clock_earlier(next, how->deadline), how->wake, err);
		if (status == STATUS_TIMEOUT && clock_now() >= how->deadline)
			status = error_set(err, STATUS_TIMEOUT,
				"command %" PRIu64 " was not over in time: it %s", id,
				view->state == QUEUE_RUNNING ? "runs" : "waits");
		else if (status == STATUS_TIMEOUT)
			status = STATUS_OK;
		if (status != STATUS_OK)
			break;
		queue_view_release(view);
		status = queue_inspect(queue, id, view, err);
	}
	if (status == STATUS_OK)
		status = write_rest(queue, &start, how, view, err);
	leave_start(&start);
	return status;
}
