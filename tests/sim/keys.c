/* SPDX-License-Identifier: MIT */
/* The store: what each write does, in one atomic transaction. */
#include <inttypes.h>
#include <string.h>

#include "sim.h"

static uint64_t bit(int task)
{
	return UINT64_C(1) << task;
}

static bool is_dead(const struct keys *k, int task)
{
	return k->dead & bit(task);
}

static bool counts(const struct keys *k, int task)
{
	return !is_dead(k, task) && k->left[task] == REASON_NONE;
}

static bool round_exists(const struct keys *k, uint64_t round)
{
	return round >= 1 && round <= k->rounds;
}

bool keys_open_round(struct world *w, uint64_t round, bool final)
{
	struct keys *k = &w->keys;
	if (round != k->rounds + 1 || round > MOST_ROUNDS)
		return false;
	k->rounds = round;
	k->round[round] = (struct round_keys){.final = final, .opened = w->now};
	return true;
}

bool keys_claim(struct world *w, int task, enum agreement_then then, uint64_t round,
	const struct announcement *announcement)
{
	struct keys *k = &w->keys;
	if (k->claimed || k->seal != SEAL_NONE || round != k->rounds + 1)
		return false;
	k->claimed = true;
	k->claimer = task;
	k->claimed_at = w->now;
	k->then = then;
	k->seal = SEAL_CLAIM;
	keys_open_round(w, round, false);
	if (announcement->deadline != CLOCK_NEVER)
		keys_put_deadline(w, announcement);
	world_trigger(w, AT_CLAIM, task);
	return true;
}

void keys_put_deadline(struct world *w, const struct announcement *announcement)
{
	struct keys *k = &w->keys;
	k->deadline_revision++;
	k->deadline_left = announcement->left;
	k->deadline_exact = announcement->exact;
	k->deadline_machine = announcement->machine;
	k->deadline_latest = w->now + announcement->left * MS;
	if (k->has_deadline && k->deadline <= announcement->deadline)
		return;
	k->has_deadline = true;
	k->deadline = announcement->deadline;
	k->deadline_changed_at = w->now;
}

static void close_if_all_gone(struct world *w)
{
	struct keys *k = &w->keys;
	for (int i = 0; i < w->schedule->tasks; i++)
		if (counts(k, i))
			return;
	k->closed = true;
}

void keys_declare_dead(struct world *w, int task)
{
	struct keys *k = &w->keys;
	if (is_dead(k, task) || k->left[task] != REASON_NONE)
		return;
	TRACE(w, task, "is declared dead");
	k->dead |= bit(task);
	k->dead_at[task] = w->now;
	if (k->seal == SEAL_NONE)
		k->seal = SEAL_DEAD;
	close_if_all_gone(w);
}

/* ---- The writes of a task ---- */

static struct announcement announced(const struct world *w, const struct operation *op)
{
	int agent = schedule_agent_of(w->schedule, op->task);
	return (struct announcement){
		op->value, op->left, op->exact, schedule_machine_of(w->schedule, agent)};
}

static enum agreement_outcome commit_claim(struct world *w, const struct operation *op)
{
	struct keys *k = &w->keys;
	if (k->claimed && k->claimer == op->task)
		return OUTCOME_DONE;
	struct announcement announcement = announced(w, op);
	return keys_claim(w, op->task, THEN_EXIT, op->round, &announcement) ? OUTCOME_DONE
									    : OUTCOME_REFUSED;
}

static enum agreement_outcome commit_deadline(struct world *w, const struct operation *op)
{
	struct announcement announcement = announced(w, op);
	if (op->deadline_revision != w->keys.deadline_revision)
		return OUTCOME_REFUSED;
	keys_put_deadline(w, &announcement);
	return OUTCOME_DONE;
}

static enum agreement_outcome commit_round(struct world *w, const struct operation *op)
{
	if (keys_open_round(w, op->round, op->final))
		return OUTCOME_DONE;
	return round_exists(&w->keys, op->round) && w->keys.round[op->round].final == op->final
		       ? OUTCOME_DONE
		       : OUTCOME_REFUSED;
}

static enum agreement_outcome commit_report(struct world *w, const struct operation *op)
{
	struct keys *k = &w->keys;
	if (!round_exists(k, op->round))
		return OUTCOME_REFUSED;
	struct round_keys *round = &k->round[op->round];
	if (round->reported[op->task])
		return OUTCOME_DONE;
	if (is_dead(k, op->task))
		return OUTCOME_REFUSED;
	round->reported[op->task] = true;
	round->none[op->task] = op->none;
	round->step[op->task] = op->step;
	round->next[op->task] = op->next;
	round->step_time[op->task] = op->value;
	world_trigger(w, AT_REPORT, op->task);
	return OUTCOME_DONE;
}

static enum agreement_outcome commit_decision(struct world *w, const struct operation *op)
{
	struct keys *k = &w->keys;
	if (!round_exists(k, op->round))
		return OUTCOME_REFUSED;
	struct round_keys *round = &k->round[op->round];
	if (round->decided || round->rubbish || is_dead(k, op->task))
		return OUTCOME_REFUSED;
	for (int i = 0; i < w->schedule->tasks; i++)
		if ((op->missing & bit(i)) && round->reported[i])
			return OUTCOME_REFUSED;
	round->decided = true;
	round->decided_at = w->now;
	round->decision = op->decision;
	round->members = op->members;
	round->unheard = op->missing;
	TRACE(w, op->task, "DECISION %" PRIu64 ": kind %d, step %" PRIu64 ", missing %" PRIx64,
		op->round, op->decision.kind, op->decision.step, op->missing);
	world_trigger(w, AT_DECISION, op->task);
	return OUTCOME_DONE;
}

