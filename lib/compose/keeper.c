/* SPDX-License-Identifier: MIT */
#include "compose/keeper.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "agent/children/stderr_relay.h"
#include "agent/pulse/pulse.h"
#include "agent/pulse/stream.h"
#include "agent/served.h"
#include "agent/task/board.h"
#include "base/clock.h"
#include "base/loop.h"
#include "base/message.h"
#include "base/process/descriptor.h"
#include "base/process/reaper.h"
#include "base/process/subprocess.h"
#include "base/worker.h"
#include "base/xalloc.h"
#include "compose/keeper_store.h"
#include "live/cut_off.h"
#include "live/outage.h"
#include "live/progress.h"

#define CHECK_EVERY  1000  /* ms between looks at the board */
#define SILENCE_SAID 3000  /* ms after which we report that the store does not answer */
#define STDERR_WAIT  500   /* ms for the last line of a command that has ended */
#define HOOK_LIMIT   30000 /* ms for --on-failure */
#define KILL_LIMIT   10000 /* ms for a process to end after KILL */
#define FIND_LIMIT   200   /* ms for the job that finds the attempt, at the end */

struct keeper {
	const struct keeper_options *options;
	struct attempt attempt;
	char *where;		     /* store_where */
	int others[1 + KEEPER_WITH]; /* pidfds: the process that we serve, and those of --with */
	bool alone;		     /* a process of --with was gone before we could watch it */
	struct progress progress;
	struct board board;
	struct pulse *pulse;
	struct reaper reaper;
	struct stderr_relay *relay; /* of the command's stderr; NULL: the command has ours */
	struct loop loop;
	int stream;		   /* a descriptor */
	sigset_t before;	   /* the signal mask at our start */
	struct subprocess process; /* the command, or the process of --pid */
	pid_t pid;		   /* the number of that process; 0: none is guarded */
	int code;		   /* exit code of the command */
	bool stopped;
	struct cut_off cut_off;
	bool hangs;	/* the training hangs, and the store does not take our report of it */
	bool preempted; /* the board has a notice, or holds the command */
	int64_t told_to_leave; /* since when the board orders to leave; 0: it does not */
	int leave_with;	       /* the code of that order */
	bool said_silent;
	char class[64]; /* of the error of another task (keys_error_class) */
};

/* ---- The guarded process ---- */

/* Write onto the board why the command has failed: preempt-store leave, run later, reads it. */
static void keep_error(const struct keeper *k)
{
	char line[STDERR_RELAY_LINE];
	if (!k->relay || !k->options->board || k->code == 0)
		return;
	stderr_relay_line(k->relay, 0, STDERR_WAIT, line);
	board_keep_error(k->options->board, line);
}

/* If the process has ended, take its exit code and end the rest of its process group. */
static void reap(struct keeper *k)
{
	bool ended = subprocess_check(&k->process, clock_now()) == SUBPROCESS_ENDED;
	if (ended)
		subprocess_reap(&k->process, false);
	if (k->options->command)
		subprocess_reap_others(&k->reaper);
	if (!ended || !k->options->command)
		return;
	k->code = k->process.code;
	keep_error(k);
}

static enum status start(struct keeper *k, struct error *err)
{
	const struct keeper_options *options = k->options;
	enum status status = STATUS_OK;
	if (options->command && !isatty(STDERR_FILENO))
		status = stderr_relay_start(&k->relay, 1, err);
	if (status == STATUS_OK && options->command) {
		struct subprocess_options command = {.argv = options->command,
			.standard[2] = k->relay ? stderr_relay_input(k->relay, 0) : 0,
			.loop = &k->loop,
			.reaper = &k->reaper};
		status = subprocess_start(&k->process, &command, err);
		if (k->relay)
			stderr_relay_started(k->relay, 0);
	} else if (status == STATUS_OK && options->pid && !k->process.pid) {
		status = subprocess_watch(&k->process, options->pid, err);
	}
	k->pid = k->process.pid;
	loop_watch(&k->loop, k->process.end.descriptor);
	return status;
}

/* Send `number`, KILL after kill_after, and wait until the process has ended. */
static void end_by(struct keeper *k, int number, int64_t kill_after)
{
	int64_t deadline = clock_after(kill_after + KILL_LIMIT);
	subprocess_end(&k->process, number, clock_after(kill_after));
	while (k->process.pid && clock_now() < deadline) {
		(void)descriptor_wait(
			k->process.end.descriptor, clock_earlier(k->process.end.due, deadline));
		reap(k);
	}
}

