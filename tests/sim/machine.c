/* SPDX-License-Identifier: MIT */
/*
 * The kernel of the world: threads, clocks, poll and descriptors, processes and signals. These
 * functions stand in for those of the same name in libc, in base/bell.c, base/thread.c and
 * base/process.c.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/bell.h"
#include "base/thread.h"
#include "sim.h"

#define MOST_SPINS 20000 /* polls at one instant: more is a busy loop */

struct world *machine_world;

/* ---- Threads ---- */

struct node *machine_current(void)
{
	struct world *w = machine_world;
	return w && w->running ? w->running->node : NULL;
}

static int thread_number(const struct thread *thread)
{
	const struct node *node = thread->node;
	return node->index * MOST_THREADS + (int)(thread - node->thread);
}

static void run_thread(void *context)
{
	struct thread *thread = context;
	thread->work(thread->context);
}

static void wake_at(struct world *w, struct thread *thread, int64_t time)
{
	thread->epoch++;
	world_at(w, time, EVENT_THREAD, thread_number(thread), thread->epoch);
}

struct thread *machine_new_thread(struct node *node, void *(*work)(void *context), void *context)
{
	for (int i = 0; i < MOST_THREADS; i++) {
		struct thread *thread = &node->thread[i];
		if (thread->fiber)
			continue;
		uint32_t epoch = thread->epoch;
		*thread = (struct thread){.node = node,
			.work = work,
			.context = context,
			.epoch = epoch,
			.finished = machine_new_bell(node, false)};
		thread->fiber = fiber_new(run_thread, thread);
		wake_at(node->world, thread, node->world->now);
		return thread;
	}
	abort();
}

struct node *machine_new_node(struct world *w, int agent)
{
	if (w->nodes == MOST_NODES)
		return NULL;
	struct node *node = &w->node[w->nodes];
	int machine = agent < 0 ? MOST_TASKS : schedule_machine_of(w->schedule, agent);
	*node = (struct node){.world = w, .index = w->nodes++, .agent = agent, .alive = true};
	struct process_identity *who = &node->who;
	snprintf(who->host, sizeof(who->host), "machine%d", machine);
	snprintf(who->boot, sizeof(who->boot), "boot%d", machine);
	who->pid_namespace = who->time_namespace = 1;
	who->pid = 100 + node->index;
	who->start = (uint64_t)(1000 + node->index);
	return node;
}

static void pause_until(struct world *w, int64_t time)
{
	struct thread *self = w->running;
	if (time != CLOCK_NEVER)
		wake_at(w, self, time);
	else
		self->epoch++;
	fiber_pause();
}

static void end_threads(struct node *node)
{
	for (int i = 0; i < MOST_THREADS; i++) {
		if (node->thread[i].fiber)
			fiber_free(node->thread[i].fiber);
		node->thread[i].fiber = NULL;
	}
}

void machine_run(struct world *w, int who, uint32_t epoch)
{
	struct node *node = &w->node[who / MOST_THREADS];
	struct thread *thread = &node->thread[who % MOST_THREADS];
	if (!thread->fiber || thread->epoch != epoch || !node_lives(node))
		return;
	w->running = thread;
	bool returned = fiber_run(thread->fiber);
	w->running = NULL;
	if (!returned)
		return;
	fiber_free(thread->fiber);
	thread->fiber = NULL;
	machine_ring(w, thread->finished);
	if (node->exited)
		end_threads(node);
}

void machine_sleep(struct world *w, int64_t microseconds)
{
	if (w->running && microseconds > 0)
		pause_until(w, w->now + microseconds);
}

void machine_kill(struct node *node, const char *why)
{
	struct world *w = node->world;
	if (!node_lives(node))
		return;
	TRACE(w, NOBODY, "process %d of agent %d dies: %s", node->who.pid, node->agent, why);
	node->alive = false;
	node->died_at = w->now;
	end_threads(node);
	for (int i = 0; i < w->schedule->tasks && node->agent >= 0 && !node->ghost; i++) {
		if (schedule_agent_of(w->schedule, i) != node->agent)
			continue;
		w->task[i].seat = NULL;
		training_end(w, i, 137);
	}
	node->self = NULL;
}

