/* SPDX-License-Identifier: MIT */
/*
 * The training processes: the loop of docs/design.md, section 3, with the client's rules.
 *
 *	for (n = start; n < total; n = next) {
 *		preempt_step(n, next) || { save(n) && preempt_saved(n); } || exit
 *		train
 *	}
 */
#include <inttypes.h>

#include "sim.h"

static const struct trainee *trainee_of(const struct world *w, int task)
{
	return &w->schedule->trainee[task];
}

/* Change state; the event that ends it comes after a delay (CLOCK_NEVER: something else does). */
static void enter(struct world *w, int task, enum training_state state, int64_t delay)
{
	struct training *p = &w->task[task].training;
	p->state = state;
	p->epoch++;
	if (delay != CLOCK_NEVER && trainee_of(w, task)->startup != CLOCK_NEVER)
		world_at(w, kernel.now + delay, EVENT_TRAINING, task, p->epoch);
}

void training_start(struct world *w, int task)
{
	const struct trainee *t = trainee_of(w, task);
	struct training *p = &w->task[task].training;
	check_start(w, task);
	p->boundary = p->position = t->start;
	enter(w, task, STARTING, t->startup == CLOCK_NEVER ? CLOCK_NEVER : t->startup * MS);
}

/* ---- A step ---- */

static bool has_ended_well(const struct training *p)
{
	return p->state == GONE && p->code == 0;
}

/*
 * In synchronous training a step ends for all when the last has computed its share; a task waits
 * for all that have not ended well.
 */
static bool step_is_computed(const struct world *w, uint64_t step)
{
	for (int i = 0; i < w->schedule->tasks; i++) {
		const struct training *p = &w->task[i].training;
		bool computed =
			p->position > step || (p->position == step && p->state == IN_COLLECTIVE);
		if (!computed && !has_ended_well(p))
			return false;
	}
	return true;
}

static void release(struct world *w)
{
	for (int i = 0; i < w->schedule->tasks; i++) {
		struct training *p = &w->task[i].training;
		if (p->state != IN_COLLECTIVE || !step_is_computed(w, p->position))
			continue;
		p->position++;
		enter(w, i, RELEASED, random_in(&kernel.random, 0, 3 * MS));
	}
}

void training_end(struct world *w, int task, int code)
{
	struct training *p = &w->task[task].training;
	if (p->state == GONE)
		return;
	TRACE(w, task, "command ends with %d", code);
	enter(w, task, GONE, CLOCK_NEVER);
	p->code = code;
	p->ended_at = kernel.now;
	world_at(w, kernel.now + random_in(&kernel.random, 0, 5 * MS), EVENT_ENDED, task, 0);
	if (w->schedule->synchronous)
		release(w);
}

/* A number that depends on both, and looks random. */
static uint64_t scatter(uint64_t seed, uint64_t step)
{
	uint64_t x = (seed + step) * 0x9e3779b97f4a7c15u;
	x ^= x >> 32;
	return x * 0xd6e8feb86659fd93u >> 33;
}

uint64_t training_next(const struct trainee *t, uint64_t step)
{
	if (t->uneven)
		return step + 1 + scatter(t->uneven, step) % (2 * t->stride - 1);
	return step + t->stride - (step == t->start ? t->offset : 0);
}

static void finish_chunk(struct world *w, int task)
{
	struct training *p = &w->task[task].training;
	const struct trainee *t = trainee_of(w, task);
	p->boundary = p->position;
	if (t->failing == FAIL_AT_STEP && p->boundary > t->fails_at) {
		training_end(w, task, 1);
		return;
	}
	if (p->boundary >= t->total) {
		training_end(w, task, 0);
		return;
	}
	if (t->periodic && (p->boundary / t->stride) % t->periodic == 0) {
		p->saving_for = ORDER_RUN;
		p->own_save_until = CLOCK_NEVER;
		p->saves_unasked = true;
		enter(w, task, SAVING, t->save * MS);
		return;
	}
	enter(w, task, STARTING, random_in(&kernel.random, 0, MS));
}

/* In synchronous training one step, otherwise all up to the next boundary. */
static void compute(struct world *w, int task)
{
	struct training *p = &w->task[task].training;
	const struct trainee *t = trainee_of(w, task);
	uint64_t steps = w->schedule->synchronous ? 1 : training_next(t, p->boundary) - p->boundary;
	int64_t took = (int64_t)steps * t->step_us + random_in(&kernel.random, 0, t->uneven_us);
	enter(w, task, COMPUTING, took);
}

