/* SPDX-License-Identifier: MIT */
/*
 * The invariants of docs/design.md, section 4, as predicates on the world, which knows what the
 * agents cannot. Each says what it exempts and why. "Faulted" is a task to which, to whose agent,
 * or to whose way to the store something was done.
 */
#include <inttypes.h>
#include <string.h>

#include "sim.h"

#define TOLERANCE (50 * MS)

static bool has(uint64_t bits, int task)
{
	return bits >> task & 1;
}

static bool must_save(const struct schedule *s, int task)
{
	return !(s->savers_chief || s->complete_chief) || task == 0;
}

static bool ended_by_itself(const struct world *w, int task)
{
	const struct task *t = &w->task[task];
	return t->training.state == GONE && t->training.code == 0 && !t->stopping;
}

/* Whether all that must save have saved at this step; where checkpoints are per task, without those
 * that have ended well by themselves. */
static bool all_have_saved(const struct world *w, uint64_t step)
{
	for (int i = 0; i < w->schedule->tasks; i++) {
		bool excused = w->schedule->per_task && ended_by_itself(w, i);
		if (must_save(w->schedule, i) && !excused && !training_has_saved(w, i, step))
			return false;
	}
	return true;
}

/* Whether there is such a step, not before `from`. */
static bool is_complete_from(const struct world *w, uint64_t from)
{
	for (int i = 0; i < w->schedule->tasks; i++) {
		const struct training *p = &w->task[i].training;
		for (uint64_t k = 0; k < SAVE_LOG; k++)
			if ((k < p->asked_saves && p->asked_step[k] >= from &&
				    all_have_saved(w, p->asked_step[k])) ||
				(k < p->saves && p->saved_step[k] >= from &&
					all_have_saved(w, p->saved_step[k])))
				return true;
	}
	return false;
}

/*
 * The truth about a decision after the claim: whether there is a step, not before the decided one,
 * at which all that must have saved. A task that died before the decision is missed, too.
 */
bool checkpoint_is_complete(const struct world *w, uint64_t number)
{
	const struct round_keys *round = round_keys(&w->keys, number);
	bool each = round->decision.kind == KIND_EACH;
	return round->decided && round->decision.kind != KIND_NONE &&
	       round->decision.then != THEN_CONTINUE &&
	       is_complete_from(w, each ? 0 : round->decision.step);
}

/* ---- I2: one step for all; I3 for the one that was told ---- */

static void check_nobody_saves(struct world *w, int task, const char *leaves);

/*
 * Every order to save that is given to a training process names the step of a decision, except
 * kind `each` and for a task that the store has lost: those are "alone", and never count.
 */
void check_told(struct world *w, int task, const struct agreement_hold *hold)
{
	struct task *t = &w->task[task];
	const struct agreement *a = &t->agent_task->agreement;
	const struct agreement_view *view = a->view;
	if (hold->order == ORDER_LEAVE && !t->first_order_at)
		t->first_order_at = kernel.now;
	/* A task whose command is ended gets an order, too; its agent stays, and its exit is looked
	 * at. */
	if (hold->order == ORDER_LEAVE && !t->agent_task->command->ending)
		check_nobody_saves(w, task, "is told to leave");
	bool each = view->decided && view->decision.kind == KIND_EACH;
	if (hold->order != ORDER_SAVE && hold->order != ORDER_EXIT)
		return;
	t->panel.ordered_alone = a->solo || each;
	t->panel.order_round = a->solo ? 0 : view->round;
	if (a->solo)
		w->statistics->solo++;
	if (!t->first_order_at && view->claimed)
		t->first_order_at = kernel.now;
	if (t->panel.ordered_alone)
		return;
	const struct round_keys *round = round_keys(&w->keys, view->round);
	/* Where tasks found no common step, each saves and runs on by itself. */
	bool last = hold->step > round->decision.step &&
		    (view->round_try >= AGREEMENT_TRIES || !must_save(w->schedule, task));
	if (!view->round || !round->decided || (round->decision.step != hold->step && !last))
		world_violate(w, "I2",
			"task %d is ordered to step %" PRIu64 " which no task agreed", task,
			hold->step);
}

/* A task that was asked in time saves at its first boundary at or after the step. */
void check_first_boundary(struct world *w, int task)
{
	const struct panel *panel = &w->task[task].panel;
	const struct training *p = &w->task[task].training;
	bool passed =
		p->went_on && p->farthest >= panel->hold.step && p->farthest > panel->order_from;
	if (panel->step < panel->hold.step || passed)
		world_violate(w, "I2", "task %d saves at %" PRIu64 ", step %" PRIu64 " is decided",
			task, panel->step, panel->hold.step);
}

/*
 * At most four rounds in a row look for a common step, then one lets each save where it stands; a
 * notice needs one such row, or two where the grace period is long. Garbage may cost one more.
 */
void check_rounds(struct world *w, uint64_t round, uint64_t round_try)
{
	const struct keys *k = &w->keys;
	uint64_t most = AGREEMENT_TRIES + 2;
	if (round_try > most)
		world_violate(w, "rounds", "round %" PRIu64 " is try %" PRIu64, round, round_try);
	if (k->claimed && k->claim_round && round >= k->claim_round + 2 * most)
		world_violate(w, "rounds", "round %" PRIu64 ", claimed in round %" PRIu64, round,
			k->claim_round);
}

