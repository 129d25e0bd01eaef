/* SPDX-License-Identifier: MIT */
/*
 * When the final save begins: 10,000 preemptions drawn at random, of trainings whose steps and
 * saves are steady, spiky or growing, with the rules of grace.h and step_interval.h as the agent
 * uses them (it looks once a second). The save is done before the deadline in at least 99.9 % of
 * those in which it can be, and little of the grace period is left unused.
 */
#include <math.h>
#include <stdlib.h>

#include "agent/task/step_interval.h"
#include "base/clock.h"
#include "proto/agreement/grace.h"
#include "unit.h"

#define DRAWS 10000

enum temper { STEADY, SPIKY, GROWING, TEMPERS };
static const char *const tempers[] = {"steady", "spiky", "growing"};

static uint64_t random_state = 88172645463325252u;

/* [0, 1) */
static double draw(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (double)(random_state >> 11) / 9007199254740992.0;
}

static double between(double low, double high)
{
	return low + draw() * (high - low);
}

static double log_between(double low, double high)
{
	return low * pow(high / low, draw());
}

/* What a training is like; times in ms. */
struct training {
	enum temper steps, saves;
	double step, save;
	uint64_t stepped, saved; /* so many so far */
};

static double next_step(struct training *t)
{
	double time = t->step * between(0.95, 1.05);
	if (t->steps == SPIKY && draw() < 0.03)
		time *= between(1.5, 3);
	if (t->steps == GROWING)
		time *= 1 + 0.001 * (double)t->stepped;
	t->stepped++;
	return time;
}

static double next_save(struct training *t)
{
	double time = t->save * between(0.9, 1.1);
	if (t->saves == SPIKY && draw() < 0.1)
		time *= between(1.1, 1.6);
	if (t->saves == GROWING)
		time *= 1 + 0.02 * (double)t->saved;
	t->saved++;
	return time;
}

/* From a hold to a decision that all have seen: a local store, or one that is polled. */
static double agree(bool polled)
{
	return polled ? between(200, 2200) : between(3, 60);
}

struct outcome {
	bool made;
	double unused; /* ms of the grace, when made */
};

/* The task as the agent sees it. */
struct agent {
	struct training *training;
	struct grace_measure measure;
	struct step_interval interval;
	double now, boundary; /* the end of the present step */
	uint64_t step;
	double looked;
	unsigned saves;
	double saved; /* ms in all */
};

static void save(struct agent *agent)
{
	double time = next_save(agent->training);
	agent->now += time;
	if ((int64_t)time > agent->measure.longest_save)
		agent->measure.longest_save = (int64_t)time;
	agent->saves++;
	agent->saved += time;
	if (agent->saves >= 3)
		agent->measure.usual_save = (int64_t)(agent->saved / agent->saves);
	agent->interval.since = (int64_t)agent->now;
}

static void begin_step(struct agent *agent)
{
	agent->boundary = agent->now + next_step(agent->training);
}

/* Train until the instant, with the agent's looks once a second. */
static void train_until(struct agent *agent, double instant)
{
	while (agent->now < instant) {
		double look = agent->looked + 1000;
		double until = agent->boundary < look ? agent->boundary : look;
		agent->now = until < instant ? until : instant;
		if (agent->now >= agent->boundary) {
			agent->step++;
			begin_step(agent);
		}
		if (agent->now >= look) {
			agent->looked = agent->now;
			step_interval_saw(&agent->interval, agent->step, agent->step + 1, false,
				(int64_t)agent->now);
		}
	}
	agent->measure.longest_step = step_interval_longest(&agent->interval, (int64_t)agent->now);
	agent->measure.usual_step = step_interval_usual(&agent->interval);
}

/*
 * Hold, agree on the next boundary, and be there. Where a boundary lay between the first task that
 * was held and the last one, it is the one after it.
 */
