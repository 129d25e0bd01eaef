/* SPDX-License-Identifier: MIT */
#include "agent/task/agent_task.h"

#include <signal.h>
#include <string.h>

#include "base/clock.h"
#include "base/message.h"

#include "agent/signal_only.h"

/* ms between two looks for a save: a tenth of the time since it was ordered, within these. */
#define SAVED_EVERY  20
#define SAVED_SELDOM 100
#define FAILED_EVERY 100      /* ms between two tries on a board that cannot be read or written */
#define SAVE_MOST    86400000 /* ms; a longer time is not trusted: a clock may have been set */

void agent_task_init(struct agent_task *task, struct group *group, uint64_t number,
	struct command *command, int64_t now)
{
	task->number = number;
	task->command = command;
	task->config = group->options->agreement;
	task->config.task = number;
	task->config.alone = &group->alone;
	task->config.report_jitter = clock_jitter(1000);
	agreement_init(&task->agreement, &task->config, &group->view.agreement, now);
	agreement_saw(&task->agreement, now);
	task->interval.since = now;
	group->looked_at = now;
}

void agent_task_keep_deadline(struct agent_task *task, struct view *view)
{
	struct agreement_view *known = &view->agreement;
	struct board_deadline deadline = {.revision = view->deadline_revision,
		.earliest = known->deadline,
		.latest = known->deadline_latest,
		.doubted = known->deadline_doubted};
	if (deadline.revision == task->deadline_kept)
		return;
	task->deadline_kept = deadline.revision;
	board_keep_deadline(&task->board, &deadline);
	known->deadline = deadline.earliest;
	known->deadline_latest = deadline.latest;
	known->deadline_doubted = deadline.doubted;
}

void agent_task_release(struct agent_task *task)
{
	board_release(&task->board, true);
}

/*
 * The board could not be read or written. If it is gone, tell the agreement. After an error that
 * can pass (a full filesystem, no descriptor), try again, until the deadline if need be.
 */
static void board_failed(struct agent_task *task, const struct error *err)
{
	bool gone = err->status != STATUS_TEMPORARY || board_vanished(&task->board);
	bool *said = gone ? &task->said_lost : &task->said_failing;
	if (!*said)
		message_error("task %llu: %s%s", (unsigned long long)task->number, err->text,
			gone ? "" : "; trying again");
	*said = true;
	if (gone)
		agreement_board_lost(&task->agreement);
}

static void tell_measure(struct agent_task *task, int64_t now)
{
	const uint64_t enough = 3; /* saves, to know how long one usually takes */
	struct grace_measure measure = {.longest_save = task->save_time,
		.longest_step = step_interval_longest(&task->interval, now),
		.usual_step = step_interval_usual(&task->interval)};
	if (task->saves >= enough)
		measure.usual_save = task->saves_time / (int64_t)task->saves;
	agreement_measured(&task->agreement, &measure);
}

static void count_save(struct agent_task *task, uint64_t step, int64_t now)
{
	step_interval_saved(&task->interval, step, task->save_time, now);
	task->saves++;
	task->saves_time += task->save_time;
}

/*
 * Note whether another process trains than at the last look. Call this before reading the board: a
 * successor empties the board before it writes its name.
 */
static void look_at_owner(struct agent_task *task)
{
	struct board_owner owner;
	if (board_read_owner(&task->board, &owner) != STATUS_OK ||
		!strcmp(owner.line, task->owner.line))
		return;
	if (*task->owner.line) {
		message_info("task %llu: the training was started again below its command",
			(unsigned long long)task->number);
		agreement_restarted(&task->agreement);
		board_make_room(&task->board);
		task->interval.seen = false;
	}
	task->owner = owner;
}

/*
 * When a step was written that was not there at the last look. The file's clock may differ from
 * ours (a board on a network filesystem) or be set: the answer lies between that look and now.
 */
static int64_t written_at(const struct agent_task *task, const struct board_step *step, int64_t now)
{
	int64_t age = clock_utc() - step->written;
	int64_t least = task->looked > task->interval.since ? task->looked : task->interval.since;
	if (age < 0)
		return now;
	return age < now - least ? now - age : least;
}