void check_decision(struct world *w, uint64_t number)
{
	const struct round_keys *round = round_keys(&w->keys, number);
	if (round->decision.kind != KIND_SAVE && round->decision.kind != KIND_EXIT)
		return;
	for (int i = 0; i < w->schedule->tasks; i++)
		if (has(round->members, i) && round->reported[i] && !round->none[i] &&
			round->next[i] > round->decision.step)
			world_violate(w, "I2",
				"step %" PRIu64 " is decided, but task %d reported %" PRIu64,
				round->decision.step, i, round->next[i]);
}

void check_saved(struct world *w, int task, uint64_t number)
{
	const struct round_keys *round = round_keys(&w->keys, number);
	uint64_t step = round->saved_step[task];
	if (!training_has_saved(w, task, step))
		world_violate(
			w, "saved", "SAVED of task %d at %" PRIu64 " was never saved", task, step);
	bool agreed = round->decided && round->decision.kind != KIND_EACH;
	if (agreed && step < round->decision.step)
		world_violate(w, "I2", "task %d saved %" PRIu64 " in a round that decided %" PRIu64,
			task, step, round->decision.step);
}

/* ---- Attempts follow each other ---- */

void check_open(struct world *w, uint64_t attempt)
{
	const struct keys *k = &w->keys;
	if (attempt != w->newest_attempt + 1)
		world_violate(w, "attempts", "attempt %" PRIu64 " is opened after %" PRIu64,
			attempt, w->newest_attempt);
	if (k->attempt && attempt == k->attempt + 1 && k->seal == SEAL_NONE && !k->closed)
		world_violate(w, "attempts",
			"attempt %" PRIu64 " is opened while %" PRIu64 " goes on", attempt,
			k->attempt);
}

void check_join(struct world *w, int task)
{
	const struct keys *k = &w->keys;
	if (k->seal != SEAL_NONE || k->closed)
		world_violate(w, "attempts", "task %d joins an attempt that is over", task);
	if (has(k->joined, task))
		world_violate(w, "attempts", "task %d joins twice", task);
}

void check_start(struct world *w, int task)
{
	for (int i = 0; i < w->schedule->tasks; i++)
		if (!has(w->keys.joined, i))
			world_violate(
				w, "attempts", "task %d starts before task %d has joined", task, i);
}

void check_closed(struct world *w)
{
	const struct keys *k = &w->keys;
	for (int i = 0; i < w->schedule->tasks; i++)
		if (has(k->joined, i) && !has(k->dead, i) && k->left[i] == REASON_NONE)
			world_violate(
				w, "attempts", "the attempt is closed before task %d has left", i);
}

/* ---- I1, and what was declared dead ---- */

void check_fenced(struct world *w, int task)
{
	if (has(w->keys.dead, task) && w->keys.dead_at[task] < kernel.now)
		world_violate(w, "fence", "task %d wrote after it was declared dead", task);
}

/* I6: once it has joined, an agent writes into its own attempt. Of another it says only its end. */
void check_own_attempt(struct world *w, uint64_t attempt, const char *name)
{
	const struct node *node = machine_current();
	bool ends = !strcmp(name, "CLOSED") || !strcmp(name, "SEAL") || !strncmp(name, "DEAD/", 5);
	if (!node || node->agent == NOBODY || !node->self || ends)
		return;
	uint64_t own = node->self->group.view.attempt.number;
	if (own && own != attempt)
		world_violate(w, "I6", "agent %d of attempt %" PRIu64 " writes %s of %" PRIu64,
			node->agent, own, name, attempt);
}

/* No task is said to hang that has come to another boundary since it may have begun to. */
static void check_hung(struct world *w, int task)
{
	int64_t since = kernel.now - w->schedule->progress_timeout * MS;
	if (!w->schedule->progress_timeout || w->task[task].panel.step_at > since)
		world_violate(w, "hung", "task %d is said to hang though it advances", task);
}

/*
 * The thread that beats also follows the attempt and declares the dead: while the store takes its
 * time for two calls, it does not beat.
 */
static bool may_be_held_up(const struct schedule *s)
{
	return 2 * s->latency >= (HEARTBEAT_LIMIT - 1) * s->beat_period;
}

/* A task is declared dead only if something was done to it, its agent or its way to the store. */
void check_death(struct world *w, int task)
{
	const struct node *node = node_of(w, task);
	if (w->keys.left[task] != REASON_NONE)
		world_violate(w, "dead", "task %d is declared dead after its goodbye", task);
	if (has(w->keys.hung, task))
		check_hung(w, task);
	else if (node_lives(node) && !w->task[task].faulted && !may_be_held_up(w->schedule))
		world_violate(w, "dead", "task %d is declared dead though it lives", task);
}

void check_decider(struct world *w, const struct node *node)
{
	for (int i = 0; i < w->schedule->tasks; i++)
		if (schedule_agent_of(w->schedule, i) == node->agent &&
			(!has(w->keys.dead, i) || w->keys.dead_at[i] == kernel.now))
			return;
	world_violate(
		w, "fence", "agent %d decides after all its tasks were declared dead", node->agent);
}

