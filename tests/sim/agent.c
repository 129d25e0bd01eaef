/* SPDX-License-Identifier: MIT */
/*
 * The agents: what lib/group/agent does around the state machines of its tasks, on one connection
 * to the store whose operations come one after the other and take time.
 */
#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "sim.h"

#define LONGEST_SETTLING 12 /* hold, read, hold ... within one instant */

static int64_t earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t later(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static int first_task(const struct world *w, int agent)
{
	return agent * w->schedule->per_agent;
}

static int end_task(const struct world *w, int agent)
{
	int end = first_task(w, agent) + w->schedule->per_agent;
	return end < w->schedule->tasks ? end : w->schedule->tasks;
}

static int64_t clock_for(const struct world *w, int task)
{
	return clock_of(w, schedule_agent_of(w->schedule, task));
}

void agent_start(struct world *w, int agent)
{
	const struct schedule *s = w->schedule;
	struct agent *self = &w->agent[agent];
	memset(self, 0, offsetof(struct agent, queue));
	self->alive = true;
	self->view.tasks = (uint64_t)s->tasks;
	self->view.peers = self->peers;
	self->view.deadline = self->view.deadline_latest = self->view.deadline_told = CLOCK_NEVER;
	self->alone.view.peers = self->alone_peers;
	self->alone.first = (uint64_t)first_task(w, agent);
	self->alone.count = (uint64_t)(end_task(w, agent) - first_task(w, agent));
	self->view.longest_save = s->remembered_save;
	self->wake_scheduled = CLOCK_NEVER;
	for (int i = first_task(w, agent); i < end_task(w, agent); i++) {
		struct agreement_config config = {
			.task = (uint64_t)i,
			.alone = &self->alone,
			.report_timeout = s->report_timeout,
			.report_jitter = random_in(&w->random, 0, 1000),
			.save_timeout = s->save_timeout,
			.startup = s->startup,
			.leave_patience = s->leave_patience,
			.savers_chief = s->savers_chief,
			.complete_chief = s->complete_chief,
			.per_task = s->per_task,
			.store_loss_ends = s->store_loss_ends,
		};
		agreement_init(&w->task[i].agreement, &config, &self->view, clock_of(w, agent));
		training_start(w, i);
	}
	self->want_list = true;
	world_at(w, w->now, EVENT_AGENT, agent, 0);
}

/* ---- The connection ---- */

/* Of a deadline that is written, when its writing begins. */
static void count_what_is_left(const struct world *w, int agent, struct operation *op)
{
	bool writes = op->kind == OP_WRITE && op->value != CLOCK_NEVER &&
		      (op->write == WRITE_CLAIM || op->write == WRITE_DEADLINE);
	if (!writes)
		return;
	op->exact = clock_from_world(w, agent, op->value);
	op->left = op->value > w->now ? (op->value - w->now) / MS : 0;
}

static void start_operation(struct world *w, int agent)
{
	const struct schedule *s = w->schedule;
	struct agent *self = &w->agent[agent];
	if (self->busy || self->count == 0)
		return;
	if (w->now < self->not_before) {
		world_at(w, self->not_before, EVENT_AGENT, agent, 0);
		return;
	}
	self->current = self->queue[self->head];
	self->head = (self->head + 1) % QUEUE;
	self->count--;
	self->busy = true;
	if (self->current.kind == OP_LIST)
		self->list_began = w->now;
	self->current.outcome = OUTCOME_UNKNOWN;
	count_what_is_left(w, agent, &self->current);
	int64_t begin = w->now > self->cut_off_until ? w->now : self->cut_off_until;
	int64_t took = random_in(&w->random, s->latency * MS / 5, s->latency * MS);
	int64_t end = begin + took;
	if (end - w->now > s->give_up * MS || random_chance(&w->random, s->lost_before)) {
		/* No answer, and nothing done. */
		if (end > w->now + s->give_up * MS)
			end = w->now + s->give_up * MS;
		world_at(w, end, EVENT_ANSWER, agent, 0);
		return;
	}
	if (random_chance(&w->random, s->late_commit) && w->lates < 8) {
		/* It is given up, and takes effect afterwards. */
		w->late[w->lates] = self->current;
		world_at(w, end + random_in(&w->random, 0, 4000 * MS), EVENT_LATE, w->lates++, 0);
		w->statistics->late_commits++;
		world_at(w, end, EVENT_ANSWER, agent, 0);
		return;
	}
	world_at(w, begin + random_in(&w->random, 0, took), EVENT_COMMIT, agent, 0);
	world_at(w, end, EVENT_ANSWER, agent, 0);
}

static void queue_operation(struct world *w, int agent, const struct operation *op)
{
	struct agent *self = &w->agent[agent];
	if (self->count == QUEUE) {
		world_violate(w, "queue", "agent %d has too many operations", agent);
		return;
	}
	self->queue[(self->head + self->count++) % QUEUE] = *op;
	if (op->kind == OP_LIST)
		self->list_queued = true;
}

void agent_commit(struct world *w, int agent)
{
	struct agent *self = &w->agent[agent];
	bool changed = keys_commit(w, &self->current);
	if (self->current.kind == OP_LIST)
		keys_snapshot(w, &self->incoming);
	if (changed) {
		check_written(w, &self->current);
		agent_store_changed(w);
	}
	if (random_chance(&w->random, w->schedule->lost_after)) {
		self->current.outcome = OUTCOME_UNKNOWN;
		w->statistics->lost_answers++;
	}
}

/* A deadline that it had not seen before. */
static void learn_deadline(struct world *w, int agent)
{
	struct agent *self = &w->agent[agent];
	const struct snapshot *shown = &self->incoming;
	int machine = schedule_machine_of(w->schedule, agent);
	if (shown->has_deadline && self->seen_deadline != shown->deadline_revision) {
		self->seen_deadline = shown->deadline_revision;
		struct agreement_sighting sighting = {.left = shown->left,
			.exact = shown->deadline_machine == machine ? shown->exact : 0,
			.absent = self->unchanged ? clock_from_world(w, agent, self->unchanged) : 0,
			.seen = clock_of(w, agent)};
		agreement_learn_deadline(&self->view, &sighting);
		check_deadline_seen(w, agent, &sighting);
	}
	self->unchanged = later(self->unchanged, self->list_began);
	self->seen_changes = shown->changes;
}

static void take_view(struct world *w, int agent)
{
	struct agent *self = &w->agent[agent];
	const struct snapshot *shown = &self->incoming;
	learn_deadline(w, agent);
	struct agreement_view *view = &self->view;
	view->claimed = shown->claimed;
	view->claim_then = shown->then;
	view->broken = shown->broken;
	view->closed = shown->closed;
	view->longest_save = shown->longest_save;
	view->round = shown->round;
	view->round_final = shown->final;
	view->decided = shown->decided;
	view->unreadable = shown->unreadable;
	view->decision = shown->decision;
	view->standing_round = shown->standing_round;
	view->standing_step = shown->standing_step;
	memcpy(self->peers, shown->peers, (size_t)w->schedule->tasks * sizeof *self->peers);
	self->view_taken = shown->taken;
	for (int i = first_task(w, agent); i < end_task(w, agent); i++)
		agreement_saw(&w->task[i].agreement, clock_of(w, agent));
}

void agent_answer(struct world *w, int agent)
{
	struct agent *self = &w->agent[agent];
	const struct operation *op = &self->current;
	self->busy = false;
	if (op->outcome == OUTCOME_UNKNOWN) {
		TRACE(w, first_task(w, agent), "no answer from the store");
		self->not_before = w->now + random_in(&w->random, 100 * MS, 500 * MS);
	}
	if (op->kind == OP_WRITE) {
		agreement_wrote(&w->task[op->task].agreement, op->write, op->round, op->outcome,
			clock_of(w, agent));
	} else if (op->kind == OP_DEAD) {
		if (op->outcome == OUTCOME_UNKNOWN) /* the next watch tries again */
			self->reported_dead &= ~(UINT64_C(1) << op->task);
	} else {
		self->list_queued = false;
		if (op->outcome == OUTCOME_DONE)
			take_view(w, agent);
		else
			self->want_list = true;
	}
	agent_run(w, agent);
}

void agent_store_changed(struct world *w)
{
	for (int i = 0; i < schedule_agents(w->schedule); i++) {
		struct agent *agent = &w->agent[i];
		if (!agent->alive || agent->exited || agent->notify_pending)
			continue;
		agent->notify_pending = true;
		int64_t delay = random_in(&w->random, 0, w->schedule->notify * MS);
		/* It had looked a while ago, if it could, and knew all that was there. */
		bool looked = agent->paused_until <= w->now && agent->cut_off_until <= w->now;
		if (looked && agent->seen_changes == w->changes)
			agent->unchanged = later(agent->unchanged,
				later(w->now - w->schedule->notify * MS + delay,
					later(agent->paused_until, agent->cut_off_until)));
		world_at(w, w->now + delay, EVENT_NOTIFY, i, 0);
	}
	w->changes++;
}

/* ---- Carrying a plan out ---- */

static void tell(struct world *w, int task, const struct agreement_hold *hold)
{
	struct task *t = &w->task[task];
	static const char *const names[] = {"run", "wait", "save", "exit", "leave"};
	TRACE(w, task, "hold = %s %" PRIu64, names[hold->order],
		hold->order == ORDER_LEAVE ? (uint64_t)hold->code : hold->step);
	bool changed = hold->order != t->board.hold.order || hold->step != t->board.hold.step ||
		       hold->code != t->board.hold.code;
	if (t->board.hold.order == ORDER_WAIT)
		t->training.step_began = w->now; /* what was before is no measure */
	t->board.hold = *hold;
	check_told(w, task, hold);
	agreement_told(&t->agreement, hold, clock_for(w, task));
	if (!changed)
		return;
	int64_t react = random_in(&w->random, 0, w->schedule->trainee[task].react * MS);
	world_at(w, w->now + react, EVENT_HOLD, task, 0);
	if (hold->order == ORDER_WAIT)
		world_trigger(w, AT_WAIT, task);
	else if (hold->order == ORDER_SAVE || hold->order == ORDER_EXIT)
		world_trigger(w, AT_ORDER, task);
	else if (hold->order == ORDER_LEAVE)
		world_trigger(w, AT_LEAVE, task);
}

static void look_at_board(struct world *w, int task)
{
	struct task *t = &w->task[task];
	if (t->board.lost) {
		agreement_board_lost(&t->agreement);
		return;
	}
	if (t->board.has_saved)
		agreement_saved(&t->agreement, t->board.saved);
	agreement_measured(&t->agreement,
		&(struct grace_measure){.longest_save = t->training.longest_save / MS,
			.longest_step = training_longest_step(w, task) / MS});
}

static bool same_hold(const struct agreement_hold *a, const struct agreement_hold *b)
{
	return a->order == b->order && a->step == b->step && a->code == b->code;
}

/* What can be done at once, until nothing is left of it. */
static void settle(struct world *w, int task, struct agreement_plan *plan)
{
	struct task *t = &w->task[task];
	for (int i = 0; i < LONGEST_SETTLING; i++) {
		agreement_next(&t->agreement, clock_for(w, task), plan);
		if (!t->ended && !same_hold(&plan->hold, &t->agreement.told)) {
			tell(w, task, &plan->hold);
		} else if (!t->ended && plan->read_board <= clock_for(w, task)) {
			look_at_board(w, task);
			if (!t->board.lost)
				agreement_read(&t->agreement, t->board.started, t->board.step,
					t->board.next, clock_for(w, task));
		} else {
			return;
		}
	}
	world_violate(w, "restless", "task %d does not settle", task);
}

/* What is announced: our own, or an earlier one that was overtaken (lib/group/writes.c). */
static int64_t deadline_to_write(const struct world *w, int task, enum agreement_write what)
{
	const struct agreement *a = &w->task[task].agreement;
	int64_t deadline = a->own_deadline;
	if (what == WRITE_DEADLINE)
		deadline = earlier(deadline, a->view->deadline);
	return clock_to_world(w, schedule_agent_of(w->schedule, task), deadline);
}

static void start_writes(struct world *w, int task, const struct agreement_plan *plan)
{
	int agent = schedule_agent_of(w->schedule, task);
	const struct agreement_view *view = &w->agent[agent].view;
	struct task *t = &w->task[task];
	struct operation op = {.kind = OP_WRITE,
		.task = task,
		.final = plan->final,
		.none = plan->report_none,
		.decision = plan->decision,
		.reason = plan->reason};
	for (int i = 0; i < w->schedule->tasks; i++) {
		if (!agreement_counts(view, (uint64_t)i))
			continue;
		op.members |= UINT64_C(1) << i;
		if (!view->peers[i].reported)
			op.missing |= UINT64_C(1) << i;
	}
	for (int what = 0; what < WRITE_KINDS; what++) {
		if (!plan->write[what])
			continue;
		op.write = (enum agreement_write)what;
		op.round = what == WRITE_CLAIM ? view->round + 1 : plan->write[what];
		op.step = what == WRITE_SAVED ? plan->saved_step : plan->step;
		op.next = plan->next;
		op.value = 0;
		op.deadline_revision = w->agent[agent].seen_deadline;
		if (what == WRITE_DEADLINE || what == WRITE_CLAIM)
			op.value = deadline_to_write(w, task, op.write);
		else if (what == WRITE_REPORT)
			op.value = t->agreement.measure.longest_step;
		else if (what == WRITE_SAVED)
			op.value = t->training.longest_save / MS;
		agreement_writing(&t->agreement, op.write);
		queue_operation(w, agent, &op);
	}
}

static void end_command(struct world *w, int task)
{
	struct task *t = &w->task[task];
	if (t->stopping || t->ended)
		return;
	check_ending(w, task);
	t->stopping = true;
	TRACE(w, task, "TERM");
	if (!w->schedule->trainee[task].ignores_term)
		training_end(w, task, 143);
	world_at(w, w->now + w->schedule->kill_after * MS, EVENT_KILL, task, 0);
}

static void finish_task(struct world *w, int task, int code)
{
	struct task *t = &w->task[task];
	t->finished = true;
	t->code = code;
	t->finished_at = w->now;
	TRACE(w, task, "finished with %d", code);
	check_exit(w, task);
}

static void exit_if_all_finished(struct world *w, int agent)
{
	struct agent *self = &w->agent[agent];
	for (int i = first_task(w, agent); i < end_task(w, agent); i++)
		if (!w->task[i].finished)
			return;
	self->exited = true;
	self->died_at = w->now;
	if (w->exits_begun)
		return;
	w->exits_begun = true;
	w->first_exit = w->now;
	if (w->schedule->launcher_kills)
		world_at(w, w->now + random_in(&w->random, 0, 50 * MS), EVENT_LAUNCHER, agent, 0);
}

void agent_run(struct world *w, int agent)
{
	struct agent *self = &w->agent[agent];
	int64_t look = CLOCK_NEVER, wake = CLOCK_NEVER;
	if (!self->alive || self->exited)
		return;
	for (int i = first_task(w, agent); i < end_task(w, agent); i++) {
		struct task *t = &w->task[i];
		struct agreement_plan plan;
		if (t->finished)
			continue;
		if (!t->ended)
			look_at_board(w, i);
		settle(w, i, &plan);
		start_writes(w, i, &plan);
		if (plan.end_command)
			end_command(w, i);
		if (plan.finished)
			finish_task(w, i, plan.code);
		if (!plan.finished && plan.wake < clock_of(w, agent))
			world_violate(w, "busy", "task %d waits for a time that is over", i);
		wake = earlier(wake, earlier(plan.wake, plan.read_board));
		look = earlier(look, plan.look);
	}
	exit_if_all_finished(w, agent);
	if (self->exited)
		return;
	if ((self->want_list || look <= clock_of(w, agent)) && !self->list_queued) {
		self->want_list = false;
		queue_operation(w, agent, &(struct operation){.kind = OP_LIST});
	} else if (!self->list_queued) {
		wake = earlier(wake, look);
	}
	start_operation(w, agent);
	wake = clock_to_world(w, agent, wake);
	if (wake < self->wake_scheduled) {
		self->wake_scheduled = wake > w->now ? wake : w->now + MS;
		world_at(w, self->wake_scheduled, EVENT_AGENT, agent, 1);
	}
}

void agent_command_ended(struct world *w, int task)
{
	struct task *t = &w->task[task];
	if (t->ended)
		return;
	look_at_board(w, task); /* the last words of the dead come first */
	t->ended = true;
	agreement_ended(&t->agreement, t->training.code, clock_for(w, task));
	agent_run(w, schedule_agent_of(w->schedule, task));
}

void agent_kill(struct world *w, int agent, const char *why)
{
	struct agent *self = &w->agent[agent];
	if (!self->alive || self->exited)
		return;
	TRACE(w, first_task(w, agent), "agent dies: %s", why);
	self->alive = false;
	self->died_at = w->now;
	for (int i = first_task(w, agent); i < end_task(w, agent); i++)
		training_end(w, i, 137);
}

/* Peers of the same machine whose agent is gone, while a round is under way. */
void agent_watch(struct world *w, int agent)
{
	struct agent *self = &w->agent[agent];
	const struct agreement_view *view = &self->view;
	if (!self->alive || self->exited)
		return;
	world_at(w, w->now + 1000 * MS, EVENT_WATCH, agent, 0);
	if (view->round == 0)
		return;
	int machine = agent / w->schedule->agents_per_machine;
	for (int i = 0; i < w->schedule->tasks; i++) {
		int other = schedule_agent_of(w->schedule, i);
		const struct agent *peer = &w->agent[other];
		bool gone = !peer->alive || peer->exited;
		if (other == agent || other / w->schedule->agents_per_machine != machine || !gone)
			continue;
		if (!agreement_counts(view, (uint64_t)i) || (self->reported_dead >> i & 1))
			continue;
		self->reported_dead |= UINT64_C(1) << i;
		queue_operation(w, agent, &(struct operation){.kind = OP_DEAD, .task = i});
	}
	agent_run(w, agent);
}
