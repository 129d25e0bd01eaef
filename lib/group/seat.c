/* SPDX-License-Identifier: MIT */
#include "group/seat.h"

#include <signal.h>
#include <string.h>

#include "base/clock.h"
#include "base/message.h"

#include "group/signal_only.h"

/* ms between looks for a save that was asked for: a tenth of the wait, within these. */
#define SAVED_EVERY  20
#define SAVED_SELDOM 100
#define FAILED_EVERY 100 /* ms between two tries to write to a board that cannot be written */

enum status seat_init(
	struct seat *seat, struct group *group, uint64_t task, struct command *command, int64_t now)
{
	seat->task = task;
	seat->command = command;
	seat->config = group->options->agreement;
	seat->config.task = task;
	seat->config.alone = &group->alone;
	seat->config.report_jitter = clock_jitter(1000);
	agreement_init(&seat->agreement, &seat->config, &group->view.agreement, now);
	agreement_saw(&seat->agreement, now);
	seat->interval.since = now;
	return STATUS_OK;
}

void seat_release(struct seat *seat)
{
	board_release(&seat->board, true);
}

/*
 * The board could not be read or written. One that is gone is lost; what can pass (a full
 * filesystem, no descriptor) is tried again, until the deadline if need be.
 */
static void board_failed(struct seat *seat, const struct error *err)
{
	bool gone = err->status != STATUS_TEMPORARY || board_vanished(&seat->board);
	bool *said = gone ? &seat->said_lost : &seat->said_failing;
	if (!*said)
		message_error("task %llu: %s%s", (unsigned long long)seat->task, err->text,
			gone ? "" : "; trying again");
	*said = true;
	if (gone)
		agreement_board_lost(&seat->agreement);
}

static void tell_measure(struct seat *seat, int64_t now)
{
	const uint64_t enough = 3; /* saves, to say what is usual */
	struct grace_measure measure = {.longest_save = seat->save_time,
		.longest_step = step_interval_longest(&seat->interval, now),
		.usual_step = step_interval_usual(&seat->interval)};
	if (seat->saves >= enough)
		measure.usual_save = seat->saves_time / (int64_t)seat->saves;
	agreement_measured(&seat->agreement, &measure);
}

static void count_save(struct seat *seat, uint64_t step, int64_t now)
{
	step_interval_saved(&seat->interval, step, seat->save_time, now);
	seat->saves++;
	seat->saves_time += seat->save_time;
}

/*
 * Check first whether the same process trains as at the last reading. A successor empties the board
 * before it writes its name.
 */
static void look_at_owner(struct seat *seat)
{
	struct board_owner owner;
	if (board_read_owner(&seat->board, &owner) != STATUS_OK ||
		!strcmp(owner.line, seat->owner.line))
		return;
	if (*seat->owner.line) {
		message_info("task %llu: the training was started again below its command",
			(unsigned long long)seat->task);
		agreement_restarted(&seat->agreement);
		board_make_room(&seat->board);
		seat->interval.seen = false;
	}
	seat->owner = owner;
}

/*
 * When a step was written that was not there at the last look. The file's clock may differ from
 * ours (a board on a network filesystem) or be set: the answer lies between that look and now.
 */
static int64_t written_at(const struct seat *seat, const struct board_step *step, int64_t now)
{
	int64_t age = clock_utc() - step->written;
	int64_t least = seat->looked > seat->interval.since ? seat->looked : seat->interval.since;
	if (age < 0)
		return now;
	return age < now - least ? now - age : least;
}

/* The board says that the training has come to this step. */
static void saw_step(struct seat *seat, const struct board_step *step, int64_t now)
{
	bool moved = seat->interval.seen && step->step > seat->interval.step;
	step_interval_saw(&seat->interval, step->step, step->next,
		agreement_stands_still(&seat->agreement.told, step->step),
		moved ? written_at(seat, step, now) : now);
	seat->looked = now;
}

