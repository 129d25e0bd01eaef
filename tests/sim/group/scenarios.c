/* SPDX-License-Identifier: MIT */
/* Named scenarios: what broke the first draft, and what the tests of TensorFlow and JAX show (PH,
 * SY: docs/scenarios.md). */
#include <string.h>

#include "sim.h"

/* ---- Building ---- */

static void plain(struct schedule *s, int tasks, bool synchronous)
{
	s->seed = 1;
	s->tasks = tasks;
	s->per_agent = 1;
	s->agents_per_machine = 1;
	s->synchronous = synchronous;
	s->latency = 5;
	s->notify = 5;
	s->give_up = 2000;
	s->report_timeout = 10000;
	s->save_timeout = 60000;
	s->startup = 600000;
	s->kill_after = 5000;
	for (int i = 0; i < tasks; i++)
		s->trainee[i] = (struct trainee){.startup = 50 + i,
			.total = NEVER_STEP,
			.stride = 1,
			.step_us = 100 * MS,
			.uneven_us = 10 * MS,
			.look_us = 50,
			.react = 5,
			.save = 500};
}

/* A deed to task `who`, `delay` ms after something happened to `subject` for the first time. */
static void act(struct schedule *s, struct act act)
{
	s->act[s->acts++] = act;
}

/* `at` ms after the start. */
static void act_at(struct schedule *s, int64_t at, enum deed deed, int who, int64_t amount)
{
	act(s, (struct act){.trigger = AT_START,
		       .subject = NOBODY,
		       .delay = at,
		       .deed = deed,
		       .who = who,
		       .amount = amount});
}

static void notice(struct schedule *s, int task, int64_t at, int64_t deadline)
{
	act_at(s, at, NOTICE, task, deadline);
}

/* `delay` ms after something happened to the same task. */
static void fate(struct schedule *s, enum trigger trigger, int task, int64_t delay, enum deed deed,
	int64_t amount)
{
	act(s, (struct act){.trigger = trigger,
		       .subject = task,
		       .delay = delay,
		       .deed = deed,
		       .who = task,
		       .amount = amount});
}

/* The store is unreachable for all, from `delay` ms after something happened to a task. */
static void cut_off_all(
	struct schedule *s, enum trigger trigger, int task, int64_t delay, int64_t length)
{
	act(s, (struct act){.trigger = trigger,
		       .subject = task,
		       .delay = delay,
		       .deed = CUT_OFF,
		       .who = EVERYBODY,
		       .amount = length});
}

/* ---- What must come out ---- */

static const struct round_keys *last_round(const struct world *w)
{
	return &w->keys.round[w->keys.rounds];
}

static const char *all_left_with(const struct world *w, int code)
{
	for (int i = 0; i < w->schedule->tasks; i++)
		if (!w->task[i].finished || w->task[i].code != code)
			return "not every task left with the code that was expected";
	return NULL;
}

/* limit: ms after the world began. */
static bool left_by(const struct world *w, int task, int64_t limit)
{
	return w->task[task].finished && w->task[task].finished_at <= limit * MS;
}

static bool all_left_by(const struct world *w, int64_t limit)
{
	for (int i = 0; i < w->schedule->tasks; i++)
		if (!left_by(w, i, limit))
			return false;
	return true;
}

static const char *all_42(struct world *w)
{
	if (w->keys.rounds == 0 || !checkpoint_is_complete(w, w->keys.rounds))
		return "the checkpoint is not complete";
	return all_left_with(w, CODE_SAVED);
}

static const char *all_42_in_one_round(struct world *w)
{
	return w->keys.rounds != 1 ? "more than one round" : all_42(w);
}

/* Each change is seen when it is made: by waiting for the next look it would take ten times as
 * long. */
static void seen_at_once(struct schedule *s)
{
	plain(s, 3, true);
	notice(s, 0, 1000, -1);
}

static const char *all_42_soon(struct world *w)
{
	if (!all_left_by(w, 1000 + 1000 + 2000))
		return "a task was told late";
	return all_42_in_one_round(w);
}

static const char *all_42_in_two_rounds(struct world *w)
{
	return w->keys.rounds != 2 ? "not two rounds" : all_42(w);
}

static const char *all_43(struct world *w)
{
	return all_left_with(w, CODE_PREEMPTED);
}

static const char *all_0(struct world *w)
{
	return w->keys.rounds ? "a round was opened" : all_left_with(w, STATUS_OK);
}

/* A task that lives has saved at the step that was decided, and says 43, as a task is missing. */
static const char *survivors_agree(struct world *w)
{
	if (!w->keys.rounds || !last_round(w)->decided)
		return "no decision";
	for (int i = 0; i < w->schedule->tasks; i++) {
		if (!w->task[i].finished)
			continue;
		if (!training_has_saved(w, i, last_round(w)->decision.step))
			return "a survivor has not saved at the agreed step";
		if (w->task[i].code != CODE_PREEMPTED)
			return "a survivor did not leave with 43";
	}
	return NULL;
}

static const char *survivors_42(struct world *w)
{
	for (int i = 0; i < w->schedule->tasks; i++)
		if (w->task[i].finished && w->task[i].code != CODE_SAVED)
			return "a survivor did not leave with 42";
	return NULL;
}

/* As when the launcher kills all others: dead or not, every task has saved. */
static const char *complete(struct world *w)
{
	return w->keys.rounds && checkpoint_is_complete(w, w->keys.rounds)
		       ? NULL
		       : "the checkpoint is not complete";
}

/* One finished without the agreed save: what the others saved is not complete. */
static const char *finished_and_43(struct world *w)
{
	if (w->task[1].code != STATUS_OK || w->task[0].code != CODE_PREEMPTED)
		return "one finished, two saved: that was expected";
	return complete(w) ? NULL : "the checkpoint is complete without a task";
}

/* ---- What broke the first draft ---- */

static void reporter_paused(struct schedule *s)
{
	plain(s, 4, false);
	notice(s, 0, 1000, -1);
	fate(s, AT_WAIT, 2, 0, PAUSE_AGENT, s->report_timeout);
}

static void runner_paused(struct schedule *s)
{
	plain(s, 4, false);
	notice(s, 0, 1000, -1);
	act(s, (struct act){.trigger = AT_CLAIM,
		       .subject = NOBODY,
		       .deed = PAUSE_AGENT,
		       .who = 2,
		       .amount = s->report_timeout + 2500});
}

