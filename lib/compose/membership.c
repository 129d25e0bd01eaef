/* SPDX-License-Identifier: MIT */
#include "compose/membership.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "agent/children/error_line.h"
#include "agent/task/board.h"
#include "base/clock.h"
#include "base/message.h"
#include "base/xalloc.h"
#include "live/heartbeat.h"
#include "live/outage.h"
#include "run/options.h"
#include "run/trace.h"

#define LEAVE_PATIENCE 30000  /* ms to try to reach the store */
#define LEAVE_ONCE     1000   /* ms for each try, at least, even after the deadline of a notice */
#define SAVE_LIMIT     300000 /* ms to wait for the saves of other tasks, at most */
#define BEAT_LOOK      50     /* ms between two readings of beats */
#define BEAT_ALLOWANCE 1000   /* ms to wait for a new beat after the end of its period */

/* An empty value is left out: TaskProlog of Slurm would export the quotes around it. */
static void set(const char *name, const char *value)
{
	if (*value)
		setenv(name, value, 1);
	else
		unsetenv(name);
}

static void set_number(const char *name, uint64_t value)
{
	char digits[24];
	snprintf(digits, sizeof(digits), "%llu", (unsigned long long)value);
	setenv(name, digits, 1);
}

void membership_exports(struct text *exports)
{
	static const char *const names[] = {"PREEMPT_STORE", "PREEMPT_RUN", "PREEMPT_ATTEMPT",
		"PREEMPT_LIFE", "PREEMPT_TASK", "PREEMPT_TASKS", "PREEMPT_LAUNCH",
		"PREEMPT_SIGNALS", "PREEMPT_AGENT", "PREEMPT_DIR"};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *value = getenv(names[i]);
		if (!value)
			continue;
		text_addf(exports, "export %s=", names[i]);
		text_add_shell_word(exports, value);
		text_add(exports, "\n");
	}
}

/* Join, for entry->agent. If a restarted task ends the joined attempt, join the next one. */
static enum status join_until_gathered(struct store *store, const struct attempt_entry *entry,
	struct attempt *attempt, bool *preempted, struct error *err)
{
	for (;;) {
		struct view view;
		enum status status = attempt_join(store, entry, &view, err);
		*preempted = status == STATUS_NO && attempt_is_preempted(&view);
		if (status != STATUS_OK)
			return status;
		*attempt = view.attempt;
		status = attempt_gather(store, &view, entry->deadline, entry->cancel, err);
		bool again =
			status == STATUS_BROKEN && !entry->number && attempt_is_superseded(&view);
		bool agent_gone = process_check(&entry->agent) == PROCESS_GONE;
		/* Do not write LEFT for an agent that is gone: it died. */
		if (status != STATUS_OK && !agent_gone) {
			*preempted = status == STATUS_NO && attempt_is_preempted(&view);
			for (uint64_t i = 0; i < entry->count; i++)
				(void)attempt_leave(store, &view, entry->first + i,
					*preempted ? REASON_PREEMPTED : REASON_PEER,
					*preempted ? CODE_SAVED : (int)status, NULL);
			(void)attempt_close(store, &view, NULL, NULL);
		}
		view_release(&view);
		if (agent_gone)
			return STATUS_NO;
		if (!again)
			return status;
	}
}

static enum status join_and_gather(struct store *store, const struct membership_request *request,
	struct attempt *attempt, bool *preempted, struct error *err)
{
	const struct identity *identity = request->identity;
	struct attempt_entry entry = {.run = identity->run,
		.number = request->attempt,
		.tasks = identity->tasks,
		.first = identity->task,
		.count = identity->count,
		.launch = identity->launch,
		.beatless = request->beatless,
		.deadline = clock_after(request->timeout)};
	enum status status = process_identify(request->agent, &entry.agent, err);
	if (status != STATUS_OK)
		return status;
	entry.cancel = pidfd_open(entry.agent.pid, 0);
	status = join_until_gathered(store, &entry, attempt, preempted, err);
	if (entry.cancel >= 0)
		close(entry.cancel);
	if (status == STATUS_NO && process_check(&entry.agent) == PROCESS_GONE)
		error_set(err, STATUS_NO, "process %d, for which this would join, is gone",
			(int)entry.agent.pid);
	return status;
}

