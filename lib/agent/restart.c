/* SPDX-License-Identifier: MIT */
/*
 * preempt-run --restarts: after an attempt that broke, the same agent runs the command again in the
 * next one, together with the others, within the budgets.
 *
 * All agents wait until the attempt is closed, and the first of them to ask decides for all (the
 * key NEXT, history.h). An agent whose tasks have finished stays until all have finished: it may
 * have to run again.
 *
 * After a preemption no agent runs again by itself: the noticed machine goes away, and the others
 * could only wait for it. The caller must start them again (exit codes 42 and 43), and also if
 * the attempt does not close, or if not all agents join the next one (exit code 44).
 */
#include "agent/agent.h"

#include <stdio.h>
#include <stdlib.h>

#include "agent/loop/events.h"
#include "agent/loop/loop.h"
#include "agent/loop/say.h"
#include "agent/pulse/pulse.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/message.h"
#include "base/xalloc.h"
#include "live/outage.h"
#include "run/attempt.h"
#include "run/history.h"

#define OPEN_PATIENCE	 2000 /* ms for one try to open the store */
#define CHECK_EVERY	 250  /* ms between two looks at the store, or for a notice */
#define LAST_EVENT_LEAST 1000 /* ms that --on-event has at the end, at least */
#define LAST_EVENT_EARLY 2000 /* ms before the deadline at which --on-event is ended */
#define GONE_EVERY	 1000 /* ms between looks for agents that are gone */

/* The time between two attempts: no command runs here, but notices and signals may come. */
struct between {
	struct agent *agent;
	struct view *view;   /* of the attempt that has ended */
	bool finished;	     /* this agent ended with 0: its tasks have nothing more to do */
	struct store *store; /* NULL: not open yet */
};

/* How this agent reports what concerns all tasks. */
static enum announce_by speaks(const struct between *between)
{
	return announce_by(between->view, between->agent->options->identity, between->finished);
}

static bool is_disturbed(const struct agent *agent)
{
	return agent->group.noticed || agent->passed_on;
}

/* Wait until deadline; false: a notice or a signal came. */
static bool wait_between(struct agent *agent, int64_t deadline)
{
	do {
		int64_t wake = deadline;
		if (agent->options->on_event)
			on_event_advance(agent->options->on_event, clock_now(), &wake);
		agent_wait_for_events(agent, wake);
	} while (!is_disturbed(agent) && clock_now() < deadline);
	if (agent->group.noticed)
		agent_say_notice(agent, ANNOUNCE_OWN);
	return !is_disturbed(agent);
}

/* Declare dead the agents of this machine that were killed: they cannot say goodbye. */
static void declare_gone(struct store *store, struct view *view)
{
	struct death *deaths = xcalloc(view->attempt.tasks, sizeof(*deaths));
	size_t count = write_find_gone(view, NULL, NULL, deaths, DEATHS_MOST);
	if (count)
		(void)write_deaths(store, view, BY_NO_TASK, deaths, count, NULL);
	free(deaths);
}

/* Write the goodbyes that the store has not taken yet; drop those that it refuses. */
static enum status say_goodbyes(struct between *between, struct error *err)
{
	struct agent_end *end = &between->agent->end;
	/* Those that were written are refused the next time. */
	for (size_t i = 0; i < end->unwritten_count; i++)
		if (write_carry_out(&end->unwritten[i], between->store, err) == OUTCOME_UNKNOWN)
			return err->status;
	for (size_t i = 0; i < end->unwritten_count; i++)
		write_release(&end->unwritten[i]);
	end->unwritten_count = 0;
	return STATUS_OK;
}

/* Open the store if it is not open, write the goodbyes, and read what has changed. */
static enum status look(struct between *between, struct error *err)
{
	enum status status = STATUS_OK;
	if (!between->store)
		status = outage_open(&between->store, between->agent->options->store,
			clock_after(OPEN_PATIENCE), err);
	if (status == STATUS_OK)
		status = say_goodbyes(between, err);
	if (status == STATUS_OK)
		status = view_refresh(between->view, between->store, err);
	return status;
}

/*
 * Whether the attempt is closed or was preempted. Before that, declare dead the agents of this
 * machine that are gone, and close the attempt if all have left or are dead.
 */