static void deadline_moved(struct schedule *s)
{
	plain(s, 4, false);
	s->notify = 400;
	s->remembered_save = 500;
	notice(s, 0, 1000, 120000);
	act(s, (struct act){.trigger = AT_DECISION,
		       .subject = NOBODY,
		       .delay = 1,
		       .deed = MOVE_DEADLINE,
		       .who = NOBODY,
		       .amount = 12000});
}

static void three_dead(struct schedule *s)
{
	plain(s, 6, false);
	notice(s, 0, 1000, 60000);
	fate(s, AT_CLAIM, 0, 1, KILL_AGENT, 0);
	fate(s, AT_WAIT, 1, 0, KILL_AGENT, 0);
	fate(s, AT_REPORT, 2, 0, KILL_AGENT, 0);
}

static void fails_after_save(struct schedule *s)
{
	plain(s, 4, true);
	s->trainee[1].failing = FAIL_AFTER_SAVE;
	s->trainee[3].save = 4000;
	notice(s, 0, 1000, -1);
}

static void restarted_while_saving(struct schedule *s)
{
	plain(s, 4, true);
	for (int i = 0; i < 4; i++)
		s->trainee[i].save = 3000;
	notice(s, 0, 1000, -1);
	fate(s, AT_SAVING, 1, 100, RESTART, 500);
}

static void killed_after_wait(struct schedule *s)
{
	plain(s, 4, false);
	s->watches_peers = true;
	s->agents_per_machine = 4;
	notice(s, 0, 1000, -1);
	fate(s, AT_WAIT, 1, 0, KILL_AGENT, 0);
}

static void outage(struct schedule *s, int64_t delay, int64_t length, int64_t deadline)
{
	plain(s, 4, true);
	notice(s, 0, 1000, deadline);
	cut_off_all(s, AT_CLAIM, NOBODY, delay, length);
}

static void long_outage(struct schedule *s)
{
	outage(s, 2, 4000, -1);
	s->report_timeout = 2000;
}

/* Lost before the notice, which has no deadline, and never back. */
static void lost_before(struct schedule *s, int per_agent)
{
	plain(s, 4, true);
	s->per_agent = per_agent;
	cut_off_all(s, AT_START, NOBODY, 900, 600000);
	for (int i = 0; i < 4; i++)
		notice(s, i, 1000, -1);
}

static void lost_before_in_one(struct schedule *s)
{
	lost_before(s, 4);
}

static void lost_before_in_two(struct schedule *s)
{
	lost_before(s, 2);
}

/* Stopped when the first task has saved, for longer than it would stay for the others. */
static void stopped_while_alone(struct schedule *s)
{
	lost_before_in_one(s);
	s->trainee[3].save = 9500;
	fate(s, AT_SAVED, 0, 30, PAUSE_AGENT, 8000);
}

/* Lost when all have reported, while the first of them waits for its turn to publish. */
static void lost_while_deciding(struct schedule *s)
{
	plain(s, 4, false);
	s->latency = 100;
	notice(s, 0, 1000, -1);
	cut_off_all(s, AT_REPORT, 3, 60, 600000);
}

static const char *all_43_early(struct world *w)
{
	if (!all_left_by(w, 30000))
		return "it was not saved soon after the store was lost";
	return all_43(w);
}

/* Soon after the notice; the tasks of one agent at one step; and 42 only where they are all. */
static const char *saved_at_once_by_themselves(struct world *w)
{
	int per_agent = w->schedule->per_agent;
	for (int i = 0; i < 4; i++) {
		const struct training *p = &w->task[i].training;
		const struct training *first = &w->task[i - i % per_agent].training;
		if (p->asked_saves != 1 || p->asked_step[0] != first->asked_step[0])
			return "the tasks of one agent did not save once, at one step";
		if (w->task[i].finished_at > 20000 * MS)
			return "it was not saved at once";
	}
	return all_left_with(w, per_agent == 4 ? CODE_SAVED : CODE_PREEMPTED);
}

static const char *saved_and_told_42(struct world *w)
{
	for (int i = 0; i < w->schedule->tasks; i++)
		if (w->task[i].training.code != CODE_SAVED)
			return "a task was not told that the checkpoint is complete";
	return saved_at_once_by_themselves(w);
}

/* Stopped, after its command has ended, for a little longer than it may stay for the others. */
static void stopped_while_parked(struct schedule *s)
{
	plain(s, 3, false);
	s->trainee[1].failing = FAIL_AFTER_SAVE;
	notice(s, 0, 1000, -1);
	fate(s, AT_SAVED, 1, 30, PAUSE_AGENT, s->save_timeout + 300);
}

/* Lost when a task has reported, who waits at the boundary that it named. */
static void lost_after_report(struct schedule *s)
{
	plain(s, 4, false);
	for (int i = 0; i < 4; i++)
		notice(s, i, 1000, -1);
	cut_off_all(s, AT_REPORT, NOBODY, 0, 600000);
}

static const char *saved_where_they_said(struct world *w)
{
	const struct round_keys *round = last_round(w);
	int reported = 0;
	for (int i = 0; i < w->schedule->tasks; i++) {
		reported += round->reported[i];
		if (round->reported[i] && !training_has_saved(w, i, round->next[i]))
			return "a task went past the boundary that it had named, to save alone";
	}
	return reported ? NULL : "no task had reported";
}

/* After the first save a training dies: all others would wait for it, until the deadline. */
static void saver_gone(struct schedule *s)
{
	plain(s, 4, true);
	s->remembered_save = 500;
	notice(s, 0, 1000, 30000);
	fate(s, AT_SAVED, 1, 200, KILL_TRAINING, 0);
}

static const char *all_42_early(struct world *w)
{
	if (!all_left_by(w, 15000))
		return "a task stayed, though no newer checkpoint can be complete";
	return all_42_in_one_round(w);
}

/* Cut off when only one has reported: that time is no task's silence. */
static void outage_no_silence(struct schedule *s)
{
	plain(s, 4, false);
	s->notify = 3000;
	s->report_timeout = 2000;
	notice(s, 0, 1000, -1);
	cut_off_all(s, AT_REPORT, 0, 30, 4000);
}

static void endless_outage(struct schedule *s)
{
	outage(s, 40, 200000, 30000);
	s->synchronous = false;
}

static const char *all_43_after_a_save(struct world *w)
{
	for (int i = 0; i < w->schedule->tasks; i++)
		if (w->task[i].training.asked_saves != 2)
			return "a task has not saved alone";
	return all_43(w);
}

/* Parked in the first round, stopped while the second was decided without it. */
static void parked_paused(struct schedule *s)
{
	runner_paused(s);
	fate(s, AT_SAVED, 1, 30, PAUSE_AGENT, 15000);
}

