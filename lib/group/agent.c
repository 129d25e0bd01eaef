/* SPDX-License-Identifier: MIT */
#include "group/agent.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/message.h"
#include "base/parse.h"
#include "base/process.h"
#include "group/environment.h"
#include "group/seat.h"
#include "group/unaware.h"
#include "notice/watch.h"

#define SAMPLE_EVERY 1000  /* ms between looks at how far the tasks are */
#define DEATHS_EVERY 1000  /* ms between looks for processes that are gone */
#define SAFETY_LOOK  15000 /* ms after which the store is read even if it seems unchanged */
#define GOODBYE	     10000 /* ms to close the attempt */
#define STDERR_WAIT  500   /* ms for the last line of a command that has ended */
#define ROOT_FAILURE 200   /* ms in which a death elsewhere explains a failure here */

struct agent {
	struct group group;
	const struct agent_options *options;
	struct guard guard;
	struct pump *pump;
	struct watch watch; /* the sources of notices */
	int signals;	    /* signalfd: CHLD, and what is passed on */
	struct command *commands;
	size_t command_count;
	struct seat *seats;
	size_t seat_count;
	char *boards; /* with --ranks: the directory above the boards */
	int64_t sample_at, deaths_at;
	bool store_away;
	uint64_t said_round, said_decision;
	bool said_claim, said_broken;
	bool goodbye_done;
	bool failure_told;
	int passed_on; /* a signal like INT that was passed on; 0 */
};

/* ---- What people are told ---- */

static void say_claim(struct agent *agent)
{
	const struct view *view = &agent->group.view;
	const struct view_claim *claim = &view->claim;
	char by[96] = "from outside";
	if (agent->said_claim || !view->agreement.claimed)
		return;
	agent->said_claim = true;
	if (!claim->outside)
		snprintf(by, sizeof(by), "by task %llu", (unsigned long long)claim->task);
	message_info("run %s attempt %llu: preemption claimed %s on %s (%s%s%s)", view->attempt.run,
		(unsigned long long)view->attempt.number, by, claim->host, claim->source,
		*claim->reason ? ": " : "", claim->reason);
}

static void say_decision(struct agent *agent)
{
	const struct agreement_view *view = &agent->group.view.agreement;
	uint64_t members = 0;
	if (!view->decided || agent->said_decision == view->round)
		return;
	agent->said_decision = view->round;
	for (uint64_t i = 0; i < view->tasks; i++)
		members += view->peers[i].member;
	unsigned long long step = view->decision.step, count = members;
	switch (view->decision.kind) {
	case KIND_SAVE:
		message_info("agreed: all %llu save at step %llu and run on", count, step);
		break;
	case KIND_EXIT:
		message_info("agreed: all %llu save at step %llu, then leave", count, step);
		break;
	case KIND_EACH:
		message_info("agreed: no common step can be reached in time; each of %llu saves at "
			     "its own next boundary, then leaves",
			count);
		break;
	case KIND_NONE: message_info("agreed: no task has begun, there is nothing to save"); break;
	}
}

static void say_broken(struct agent *agent)
{
	const struct view *view = &agent->group.view;
	if (agent->said_broken || !view->agreement.broken || view->agreement.claimed)
		return;
	agent->said_broken = true;
	if (view->error.present)
		message_error("task %llu failed on %s with %d%s%s",
			(unsigned long long)view->error.task, view->error.host, view->error.code,
			*view->error.line ? ": " : "", view->error.line);
	else
		message_error("run %s attempt %llu is broken: %s", view->attempt.run,
			(unsigned long long)view->attempt.number,
			*view->seal_text ? view->seal_text : view->seal);
}

static void say_saves(struct agent *agent)
{
	for (size_t i = 0; i < agent->seat_count; i++) {
		struct seat *seat = &agent->seats[i];
		const struct agreement *a = &seat->agreement;
		if (!agreement_saved_reported(a) || seat->said_saved == a->saving)
			continue;
		seat->said_saved = a->saving;
		message_info("task %llu: saved step %llu in %.2f s", (unsigned long long)seat->task,
			(unsigned long long)a->saved_step, (double)seat->save_time / 1000);
	}
}