int thread_start(pthread_t *thread, void *(*work)(void *), void *context)
{
	*thread = (pthread_t)machine_new_thread(machine_current(), work, context);
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

int pthread_setname_np(pthread_t thread, const char *name)
{
	(void)thread, (void)name;
	return 0;
}

/* ---- Clocks and chance ---- */

int clock_gettime(clockid_t id, struct timespec *t)
{
	const struct world *w = machine_world;
	const struct node *node = machine_current();
	int64_t off = w ? clock_off(w, node ? node->agent : NOBODY) : 0;
	int64_t microseconds = (w ? w->now : 0) + off * MS;
	if (id == CLOCK_REALTIME)
		microseconds += INT64_C(1700000000) * 1000000;
	*t = (struct timespec){microseconds / 1000000, microseconds % 1000000 * 1000};
	return 0;
}

ssize_t getrandom(void *buffer, size_t length, unsigned flags)
{
	(void)flags;
	unsigned char *bytes = buffer;
	static struct random outside = {7};
	struct random *r = machine_current() ? &machine_world->random : &outside;
	for (size_t i = 0; i < length; i++)
		bytes[i] = (unsigned char)(random_next(r) >> 24);
	return (ssize_t)length;
}

/* ---- Descriptors: bells are all there are ---- */

int machine_new_bell(struct node *node, bool signals)
{
	struct world *w = node ? node->world : machine_world;
	if (w->bells == MOST_BELLS)
		abort();
	w->bell[w->bells] = (struct bell){.node = node, .signals = signals};
	return FIRST_BELL + w->bells++;
}

static struct bell *bell_of(struct world *w, int number)
{
	int index = number - FIRST_BELL;
	return index >= 0 && index < w->bells ? &w->bell[index] : NULL;
}

void machine_ring(struct world *w, int number)
{
	struct bell *bell = bell_of(w, number);
	if (!bell)
		return;
	bell->count++;
	for (int i = 0; bell->node && i < MOST_THREADS; i++) {
		struct thread *thread = &bell->node->thread[i];
		for (int k = 0; thread->fiber && k < thread->waits; k++)
			if (thread->waits_on[k] == number)
				wake_at(w, thread, w->now);
	}
}

void machine_poke(struct node *node)
{
	machine_ring(node->world, node->signals);
}

int bell_open(void)
{
	return machine_new_bell(machine_current(), false);
}

void bell_ring(int descriptor)
{
	machine_ring(machine_world, descriptor);
}

void bell_hush(int descriptor)
{
	struct bell *bell = bell_of(machine_world, descriptor);
	if (bell)
		bell->count = 0;
}

int signalfd(int descriptor, const sigset_t *mask, int flags)
{
	(void)descriptor, (void)mask, (void)flags;
	struct node *node = machine_current();
	node->signals = machine_new_bell(node, true);
	return node->signals;
}

/* How many are readable; the bell of signals is emptied. */
static int look_at(struct world *w, struct pollfd *polled, nfds_t count)
{
	int ready = 0;
	for (nfds_t i = 0; i < count; i++) {
		struct bell *bell = bell_of(w, polled[i].fd);
		polled[i].revents = bell && bell->count ? POLLIN : 0;
		ready += polled[i].revents != 0;
		if (bell && bell->signals)
			bell->count = 0;
	}
	return ready;
}

int poll(struct pollfd *polled, nfds_t count, int timeout)
{
	struct world *w = machine_world;
	struct thread *self = w->running;
	int ready = look_at(w, polled, count);
	if (!self)
		return ready;
	if (timeout != 0 && self == &self->node->thread[0])
		agent_inspect(self->node);
	if (ready || timeout == 0) {
		if (++w->spins > MOST_SPINS) {
			world_violate(
				w, "busy", "process %d polls without end", self->node->who.pid);
			pause_until(w, CLOCK_NEVER);
		}
		return ready;
	}
	int64_t until = timeout < 0 ? CLOCK_NEVER : (w->now / MS + timeout) * MS;
	self->waits = 0;
	for (nfds_t i = 0; i < count && self->waits < 4; i++)
		if (bell_of(w, polled[i].fd))
			self->waits_on[self->waits++] = polled[i].fd;
	pause_until(w, until);
	self->waits = 0;
	return look_at(w, polled, count);
}

/* ---- Processes and signals ---- */

#define FIRST_CHILD 10000 /* the numbers of the training processes */

static struct task *child_of(struct world *w, pid_t pid)
{
	int task = pid - FIRST_CHILD;
	return task >= 0 && task < w->schedule->tasks ? &w->task[task] : NULL;
}

static int wait_status_of(int code)
{
	return code > 128 ? code - 128 : code << 8;
}

int kill(pid_t pid, int number)
{
	struct world *w = machine_world;
	struct node *node = machine_current();
	int task = -pid - FIRST_CHILD;
	if (!node || node->ghost || !child_of(w, -pid))
		return 0;
	if (number == SIGTERM && !w->task[task].stopping) {
		check_ending(w, task);
		w->task[task].stopping = true;
		TRACE(w, task, "TERM");
		if (!w->schedule->trainee[task].ignores_term)
			training_end(w, task, 143);
	} else if (number == SIGKILL) {
		training_end(w, task, 137);
	}
	return 0;
}

/* The children of an agent that have ended, as it may know. */
int waitid(idtype_t type, id_t id, siginfo_t *info, int options)
{
	struct world *w = machine_world;
	const struct node *node = machine_current();
	(void)type, (void)id, (void)options;
	for (int i = 0; node && !node->ghost && i < w->schedule->tasks; i++) {
		if (schedule_agent_of(w->schedule, i) != node->agent ||
			!w->task[i].training.unreaped)
			continue;
		info->si_pid = FIRST_CHILD + i;
		return 0;
	}
	errno = ECHILD;
	return -1;
}

pid_t waitpid(pid_t pid, int *status, int options)
{
	struct task *task = child_of(machine_world, pid);
	(void)options;
	if (!task || !task->training.unreaped) {
		errno = ECHILD;
		return -1;
	}
	task->training.unreaped = false;
	if (status)
		*status = wait_status_of(task->training.code);
	return pid;
}

int sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
	(void)how, (void)set, (void)old;
	return 0;
}