static void error_while_saving(struct schedule *s)
{
	plain(s, 4, true);
	for (int i = 0; i < 4; i++)
		s->trainee[i].save = 3000;
	act_at(s, 1000, ON_DEMAND, NOBODY, 0);
	fate(s, AT_SAVING, 3, 50, KILL_TRAINING, 0);
}

/* Two are still saving when the third crashes: no task waits for goodbyes that were said. */
static void crash_while_two_save(struct schedule *s)
{
	plain(s, 4, false);
	s->trainee[0].save = s->trainee[3].save = 3000;
	act_at(s, 1000, ON_DEMAND, NOBODY, 0);
	fate(s, AT_SAVING, 2, 50, KILL_TRAINING, 0);
}

static const char *all_left_within_15_s(struct world *w)
{
	return all_left_by(w, 15000) ? NULL : "a task stayed, though no other one saves";
}

static const char *saves_are_finished(struct world *w)
{
	for (int i = 0; i < 3; i++)
		if (w->task[i].training.asked_saves != 1 || w->task[i].code != CODE_BROKEN)
			return "a task's save was not finished, or it did not leave with 44";
	return w->task[3].code == 139 ? NULL : "the one that failed hides its code";
}

static void strides(struct schedule *s)
{
	plain(s, 3, false);
	s->trainee[0].stride = 4;
	s->trainee[1].stride = 6;
	s->trainee[2].stride = 3;
	notice(s, 0, 2000, -1);
}

/* Every 2 and every 3 steps: they meet every 6, which no report shows. */
static void meet_seldom(struct schedule *s, bool synchronous)
{
	plain(s, 2, synchronous);
	s->trainee[0].stride = 2;
	s->trainee[1].stride = 3;
	notice(s, 0, 2700, -1);
}

static void meets_seldom(struct schedule *s)
{
	meet_seldom(s, false);
}

/* The one that has saved must not keep the other in its next step. */
static void meets_seldom_together(struct schedule *s)
{
	meet_seldom(s, true);
}

static const char *all_42_after_some_tries(struct world *w)
{
	if (w->keys.rounds < 2 || w->keys.rounds > AGREEMENT_TRIES)
		return "a step was found at once, or too late";
	return all_42(w);
}

static void even_and_odd(struct schedule *s)
{
	plain(s, 2, false);
	s->trainee[0].stride = s->trainee[1].stride = 2;
	s->trainee[1].offset = 1;
	notice(s, 0, 2000, -1);
}

static const char *all_43_after_all_tries(struct world *w)
{
	if (w->keys.rounds != AGREEMENT_TRIES + 1 || last_round(w)->decision.kind != KIND_EACH)
		return "it was not: all tries, then each where it stands";
	return all_43(w);
}

static void uneven(struct schedule *s)
{
	plain(s, 3, false);
	for (int i = 0; i < 3; i++) {
		s->trainee[i].stride = 12;
		s->trainee[i].uneven = 7;
		s->trainee[i].startup = 50 + 700 * i;
	}
	notice(s, 0, 4000, -1);
}

static void asks_every_ten(struct schedule *s)
{
	plain(s, 2, false);
	for (int i = 0; i < 2; i++) {
		s->trainee[i].stride = 10;
		s->trainee[i].silent = true;
	}
	notice(s, 0, 4000, -1);
}

static void stopped_after_its_end(struct schedule *s)
{
	plain(s, 3, false);
	s->trainee[1].total = 10;
	s->latency = 50;
	notice(s, 0, 2000, -1);
	/* Its command ends about 1055 ms after the start. */
	act_at(s, 1110, PAUSE_AGENT, 1, 15000);
}

/* ---- Many, and launchers ---- */

static void many(struct schedule *s, int per_agent)
{
	plain(s, MOST_TASKS, true);
	s->per_agent = per_agent;
	notice(s, 5, 1000, -1);
	notice(s, 17, 1000, -1);
	notice(s, 60, 1001, -1);
}

static void many_agents(struct schedule *s)
{
	many(s, 1);
}

static void many_in_one(struct schedule *s)
{
	many(s, MOST_TASKS);
}

static void many_by_eight(struct schedule *s)
{
	many(s, 8);
}

static void launcher_kills(struct schedule *s)
{
	plain(s, 8, false);
	s->launcher_kills = true;
	for (int i = 0; i < 8; i++)
		s->trainee[i].save = 200 + 700 * i;
	notice(s, 0, 1000, -1);
}

static const char *everybody_acked(struct world *w)
{
	return ~last_round(w)->acked ? "a task did not acknowledge" : all_42_in_one_round(w);
}

/* ---- Of TensorFlow and JAX ---- */

static void ph4(struct schedule *s)
{
	plain(s, 4, true);
	notice(s, 0, 1000, 7000);
}

static const char *two_checkpoints(struct world *w)
{
	if (w->keys.rounds != 2 || w->keys.round[1].decision.kind != KIND_SAVE)
		return "it did not save and run on first";
	return all_42(w);
}

/* Nothing is known of saves, and one takes most of the grace: there is no time for a second. */
static void long_save(struct schedule *s)
{
	plain(s, 4, true);
	for (int i = 0; i < 4; i++)
		s->trainee[i].save = 5000;
	notice(s, 0, 1000, 8000);
}

static const char *the_first_stands(struct world *w)
{
	if (w->keys.rounds != 1 || w->keys.round[1].decision.kind != KIND_SAVE)
		return "it began another save that cannot be done in time";
	return all_42(w);
}

/* The same, and one is slower still: the others wait for it. */
static void longer_save(struct schedule *s)
{
	long_save(s);
	s->trainee[2].save = 7000;
}

/* One task is still at its first save when the final round opens: that save counts. */
static void first_save_is_late(struct schedule *s)
{
	plain(s, 2, false);
	s->trainee[0].save = 300;
	s->trainee[1].save = 3000;
	notice(s, 0, 1000, 6000);
}

static const char *first_saved_in_two_rounds(struct world *w)
{
	if (w->keys.rounds < 2 || !checkpoint_is_complete(w, 1))
		return "that was no late first save";
	return all_left_with(w, CODE_SAVED);
}

/* One agent has all tasks, and the store is gone while they make the agreed save. */
static void lost_while_saving(struct schedule *s)
{
	plain(s, 2, true);
	s->per_agent = 2;
	notice(s, 0, 1000, -1);
	act(s, (struct act){.trigger = AT_SAVING,
		       .subject = NOBODY,
		       .deed = CUT_OFF,
		       .who = EVERYBODY,
		       .amount = 100000});
}

