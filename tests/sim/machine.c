/* SPDX-License-Identifier: MIT */
/*
 * The machines: threads, clocks, poll and descriptors, processes. Some functions replace those of
 * the same name in libc, in base/process/bell.c, base/process/thread.c and base/process/process.c.
 */
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/process/bell.h"
#include "base/process/thread.h"
#include "broken.h"
#include "kernel.h"
#include "nothing.h"

#define MOST_SPINS 20000 /* polls and calls of the store at one instant: more are a busy loop */
#define FIRST_PID  100

/* ---- Threads ---- */

struct process *process_current(void)
{
	return kernel.running ? kernel.running->process : NULL;
}

static void work(void *context)
{
	struct thread *thread = context;
	thread->work(thread->context);
}

static void wake_at(struct thread *thread, int64_t time)
{
	const struct process *process = thread->process;
	thread->epoch++;
	kernel_at(time, KERNEL_THREAD,
		process->index * MOST_THREADS + (int)(thread - process->thread), thread->epoch);
}

static int new_bell(struct process *process, bool signals)
{
	kernel.bell =
		kernel_room(kernel.bell, kernel.bells, &kernel.bell_room, sizeof(*kernel.bell));
	kernel.bell[kernel.bells] = (struct bell){.process = process, .signals = signals};
	return FIRST_BELL + kernel.bells++;
}

struct thread *process_new_thread(
	struct process *process, void *(*run)(void *context), void *context)
{
	for (int i = 0; i < MOST_THREADS; i++) {
		struct thread *thread = &process->thread[i];
		if (thread->fiber)
			continue;
		uint32_t epoch = thread->epoch;
		*thread = (struct thread){.process = process,
			.work = run,
			.context = context,
			.epoch = epoch,
			.finished = new_bell(process, false)};
		thread->fiber = fiber_new(work, thread);
		wake_at(thread, kernel.now);
		return thread;
	}
	abort();
}

bool process_new(struct process *process, int machine, int64_t clock)
{
	if (kernel.processes == MOST_PROCESSES)
		return false;
	*process = (struct process){.index = kernel.processes, .clock = clock, .alive = true};
	struct process_identity *who = &process->who;
	snprintf(who->host, sizeof(who->host), "machine%d", machine);
	snprintf(who->boot, sizeof(who->boot), "boot%d", machine);
	who->pid_namespace = who->time_namespace = 1;
	who->pid = FIRST_PID + process->index;
	who->start = (uint64_t)(1000 + process->index);
	kernel.process = kernel_room(
		kernel.process, kernel.processes, &kernel.process_room, sizeof(*kernel.process));
	kernel.process[kernel.processes++] = process;
	return true;
}

static void pause_until(int64_t time)
{
	struct thread *self = kernel.running;
	if (time != CLOCK_NEVER)
		wake_at(self, time);
	else
		self->epoch++;
	fiber_pause();
}

static void end_threads(struct process *process)
{
	for (int i = 0; i < MOST_THREADS; i++) {
		if (process->thread[i].fiber)
			fiber_free(process->thread[i].fiber);
		process->thread[i].fiber = NULL;
	}
}

void thread_run(int who, uint32_t epoch)
{
	struct process *process = kernel.process[who / MOST_THREADS];
	struct thread *thread = &process->thread[who % MOST_THREADS];
	if (!thread->fiber || thread->epoch != epoch || !process_lives(process))
		return;
	kernel.running = thread;
	bool returned = fiber_run(thread->fiber);
	kernel.running = NULL;
	if (!returned)
		return;
	fiber_free(thread->fiber);
	thread->fiber = NULL;
	bell_ring(thread->finished);
	if (process->exited)
		end_threads(process);
}

void kernel_sleep(int64_t microseconds)
{
	if (kernel.running && microseconds > 0)
		pause_until(kernel.now + microseconds);
}

void process_kill(struct process *process)
{
	process->alive = false;
	end_threads(process);
}

void process_exit(struct process *process)
{
	process->exited = true;
}

int thread_start(pthread_t *thread, void *(*run)(void *), void *context)
{
	*thread = (pthread_t)process_new_thread(process_current(), run, context);
	return 0;
}

