/* SPDX-License-Identifier: MIT */
/*
 * crowd [OPTION]... STORE: one preemption of a job that is larger than this machine could run.
 * The agents are those of lib/agent, on a real store, each in a thread of its own with its own
 * connections, as if alone on its machine. Boards and trainings are in memory: all train in equal
 * steps, save where they are told, and leave when they are told. Each agent has eight tasks.
 *
 *   -n N           agents (16)
 *   --limit S      seconds that joining, and the preemption, may take (300)
 *   --patience MS  report_timeout; an agent goes alone when the store is silent for half of it, but
 *                  at least 5 s (10000)
 *   --missing N    agents that never start: the others end when their --join-timeout, S, is over
 *
 * Prints one line of names and figures:
 *
 *   gone      milliseconds from the notice of one agent until the last has ended, or "-"
 *   wrong     agents that ended with another code than 42 (44 where some are missing), and tasks
 *             that saved another step
 *   late      the phase that took too long, or "-"
 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/task/board.h"
#include "base/clock.h"
#include "base/message.h"
#include "base/parse.h"
#include "base/process/bell.h"
#include "base/process/process.h"
#include "base/process/reaper.h"
#include "base/process/subprocess.h"
#include "base/process/thread.h"
#include "base/xalloc.h"
#include "sim/training.h"
#include "store/store.h"

#define FIRST_CHILD 10000000 /* the number of the training process of task 0 */
#define STACK	    (512 * 1024)
#define COPIES	    8
#define STEP	    1000 /* ms */
#define SAVE	    500	 /* ms */

/* A board, and the training that it belongs to: only its agent's thread touches it. */
struct task {
	int64_t began;	 /* when the step in which it is began, or would if it were not held */
	uint64_t step;	 /* so many are done */
	uint64_t parked; /* it stands where so many are done; UINT64_MAX: nowhere */
	struct agreement_hold hold;
	int64_t told_at;
	bool has_saved, ended, unreaped;
	uint64_t saved;
	int64_t saved_at;
	int code;
};

struct node {
	uint64_t index;
	struct identity identity;
	struct agent_options options;
	struct process_identity who;
	int signals;
	size_t boards, commands;
	atomic_bool noticed;
	bool told;
	int code;
};

static struct {
	uint64_t agents, missing;
	int64_t limit, patience;
	const char *store;
	struct task *task;
	struct node *node;
	atomic_uint_fast64_t started, gone;
} crowd = {.agents = 16, .limit = 300000, .patience = 10000};

static _Thread_local struct node *self;

/* ---- The training, as far as it has come by now ---- */

static bool has_to_save(const struct task *t)
{
	bool asked = t->hold.order == ORDER_SAVE || t->hold.order == ORDER_EXIT;
	return asked && !(t->has_saved && t->saved >= t->hold.step);
}

static void train(struct task *t, int64_t now)
{
	uint64_t until = has_to_save(t) && t->hold.step < t->parked ? t->hold.step : t->parked;
	while (!t->ended && t->step < until && t->began + STEP <= now) {
		t->step++;
		t->began += STEP;
	}
	int64_t done = (t->began > t->told_at ? t->began : t->told_at) + SAVE;
	if (t->ended || !has_to_save(t) || t->step != t->hold.step || now < done)
		return;
	t->has_saved = true;
	t->saved = t->step;
	t->saved_at = t->began = done;
}

static void end(struct task *t, int code)
{
	if (t->ended)
		return;
	t->ended = t->unreaped = true;
	t->code = code;
	bell_ring(self->signals);
}

/* ---- In place of agent/task/board.c: the number of the task + 1 is its "directory" ---- */

static struct task *task_of(const struct board *board)
{
	return &crowd.task[board->directory - 1];
}

enum status board_create(struct board *board, const char *parent, pid_t agent,
	const struct reaper *reaper, struct error *err)
{
	uint64_t task = self->identity.task + self->boards++;
	(void)parent, (void)reaper, (void)err;
	*board = (struct board){
		.directory = (int)task + 1, .agent = agent, .path = xstrdup("board")};
	return STATUS_OK;
}

enum status board_tell(
	const struct board *board, const struct agreement_hold *hold, struct error *err)
{
	struct task *t = task_of(board);
	int64_t now = clock_now();
	(void)err;
	train(t, now);
	bool stood = t->step >= t->parked;
	bool at_end = hold->order == ORDER_WAIT || hold->order == ORDER_EXIT;
	if (stood && !(at_end && t->hold.order == hold->order))
		t->began = now;
	t->hold = *hold;
	t->told_at = now;
	switch (hold->order) {
	case ORDER_RUN:
	case ORDER_SAVE: t->parked = UINT64_MAX; break;
	case ORDER_WAIT: t->parked = stood ? t->step : t->step + 1; break;
	case ORDER_EXIT: t->parked = hold->step; break;
	case ORDER_LEAVE: end(t, hold->code); break;
	}
	return STATUS_OK;
}

