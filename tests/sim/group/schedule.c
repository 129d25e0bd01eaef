/* SPDX-License-Identifier: MIT */
/* Random schedules: everything is drawn from one seed. */
#include <inttypes.h>
#include <string.h>

#include "sim.h"

/* ---- Who is where ---- */

int schedule_agent_of(const struct schedule *s, int task)
{
	return task / s->per_agent;
}

int schedule_agents(const struct schedule *s)
{
	return (s->tasks + s->per_agent - 1) / s->per_agent;
}

int schedule_machine_of(const struct schedule *s, int agent)
{
	return agent / s->agents_per_machine;
}

/* ---- Drawing ---- */

static void draw_tasks(struct schedule *s, struct random *r)
{
	s->tasks = (int)random_in(r, 1, 8);
	if (random_chance(r, 30))
		s->tasks = (int)random_in(r, 9, 32);
	else if (random_chance(r, 5))
		s->tasks = MOST_TASKS;
	s->per_agent = 1;
	if (random_chance(r, 350))
		s->per_agent = (int)random_in(r, 1, s->tasks);
	s->agents_per_machine = random_chance(r, 500) ? 1 : (int)random_in(r, 1, 4);
	s->watches_peers = random_chance(r, 700);
	s->launcher_kills = random_chance(r, 300);
	s->synchronous = random_chance(r, 500);
	s->launched = random_chance(r, 500);
}

static int64_t draw_step_us(struct random *r)
{
	switch (random_in(r, 0, 9)) {
	case 0: return random_in(r, 1 * MS, 5 * MS);
	case 1: return random_in(r, 1000 * MS, 6000 * MS);
	case 2:
	case 3: return random_in(r, 400 * MS, 1000 * MS);
	default: return random_in(r, 20 * MS, 400 * MS);
	}
}

static int64_t draw_save(struct random *r)
{
	switch (random_in(r, 0, 9)) {
	case 0: return random_in(r, 3000, 12000);
	case 1:
	case 2:
	case 3: return random_in(r, 500, 3000);
	default: return random_in(r, 1, 500);
	}
}

/* Some loops do not come back every so many steps: together, or each in its own way. */
static void draw_boundaries(struct schedule *s, struct random *r)
{
	if (!random_chance(r, 200))
		return;
	uint64_t stride = (uint64_t)random_in(r, 2, 12), shared = (uint64_t)random_in(r, 1, 1000);
	bool own = random_chance(r, 300), uneven = random_chance(r, 400), odd = !uneven && own;
	bool silent = !own && random_chance(r, 400);
	for (int i = 0; i < s->tasks; i++) {
		struct trainee *t = &s->trainee[i];
		t->stride = stride;
		t->silent = silent;
		t->offset = odd ? (uint64_t)random_in(r, 0, (int64_t)stride - 1) : 0;
		t->uneven = uneven ? shared + (own ? (uint64_t)i : 0) : 0;
	}
}

static void draw_training(struct schedule *s, struct random *r)
{
	static const uint64_t strides[] = {2, 3, 4, 5, 8};
	bool own_strides = random_chance(r, 80);
	bool own_speed = !s->synchronous && random_chance(r, 500);
	bool skewed_start = random_chance(r, 300);
	uint64_t stride = random_chance(r, 150) ? strides[random_in(r, 0, 4)] : 1;
	uint64_t start = random_chance(r, 300) ? 1200 : 0;
	int64_t step = draw_step_us(r), save = draw_save(r);
	uint64_t total = NEVER_STEP;
	if (random_chance(r, 250))
		total = start + (uint64_t)random_in(r, 1, 1 + 4000 * MS / step);
	int64_t look = random_chance(r, 300) ? random_in(r, 0, 20 * MS) : 50;
	for (int i = 0; i < s->tasks; i++) {
		struct trainee *t = &s->trainee[i];
		t->start = start;
		t->stride =
			own_strides && random_chance(r, 500) ? strides[random_in(r, 0, 4)] : stride;
		t->total = total;
		if (total != NEVER_STEP && !s->synchronous && random_chance(r, 300))
			t->total = start + (uint64_t)random_in(r, 1, (int64_t)(total - start) * 2);
		t->step_us = own_speed ? step * random_in(r, 1, 12) / 3 : step;
		t->uneven_us = random_chance(r, 300) ? step : step / 10;
		t->look_us = look;
		t->react = random_in(r, 0, 20);
		t->save = save + random_in(r, 0, save / 2);
		t->startup = random_in(r, 0, skewed_start ? 5000 : 100);
		t->periodic = 0;
		t->ignores_term = random_chance(r, 300);
		t->ignores_leave = random_chance(r, 10);
		if (random_chance(r, 5))
			t->startup = CLOCK_NEVER;
		if (random_chance(r, 15)) {
			t->failing = (enum failing)random_in(r, FAIL_AT_STEP, FAIL_AFTER_SAVE);
			t->fails_at = start + (uint64_t)random_in(r, 1, 1 + 5000 * MS / step);
		}
	}
	draw_boundaries(s, r);
	if (random_chance(r, 150)) {
		uint64_t periodic = (uint64_t)random_in(r, 1, 10);
		for (int i = 0; i < s->tasks; i++)
			s->trainee[i].periodic = periodic;
	}
}