/* Run --on-failure before the process is ended. */
static void run_hook(const struct keeper *k, const char *why)
{
	struct subprocess_options how = {
		.shell = k->options->on_failure, .limit = clock_after(HOOK_LIMIT)};
	struct subprocess hook;
	struct error err;
	char number[24];
	if (!k->options->on_failure)
		return;
	snprintf(number, sizeof(number), "%d", (int)k->pid);
	setenv("PREEMPT_FAILURE", why, 1);
	setenv("PREEMPT_ERROR_CLASS", k->class, 1);
	setenv("PREEMPT_GUARDED", number, 1);
	enum status status = subprocess_run(&hook, &how, &err);
	if (status == STATUS_TIMEOUT)
		message_error("--on-failure: not done after %d s, ended", HOOK_LIMIT / 1000);
	else if (status != STATUS_OK)
		message_error("--on-failure: %s", err.text);
	subprocess_release(&hook);
}

/* End the process by TERM, then KILL. libpreempt ignores TERM: order it to leave by the board. */
static void end_process(struct keeper *k, int code)
{
	struct agreement_hold leave = {.order = ORDER_LEAVE, .code = code};
	if (k->options->board)
		(void)board_tell(&k->board, &leave, NULL);
	end_by(k, SIGTERM, k->options->kill_after);
	if (k->process.pid)
		message_error("process %d could not be ended, and runs on", (int)k->pid);
}

/* ---- Progress ---- */

/* Declare our own task dead: it hangs, or has lost its agent. */
static void declare_dead(const struct keeper *k, enum death_cause cause)
{
	const struct death death = {.task = k->options->task,
		.cause = cause,
		.since_utc = clock_utc() - (cause == DEATH_HUNG ? k->progress.standing : 0),
		.has_step = k->progress.started,
		.step = k->progress.step};
	keeper_declare_dead(k->options, &k->attempt, &death);
}

static void look_at_board(struct keeper *k)
{
	struct board_step step;
	struct agreement_hold hold;
	if (!k->options->board || board_read_step(&k->board, &step, NULL) != STATUS_OK ||
		board_told(&k->board, &hold, NULL, NULL) != STATUS_OK)
		return;
	struct notice notice;
	struct error unused;
	k->preempted = hold.order != ORDER_RUN ||
		       board_read_notice(k->board.path, &notice, &unused) == STATUS_OK;
	if (hold.order == ORDER_LEAVE && !k->told_to_leave) {
		k->told_to_leave = clock_now();
		k->leave_with = hold.code;
	}
	if (!k->pulse)
		return;
	if (step.started)
		pulse_tell_step(k->pulse, 0, step.step);
	bool answered = pulse_is_answered(k->pulse);
	bool cut_off = k->cut_off.lasted >= cut_off_given_up(&k->options->rules);
	struct progress_reading look = {.now = clock_now(),
		.counts = hold.order == ORDER_RUN && (answered || cut_off),
		.started = step.started,
		.step = step.step,
		.written = step.written};
	bool hangs =
		progress_observe(&k->progress, k->options->progress_timeout, &look) && look.counts;
	if (hangs && answered)
		declare_dead(k, DEATH_HUNG);
	k->hangs = hangs && !answered;
}

/* ---- The loop ---- */

static void look_at_store(struct keeper *k)
{
	bool answered = pulse_is_answered(k->pulse);
	cut_off_update(&k->cut_off, answered, clock_now());
	if (answered && k->said_silent) {
		message_info("the store takes our beats again");
		k->said_silent = false;
	} else if (!k->said_silent && k->cut_off.lasted >= SILENCE_SAID) {
		message_error("the store %s does not take our beats; trying again", k->where);
		k->said_silent = true;
	}
}

/* Return true if the command must end because the store takes no beats; why: the reason. */
static bool is_given_up(const struct keeper *k, char why[256])
{
	int64_t limit = k->options->rules.cut_off, lasted = k->cut_off.lasted;
	bool cut_off = limit && lasted >= limit && k->pulse && pulse_is_needed(k->pulse);
	if (k->preempted) /* the task saves and leaves without us */
		return false;
	if (k->hangs)
		snprintf(why, 256, "this task hangs, and the store has taken no beat for %lld s",
			(long long)lasted / 1000);
	else if (cut_off)
		snprintf(why, 256,
			"the store has taken no beat for %lld s, so the other tasks must have "
			"given this one up (--cut-off)",
			(long long)lasted / 1000);
	return k->hangs || cut_off;
}