/* What an agent takes for written stands in the store. */
void check_believed(struct world *w, int task)
{
	const struct keys *k = &w->keys;
	const uint64_t *done = w->task[task].agent_task->agreement.done;
	if (w->task[task].solo)
		return; /* alone it writes nothing any more but its goodbye */
	const struct round_keys *saved = round_keys(k, done[WRITE_SAVED]);
	const char *missing = done[WRITE_CLAIM] && !k->claimed		      ? "claim"
			      : done[WRITE_SAVED] && !has(saved->saved, task) ? "save"
			      : done[WRITE_LEFT] && !k->left[task]	      ? "goodbye"
									      : NULL;
	if (missing)
		world_violate(w, "durable", "task %d takes its %s for written", task, missing);
}

void check_claimer(struct world *w, const struct node *node)
{
	const struct view *view = &node->self->group.view;
	int claimer = view->claim.outside ? NOBODY : (int)view->claim.task;
	if (view->agreement.claimed && claimer != w->keys.claimer)
		world_violate(w, "I1", "agent %d sees a claim of %d, it is of %d", node->agent,
			claimer, w->keys.claimer);
}

/* ---- Exit codes ---- */

/* As its agent knows it now: us. */
static int64_t deadline_of(struct world *w, int task)
{
	const struct agreement *a = &w->task[task].agent_task->agreement;
	return clock_to_world(
		w, node_of(w, task)->agent, clock_earlier(a->view->deadline, a->own_deadline));
}

static int64_t latest_deadline_of(struct world *w, int task)
{
	const struct agreement *a = &w->task[task].agent_task->agreement;
	return clock_to_world(w, node_of(w, task)->agent,
		clock_earlier(a->view->deadline_latest, a->own_deadline));
}

/*
 * Whatever the clocks say: a deadline is never taken to be later than what was left when it was
 * committed, never given up on before that, and where nothing was done to any task, hardly earlier.
 * Looked at once for each change of its key, while no second change has been made since.
 */
void check_deadline_seen(struct world *w, const struct node *node)
{
	const struct schedule *s = w->schedule;
	const struct view *whole = &node->self->group.view;
	const struct agreement_view *view = &whole->agreement;
	if (whole->deadline_revision == node->deadline_seen || view->deadline == CLOCK_NEVER ||
		whole->deadline_revision != w->keys.deadline_revision)
		return; /* not the newest one */
	int64_t taken = clock_to_world(w, node->agent, view->deadline);
	int64_t latest = clock_to_world(w, node->agent, view->deadline_latest);
	bool exact = w->keys.deadline_machine == schedule_machine_of(s, node->agent);
	int64_t truth = exact ? w->keys.deadline_written : w->keys.deadline_latest;
	int64_t earliest = clock_earlier(truth, w->keys.deadline_earliest);
	/* Only an agent that has never read before has no earlier bound. */
	bool bounded = exact || node->has_read;
	if (bounded && !view->deadline_doubted && taken > truth + 2 * MS)
		world_violate(w, "clocks", "agent %d takes its deadline %" PRId64 " ms too late",
			node->agent, (taken - truth) / MS);
	if (!exact && latest < earliest - MS)
		world_violate(w, "clocks", "agent %d gives up %" PRId64 " ms too early",
			node->agent, (earliest - latest) / MS);
	bool disturbed = w->store_faults || w->slow_store;
	for (int i = 0; i < s->tasks; i++)
		disturbed |= schedule_agent_of(s, i) == node->agent && w->task[i].faulted;
	/* It may have looked a slice before, and the news take a moment. */
	int64_t apart =
		(kernel.shim.slice + s->notify + 20 * s->latency * s->per_agent + 1000) * MS;
	if (!disturbed && earliest > kernel.now + apart &&
		(view->deadline_doubted || taken < earliest - apart))
		world_violate(w, "clocks", "agent %d takes its deadline %" PRId64 " ms too early",
			node->agent, view->deadline_doubted ? -1 : (earliest - taken) / MS);
}

/* What the task could see of the checkpoint when it last looked. */
static bool seen_complete(const struct world *w, int task)
{
	const struct agreement_view *view = w->task[task].agent_task->agreement.view;
	bool stands = view->standing_round, newest = view->decided;
	uint64_t stood = 0, saved = 0;
	newest &= newest && view->decision.kind == KIND_EXIT;
	for (int i = 0; i < w->schedule->tasks; i++) {
		const struct agreement_peer *peer = &view->peers[i];
		if (!must_save(w->schedule, i))
			continue;
		stands &= peer->stood && (!stood || peer->stood_step == stood);
		newest &= peer->saved && (!saved || peer->saved_step == saved);
		stood = peer->stood_step;
		saved = peer->saved_step;
	}
	return stands || newest;
}

/* Known of every task: who is silent, dead or has left may have trained, and lost that. */
static bool nobody_has_trained(const struct world *w, const struct round_keys *round)
{
	for (int i = 0; i < w->schedule->tasks; i++)
		if (w->keys.left[i] != REASON_COMPLETED && !(round->reported[i] && round->none[i]))
			return false;
	return true;
}

/*
 * The truth about what the tasks of one agent agreed on without the store: 42 only where these are
 * all that must have saved, or where none of all tasks has begun to train.
 */
