/* SPDX-License-Identifier: MIT */
/*
 * When the store does not answer after a notice: the tasks of one agent agree among themselves, in
 * a round that is kept in the agent's memory. The rules are those of any other round; its writes
 * are carried out here, at once.
 */
#include "proto/agreement/alone.h"

#include <string.h>

#include "proto/agreement/reading.h"

bool agreement_is_of_round(enum agreement_write what)
{
	return what == WRITE_ROUND || what == WRITE_REPORT || what == WRITE_DECISION ||
	       what == WRITE_ACK || what == WRITE_SAVED;
}

bool agreement_knows_all(const struct agreement *a)
{
	for (uint64_t i = 0; i < a->view->tasks; i++)
		if (a->view->peers[i].dead && !a->store->peers[i].dead &&
			a->view->peers[i].left == REASON_NONE)
			return false;
	return true;
}

static bool is_ours(const struct agreement *a, uint64_t task)
{
	const struct agreement_alone *alone = a->config.alone;
	return task >= alone->first && task - alone->first < alone->count;
}

bool agreement_are_all_ours(const struct agreement *a)
{
	for (uint64_t i = 0; i < a->store->tasks; i++)
		if (!is_ours(a, i) && agreement_counts(a->store, i))
			return false;
	return true;
}

/* After a final decision: its round goes on in memory, where no other agent needs the store's. */
static void go_on(struct agreement *a)
{
	struct agreement_alone *alone = a->config.alone;
	struct agreement_peer *peers = alone->view.peers;
	memcpy(peers, a->store->peers, a->store->tasks * sizeof(*peers));
	alone->view = *a->store;
	alone->view.peers = peers;
	alone->view.tally = NULL;
	alone->view.unseen = alone->view.departed = 0;
	alone->begun = alone->goes_on = true;
}

/* Begin a round: the tasks of other agents, of which nothing can be known, count as dead. */
static void begin(struct agreement *a)
{
	struct agreement_alone *alone = a->config.alone;
	const struct agreement_view *store = a->store;
	struct agreement_peer *peers = alone->view.peers;
	alone->view = *store;
	alone->view.peers = peers;
	alone->view.tally = NULL;
	alone->view.claimed = true;
	if (!store->claimed)
		alone->view.claim_then = THEN_EXIT;
	alone->view.broken = alone->view.error = alone->view.closed = false;
	alone->view.decided = alone->view.unreadable = false;
	alone->view.round = store->round + 1;
	alone->view.round_try = 1;
	alone->view.unseen = alone->view.departed = 0;
	alone->view.round_final = true;
	for (uint64_t i = 0; i < store->tasks; i++) {
		bool ours = is_ours(a, i);
		enum agreement_reason left = peers[i].left;
		peers[i] = (struct agreement_peer){.left = store->peers[i].left,
			.dead = store->peers[i].dead || !ours,
			.stood = store->peers[i].stood,
			.stood_step = store->peers[i].stood_step};
		if (ours && left != REASON_NONE)
			peers[i].left = left;
	}
	alone->begun = true;
}

/* From now on use the round in memory, and ignore writes to the store that are still under way. */
static void join(struct agreement *a, int64_t now)
{
	for (enum agreement_write what = 0; what < WRITE_KINDS; what++)
		if (agreement_is_of_round(what))
			a->pending[what] = false;
	a->solo = true;
	a->view = &a->config.alone->view;
	/* agreement_follow_alone may have marked this task dead during its agreed save. */
	a->config.alone->view.peers[a->config.task].dead = false;
	agreement_take_in(a, now);
}

void agreement_begin_alone(struct agreement *a, int64_t now)
{
	bool told = a->told.order == ORDER_EXIT;
	if (!a->config.alone->begun)
		(told ? go_on : begin)(a);
	join(a, now);
}

void agreement_follow_alone(struct agreement *a, int64_t now)
{
	struct agreement_alone *alone = a->config.alone;
	if (!alone || !alone->begun)
		return;
	alone->view.deadline = a->store->deadline;
	alone->view.deadline_latest = a->store->deadline_latest;
	alone->view.deadline_told = a->store->deadline_told;
	alone->view.deadline_doubted = a->store->deadline_doubted;
	if (a->store->claimed)
		alone->view.claim_then = a->store->claim_then;
	/* A task whose board says to save at an agreed step needs no further agreement, and a
	 * command that has ended cannot save. */
	bool told = a->told.order == ORDER_EXIT;
	bool takes_part = alone->goes_on ? told : !a->concluded && !a->ended && !a->lost && !told;
	if (a->solo)
		agreement_take_in(a, now);
	else if (takes_part)
		join(a, now);
	else
		alone->view.peers[a->config.task].dead = true;
}

static void open_next(struct agreement_view *view, const struct agreement_plan *plan)
{
	view->round = plan->write[WRITE_ROUND];
	view->round_try = plan->round_try;
	view->decided = false;
	for (uint64_t i = 0; i < view->tasks; i++)
		view->peers[i] = (struct agreement_peer){.left = view->peers[i].left,
			.dead = view->peers[i].dead,
			.stood = view->peers[i].stood,
			.stood_step = view->peers[i].stood_step};
}

static void write_alone(
	struct agreement *a, enum agreement_write what, const struct agreement_plan *plan)
{
	struct agreement_view *view = &a->config.alone->view;
	struct agreement_peer *peer = &view->peers[a->config.task];
	switch (what) {
	case WRITE_ROUND:
		if (plan->write[what] == view->round + 1)
			open_next(view, plan);
		break;
	case WRITE_REPORT:
		peer->reported = true;
		peer->none = plan->report_none;
		peer->step = plan->step;
		peer->next = plan->next;
		peer->step_time = a->measure.longest_step;
		view->last_reporter = a->config.task;
		break;
	case WRITE_DECISION:
		if (view->decided)
			break;
		view->decided = true;
		view->decision = plan->decision;
		for (uint64_t i = 0; i < view->tasks; i++)
			view->peers[i].member = agreement_counts(view, i);
		break;
	case WRITE_SAVED:
		if (plan->write[what] != view->round) {
			a->before = 0; /* the save of an earlier round, in the store */
			break;
		}
		peer->saved = true;
		peer->saved_step = plan->saved_step;
		break;
	default: break;
	}
}

bool agreement_write_alone(struct agreement *a, struct agreement_plan *plan)
{
	bool any = false;
	for (enum agreement_write what = 0; what < WRITE_KINDS && a->solo; what++) {
		if (!plan->write[what] || !agreement_is_of_round(what))
			continue;
		write_alone(a, what, plan);
		a->done[what] = plan->write[what];
		plan->write[what] = 0;
		any = true;
	}
	/* Let the other tasks of this agent see that this one has left. */
	if (a->concluded && a->config.alone)
		a->config.alone->view.peers[a->config.task].left = a->reason;
	return any;
}