/* Send a notice on to the processes of --with. */
static void pass_on(const struct keeper *k, int number)
{
	for (size_t i = 1; i <= k->options->with_count; i++)
		if (pidfd_send_signal(k->others[i], number, NULL, 0) < 0 && errno == EPERM)
			message_error("process %d of --with belongs to another user, so signal %d "
				      "cannot be passed on to it",
				(int)k->options->with[i - 1], number);
}

static void take_signals(struct keeper *k)
{
	for (int number; (number = loop_take_signal(&k->loop, NULL));) {
		if (number == SIGCHLD)
			continue;
		if (k->options->with_count && served_is_notice(number)) {
			pass_on(k, number);
		} else if (k->options->command && k->process.pid) {
			subprocess_signal(&k->process, number);
		} else if (k->options->command) {
			k->stopped = true;
			k->code = 128 + number;
		} else if (number == SIGTERM || !served_is_notice(number))
			k->stopped = true;
	}
}

enum keeper_end {
	END_NONE,     /* the command or process has ended by itself, or we were told to stop */
	END_STOPPED,  /* we were told to stop before the start */
	END_BROKEN,   /* the group is broken, for the reason in why */
	END_TOLD,     /* the board orders to leave: the command has not left, or is not to start */
	END_ALONE,    /* a process of --with has ended */
	END_DESERTED, /* the process that we serve is gone */
};

/* END_DESERTED or END_ALONE if another process is gone, otherwise END_NONE. */
static enum keeper_end look_at_others(const struct keeper *k)
{
	if (descriptor_is_ready(k->others[0]))
		return END_DESERTED;
	for (size_t i = 1; i <= k->options->with_count; i++)
		if (descriptor_is_ready(k->others[i]))
			return END_ALONE;
	return k->alone ? END_ALONE : END_NONE;
}

/* Watch until the guarded process has ended by itself, or there is a reason to end it. */
static enum keeper_end watch_over(struct keeper *k, char why[256])
{
	int64_t look_at = clock_now();
	bool over = false; /* the attempt is over for this task */
	for (;;) {
		loop_wake_at(&k->loop, clock_earlier(k->process.end.due, look_at));
		loop_wait(&k->loop);
		take_signals(k);
		if (k->options->command)
			(void)reaper_keep(&k->reaper);
		reap(k);
		enum keeper_end end = look_at_others(k);
		/* Without the process that we serve, nothing writes LEFT for an ended command. */
		if (k->process.ended && (end != END_DESERTED || !k->options->command))
			return END_NONE;
		if (end != END_NONE)
			return end;
		if (k->pulse && !over && descriptor_is_ready(pulse_descriptor(k->pulse))) {
			if (pulse_why(k->pulse, why, k->class))
				return END_BROKEN;
			over = true;
			loop_forget(&k->loop, pulse_descriptor(k->pulse));
		}
		if (!k->options->command && (k->stopped || (over && !k->pid)))
			return END_NONE;
		if (clock_now() >= look_at) {
			if (k->pulse)
				look_at_store(k);
			look_at_board(k);
			if (is_given_up(k, why))
				return END_BROKEN;
			look_at = clock_now() + CHECK_EVERY;
		}
		if (k->told_to_leave && k->options->command &&
			clock_now() - k->told_to_leave >= k->options->kill_after)
			return END_TOLD;
	}
}

