/* SPDX-License-Identifier: MIT */
/* The events of the world, and the deeds of fate. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "proto/remembered.h"
#include "sim.h"

struct world *machine_world;

/* ---- Saying what happens ---- */

void world_trace(struct world *w, int task, const char *format, ...)
{
	char subject[16] = "";
	va_list args;
	(void)w;
	if (task >= 0)
		snprintf(subject, sizeof(subject), "task %d", task);
	va_start(args, format);
	kernel_trace_list(subject, format, args);
	va_end(args);
}

void world_violate(struct world *w, const char *invariant, const char *format, ...)
{
	va_list args;
	(void)w;
	va_start(args, format);
	kernel_violate_list(invariant, format, args);
	va_end(args);
}

/* ---- Deeds ---- */

static void give_notice(struct world *w, int task, int64_t left)
{
	struct node *node = node_of(w, task);
	struct task *t = &w->task[task];
	if (!node_lives(node) || t->finished)
		return;
	t->noticed = true;
	t->last_noticed = kernel.now;
	if (left > 0 && kernel.now + left * MS < t->own_deadline)
		t->own_deadline = kernel.now + left * MS;
	(void)process_give_notice(&node->process, left);
}

static void mark_faulted(struct world *w, int agent)
{
	for (int i = 0; i < w->schedule->tasks; i++)
		if (schedule_agent_of(w->schedule, i) == agent)
			w->task[i].faulted = true;
}

static void pause_agent(struct world *w, int agent, int64_t length)
{
	struct node *node = &w->node[agent];
	mark_faulted(w, agent);
	if (node->process.paused_until < kernel.now + length)
		node->process.paused_until = kernel.now + length;
}

static void cut_off(struct world *w, int task, int64_t length)
{
	w->store_faults |= task < 0;
	for (int i = 0; i < schedule_agents(w->schedule); i++) {
		if (task >= 0 && i != schedule_agent_of(w->schedule, task))
			continue;
		mark_faulted(w, i);
		if (w->node[i].process.cut_off_until < kernel.now + length)
			w->node[i].process.cut_off_until = kernel.now + length;
	}
}

static void put_raw(struct world *w, const char *name, const char *value)
{
	char key[128];
	snprintf(key, sizeof(key), "run/sim/%06" PRIu64 "/%s", w->keys.attempt, name);
	(void)store_put(kernel.store, key, value, NULL, NULL);
}

/* It may make a further round necessary. */
static void put_garbage_decision(struct world *w)
{
	struct keys *k = &w->keys;
	char name[64];
	if (k->rounds == 0 || k->round[k->rounds].decided)
		return;
	w->store_faults = true;
	keys_decision(k->rounds, name);
	put_raw(w, name, "garbage");
}

static void put_garbage_names(struct world *w)
{
	static const char *const names[] = {"DEADLINE", "ROUND/x", "ROUND/", "STEP/1/7",
		"STEP/1/4000000000", "STEP/1/", "STEP/9999999999999999999999/1", "SAVED/1/1x",
		"TASK/77", "LEFT/-1", "DEAD/4294967297", "RECEIVED_SIGNAL_",
		"RECEIVED_SIGNAL_RUN_TO_CHECKPOINT_99",
		"RECEIVED_SIGNAL_LAST_RUN_TO_CHECKPOINT/x_1", "LAST_RUN_TO_CHECKPOINT/",
		"NEW/thing"};
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		put_raw(w, names[i], "{\"step\": -1, \"utc\": \"yes");
	put_raw(w, "TASK/1", "\033[31mred");
}

static void put_garbage(struct world *w, enum deed deed, int task)
{
	char name[64];
	switch (deed) {
	case GARBAGE: put_garbage_decision(w); break;
	case GARBAGE_CLAIM: put_raw(w, "TERMINATED_WORKER", "garbage"); break;
	case GARBAGE_REPORT:
		snprintf(name, sizeof(name), "STEP/%" PRIu64 "/%d",
			w->keys.rounds ? w->keys.rounds : 1, task);
		put_raw(w, name, "{\"step\":5,\"next\":5}");
		break;
	default: put_garbage_names(w); break;
	}
}

/*
 * Of the machine of a task, or of all. No task is faulted by that: it must change nothing.
 * Only how long a save takes that is under way is not known afterwards.
 */
static void set_clock(struct world *w, int task, int64_t ahead)
{
	const struct schedule *s = w->schedule;
	bool all = task < 0 || task >= s->tasks;
	int machine = all ? NOBODY : schedule_machine_of(s, schedule_agent_of(s, task));
	for (int i = 0; i < s->tasks; i++) {
		const struct task *t = &w->task[i];
		int agent = schedule_agent_of(s, i);
		if (!all && schedule_machine_of(s, agent) != machine)
			continue;
		w->node[agent].process.wall = ahead;
		w->save_unmeasured |=
			t->training.state == SAVING || t->panel.hold.order == ORDER_SAVE;
	}
}

