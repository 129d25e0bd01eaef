/* SPDX-License-Identifier: MIT */
/* Random schedules: everything is drawn from one seed. */
#include <inttypes.h>
#include <string.h>

#include "sim.h"

static const char *const deed_names[DEEDS] = {[NOTHING] = "nothing",
	[KILL_WORKER] = "kill worker",
	[RESTART_WORKER] = "restart worker",
	[PAUSE_WORKER] = "pause worker",
	[CUT_OFF] = "cut off",
	[OUTAGE] = "outage",
	[FULL_STORE] = "full store",
	[GIVE_NOTICE] = "notice",
	[SIGNAL_WORKER] = "signal worker",
	[KILL_COMMAND] = "kill command",
	[NEW_WORKER] = "new worker",
	[CANCEL] = "cancel",
	[RETRY] = "retry",
	[RETRY_ANY] = "retry any",
	[FORGET] = "forget",
	[JOIN] = "join",
	[KILL_CLIENTS] = "kill clients"};

static const char *const trigger_names[TRIGGERS] = {[AT_START] = "start",
	[AT_HERE] = "worker here",
	[AT_SCHEDULE] = "schedule",
	[AT_TAKE] = "take",
	[AT_RUN] = "run",
	[AT_ENDED] = "command ended",
	[AT_BACK] = "back",
	[AT_OVER] = "over",
	[AT_ERROR] = "error",
	[AT_FENCE] = "fence"};

const char *deed_name(enum deed deed)
{
	return deed_names[deed];
}

static int draw_code(struct random *r)
{
	static const int codes[] = {1, 3, 42, 43, 75, 75, 93, 139};
	if (!random_chance(r, 250))
		return 0;
	return codes[random_in(r, 0, sizeof(codes) / sizeof(*codes) - 1)];
}

static void draw_spec(struct spec *spec, struct random *r, int halting)
{
	static const int term_codes[] = {143, 143, 42, 0};
	spec->priority = random_chance(r, 150) ? (int)random_in(r, -2, 2) : 0;
	spec->max_attempts = random_chance(r, 500) ? (uint64_t)random_in(r, 1, 3) : 0;
	spec->max_transient = (uint64_t)random_in(r, 0, 3);
	spec->timeout = random_chance(r, 100) ? random_in(r, 50, 500) : 0;
	spec->halt = !random_chance(r, halting) ? HALT_NEVER
		     : random_chance(r, 500)	? HALT_NOW
						: HALT_SOON;
	spec->uses_resource = random_chance(r, 80);
	spec->ignores_term = random_chance(r, 80);
	spec->has_long_output = random_chance(r, 150);
	spec->duration = random_chance(r, 100) ? random_in(r, 500, 4000) : random_in(r, 5, 400);
	for (int i = 0; i < MOST_CODES; i++)
		spec->codes[i] = draw_code(r);
	/* The last one goes on for ever: it must not ask for that. */
	if (spec->codes[MOST_CODES - 1] == 42 || spec->codes[MOST_CODES - 1] == 43)
		spec->codes[MOST_CODES - 1] = 0;
	spec->term_code = term_codes[random_in(r, 0, 3)];
}

static void draw_act(struct act *act, struct random *r)
{
	act->trigger = (enum trigger)random_in(r, 0, TRIGGERS - 1);
	act->nth = act->trigger == AT_START ? 0 : (int)random_in(r, 0, 5);
	act->delay = act->trigger == AT_START ? random_in(r, 0, 3000)
		     : random_chance(r, 500)  ? random_in(r, 0, 20)
					      : random_in(r, 0, 1500);
	act->deed = (enum deed)random_in(r, KILL_WORKER, DEEDS - 1);
	act->amount = random_chance(r, 300) ? random_in(r, 1, 200) : random_in(r, 200, 6000);
	if (act->deed == GIVE_NOTICE && random_chance(r, 300))
		act->amount = -1;
}

/* People who cancel, retry and forget, at the moments at which that could go wrong. */
static void draw_people(struct schedule *s, struct random *r)
{
	static const enum deed deeds[] = {CANCEL, RETRY, RETRY_ANY, FORGET};
	static const enum trigger triggers[] = {AT_OVER, AT_ENDED, AT_SCHEDULE, AT_TAKE};
	s->acts = s->acts < 4 ? 4 : s->acts;
	for (int i = 0; i < s->acts; i++)
		if (!s->act[i].deed || random_chance(r, 500))
			s->act[i] = (struct act){.trigger = triggers[random_in(r, 0, 3)],
				.nth = (int)random_in(r, 0, 5),
				.delay = random_in(r, 0, 40),
				.deed = deeds[random_in(r, 0, 3)]};
}

