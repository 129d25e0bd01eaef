/* SPDX-License-Identifier: MIT */
#include "group/pump.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bell.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/thread.h"
#include "group/error_line.h"

#define STALL_LIMIT 10000 /* ms for a reader of our stderr to take what is left */

struct stream {
	int from, into;	      /* the pipe's ends; -1: closed */
	char line[PUMP_LINE]; /* the line being written */
	size_t length;
	struct error_line lines; /* the whole ones that matter */
};

struct pump {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t drained;
	struct stream *streams;
	struct pollfd *polled; /* streams, then stop */
	size_t count;
	int stop; /* bell: no more is written to the streams */
};

static void remember(struct stream *stream, const char *bytes, size_t length)
{
	int64_t now = clock_now();
	for (size_t i = 0; i < length; i++) {
		if (bytes[i] != '\n') {
			if (stream->length < PUMP_LINE - 1)
				stream->line[stream->length++] = bytes[i];
			continue;
		}
		stream->line[stream->length] = '\0';
		if (stream->length)
			error_line_take(&stream->lines, stream->line, now);
		stream->length = 0;
	}
}

static void pass_on(struct pump *pump, size_t index)
{
	char bytes[8192];
	struct stream *stream = &pump->streams[index];
	ssize_t n = read(stream->from, bytes, sizeof(bytes));
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n > 0)
		(void)file_write_all(STDERR_FILENO, bytes, (size_t)n);
	pthread_mutex_lock(&pump->lock);
	if (n > 0) {
		remember(stream, bytes, (size_t)n);
	} else {
		remember(stream, "\n", 1);
		close(stream->from);
		stream->from = -1;
		pthread_cond_broadcast(&pump->drained);
	}
	pthread_mutex_unlock(&pump->lock);
}

static void *work(void *context)
{
	struct pump *pump = context;
	for (;;) {
		for (size_t i = 0; i < pump->count; i++)
			pump->polled[i] =
				(struct pollfd){.fd = pump->streams[i].from, .events = POLLIN};
		pump->polled[pump->count] = (struct pollfd){.fd = pump->stop, .events = POLLIN};
		if (poll(pump->polled, pump->count + 1, -1) < 0)
			continue;
		bool drained = true;
		for (size_t i = 0; i < pump->count; i++)
			if (pump->polled[i].revents) {
				pass_on(pump, i);
				drained = false;
			}
		if (drained && pump->polled[pump->count].revents)
			return NULL;
	}
}

static void release(struct pump *pump)
{
	for (size_t i = 0; i < pump->count; i++) {
		if (pump->streams[i].from >= 0)
			close(pump->streams[i].from);
		if (pump->streams[i].into >= 0)
			close(pump->streams[i].into);
	}
	if (pump->stop >= 0)
		close(pump->stop);
	pthread_mutex_destroy(&pump->lock);
	pthread_cond_destroy(&pump->drained);
	free(pump->streams);
	free(pump->polled);
	free(pump);
}

enum status pump_start(struct pump **out, size_t count, struct error *err)
{
	struct pump *pump = calloc(1, sizeof(*pump));
	if (!pump)
		return error_set(err, STATUS_TEMPORARY, "out of memory");
	pthread_mutex_init(&pump->lock, NULL);
	pthread_cond_init(&pump->drained, NULL);
	pump->streams = calloc(count, sizeof(*pump->streams));
	pump->polled = calloc(count + 1, sizeof(*pump->polled));
	pump->stop = bell_open();
	int number = pump->stop < 0 ? errno : pump->streams && pump->polled ? 0 : ENOMEM;
	while (number == 0 && pump->count < count) {
		int ends[2];
		if (pipe2(ends, O_CLOEXEC) < 0) {
			number = errno;
			break;
		}
		fcntl(ends[0], F_SETFL, O_NONBLOCK);
		pump->streams[pump->count].from = ends[0];
		pump->streams[pump->count++].into = ends[1];
	}
	if (number == 0)
		number = thread_start(&pump->thread, work, pump);
	if (number == 0) {
		*out = pump;
		return STATUS_OK;
	}
	release(pump);
	return error_set(err, STATUS_TEMPORARY, "cannot pass stderr on: %s", strerror(number));
}

int pump_input(const struct pump *pump, size_t index)
{
	return pump->streams[index].into;
}

void pump_started(struct pump *pump, size_t index)
{
	close(pump->streams[index].into);
	pump->streams[index].into = -1;
}

void pump_error_line(struct pump *pump, size_t index, int64_t patience, char line[PUMP_LINE])
{
	struct timespec until;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += patience % 1000 * 1000000;
	until.tv_sec += patience / 1000 + until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_mutex_lock(&pump->lock);
	while (pump->streams[index].from >= 0 &&
		pthread_cond_clockwait(&pump->drained, &pump->lock, CLOCK_MONOTONIC, &until) == 0)
		;
	snprintf(line, PUMP_LINE, "%s", error_line_best(&pump->streams[index].lines, clock_now()));
	pthread_mutex_unlock(&pump->lock);
}

void pump_stop(struct pump *pump)
{
	if (!pump)
		return;
	bell_ring(pump->stop);
	if (thread_join(pump->thread, pump, STALL_LIMIT))
		release(pump);
}