/* The second save fails: the first one is complete, and is the one to resume from. */
static void final_save_fails(struct schedule *s)
{
	plain(s, 4, true);
	for (int i = 0; i < 4; i++)
		s->trainee[i].save = 2000;
	notice(s, 0, 1000, 20000);
	act_at(s, 15500, KILL_TRAINING, 3, 0);
}

static const char *the_standing_one_counts(struct world *w)
{
	if (w->keys.rounds != 2 || checkpoint_is_complete(w, 2) || !checkpoint_is_complete(w, 1))
		return "it is not the first of two saves that is complete";
	return all_left_with(w, CODE_SAVED);
}

/* The machine goes away in an hour: that is known at once, and left for later. */
static void sy3(struct schedule *s)
{
	plain(s, 4, true);
	notice(s, 2, 1000, 3600000);
	for (int i = 0; i < 4; i++)
		s->trainee[i].total = 3000;
}

static const char *saved_once_and_finished(struct world *w)
{
	if (w->keys.rounds != 1 || w->keys.round[1].decision.kind != KIND_SAVE)
		return "it did not save and run on";
	return all_left_with(w, STATUS_OK);
}

static void ph10(struct schedule *s)
{
	plain(s, 4, false);
	notice(s, 1, 1000, 40000);
	fate(s, AT_CLAIM, 1, 1, KILL_AGENT, 0);
}

static void ph11(struct schedule *s)
{
	plain(s, 3, false);
	s->trainee[0].step_us = 1 * MS;
	s->trainee[0].uneven_us = 0;
	s->trainee[1].step_us = 300 * MS;
	notice(s, 1, 150, -1);
}

static void ph12(struct schedule *s)
{
	plain(s, 4, false);
	s->complete_chief = true;
	notice(s, 0, 1000, -1);
	act(s, (struct act){.trigger = AT_CLAIM, .subject = NOBODY, .deed = KILL_AGENT, .who = 2});
	s->watches_peers = true;
	s->agents_per_machine = 4;
}

/*
 * The first save of all, then one task dies and another saves for too long: the checkpoint of the
 * chief stands, though no task reads its record before the next round is opened.
 */
static void unread_chief(struct schedule *s)
{
	plain(s, 4, true);
	s->complete_chief = true;
	s->trainee[1].save = 60000;
	notice(s, 0, 1000, 20000);
	fate(s, AT_SAVING, 2, 1, KILL_TRAINING, 0);
}

static void ph15(struct schedule *s)
{
	plain(s, 3, false);
	s->trainee[1].total = 4;
	notice(s, 0, 2000, -1);
}

/* Machines that are a day apart, either way; the claimer's is slow. */
static void clocks_apart(struct schedule *s)
{
	plain(s, 4, true);
	s->clock[0] = -35000;
	s->clock[1] = 86400000;
	s->clock[2] = -86400000;
	s->remembered_save = 500;
	notice(s, 0, 1000, 30000);
}

static const char *all_before_the_end(struct world *w)
{
	if (!all_left_by(w, 1000 + 1000 + 30000))
		return "a task left after the deadline";
	return two_checkpoints(w);
}

/* It is over when it is first seen, as far as any task can tell. */
static void overdue(struct schedule *s)
{
	clocks_apart(s);
	s->acts = 0;
	act_at(s, 1000, CLAIM_OUTSIDE, NOBODY, 1);
}

/* The same while all train on after a first save. */
static void moved_to_the_past(struct schedule *s)
{
	clocks_apart(s);
	act_at(s, 8000, MOVE_DEADLINE, NOBODY, 1);
}

static const char *two_rounds_at_once(struct world *w)
{
	if (!all_left_by(w, 1000 + 8000 + 5000))
		return "a task waited though the end was said to be over";
	return two_checkpoints(w);
}

/* The claim reaches the store late: what is left was counted when it set out. */
static void claimed_late(struct schedule *s)
{
	clocks_apart(s);
	s->latency = 2000;
	s->give_up = 6000;
	s->report_timeout = 30000;
}

static const char *told_again(struct world *w)
{
	if (w->keys.deadlines < 2)
		return "the claimer did not say it again";
	if (w->keys.deadline_latest > w->keys.deadline + 2000 * MS)
		return "what is told is later than one write takes";
	return NULL;
}

static void ph20(struct schedule *s)
{
	plain(s, 4, true);
	s->remembered_save = 500;
	notice(s, 0, 1000, 90000);
	notice(s, 1, 1030, 8000);
}

static const char *before_the_earlier_deadline(struct world *w)
{
	if (!all_left_by(w, 1000 + 1030 + 8000))
		return "a task left after the earlier deadline";
	return all_42(w);
}

/* Two more, earlier each time; the last one comes while the one before is written, or after it. */
static void overtaken(struct schedule *s, int64_t at)
{
	plain(s, 4, true);
	s->remembered_save = 500;
	s->latency = 400;
	s->give_up = 6000;
	s->report_timeout = 30000;
	notice(s, 0, 1000, 120000);
	notice(s, 1, 9000, 80000);
	notice(s, 1, at, 30000);
}

static void overtaken_while_written(struct schedule *s)
{
	overtaken(s, 9050);
}

static void overtaken_later(struct schedule *s)
{
	overtaken(s, 14000);
}

static const char *the_earliest_is_told(struct world *w)
{
	if (w->keys.deadline > w->task[1].own_deadline + MS)
		return "the earliest deadline was told to no task";
	return two_checkpoints(w);
}

static void ph21(struct schedule *s)
{
	plain(s, 4, true);
	for (int i = 0; i < 4; i++)
		s->trainee[i].startup = 5000;
	notice(s, 0, 1000, -1);
}

static const char *nothing_to_save(struct world *w)
{
	if (!last_round(w)->decided || last_round(w)->decision.kind != KIND_NONE)
		return "it was not decided that there is nothing to save";
	return all_left_with(w, CODE_SAVED);
}

static void ph21_restored(struct schedule *s)
{
	plain(s, 4, true);
	for (int i = 0; i < 4; i++)
		s->trainee[i].start = 1000;
	notice(s, 0, 60, -1);
}

static void sy1(struct schedule *s)
{
	plain(s, 4, true);
	for (int i = 0; i < 4; i++)
		s->trainee[i].total = 40;
}

static void sy2(struct schedule *s)
{
	plain(s, 2, true);
	notice(s, 0, 1042, -1);
}

static const char *exactly_one_save(struct world *w)
{
	for (int i = 0; i < w->schedule->tasks; i++)
		if (w->task[i].training.asked_saves != 1)
			return "not exactly one save";
	return all_42_in_one_round(w);
}

