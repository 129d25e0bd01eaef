/* SPDX-License-Identifier: MIT */
#include "proto/agreement/reading.h"

#include "base/clock.h"
#include "proto/agreement/facts.h"
#include "proto/agreement/plan.h"
#include "proto/agreement/tally.h"

#define POLL_SELDOM  4000 /* ms between two readings by a task of the third turn, at least */
#define POLL_SHARE   8	  /* readings take about 1 / POLL_SHARE of the time, at most */
#define LOOKERS	     16	  /* how many tasks have the first turn: turn() */
#define RECORDS_READ 2	  /* records that are read in a millisecond, at least */
#define COUNT_SELDOM 4	  /* third turn: ms between two counts, per task of the job, at least */

/* How many tasks with lower numbers are still there; not counted further than turn() needs. */
static uint64_t live_before(const struct agreement *a)
{
	uint64_t before = 0;
	for (uint64_t i = 0; i < a->config.task && before < 2 * LOOKERS; i++)
		before += agreement_counts(a->view, i);
	return before;
}

/*
 * The first few tasks have the first turn (0): they look often and act for all. The next few, and a
 * few that are spread over the job, have the second turn (1): if all machines of the first few go
 * away, some of these remain. All others have the third turn (2).
 */
static int64_t turn(const struct agreement *a)
{
	uint64_t before = live_before(a), apart = a->view->tasks / LOOKERS;
	if (before < LOOKERS)
		return 0;
	return before < 2 * LOOKERS || (apart && a->config.task % apart == 0) ? 1 : 2;
}

/* ms that reading the records of all tasks takes, at most. */
static int64_t reading_time(const struct agreement *a)
{
	return (int64_t)(a->view->tasks / RECORDS_READ);
}

/* ms between readings in the third turn: longer with more tasks, unless the deadline is near. */
static int64_t seldom(const struct agreement *a)
{
	int64_t pace = (int64_t)a->view->tasks;
	if (deadline_of(a) != CLOCK_NEVER)
		pace = clock_earlier(pace, (deadline_of(a) - a->now) / 4);
	return clock_later(POLL_SELDOM, pace);
}

/* Only a few tasks read often: if all did, they would overload the store. */
static int64_t pace_by_turn(const struct agreement *a)
{
	if (turn(a) > 1)
		return seldom(a);
	return live_before(a) > LOOKERS / 4 ? 2 * POLL_OFTEN : POLL_OFTEN;
}

/* A task reads less often from a store that answers slowly. */
int64_t agreement_pace(const struct agreement *a)
{
	return clock_later(pace_by_turn(a), clock_earlier(POLL_SHARE * a->view->took, POLL_SELDOM));
}

/* Tasks of the third turn count seldom, at different instants; 0: the others count at each look. */
int64_t agreement_count_pace(const struct agreement *a)
{
	int64_t pace = COUNT_SELDOM * (int64_t)a->view->tasks;
	return turn(a) > 1 ? pace + pace * (int64_t)(a->config.task % LOOKERS) / LOOKERS : 0;
}

int64_t agreement_turn_delay(const struct agreement *a)
{
	return turn(a) * reading_time(a);
}

int64_t agreement_store_patience(const struct agreement *a)
{
	return agreement_pace(a) + reading_time(a);
}

/*
 * How long to wait until the agent that wrote the last record has read all and written the result.
 * Tasks of a later turn wait longer, so that only a few read at first if that agent is dead.
 */
static int64_t reading_delay(const struct agreement *a)
{
	return reading_time(a) + agreement_turn_delay(a);
}

void agreement_await(struct agreement *a, struct agreement_plan *plan, uint64_t awaited)
{
	if (!awaited || a->view->unseen < awaited) {
		a->records_due = 0;
		return;
	}
	if (!a->records_due)
		a->records_due = a->now + (a->wrote ? 0 : reading_delay(a));
	plan->read = clock_earlier(plan->read, a->records_due);
	if (has_come(plan, a->records_due, a->now))
		a->stands_in = true;
}

static void enter_round(struct agreement *a, int64_t now)
{
	a->round = a->view->round;
	a->round_seen = now;
	/* If the board still says `wait`, what was last read from it is still valid: the task stops
	 * at read_next. */
	if (a->told.order != ORDER_WAIT)
		a->read = false;
	a->stands_in = false;
	a->records_due = 0;
	a->decided_at = 0;
	a->reports = 0;
	a->reports_at = a->counted_at = a->looked_at = now;
	a->silence = a->answering = 0;
}

void agreement_count_silence(struct agreement *a, int64_t now, bool counted)
{
	uint64_t reports =
		agreement_tally(a->view).reports + (a->view->decided ? 0 : a->view->unseen);
	a->answering += clock_earlier(now - a->looked_at, pace_by_turn(a) + POLL_OFTEN);
	a->looked_at = now;
	if (!counted)
		return;
	a->counted_at = now;
	a->silence += a->answering;
	a->answering = 0;
	if (reports <= a->reports)
		return;
	a->reports = reports;
	a->reports_at = now;
	a->silence = 0;
}

void agreement_take_in(struct agreement *a, int64_t now)
{
	const struct agreement_view *view = a->view;
	if (view->round != a->round)
		enter_round(a, now);
	if (a->solo) /* a round in memory shows all its records at once */
		agreement_count_silence(a, now, true);
	if (view->decided && !a->decided_at) {
		a->decided_at = now;
		a->records_due = 0;
		a->stands_in = false;
	}
}

struct grace_measure agreement_measure(const struct agreement *a)
{
	struct grace_measure measure = a->measure;
	struct agreement_tally tally = agreement_tally(a->view);
	measure.longest_save = clock_later(measure.longest_save, a->view->longest_save);
	measure.longest_step = clock_later(measure.longest_step, tally.longest);
	if (tally.most > tally.least)
		measure.skew = (tally.most - tally.least) / tally.stride;
	return measure;
}