/* End the guarded process for the reason `end`. Returns our exit code. */
static int end_for(struct keeper *k, enum keeper_end end, const char *why)
{
	const struct keeper_options *options = k->options;
	const char *fate = !options->command ? "the heartbeat ends"
			   : k->pid	     ? "the command is ended"
					     : "the command is not started";
	switch (end) {
	case END_NONE:
	case END_STOPPED: return options->command ? k->code : STATUS_OK;
	case END_BROKEN:
		message_error("run %s attempt %llu is broken: %s", options->run,
			(unsigned long long)k->attempt.number, why);
		run_hook(k, why);
		end_process(k, CODE_BROKEN);
		return CODE_BROKEN;
	case END_TOLD:
		if (k->pid)
			message_error("the command was told to leave with %d, and did not within "
				      "%g s: it is ended",
				k->leave_with, (double)options->kill_after / 1000);
		else
			message_error(
				"the task was told to leave with %d: %s", k->leave_with, fate);
		end_process(k, k->leave_with);
		return k->leave_with;
	case END_ALONE:
		message_error("a process of --with has ended, so the command would learn of no "
			      "preemption: %s",
			fate);
		end_process(k, STATUS_TEMPORARY);
		if (options->board)
			board_keep_error(
				options->board, "a process that served the training ended");
		return STATUS_TEMPORARY;
	case END_DESERTED:
		if (options->command || k->pid)
			message_error("the process of PREEMPT_AGENT is gone: %s", fate);
		if (!options->command || !k->pid)
			return STATUS_NO;
		end_by(k, SIGKILL, 0);
		declare_dead(k, DEATH_GONE);
		return CODE_BROKEN;
	}
	return STATUS_OK;
}

/* ---- The start ---- */

/* To be called first: once we hold their pidfds, we cannot mistake another process for them. */
static enum status open_others(struct keeper *k, struct error *err)
{
	enum status status = loop_open(&k->loop, err);
	k->others[0] = k->options->served;
	if (k->options->pid)
		(void)subprocess_watch(&k->process, k->options->pid, NULL);
	loop_watch(&k->loop, k->others[0]);
	for (size_t i = 0; i < k->options->with_count && status == STATUS_OK; i++) {
		status = served_open(k->options->with[i], &k->others[1 + i], err);
		loop_watch(&k->loop, k->others[1 + i]);
		if (status == STATUS_NO) {
			k->alone = true;
			status = STATUS_OK;
		}
	}
	return status;
}

/* The reason not to start the command; END_NONE: there is none. */
static enum keeper_end look_before_start(struct keeper *k)
{
	take_signals(k);
	look_at_board(k);
	if (k->stopped)
		return END_STOPPED;
	return k->told_to_leave && k->options->command ? END_TOLD : look_at_others(k);
}

/* A job that finds the attempt. On the heap, because one that hangs is left alone. */
struct finder {
	const struct keeper_options *options;
	struct worker *worker;
	struct attempt attempt;
	char *where;
	enum status status;
	struct error err;
};

static void find(void *context)
{
	struct finder *f = context;
	struct outage outage = {
		.deadline = outage_is_joined() ? CLOCK_NEVER : 0, .cancel = worker_wake(f->worker)};
	do
		f->status = keeper_find(f->options, &f->attempt, &f->where, &f->err);
	while (outage_retry(&outage, &f->status, &f->err));
}

/* Find the attempt. While a joined store does not answer, retry until there is a reason to end. */
static enum keeper_end wait_for_attempt(struct keeper *k, enum status *status, struct error *err)
{
	struct finder *f = xcalloc(1, sizeof(*f));
	enum keeper_end end = END_NONE;
	bool ended = false;
	f->options = k->options;
	*status = worker_start(&f->worker, "find", err);
	if (*status != STATUS_OK) {
		free(f);
		return END_NONE;
	}
	worker_run(f->worker, find, f);
	loop_watch(&k->loop, worker_descriptor(f->worker));
	while ((end = look_before_start(k)) == END_NONE && !(ended = worker_take(f->worker))) {
		loop_wake_at(&k->loop, clock_after(CHECK_EVERY));
		loop_wait(&k->loop);
	}
	loop_forget(&k->loop, worker_descriptor(f->worker));
	if (ended) {
		*status = f->status;
		*err = f->err;
		k->attempt = f->attempt;
		k->where = f->where;
		f->where = NULL;
	}
	if (worker_stop(f->worker, FIND_LIMIT)) {
		free(f->where);
		free(f);
	}
	return end;
}

static enum status open_signals(struct keeper *k, struct error *err)
{
	int numbers[5 + NSIG] = {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGQUIT}, count = 5;
	sigprocmask(SIG_SETMASK, NULL, &k->before);
	for (int number = 1; number < NSIG; number++)
		if (served_is_notice(number))
			numbers[count++] = number;
	return loop_open_signals(&k->loop, numbers, (size_t)count, err);
}

