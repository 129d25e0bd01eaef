/* SPDX-License-Identifier: MIT */
/* The training: steps that end for all at the same time, and the rules of the client. */
#include "scale.h"

/* Change state; the event that ends it comes after a delay (CLOCK_NEVER: something else does). */
static void enter(int task, enum training_state state, int64_t delay)
{
	struct task *t = &scale_world.task[task];
	t->state = state;
	t->epoch++;
	if (delay != CLOCK_NEVER)
		kernel_at(kernel.now + delay, EVENT_TRAINING, task, t->epoch);
}

static int64_t up_to(int64_t most)
{
	return random_in(&kernel.random, 0, most);
}

void training_start(int task)
{
	scale_world.task[task].running = true;
	enter(task, STARTING, up_to(50 * MS));
}

void training_end(int task, int code)
{
	struct task *t = &scale_world.task[task];
	if (t->state == GONE)
		return;
	if (t->state == IN_COLLECTIVE)
		scale_world.in_collective--;
	enter(task, GONE, CLOCK_NEVER);
	t->code = code;
	if (code == 0)
		world_command_finished();
	kernel_at(kernel.now + up_to(5 * MS), EVENT_ENDED, task, 0);
}

static void call_step(int task)
{
	struct task *t = &scale_world.task[task];
	t->started = true;
	t->step = t->boundary;
	t->step_at = kernel.now;
	enter(task, LOOKING, up_to(MS));
}

static void begin_step(int task)
{
	enter(task, COMPUTING, scale_world.scale->step * MS + up_to(5 * MS));
}

/* The step ends for all when the last has computed its share. */
static void computed(int task)
{
	struct world *w = &scale_world;
	enter(task, IN_COLLECTIVE, CLOCK_NEVER);
	if (++w->in_collective < w->tasks)
		return;
	w->in_collective = 0;
	for (int i = 0; i < w->tasks; i++)
		enter(i, RELEASED, up_to(3 * MS));
}

static void finish_step(int task)
{
	struct task *t = &scale_world.task[task];
	t->boundary++;
	if (scale_world.scale->ends && t->boundary == TOTAL_STEPS)
		training_end(task, 0);
	else
		call_step(task);
}

/* The answer of preempt_step. */
static void look_at_hold(int task)
{
	struct task *t = &scale_world.task[task];
	switch (t->hold.order) {
	case ORDER_RUN: begin_step(task); return;
	case ORDER_WAIT: enter(task, PARKED, CLOCK_NEVER); return;
	case ORDER_LEAVE: training_end(task, t->hold.code); return;
	case ORDER_SAVE:
	case ORDER_EXIT: break;
	}
	bool answered = t->has_saved && t->saved >= t->hold.step;
	if (t->boundary < t->hold.step || (answered && t->hold.order == ORDER_SAVE))
		begin_step(task);
	else if (answered)
		enter(task, PARKED, CLOCK_NEVER);
	else
		enter(task, SAVING, scale_world.scale->save * MS);
}

static void finish_save(int task)
{
	struct task *t = &scale_world.task[task];
	t->has_saved = true;
	t->saved = t->boundary;
	t->saved_at = scale_world.at.last_save = kernel.now;
	enter(task, SAVED_LOOKING, up_to(MS));
	if (!scale_world.at.decided)
		kernel_violate("together", "task %d has saved before the decision", task);
}

/* The answer of preempt_saved. */
static void stay_or_go_on(int task)
{
	const struct task *t = &scale_world.task[task];
	switch (t->hold.order) {
	case ORDER_LEAVE: training_end(task, t->hold.code); break;
	case ORDER_WAIT:
	case ORDER_EXIT: enter(task, STAYING, CLOCK_NEVER); break;
	case ORDER_RUN:
	case ORDER_SAVE: begin_step(task); break;
	}
}

void training_event(int task)
{
	switch (scale_world.task[task].state) {
	case STARTING: call_step(task); break;
	case COMPUTING: computed(task); break;
	case RELEASED: finish_step(task); break;
	case LOOKING: look_at_hold(task); break;
	case SAVING: finish_save(task); break;
	case SAVED_LOOKING: stay_or_go_on(task); break;
	case IN_COLLECTIVE:
	case PARKED:
	case STAYING:
	case GONE: break;
	}
}

void training_hold_changed(int task)
{
	enum training_state state = scale_world.task[task].state;
	if (state == PARKED)
		look_at_hold(task);
	else if (state == STAYING)
		stay_or_go_on(task);
}