enum status board_read_step(const struct board *board, struct board_step *step, struct error *err)
{
	struct task *t = task_of(board);
	(void)err;
	train(t, clock_now());
	*step = (struct board_step){
		true, t->step, t->step + 1, clock_utc() - (clock_now() - t->began)};
	return STATUS_OK;
}

enum status board_read_saved(
	const struct board *board, uint64_t *step, int64_t *written, struct error *err)
{
	struct task *t = task_of(board);
	(void)err;
	train(t, clock_now());
	if (!t->has_saved)
		return STATUS_NO;
	*step = t->saved;
	*written = clock_utc() - (clock_now() - t->saved_at);
	return STATUS_OK;
}

bool board_vanished(const struct board *board)
{
	(void)board;
	return false;
}

/* ---- In place of base/process/subprocess.c: the training processes ---- */

static struct task *child_of(pid_t pid)
{
	int task = pid - FIRST_CHILD;
	bool is_one = task >= 0 && (uint64_t)task < crowd.agents * COPIES;
	return is_one ? &crowd.task[task] : NULL;
}

void subprocess_signal(const struct subprocess *child, int number)
{
	if (child_of(child->pid) && (number == SIGTERM || number == SIGKILL))
		end(child_of(child->pid), 128 + number);
}

enum subprocess_state subprocess_check(struct subprocess *child, int64_t now)
{
	const struct task *task = child_of(child->pid);
	(void)now;
	if (!task)
		return SUBPROCESS_NONE;
	if (!task->unreaped)
		return SUBPROCESS_RUNS;
	return training_ended(child, task->code);
}

void subprocess_reap(struct subprocess *child, bool spare)
{
	(void)spare;
	child_of(child->pid)->unreaped = false;
	child->pid = 0;
}

enum status subprocess_start(
	struct subprocess *child, const struct subprocess_options *options, struct error *err)
{
	int task = (int)(self->identity.task + self->commands++);
	(void)options, (void)err;
	*child = (struct subprocess){.pid = FIRST_CHILD + task,
		.end = {.descriptor = -1, .due = CLOCK_NEVER},
		.limit = CLOCK_NEVER};
	crowd.task[task] = (struct task){.began = clock_now(), .parked = UINT64_MAX};
	atomic_fetch_add(&crowd.started, 1);
	return STATUS_OK;
}

/* ---- In place of base/process/reaper.c ---- */

enum status reaper_start(struct reaper *reaper, struct error *err)
{
	(void)err;
	*reaper = (struct reaper){.socket = -1};
	return STATUS_OK;
}

void reaper_stop(struct reaper *reaper)
{
	(void)reaper;
}

/* ---- In place of base/process/thread.c and process.c: each agent has a machine of its own ---- */

struct thread {
	struct node *node;
	void *(*work)(void *context);
	void *context;
};

static void *run_thread(void *context)
{
	struct thread thread = *(struct thread *)context;
	free(context);
	self = thread.node;
	return thread.work(thread.context);
}

static int start_thread(pthread_t *started, struct node *node, void *(*work)(void *), void *context)
{
	struct thread *thread = xcalloc(1, sizeof(*thread));
	pthread_attr_t attributes;
	*thread = (struct thread){node, work, context};
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK);
	int number = pthread_create(started, &attributes, run_thread, thread);
	pthread_attr_destroy(&attributes);
	if (number)
		free(thread);
	return number;
}

int thread_start(pthread_t *thread, void *(*work)(void *), void *context)
{
	return start_thread(thread, self, work, context);
}

bool thread_join(pthread_t thread, const void *context, int64_t patience)
{
	(void)context, (void)patience;
	return pthread_join(thread, NULL) == 0;
}

enum status process_identify(pid_t pid, struct process_identity *identity, struct error *err)
{
	(void)pid, (void)err;
	*identity = self ? self->who : (struct process_identity){.boot = "crowd", .pid = 1};
	return STATUS_OK;
}

enum process_state process_check(const struct process_identity *identity)
{
	(void)identity;
	return PROCESS_ELSEWHERE;
}

enum status process_open_signals(
	const int *numbers, size_t count, int *descriptor, struct error *err)
{
	(void)numbers, (void)count, (void)err;
	*descriptor = self->signals;
	return STATUS_OK;
}

/* ---- In place of notice/source_set.c ---- */

bool source_set_take(struct source_set *watch, struct notice *notice)
{
	int64_t now = clock_now();
	(void)watch;
	if (self->told || !atomic_load(&self->noticed))
		return false;
	self->told = true;
	*notice = (struct notice){.source = "signal:TERM",
		.signal = SIGTERM,
		.received = now,
		.received_utc = clock_utc(),
		.deadline = CLOCK_NEVER};
	return true;
}

/* ---- The agents ---- */

static void *run_agent(void *context)
{
	struct node *node = context;
	node->code = agent_run(&node->options, NULL);
	atomic_fetch_add(&crowd.gone, 1);
	return NULL;
}