int gethostname(char *name, size_t length)
{
	const struct node *node = machine_current();
	snprintf(name, length, "%s", node ? node->who.host : "world");
	return 0;
}

enum status process_identify(pid_t pid, struct process_identity *identity, struct error *err)
{
	static const struct process_identity world = {.host = "world", .boot = "world", .pid = 1};
	(void)pid, (void)err;
	const struct node *node = machine_current();
	*identity = node ? node->who : world;
	return STATUS_OK;
}

enum process_state process_look(const struct process_identity *identity)
{
	const struct world *w = machine_world;
	const struct node *self = machine_current();
	int index = identity->pid - 100;
	if (!self || strcmp(self->who.boot, identity->boot) != 0 || index < 0 || index >= w->nodes)
		return PROCESS_ELSEWHERE;
	/* Unless they see each other they are in containers of their own. */
	if (!w->schedule->watches_peers && !self->ghost && self->index != index)
		return PROCESS_ELSEWHERE;
	return node_lives(&w->node[index]) ? PROCESS_ALIVE : PROCESS_GONE;
}

enum status process_start(const struct process_command *command, pid_t *pid, struct error *err)
{
	(void)command, (void)err;
	struct node *node = machine_current();
	struct world *w = node->world;
	int task = node->agent * w->schedule->per_agent + (int)node->commands++;
	*pid = FIRST_CHILD + task;
	if (node->ghost)
		return STATUS_OK;
	training_start(w, task);
	if (node->commands == node->identity.count)
		world_agent_started(w);
	return STATUS_OK;
}

void process_add_heeded(sigset_t *set, const int *numbers, size_t count)
{
	(void)set, (void)numbers, (void)count;
}

void process_rename(const char *name)
{
	(void)name;
}

int process_exit_code(int wait_status)
{
	return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}