static void sy6(struct schedule *s)
{
	plain(s, 2, false);
	s->trainee[0].step_us = 1000 * MS;
	s->trainee[1].step_us = 300 * MS;
	notice(s, 0, 800, -1);
}

static void sy7(struct schedule *s)
{
	sy6(s);
	s->act[0].who = 1;
}

static void sy8(struct schedule *s)
{
	plain(s, 2, true);
	s->remembered_save = 500;
	notice(s, 0, 1000, 90000);
	notice(s, 0, 1030, 8000);
}

static void sy9(struct schedule *s)
{
	ph21(s);
	for (int i = 0; i < 4; i++)
		s->trainee[i].start = 1000;
}

static void sy10(struct schedule *s)
{
	plain(s, 4, true);
	notice(s, 0, 1000, -1);
	fate(s, AT_WAIT, 1, 0, PAUSE_AGENT, 6000);
	fate(s, AT_WAIT, 2, 0, PAUSE_TRAINING, 9000);
}

static void sy11(struct schedule *s)
{
	plain(s, 4, true);
	notice(s, 0, 1000, -1);
	fate(s, AT_REPORT, 1, 0, GARBAGE, 0);
}

static void on_demand(struct schedule *s)
{
	plain(s, 4, true);
	for (int i = 0; i < 4; i++)
		s->trainee[i].total = 60;
	act_at(s, 1000, ON_DEMAND, NOBODY, 0);
}

static void on_demand_unequal(struct schedule *s)
{
	plain(s, 2, false);
	s->trainee[0].stride = 2;
	s->trainee[1].stride = 3;
	for (int i = 0; i < 2; i++)
		s->trainee[i].total = 60;
	act_at(s, 1100, ON_DEMAND, NOBODY, 0);
}

static const char *saved_and_finished(struct world *w)
{
	for (int i = 0; i < w->schedule->tasks; i++)
		if (!training_has_saved(w, i, last_round(w)->decision.step))
			return "a task did not save";
	return all_left_with(w, STATUS_OK);
}

/* ---- Values that cannot be read ---- */

static void garbage(struct schedule *s, enum deed deed, int64_t at, int task)
{
	plain(s, 3, false);
	act_at(s, at, deed, task, 0);
}

static void garbage_in_names(struct schedule *s)
{
	garbage(s, GARBAGE_NAMES, 900, 0);
	s->remembered_save = 500;
	notice(s, 0, 1000, 10000);
}

static void garbage_for_a_claim(struct schedule *s)
{
	garbage(s, GARBAGE_CLAIM, 1000, 0);
}

/* When the round is open: the report of the task itself is written over it. */
static void garbage_for_a_report(struct schedule *s)
{
	plain(s, 3, false);
	notice(s, 1, 1000, -1);
	act(s, (struct act){
		       .trigger = AT_CLAIM, .subject = NOBODY, .deed = GARBAGE_REPORT, .who = 2});
}

static const char *heard_of_all(struct world *w)
{
	return w->keys.round[1].unheard ? "a task's report is missing" : all_42_in_one_round(w);
}

/* The task does not report in time: the others wait no longer than without it. */
static void garbage_for_a_missing_report(struct schedule *s)
{
	garbage_for_a_report(s);
	act(s, (struct act){.trigger = AT_CLAIM,
		       .subject = NOBODY,
		       .deed = PAUSE_AGENT,
		       .who = 2,
		       .amount = s->report_timeout + 2500});
}

static const char *all_42_in_a_second_round(struct world *w)
{
	return w->keys.round[1].unheard != 1 << 2 ? "the garbage counts as a report"
						  : all_42_in_two_rounds(w);
}

/* ---- The end of training, stopped agents, and launchers that start one again ---- */

/* About when the tasks end by themselves, which are not equally fast. */
static void at_the_end(struct schedule *s, int64_t before)
{
	plain(s, 3, false);
	for (int i = 0; i < 3; i++) {
		s->trainee[i].total = 10;
		s->trainee[i].uneven_us = 0;
		s->trainee[i].step_us = (100 + 2 * i) * MS;
	}
	notice(s, 1, 1060 - before, -1);
}

static void just_before_the_end(struct schedule *s)
{
	at_the_end(s, 180);
}

static void at_its_end(struct schedule *s)
{
	at_the_end(s, 0);
}

static void after_the_first_end(struct schedule *s)
{
	at_the_end(s, -10);
}

static const char *finished_or_saved(struct world *w)
{
	for (int i = 0; i < w->schedule->tasks; i++)
		if (w->task[i].code != STATUS_OK && w->task[i].code != CODE_SAVED)
			return "a task neither finished nor saved";
	if (!all_left_by(w, 4000))
		return "a task stayed for longer than a save takes";
	return w->keys.claimed ? NULL : "no task has claimed";
}

/* An agent is stopped when it has reported, and goes on when the others have saved. */
static void stopped_after_report(struct schedule *s)
{
	plain(s, 3, false);
	notice(s, 0, 1000, -1);
	fate(s, AT_REPORT, 1, 0, PAUSE_AGENT, 8000);
}

static const char *all_42_after_a_wait(struct world *w)
{
	for (int i = 0; i < w->schedule->tasks; i++)
		if (w->task[i].finished_at < (1000 + 1000 + 8000) * MS)
			return "a task left before the one that was stopped had saved";
	return all_42_in_one_round(w);
}

static void restarted_after_its_save(struct schedule *s)
{
	plain(s, 3, false);
	for (int i = 0; i < 2; i++)
		s->trainee[i].save = 5000;
	notice(s, 0, 1000, -1);
	fate(s, AT_SAVED, 2, 200, RESTART, 500);
}

static const char *saved_and_joins_the_next(struct world *w)
{
	if (w->newest_attempt != 2)
		return "the one that was restarted has not joined the next attempt";
	return survivors_42(w) ? survivors_42(w) : complete(w);
}

/* ---- Heartbeats ---- */

/* A task that is not decided without is waited for: only the heartbeat finds the dead. */
static void beating(struct schedule *s, int tasks, bool synchronous)
{
	plain(s, tasks, synchronous);
	s->beat_period = 5000;
	s->report_timeout = s->save_timeout = 120000;
}

static const uint64_t stopped_ones = UINT64_C(1) << 63 | UINT64_C(1) << 50 | UINT64_C(1) << 31 |
				     UINT64_C(1) << 30 | UINT64_C(1) << 17 | 7;

/* The monitor and those that would follow it are among those that are stopped. */
static void silence(struct schedule *s)
{
	beating(s, MOST_TASKS, true);
	for (int i = 0; i < MOST_TASKS; i++)
		if (stopped_ones >> i & 1)
			act_at(s, 60000, PAUSE_AGENT, i, 90000);
}