bool thread_join(pthread_t which, const void *context, int64_t patience)
{
	(void)context;
	struct thread *thread = (struct thread *)which;
	struct pollfd over = {.fd = thread->finished, .events = POLLIN};
	if (thread->fiber)
		(void)poll(&over, 1, clock_poll_timeout(clock_after(patience)));
	return !thread->fiber;
}

ANSWERS(0, int, pthread_setname_np, pthread_t, const char *)

/* ---- Clocks and chance ---- */

int clock_gettime(clockid_t id, struct timespec *t)
{
	const struct process *process = process_current();
	int64_t off = CLOCK_ZERO + (process ? process->clock : 0);
	int64_t microseconds = kernel.now + off * MS;
	if (id == CLOCK_REALTIME)
		microseconds += INT64_C(1700000000) * 1000000;
	if (process && (id == CLOCK_REALTIME || broken == TIME_IS_MONOTONIC))
		microseconds += process->wall * MS;
	*t = (struct timespec){microseconds / 1000000, microseconds % 1000000 * 1000};
	return 0;
}

ssize_t getrandom(void *buffer, size_t length, unsigned flags)
{
	unsigned char *bytes = buffer;
	struct random *r = process_current() ? &kernel.random : &kernel.outside;
	(void)flags;
	for (size_t i = 0; i < length; i++)
		bytes[i] = (unsigned char)(random_next(r) >> 24);
	return (ssize_t)length;
}

/* ---- Descriptors: all are bells ---- */

static struct bell *bell_of(int number)
{
	int index = number - FIRST_BELL;
	return index >= 0 && index < kernel.bells && !kernel.bell[index].closed
		       ? &kernel.bell[index]
		       : NULL;
}

/* Return true if `number` is the bell `other`, or watches it, as an epoll descriptor does. */
static bool hears(int number, int other)
{
	const struct bell *bell = bell_of(number);
	bool heard = number == other;
	for (int i = 0; bell && i < bell->watches && !heard; i++)
		heard = hears(bell->watched[i], other);
	return heard;
}

static bool is_rung(int number)
{
	const struct bell *bell = bell_of(number);
	bool rung = bell && bell->count;
	for (int i = 0; bell && i < bell->watches && !rung; i++)
		rung = is_rung(bell->watched[i]);
	return rung;
}

int bell_open(void)
{
	return new_bell(process_current(), false);
}

void bell_ring(int number)
{
	struct bell *bell = bell_of(number);
	if (!bell)
		return;
	bell->count++;
	for (int i = 0; bell->process && i < MOST_THREADS; i++) {
		struct thread *thread = &bell->process->thread[i];
		for (int k = 0; thread->fiber && k < thread->waits; k++)
			if (hears(thread->waits_on[k], number))
				wake_at(thread, kernel.now);
	}
}

void bell_hush(int number)
{
	struct bell *bell = bell_of(number);
	if (bell)
		bell->count = 0;
}

void process_poke(struct process *process)
{
	bell_ring(process->signals);
}

int signalfd(int descriptor, const sigset_t *mask, int flags)
{
	(void)descriptor, (void)mask, (void)flags;
	struct process *process = process_current();
	process->signals = new_bell(process, true);
	return process->signals;
}

int epoll_create1(int flags)
{
	(void)flags;
	return new_bell(process_current(), false);
}

int epoll_ctl(int descriptor, int action, int watched, struct epoll_event *event)
{
	struct bell *bell = bell_of(descriptor);
	int kept = 0;
	(void)event;
	/* Drop watched bells that were closed. */
	for (int i = 0; i < bell->watches; i++)
		if (bell_of(bell->watched[i]) && bell->watched[i] != watched)
			bell->watched[kept++] = bell->watched[i];
	bell->watches = kept;
	assert(action != EPOLL_CTL_ADD || bell->watches < MOST_WATCHED);
	if (action == EPOLL_CTL_ADD)
		bell->watched[bell->watches++] = watched;
	return 0;
}