static bool is_over(
	struct between *between, int64_t *gone_at, enum status *status, struct error *err)
{
	struct view *view = between->view;
	if (!view->agreement.closed && clock_now() >= *gone_at) {
		if (!between->finished || *view->seal)
			declare_gone(between->store, view);
		*gone_at = clock_after(GONE_EVERY);
	}
	if (view_all_through(view))
		*status = attempt_close(between->store, view, NULL, err);
	return view->agreement.closed || view->agreement.claimed;
}

/*
 * Wait until the attempt is closed, or was preempted after all: STATUS_OK. STATUS_NO: a notice or a
 * signal came. After --join-timeout: STATUS_TIMEOUT, or why the store cannot be asked. For a
 * finished agent with a heartbeat, this time starts again at each answer of the store.
 */
static enum status wait_closed(struct between *between, struct error *err)
{
	const struct agent *agent = between->agent;
	const struct view *view = between->view;
	int64_t patience = agent->options->join_timeout;
	int64_t limit = clock_after(patience), gone_at = clock_now();
	bool said = false;
	for (;;) {
		enum status status = look(between, err);
		bool answered = status == STATUS_OK;
		if (answered && is_over(between, &gone_at, &status, err))
			return STATUS_OK;
		if (status == STATUS_DAMAGED || status == STATUS_PERMISSION)
			return status; /* waiting does not help */
		if (answered && between->finished && agent->group.pulse)
			limit = clock_after(patience);
		if (clock_now() >= limit)
			return answered ? error_set(err, STATUS_TIMEOUT,
						  "run %s: attempt %llu has not closed",
						  view->attempt.run,
						  (unsigned long long)view->attempt.number)
					: status;
		if (between->finished && !said)
			announce(NULL, ANNOUNCE_AGAIN, answered ? speaks(between) : ANNOUNCE_OWN,
				NULL, "finished; %s",
				answered ? "waiting for the other tasks (--restarts)"
					 : "waiting for the store, so that the other tasks "
					   "learn of it (--restarts)");
		said = true;
		if (!wait_between(between->agent, clock_after(answered ? 0 : CHECK_EVERY)))
			return STATUS_NO;
		if (answered)
			(void)view_wait(
				between->view, between->store, clock_after(CHECK_EVERY), -1, NULL);
	}
}

/*
 * Another task has failed or was lost; the tasks here have finished. Run them again only together
 * with a task that has not finished, once that task has opened the next attempt, after its pause.
 * True: it was opened.
 */
static bool wait_for_opening(struct between *between, int64_t pause)
{
	const struct attempt *attempt = &between->view->attempt;
	int64_t limit = clock_after(pause + between->agent->options->join_timeout);
	struct error err;
	do {
		uint64_t newest = 0;
		if (look(between, &err) == STATUS_OK && view_all_completed(between->view)) {
			(void)attempt_close(between->store, between->view, NULL, NULL);
			return false;
		}
		if (attempt_newest(between->store, attempt->run, &newest, NULL, &err) ==
				STATUS_OK &&
			newest > attempt->number)
			return true;
		if (!wait_between(between->agent, clock_after(CHECK_EVERY)))
			return false;
	} while (clock_now() < limit);
	message_info("finished; no other task has run again within the pause and --join-timeout");
	return false;
}

/*
 * The exit code of an agent that was preempted after it had ended with `code`: 0, 42 (or that of
 * --exit-code), 43 and 93 stay; any other becomes 44, so that the caller starts it again.
 */
static int preempted_code(const struct agent_options *options, int code)
{
	bool stands = code == STATUS_OK || code == options->exit_code || code == CODE_PREEMPTED ||
		      code == CODE_DECIDED;
	return stands ? code : CODE_BROKEN;
}

/* The words for an exit code that was chosen after the attempt. */
static const char *advice(const struct agent_options *options, int code)
{
	if (code == options->exit_code || code == CODE_PREEMPTED || code == CODE_BROKEN)
		return "run me again";
	return code == CODE_DECIDED ? "do not run me again"
	       : code == STATUS_OK  ? "finished"
				    : "ended";
}