void seat_sample(struct seat *seat, int64_t now)
{
	struct board_step step;
	struct error err;
	if (seat->agreement.ended)
		return;
	look_at_owner(seat);
	if (board_read_step(&seat->board, &step, &err) != STATUS_OK) {
		board_failed(seat, &err);
		return;
	}
	if (!step.started)
		return;
	seat_read_saved(seat, now);
	saw_step(seat, &step, now);
	/* What was read for the report binds: it has come to that boundary since, not past it. */
	if (seat->agreement.told.order != ORDER_WAIT || !seat->agreement.read)
		agreement_read(&seat->agreement, true, step.step, step.next, now);
	tell_measure(seat, now);
}

void seat_read_saved(struct seat *seat, int64_t now)
{
	uint64_t saved;
	int64_t saved_at = 0;
	struct board_step step;
	struct agreement *a = &seat->agreement;
	board_drain(&seat->board);
	if (board_read_saved(&seat->board, &saved, &saved_at, NULL) != STATUS_OK ||
		(a->has_saved && saved <= a->saved_step))
		return;
	look_at_owner(seat); /* it may be of a former training */
	if (board_read_saved(&seat->board, &saved, &saved_at, NULL) != STATUS_OK ||
		(a->has_saved && saved <= a->saved_step))
		return;
	/* From the boundary to `saved`: the save, by the times of the two files. */
	if (board_read_step(&seat->board, &step, NULL) == STATUS_OK && step.step == saved &&
		saved_at >= step.written && saved_at - step.written < 86400000)
		seat->save_time = saved_at - step.written;
	if (a->told.order == ORDER_SAVE || a->told.order == ORDER_EXIT) {
		int64_t since_told = now - a->told_at;
		if (since_told < seat->save_time || seat->save_time == 0)
			seat->save_time = since_told;
	}
	count_save(seat, saved, now);
	tell_measure(seat, now);
	agreement_saved(a, saved);
}

static void signal_command(const struct command *command, int number)
{
	if (command->running)
		kill(-command->pid, number);
}

/* TERM, then KILL; a client that ignores TERM is also told on its board. */
static void end_command(struct seat *seat, const struct group *group, int64_t now, int64_t *wake)
{
	struct command *command = seat->command;
	if (!command->running && !command->foreign)
		return;
	if (now < command->end_not_before) {
		*wake = command->end_not_before < *wake ? command->end_not_before : *wake;
		return;
	}
	if (!command->ending) {
		struct agreement_hold leave = {.order = ORDER_LEAVE, .code = seat->agreement.code};
		if (leave.code == 0)
			leave.code = STATUS_PREEMPTED;
		command->ending = true;
		command->kill_at = now + group->options->kill_after;
		(void)board_tell(&seat->board, &leave, NULL);
		signal_command(command, SIGTERM);
		signal_command(command, SIGCONT);
	}
	if (now >= command->kill_at)
		signal_command(command, SIGKILL);
	int64_t again = now >= command->kill_at ? now + 1000 : command->kill_at;
	*wake = again < *wake ? again : *wake;
}

static void build_write(struct write *write, struct seat *seat, const struct group *group,
	enum agreement_write what, const struct agreement_plan *plan, int64_t now)
{
	const struct agreement *a = &seat->agreement;
	struct write_details details = {.notice = &group->notice,
		.then = THEN_EXIT,
		.deadline = group->own_deadline,
		.step_time = step_interval_longest(&seat->interval, now),
		.save_time = seat->save_time,
		.acknowledges = !seat->config.acknowledges,
		.code = what == WRITE_ERROR ? a->end_code : a->code,
		.line = seat->command->line,
		.saved = a->has_saved,
		.saved_step = a->saved_step};
	struct board_step step;
	if (what == WRITE_LEFT) {
		details.longest_save = a->measure.longest_save;
		details.learned = &group->progress;
	}
	if (what == WRITE_LEFT && board_read_step(&seat->board, &step, NULL) == STATUS_OK) {
		details.called = step.started;
		details.step = step.step;
	}
	write_build(write, &group->view, what, seat->task, plan, &details);
}