static void begin_agent(uint64_t index)
{
	static char name[] = "train", *const command[] = {name, NULL};
	struct node *node = &crowd.node[index];
	pthread_t thread;
	node->index = index;
	node->signals = bell_open();
	node->who = (struct process_identity){.pid = 1, .start = 1, .pid_namespace = index + 1};
	snprintf(node->who.host, sizeof(node->who.host), "machine%llu", (unsigned long long)index);
	snprintf(node->who.boot, sizeof(node->who.boot), "boot%llu", (unsigned long long)index);
	node->identity = (struct identity){.run = "crowd",
		.is_task = true,
		.task = index * COPIES,
		.count = COPIES,
		.tasks = crowd.agents * COPIES,
		.launch = "crowd"};
	node->options = (struct agent_options){.identity = &node->identity,
		.store = crowd.store,
		.command = command,
		.grace = -1,
		.exit_code = CODE_SAVED,
		.join_timeout = crowd.limit,
		.kill_after = 5000,
		.agreement = {.report_timeout = crowd.patience,
			.save_timeout = AGREEMENT_SAVE_TIMEOUT,
			.startup = AGREEMENT_STARTUP}};
	int number = node->signals < 0 ? errno : start_thread(&thread, node, run_agent, node);
	if (number) {
		fprintf(stderr, "crowd: agent %llu: %s\n", (unsigned long long)index,
			strerror(number));
		exit(1);
	}
	pthread_detach(thread);
}

/* Until so many have come there, or the time is over. Where agents are missing, the others end only
 * when the limit is over, so that there is more time. */
static bool await(atomic_uint_fast64_t *counter, uint64_t wanted)
{
	int64_t until = clock_after(crowd.missing ? 4 * crowd.limit : crowd.limit);
	while (atomic_load(counter) < wanted && clock_now() < until)
		clock_sleep_until(clock_after(5));
	return atomic_load(counter) >= wanted;
}

/* ---- What is printed ---- */

static uint64_t count_wrong(void)
{
	uint64_t wrong = 0;
	for (uint64_t i = 0; i < crowd.agents; i++)
		wrong += crowd.node[i].code != (crowd.missing ? CODE_BROKEN : CODE_SAVED);
	if (crowd.missing)
		return wrong - crowd.missing;
	for (uint64_t i = 0; i < crowd.agents * COPIES; i++)
		wrong += !crowd.task[i].has_saved || crowd.task[i].saved != crowd.task[0].saved;
	return wrong;
}

/* An agent waits for a store that is missing: its program has opened it before. */
static bool make_store(void)
{
	struct store *store;
	struct error err;
	enum status status =
		store_open(&store, crowd.store, STORE_CREATE, clock_after(30000), &err);
	if (status == STATUS_OK)
		store_close(store);
	else
		fprintf(stderr, "crowd: %s\n", err.text);
	return status == STATUS_OK;
}

static int run(void)
{
	uint64_t tasks = crowd.agents * COPIES;
	const char *late = "-";
	int64_t from = 0;
	crowd.task = xcalloc(tasks, sizeof(*crowd.task));
	crowd.node = xcalloc(crowd.agents, sizeof(*crowd.node));
	for (uint64_t i = 0; i < crowd.agents - crowd.missing; i++)
		begin_agent(i);
	if (crowd.missing) {
		if (!await(&crowd.gone, crowd.agents - crowd.missing))
			late = "gone";
	} else if (!await(&crowd.started, tasks)) {
		late = "join";
	} else {
		clock_sleep_until(clock_after(2000));
		from = clock_now();
		atomic_store(&crowd.node[crowd.agents / 2].noticed, true);
		bell_ring(crowd.node[crowd.agents / 2].signals);
		if (!await(&crowd.gone, crowd.agents))
			late = "gone";
	}
	if (from && !strcmp(late, "-"))
		printf("gone %lld ", (long long)(clock_now() - from));
	else
		printf("gone - ");
	printf("wrong %llu late %s\n", (unsigned long long)count_wrong(), late);
	fflush(stdout);
	/* Threads of agents that are late still run. */
	_exit(0);
}

static bool read_number(uint64_t *number, uint64_t least)
{
	return parse_decimal(optarg, number) && *number >= least && *number <= 1000000;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"limit", required_argument, NULL, 'l'},
		{"patience", required_argument, NULL, 'p'},
		{"missing", required_argument, NULL, 'm'}, {0}};
	uint64_t number = 0;
	bool right = true;
	for (int c; right && (c = getopt_long(argc, argv, "n:", options, NULL)) != -1;) {
		right = c != '?' && read_number(&number, 1);
		switch (c) {
		case 'n': crowd.agents = number; break;
		case 'l': crowd.limit = (int64_t)number * 1000; break;
		case 'p': crowd.patience = (int64_t)number; break;
		case 'm': crowd.missing = number; break;
		default: break;
		}
	}
	if (!right || argc - optind != 1 || crowd.missing >= crowd.agents) {
		fprintf(stderr,
			"usage: crowd [-n N] [--limit S] [--patience MS] [--missing N] STORE\n");
		return 2;
	}
	crowd.store = argv[optind];
	message_level(MESSAGE_QUIET);
	return make_store() ? run() : 1;
}