/* Tell the others, which have gathered, that this task fails: it has no board. */
static void leave_without_board(struct store *store, const struct attempt *attempt,
	const struct identity *identity, enum status status, const char *why)
{
	struct view view;
	view_init(&view, attempt);
	for (uint64_t i = 0; i < identity->count; i++) {
		struct membership_goodbye goodbye = {
			.task = identity->task + i, .code = (int)status, .reason = why};
		int leave;
		(void)membership_leave(store, &view, &goodbye, &leave, NULL);
	}
	view_release(&view);
}

enum status membership_join(
	const struct membership_request *request, bool *preempted, struct error *err)
{
	struct store *store;
	struct attempt attempt;
	struct board board = {.directory = -1};
	const struct identity *identity = request->identity;
	enum status status = job_open_store(&store, request->store, clock_after(30000), err);
	*preempted = false;
	if (status != STATUS_OK)
		return status;
	status = identity_check_store(identity, store_where(store), store_is_local(store), err);
	if (status == STATUS_OK)
		status = join_and_gather(store, request, &attempt, preempted, err);
	if (status == STATUS_OK && request->board) {
		status = board_create(&board, request->board_parent, request->agent, NULL, err);
		if (status != STATUS_OK)
			leave_without_board(
				store, &attempt, identity, status, err ? err->text : NULL);
	}
	store_close(store);
	if (status != STATUS_OK)
		return status;
	set("PREEMPT_STORE", request->store);
	set("PREEMPT_RUN", identity->run);
	set_number("PREEMPT_ATTEMPT", attempt.number);
	set("PREEMPT_LIFE", attempt.life);
	set_number("PREEMPT_TASK", identity->task);
	set_number("PREEMPT_TASKS", identity->tasks);
	set("PREEMPT_LAUNCH", identity->launch);
	set("PREEMPT_SIGNALS", request->signals);
	set_number("PREEMPT_AGENT", (uint64_t)request->agent);
	set("PREEMPT_DIR", request->board ? board.path : "");
	board_release(&board, false);
	return STATUS_OK;
}

static enum agreement_reason reason_of(int code)
{
	switch (code) {
	case -1: return REASON_LEFT;
	case STATUS_OK: return REASON_COMPLETED;
	case CODE_SAVED: return REASON_SAVED;
	case CODE_PREEMPTED: return REASON_PREEMPTED;
	case CODE_BROKEN: return REASON_PEER;
	default: return REASON_FAILED;
	}
}

/* The code with which a task leaves after a claim, if its training process ended with `code`. */
static int preempted_code(int code)
{
	return reason_of(code) == REASON_FAILED ? CODE_PREEMPTED : code;
}

/* Tell the others that this task has failed, unless the attempt is ending for another reason. */
static enum status announce_failure(struct store *store, struct view *view, uint64_t task, int code,
	const char *line, struct error *err)
{
	struct write write;
	struct agreement_plan plan = {0};
	plan.write[WRITE_ERROR] = 1;
	write_build(&write, view, WRITE_ERROR, task, &plan,
		&(struct write_details){.code = code, .line = line});
	enum agreement_outcome outcome = write_carry_out(&write, store, err);
	write_release(&write);
	return outcome == OUTCOME_UNKNOWN ? STATUS_TEMPORARY : STATUS_OK;
}

/*
 * Stay until the others have saved, because a launcher may kill all tasks when the first one exits:
 * for SAVE_LIMIT at most, and until LEAVE_EARLY before the deadline.
 */
static void stay_while_others_save(struct store *store, struct view *view, uint64_t task)
{
	int64_t limit = clock_after(SAVE_LIMIT);
	for (;;) {
		int64_t end = clock_earlier(limit, view_leave_by(view));
		if (clock_now() >= end)
			return;
		group_ask_until(store, end);
		enum status status = view_refresh(view, store, NULL);
		if (status == STATUS_TEMPORARY)
			clock_sleep_until(clock_after(clock_jitter(400)));
		else if (status != STATUS_OK || !agreement_others_save(&view->agreement, task))
			return;
		else
			(void)view_wait(view, store, end, -1, NULL);
	}
}

