/* SPDX-License-Identifier: MIT */
#include "agent/children/stderr_relay.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/children/error_line.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/process/bell.h"
#include "base/process/thread.h"
#include "base/xalloc.h"

#define STALL_LIMIT 10000 /* ms for a reader of our stderr to take what is left */

struct relay_stream {
	int from, into;		      /* the pipe's ends; -1: closed */
	char line[STDERR_RELAY_LINE]; /* the line being written */
	size_t length;
	struct error_line lines; /* what was chosen of the complete lines */
};

struct stderr_relay {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t drained;
	struct relay_stream *streams;
	struct pollfd *polled; /* streams, then stop */
	size_t count;
	int stop; /* bell: end once the streams are drained */
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

static void pass_on(struct stderr_relay *relay, size_t index)
{
	char bytes[8192];
	struct relay_stream *stream = &relay->streams[index];
	ssize_t n = read(stream->from, bytes, sizeof(bytes));
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n > 0)
		(void)file_write_all(STDERR_FILENO, bytes, (size_t)n);
	pthread_mutex_lock(&relay->lock);
	if (n > 0) {
		remember(stream, bytes, (size_t)n);
	} else {
		remember(stream, "\n", 1);
		close(stream->from);
		stream->from = -1;
		pthread_cond_broadcast(&relay->drained);
	}
	pthread_mutex_unlock(&relay->lock);
}

static void *work(void *context)
{
	struct stderr_relay *relay = context;
	for (;;) {
		for (size_t i = 0; i < relay->count; i++)
			relay->polled[i] =
				(struct pollfd){.fd = relay->streams[i].from, .events = POLLIN};
		relay->polled[relay->count] = (struct pollfd){.fd = relay->stop, .events = POLLIN};
		if (poll(relay->polled, relay->count + 1, -1) < 0)
			continue;
		bool drained = true;
		for (size_t i = 0; i < relay->count; i++)
			if (relay->polled[i].revents) {
				pass_on(relay, i);
				drained = false;
			}
		if (drained && relay->polled[relay->count].revents)
			return NULL;
	}
}

static void release(struct stderr_relay *relay)
{
	for (size_t i = 0; i < relay->count; i++) {
		if (relay->streams[i].from >= 0)
			close(relay->streams[i].from);
		if (relay->streams[i].into >= 0)
			close(relay->streams[i].into);
	}
	if (relay->stop >= 0)
		close(relay->stop);
	pthread_mutex_destroy(&relay->lock);
	pthread_cond_destroy(&relay->drained);
	free(relay->streams);
	free(relay->polled);
	free(relay);
}

enum status stderr_relay_start(struct stderr_relay **out, size_t count, struct error *err)
{
	struct stderr_relay *relay = xcalloc(1, sizeof(*relay));
	pthread_mutex_init(&relay->lock, NULL);
	pthread_cond_init(&relay->drained, NULL);
	relay->streams = xcalloc(count, sizeof(*relay->streams));
	relay->polled = xcalloc(count + 1, sizeof(*relay->polled));
	relay->stop = bell_open();
	int number = relay->stop < 0 ? errno : 0;
	while (number == 0 && relay->count < count) {
		int ends[2];
		if (pipe2(ends, O_CLOEXEC) < 0) {
			number = errno;
			break;
		}
		fcntl(ends[0], F_SETFL, O_NONBLOCK);
		relay->streams[relay->count].from = ends[0];
		relay->streams[relay->count++].into = ends[1];
	}
	if (number == 0)
		number = thread_start(&relay->thread, work, relay);
	if (number == 0) {
		*out = relay;
		return STATUS_OK;
	}
	release(relay);
	return error_set(err, STATUS_TEMPORARY, "cannot pass stderr on: %s", strerror(number));
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
	if (!relay)
		return;
	bell_ring(relay->stop);
	if (thread_join(relay->thread, relay, STALL_LIMIT))
		release(relay);
}
