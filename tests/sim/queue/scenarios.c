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
		s->spec[i] = (struct spec){
			.duration = 100, .halt = HALT_NEVER, .term_code = 143, .max_transient = 3};
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

/* Of every ten transactions three are given up by who asked, and committed later. */
static void build_late(struct schedule *s)
{
	build_plain(s);
	s->batch = 1;
	s->way.latency = 100;
	s->way.late_commit = 300;
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
	{"late", "what is committed after it was given up is not scheduled again", build_late,
		all_succeed},
	{0},
};