/* Called if another process beats for this task already: become the command. */
static int run_without(const struct keeper *k, const struct error *why)
{
	message_info("%s: this heartbeat is ignored", why->text);
	if (!k->options->command)
		return STATUS_OK;
	sigprocmask(SIG_SETMASK, &k->before, NULL);
	served_block_notices(false);
	execvp(k->options->command[0], k->options->command);
	int number = errno;
	message_error("cannot run %s: %s", k->options->command[0], strerror(number));
	return number == ENOENT ? STATUS_NOT_FOUND : STATUS_CANNOT_RUN;
}

static enum status begin(struct keeper *k, struct error *err)
{
	const struct keeper_options *options = k->options;
	struct process_identity who;
	enum status status = STATUS_OK;
	prctl(PR_SET_CHILD_SUBREAPER, options->command ? 1 : 0);
	if (options->board && k->board.directory < 0)
		status = board_open(&k->board, options->board, getpid(), err);
	if (status == STATUS_OK && options->command)
		status = reaper_start(&k->reaper, err);
	if (status == STATUS_OK)
		status = start(k, err);
	if (status == STATUS_OK)
		status = process_identify(k->pid, &who, err);
	struct pulse_options how = {.store = options->store,
		.rules = options->rules,
		.first = options->task,
		.count = 1,
		.who = &who,
		.follow = true};
	if (status == STATUS_OK)
		status = pulse_start(&k->pulse, &how, err);
	if (status != STATUS_OK)
		return status;
	loop_watch(&k->loop, pulse_descriptor(k->pulse));
	pulse_begin(k->pulse, &k->attempt);
	pulse_watch(k->pulse);
	return STATUS_OK;
}

static bool is_failure(int code)
{
	return code != STATUS_OK && code != CODE_SAVED && code != CODE_PREEMPTED &&
	       code != CODE_DECIDED;
}

/* Beat for the attempt until the end. */
static int keep(struct keeper *k)
{
	const struct keeper_options *options = k->options;
	const struct heartbeat_rules *rules = &options->rules;
	struct error err = {0};
	char why[256] = "";
	message_detail("run %s attempt %llu, task %llu: period %g s, timeout %g s, limit %llu",
		options->run, (unsigned long long)k->attempt.number,
		(unsigned long long)options->task, (double)rules->period / 1000,
		(double)rules->timeout / 1000, (unsigned long long)rules->limit);
	enum status status = stream_claim(k->where, &k->attempt, options->task, &k->stream, &err);
	if (status == STATUS_NO)
		return run_without(k, &err);
	if (status == STATUS_TEMPORARY) {
		message_error("%s; beating all the same", err.text);
		status = STATUS_OK;
	}
	if (status == STATUS_OK)
		status = begin(k, &err);
	if (status != STATUS_OK)
		return message_fail(&err);
	enum keeper_end end = watch_over(k, why);
	/* After a failure the beats must not end with a farewell. */
	if (end != END_NONE || is_failure(k->code))
		pulse_fall_silent(k->pulse);
	return end_for(k, end, why);
}

int keeper_run(const struct keeper_options *options)
{
	struct keeper k = {.options = options,
		.board = {.directory = -1},
		.loop = LOOP_CLOSED,
		.stream = -1,
		.process.end = {.descriptor = -1, .due = CLOCK_NEVER}};
	struct error err = {0};
	enum keeper_end end = END_NONE;
	int code;
	enum status status = open_others(&k, &err);
	if (status == STATUS_OK)
		status = open_signals(&k, &err);
	/* A missing board is an error only if no other process beats for this task. */
	if (options->board)
		(void)board_open(&k.board, options->board, getpid(), NULL);
	if (status == STATUS_OK)
		end = wait_for_attempt(&k, &status, &err);
	if (end != END_NONE)
		code = end_for(&k, end, NULL);
	else if (status != STATUS_OK)
		code = message_fail(&err);
	else
		code = keep(&k);
	subprocess_release(&k.process);
	stderr_relay_stop(k.relay);
	pulse_stop(k.pulse, 1000);
	loop_close(&k.loop);
	if (k.stream >= 0)
		close(k.stream);
	board_release(&k.board, false);
	free(k.where);
	if (options->command && k.reaper.pid)
		reaper_stop(&k.reaper);
	return code;
}