/* Set the exit code and how the last line of this agent words the end. Returns code. */
static int end_as(struct between *between, int code, const char *what, const char *why)
{
	struct agent_end *end = &between->agent->end;
	snprintf(end->text, sizeof(end->text), "%s (%d)%s%s", what, code, *why ? ": " : "", why);
	end->code = code;
	if (!end->started)
		end->by = speaks(between) == ANNOUNCE_GROUP ? ANNOUNCE_GROUP : ANNOUNCE_OWN;
	return code;
}

/*
 * The exit code of an agent that leaves between two attempts, but not because of the limits: it has
 * finished, or a signal or a notice came.
 */
static int leave_now(struct between *between, int code)
{
	if (between->finished)
		return STATUS_OK;
	if (between->agent->passed_on)
		return 128 + between->agent->passed_on;
	char what[64];
	code = preempted_code(between->agent->options, code);
	snprintf(what, sizeof(what), "stopped between two attempts: %s",
		advice(between->agent->options, code));
	return end_as(between, code, what, "");
}

/* The exit code of an agent that cannot learn what was decided. */
static int give_up(const struct between *between, const struct error *why)
{
	message_error("%s; cannot run again here: start this run again", why->text);
	return between->finished ? STATUS_OK : CODE_BROKEN;
}

/* The attempt has closed: do what was decided for all its agents. False: *code is the exit code. */
static bool follow_decision(struct between *between, const struct budget_limits *limits, int *code)
{
	struct agent *agent = between->agent;
	const struct agent_options *options = agent->options;
	struct budget_decision decision;
	struct error err;
	struct agent_checkpoint found = {0};
	bool has_resume = options->find_checkpoint &&
			  options->find_checkpoint(NULL, &found, &err) == STATUS_OK &&
			  !found.doubtful;
	enum status status = history_decide_next(between->store, &between->view->attempt, limits,
		has_resume ? &found.step : NULL, &decision, &err);
	if (status != STATUS_OK) {
		*code = give_up(between, &err);
		return false;
	}
	enum announce_by by = speaks(between);
	if (decision.decided) {
		*code = end_as(between, CODE_DECIDED, "not run again", decision.why);
		agent->end.decided = true;
	}
	if (!decision.again)
		return false;
	bool again;
	if (between->finished) {
		announce(options->on_event, ANNOUNCE_AGAIN, by, NULL,
			"%s; the tasks here have finished: running again only together with a task "
			"that has not finished",
			decision.why);
		again = wait_for_opening(between, decision.pause);
	} else {
		announce(options->on_event, ANNOUNCE_AGAIN, by, NULL, "%s; running again in %.1f s",
			decision.why, (double)decision.pause / 1000);
		again = wait_between(agent, clock_after(decision.pause));
	}
	/* The last notices. */
	agent_block_signals(agent, true);
	agent_take_held(agent);
	if (agent->group.noticed)
		agent_say_notice(agent, ANNOUNCE_OWN);
	again &= !is_disturbed(agent);
	if (!again)
		*code = leave_now(between, *code);
	return again;
}

/* Whether to run again after an attempt that was not preempted. False: *code is the exit code. */
static bool runs_again(struct between *between, const struct budget_limits *limits, int *code)
{
	struct error err;
	enum status status = wait_closed(between, &err);
	if (status == STATUS_OK && !between->view->agreement.claimed)
		return follow_decision(between, limits, code);
	if (status == STATUS_NO) {
		*code = leave_now(between, *code);
	} else if (status == STATUS_OK) {
		*code = preempted_code(between->agent->options, *code);
	} else {
		*code = give_up(between, &err);
	}
	return false;
}

/* Run one attempt. True: another one follows. False: *code is the exit code. */
static bool run_once(struct agent *agent, const struct budget_limits *limits, bool first, int *code)
{
	*code = agent_attempt(agent);
	const struct agent_end *end = &agent->end;
	bool unstarted_late = !end->started && *code == STATUS_TIMEOUT;
	if (unstarted_late) {
		*code = CODE_BROKEN;
		message_error("not all tasks have %s: start this run again (%d)",
			first ? "come" : "come back", *code);
		return false;
	}
	if (!limits || end->attempt.number == 0 || agent->passed_on || end->superseded)
		return false;
	/* Do not run again: the machine with the notice goes away. The limits are applied at the
	 * next start, from the history of the run. */
	if (agent->group.noticed || end->claimed) {
		*code = preempted_code(agent->options, *code);
		return false;
	}
	struct between between = {
		.agent = agent, .view = &agent->group.view, .finished = *code == STATUS_OK};
	agent_block_signals(agent, false);
	view_init(between.view, &end->attempt);
	/* The heartbeat goes on: the others see that we live, and we see them die. */
	pulse_watch(agent->group.pulse);
	bool again = runs_again(&between, limits, code);
	agent_block_signals(agent, true);
	store_close(between.store);
	return again;
}