static enum agreement_outcome commit_saved(struct world *w, const struct operation *op)
{
	struct keys *k = &w->keys;
	if (!round_exists(k, op->round) || is_dead(k, op->task))
		return OUTCOME_REFUSED;
	k->round[op->round].saved |= bit(op->task);
	k->round[op->round].saved_step[op->task] = op->step;
	if (op->value > k->longest_save)
		k->longest_save = op->value;
	return OUTCOME_DONE;
}

static enum agreement_outcome commit_ack(struct world *w, const struct operation *op)
{
	if (!round_exists(&w->keys, op->round) || is_dead(&w->keys, op->task))
		return OUTCOME_REFUSED;
	w->keys.round[op->round].acked |= bit(op->task);
	return OUTCOME_DONE;
}

static enum agreement_outcome commit_error(struct world *w, const struct operation *op)
{
	(void)op;
	if (w->keys.seal == SEAL_ERROR)
		return OUTCOME_DONE; /* somebody's error stands, which is all that is wanted */
	if (w->keys.seal != SEAL_NONE)
		return OUTCOME_REFUSED;
	w->keys.seal = SEAL_ERROR;
	return OUTCOME_DONE;
}

static enum agreement_outcome commit_left(struct world *w, const struct operation *op)
{
	if (w->keys.left[op->task] == REASON_NONE)
		w->keys.left[op->task] = op->reason;
	if (!w->keys.left_at[op->task])
		w->keys.left_at[op->task] = w->now;
	close_if_all_gone(w);
	return OUTCOME_DONE;
}

static enum agreement_outcome commit_write(struct world *w, const struct operation *op)
{
	switch (op->write) {
	case WRITE_CLAIM: return commit_claim(w, op);
	case WRITE_DEADLINE: return commit_deadline(w, op);
	case WRITE_ROUND: return commit_round(w, op);
	case WRITE_REPORT: return commit_report(w, op);
	case WRITE_DECISION: return commit_decision(w, op);
	case WRITE_ACK: return commit_ack(w, op);
	case WRITE_SAVED: return commit_saved(w, op);
	case WRITE_ERROR: return commit_error(w, op);
	case WRITE_LEFT: return commit_left(w, op);
	case WRITE_KINDS: break;
	}
	return OUTCOME_REFUSED;
}

bool keys_commit(struct world *w, struct operation *op)
{
	op->outcome = OUTCOME_DONE;
	if (op->kind == OP_LIST)
		return false;
	if (op->kind == OP_DEAD) {
		keys_declare_dead(w, op->task);
		return true;
	}
	op->outcome = commit_write(w, op);
	return op->outcome == OUTCOME_DONE;
}

/* ---- What a list shows ---- */

static void show_peer(
	const struct world *w, const struct round_keys *round, int i, struct agreement_peer *peer)
{
	*peer = (struct agreement_peer){.left = w->keys.left[i], .dead = is_dead(&w->keys, i)};
	if (!round)
		return;
	peer->reported = round->reported[i];
	peer->none = round->none[i];
	peer->step = round->step[i];
	peer->next = round->next[i];
	peer->step_time = round->step_time[i];
	peer->member = round->decided && (round->members & bit(i));
	peer->saved = round->saved & bit(i);
	peer->saved_step = round->saved_step[i];
}

/* The newest round before the newest that decided, after the claim, to save and run on. */
static void show_standing(const struct world *w, struct snapshot *view)
{
	const struct keys *k = &w->keys;
	view->standing_round = 0;
	for (uint64_t r = k->rounds; r-- > 1 && !view->standing_round;) {
		const struct round_keys *round = &k->round[r];
		if (!round->decided || round->rubbish || round->decision.kind != KIND_SAVE ||
			round->decision.then == THEN_CONTINUE)
			continue;
		view->standing_round = r;
		view->standing_step = round->decision.step;
		for (int i = 0; i < w->schedule->tasks; i++)
			view->peers[i].stands = (round->saved & bit(i)) &&
						round->saved_step[i] == round->decision.step;
	}
}

void keys_snapshot(const struct world *w, struct snapshot *view)
{
	const struct keys *k = &w->keys;
	const struct round_keys *round = k->rounds ? &k->round[k->rounds] : NULL;
	view->taken = w->now;
	view->claimed = k->claimed;
	view->then = k->then;
	view->broken = k->seal == SEAL_ERROR || k->seal == SEAL_DEAD;
	view->closed = k->closed;
	view->has_deadline = k->has_deadline;
	view->changes = w->changes;
	view->deadline_revision = k->deadline_revision;
	view->left = k->deadline_left;
	view->exact = k->deadline_exact;
	view->deadline_machine = k->deadline_machine;
	view->deadline_latest = k->deadline_latest;
	view->longest_save = k->longest_save > w->schedule->remembered_save
				     ? k->longest_save
				     : w->schedule->remembered_save;
	view->round = k->rounds;
	view->final = round && round->final;
	view->decided = round && round->decided && !round->rubbish;
	view->unreadable = round && round->rubbish;
	view->decision = round ? round->decision : (struct agreement_decision){0};
	for (int i = 0; i < w->schedule->tasks; i++)
		show_peer(w, round, i, &view->peers[i]);
	show_standing(w, view);
}