static bool is_complete_alone(const struct world *w, int task)
{
	const struct task *t = &w->task[task];
	const struct agreement *a = &t->agent_task->agreement;
	const struct agreement_view *view = a->view;
	const struct schedule *s = w->schedule;
	if (!a->solo || !view->decided)
		return false;
	if (s->per_task && t->training.saves + t->training.asked_saves > 0)
		return true;
	bool none = view->decision.kind == KIND_NONE;
	for (int i = 0; i < s->tasks; i++)
		none &= (view->peers[i].reported && view->peers[i].none) || ended_by_itself(w, i);
	return none ||
	       (view->decision.kind == KIND_EXIT && is_complete_from(w, view->decision.step));
}

static bool may_say_saved(const struct world *w, int task)
{
	const struct task *t = &w->task[task];
	if (is_complete_alone(w, task))
		return true;
	for (int i = 0; i < w->schedule->tasks; i++)
		if (w->task[i].training.saved_alone &&
			all_have_saved(w, w->task[i].training.saved_alone - 1))
			return true; /* its goodbye tells it */
	for (uint64_t r = 1; r <= w->keys.rounds; r++) {
		const struct round_keys *round = round_keys(&w->keys, r);
		if (checkpoint_is_complete(w, r))
			return true;
		if (!round->decided)
			continue;
		if (round->decision.kind == KIND_NONE && nobody_has_trained(w, round))
			return true;
		if (round->decision.kind != KIND_SAVE && w->schedule->per_task &&
			t->training.saves + t->training.asked_saves > 0)
			return true;
	}
	return false;
}

/* It, or another task of the same agent, with which it saves where the store is lost. */
static bool is_noticed(const struct world *w, int task)
{
	int agent = schedule_agent_of(w->schedule, task);
	for (int i = 0; i < w->schedule->tasks; i++)
		if (schedule_agent_of(w->schedule, i) == agent && w->task[i].noticed)
			return true;
	return false;
}

/*
 * The truth, where nothing was done to any task or to the store: what all had saved, and the store
 * knew, a second before this task left is no 43.
 */
static bool hides_a_checkpoint(const struct world *w)
{
	const struct keys *k = &w->keys;
	if (w->store_faults || w->slow_store || w->schedule->latency > 100 ||
		w->schedule->per_task || w->schedule->launcher_kills)
		return false;
	for (int i = 0; i < w->schedule->tasks; i++)
		if (w->task[i].faulted || w->task[i].solo || w->schedule->trainee[i].failing)
			return false;
	for (uint64_t r = 1; r <= k->rounds; r++) {
		const struct round_keys *round = &k->round[r];
		bool known = round->decided && round->decision.then != THEN_CONTINUE;
		for (int i = 0; i < w->schedule->tasks; i++)
			known &= !must_save(w->schedule, i) ||
				 (has(round->saved, i) &&
					 round->saved_step[i] == round->saved_step[0]);
		if (known && round->saved_at + (1000 + 2 * w->schedule->notify) * MS < kernel.now)
			return true;
	}
	return false;
}

static void check_code(struct world *w, int task)
{
	const struct task *t = &w->task[task];
	const struct keys *k = &w->keys;
	const char *wrong = NULL;
	switch (t->code) {
	case STATUS_OK:
		if (!ended_by_itself(w, task))
			wrong = "but its command did not end well by itself";
		break;
	case CODE_SAVED:
		if (!may_say_saved(w, task))
			wrong = "but no checkpoint is complete";
		else if (k->then == THEN_STOP && t->agent_task->agreement.store->claimed)
			wrong = "but was asked to stop";
		break;
	case CODE_PREEMPTED:
		if (!k->claimed && !is_noticed(w, task))
			wrong = "but no task was preempted";
		else if (seen_complete(w, task) && kernel.now < deadline_of(w, task))
			wrong = "though it saw a complete checkpoint";
		else if (hides_a_checkpoint(w))
			wrong = "though all had saved one step";
		break;
	case CODE_BROKEN:
		/* One that hangs while the store takes nothing cannot be declared dead. */
		if (k->seal != SEAL_ERROR && k->seal != SEAL_DEAD && !has(k->dead, task) &&
			!t->panel.lost &&
			!(t->agent_task->hung && (kernel.full_until > 0 || w->store_faults)))
			wrong = "but nothing was broken";
		break;
	case CODE_DECIDED:
		if (!k->claimed || k->then != THEN_STOP)
			wrong = "but no task asked to stop";
		break;
	default:
		if (t->training.code != t->code || (t->stopping && !t->panel.lost))
			wrong = "which is not the code of its command";
		else if (t->agent_task->agreement.view->claimed && !w->store_faults &&
			 t->training.ended_at >= k->claimed_at)
			wrong = "after a claim"; /* unless it could not know */
	}
	if (wrong)
		world_violate(w, "exit code", "task %d leaves with %d %s", task, t->code, wrong);
}

/* ---- I8: no task exits while another is saving ---- */

/* When its agent last knew all that was there. */
static int64_t view_taken(struct world *w, int task)
{
	const struct node *node = node_of(w, task);
	return clock_to_world(w, node->agent, node->self->group.view.unchanged);
}

/*
 * Exempt: two seconds before the deadline as this task knows it; after the save timeout; a task
 * that has lost the store for longer than its patience, or follows its own agent's agreement,
 * because it knows nothing of the others; one that was declared dead, which no task
 * may wait for and which knows nothing any more.
 */