/* The last line: how the last attempt has ended, and the totals of all attempts. */
static void say_end(const struct agent_options *options, struct agent_end *end, bool noticed,
	uint64_t attempts, int code)
{
	if (end->code != code)
		snprintf(end->text, sizeof(end->text), "%s (%d)", advice(options, code), code);
	char trained[64] = "", lost[64] = "";
	struct json_object *fields = json_object_new_object();
	int64_t took = clock_now() - options->began;
	json_put_signed(fields, "code", code);
	json_put_unsigned(fields, "attempts", attempts);
	json_put_signed(fields, "ms", took);
	if (end->trained) {
		json_put_unsigned(fields, "step", end->step);
		snprintf(trained, sizeof(trained), ", trained to step %llu",
			(unsigned long long)end->step);
	}
	if (end->claimed || noticed) {
		json_put_signed(fields, "lost_ms", end->lost);
		if (end->deadline != CLOCK_NEVER)
			json_put_signed(fields, "left_ms", end->deadline - clock_now());
		snprintf(lost, sizeof(lost), ", %.1f s of it lost in stopping",
			(double)end->lost / 1000);
	}
	announce(options->on_event, end->decided ? ANNOUNCE_STOPPED : ANNOUNCE_END, end->by, fields,
		"%s; %llu attempt%s in %.1f s%s%s", end->text, (unsigned long long)attempts,
		attempts == 1 ? "" : "s", (double)took / 1000, lost, trained);
}

/* Until when --on-event may run: preempt-run must exit before the machine goes away. */
static int64_t last_commands_until(int64_t deadline)
{
	int64_t least = clock_after(LAST_EVENT_LEAST);
	return clock_later(least,
		clock_earlier(clock_after(ON_EVENT_LIMIT),
			deadline == CLOCK_NEVER ? CLOCK_NEVER : deadline - LAST_EVENT_EARLY));
}

/* The exit code. */
static int run_attempts(struct agent *agent, const struct budget_limits *limits)
{
	const struct agent_options *options = agent->options;
	struct agent_end *end = &agent->end;
	int code;
	uint64_t attempts = 0;
	int64_t superseded_until = clock_after(options->join_timeout);
	for (bool first = true;;) {
		bool again = run_once(agent, limits, first, &code);
		attempts += end->attempt.number != 0 && !end->superseded;
		end->deadline = clock_earlier(end->deadline, agent->group.own_deadline);
		if (!again && *end->text)
			say_end(options, end, agent->group.noticed, attempts, code);
		/* After a rehearsal, the exit code is its result. */
		if (!again && end->started && options->rehearsal.signal)
			code = end->rehearsed_well ? STATUS_OK : STATUS_NO;
		bool superseded =
			end->superseded && !agent->passed_on && clock_now() < superseded_until;
		if (superseded)
			message_info("joining the next attempt");
		else if (!again)
			return code;
		first &= superseded;
		if (again) {
			agent->asked = 0;
			superseded_until = clock_after(options->join_timeout);
		}
		agent_next(agent);
	}
}

int agent_run(const struct agent_options *options, const struct budget_limits *limits)
{
	/* On the heap: a store thread that hangs may outlive this function. */
	struct agent_options *kept = xcalloc(1, sizeof(*kept));
	struct agent agent;
	struct error err;
	*kept = *options;
	kept->began = clock_now();
	enum status status = agent_open(&agent, kept, &err);
	int code = status == STATUS_OK ? run_attempts(&agent, limits) : message_fail(&err);
	int64_t until = last_commands_until(agent.end.deadline);
	if (agent_close(&agent))
		free(kept);
	if (options->on_event)
		on_event_finish(options->on_event, until);
	return code;
}