static void restart(struct world *w, int agent, int64_t after)
{
	mark_faulted(w, agent);
	machine_kill(&w->node[agent], "restarted");
	world_at(w, kernel.now + after, EVENT_RETURN, agent, 0);
}

void world_do(struct world *w, const struct act *act, int subject)
{
	int who = act->who == NOBODY ? subject : act->who;
	bool undirected = who < 0 || who >= w->schedule->tasks;
	int agent = undirected ? NOBODY : schedule_agent_of(w->schedule, who);
	int64_t length = act->amount * MS;
	w->statistics->deeds[act->deed]++;
	TRACE(w, who, "FATE: %s, %" PRId64 " ms", deed_name(act->deed), act->amount);
	switch (act->deed) {
	case CLAIM_OUTSIDE:
	case ON_DEMAND:
	case MOVE_DEADLINE: agent_program(w, act, who); return;
	case CUT_OFF: cut_off(w, who, length); return;
	case GARBAGE:
	case GARBAGE_CLAIM:
	case GARBAGE_REPORT:
	case GARBAGE_NAMES: put_garbage(w, act->deed, who); return;
	case FULL_STORE:
		w->store_faults = true;
		kernel.full_until = kernel.now + length;
		return;
	case SET_CLOCK: set_clock(w, who, act->amount); return;
	case NOTHING:
	case DEEDS: return;
	default: break;
	}
	if (undirected)
		return;
	switch (act->deed) {
	case NOTICE: give_notice(w, who, act->amount); break;
	case KILL_AGENT:
		mark_faulted(w, agent);
		machine_kill(&w->node[agent], "killed");
		break;
	case PAUSE_AGENT: pause_agent(w, agent, length); break;
	case KILL_TRAINING:
		w->task[who].faulted = true;
		training_end(w, who, 139);
		break;
	case PAUSE_TRAINING:
		w->task[who].faulted = true;
		w->task[who].training.paused_until = kernel.now + length;
		break;
	case RESTART: restart(w, agent, length); break;
	case DECLARE_DEAD:
		mark_faulted(w, agent);
		world_at(w, kernel.now + length, EVENT_DECLARE, (int)(act - w->schedule->act),
			(uint32_t)who);
		break;
	case LOSE_BOARD:
		w->task[who].faulted = true;
		w->task[who].panel.lost = true;
		break;
	default: break;
	}
}

void world_trigger(struct world *w, enum trigger trigger, int task)
{
	const struct schedule *s = w->schedule;
	for (int i = 0; i < s->acts; i++) {
		const struct act *act = &s->act[i];
		if (act->trigger != trigger || w->pulled[i])
			continue;
		if (act->subject != NOBODY && act->subject != task)
			continue;
		w->pulled[i] = true;
		w->pulled_by[i] = task;
		world_at(w, kernel.now + act->delay * MS, EVENT_ACT, i, 0);
	}
}

/* How long it lasts, ms. */
static int64_t length_of(const struct act *act)
{
	return act->amount > 0 && act->deed != SET_CLOCK ? act->amount : 0;
}

/* After this no task can still have a reason to wait. */
static int64_t latest_end(const struct schedule *s)
{
	int64_t patience = s->tasks < 8 ? s->tasks + 1 : 8;
	int64_t end = 20000 + patience * (s->report_timeout + 1000) + 4 * s->save_timeout +
		      s->kill_after + AGREEMENT_LEAVE_PATIENCE;
	for (int i = 0; i < s->acts; i++)
		end += s->act[i].delay + length_of(&s->act[i]);
	end += 20 * s->latency * s->per_agent;
	return end;
}

/*
 * Where no task is preempted, training would go on for ever: the world ends when whatever was to
 * come has come, and what it caused (a checkpoint on demand) has had its time.
 */
static int64_t latest_calm_end(const struct schedule *s)
{
	int64_t end = 15000;
	for (int i = 0; i < s->acts; i++) {
		end += s->act[i].delay + length_of(&s->act[i]) / 4;
		if (s->act[i].deed == ON_DEMAND)
			end += 2 * s->report_timeout + s->save_timeout;
	}
	return end;
}

void world_agent_started(struct world *w)
{
	if (++w->started < schedule_agents(w->schedule))
		return;
	w->before = kernel.shim;
	for (int i = 0; i < kernel.processes; i++)
		kernel.process[i]->bytes = 0;
	w->horizon = kernel.now + latest_end(w->schedule) * MS;
	w->calm_horizon = kernel.now + latest_calm_end(w->schedule) * MS;
	if (!w->schedule->early)
		world_trigger(w, AT_START, NOBODY);
}