static bool may_exit_early(struct world *w, int task, const struct round_keys *round)
{
	int64_t deadline = deadline_of(w, task);
	int64_t timeout = w->schedule->save_timeout * MS;
	int64_t patience = AGREEMENT_LEAVE_PATIENCE * MS;
	if (deadline != CLOCK_NEVER && kernel.now >= deadline - LEAVE_EARLY * MS - TOLERANCE)
		return true;
	if (kernel.now >= round->decided_at + timeout - TOLERANCE)
		return true;
	if (kernel.now - view_taken(w, task) >= patience / 2)
		return true;
	return has(w->keys.dead, task) || w->task[task].solo;
}

/*
 * Another is saving: it is inside a save of an agreed step, or it is a living member of the final
 * decision and has not saved there (or too late, which does not count) yet. Only decisions
 * which the leaving task could see when it last looked count.
 */
static bool is_saving(struct world *w, int other, int64_t seen)
{
	const struct training *p = &w->task[other].training;
	const struct keys *k = &w->keys;
	bool alive = node_of(w, other)->process.alive && p->state != GONE &&
		     !w->task[other].stopping && !has(k->dead, other) &&
		     k->left[other] == REASON_NONE;
	if (!alive)
		return false;
	if (p->state == SAVING && p->saving_for != ORDER_RUN && p->saving_agreed &&
		round_keys(k, p->saving_round)->decided_at < seen)
		return true;
	const struct round_keys *round = round_keys(k, k->rounds);
	return k->claimed && k->rounds && round->decided && round->decided_at < seen &&
	       round->decision.kind == KIND_EXIT && has(round->members, other) &&
	       !training_has_saved_since(w, other, round->decision.step) &&
	       !training_has_saved(w, other, round->decision.step) && !has(round->saved, other);
}

static void check_nobody_saves(struct world *w, int task, const char *leaves)
{
	int64_t seen = view_taken(w, task);
	if (w->keys.left_at[task] > seen)
		seen = w->keys.left_at[task]; /* whichever task says goodbye has to look around
						 after it */
	for (int i = 0; i < w->schedule->tasks; i++)
		if (i != task && is_saving(w, i, seen) &&
			!may_exit_early(w, task, round_keys(&w->keys, w->keys.rounds)))
			world_violate(
				w, "I8", "task %d %s while task %d is saving", task, leaves, i);
}

/* A broken group ends its commands, but no save of an agreed step that is under way. */
void check_ending(struct world *w, int task)
{
	const struct task *t = &w->task[task];
	const struct training *p = &t->training;
	bool saves = p->state == SAVING && p->saving_for == ORDER_SAVE && p->saving_agreed;
	bool excused = w->keys.claimed || is_noticed(w, task) || t->panel.lost ||
		       has(w->keys.dead, task) ||
		       kernel.now >= round_keys(&w->keys, p->saving_round)->decided_at +
					     w->schedule->save_timeout * MS - TOLERANCE;
	if (saves && !excused && w->keys.rounds == p->saving_round)
		world_violate(w, "I8", "the save of task %d is cut short by its own agent", task);
	/* One that could still save is given up at its deadline, however that was aged. */
	const struct agreement *a = &t->agent_task->agreement;
	bool could_save = a->reason == REASON_PREEMPTED && a->called && !t->panel.lost &&
			  !(a->has_saved && a->saved_step >= a->told.step) &&
			  !has(w->keys.dead, task) && !w->schedule->store_loss_ends &&
			  !(a->view->decided && a->view->decision.kind == KIND_NONE);
	int64_t latest = latest_deadline_of(w, task);
	if (could_save && deadline_of(w, task) != CLOCK_NEVER && kernel.now < latest - 2 * MS)
		world_violate(w, "clocks", "task %d is given up %" PRId64 " ms before its deadline",
			task, (latest - kernel.now) / MS);
}

/*
 * No task leaves without a goodbye, nor with a notice that was told to no task, unless the store
 * was lost: those that stay would wait, or run into the deadline that they do not know. Where its
 * time is up a task waits 1.5 s for the store, which answers one write of its agent after the
 * other.
 */
static void check_goodbye(struct world *w, int task)
{
	const struct keys *k = &w->keys;
	const struct schedule *s = w->schedule;
	if (w->store_faults || w->slow_store || w->task[task].faulted ||
		s->latency * (4 + 2 * s->per_agent) > 1500)
		return;
	if (k->left[task] == REASON_NONE && !has(k->dead, task))
		world_violate(w, "goodbye", "task %d leaves without", task);
	if (w->task[task].noticed && w->task[task].code != STATUS_OK && !k->claimed &&
		k->seal == SEAL_NONE && !k->closed)
		world_violate(
			w, "I4", "task %d leaves with a notice that it told to no task", task);
}

/* Where there was time for it, a group knows the deadline of each of its tasks. */
static void check_told_in_time(struct world *w, int task)
{
	const struct keys *k = &w->keys;
	const struct schedule *s = w->schedule;
	const struct task *t = &w->task[task];
	int64_t time = (6000 + 2 * s->notify + (int64_t)(20 + 4 * s->per_agent) * s->latency) * MS;
	if (!t->noticed || t->faulted || w->store_faults || w->slow_store || !k->claimed ||
		t->own_deadline == CLOCK_NEVER || kernel.now < t->last_noticed + time ||
		t->code == STATUS_OK)
		return;
	if (!k->has_deadline || k->deadline > t->own_deadline + (NEARLY_SAME + 100) * MS)
		world_violate(
			w, "I4", "task %d leaves, and its deadline was told to no task", task);
}