/* What we wrote is so, whether the last reading shows it yet or not. */
static void note_own_write(struct agent *agent, const struct result *result)
{
	struct agreement_view *view = &agent->group.view.agreement;
	struct agreement_peer *peer = &view->peers[result->task];
	if (result->outcome != OUTCOME_DONE || result->what != WRITE_SAVED ||
		result->round != view->round)
		return;
	peer->saved = true;
	peer->saved_step = result->saved_step;
}

/* ---- Starting ---- */

static void do_nothing(int number)
{
	(void)number;
}

static enum status open_signals(struct agent *agent, struct error *err)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGQUIT);
	/* A reader of our stderr that goes away must not end us; a handler is not inherited. */
	(void)sigaction(SIGPIPE, &(struct sigaction){.sa_handler = do_nothing}, NULL);
	sigprocmask(SIG_BLOCK, &set, NULL);
	agent->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (agent->signals < 0)
		return error_set(
			err, STATUS_TEMPORARY, "cannot receive signals: %s", strerror(errno));
	return STATUS_OK;
}

void agent_hold_signals(const char *const *sources, size_t count)
{
	sigset_t set;
	sigemptyset(&set);
	for (size_t i = 0; i < count; i++) {
		if (strncmp(sources[i], "signal:", 7))
			continue;
		char *names = strdup(sources[i] + 7), *rest = names;
		for (char *name; names && (name = strsep(&rest, ","));) {
			int number;
			if (parse_signal(name, &number, "signal", NULL) == STATUS_OK)
				sigaddset(&set, number);
		}
		free(names);
	}
	sigprocmask(SIG_BLOCK, &set, NULL);
}

static enum status open_sources(struct agent *agent, struct error *err)
{
	const struct agent_options *options = agent->options;
	struct source_options how = {.grace = options->grace};
	enum status status = STATUS_OK;
	for (size_t i = 0; i < options->source_count && status == STATUS_OK; i++) {
		struct source *source;
		status = source_open(&source, options->sources[i], &how, err);
		if (status == STATUS_OK)
			status = watch_add(&agent->watch, source, err);
	}
	return status;
}

static enum status make_boards(struct agent *agent, struct error *err)
{
	const struct agent_options *options = agent->options;
	enum status status = STATUS_OK;
	pid_t self = getpid();
	if (options->ranks) {
		struct board above;
		status = board_create(&above, options->board_parent, self, err);
		if (status != STATUS_OK)
			return status;
		agent->boards = strdup(above.path);
		board_release(&above, false);
		if (!agent->boards)
			return error_set(err, STATUS_TEMPORARY, "out of memory");
		guard_add_directory(&agent->guard, agent->boards);
	}
	for (size_t i = 0; i < agent->seat_count && status == STATUS_OK; i++) {
		status = options->ranks ? board_create_rank(&agent->seats[i].board, agent->boards,
						  i, self, err)
					: board_create(&agent->seats[i].board,
						  options->board_parent, self, err);
		if (status == STATUS_OK)
			guard_add_directory(&agent->guard, agent->seats[i].board.path);
	}
	return status;
}

static enum status start_command(struct agent *agent, size_t index, struct error *err)
{
	const struct agent_options *options = agent->options;
	struct command *command = &agent->commands[index];
	struct seat *seat = &agent->seats[index];
	struct command_environment what = {.identity = options->identity,
		.attempt = &agent->group.view.attempt,
		.store = options->store,
		.mark = agent->guard.mark,
		.board = options->ranks ? agent->boards : seat->board.path,
		.task = seat->task,
		.local = index,
		.ranks = options->ranks,
		.spread = agent->command_count > 1 || options->identity->count > 1,
		.resume = options->find_checkpoint ? agent->group.view.resume : NULL,
		.sources = options->sources,
		.source_count = options->source_count};
	struct process_command start = {.argv = options->command,
		.own_group = true,
		.die_with_parent = true,
		.standard_error = agent->pump ? pump_input(agent->pump, index) : 0};
	sigemptyset(&start.ignored);
	enum status status = environment_shield(options->shield, &start.ignored, err);
	char **environment = environment_build(&what);
	if (status == STATUS_OK && !environment)
		status = error_set(err, STATUS_TEMPORARY, "out of memory");
	start.environment = environment;
	if (status == STATUS_OK)
		status = process_start(&start, &command->pid, err);
	environment_free(environment);
	if (agent->pump)
		pump_started(agent->pump, index);
	if (status != STATUS_OK)
		return status;
	guard_add(&agent->guard, command->pid);
	command->running = true;
	return STATUS_OK;
}