enum status membership_leave(struct store *store, struct view *view,
	const struct membership_goodbye *goodbye, int *leave, struct error *err)
{
	char line[ERROR_LINE] = "";
	uint64_t task = goodbye->task;
	int code = goodbye->code;
	enum agreement_reason reason = reason_of(code);
	if (goodbye->reason)
		snprintf(line, sizeof(line), "%s", goodbye->reason);
	else if (goodbye->board)
		board_read_error(goodbye->board, line, sizeof(line));
	enum status status = view_refresh(view, store, err);
	if (status != STATUS_OK)
		return status;
	if (!view_has_joined(view, task))
		return error_set(err, STATUS_NO, "run %s: task %llu has not joined attempt %llu",
			view->attempt.run, (unsigned long long)task,
			(unsigned long long)view->attempt.number);
	bool left = view->agreement.peers[task].left != REASON_NONE;
	if (view->agreement.claimed) {
		code = preempted_code(code);
		reason = reason_of(code);
	} else if (reason == REASON_FAILED && view->agreement.broken &&
		   !(view->error.present && view->error.task == task)) {
		reason = REASON_PEER;
		code = CODE_BROKEN;
	}
	if (reason != REASON_COMPLETED && agreement_stops(&view->agreement))
		code = CODE_DECIDED;
	code = code < 0 ? STATUS_OK : code;
	*leave = code;
	if (reason == REASON_FAILED && !left)
		status = announce_failure(store, view, task, code, line, err);
	if (status == STATUS_OK && !left) /* the first LEFT counts */
		status = attempt_leave(store, view, task, reason, code, err);
	if (status == STATUS_OK)
		status = attempt_close(store, view, NULL, err);
	bool in_order = reason != REASON_FAILED && reason != REASON_PEER && reason != REASON_LEFT;
	if (status == STATUS_NO && in_order) /* other tasks have not left */
		stay_while_others_save(store, view, task);
	return status == STATUS_NO ? STATUS_OK : status;
}

static enum status leave_once(
	const struct membership_goodbye *goodbye, int64_t until, int *leave, struct error *err)
{
	struct group_run own;
	struct membership_goodbye complete = *goodbye;
	int64_t least = clock_after(LEAVE_ONCE);
	enum status status = group_open(IDENTITY_TASK, true, until, &own, err);
	complete.task = own.identity.task;
	if (status == STATUS_OK) {
		store_set_deadline(own.store, clock_later(until, least));
		status = membership_leave(own.store, &own.view, &complete, leave, err);
	}
	group_close(&own);
	return status;
}

enum status membership_leave_own(
	const struct membership_goodbye *goodbye, int *leave, struct error *err)
{
	struct notice notice = {.deadline = CLOCK_NEVER};
	struct membership_goodbye with_board = *goodbye;
	struct outage outage = {.cancel = -1};
	enum status status;
	with_board.board = getenv("PREEMPT_DIR");
	*leave = goodbye->code < 0 ? STATUS_OK : goodbye->code;
	if (with_board.board && board_read_notice(with_board.board, &notice, err) == STATUS_OK)
		*leave = preempted_code(*leave);
	outage.deadline =
		clock_earlier(clock_after(LEAVE_PATIENCE), notice_deadline(&notice) - LEAVE_EARLY);
	do
		status = leave_once(&with_board, outage.deadline, leave, err);
	while (outage_retry(&outage, &status, err));
	if (with_board.board)
		board_remove_joined(with_board.board);
	return status;
}

static bool is_there(const void *context, uint64_t task)
{
	const struct view *view = context;
	return view_has_joined(view, task) && agreement_counts(&view->agreement, task);
}

static bool may_beat(const void *context, uint64_t task)
{
	const struct view *view = context;
	return is_there(view, task) && process_check(&view->members[task].agent) != PROCESS_GONE;
}