void check_exit(struct world *w, int task)
{
	check_code(w, task);
	check_told_in_time(w, task);
	check_goodbye(w, task);
	check_nobody_saves(w, task, "exits");
}

/* ---- At the end ---- */

static bool agent_lives(const struct world *w, int task)
{
	return node_lives(&w->node[schedule_agent_of(w->schedule, task)]);
}

/* No task hangs: once there is a reason to end, every agent ends before the horizon. */
static void check_hang(struct world *w)
{
	if (!w->timed_out)
		return;
	for (int i = 0; i < w->schedule->tasks; i++) {
		const struct task *t = &w->task[i];
		bool reason = w->keys.claimed || w->keys.seal != SEAL_NONE || t->noticed ||
			      t->training.state == GONE;
		if (agent_lives(w, i) && reason && !t->finished)
			world_violate(w, "hang", "task %d is still there", i);
	}
}

/*
 * No task hangs in front of a deadline: killing the command, saying goodbye to the store and being
 * stopped oneself are all that may come after it.
 */
static void check_deadline(struct world *w)
{
	if (!w->keys.has_deadline)
		return;
	for (int i = 0; i < w->schedule->tasks; i++) {
		const struct task *t = &w->task[i];
		int64_t known = t->deadline_latest;
		bool gone = !t->finished && !agent_lives(w, i);
		if (known == CLOCK_NEVER || gone || t->faulted)
			continue;
		int64_t margin = w->schedule->kill_after + AGREEMENT_LEAVE_PATIENCE + 3000 +
				 20 * w->schedule->latency * w->schedule->per_agent +
				 (w->store_faults ? w->schedule->give_up : 0);
		int64_t since =
			known > w->keys.deadline_changed_at ? known : w->keys.deadline_changed_at;
		int64_t end = t->finished ? t->finished_at : kernel.now;
		if (end > since + margin * MS)
			world_violate(w, "hang",
				"task %d is there %" PRId64 " ms after its deadline", i,
				(end - known) / MS);
	}
}

/*
 * I3: no task starts a step after the agreed final one. Of those whose save there stands in the
 * store: without exception except programs that disobey `leave`. Of the others: unless they were
 * faulted, or did not report before the decision was made, or got it too late, which can only be
 * made good by a further round, or by leaving with 43.
 */
static void check_final_step(struct world *w)
{
	const struct keys *k = &w->keys;
	const struct round_keys *round = round_keys(k, k->rounds);
	if (!k->rounds || !round->decided || round->decision.kind != KIND_EXIT)
		return;
	uint64_t step = round->decision.step;
	for (int i = 0; i < w->schedule->tasks; i++) {
		const struct training *p = &w->task[i].training;
		bool saved = has(round->saved, i) && round->saved_step[i] >= step;
		bool excused = w->task[i].faulted || w->task[i].solo || w->store_faults ||
			       has(round->unheard, i);
		/* One that need not save does so at its own boundary beyond the step. */
		if (!must_save(w->schedule, i) && training_has_saved_since(w, i, step))
			continue;
		if (!has(round->members, i) || !p->went_on || p->farthest < step ||
			w->schedule->trainee[i].ignores_leave)
			continue;
		/* Without the store the round goes on in memory, perhaps to a later step. */
		if ((saved && !w->task[i].solo) || !excused)
			world_violate(w, "I3",
				"task %d goes on from %" PRIu64 ", the final step is %" PRIu64, i,
				p->farthest, step);
	}
}

/* A task that was declared dead ends its command as soon as it sees that. */
static void check_the_dead(struct world *w)
{
	const struct schedule *s = w->schedule;
	if (w->store_faults || w->slow_store)
		return;
	for (int i = 0; i < s->tasks; i++) {
		const struct node *node = node_of(w, i);
		if (!has(w->keys.dead, i) || !node->process.alive)
			continue;
		int64_t since = w->keys.dead_at[i];
		/* A task that goes alone after a notice saves for itself until its deadline. */
		if (w->task[i].solo && w->task[i].deadline_latest == CLOCK_NEVER)
			continue;
		if (w->task[i].solo && w->task[i].deadline_latest > since)
			since = w->task[i].deadline_latest;
		if (node->process.paused_until > since)
			since = node->process.paused_until;
		if (node->process.cut_off_until > since)
			since = node->process.cut_off_until;
		int64_t limit = since + (s->kill_after + 10000 + 3000 + 2 * s->notify) * MS;
		bool gone = w->task[i].training.state == GONE;
		if (gone ? w->task[i].training.ended_at > limit : kernel.now > limit)
			world_violate(w, "dead", "task %d goes on though it was declared dead", i);
	}
}

/* From one boundary to the next. */
static int64_t longest_chunk(const struct schedule *s, const struct trainee *t)
{
	int64_t steps = (int64_t)(t->uneven ? 2 * t->stride - 1 : t->stride);
	return steps * t->step_us + (s->synchronous ? steps : 1) * t->uneven_us;
}