/* From a descriptor of signals: read the signal that was sent last. */
ssize_t read(int descriptor, void *buffer, size_t length)
{
	struct bell *bell = bell_of(descriptor);
	if (!bell)
		return descriptor < FIRST_BELL ? syscall(SYS_read, descriptor, buffer, length) : -1;
	struct process *process = bell->process;
	bell->count = 0;
	if (!bell->signals || !process->signal) {
		errno = EAGAIN;
		return -1;
	}
	*(struct signalfd_siginfo *)buffer =
		(struct signalfd_siginfo){.ssi_signo = (uint32_t)process->signal};
	process->signal = 0;
	return (ssize_t)length;
}

int close(int descriptor)
{
	struct bell *bell = bell_of(descriptor);
	if (bell)
		bell->closed = true;
	return descriptor < FIRST_BELL ? (int)syscall(SYS_close, descriptor) : 0;
}

/* Returns the number of readable descriptors. Empties a bell of signals. */
static int look_at(struct pollfd *polled, nfds_t count)
{
	int ready = 0;
	for (nfds_t i = 0; i < count; i++) {
		struct bell *bell = bell_of(polled[i].fd);
		polled[i].revents = is_rung(polled[i].fd) ? POLLIN : 0;
		ready += polled[i].revents != 0;
		if (bell && bell->signals)
			bell->count = 0;
	}
	return ready;
}

void machine_spin(void)
{
	if (++kernel.spins <= MOST_SPINS)
		return;
	kernel_violate("busy", "process %d asks without end", kernel.running->process->who.pid);
	pause_until(CLOCK_NEVER);
}

int poll(struct pollfd *polled, nfds_t count, int timeout)
{
	struct thread *self = kernel.running;
	int ready = look_at(polled, count);
	if (!self)
		return ready;
	if (timeout != 0 && self == &self->process->thread[0] && kernel.world->inspect)
		kernel.world->inspect(self->process);
	if (ready || timeout == 0) {
		machine_spin();
		return ready;
	}
	int64_t until = timeout < 0 ? CLOCK_NEVER : (kernel.now / MS + timeout) * MS;
	self->waits = 0;
	for (nfds_t i = 0; i < count; i++) {
		if (!bell_of(polled[i].fd))
			continue;
		assert(self->waits < MOST_WAITS);
		self->waits_on[self->waits++] = polled[i].fd;
	}
	pause_until(until);
	self->waits = 0;
	return look_at(polled, count);
}

/* ---- Processes and signals ---- */

int sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
	(void)how, (void)set;
	if (old)
		sigemptyset(old);
	return 0;
}

int gethostname(char *name, size_t length)
{
	const struct process *process = process_current();
	snprintf(name, length, "%s", process ? process->who.host : "world");
	return 0;
}

enum status process_identify(pid_t pid, struct process_identity *identity, struct error *err)
{
	static const struct process_identity world = {.host = "world", .boot = "world", .pid = 1};
	const struct process *process = process_current();
	(void)pid, (void)err;
	*identity = process ? process->who : world;
	return STATUS_OK;
}

enum process_state process_check(const struct process_identity *identity)
{
	const struct process *self = process_current();
	int index = identity->pid - FIRST_PID;
	if (!self || strcmp(self->who.boot, identity->boot) != 0 || index < 0 ||
		index >= kernel.processes)
		return PROCESS_ELSEWHERE;
	/* Processes that do not see others are in containers of their own. */
	if (!self->sees_others && self->index != index)
		return PROCESS_ELSEWHERE;
	return process_lives(kernel.process[index]) ? PROCESS_ALIVE : PROCESS_GONE;
}

ANSWERS(0, pid_t, process_parent, pid_t)
ANSWERS(0, pid_t, process_find_ancestor, pid_t, bool (*)(pid_t, const void *), const void *)
ANSWERS(false, bool, process_is_ancestor, pid_t, pid_t)

enum status process_open_signals(
	const int *numbers, size_t count, int *descriptor, struct error *err)
{
	(void)numbers, (void)count, (void)err;
	sigset_t none;
	sigemptyset(&none);
	*descriptor = signalfd(-1, &none, 0);
	return STATUS_OK;
}