/* ---- What happens ---- */

static void take_notice(struct agent *agent, const struct notice *notice)
{
	struct group *group = &agent->group;
	if (!group->noticed) {
		message_info("notice: %s%s%s", notice->source, *notice->reason ? ": " : "",
			notice->reason);
		group->notice = *notice;
		group->own_deadline = notice->deadline;
	}
	group->noticed = true;
	if (notice->deadline < group->own_deadline)
		group->own_deadline = notice->deadline;
	/* One seat claims for the machine; the others hold as soon as it shows. */
	for (size_t i = 0; i < agent->seat_count; i++)
		agreement_noticed(&agent->seats[i].agreement, group->own_deadline);
	if (!agent->options->forward || strncmp(notice->source, "signal:", 7))
		return;
	int number;
	if (parse_signal(notice->source + 7, &number, "signal", NULL) == STATUS_OK)
		for (size_t i = 0; i < agent->command_count; i++)
			if (agent->commands[i].running)
				kill(-agent->commands[i].pid, number);
}

static void check_sources(struct agent *agent, const struct pollfd *polled)
{
	struct notice notice;
	struct error err;
	size_t which;
	enum watch_event event;
	watch_begin(&agent->watch, polled);
	while ((event = watch_next(&agent->watch, &which, &notice, &err)) != WATCH_END) {
		switch (event) {
		case WATCH_NOTICE: take_notice(agent, &notice); break;
		case WATCH_LOST: message_error("%s", err.text); break;
		case WATCH_BACK: message_info("%s", err.text); break;
		case WATCH_DOUBT:
		case WATCH_END: break;
		}
	}
}

static bool was_notice_signal(const struct agent *agent, int wait_status)
{
	if (!WIFSIGNALED(wait_status))
		return false;
	for (size_t i = 0; i < agent->options->source_count; i++) {
		const char *source = agent->options->sources[i];
		const char *name = sigabbrev_np(WTERMSIG(wait_status));
		if (!strncmp(source, "signal:", 7) && name && strstr(source + 7, name))
			return true;
	}
	return false;
}

/* The agreements of its tasks learn that a command has ended. */
static void tell_end(struct agent *agent, size_t index, int64_t now)
{
	struct command *command = &agent->commands[index];
	int64_t patience = command->ended_at + STDERR_WAIT - now;
	command->told = true;
	if (agent->pump)
		pump_last_line(agent->pump, index, patience > 0 ? patience : 0, command->line);
	/* Killed by the signal of a notice: the notice reaches us too, in a moment. */
	if (was_notice_signal(agent, command->wait_status) && !command->ending &&
		!agent->group.noticed) {
		struct notice notice = {.received = now,
			.received_utc = clock_utc(),
			.deadline = agent->options->grace >= 0 ? now + agent->options->grace
							       : CLOCK_NEVER};
		snprintf(notice.source, sizeof(notice.source), "signal:%s",
			sigabbrev_np(WTERMSIG(command->wait_status)));
		snprintf(notice.reason, sizeof(notice.reason), "the command died of it");
		take_notice(agent, &notice);
	}
	for (size_t i = 0; i < agent->seat_count; i++) {
		struct seat *seat = &agent->seats[i];
		if (seat->command != command)
			continue;
		seat_look_at_saved(seat, now);
		agreement_ended(&seat->agreement, command->code, now);
	}
}