static void start_write(struct seat *seat, struct group *group, enum agreement_write what,
	const struct agreement_plan *plan, int64_t now)
{
	struct write write;
	bool same = what == WRITE_CLAIM || what == WRITE_DEADLINE || what == WRITE_ROUND ||
		    what == WRITE_DECISION;
	if (same && group->shared[what])
		return; /* the view will show what the other seat has done */
	group->shared[what] = same;
	build_write(&write, seat, group, what, plan, now);
	agreement_writing(&seat->agreement, what);
	store_thread_write(group->store_thread, &write);
}

size_t seat_unwritten(struct seat *seat, const struct group *group, struct write unwritten[2])
{
	const struct agreement *a = &seat->agreement;
	struct agreement_plan plan = {.reason = a->reason};
	size_t count = 0;
	if (a->done[WRITE_LEFT] || a->view->peers[seat->task].left != REASON_NONE)
		return 0;
	plan.write[WRITE_ERROR] = plan.write[WRITE_LEFT] = 1;
	if (a->reason == REASON_FAILED && !a->done[WRITE_ERROR] && !a->view->broken)
		build_write(&unwritten[count++], seat, group, WRITE_ERROR, &plan, clock_now());
	build_write(&unwritten[count++], seat, group, WRITE_LEFT, &plan, clock_now());
	return count;
}

static bool read_board(struct seat *seat, int64_t now)
{
	struct board_step step = {0};
	struct error err;
	look_at_owner(seat);
	if (board_read_step(&seat->board, &step, &err) != STATUS_OK) {
		board_failed(seat, &err);
		return false;
	}
	if (step.started)
		saw_step(seat, &step, now);
	agreement_read(&seat->agreement, step.started, step.step, step.next, now);
	return true;
}

/*
 * About to be told to save where it stands, not where all agreed: then what was read when it was
 * told to wait is too old. True if it has moved since.
 */
static bool has_moved(const struct seat *seat, const struct agreement_plan *plan)
{
	const struct agreement *a = &seat->agreement;
	bool agreed = a->view->decided && a->view->decision.kind != KIND_EACH;
	struct board_step step;
	return plan->hold.order == ORDER_EXIT && a->told.order == ORDER_WAIT && !agreed &&
	       board_read_step(&seat->board, &step, NULL) == STATUS_OK && step.started &&
	       step.step != a->read_step;
}

/* One pass; true if something was done after which the agreement has to be asked again. */
static bool advance_once(struct seat *seat, struct group *group, int64_t now,
	struct agreement_plan *plan, int64_t *wake)
{
	struct agreement *a = &seat->agreement;
	struct error err;
	bool again = false;
	agreement_next(a, now, plan);

	bool differs = !board_same_hold(&plan->hold, &a->told);
	if (differs && !a->ended && has_moved(seat, plan)) {
		(void)read_board(seat, now);
		return true;
	}
	if (differs && !a->ended) {
		bool told = board_tell(&seat->board, &plan->hold, &err) == STATUS_OK;
		if (!told)
			board_failed(seat, &err);
		if (told || a->lost)
			agreement_told(a, &plan->hold, now);
		if (told)
			step_interval_told(&seat->interval,
				agreement_stands_still(&plan->hold, seat->interval.step), now);
		again = told || a->lost;
		if (!again && now + FAILED_EVERY < *wake)
			*wake = now + FAILED_EVERY;
	}
	if (plan->read_board <= now && !a->ended && !a->lost) {
		again = read_board(seat, now) || a->lost;
		if (!again)
			plan->read_board = now + FAILED_EVERY;
	}
	for (enum agreement_write what = 0; what < WRITE_KINDS; what++)
		if (plan->write[what])
			start_write(seat, group, what, plan, now);
	if (plan->end_command) {
		signal_only_tell(
			seat->command, group, now); /* if it was not, it shall save first */
		end_command(seat, group, now, wake);
	}
	return again;
}