/* How long it takes until the last member has saved at the step of the decision. */
static int64_t time_to_save(const struct world *w, const struct round_keys *round)
{
	const struct schedule *s = w->schedule;
	int64_t longest = 0, longest_run = 0, longest_save = 0;
	uint64_t least = round->decision.step;
	for (int i = 0; i < s->tasks; i++)
		if (round->reported[i] && !round->none[i] && round->step[i] < least)
			least = round->step[i];
	for (int i = 0; i < s->tasks; i++) {
		const struct trainee *t = &s->trainee[i];
		bool none = round->reported[i] && round->none[i];
		uint64_t from = none ? t->start : round->reported[i] ? round->step[i] : least;
		uint64_t steps = round->decision.step > from ? round->decision.step - from : 0;
		int64_t chunk = longest_chunk(s, t);
		if (t->periodic)
			chunk += t->save * MS;
		int64_t run = (int64_t)(t->uneven ? steps : steps / t->stride + 1) * chunk;
		if (none)
			run += t->startup * MS;
		if (run > longest_run)
			longest_run = run;
		if (t->save * MS > longest_save)
			longest_save = t->save * MS;
		if (run + t->save * MS > longest)
			longest = run + t->save * MS;
	}
	return s->synchronous ? longest_run + longest_save : longest;
}

static int64_t longest_save_and_step(const struct schedule *s)
{
	int64_t longest = 0;
	for (int i = 0; i < s->tasks; i++) {
		const struct trainee *t = &s->trainee[i];
		int64_t took = t->save * MS + longest_chunk(s, t);
		if (took > longest)
			longest = took;
	}
	return longest;
}

static const struct round_keys *first_final(const struct world *w)
{
	for (uint64_t r = 1; r <= w->keys.rounds; r++)
		if (w->keys.round[r].decided && w->keys.round[r].decision.kind != KIND_SAVE)
			return round_keys(&w->keys, r);
	return NULL;
}

/* Nothing was done to any task, the store is quick, and there was one notice or several at once. */
static bool is_undisturbed(const struct world *w)
{
	const struct schedule *s = w->schedule;
	if (!w->keys.claimed || w->store_faults || w->slow_store)
		return false;
	if (w->started < schedule_agents(s))
		return false; /* what was preempted before its start has nothing to save */
	if (w->keys.deadline_changed_at > w->keys.claimed_at + 100 * MS)
		return false;
	if (s->notify + s->latency * (6 + 2 * s->per_agent) > 2000)
		return false; /* the reserve of the final round is made for a quick store */
	for (int i = 0; i < s->tasks; i++)
		if (w->task[i].faulted || s->trainee[i].failing || s->trainee[i].ignores_leave ||
			s->trainee[i].startup == CLOCK_NEVER)
			return false;
	return true;
}

/* Where tasks have their own boundaries, there may be no step at which all can save. */
static bool boundaries_agree(const struct schedule *s)
{
	const struct trainee *first = &s->trainee[0];
	for (int i = 0; i < s->tasks; i++) {
		const struct trainee *t = &s->trainee[i];
		if (t->stride != first->stride || t->offset != first->offset ||
			t->uneven != first->uneven || t->silent != first->silent)
			return false;
	}
	return true;
}

static int64_t store_delays(const struct schedule *s)
{
	return (3 * s->notify + (int64_t)(20 + 4 * s->per_agent) * s->latency) * MS;
}

/* A save of its own kept it from the final round, and an earlier one stands. */
static bool stands_instead(const struct world *w, int task)
{
	const struct task *t = &w->task[task];
	return t->training.own_save_until >= w->keys.claimed_at && t->code == CODE_SAVED;
}

/* In a world where nothing else kills. I8 has looked at what the launcher's kill may not hit. */
static bool killed_by_launcher(struct world *w, int task)
{
	return w->schedule->launcher_kills && !node_of(w, task)->process.alive;
}

/*
 * Liveness: undisturbed, and with time enough, there is one final round, one step, and every task
 * leaves with 42 (or has ended by itself).
 */
static void check_liveness(struct world *w)
{
	const struct schedule *s = w->schedule;
	const struct keys *k = &w->keys;
	const struct round_keys *round = first_final(w);
	if (!is_undisturbed(w))
		return;
	int64_t delays = store_delays(s) + 3000 * MS;
	if (!round) {
		bool due = !k->has_deadline ||
			   k->deadline > k->claimed_at + delays + 3 * longest_save_and_step(s);
		for (int i = 0; i < s->tasks; i++)
			if (due && !killed_by_launcher(w, i) && !ended_by_itself(w, i) &&
				!stands_instead(w, i))
				world_violate(w, "liveness", "no final decision");
		return;
	}
	if (round->decision.kind == KIND_NONE)
		return;
	/* How long a save takes was not known, so the first one may have eaten the time. */
	if (k->has_deadline && s->remembered_save == 0 && round != round_keys(k, 1))
		return;
	int64_t needed = time_to_save(w, round) + delays;
	if (round != round_keys(k, 1))
		needed += longest_save_and_step(s); /* the save before may still be under way */
	int64_t limit = round->decided_at + s->save_timeout * MS;
	if (k->has_deadline) {
		/* What others make of it is earlier, at most by the time that news take. */
		limit = k->deadline - (700 + s->notify + 2 * s->latency) * MS;
		/* The decision may come late only where nothing else was possible. */
		if (k->claimed_at + delays + needed + needed / 2 > limit)
			return;
	}
	bool late = round->decided_at + longest_save_and_step(s) > limit;
	if (late && k->has_deadline && s->synchronous && s->trainee[0].stride == 1)
		world_violate(w, "liveness", "the final decision comes too late");
	if (round->decision.kind == KIND_EACH)
		needed *= 3; /* it is chosen with reserves */
	if (round->decided_at + needed > limit)
		return;
	w->statistics->comfortable++;
	if (!boundaries_agree(s))
		return; /* check_rounds has looked */
	for (int i = 0; i < s->tasks; i++)
		if (must_save(s, i) && !s->per_task && ended_by_itself(w, i))
			return; /* no save can be complete any more */
	if (round != round_keys(k, k->rounds)) {
		if (!w->save_unmeasured)
			world_violate(w, "liveness", "more than one final round");
		return;
	}
	for (int i = 0; i < s->tasks; i++) {
		const struct task *t = &w->task[i];
		if (killed_by_launcher(w, i))
			continue;
		if (!t->finished)
			world_violate(w, "liveness", "task %d does not leave", i);
		else if (t->code != CODE_SAVED && t->code != CODE_DECIDED && t->code != STATUS_OK)
			world_violate(w, "liveness", "task %d leaves with %d", i, t->code);
	}
}