/*
 * When one task dies, its peers fail within milliseconds because of it. So that the error names the
 * one that died first: who was killed is told at once, who failed by itself waits a moment for
 * somebody else's death to become known, and only one failure is told until it stands in the store.
 * The instant until which this one waits.
 */
static int64_t wait_with_failure(const struct agent *agent, const struct command *command)
{
	const struct agreement_view *view = &agent->group.view.agreement;
	bool failed = command->code != 0 && !command->ending;
	if (!failed || view->tasks == 1 || view->claimed || view->broken || agent->group.noticed)
		return 0;
	if (agent->failure_told)
		return command->ended_at + 10 * ROOT_FAILURE;
	return WIFSIGNALED(command->wait_status) ? 0 : command->ended_at + ROOT_FAILURE;
}

static void tell_ends(struct agent *agent, int64_t now, int64_t *wake)
{
	for (;;) {
		size_t first = agent->command_count;
		int64_t first_until = CLOCK_NEVER;
		for (size_t i = 0; i < agent->command_count; i++) {
			struct command *command = &agent->commands[i];
			if (!command->pid || command->running || command->told)
				continue;
			int64_t until = wait_with_failure(agent, command);
			if (until < first_until) {
				first = i;
				first_until = until;
			}
		}
		if (first_until > now) {
			if (first_until < *wake)
				*wake = first_until;
			return;
		}
		agent->failure_told |= agent->commands[first].code != 0;
		tell_end(agent, first, now);
	}
}

static void command_ended(struct agent *agent, size_t index, int wait_status, int64_t now)
{
	struct command *command = &agent->commands[index];
	command->running = false;
	command->wait_status = wait_status;
	command->code = process_exit_code(wait_status);
	command->ended_at = now;
	/* Whatever it has left behind goes with it. */
	kill(-command->pid, SIGKILL);
	guard_remove(&agent->guard, command->pid);
}

/* Our commands, and what lost its parent below us: we are its parent now (or process 1). */
static void reap(struct agent *agent, int64_t now)
{
	for (;;) {
		siginfo_t info = {0};
		int wait_status;
		size_t i = 0;
		if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || !info.si_pid ||
			watch_owns(&agent->watch, info.si_pid))
			return;
		if (waitpid(info.si_pid, &wait_status, WNOHANG) != info.si_pid)
			return;
		while (i < agent->command_count &&
			!(agent->commands[i].running && agent->commands[i].pid == info.si_pid))
			i++;
		if (i < agent->command_count)
			command_ended(agent, i, wait_status, now);
	}
}

static void take_signals(struct agent *agent, int64_t now)
{
	struct signalfd_siginfo info;
	while (read(agent->signals, &info, sizeof(info)) == sizeof(info)) {
		int number = (int)info.ssi_signo;
		if (number == SIGCHLD)
			continue;
		agent->passed_on = number;
		for (size_t i = 0; i < agent->command_count; i++)
			if (agent->commands[i].running)
				kill(-agent->commands[i].pid, number);
	}
	reap(agent, now);
}

static void store_answered(struct agent *agent, const struct result *result)
{
	bool right = result->status == STATUS_OK;
	if (right && agent->store_away)
		message_info("the store answers again");
	if (!right && !agent->store_away)
		message_error("%s; trying again", result->error.text);
	agent->store_away = !right;
}

static void take_result(struct agent *agent, struct result *result)
{
	struct group *group = &agent->group;
	switch (result->kind) {
	case RESULT_SAW:
		store_answered(agent, result);
		if (result->status != STATUS_OK)
			break;
		view_feed(&group->view, &result->answer, result->now, result->utc);
		for (size_t i = 0; i < agent->seat_count; i++)
			agreement_saw(&agent->seats[i].agreement, result->now);
		break;
	case RESULT_WROTE:
		if (result->outcome == OUTCOME_UNKNOWN)
			store_answered(agent, result);
		worker_look(group->worker, result->now);
		if (result->what == WRITE_KINDS)
			break; /* a death */
		group->shared[result->what] = false;
		note_own_write(agent, result);
		for (size_t i = 0; i < agent->seat_count; i++)
			if (agent->seats[i].task == result->task)
				agreement_wrote(&agent->seats[i].agreement, result->what,
					result->round, result->outcome, result->now);
		break;
	case RESULT_CLOSED: agent->goodbye_done = true; break;
	case RESULT_JOINED: break;
	}
	say_claim(agent);
	say_decision(agent);
	say_broken(agent);
}

