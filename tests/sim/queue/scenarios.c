/* SPDX-License-Identifier: MIT */
/* Named schedules: what must come out is known. */
#include <string.h>

#include "sim.h"

/* Six commands of 100 ms, two workers, a store that answers. */
static void build_plain(struct schedule *s)
{
	s->seed = 1;
	s->specs = 6;
	for (int i = 0; i < s->specs; i++)
		s->spec[i] = (struct spec){.duration = 100,
			.halt = HALT_NEVER,
			.term_code = 143,
			.max_transient = 3,
			.after = {NOBODY, NOBODY}};
	s->schedulers = 1;
	s->batch = 6;
	s->workers = 2;
	s->per_machine = 1;
	s->slots = 1;
	s->period = 300;
	s->silent_limit = 4;
	s->kill_after = 1000;
	s->grace = -1;
	s->idle_exit = -1;
	s->way = (struct way){.latency = 5, .notify = 5, .give_up = 2000};
}

static const char *all_succeed(struct world *w)
{
	return w->statistics->succeeded == (uint64_t)w->schedule->specs ? NULL
									: "not all have succeeded";
}

static const char *each_once(struct world *w)
{
	if (w->statistics->started != (uint64_t)w->schedule->specs)
		return "a command was started twice";
	return all_succeed(w);
}

static void build_killed(struct schedule *s)
{
	build_plain(s);
	s->act[s->acts++] = (struct act){.trigger = AT_RUN, .deed = KILL_WORKER};
}

static const char *one_is_lost(struct world *w)
{
	if (w->statistics->lost != 1 || w->statistics->fenced != 1)
		return "not exactly one command was lost";
	return all_succeed(w);
}

static void build_paused(struct schedule *s)
{
	build_plain(s);
	s->act[s->acts++] = (struct act){.trigger = AT_RUN, .deed = PAUSE_WORKER, .amount = 4000};
}

static void build_noticed(struct schedule *s)
{
	build_plain(s);
	s->spec[0].duration = 2000;
	s->act[s->acts++] =
		(struct act){.trigger = AT_RUN, .delay = 1, .deed = GIVE_NOTICE, .amount = 1000};
}

static const char *one_goes_back(struct world *w)
{
	if (w->statistics->returned != 1 || w->statistics->lost)
		return "not exactly one command has gone back";
	return all_succeed(w);
}

static void build_failing(struct schedule *s)
{
	build_plain(s);
	s->workers = 1;
	s->spec[0].halt = HALT_NOW;
	for (int i = 0; i < MOST_CODES; i++)
		s->spec[0].codes[i] = 1;
}

static const char *others_are_cancelled(struct world *w)
{
	if (w->statistics->failed != 1 || w->statistics->cancelled != 5)
		return "not exactly one has failed and five were cancelled";
	return w->statistics->raised == 1 ? NULL : "the failure was not told once";
}

static void build_silent_store(struct schedule *s)
{
	build_plain(s);
	s->act[s->acts++] = (struct act){.trigger = AT_RUN, .deed = OUTAGE, .amount = 30000};
}

/*
 * Of every ten transactions three are given up by who asked, and committed later. With this seed,
 * one would be committed after the answer that it was not made.
 */
static void build_late(struct schedule *s)
{
	build_plain(s);
	s->seed = 5;
	s->batch = 1;
	s->way.latency = 100;
	s->way.late_commit = 300;
}

/* 0 and 1, then 2 and 3 after both, then 4 after 3, then 5 after 4 and 2. */
static void build_after(struct schedule *s)
{
	static const int after[][MOST_AFTER] = {{0, 1}, {0, 1}, {3, NOBODY}, {4, 2}};
	build_plain(s);
	s->batch = 1;
	for (int i = 2; i < s->specs; i++)
		memcpy(s->spec[i].after, after[i - 2], sizeof(after[0]));
}

static const char *four_are_released(struct world *w)
{
	return w->statistics->blocked != 4 || w->statistics->released != 4 ? "not four were blocked"
									   : each_once(w);
}

static void build_after_failed(struct schedule *s)
{
	build_after(s);
	for (int i = 0; i < MOST_CODES; i++)
		s->spec[3].codes[i] = 1;
}

static const char *two_are_cancelled(struct world *w)
{
	const struct statistics *t = w->statistics;
	return t->succeeded == 3 && t->failed == 1 && t->cancelled == 2 && t->cancelled_after == 2
		       ? NULL
		       : "not one has failed and two were cancelled because of it";
}

const struct scenario scenarios[] = {
	{"plain", "six commands are run, each once", build_plain, each_once},
	{"killed", "what a dead worker ran is run by the other one", build_killed, one_is_lost},
	{"paused", "what a stopped worker ran is run by the other one, and counts once",
		build_paused, one_is_lost},
	{"noticed", "what a preempted worker ran goes back, and no attempt is used up",
		build_noticed, one_goes_back},
	{"failing", "a failure cancels what waits, and one client reports it", build_failing,
		others_are_cancelled},
	{"outage", "a store that no worker reaches for long kills no worker", build_silent_store,
		each_once},
	{"late", "what is committed after it was given up is scheduled once", build_late,
		all_succeed},
	{"after", "what comes after others is run after them", build_after, four_are_released},
	{"after-failed", "what comes after one that fails is cancelled", build_after_failed,
		two_are_cancelled},
	{0},
};