/* Within limit + 3 periods, and what the ending of the commands takes. */
static bool left_soon(const struct world *w, int task, int64_t since)
{
	int64_t limit = (HEARTBEAT_LIMIT + 3) * w->schedule->beat_period + w->schedule->kill_after;
	return left_by(w, task, since + limit);
}

static const char *exactly_those_are_dead(struct world *w)
{
	for (int i = 0; i < w->schedule->tasks; i++)
		if (!(stopped_ones >> i & 1) && !left_soon(w, i, 1000 + 60000))
			return "a task stayed for too long";
	return w->keys.dead != stopped_ones ? "others than those that were stopped are called dead"
					    : all_left_with(w, CODE_BROKEN);
}

static void restarted_while_training(struct schedule *s)
{
	beating(s, 4, true);
	/* A task is there until the restarted one has opened the next attempt. */
	s->trainee[0].ignores_term = true;
	act_at(s, 20000, RESTART, 3, 300);
}

static const char *ended_by_a_restart(struct world *w)
{
	if (w->keys.dead != 1 << 3 || w->newest_attempt != 2)
		return "not exactly the restarted one is dead, and in the next attempt";
	for (int i = 0; i < 3; i++)
		if (w->task[i].code != CODE_BROKEN || !left_soon(w, i, 1000 + 20000))
			return "a task did not leave soon, with 44";
	return NULL;
}

static void claimer_falls_silent(struct schedule *s)
{
	beating(s, 3, false);
	notice(s, 1, 20000, -1);
	act(s, (struct act){.trigger = AT_CLAIM,
		       .subject = NOBODY,
		       .deed = PAUSE_AGENT,
		       .who = 1,
		       .amount = 90000});
}

/* The task that was stopped is dead: the others have saved at one step, and it has not. */
static const char *decided_without(struct world *w, int dead)
{
	const struct round_keys *round = last_round(w);
	uint64_t others = (UINT64_C(1) << w->schedule->tasks) - 1 - (UINT64_C(1) << dead);
	if (w->keys.dead != UINT64_C(1) << dead)
		return "not exactly the one that was stopped is called dead";
	if (w->keys.rounds != 1 || !round->decided || round->saved != others)
		return "not exactly the others have saved, in one round";
	for (int i = 0; i < w->schedule->tasks; i++) {
		if (i != dead && (!left_soon(w, i, 1000 + 20000) ||
					 round->saved_step[i] != round->decision.step))
			return "a task did not save at the agreed step, and leave soon";
	}
	return NULL;
}

static const char *decided_without_the_claimer(struct world *w)
{
	return decided_without(w, 1) ? decided_without(w, 1) : all_43(w);
}

static void reporter_falls_silent(struct schedule *s)
{
	claimer_falls_silent(s);
	s->act[0].who = 0;
	s->act[1].who = 2;
}

static const char *decided_without_task_2(struct world *w)
{
	const struct round_keys *round = last_round(w);
	if (round->reported[2] || round->acked >> 2 & 1 || round->members != 3)
		return "the dead one took part";
	return decided_without(w, 2) ? decided_without(w, 2) : all_43(w);
}

/* For less than the limit: as if nothing had been. */
static void silent_for_a_while(struct schedule *s)
{
	reporter_falls_silent(s);
	s->act[1].amount = 9000;
}

static const char *nobody_died(struct world *w)
{
	return w->keys.dead ? "a task is called dead" : all_42_in_one_round(w);
}

/* Longer than the limit, and than a task may stand still; the training stalls with it. */
static void stalled_store(struct schedule *s)
{
	beating(s, 3, true);
	s->progress_timeout = 30000;
	cut_off_all(s, AT_START, NOBODY, 20000, 45000);
	act_at(s, 21000, PAUSE_TRAINING, 0, 43000);
	notice(s, 0, 100000, -1);
}

/* A task that cannot beat itself does not judge the silence of others. */
static void full_store(struct schedule *s)
{
	beating(s, 3, true);
	act_at(s, 20000, FULL_STORE, NOBODY, 60000);
	notice(s, 0, 100000, -1);
}

/* Their goodbyes cannot be written, while all can be read. */
static void full_while_leaving(struct schedule *s)
{
	plain(s, 3, false);
	notice(s, 1, 1000, 20000);
	act(s, (struct act){.trigger = AT_CLAIM,
		       .subject = NOBODY,
		       .deed = FULL_STORE,
		       .who = NOBODY,
		       .amount = 120000});
}

static const char *left_by_the_deadline(struct world *w)
{
	for (int i = 0; i < w->schedule->tasks; i++)
		if (!left_by(w, i, 25000))
			return "a task waits for a store that is full";
	/* Each of the three tries a few times a second. */
	return kernel.shim.calls[SHIM_TXN] < 500 ? NULL : "a full store is asked without a pause";
}

/* ---- Hangs ---- */

static void hanging(struct schedule *s)
{
	beating(s, 4, true);
	s->progress_timeout = 7000;
	act_at(s, 5000, PAUSE_TRAINING, 1, 60000);
}

/* Its first step takes for ever. */
static void never_advancing(struct schedule *s)
{
	beating(s, 4, true);
	s->progress_timeout = 7000;
	s->trainee[3].step_us = 600000 * MS;
}

static const char *broken_by_a_hang(struct world *w)
{
	if (!w->keys.hung || w->keys.dead != w->keys.hung)
		return "no task hangs, or a task is dead of something else";
	if (!all_left_by(w, 30000))
		return "a task stayed for too long";
	return all_left_with(w, CODE_BROKEN);
}

/* ---- Wall clocks that are set while all runs: they must change nothing ---- */

static void clock_is_set(struct schedule *s, enum trigger trigger, int64_t delay, int64_t ahead)
{
	act(s, (struct act){.trigger = trigger,
		       .subject = NOBODY,
		       .delay = delay,
		       .deed = SET_CLOCK,
		       .who = EVERYBODY,
		       .amount = ahead});
}

#define HOUR 3600000

/* Either way while all train, and back while they agree and save. */
static void clocks_are_set(struct schedule *s)
{
	plain(s, 3, false);
	clock_is_set(s, AT_START, 500, HOUR);
	clock_is_set(s, AT_START, 2000, -HOUR);
	notice(s, 0, 4000, -1);
	clock_is_set(s, AT_CLAIM, 0, HOUR);
	clock_is_set(s, AT_DECISION, 0, -HOUR);
	clock_is_set(s, AT_SAVING, 100, 0);
}