static void saw_step(struct agent_task *task, const struct board_step *step, int64_t now)
{
	bool moved = task->interval.seen && step->step > task->interval.step;
	step_interval_saw(&task->interval, step->step, step->next,
		agreement_stands_still(&task->agreement.told, step->step),
		moved ? written_at(task, step, now) : now);
	task->looked = now;
	task->step_written = step->written;
}

void agent_task_sample(struct agent_task *task, int64_t now)
{
	struct board_step step;
	struct error err;
	if (task->agreement.ended)
		return;
	look_at_owner(task);
	if (board_read_step(&task->board, &step, &err) != STATUS_OK) {
		board_failed(task, &err);
		return;
	}
	if (!step.started)
		return;
	agent_task_read_saved(task, now);
	saw_step(task, &step, now);
	/* The step that was read for the report stays: the task may not pass that boundary. */
	if (task->agreement.told.order != ORDER_WAIT || !task->agreement.read)
		agreement_read(&task->agreement, true, step.step, step.next, now);
	tell_measure(task, now);
}

void agent_task_read_saved(struct agent_task *task, int64_t now)
{
	uint64_t saved;
	int64_t saved_at = 0;
	struct board_step step;
	struct agreement *a = &task->agreement;
	if (board_read_saved(&task->board, &saved, &saved_at, NULL) != STATUS_OK ||
		(a->has_saved && saved <= a->saved_step))
		return;
	look_at_owner(task); /* `saved` may be that of an earlier process */
	if (board_read_saved(&task->board, &saved, &saved_at, NULL) != STATUS_OK ||
		(a->has_saved && saved <= a->saved_step))
		return;
	/* By the files' times, a save lasts from the boundary, or a later order, to `saved`. */
	if (board_read_step(&task->board, &step, NULL) == STATUS_OK && step.step == saved) {
		int64_t began = clock_later(step.written, task->hold_written);
		if (saved_at >= began && saved_at - began < SAVE_MOST)
			task->save_time = saved_at - began;
	}
	if (!task->hold_written && (a->told.order == ORDER_SAVE || a->told.order == ORDER_EXIT)) {
		int64_t since_told = now - a->told_at;
		if (since_told < task->save_time || task->save_time == 0)
			task->save_time = since_told;
	}
	count_save(task, saved, now);
	tell_measure(task, now);
	agreement_saved(a, saved);
}

/* Tell the client on its board to leave: it may ignore TERM. */
static void tell_to_leave(struct agent_task *task)
{
	struct agreement_hold leave = {.order = ORDER_LEAVE, .code = task->agreement.code};
	if (leave.code == 0)
		leave.code = CODE_PREEMPTED;
	task->told_to_leave = true;
	(void)board_tell(&task->board, &leave, NULL);
}

/* End the command by TERM, then KILL, and by the boards of its tasks. */
static void end_command(
	struct agent_task *task, const struct group *group, int64_t now, int64_t *wake)
{
	struct command *command = task->command;
	if (!command->process.pid && !command->foreign)
		return;
	if (now < command->end_not_before) {
		*wake = command->end_not_before < *wake ? command->end_not_before : *wake;
		return;
	}
	bool begins = !command->ending;
	command->ending = true;
	if (!group->one_stage && !task->told_to_leave) /* one stage: its caller gets the code */
		tell_to_leave(task);
	if (begins)
		subprocess_end(&command->process, SIGTERM, now + group->options->kill_after);
	if (command->process.pid)
		*wake = clock_earlier(command->process.end.due, *wake);
}