/* Mark the tasks whose processes run on this machine. Returns their number. */
static uint64_t find_processes(const struct view *view, bool *running)
{
	uint64_t count = 0;
	for (uint64_t i = 0; i < view->attempt.tasks; i++)
		count += running[i] = is_there(view, i) &&
				      process_check(&view->members[i].agent) == PROCESS_ALIVE;
	return count;
}

static void say_watching(const struct view *view)
{
	struct text names = {0};
	keys_write_set(view->attempt.tasks, may_beat, view, &names);
	if (names.length)
		message_info("watching for %d periods whether task %s beats", HEARTBEAT_LIMIT,
			text_string(&names));
	text_release(&names);
}

/*
 * Mark the tasks whose beats change within HEARTBEAT_LIMIT periods, and count them. Once one does,
 * the others have one period. STATUS_TEMPORARY: some beats cannot be read.
 */
static enum status find_beating(struct store *store, const struct view *view, bool *running,
	uint64_t *count, struct error *err)
{
	uint64_t tasks = view->attempt.tasks, unread = tasks;
	struct store_beat beat, *first = xcalloc(tasks, sizeof(*first));
	char group[KEYS_GROUP];
	int64_t began = clock_now();
	keys_group(&view->attempt, group);
	say_watching(view);
	for (bool awaited = true; awaited;) {
		awaited = false;
		unread = tasks;
		for (uint64_t i = 0; i < tasks; i++) {
			if (running[i] || !may_beat(view, i))
				continue;
			enum status status = store_beat_read(store, group, i, &beat, NULL);
			if (status != STATUS_OK && status != STATUS_NO)
				unread = i;
			if (status != STATUS_OK || heartbeat_is_farewell(beat.sequence))
				continue;
			int64_t patience = heartbeat_period(beat.sequence) + BEAT_ALLOWANCE;
			if (!first[i].token)
				first[i] = beat;
			running[i] =
				beat.token != first[i].token || beat.sequence != first[i].sequence;
			*count += running[i];
			awaited |= !running[i] &&
				   clock_now() < began + (*count ? 1 : HEARTBEAT_LIMIT) * patience;
		}
		if (awaited)
			clock_sleep_until(clock_after(BEAT_LOOK));
	}
	free(first);
	if (unread == tasks)
		return STATUS_OK;
	return error_set(err, STATUS_TEMPORARY, "run %s: cannot read whether task %llu beats",
		view->attempt.run, (unsigned long long)unread);
}

static enum status refuse_running(struct store *store, const struct view *view, struct error *err)
{
	uint64_t first = 0, count = 0;
	bool *running = xcalloc(view->attempt.tasks, sizeof(*running));
	enum status status = STATUS_OK;
	count = find_processes(view, running);
	if (!count)
		status = find_beating(store, view, running, &count, err);
	if (count) {
		struct text names = {0};
		keys_write_marks(view->attempt.tasks, running, &names);
		while (!running[first])
			first++;
		const struct process_identity *agent = &view->members[first].agent;
		status = error_set(err, STATUS_NO,
			"run %s: attempt %llu %s: task %s (process %d on %s); %s",
			view->attempt.run, (unsigned long long)view->attempt.number,
			view->agreement.claimed ? "is being preempted" : "runs",
			text_string(&names), (int)agent->pid, agent->host,
			view->agreement.claimed
				? "wait until it has ended"
				: "end it first, or close it with --force: then its tasks end with "
				  "44");
		text_release(&names);
	}
	free(running);
	return status;
}

enum status membership_close(struct store *store, struct view *view, bool force, struct error *err)
{
	enum status status = view_refresh(view, store, err);
	for (uint64_t joined = 0; status == STATUS_OK && joined != view_joined(view);) {
		joined = view_joined(view);
		/* In a preemption force has no effect: the tasks save, and ignore the seal. */
		if (view->agreement.closed || (force && !view->agreement.claimed))
			break;
		status = refuse_running(store, view, err);
		if (status == STATUS_OK) /* a task may have joined during this check */
			status = view_refresh(view, store, err);
	}
	return status == STATUS_OK ? attempt_close_by_hand(store, view, err) : status;
}