/* Fast steps make long runs expensive, so they get short ones. */
static int64_t draw_grace(const struct schedule *s, struct random *r)
{
	bool fast = s->trainee[0].step_us < 10 * MS;
	switch (random_in(r, 0, 9)) {
	case 0:
	case 1:
	case 2: return -1;
	case 3: return random_in(r, 0, 3000);
	case 4:
	case 5: return random_in(r, 2000, 15000);
	case 6:
	case 7: return random_in(r, 10000, fast ? 20000 : 40000);
	default: return fast ? 20000 : random_in(r, 30000, 120000);
	}
}

static int draw_who(const struct schedule *s, struct random *r)
{
	return (int)random_in(r, 0, s->tasks - 1);
}

static void add(struct schedule *s, struct act act)
{
	if (s->acts < MOST_ACTS)
		s->act[s->acts++] = act;
}

static void draw_notices(struct schedule *s, struct random *r)
{
	static const enum agreement_then thens[] = {THEN_EXIT, THEN_EXIT, THEN_EXIT, THEN_STOP};
	int64_t first = random_in(r, 0, 3000), grace = draw_grace(s, r);
	bool on_demand = random_chance(r, 150);
	if (on_demand && random_chance(r, 300)) /* and then something breaks */
		add(s, (struct act){.trigger = (enum trigger)random_in(r, AT_DECISION, AT_SAVED),
			       .subject = NOBODY,
			       .deed = KILL_TRAINING,
			       .who = draw_who(s, r),
			       .delay = random_in(r, 0, 300)});
	if (on_demand)
		add(s, (struct act){.deed = ON_DEMAND,
			       .who = NOBODY,
			       .subject = NOBODY,
			       .delay = random_in(r, 0, 3000)});
	if (random_chance(r, on_demand ? 400 : 60))
		return;
	if (random_chance(r, 150))
		add(s, (struct act){.deed = CLAIM_OUTSIDE,
			       .who = NOBODY,
			       .subject = NOBODY,
			       .delay = first,
			       .amount = grace,
			       .then = thens[random_in(r, 0, 3)]});
	else
		add(s, (struct act){.deed = NOTICE,
			       .who = draw_who(s, r),
			       .subject = NOBODY,
			       .delay = first,
			       .amount = grace});
	while (random_chance(r, 300)) {
		bool same = random_chance(r, 500);
		add(s, (struct act){.deed = NOTICE,
			       .who = draw_who(s, r),
			       .subject = NOBODY,
			       .delay = first + random_in(r, 0, random_chance(r, 500) ? 20 : 8000),
			       .amount = same ? grace : draw_grace(s, r)});
	}
	if (random_chance(r, 120))
		add(s, (struct act){.trigger = (enum trigger)random_in(r, AT_CLAIM, AT_SAVED),
			       .subject = NOBODY,
			       .deed = MOVE_DEADLINE,
			       .who = NOBODY,
			       .delay = random_in(r, 0, random_chance(r, 500) ? 20 : 4000),
			       .amount = random_in(r, 0, 20000)});
}

/* Lengths around the timeouts are where the bugs are. */
static int64_t draw_length(const struct schedule *s, struct random *r)
{
	switch (random_in(r, 0, 5)) {
	case 0: return s->report_timeout;
	case 1: return s->report_timeout + random_in(r, -1500, 2500);
	case 2: return random_in(r, 0, 500);
	case 3: return s->save_timeout + random_in(r, -2000, 5000);
	default: return random_in(r, 500, 3 * s->report_timeout);
	}
}