static void build_write(struct write *write, struct agent_task *task, const struct group *group,
	enum agreement_write what, const struct agreement_plan *plan, int64_t now)
{
	const struct agreement *a = &task->agreement;
	struct write_details details = {.notice = &group->notice,
		.then = THEN_EXIT,
		.deadline = group->own_deadline,
		.step_time = step_interval_longest(&task->interval, now),
		.save_time = task->save_time,
		.acknowledges = !task->config.acknowledges,
		.code = what == WRITE_ERROR ? a->end_code : a->code,
		.line = task->command->line,
		.saved = a->has_saved,
		.saved_step = a->saved_step,
		.complete = a->has_complete,
		.complete_step = a->complete_step,
		.chief_saves = a->config.savers_chief || a->config.complete_chief};
	struct board_step step;
	if (what == WRITE_LEFT) {
		details.longest_save = a->measure.longest_save;
	}
	if (what == WRITE_LEFT && board_read_step(&task->board, &step, NULL) == STATUS_OK) {
		details.called = step.started;
		details.step = step.step;
	}
	write_build(write, &group->view, what, task->number, plan, &details);
	if (what == WRITE_SAVED && group->one_stage) /* it may be the last save */
		write_news(&write->transaction, &group->view.attempt, true);
}

static void start_write(struct agent_task *task, struct group *group, enum agreement_write what,
	const struct agreement_plan *plan, int64_t now)
{
	struct write write;
	bool same = what == WRITE_CLAIM || what == WRITE_DEADLINE || what == WRITE_ROUND ||
		    what == WRITE_DECISION;
	if (same && group->shared[what])
		return; /* another task here is writing it; the view will show it */
	group->shared[what] = same;
	build_write(&write, task, group, what, plan, now);
	agreement_writing(&task->agreement, what);
	store_thread_write(group->store_thread, &write);
}

size_t agent_task_unwritten(
	struct agent_task *task, const struct group *group, struct write unwritten[2])
{
	const struct agreement *a = &task->agreement;
	struct agreement_plan plan = {.reason = a->reason};
	size_t count = 0;
	if (a->done[WRITE_LEFT] || a->view->peers[task->number].left != REASON_NONE)
		return 0;
	plan.write[WRITE_ERROR] = plan.write[WRITE_LEFT] = 1;
	if (a->reason == REASON_FAILED && !a->done[WRITE_ERROR] && !a->view->broken)
		build_write(&unwritten[count++], task, group, WRITE_ERROR, &plan, clock_now());
	build_write(&unwritten[count++], task, group, WRITE_LEFT, &plan, clock_now());
	return count;
}

static bool read_board(struct agent_task *task, int64_t now)
{
	struct board_step step = {0};
	struct error err;
	look_at_owner(task);
	if (board_read_step(&task->board, &step, &err) != STATUS_OK) {
		board_failed(task, &err);
		return false;
	}
	if (step.started)
		saw_step(task, &step, now);
	agreement_read(&task->agreement, step.started, step.step, step.next, now);
	return true;
}

/*
 * Whether the task is about to be told to save where it stands, not at an agreed step, but has
 * moved since it was told to wait: then the step that was read before is too old.
 */
static bool has_moved(const struct agent_task *task, const struct agreement_plan *plan)
{
	const struct agreement *a = &task->agreement;
	bool agreed = a->view->decided && a->view->decision.kind != KIND_EACH;
	struct board_step step;
	return plan->hold.order == ORDER_EXIT && a->told.order == ORDER_WAIT && !agreed &&
	       board_read_step(&task->board, &step, NULL) == STATUS_OK && step.started &&
	       step.step != a->read_step;
}

/* One pass. True: something was done after which the agreement has to be asked again. */
static bool advance_once(struct agent_task *task, struct group *group, int64_t now,
	struct agreement_plan *plan, int64_t *wake)
{
	struct agreement *a = &task->agreement;
	struct error err;
	bool again = false;
	agreement_next(a, now, plan);

	bool differs = !board_same_hold(&plan->hold, &a->told);
	if (differs && !a->ended && has_moved(task, plan)) {
		(void)read_board(task, now);
		return true;
	}
	if (differs && !a->ended) {
		bool told = board_tell(&task->board, &plan->hold, &err) == STATUS_OK;
		if (!told)
			board_failed(task, &err);
		if (told || a->lost)
			agreement_told(a, &plan->hold, now);
		if (told)
			task->hold_written = 0;
		if (told)
			step_interval_told(&task->interval,
				agreement_stands_still(&plan->hold, task->interval.step), now);
		again = told || a->lost;
		if (!again && now + FAILED_EVERY < *wake)
			*wake = now + FAILED_EVERY;
	}
	if (plan->read_board <= now && !a->ended && !a->lost) {
		again = read_board(task, now) || a->lost;
		if (!again)
			plan->read_board = now + FAILED_EVERY;
	}
	for (enum agreement_write what = 0; what < WRITE_KINDS; what++)
		if (plan->write[what])
			start_write(task, group, what, plan, now);
	if (plan->end_command) {
		signal_only_tell(
			task->command, group, now); /* if it was not told, let it save first */
		end_command(task, group, now, wake);
	}
	return again;
}