/* A task that was only told of a notice leaves when nobody else can be saving any more. */
static bool may_finish(const struct seat *seat, const struct group *group, int64_t now,
	int64_t *wake, int64_t *look)
{
	int64_t limit = seat->command->end_not_before;
	if (!limit || now >= limit || signal_only_others_through(&group->view, seat->task))
		return true;
	*wake = limit < *wake ? limit : *wake;
	*look = now + 1000 < *look ? now + 1000 : *look;
	return false;
}

static bool awaits_save(const struct agreement *a)
{
	return !a->ended && (a->told.order == ORDER_SAVE || a->told.order == ORDER_EXIT) &&
	       !(a->has_saved && a->saved_step >= a->told.step);
}

static int64_t look_for_save_at(const struct seat *seat, int64_t now)
{
	int64_t pause = (now - seat->agreement.told_at) / 10;
	pause = pause < SAVED_EVERY ? SAVED_EVERY : pause > SAVED_SELDOM ? SAVED_SELDOM : pause;
	return now + pause;
}

/* A command's own exit code that preempt-run reserves for its answers is reported as 1. */
static int own_code(struct seat *seat, const struct group *group, int code)
{
	bool means_other = code == STATUS_SAVED || code == STATUS_PREEMPTED ||
			   code == STATUS_BROKEN || code == STATUS_DECIDED ||
			   (code == group->options->exit_code && code != 1);
	bool own = seat->agreement.reason == REASON_FAILED && seat->agreement.end_code == code;
	/* The client itself leaves with 43 when it finds its board gone. */
	bool lost = seat->agreement.lost || board_vanished(&seat->board);
	if (!own || !means_other || lost)
		return code;
	if (!seat->said_own_code)
		message_error("task %llu: its command exited with %d, which preempt-run "
			      "reserves for its own answers: reported as 1",
			(unsigned long long)seat->task, code);
	seat->said_own_code = true;
	return 1;
}

void seat_advance(struct seat *seat, struct group *group, int64_t now, int64_t *wake, int64_t *look)
{
	struct agreement_plan plan;
	if (seat->finished)
		return;
	/* A user may have only few inotify instances, and saves are rare: poll for the save. */
	if (awaits_save(&seat->agreement))
		seat_read_saved(seat, now);
	/* Each pass carries out one plan, which may make another one possible; a few passes are
	 * enough. */
	for (int passes = 0; passes < 8 && advance_once(seat, group, now, &plan, wake); passes++)
		;
	if (plan.finished && may_finish(seat, group, now, wake, look)) {
		seat->finished = signal_only_conclude(
			seat, group, own_code(seat, group, plan.code), now, wake);
		return;
	}
	if (awaits_save(&seat->agreement) && look_for_save_at(seat, now) < *wake)
		*wake = look_for_save_at(seat, now);
	if (plan.wake < *wake)
		*wake = plan.wake;
	if (plan.read_board < *wake)
		*wake = plan.read_board;
	if (plan.look < *look)
		*look = plan.look;
}

void seat_account_grace(struct seat *seat, const struct group *group, int64_t now)
{
	const struct agreement *a = &seat->agreement;
	int64_t deadline = group->view.agreement.deadline;
	if (group->own_deadline < deadline)
		deadline = group->own_deadline;
	if (deadline == CLOCK_NEVER || (seat->account.begun && seat->account.on == GRACE_NOT_USED))
		return;
	bool through = a->concluded || a->parked_at || a->ended;
	grace_account_switch(&seat->account,
		through			     ? GRACE_NOT_USED
		: a->told.order == ORDER_RUN ? GRACE_TRAINING
					     : GRACE_SAVING,
		deadline, now);
}