static void begin_chunk(struct world *w, int task)
{
	struct training *p = &w->task[task].training;
	p->went_on = true;
	p->farthest = p->boundary;
	compute(w, task);
}

static void computed(struct world *w, int task)
{
	struct training *p = &w->task[task].training;
	if (w->schedule->synchronous) {
		enter(w, task, IN_COLLECTIVE, CLOCK_NEVER);
		release(w);
		return;
	}
	p->position = training_next(trainee_of(w, task), p->boundary);
	finish_chunk(w, task);
}

static void go_on(struct world *w, int task)
{
	struct training *p = &w->task[task].training;
	if (p->position == training_next(trainee_of(w, task), p->boundary))
		finish_chunk(w, task);
	else
		compute(w, task);
}

/* ---- preempt_step ---- */

static void tell_step(struct world *w, int task, uint64_t next)
{
	struct training *p = &w->task[task].training;
	struct panel *panel = &w->task[task].panel;
	panel->started = true;
	panel->step = p->boundary;
	panel->next = next;
	panel->step_at = kernel.now;
	panel->step_wall = node_of(w, task)->process.wall;
	enter(w, task, LOOKING, random_in(&kernel.random, 0, trainee_of(w, task)->look_us));
}

static void call_step(struct world *w, int task)
{
	const struct trainee *t = trainee_of(w, task);
	uint64_t step = w->task[task].training.boundary;
	tell_step(w, task, t->silent ? step + 1 : training_next(t, step));
}

void training_call(struct world *w, int task, uint64_t step, uint64_t next)
{
	struct training *p = &w->task[task].training;
	if (w->task[task].panel.started && step > p->boundary) {
		p->went_on = true;
		p->farthest = p->boundary;
	}
	p->boundary = p->position = step;
	tell_step(w, task, next);
}

void training_begin_save(struct world *w, int task)
{
	struct training *p = &w->task[task].training;
	const struct panel *panel = &w->task[task].panel;
	const struct trainee *t = trainee_of(w, task);
	p->saving_for = panel->hold.order;
	p->saves_unasked = false;
	/* Saving the same step once more does no damage when it is cut short. */
	p->saving_agreed = !panel->ordered_alone && !training_has_saved(w, task, p->boundary);
	p->saving_round = panel->order_round;
	if (p->answered < panel->hold.step + 1)
		p->answered = panel->hold.step + 1;
	if (panel->hold.order == ORDER_EXIT) {
		p->answered_final = panel->hold.step + 1;
		p->answered_at = p->boundary;
	}
	TRACE(w, task, "saves at %" PRIu64, p->boundary);
	if (!panel->ordered_alone)
		check_first_boundary(w, task);
	world_trigger(w, AT_SAVING, task);
	if (t->failing == FAIL_IN_SAVE) {
		training_end(w, task, 1);
		return;
	}
	enter(w, task, SAVING, t->save * MS);
}

/* preempt_step's answer. */
static void look_at_hold(struct world *w, int task)
{
	struct training *p = &w->task[task].training;
	const struct agreement_hold *hold = &w->task[task].panel.hold;
	switch (hold->order) {
	case ORDER_RUN: begin_chunk(w, task); return;
	case ORDER_WAIT: enter(w, task, PARKED, CLOCK_NEVER); return;
	case ORDER_LEAVE:
		if (trainee_of(w, task)->ignores_leave)
			begin_chunk(w, task);
		else
			training_end(w, task, hold->code);
		return;
	case ORDER_SAVE:
	case ORDER_EXIT: break;
	}
	bool final = hold->order == ORDER_EXIT;
	bool answered = hold->step < (final ? p->answered_final : p->answered);
	if (answered && final && p->boundary > p->answered_at)
		enter(w, task, PARKED, CLOCK_NEVER);
	else if (!answered && p->boundary < hold->step && w->task[task].panel.next > hold->step)
		enter(w, task, PARKED, CLOCK_NEVER); /* until the agents have found a later step */
	else if (answered || p->boundary < hold->step)
		begin_chunk(w, task);
	else
		training_begin_save(w, task);
}

/* ---- preempt_saved ---- */