/*
 * Whether a task may leave. A signal-only task may leave when its time is over, or when all other
 * tasks have left: its exit must not interrupt their saves.
 */
static bool may_finish(const struct agent_task *task, const struct group *group, int64_t now,
	int64_t *wake, struct store_wants *wants)
{
	int64_t limit = task->command->end_not_before;
	uint64_t others = signal_only_others(&group->view, task->number);
	if (!limit || now >= limit || !others)
		return true;
	*wake = clock_earlier(*wake, limit);
	wants->look = clock_earlier(wants->look, group->looked_at + 1000);
	wants->count = 0;
	if (group->view.agreement.departed >= others)
		wants->read = now;
	return false;
}

static bool awaits_save(const struct agreement *a)
{
	return !a->ended && (a->told.order == ORDER_SAVE || a->told.order == ORDER_EXIT) &&
	       !(a->has_saved && a->saved_step >= a->told.step);
}

static int64_t look_for_save_at(const struct agent_task *task, int64_t now)
{
	int64_t pause = (now - task->agreement.told_at) / 10;
	pause = pause < SAVED_EVERY ? SAVED_EVERY : pause > SAVED_SELDOM ? SAVED_SELDOM : pause;
	return now + pause;
}

/* The code to report: 1 if the command failed with a code to which preempt-run gives a meaning. */
static int own_code(struct agent_task *task, const struct group *group, int code)
{
	bool means_other = code == CODE_SAVED || code == CODE_PREEMPTED || code == CODE_BROKEN ||
			   code == CODE_DECIDED || (code == group->options->exit_code && code != 1);
	bool own = task->agreement.reason == REASON_FAILED && task->agreement.end_code == code;
	/* The client itself leaves with 43 when it finds its board gone. */
	bool lost = task->agreement.lost || board_vanished(&task->board);
	if (!own || !means_other || lost)
		return code;
	if (!task->said_own_code)
		message_error("task %llu: its command exited with %d, which preempt-run "
			      "reserves for its own answers: reported as 1",
			(unsigned long long)task->number, code);
	task->said_own_code = true;
	return 1;
}

void agent_task_advance(struct agent_task *task, struct group *group, int64_t now, int64_t *wake,
	struct store_wants *wants)
{
	struct agreement_plan plan;
	if (task->finished)
		return;
	/* A user may have only few inotify instances, and saves are rare: poll for the save. */
	if (awaits_save(&task->agreement)) {
		agent_task_read_saved(task, now);
		/* Its boundaries may lead it past the step at which it is to save. */
		if (task->agreement.read_step < task->agreement.told.step)
			(void)read_board(task, now);
	}
	/* Each pass carries out one plan, which may make another one possible; a few passes are
	 * enough. */
	for (int passes = 0; passes < 8 && advance_once(task, group, now, &plan, wake); passes++)
		;
	if (plan.finished && may_finish(task, group, now, wake, wants)) {
		task->finished = signal_only_conclude(
			task, group, own_code(task, group, plan.code), now, wake);
		return;
	}
	if (awaits_save(&task->agreement) && look_for_save_at(task, now) < *wake)
		*wake = look_for_save_at(task, now);
	if (plan.wake < *wake)
		*wake = plan.wake;
	if (plan.read_board < *wake)
		*wake = plan.read_board;
	wants->look = clock_earlier(wants->look, plan.look);
	wants->count = clock_earlier(wants->count, plan.count);
	wants->read = clock_earlier(wants->read, plan.read);
}

int64_t group_deadline(const struct group *group)
{
	return clock_earlier(group->view.agreement.deadline, group->own_deadline);
}