/* ---- Deaths on this machine ---- */

static bool is_awaited(const struct agent *agent, uint64_t task)
{
	const struct agreement_view *view = &agent->group.view.agreement;
	const struct agreement_peer *peer = &view->peers[task];
	if (!view->round || !agreement_counts(view, task))
		return false;
	return view->decided ? peer->member && !peer->saved : !peer->reported;
}

static void look_for_deaths(struct agent *agent)
{
	struct group *group = &agent->group;
	uint64_t first = agent->options->identity->task;
	for (uint64_t i = 0; i < group->view.attempt.tasks; i++) {
		bool ours = i >= first && i < first + agent->seat_count;
		if (ours || !is_awaited(agent, i) || !group->view.members[i].joined ||
			process_look(&group->view.members[i].agent) != PROCESS_GONE)
			continue;
		struct write write;
		write_build_death(&write, &group->view, i, "is gone");
		worker_write(group->worker, &write);
	}
}

/* ---- The loop ---- */

/* Wait for signals, sources and the store thread until wake; take in all but the last's results. */
static void wait_for_events(struct agent *agent, int64_t wake)
{
	struct pollfd polled[2 + WATCH_SOURCES] = {{.fd = agent->signals, .events = POLLIN},
		{.fd = worker_descriptor(agent->group.worker), .events = POLLIN}};
	struct pollfd *sources = polled + 2;
	size_t source_count = watch_poll(&agent->watch, sources);
	if (watch_due(&agent->watch) < wake)
		wake = watch_due(&agent->watch);
	(void)poll(polled, 2 + source_count, clock_poll_timeout(wake));

	int64_t now = clock_now();
	check_sources(agent, sources);
	take_signals(agent, now);
}

static void take_results(struct agent *agent)
{
	for (struct result *result; (result = worker_take(agent->group.worker));) {
		take_result(agent, result);
		result_free(result);
	}
}

static bool all_finished(const struct agent *agent)
{
	for (size_t i = 0; i < agent->seat_count; i++)
		if (!agent->seats[i].finished)
			return false;
	return true;
}

static void run_tasks(struct agent *agent)
{
	while (!all_finished(agent)) {
		int64_t now = clock_now();
		int64_t wake = CLOCK_NEVER, look = now + SAFETY_LOOK;
		if (now >= agent->sample_at) {
			for (size_t i = 0; i < agent->seat_count; i++)
				seat_sample(&agent->seats[i], now);
			agent->sample_at = now + SAMPLE_EVERY;
		}
		if (agent->group.view.agreement.round && now >= agent->deaths_at) {
			look_for_deaths(agent);
			agent->deaths_at = now + DEATHS_EVERY;
		}
		bool tell = unaware_is(agent->options) && agent->group.view.agreement.claimed;
		for (size_t i = 0; i < agent->command_count && tell; i++)
			unaware_tell(&agent->commands[i], agent->options,
				agent->group.view.agreement.deadline, now);
		tell_ends(agent, now, &wake);
		for (size_t i = 0; i < agent->seat_count; i++)
			seat_advance(&agent->seats[i], &agent->group, now, &wake, &look);
		say_saves(agent);
		if (all_finished(agent))
			break;
		worker_look(agent->group.worker, look);
		if (agent->sample_at < wake)
			wake = agent->sample_at;
		wait_for_events(agent, wake);
		take_results(agent);
	}
}

/* Close the attempt if we are the last, within a bounded time. */
static void say_goodbye(struct agent *agent)
{
	int64_t longest_save = 0;
	int64_t until = clock_after(agent->store_away ? 0 : GOODBYE);
	for (size_t i = 0; i < agent->seat_count; i++)
		if (agent->seats[i].save_time > longest_save)
			longest_save = agent->seats[i].save_time;
	worker_close(agent->group.worker, &agent->group.view.attempt, longest_save);
	while (!agent->goodbye_done && clock_now() < until) {
		wait_for_events(agent, until);
		take_results(agent);
	}
}