/*
 * I4: while the store answers, every live task has its order before the deadline minus its save
 * time, whichever other task dies, hangs, or is paused. Provided that the notice left time for it
 * at all.
 */
static void check_order_in_time(struct world *w)
{
	const struct schedule *s = w->schedule;
	const struct keys *k = &w->keys;
	if (!k->claimed || !k->has_deadline || w->store_faults || w->slow_store)
		return;
	if (k->deadline_changed_at > k->claimed_at + 100 * MS)
		return;
	int64_t save = s->remembered_save, step = 0;
	for (int i = 0; i < s->tasks; i++) {
		const struct trainee *t = &s->trainee[i];
		if (t->save > save)
			save = t->save;
		if (longest_chunk(s, t) > step)
			step = longest_chunk(s, t);
	}
	int64_t enough = save * MS * 3 / 2 + 2 * step + store_delays(s) + 6000 * MS;
	if (k->deadline - k->claimed_at < enough)
		return;
	for (int i = 0; i < s->tasks; i++) {
		const struct task *t = &w->task[i];
		if (t->faulted || t->training.state == GONE || !node_of(w, i)->process.alive)
			continue;
		int64_t latest = k->deadline - s->trainee[i].save * MS;
		if (!t->first_order_at ? kernel.now > latest : t->first_order_at > latest)
			world_violate(w, "I4", "task %d has no order in time", i);
	}
}

/*
 * Where nothing was done to any task, whichever task is the last to leave closes the attempt; but
 * not where the store takes so long that its time is up before it knows that it has left
 * (check_goodbye).
 */
static void check_closed_at_last(struct world *w)
{
	if (w->schedule->latency * (4 + 2 * w->schedule->per_agent) > 1500)
		return;
	if (w->timed_out || w->store_faults || w->slow_store || kernel.full_until > 0)
		return;
	for (int i = 0; i < w->schedule->tasks; i++)
		if (w->task[i].faulted || w->keys.left[i] == REASON_NONE ||
			!node_of(w, i)->process.exited)
			return;
	if (!w->keys.closed)
		world_violate(w, "closing", "all have left, and no task has closed the attempt");
}

void check_end(struct world *w)
{
	check_closed_at_last(w);
	check_hang(w);
	check_deadline(w);
	check_final_step(w);
	check_the_dead(w);
	check_order_in_time(w);
	check_liveness(w);
}

/* ---- Statistics, so that one sees that the schedules are not empty ---- */

static void count_code(struct world *w, int task)
{
	const struct task *t = &w->task[task];
	uint64_t *codes = w->statistics->codes;
	if (!t->finished) {
		codes[node_of(w, task)->process.alive ? 7 : 6]++;
		return;
	}
	switch (t->code) {
	case STATUS_OK: codes[0]++; break;
	case CODE_SAVED: codes[1]++; break;
	case CODE_PREEMPTED: codes[2]++; break;
	case CODE_BROKEN: codes[3]++; break;
	case CODE_DECIDED: codes[4]++; break;
	default: codes[5]++; break;
	}
}

void count_end(struct world *w)
{
	struct statistics *stats = w->statistics;
	const struct schedule *s = w->schedule;
	const struct keys *k = &w->keys;
	stats->claimed += k->claimed;
	stats->broken += k->seal == SEAL_ERROR || k->seal == SEAL_DEAD;
	stats->untouched += !k->claimed && k->seal == SEAL_NONE && !k->rounds;
	stats->on_demand += k->rounds && !k->claimed;
	stats->synchronous += s->synchronous;
	stats->tasks_64 += s->tasks == MOST_TASKS;
	stats->several_per_agent += s->per_agent > 1;
	stats->rounds[k->rounds < 7 ? k->rounds : 7]++;
	bool complete = false;
	for (uint64_t r = 1; r <= k->rounds; r++) {
		if (k->round[r].decided)
			stats->kinds[k->round[r].decision.kind]++;
		complete |= checkpoint_is_complete(w, r);
	}
	stats->complete += complete;
	for (int i = 0; i < s->tasks; i++)
		count_code(w, i);
}