/* Its machine is gone, or it has been silent for the whole limit: only then is it called dead. */
static void conclude_death(struct world *w, const struct act *act, int task)
{
	const struct node *node = node_of(w, task);
	if (!node->process.alive || node->process.paused_until > kernel.now)
		agent_program(w, act, task);
}

static void incarnation_returns(struct world *w, int agent)
{
	struct node *node = w->node[agent].process.alive ? NULL : machine_new_node(w, agent);
	if (!node)
		return;
	node->ghost = node->process.sees_others = true;
	node->process.wall = w->node[agent].process.wall;
	agent_begin(node);
}

static void launcher_kills(struct world *w)
{
	for (int i = 0; i < schedule_agents(w->schedule); i++)
		machine_kill(&w->node[i], "the launcher ends the job");
}

/* ---- Events ---- */

static int64_t deferred(const struct event *event)
{
	const struct world *w = machine_world;
	bool is_training = event->kind == EVENT_TRAINING || event->kind == EVENT_HOLD;
	return is_training ? w->task[event->who].training.paused_until : 0;
}

static void happen(const struct event *event)
{
	struct world *w = machine_world;
	int who = event->who;
	switch ((enum event_kind)event->kind) {
	case EVENT_ACT: world_do(w, &w->schedule->act[who], w->pulled_by[who]); break;
	case EVENT_TRAINING:
		if (event->epoch == w->task[who].training.epoch)
			training_event(w, who);
		break;
	case EVENT_HOLD: training_hold_changed(w, who); break;
	case EVENT_ENDED:
		w->task[who].training.unreaped = true;
		process_poke(&node_of(w, who)->process);
		break;
	case EVENT_RETURN: incarnation_returns(w, who); break;
	case EVENT_DECLARE: conclude_death(w, &w->schedule->act[who], (int)event->epoch); break;
	case EVENT_LAUNCHER: launcher_kills(w); break;
	}
}

static bool all_over(const struct world *w)
{
	for (int i = 0; i < schedule_agents(w->schedule); i++)
		if (node_lives(&w->node[i]))
			return false;
	return true;
}

static bool is_calm(const struct world *w)
{
	if (w->keys.claimed || w->keys.seal != SEAL_NONE)
		return false;
	for (int i = 0; i < w->schedule->tasks; i++)
		if (w->task[i].noticed || w->task[i].training.state == GONE)
			return false;
	return true;
}

static void inspect(struct process *process)
{
	agent_inspect((struct node *)process);
}

static void begin_kernel(struct world *w, const struct schedule *s, FILE *trace)
{
	static const struct kernel_world hooks = {.happen = happen,
		.deferred = deferred,
		.guarded = machine_guarded,
		.inspect = inspect};
	const struct way way = {.latency = s->latency,
		.notify = s->notify,
		.give_up = s->give_up,
		.lost_before = s->lost_before,
		.lost_after = s->lost_after,
		.late_commit = s->late_commit};
	machine_world = w;
	kernel_begin(&hooks, "run", &way, s->seed, trace);
	if (s->remembered_save)
		(void)remembered_add(kernel.store, "sim", s->remembered_save, NULL);
	observer_begin(w);
}

void world_begin(struct world *w, const struct schedule *s, struct statistics *stats, FILE *trace)
{
	memset(w, 0, sizeof(*w));
	w->schedule = s;
	w->statistics = stats;
	w->store_faults = s->lost_before || s->lost_after || s->late_commit;
	w->slow_store = s->latency * s->per_agent * 4 > s->report_timeout / 2;
	begin_kernel(w, s, trace);
	for (int i = 0; i < s->tasks; i++)
		w->task[i].deadline_latest = w->task[i].own_deadline = CLOCK_NEVER;
	w->horizon = kernel.now + (latest_end(s) + 120000) * MS;
	w->calm_horizon = kernel.now + (latest_calm_end(s) + 120000) * MS;
	for (int i = 0; i < schedule_agents(s); i++)
		agent_begin(machine_new_node(w, i));
	if (s->early)
		world_trigger(w, AT_START, NOBODY);
}

bool world_run(struct world *w, const struct schedule *s, struct statistics *stats, FILE *trace)
{
	world_begin(w, s, stats, trace);
	while (!kernel.violated && !all_over(w)) {
		int64_t next = kernel_next();
		if (next > w->calm_horizon && is_calm(w))
			break;
		if (next > w->horizon) {
			w->timed_out = true;
			break;
		}
		kernel_step();
	}
	stats->events += kernel.happened;
	stats->lost_answers += kernel.lost_answers;
	stats->late_commits += kernel.late_commits;
	if (!kernel.violated)
		check_end(w);
	count_end(w);
	kernel_end();
	return !kernel.violated;
}