static void agree_and_arrive(struct agent *agent, bool polled)
{
	double time = agree(polled), held = between(0, time), agreed = agent->now + time;
	bool between_two = agent->boundary < agent->now + held;
	agent->now = agreed > agent->boundary ? agreed : agent->boundary;
	if (between_two)
		agent->now += next_step(agent->training);
	agent->step += 1 + between_two;
}

static struct outcome ours(struct agent agent, double grace, bool polled)
{
	struct training training = *agent.training;
	double notice = agent.now, deadline = notice + grace;
	agent.training = &training;
	if (grace_allows_training((int64_t)notice, (int64_t)deadline, &agent.measure)) {
		agree_and_arrive(&agent, polled);
		save(&agent);
		begin_step(&agent);
		/* What is measured moves the final time. */
		for (;;) {
			double final = (double)grace_final_time((int64_t)deadline, &agent.measure);
			if (final <= agent.now)
				break;
			train_until(&agent, final < agent.now + 1000 ? final : agent.now + 1000);
		}
		if (!grace_fits((int64_t)agent.now, (int64_t)deadline, &agent.measure))
			return (struct outcome){true, deadline - agent.now}; /* the first stands */
	}
	agree_and_arrive(&agent, polled);
	save(&agent);
	return (struct outcome){agent.now <= deadline, deadline - agent.now};
}

/* What is the best that can be: save at the next boundary. */
static bool possible(struct agent agent, double grace)
{
	struct training training = *agent.training;
	double deadline = agent.now + grace;
	agent.training = &training;
	agree_and_arrive(&agent, true);
	save(&agent);
	return agent.now + 1000 <= deadline;
}

struct tally {
	unsigned possible, made;
	double unused, grace; /* ms, where it was made */
};

static void draw_one(struct tally *tally, enum temper steps, enum temper saves)
{
	struct training training = {.steps = steps, .saves = saves, .step = log_between(50, 30000)};
	training.save = training.step * log_between(0.2, 15);
	struct agent agent = {.training = &training};
	bool polled = draw() < 0.5;
	uint64_t history = (uint64_t)between(60, 400), every = (uint64_t)between(10, 60);
	begin_step(&agent);
	for (uint64_t i = 0; i < history; i++) {
		train_until(&agent, agent.boundary);
		if (i % every == every - 1) {
			save(&agent);
			begin_step(&agent);
		}
	}
	train_until(&agent, agent.now + between(0, training.step));
	double grace = training.step * between(20, 600);
	if (!possible(agent, grace))
		return;
	struct outcome own = ours(agent, grace, polled);
	tally->possible++;
	if (!own.made)
		return;
	tally->made++;
	tally->unused += own.unused;
	tally->grace += grace;
}

int main(void)
{
	struct tally all = {0};
	for (enum temper steps = STEADY; steps < TEMPERS; steps++)
		for (enum temper saves = STEADY; saves < TEMPERS; saves++) {
			struct tally tally = {0};
			while (tally.possible < DRAWS / (TEMPERS * TEMPERS) + 1)
				draw_one(&tally, steps, saves);
			printf("# %s steps, %s saves: missed %.2f %%, unused of the grace %.1f %%\n",
				tempers[steps], tempers[saves],
				100.0 * (tally.possible - tally.made) / tally.possible,
				100 * tally.unused / tally.grace);
			all.possible += tally.possible;
			all.made += tally.made;
			all.unused += tally.unused;
			all.grace += tally.grace;
		}
	printf("# of %u: missed %.3f %%, unused %.2f %% of the grace\n", all.possible,
		100.0 * (all.possible - all.made) / all.possible, 100 * all.unused / all.grace);
	CHECK((all.possible - all.made) * 1000 <= all.possible,
		"PH-13 the final save is done before the deadline in at least 99.9 %%");
	CHECK(all.unused < all.grace * 0.02, "and less than 2 %% of the grace is left unused");
	return unit_end();
}