/* The same with a deadline, on the machine of the claimer alone. */
static void clock_is_set_in_its_grace(struct schedule *s)
{
	clocks_are_set(s);
	for (int i = 0; i < s->acts; i++)
		s->act[i].who = 0;
	s->act[2].amount = 30000;
	s->remembered_save = 500;
}

static const char *used_its_grace(struct world *w)
{
	if (!all_left_by(w, 1000 + 4000 + 30000))
		return "a task left after the deadline";
	return two_checkpoints(w);
}

static void clocks_are_set_under_beats(struct schedule *s)
{
	beating(s, 3, false);
	s->progress_timeout = 60000;
	clock_is_set(s, AT_START, 20000, HOUR);
	clock_is_set(s, AT_START, 60000, 0);
	clock_is_set(s, AT_START, 100000, -HOUR);
	clock_is_set(s, AT_START, 140000, 0);
	notice(s, 0, 180000, -1);
}

/* And whichever task falls silent when they have been set is found as ever. */
static void silence_after_clocks_are_set(struct schedule *s)
{
	clocks_are_set_under_beats(s);
	s->acts--;
	act_at(s, 150000, PAUSE_AGENT, 2, 90000);
}

static const char *found_silent(struct world *w)
{
	if (!left_soon(w, 0, 1000 + 150000) || !left_soon(w, 1, 1000 + 150000))
		return "a task stayed for too long";
	return w->keys.dead != 1 << 2 ? "not exactly the silent one is dead"
				      : all_left_with(w, CODE_BROKEN);
}

/* ---- A store that takes long ---- */

/* Its own decision is on its way when it is stopped, and called dead; the others have to decide. */
static void decision_of_a_dead_task(struct schedule *s)
{
	plain(s, 3, false);
	s->seed = 3;
	s->latency = 1000;
	s->give_up = 5000;
	notice(s, 0, 1000, -1);
	fate(s, AT_CLAIM, 0, 0, PAUSE_AGENT, 6000); /* so that it is the last to report */
	fate(s, AT_REPORT, 0, 450, PAUSE_AGENT, 2000);
	fate(s, AT_REPORT, 0, 450, DECLARE_DEAD, 1);
	for (int i = 1; i < 3; i++)
		act(s, (struct act){.trigger = AT_REPORT,
			       .subject = 0,
			       .deed = PAUSE_AGENT,
			       .who = i,
			       .amount = 4000});
}

static const char *decided_by_others(struct world *w)
{
	if (w->keys.dead != 1 || w->keys.round[1].members != 6)
		return "it is not decided without the dead one";
	return all_43(w);
}

/* The store takes seconds to take the death: it is written once, not each time that it is seen. */
static void slow_death(struct schedule *s)
{
	hanging(s);
	s->latency = 2000;
	s->give_up = 10000;
}

static const char *broken_in_the_end(struct world *w)
{
	return w->keys.hung ? all_left_with(w, CODE_BROKEN) : "no task hangs";
}

/* The last to save is killed before it can tell the others that all have; then the time is up. */
static void last_saver_killed(struct schedule *s)
{
	const int slow = 5;
	plain(s, 24, false);
	s->remembered_save = 3000;
	s->latency = 100;
	for (int i = 0; i < s->tasks; i++)
		s->trainee[i].save = 300;
	s->trainee[slow].save = 4100;
	notice(s, 0, 1000, 7000);
	fate(s, AT_SAVED, slow, 114, KILL_AGENT, 0);
}

static const char *nobody_misses_it(struct world *w)
{
	if (!checkpoint_is_complete(w, w->keys.rounds))
		return "its save was not committed: the scenario shows nothing";
	for (int i = 0; i < w->schedule->tasks; i++)
		if (w->task[i].finished &&
			(w->task[i].code != CODE_SAVED || w->task[i].panel.hold.code != CODE_SAVED))
			return "a task says, or was told, that the complete checkpoint is not";
	return NULL;
}