/* ---- Joining ---- */

/* Wait until all have joined; a notice or INT ends that early. */
static enum status join(struct agent *agent, struct error *err)
{
	const struct agent_options *options = agent->options;
	struct group *group = &agent->group;
	struct attempt_entry entry = {.run = options->identity->run,
		.number = options->attempt,
		.tasks = options->identity->tasks,
		.first = options->identity->task,
		.count = options->identity->count,
		.launch = options->identity->launch,
		.deadline = clock_after(options->join_timeout)};
	enum status status = process_identify(0, &entry.agent, err);
	if (status != STATUS_OK)
		return status;
	worker_join(group->worker, &entry, options, &group->view);
	for (;;) {
		wait_for_events(agent, CLOCK_NEVER);
		if (group->noticed || agent->passed_on)
			worker_cancel(group->worker);
		struct result *result = worker_take(group->worker);
		if (!result)
			continue;
		status = result->status;
		*err = result->error;
		group->view.agreement.longest_save = result->longest_save;
		result_free(result);
		return status;
	}
}

static void write_unstarted(struct agent *agent, enum agreement_write what, uint64_t task,
	enum agreement_reason reason, const struct write_details *details)
{
	struct agreement_plan plan = {.reason = reason};
	struct write write;
	plan.write[what] = 1;
	write_build(&write, &agent->group.view, what, task, &plan, details);
	worker_write(agent->group.worker, &write);
}

/* Leave an attempt whose commands were never started; the others are told why, if it is an error.
 */
static void leave_unstarted(
	struct agent *agent, enum agreement_reason reason, int code, const char *why)
{
	struct group *group = &agent->group;
	const struct identity *identity = agent->options->identity;
	struct write_details details = {.notice = &group->notice,
		.deadline = group->own_deadline,
		.code = code,
		.line = why};
	if (group->view.attempt.number == 0)
		return; /* not even joined */
	if (!*group->view.seal && group->noticed)
		write_unstarted(agent, WRITE_CLAIM, identity->task, reason, &details);
	else if (!*group->view.seal && reason == REASON_FAILED)
		write_unstarted(agent, WRITE_ERROR, identity->task, reason, &details);
	for (uint64_t i = 0; i < identity->count; i++)
		write_unstarted(agent, WRITE_LEFT, identity->task + i, reason, &details);
	say_goodbye(agent);
}

static int not_joined(struct agent *agent, enum status status, const struct error *err)
{
	int code = status;
	enum agreement_reason reason = status == STATUS_BROKEN ? REASON_PEER : REASON_FAILED;
	const char *why = err->text;
	if (agent->group.noticed || status == STATUS_SAVED) {
		code = agent->options->exit_code;
		reason = REASON_PREEMPTED;
		message_info("preempted before the start: nothing to save, run me again");
	} else if (agent->passed_on) {
		code = 128 + agent->passed_on;
		why = "interrupted before the start";
	} else {
		message_error("%s", err->text);
	}
	agent->said_broken = true; /* just now */
	leave_unstarted(agent, reason, code, why);
	return code;
}

/* ---- All together ---- */

static enum status start(struct agent *agent, struct error *err)
{
	const struct agent_options *options = agent->options;
	enum status status = make_boards(agent, err);
	if (status == STATUS_OK && !isatty(STDERR_FILENO))
		status = pump_start(&agent->pump, agent->command_count, err);
	int64_t now = clock_now();
	for (size_t i = 0; i < agent->seat_count; i++) {
		seat_init(&agent->seats[i], &agent->group, options->identity->task + i,
			&agent->commands[options->ranks ? 0 : i], now);
		if (agent->group.noticed)
			agreement_noticed(&agent->seats[i].agreement, agent->group.own_deadline);
	}
	for (size_t i = 0; i < agent->command_count && status == STATUS_OK; i++)
		status = start_command(agent, i, err);
	return status;
}

