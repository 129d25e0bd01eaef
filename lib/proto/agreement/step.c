/* SPDX-License-Identifier: MIT */
/* Choose the step and the kind of a decision: pure functions of the view. */
#include "base/clock.h"
#include "proto/agreement/agreement.h"

#define PASSES 16 /* over all tasks, to find a boundary that all share */

/* Whether the report of this task names a boundary. */
static bool names_step(const struct agreement_view *view, uint64_t task)
{
	const struct agreement_peer *peer = &view->peers[task];
	return agreement_counts(view, task) && peer->reported && !peer->none;
}

uint64_t agreement_stride(const struct agreement_peer *peer)
{
	return peer->next > peer->step ? peer->next - peer->step : 1;
}

/* The largest boundary that a task reported. False: no task reported one. */
static bool choose_step(const struct agreement_view *view, uint64_t *step)
{
	bool any = false;
	*step = 0;
	for (uint64_t i = 0; i < view->tasks; i++) {
		if (!names_step(view, i))
			continue;
		any = true;
		if (view->peers[i].next > *step)
			*step = view->peers[i].next;
	}
	return any;
}

/*
 * Move the step on to one at which each task says that it has a boundary, going on as from its step
 * to its next one, if a few passes find such a step. Tasks that save and run on do not wait for a
 * round that finds it; a wrong guess costs them a save that is not complete.
 */
static uint64_t settle(const struct agreement_view *view, uint64_t step)
{
	uint64_t found = step;
	for (int pass = 0; pass < PASSES; pass++) {
		uint64_t before = found;
		for (uint64_t i = 0; i < view->tasks; i++) {
			const struct agreement_peer *peer = &view->peers[i];
			uint64_t stride = agreement_stride(peer);
			if (names_step(view, i) && found > peer->next)
				found += (stride - (found - peer->next) % stride) % stride;
		}
		if (found == before)
			return found;
	}
	return step;
}

/*
 * Whether a task would come too late if it had to run up to step. The save itself is given 1.5
 * times the longest save so far; if no save was measured, only the steps count.
 */
static bool out_of_reach(const struct agreement_view *view, const struct grace_measure *measure,
	int64_t deadline, uint64_t step, int64_t now)
{
	if (deadline == CLOCK_NEVER)
		return false;
	int64_t left = deadline - now - measure->longest_save - measure->longest_save / 2;
	for (uint64_t i = 0; i < view->tasks; i++) {
		const struct agreement_peer *peer = &view->peers[i];
		if (!names_step(view, i) || step <= peer->next || peer->step_time <= 0)
			continue;
		uint64_t stride = agreement_stride(peer);
		uint64_t strides = (step - peer->step + stride - 1) / stride;
		if (left <= 0 || strides > (uint64_t)(left / peer->step_time))
			return true;
	}
	return false;
}

void agreement_decide(const struct agreement_view *view, const struct grace_measure *measure,
	int64_t deadline, int64_t now, struct agreement_decision *decision)
{
	*decision = (struct agreement_decision){
		.kind = KIND_NONE, .then = view->claimed ? view->claim_then : THEN_CONTINUE};
	if (!choose_step(view, &decision->step))
		return;
	/* --then stop allows no more training. A checkpoint on demand has no claim: run on. */
	bool final = view->round_final || view->deadline_doubted || decision->then != THEN_EXIT;
	bool run_on = !view->claimed || (!final && grace_allows_training(now, deadline, measure));
	if (run_on)
		decision->kind = KIND_SAVE;
	if (run_on)
		decision->step = settle(view, decision->step);
	else if (view->round_try > AGREEMENT_TRIES ||
		 out_of_reach(view, measure, deadline, decision->step, now))
		decision->kind = KIND_EACH;
	else
		decision->kind = KIND_EXIT;
}
