/* SPDX-License-Identifier: MIT */
#include "base/loop.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/process/descriptor.h"
#include "base/process/process.h"

enum status loop_open(struct loop *loop, struct error *err)
{
	*loop = LOOP_CLOSED;
	loop->descriptor = epoll_create1(EPOLL_CLOEXEC);
	return loop->descriptor >= 0 ? STATUS_OK
				     : error_set(err, STATUS_TEMPORARY,
					       "cannot wait for events: %s", strerror(errno));
}

/* Returns 0 or an errno. */
static int watch(const struct loop *loop, int descriptor)
{
	struct epoll_event event = {.events = EPOLLIN};
	return epoll_ctl(loop->descriptor, EPOLL_CTL_ADD, descriptor, &event) < 0 ? errno : 0;
}

enum status loop_open_signals(
	struct loop *loop, const int *numbers, size_t count, struct error *err)
{
	enum status status = process_open_signals(numbers, count, &loop->signals, err);
	int number = status == STATUS_OK ? watch(loop, loop->signals) : 0;
	return number ? error_set(err, STATUS_TEMPORARY, "cannot wait for signals: %s",
				strerror(number))
		      : status;
}

void loop_close(struct loop *loop)
{
	if (loop->signals >= 0)
		close(loop->signals);
	if (loop->descriptor >= 0)
		close(loop->descriptor);
	*loop = LOOP_CLOSED;
}

void loop_watch(struct loop *loop, int descriptor)
{
	int number = descriptor >= 0 ? watch(loop, descriptor) : 0;
	if (number && number != EEXIST)
		loop_wake_at(loop, 0); /* it takes no files (EPERM), or no more */
}

void loop_forget(const struct loop *loop, int descriptor)
{
	if (descriptor >= 0)
		(void)epoll_ctl(loop->descriptor, EPOLL_CTL_DEL, descriptor, NULL);
}

void loop_wake_at(struct loop *loop, int64_t instant)
{
	loop->due = clock_earlier(loop->due, instant);
}

int64_t loop_take_due(struct loop *loop)
{
	int64_t due = loop->due;
	loop->due = CLOCK_NEVER;
	return due;
}

void loop_wait(struct loop *loop)
{
	(void)descriptor_wait(loop->descriptor, loop_take_due(loop));
}

int loop_take_signal(const struct loop *loop, struct signalfd_siginfo *info)
{
	struct signalfd_siginfo taken;
	if (loop->signals < 0 || read(loop->signals, &taken, sizeof(taken)) != sizeof(taken))
		return 0;
	if (info)
		*info = taken;
	return (int)taken.ssi_signo;
}
