/* SPDX-License-Identifier: MIT */
/* The way from the processes to the store: delays and faults of each call, which the shim makes. */
#include <assert.h>
#include <stdlib.h>

#include "base/clock.h"
#include "broken.h"
#include "kernel.h"

static int64_t left_cut_off(const struct process *process)
{
	int64_t left = process->cut_off_until - kernel.now;
	return left > 0 ? left : 0;
}

/* The microseconds that a call may take. */
static int64_t longest_call(int64_t deadline)
{
	int64_t longest = kernel.way.give_up * MS, now = clock_now();
	if (deadline != CLOCK_NEVER && deadline - now < longest / MS)
		longest = deadline > now ? (deadline - now) * MS : 0;
	return longest;
}

static void answer_beat(const struct process *process, struct shim_fate *fate)
{
	int64_t left = left_cut_off(process);
	fate->before = MS;
	if (left) {
		fate->before = left < 2000 * MS ? left : 2000 * MS;
		fate->loss = SHIM_REQUEST_LOST;
	}
}

static void answer(const struct process *process, enum shim_call call, int64_t deadline,
	struct shim_fate *fate)
{
	const struct way *way = &kernel.way;
	struct random *r = &kernel.random;
	int64_t wait = left_cut_off(process), longest = longest_call(deadline);
	int64_t took = random_in(r, way->latency * MS / 5, way->latency * MS);
	if (wait + took > longest || random_chance(r, way->lost_before)) {
		fate->before = wait + took < longest ? wait + took : longest;
		fate->loss = broken == UNKNOWN_IS_NOT_DONE && call == SHIM_TXN ? SHIM_PRETENDED
									       : SHIM_REQUEST_LOST;
		return;
	}
	fate->before = wait + random_in(r, 0, took);
	fate->after = wait + took - fate->before;
	if (call == SHIM_TXN && random_chance(r, way->late_commit)) {
		fate->loss = SHIM_LATE;
		fate->late = random_in(r, 0, 4000 * MS);
		kernel.late_commits++;
	} else if (random_chance(r, way->lost_after)) {
		fate->loss = SHIM_ANSWER_LOST;
		kernel.lost_answers++;
	}
}

static void decide(void *context, enum shim_call call, int64_t deadline, struct shim_fate *fate)
{
	const struct process *process = process_current();
	(void)context;
	if (!process)
		return;
	machine_spin();
	if (process->has_short_way) {
		fate->before = random_in(&kernel.random, 0, 2 * MS);
		return;
	}
	if (kernel.full_until > kernel.now && (call == SHIM_TXN || call == SHIM_BEAT)) {
		fate->before = MS;
		fate->loss = SHIM_REQUEST_LOST;
		return;
	}
	switch (call) {
	case SHIM_OPEN:
	case SHIM_OTHER:
	case SHIM_BEAT:
	case SHIM_BEAT_READ: answer_beat(process, fate); break;
	case SHIM_WAIT:
		fate->after = random_in(&kernel.random, 0, kernel.way.notify * MS);
		if (!left_cut_off(process))
			break;
		fate->loss = SHIM_UNSEEN;
		if (random_chance(&kernel.random, 300)) {
			fate->loss = SHIM_REQUEST_LOST;
			fate->before = random_in(&kernel.random, 0, 200 * MS);
		}
		break;
	case SHIM_TXN:
	case SHIM_READ: answer(process, call, deadline, fate); break;
	case SHIM_CALLS: break;
	}
}

static void let_pass(void *context, int64_t microseconds)
{
	(void)context;
	kernel_sleep(microseconds);
}

static void answered(void *context, size_t bytes)
{
	struct process *process = process_current();
	(void)context;
	if (process)
		process->bytes += bytes;
}

static void do_later(void *context, int64_t microseconds, void (*run)(void *what), void *what)
{
	(void)context;
	assert(kernel.lates < MOST_LATE);
	int number = kernel.lates++;
	kernel.late[number].run = run;
	kernel.late[number].what = what;
	kernel_at(kernel.now + microseconds, KERNEL_LATE, number, 0);
}

void way_install(void)
{
	kernel.shim = (struct shim){.decide = decide,
		.sleep = let_pass,
		.later = do_later,
		.answered = answered,
		.slice = 1000};
	if (broken)
		kernel.shim.alter = rule_alter;
	shim_install(&kernel.shim);
}