/* The code of several tasks is that of the one with the most to say. */
static int combined_code(const struct agent *agent)
{
	static const int weight[] = {
		STATUS_OK, STATUS_SAVED, STATUS_DECIDED, STATUS_PREEMPTED, STATUS_BROKEN};
	size_t heaviest = 0;
	for (size_t i = 0; i < agent->seat_count; i++) {
		size_t rank = 0;
		while (rank < 5 && weight[rank] != agent->seats[i].code)
			rank++;
		if (rank == 5)
			return agent->seats[i].code; /* its own failure */
		if (rank > heaviest)
			heaviest = rank;
	}
	int code = weight[heaviest];
	return code == STATUS_SAVED ? agent->options->exit_code : code;
}

static void say_end(const struct agent *agent, int code)
{
	if (code == agent->options->exit_code)
		message_info("saved and complete: run me again (%d)", code);
	else if (code == STATUS_PREEMPTED)
		message_info(
			"preempted without a new complete checkpoint: run me again (%d)", code);
	else if (code == STATUS_BROKEN)
		message_info("another task broke: run me again (%d)", code);
	else if (code == STATUS_DECIDED)
		message_info("asked to stop: do not run me again (%d)", code);
}

static void end_commands(struct agent *agent)
{
	for (size_t i = 0; i < agent->command_count; i++) {
		if (!agent->commands[i].running)
			continue;
		kill(-agent->commands[i].pid, SIGKILL);
		waitpid(agent->commands[i].pid, NULL, 0);
	}
}

static void release(struct agent *agent)
{
	/* The code is decided: a signal that comes now (srun -K) must not put another in its place.
	 */
	sigset_t all;
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	end_commands(agent);
	for (size_t i = 0; i < agent->seat_count; i++)
		seat_release(&agent->seats[i]);
	if (agent->boards)
		(void)file_remove_tree(agent->boards, NULL);
	watch_release(&agent->watch);
	pump_stop(agent->pump);
	if (agent->group.worker)
		worker_stop(agent->group.worker, 1000);
	guard_stop(&agent->guard);
	view_release(&agent->group.view);
	free(agent->boards);
	free(agent->commands);
	free(agent->seats);
	if (agent->signals >= 0)
		close(agent->signals);
}

int agent_run(const struct agent_options *options)
{
	struct agent agent = {.options = options,
		.group = {.options = options, .own_deadline = CLOCK_NEVER},
		.signals = -1,
		.seat_count = options->identity->count,
		.command_count = options->ranks ? 1 : options->identity->count};
	struct error err = {0};
	int code;
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	agent.seats = calloc(agent.seat_count, sizeof(*agent.seats));
	agent.commands = calloc(agent.command_count, sizeof(*agent.commands));
	if (!agent.seats || !agent.commands) {
		error_set(&err, STATUS_TEMPORARY, "out of memory");
		code = message_fail(&err);
		goto out;
	}
	for (size_t i = 0; i < agent.seat_count; i++)
		agent.seats[i].board = (struct board){.directory = -1, .watch = -1};
	if (guard_start(&agent.guard, &err) != STATUS_OK ||
		open_signals(&agent, &err) != STATUS_OK ||
		open_sources(&agent, &err) != STATUS_OK ||
		worker_start(&agent.group.worker, options->store, &err) != STATUS_OK) {
		code = message_fail(&err);
		goto out;
	}
	enum status status = join(&agent, &err);
	if (status != STATUS_OK) {
		code = not_joined(&agent, status, &err);
		goto out;
	}
	status = start(&agent, &err);
	if (status != STATUS_OK) {
		code = message_fail(&err);
		leave_unstarted(&agent, REASON_FAILED, code, err.text);
		goto out;
	}
	worker_follow(agent.group.worker, &agent.group.view.attempt, agent.group.view.revision);
	run_tasks(&agent);
	code = combined_code(&agent);
	say_goodbye(&agent);
	say_end(&agent, code);
out:
	release(&agent);
	return code;
}