static void draw_fault(struct schedule *s, struct random *r)
{
	static const enum deed deeds[] = {KILL_AGENT, KILL_AGENT, PAUSE_AGENT, PAUSE_AGENT,
		PAUSE_AGENT, KILL_TRAINING, PAUSE_TRAINING, CUT_OFF, CUT_OFF, CUT_OFF, RESTART,
		DECLARE_DEAD, LOSE_BOARD, GARBAGE, FULL_STORE};
	int deed = (int)random_in(r, 0, (int)(sizeof deeds / sizeof *deeds) - 1);
	struct act act = {.deed = deeds[deed], .subject = NOBODY, .who = draw_who(s, r)};
	act.trigger = (enum trigger)random_in(r, AT_START, TRIGGERS - 1);
	if (random_chance(r, 500))
		act.subject = draw_who(s, r);
	if (act.trigger != AT_START && random_chance(r, 400))
		act.who = act.subject;
	switch (random_in(r, 0, 3)) {
	case 0: act.delay = 0; break;
	case 1: act.delay = random_in(r, 0, 20); break;
	case 2: act.delay = random_in(r, 0, 1500); break;
	default: act.delay = random_in(r, 0, 12000); break;
	}
	act.amount = draw_length(s, r);
	if (act.deed == RESTART)
		act.amount = random_in(r, 0, 5000);
	if (act.deed == CUT_OFF && random_chance(r, 300))
		act.who = EVERYBODY;
	add(s, act);
}

static void draw_store(struct schedule *s, struct random *r)
{
	s->latency = random_in(r, 1, 20);
	s->notify = random_chance(r, 500) ? random_in(r, 1, 10) : random_in(r, 100, 1500);
	s->give_up = random_in(r, 500, 5000);
	if (random_chance(r, 70))
		s->latency = random_in(r, 20, 400);
	else if (random_chance(r, 15))
		s->latency = random_in(r, 400, 3000);
	if (s->give_up < 3 * s->latency)
		s->give_up = 3 * s->latency;
	if (random_chance(r, 120)) {
		s->lost_before = (int)random_in(r, 0, 150);
		s->lost_after = (int)random_in(r, 0, 150);
		s->late_commit = random_chance(r, 300) ? (int)random_in(r, 0, 50) : 0;
	}
}

/* By up to a day, on any subset of the machines. */
static void draw_clocks(struct schedule *s, struct random *r)
{
	int subset = (int)random_in(r, 0, 4) * 250;
	for (int i = 0; i < s->tasks; i++) {
		int64_t most = random_chance(r, 500) ? 60000 : 86400000;
		if (random_chance(r, subset))
			s->clock[i] = random_in(r, -most, most);
	}
}

/* By up to a day, at some time, either way. */
static void draw_set_clocks(struct schedule *s, struct random *r)
{
	for (int i = random_chance(r, 200) ? (int)random_in(r, 1, 3) : 0; i > 0; i--)
		add(s, (struct act){.trigger = (enum trigger)random_in(r, AT_START, TRIGGERS - 1),
			       .subject = NOBODY,
			       .delay = random_in(r, 0, 3000),
			       .deed = SET_CLOCK,
			       .who = random_chance(r, 500) ? draw_who(s, r) : EVERYBODY,
			       .amount = random_in(r, -86400000, 86400000)});
}

void schedule_draw(struct schedule *s, uint64_t seed)
{
	struct random r = {seed * 0x2545f4914f6cdd1du + 1};
	memset(s, 0, sizeof *s);
	s->seed = random_next(&r);
	draw_tasks(s, &r);
	s->report_timeout = random_chance(&r, 500) ? 10000 : random_in(&r, 1500, 10000);
	s->save_timeout = random_in(&r, 15000, random_chance(&r, 100) ? 300000 : 60000);
	s->startup = random_chance(&r, 800) ? 600000 : random_in(&r, 0, 3000);
	s->kill_after = random_in(&r, 500, 10000);
	s->savers_chief = random_chance(&r, 100);
	s->complete_chief = random_chance(&r, 50);
	s->per_task = random_chance(&r, 200);
	s->store_loss_ends = random_chance(&r, 100);
	draw_training(s, &r);
	if (s->trainee[0].step_us < 10 * MS && s->save_timeout > 30000)
		s->save_timeout = 30000;
	s->remembered_save = random_chance(&r, 600) ? s->trainee[0].save : 0;
	draw_store(s, &r);
	draw_clocks(s, &r);
	draw_notices(s, &r);
	int faults = random_chance(&r, 350) ? 0 : (int)random_in(&r, 1, 3);
	if (faults && random_chance(&r, 100))
		faults += (int)random_in(&r, 1, 5);
	for (int i = 0; i < faults; i++)
		draw_fault(s, &r);
	s->early = random_chance(&r, 120);
	s->beat_period = random_chance(&r, 300) ? random_in(&r, 500, 5000) : 0;
	if (s->beat_period && random_chance(&r, 300))
		s->progress_timeout = random_in(&r, 20000, 60000);
	draw_set_clocks(s, &r);
}