const struct scenario scenarios[] = {
	{"last-saver-killed", "whose time is up looks once more", last_saver_killed,
		nobody_misses_it},
	{"reporter-paused", "paused for exactly the report timeout while its peer publishes",
		reporter_paused, all_42},
	{"runner-paused", "its training ran past the step in that time: a further round",
		runner_paused, all_42_in_two_rounds},
	{"deadline-moved", "between two agents' reading of it", deadline_moved, all_42},
	{"three-dead", "the claimer and the next two", three_dead, survivors_agree},
	{"parked-paused", "while a further round was decided without it", parked_paused,
		all_42_in_two_rounds},
	{"meet-seldom", "boundaries every 2 and every 3 steps: a few rounds", meets_seldom,
		all_42_after_some_tries},
	{"meet-seldom-together", "and a collective in each step: none is parked in it",
		meets_seldom_together, all_42_after_some_tries},
	{"even-odd", "boundaries that never coincide: four rounds, then each by itself",
		even_and_odd, all_43_after_all_tries},
	{"uneven", "irregular boundaries that all share", uneven, all_42_in_one_round},
	{"every-ten", "a loop that asks every 10 steps without NEXT", asks_every_ten,
		all_42_in_one_round},
	{"strides", "tasks that look every 4, 6 and 3 steps: one step suits all", strides,
		all_42_in_one_round},
	{"error-while-saving", "saves under way are finished before the group ends",
		error_while_saving, saves_are_finished},
	{"lost-after-report", "who waits saves where it waits", lost_after_report,
		saved_where_they_said},
	{"saver-gone", "no newer checkpoint can be complete: leave with the last one", saver_gone,
		all_42_early},
	{"stopped-after-its-end", "its own pause is not the store's silence", stopped_after_its_end,
		finished_and_43},
	{"fails-after-save", "the checkpoint stands", fails_after_save, all_42_in_one_round},
	{"restarted-while-saving", "by its launcher: the others finish their saves",
		restarted_while_saving, survivors_agree},
	{"killed-after-wait", "an agent, right after hold = wait", killed_after_wait,
		survivors_agree},
	{"long-outage", "longer than the report timeout", long_outage, all_42_in_one_round},
	{"lost-before-in-one", "the store before the notice; one agent has all tasks",
		lost_before_in_one, saved_at_once_by_themselves},
	{"lost-before-in-two", "the same with two agents", lost_before_in_two,
		saved_at_once_by_themselves},
	{"stopped-while-alone", "its own pause is not its tasks' silence", stopped_while_alone,
		saved_and_told_42},
	{"stopped-while-parked", "says goodbye all the same", stopped_while_parked, complete},
	{"lost-while-deciding", "the store, when all have reported: each saves alone, soon",
		lost_while_deciding, all_43_early},
	{"outage-no-silence", "time in which the store does not answer is no task's silence",
		outage_no_silence, all_42_in_one_round},
	{"endless-outage", "longer than everything: each saves alone", endless_outage,
		all_43_after_a_save},
	{"64-agents", "three notices at once: one step, 64 acks", many_agents, everybody_acked},
	{"64-in-one-agent", "the same", many_in_one, everybody_acked},
	{"8-by-8", "the same", many_by_eight, everybody_acked},
	{"launcher-kills", "all others when the first exits: no save is hit", launcher_kills,
		complete},
	{"on-demand", "a checkpoint from outside, then training goes on", on_demand,
		saved_and_finished},
	{"on-demand-unequal", "boundaries that meet seldom: the step is one where they do",
		on_demand_unequal, saved_and_finished},
	{"PH-4", "grace 7 s: two checkpoints", ph4, two_checkpoints},
	{"PH-13-long", "a save that takes most of the grace is not begun twice", long_save,
		the_first_stands},
	{"PH-13-longer", "nor while another is still at its first", longer_save, the_first_stands},
	{"crash-while-two-save", "on demand: their goodbyes are read", crash_while_two_save,
		all_left_within_15_s},
	{"late-first-save", "it ends after the final round was opened", first_save_is_late,
		first_saved_in_two_rounds},
	{"lost-while-saving", "one agent has all tasks: it needs no store for 42",
		lost_while_saving, all_42},
	{"standing", "the final save fails, the one before it stands", final_save_fails,
		the_standing_one_counts},
	{"PH-10", "the claimer killed between claim and step", ph10, survivors_agree},
	{"seen-at-once", "they have saved within two seconds", seen_at_once, all_42_soon},
	{"PH-11", "1 ms steps beside 300 ms steps", ph11, all_42_in_one_round},
	{"PH-12", "a peer dead before it reports; the chief's save counts", ph12, survivors_42},
	{"unread-chief", "its save stands, read or not", unread_chief, survivors_42},
	{"PH-15", "notice after one peer finished", ph15, finished_and_43},
	{"PH-20", "tasks with different grace", ph20, before_the_earlier_deadline},
	{"clocks-apart", "by a day, the claimer's is slow: all save in time", clocks_apart,
		all_before_the_end},
	{"overdue", "a deadline that is over when it is first seen: all save", overdue,
		all_42_in_one_round},
	{"moved-to-the-past", "while all train on: all save at once", moved_to_the_past,
		two_rounds_at_once},
	{"claimed-late", "what is left is reported again", claimed_late, told_again},
	{"deadline-overtaken", "by an earlier one while it is written", overtaken_while_written,
		the_earliest_is_told},
	{"deadline-earlier", "once more, after it was written", overtaken_later,
		the_earliest_is_told},
	{"PH-21", "notice before the first step", ph21, nothing_to_save},
	{"PH-21-restored", "notice right after a restore at 1000", ph21_restored,
		all_42_in_one_round},
	{"SY-1", "no notice: never", sy1, all_0},
	{"SY-2", "notice between calls: exactly one save", sy2, exactly_one_save},
	{"SY-3", "the end is an hour away: saved, trained on, and finished before", sy3,
		saved_once_and_finished},
	{"SY-6", "slow and fast, notice to the slow one", sy6, all_42_in_one_round},
	{"SY-7", "slow and fast, notice to the fast one", sy7, all_42_in_one_round},
	{"SY-8", "a second notice with an earlier deadline", sy8, before_the_earlier_deadline},
	{"SY-9", "all restored at 1000, none has called yet", sy9, nothing_to_save},
	{"SY-10", "a peer stopped during the agreement, continued afterwards", sy10,
		all_42_in_one_round},
	{"SY-11", "garbage in a key: the next round heals", sy11, all_42_in_two_rounds},
	{"SY-11-names", "garbage in keys of all kinds", garbage_in_names, two_checkpoints},
	{"SY-11-claim", "garbage claims like any other", garbage_for_a_claim, all_42_in_one_round},
	{"SY-11-report", "a garbage report is written over", garbage_for_a_report, heard_of_all},
	{"SY-11-no-report", "a garbage report counts as none", garbage_for_a_missing_report,
		all_42_in_a_second_round},
	{"SY-5-before", "a notice just before training ends", just_before_the_end,
		finished_or_saved},
	{"SY-5", "a notice while the first one ends", at_its_end, finished_or_saved},
	{"SY-5-after", "a notice when the first one has ended", after_the_first_end,
		finished_or_saved},
	{"SY-10-after-report", "an agent stopped until the others have saved", stopped_after_report,
		all_42_after_a_wait},
	{"restarted-after-its-save", "its checkpoint stands, and it is in the next attempt",
		restarted_after_its_save, saved_and_joins_the_next},
	{"silence", "8 of 64 stopped at once: these and no others are called dead", silence,
		exactly_those_are_dead},
	{"HB-4", "restarted while all train: they leave, it is in the next attempt",
		restarted_while_training, ended_by_a_restart},
	{"PH-10-silent", "the claimer stopped permanently: the others go on when it is called dead",
		claimer_falls_silent, decided_without_the_claimer},
	{"PH-12-silent", "a task stopped before it reports, and what it does afterwards",
		reporter_falls_silent, decided_without_task_2},
	{"SY-10-silent", "for less than the limit: as if nothing had been", silent_for_a_while,
		nobody_died},
	{"stalled-store", "for longer than any limit: no task is dead, or hangs", stalled_store,
		nobody_died},
	{"full-store", "for longer than any limit: no task is dead", full_store, nobody_died},
	{"full-while-leaving", "for longer than the grace: all leave by the deadline",
		full_while_leaving, left_by_the_deadline},
	{"hung", "a training stopped, its agent lives: all leave", hanging, broken_by_a_hang},
	{"hung-busy", "a training that computes and never advances", never_advancing,
		broken_by_a_hang},
	{"CS-3", "wall clocks set by an hour, both ways", clocks_are_set, all_42_in_one_round},
	{"CS-3-grace", "the claimer's, with a deadline: saved in time", clock_is_set_in_its_grace,
		used_its_grace},
	{"CS-3-beats", "under heartbeats: no task is called dead", clocks_are_set_under_beats,
		nobody_died},
	{"decision-of-a-dead-task", "it is void, also when it was on its way before",
		decision_of_a_dead_task, decided_by_others},
	{"slow-death", "a death that takes long to be written is written once", slow_death,
		broken_in_the_end},
	{"CS-3-silence", "set, and then a task falls silent", silence_after_clocks_are_set,
		found_silent},
	{0},
};
