/* SPDX-License-Identifier: MIT */
#include "base/loop.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/process/descriptor.h"
#include "base/process/process.h"

enum status loop_open(struct loop *loop, const int *signals, size_t count, struct error *err)
{
	*loop = LOOP_CLOSED;
	loop->descriptor = epoll_create1(EPOLL_CLOEXEC);
	if (loop->descriptor < 0)
		return error_set(
			err, STATUS_TEMPORARY, "cannot wait for events: %s", strerror(errno));
	enum status status =
		count ? process_open_signals(signals, count, &loop->signals, err) : STATUS_OK;
	loop_watch(loop, loop->signals);
	return status;
}

void loop_close(struct loop *loop)
{
	if (loop->signals >= 0)
		close(loop->signals);
	if (loop->descriptor >= 0)
		close(loop->descriptor);
	*loop = LOOP_CLOSED;
}

void loop_watch(const struct loop *loop, int descriptor)
{
	struct epoll_event event = {.events = EPOLLIN};
	if (descriptor >= 0)
		(void)epoll_ctl(loop->descriptor, EPOLL_CTL_ADD, descriptor, &event);
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

void loop_wait(struct loop *loop)
{
	(void)descriptor_wait(loop->descriptor, loop->due);
	loop->due = CLOCK_NEVER;
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