/*
 * Its oldest periodic saves may be forgotten: then any step counts at which it would have made one.
 */
bool training_has_saved(const struct world *w, int task, uint64_t step)
{
	const struct training *p = &w->task[task].training;
	const struct trainee *t = trainee_of(w, task);
	if (p->saves > SAVE_LOG && step < p->saved_step[p->saves % SAVE_LOG] &&
		step / t->stride % t->periodic == 0)
		return true;
	for (uint64_t i = 0; i < p->saves && i < SAVE_LOG; i++)
		if (p->saved_step[i] == step)
			return true;
	for (uint64_t i = 0; i < p->asked_saves && i < SAVE_LOG; i++)
		if (p->asked_step[i] == step)
			return true;
	return false;
}

bool training_has_saved_since(const struct world *w, int task, uint64_t step)
{
	const struct training *p = &w->task[task].training;
	for (uint64_t i = 0; i < p->asked_saves && i < SAVE_LOG; i++)
		if (p->asked_step[i] >= step)
			return true;
	return false;
}

void training_finish_save(struct world *w, int task)
{
	struct training *p = &w->task[task].training;
	struct panel *panel = &w->task[task].panel;
	if (!panel->lost) {
		panel->has_saved = true;
		panel->saved = p->boundary;
		panel->saved_at = kernel.now;
		panel->saved_wall = node_of(w, task)->process.wall;
	}
	if (p->saving_for == ORDER_RUN) {
		p->own_save_until = kernel.now;
		p->saved_step[p->saves++ % SAVE_LOG] = p->boundary;
	} else
		p->asked_step[p->asked_saves++ % SAVE_LOG] = p->boundary;
	if (p->saving_for == ORDER_EXIT && panel->ordered_alone)
		p->saved_alone = p->boundary + 1;
	TRACE(w, task, "has saved %" PRIu64, p->boundary);
	enter(w, task, SAVED_LOOKING, random_in(&kernel.random, 0, MS));
	if (p->saving_for != ORDER_RUN)
		world_trigger(w, AT_SAVED, task);
	if (trainee_of(w, task)->failing == FAIL_AFTER_SAVE && p->saving_for != ORDER_RUN)
		training_end(w, task, 1);
}

/* preempt_saved's answer: the exit barrier, in which `staying_for` is the step + 1. */
static void stay_or_go_on(struct world *w, int task)
{
	struct training *p = &w->task[task].training;
	const struct agreement_hold *hold = &w->task[task].panel.hold;
	bool final = hold->order == ORDER_EXIT && hold->step <= p->boundary;
	if (final && p->saving_for == ORDER_RUN) {
		/* A periodic save happened to be the one that is asked for. */
		p->saving_for = ORDER_EXIT;
		if (w->task[task].panel.ordered_alone)
			p->saved_alone = p->boundary + 1;
		p->asked_step[p->asked_saves++ % SAVE_LOG] = p->boundary;
	}
	if (final)
		p->staying_for = hold->step + 1;
	bool ignores = hold->order == ORDER_LEAVE && trainee_of(w, task)->ignores_leave;
	bool stay = final || ignores || (hold->order == ORDER_WAIT && p->staying_for);
	if (hold->order == ORDER_LEAVE && !ignores)
		training_end(w, task, hold->code);
	else if (stay)
		enter(w, task, STAYING, CLOCK_NEVER);
	else if (p->saves_unasked)
		enter(w, task, STARTING, random_in(&kernel.random, 0, MS));
	else
		begin_chunk(w, task);
	if (!stay)
		p->staying_for = 0;
}

/* ---- Events ---- */

void training_event(struct world *w, int task)
{
	switch (w->task[task].training.state) {
	case STARTING: call_step(w, task); break;
	case COMPUTING: computed(w, task); break;
	case RELEASED: go_on(w, task); break;
	case LOOKING: look_at_hold(w, task); break;
	case SAVING: training_finish_save(w, task); break;
	case SAVED_LOOKING: stay_or_go_on(w, task); break;
	case IN_COLLECTIVE:
	case PARKED:
	case STAYING:
	case GONE: break;
	}
}

/* A sleeping process looks again. */
void training_hold_changed(struct world *w, int task)
{
	struct training *p = &w->task[task].training;
	if (p->state == PARKED)
		look_at_hold(w, task);
	else if (p->state == STAYING)
		stay_or_go_on(w, task);
}
