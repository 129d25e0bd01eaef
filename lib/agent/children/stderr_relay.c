/* SPDX-License-Identifier: MIT */
#include "agent/children/stderr_relay.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/children/error_line.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/loop.h"
#include "base/process/descriptor.h"
#include "base/worker.h"
#include "base/xalloc.h"

#define STALL_LIMIT 10000 /* ms for a reader of our stderr to take what is left */

struct relay_stream {
	int from, into;		      /* the pipe's ends; -1: closed */
	char line[STDERR_RELAY_LINE]; /* the line being written */
	size_t length;
	struct error_line lines; /* what was chosen of the complete lines */
};

struct stderr_relay {
	struct worker *worker; /* it ends once the streams are drained */
	struct loop loop;
	pthread_mutex_t lock;
	pthread_cond_t drained;
	struct relay_stream *streams;
	size_t count;
};

static void remember(struct relay_stream *stream, const char *bytes, size_t length)
{
	int64_t now = clock_now();
	for (size_t i = 0; i < length; i++) {
		if (bytes[i] != '\n') {
			if (stream->length < STDERR_RELAY_LINE - 1)
				stream->line[stream->length++] = bytes[i];
			continue;
		}
		stream->line[stream->length] = '\0';
		if (stream->length)
			error_line_take(&stream->lines, stream->line, now);
		stream->length = 0;
	}
}

/* False: there is nothing to pass on now. */
static bool pass_on(struct stderr_relay *relay, struct relay_stream *stream)
{
	char bytes[8192];
	ssize_t n = stream->from < 0 ? -1 : read(stream->from, bytes, sizeof(bytes));
	if (stream->from < 0 || (n < 0 && (errno == EINTR || errno == EAGAIN)))
		return false;
	if (n > 0)
		(void)file_write_all(STDERR_FILENO, bytes, (size_t)n);
	pthread_mutex_lock(&relay->lock);
	if (n > 0) {
		remember(stream, bytes, (size_t)n);
	} else {
		remember(stream, "\n", 1);
		loop_forget(&relay->loop, stream->from);
		close(stream->from);
		stream->from = -1;
		pthread_cond_broadcast(&relay->drained);
	}
	pthread_mutex_unlock(&relay->lock);
	return true;
}

static void work(void *context)
{
	struct stderr_relay *relay = context;
	bool drained;
	do {
		drained = true;
		loop_wait(&relay->loop);
		for (size_t i = 0; i < relay->count; i++)
			drained &= !pass_on(relay, &relay->streams[i]);
	} while (!drained || !descriptor_is_ready(worker_wake(relay->worker)));
}

static void release(struct stderr_relay *relay)
{
	for (size_t i = 0; i < relay->count; i++) {
		if (relay->streams[i].from >= 0)
			close(relay->streams[i].from);
		if (relay->streams[i].into >= 0)
			close(relay->streams[i].into);
	}
	loop_close(&relay->loop);
	pthread_mutex_destroy(&relay->lock);
	pthread_cond_destroy(&relay->drained);
	free(relay->streams);
	free(relay);
}

enum status stderr_relay_start(struct stderr_relay **out, size_t count, struct error *err)
{
	struct stderr_relay *relay = xcalloc(1, sizeof(*relay));
	pthread_mutex_init(&relay->lock, NULL);
	pthread_cond_init(&relay->drained, NULL);
	relay->streams = xcalloc(count, sizeof(*relay->streams));
	enum status status = loop_open(&relay->loop, err);
	while (status == STATUS_OK && relay->count < count) {
		int ends[2];
		if (pipe2(ends, O_CLOEXEC) < 0) {
			status = error_errno(err, errno, "pass stderr on");
			break;
		}
		fcntl(ends[0], F_SETFL, O_NONBLOCK);
		loop_watch(&relay->loop, ends[0]);
		relay->streams[relay->count].from = ends[0];
		relay->streams[relay->count++].into = ends[1];
	}
	if (status == STATUS_OK)
		status = worker_start(&relay->worker, "stderr", err);
	if (status != STATUS_OK) {
		release(relay);
		return status;
	}
	loop_watch(&relay->loop, worker_wake(relay->worker));
	worker_run(relay->worker, work, relay);
	*out = relay;
	return STATUS_OK;
}

int stderr_relay_input(const struct stderr_relay *relay, size_t index)
{
	return relay->streams[index].into;
}

void stderr_relay_started(struct stderr_relay *relay, size_t index)
{
	close(relay->streams[index].into);
	relay->streams[index].into = -1;
}

void stderr_relay_line(
	struct stderr_relay *relay, size_t index, int64_t patience, char line[STDERR_RELAY_LINE])
{
	struct timespec until;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += patience % 1000 * 1000000;
	until.tv_sec += patience / 1000 + until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_mutex_lock(&relay->lock);
	while (relay->streams[index].from >= 0 &&
		pthread_cond_clockwait(&relay->drained, &relay->lock, CLOCK_MONOTONIC, &until) == 0)
		;
	snprintf(line, STDERR_RELAY_LINE, "%s",
		error_line_best(&relay->streams[index].lines, clock_now()));
	pthread_mutex_unlock(&relay->lock);
}

void stderr_relay_stop(struct stderr_relay *relay)
{
	if (relay && worker_stop(relay->worker, STALL_LIMIT))
		release(relay);
}