/* Drawn from a seed of its own: without it all is as it was. */
static void draw_after(struct schedule *s)
{
	struct random random = {.state = s->seed * 2246822519u + 29}, *r = &random;
	int chance = random_chance(r, 500) ? 0 : (int)random_in(r, 100, 900);
	for (int i = 0; i < s->specs; i++)
		for (int a = 0; a < MOST_AFTER; a++)
			s->spec[i].after[a] = random_chance(r, chance)
						      ? (int)random_in(r, 0, s->specs - 1)
						      : NOBODY;
	if (chance && random_chance(r, 600))
		draw_people(s, r);
}

static void draw_way(struct way *way, struct random *r)
{
	bool faulty = random_chance(r, 400);
	way->latency = random_chance(r, 200) ? random_in(r, 50, 400) : random_in(r, 1, 30);
	way->notify = random_in(r, 1, 50);
	way->give_up = random_in(r, 1000, 6000);
	way->lost_before = faulty ? (int)random_in(r, 0, 40) : 0;
	way->lost_after = faulty ? (int)random_in(r, 0, 40) : 0;
	way->late_commit = faulty ? (int)random_in(r, 0, 30) : 0;
}

void schedule_draw(struct schedule *s, uint64_t seed)
{
	struct random random = {.state = seed * 2654435761u + 17}, *r = &random;
	memset(s, 0, sizeof(*s));
	s->seed = seed;
	s->specs = (int)random_in(r, 1, random_chance(r, 100) ? 40 : 12);
	int halting = random_chance(r, 500) ? 0 : (int)random_in(r, 0, 400);
	for (int i = 0; i < s->specs; i++)
		draw_spec(&s->spec[i], r, halting);
	s->schedulers = (int)random_in(r, 1, MOST_SCHEDULERS);
	s->batch = (int)random_in(r, 1, 8);
	s->once = random_chance(r, 500);
	s->limit = random_chance(r, 200) ? (uint64_t)random_in(r, 8, 16) : 0;
	s->workers = (int)random_in(r, 1, 4);
	s->per_machine = (int)random_in(r, 1, 3);
	s->sees_others = random_chance(r, 500);
	s->slots = (uint64_t)random_in(r, 1, 3);
	s->period = random_in(r, 200, 500);
	s->silent_limit = (uint64_t)random_in(r, 3, 6);
	s->kill_after = random_in(r, 200, 2000);
	s->grace = random_in(r, -1, 1500);
	s->idle_exit = random_chance(r, 200) ? random_in(r, 500, 3000) : -1;
	draw_way(&s->way, r);
	for (int i = 0; i <= MOST_WORKERS; i++)
		s->clock[i] = random_in(r, -100000, 100000);
	s->full_disk = random_chance(r, 50) ? 200 : 0;
	for (int i = 0; i < MOST_CODES; i++)
		s->resource_codes[i] = random_chance(r, 700) ? 0 : random_chance(r, 500) ? 75 : 1;
	s->acts = (int)random_in(r, 0, 6);
	for (int i = 0; i < s->acts; i++)
		draw_act(&s->act[i], r);
	draw_after(s);
}

void schedule_print(const struct schedule *s, FILE *out)
{
	fprintf(out,
		"seed %" PRIu64
		": %d commands of %d schedulers in batches of %d%s, %d workers with "
		"%" PRIu64 " slots, period %" PRId64 " ms, limit %" PRIu64 "%s\n",
		s->seed, s->specs, s->schedulers, s->batch, s->once ? ", once" : "", s->workers,
		s->slots, s->period, s->silent_limit, s->sees_others ? ", see each other" : "");
	fprintf(out, "store: %" PRId64 " ms, lost before %d, after %d, late %d\n", s->way.latency,
		s->way.lost_before, s->way.lost_after, s->way.late_commit);
	for (int i = 0; i < s->specs; i++) {
		const struct spec *spec = &s->spec[i];
		fprintf(out,
			"spec %d: %" PRId64 " ms, codes %d %d %d %d, attempts %" PRIu64
			", transients %" PRIu64 ", halt %s%s%s\n",
			i, spec->duration, spec->codes[0], spec->codes[1], spec->codes[2],
			spec->codes[3], spec->max_attempts, spec->max_transient,
			queue_halt_word(spec->halt), spec->has_long_output ? ", long output" : "",
			spec->uses_resource ? ", resource" : "");
	}
	for (int i = 0; i < s->acts; i++)
		fprintf(out, "act %d: at %s no %d, after %" PRId64 " ms: %s, %" PRId64 " ms\n", i,
			trigger_names[s->act[i].trigger], s->act[i].nth, s->act[i].delay,
			deed_name(s->act[i].deed), s->act[i].amount);
}
