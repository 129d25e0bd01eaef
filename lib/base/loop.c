/* SPDX-License-Identifier: MIT */
#include "base/loop.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define EVENTS 64 /* taken from the kernel at once; the rest is ready at the next wait */

enum status loop_open(struct loop *loop, struct error *err)
{
	*loop = (struct loop){.epoll = epoll_create1(EPOLL_CLOEXEC),
		.signals = {.descriptor = -1, .due = CLOCK_NEVER}};
	loop->opened = loop->epoll >= 0;
	return loop->opened ? STATUS_OK
			    : error_set(err, STATUS_TEMPORARY, "cannot wait for events: %s",
				      strerror(errno));
}

void loop_close(struct loop *loop)
{
	if (!loop->opened)
		return;
	if (loop->signals.descriptor >= 0)
		close(loop->signals.descriptor);
	close(loop->epoll);
	*loop = (struct loop){0};
}

static void attend(struct loop *loop, struct loop_watch *watch)
{
	struct epoll_event event = {.events = watch->errors_only ? 0 : EPOLLIN, .data.ptr = watch};
	watch->always = watch->descriptor >= 0 &&
			epoll_ctl(loop->epoll, EPOLL_CTL_ADD, watch->descriptor, &event) < 0 &&
			errno == EPERM && !watch->errors_only;
}

static void dismiss(struct loop *loop, struct loop_watch *watch)
{
	/* Closing alone would not do while a child between fork and exec has it open, too. */
	if (watch->descriptor >= 0 && !watch->always)
		(void)epoll_ctl(loop->epoll, EPOLL_CTL_DEL, watch->descriptor, NULL);
	watch->always = watch->ready = false;
}

void loop_add(struct loop *loop, struct loop_watch *watch)
{
	watch->ready = false;
	attend(loop, watch);
	watch->next = loop->first;
	loop->first = watch;
}

void loop_remove(struct loop *loop, struct loop_watch *watch)
{
	for (struct loop_watch **at = &loop->first; *at; at = &(*at)->next)
		if (*at == watch) {
			*at = watch->next;
			dismiss(loop, watch);
			return;
		}
}

void loop_change(struct loop *loop, struct loop_watch *watch, int descriptor)
{
	dismiss(loop, watch);
	watch->descriptor = descriptor;
	attend(loop, watch);
}

static void mark(struct loop_watch *watch, bool ready)
{
	for (; watch; watch = watch->parent)
		watch->ready = ready;
}

int64_t loop_due(const struct loop *loop)
{
	int64_t due = CLOCK_NEVER;
	for (const struct loop_watch *watch = loop->first; watch; watch = watch->next) {
		int64_t its = watch->always ? 0 : watch->due;
		due = its < due ? its : due;
	}
	return due;
}

bool loop_wait(struct loop *loop, int64_t until)
{
	struct epoll_event events[EVENTS];
	struct pollfd any = {.fd = loop->epoll, .events = POLLIN};
	bool ready = false;
	for (struct loop_watch *watch = loop->first; watch; watch = watch->next)
		mark(watch, false);
	int64_t due = loop_due(loop);
	until = due < until ? due : until;
	(void)poll(&any, 1, clock_poll_timeout(until));
	int count = epoll_wait(loop->epoll, events, EVENTS, 0);
	for (int i = 0; i < count; i++)
		mark(events[i].data.ptr, true);
	int64_t now = clock_now();
	for (struct loop_watch *watch = loop->first; watch; watch = watch->next) {
		if (watch->always || watch->due <= now)
			mark(watch, true);
		ready |= watch->ready;
	}
	return ready;
}

int loop_descriptor(const struct loop *loop)
{
	return loop->epoll;
}

enum status loop_catch(struct loop *loop, const int *numbers, size_t count, struct error *err)
{
	struct sigaction action;
	for (size_t i = 0; i < count; i++)
		if (sigaction(numbers[i], NULL, &action) == 0 && action.sa_handler == SIG_DFL)
			sigaddset(&loop->caught, numbers[i]);
	pthread_sigmask(SIG_BLOCK, &loop->caught, NULL);
	int descriptor =
		signalfd(loop->signals.descriptor, &loop->caught, SFD_CLOEXEC | SFD_NONBLOCK);
	if (descriptor < 0)
		return error_set(
			err, STATUS_TEMPORARY, "cannot receive signals: %s", strerror(errno));
	if (loop->signals.descriptor < 0) {
		loop->signals.descriptor = descriptor;
		loop_add(loop, &loop->signals);
	}
	return STATUS_OK;
}

static void do_nothing(int number)
{
	(void)number;
}

enum status loop_catch_endings(struct loop *loop, struct error *err)
{
	static const int endings[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
	struct sigaction old;
	/* A handler, not SIG_IGN: the commands that we start would ignore it, too. */
	if (sigaction(SIGPIPE, NULL, &old) == 0 && old.sa_handler == SIG_DFL)
		(void)sigaction(SIGPIPE, &(struct sigaction){.sa_handler = do_nothing}, NULL);
	return loop_catch(loop, endings, sizeof(endings) / sizeof(endings[0]), err);
}

int loop_signal(struct loop *loop, struct signalfd_siginfo *info)
{
	struct signalfd_siginfo one;
	if (loop->signals.descriptor < 0 ||
		read(loop->signals.descriptor, &one, sizeof(one)) != sizeof(one))
		return 0;
	if (info)
		*info = one;
	return (int)one.ssi_signo;
}

bool loop_is_ready(int descriptor)
{
	struct pollfd poller = {.fd = descriptor, .events = POLLIN};
	return descriptor >= 0 && poll(&poller, 1, 0) > 0;
}
