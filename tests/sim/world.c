/* SPDX-License-Identifier: MIT */
/* The event loop, and the deeds of fate. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "group/measure.h"
#include "sim.h"
#include "store/memory.h"

#define MOST_EVENTS_RUN 30000000

/* ---- A heap of events, by time and then by order of making ---- */

static bool sooner(const struct event *a, const struct event *b)
{
	return a->time != b->time ? a->time < b->time : a->order < b->order;
}

static void push(struct world *w, struct event event)
{
	if (w->events == w->capacity) {
		w->capacity = w->capacity ? 2 * w->capacity : 256;
		w->heap = realloc(w->heap, (size_t)w->capacity * sizeof *w->heap);
		if (!w->heap)
			abort();
	}
	int at = w->events++;
	while (at > 0 && sooner(&event, &w->heap[(at - 1) / 2])) {
		w->heap[at] = w->heap[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	w->heap[at] = event;
}

static struct event pop(struct world *w)
{
	struct event first = w->heap[0], last = w->heap[--w->events];
	int at = 0;
	for (;;) {
		int child = 2 * at + 1;
		if (child >= w->events)
			break;
		if (child + 1 < w->events && sooner(&w->heap[child + 1], &w->heap[child]))
			child++;
		if (!sooner(&w->heap[child], &last))
			break;
		w->heap[at] = w->heap[child];
		at = child;
	}
	w->heap[at] = last;
	return first;
}

void world_at(struct world *w, int64_t time, enum event_kind kind, int who, uint32_t epoch)
{
	push(w, (struct event){.time = time > w->now ? time : w->now,
			.order = w->order++,
			.kind = (uint8_t)kind,
			.who = (int16_t)who,
			.epoch = epoch});
}

/* ---- Saying what happens ---- */

void world_trace(struct world *w, int task, const char *format, ...)
{
	fprintf(w->trace, "%10.3f ", (double)w->now / MS);
	if (task >= 0)
		fprintf(w->trace, "task %-2d ", task);
	else
		fprintf(w->trace, "        ");
	va_list args;
	va_start(args, format);
	vfprintf(w->trace, format, args);
	va_end(args);
	fputc('\n', w->trace);
}

void world_violate(struct world *w, const char *invariant, const char *format, ...)
{
	va_list args;
	if (w->violated)
		return;
	w->violated = invariant;
	va_start(args, format);
	vsnprintf(w->detail, sizeof w->detail, format, args);
	va_end(args);
	TRACE(w, NOBODY, "VIOLATED %s: %s", invariant, w->detail);
}

/* ---- Deeds ---- */

static void give_notice(struct world *w, int task, int64_t left)
{
	struct node *node = node_of(w, task);
	struct task *t = &w->task[task];
	if (!node_lives(node) || t->finished)
		return;
	t->noticed = true;
	t->last_noticed = w->now;
	if (left > 0 && w->now + left * MS < t->own_deadline)
		t->own_deadline = w->now + left * MS;
	agent_give_notice(node, left);
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
	if (node->paused_until < w->now + length)
		node->paused_until = w->now + length;
}

static void cut_off(struct world *w, int task, int64_t length)
{
	w->store_faults = true;
	for (int i = 0; i < schedule_agents(w->schedule); i++) {
		if (task >= 0 && i != schedule_agent_of(w->schedule, task))
			continue;
		mark_faulted(w, i);
		if (w->node[i].cut_off_until < w->now + length)
			w->node[i].cut_off_until = w->now + length;
	}
}

static void put_rubbish(struct world *w)
{
	struct keys *k = &w->keys;
	char name[64], key[128];
	if (k->rounds == 0 || k->round[k->rounds].decided)
		return;
	w->store_faults = true;
	keys_decision(k->rounds, name);
	snprintf(key, sizeof(key), "run/sim/%06" PRIu64 "/%s", k->attempt, name);
	(void)store_put(w->store, key, "rubbish", NULL, NULL);
}

static void restart(struct world *w, int agent, int64_t after)
{
	mark_faulted(w, agent);
	machine_kill(&w->node[agent], "restarted");
	world_at(w, w->now + after, EVENT_RETURN, agent, 0);
}

static void do_deed(struct world *w, const struct act *act, int subject)
{
	int who = act->who == NOBODY ? subject : act->who;
	bool nobody = who < 0 || who >= w->schedule->tasks;
	int agent = nobody ? NOBODY : schedule_agent_of(w->schedule, who);
	int64_t length = act->amount * MS;
	w->statistics->deeds[act->deed]++;
	TRACE(w, who, "FATE: %s, %" PRId64 " ms", deed_name(act->deed), act->amount);
	switch (act->deed) {
	case CLAIM_OUTSIDE:
	case ON_DEMAND:
	case MOVE_DEADLINE: agent_program(w, act, who); return;
	case CUT_OFF: cut_off(w, who, length); return;
	case RUBBISH: put_rubbish(w); return;
	case NOTHING:
	case DEEDS: return;
	default: break;
	}
	if (nobody)
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
		w->task[who].training.paused_until = w->now + length;
		break;
	case RESTART: restart(w, agent, length); break;
	case DECLARE_DEAD:
		mark_faulted(w, agent);
		world_at(w, w->now + length, EVENT_DECLARE, (int)(act - w->schedule->act),
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
		world_at(w, w->now + act->delay * MS, EVENT_ACT, i, 0);
	}
}

/* After this nobody can still have a reason to wait. */
static int64_t latest_end(const struct schedule *s)
{
	int64_t patience = s->tasks < 8 ? s->tasks + 1 : 8;
	int64_t end = 20000 + patience * (s->report_timeout + 1000) + 4 * s->save_timeout +
		      s->kill_after + s->leave_patience;
	for (int i = 0; i < s->acts; i++)
		end += s->act[i].delay + (s->act[i].amount > 0 ? s->act[i].amount : 0);
	end += 20 * s->latency * s->per_agent;
	return end;
}

/*
 * Where nobody is preempted, training would go on for ever: the world ends when whatever was to
 * come has come, and what it caused (a checkpoint on demand) has had its time.
 */
static int64_t latest_calm_end(const struct schedule *s)
{
	int64_t end = 15000;
	for (int i = 0; i < s->acts; i++) {
		end += s->act[i].delay + (s->act[i].amount > 0 ? s->act[i].amount / 4 : 0);
		if (s->act[i].deed == ON_DEMAND)
			end += 2 * s->report_timeout + s->save_timeout;
	}
	return end;
}

void world_agent_started(struct world *w)
{
	if (++w->started < schedule_agents(w->schedule))
		return;
	w->horizon = w->now + latest_end(w->schedule) * MS;
	w->calm_horizon = w->now + latest_calm_end(w->schedule) * MS;
	if (!w->schedule->early)
		world_trigger(w, AT_START, NOBODY);
}

/* Its machine is gone, or it has been silent for the whole limit: only then is it called dead. */
static void conclude_death(struct world *w, const struct act *act, int task)
{
	const struct node *node = node_of(w, task);
	if (!node->alive || node->paused_until > w->now)
		agent_program(w, act, task);
}

static void incarnation_returns(struct world *w, int agent)
{
	struct node *node = w->node[agent].alive ? NULL : machine_new_node(w, agent);
	if (!node)
		return;
	node->ghost = true;
	agent_begin(node);
}

static void launcher_kills(struct world *w)
{
	for (int i = 0; i < schedule_agents(w->schedule); i++)
		machine_kill(&w->node[i], "the launcher ends the job");
}

/* ---- Events ---- */

/* What happens to whom is stopped happens when it goes on. */
static bool deferred(struct world *w, const struct event *event)
{
	int64_t until = 0;
	switch ((enum event_kind)event->kind) {
	case EVENT_THREAD: until = w->node[event->who / MOST_THREADS].paused_until; break;
	case EVENT_TRAINING:
	case EVENT_HOLD: until = w->task[event->who].training.paused_until; break;
	default: break;
	}
	if (until <= w->now)
		return false;
	struct event later = *event;
	later.time = until;
	later.order = w->order++;
	push(w, later);
	return true;
}

static void dispatch(struct world *w, const struct event *event)
{
	int who = event->who;
	switch ((enum event_kind)event->kind) {
	case EVENT_ACT: do_deed(w, &w->schedule->act[who], w->pulled_by[who]); break;
	case EVENT_TRAINING:
		if (event->epoch == w->task[who].training.epoch)
			training_event(w, who);
		break;
	case EVENT_HOLD: training_hold_changed(w, who); break;
	case EVENT_ENDED:
		w->task[who].training.unreaped = true;
		machine_poke(node_of(w, who));
		break;
	case EVENT_THREAD: machine_run(w, who, event->epoch); break;
	case EVENT_LATE: w->late[who].run(w->late[who].what); break;
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

static void make_store(struct world *w)
{
	static bool registered;
	if (!registered) {
		store_register(&store_memory);
		/* json-c draws a random number the first time. */
		json_object_put(json_parse("{\"a\":1}", 7));
	}
	registered = true;
	memory_forget();
	agent_install_shim(w);
	if (store_open(&w->store, "memory:run", STORE_CREATE, CLOCK_NEVER, NULL) != STATUS_OK)
		abort();
	if (w->schedule->remembered_save)
		(void)measure_remember(w->store, "sim", w->schedule->remembered_save, NULL);
	observer_begin(w);
}

static void set_up(struct world *w, const struct schedule *s, struct statistics *stats, FILE *trace)
{
	struct event *heap = w->heap;
	int capacity = w->capacity;
	memset(w, 0, sizeof(*w));
	w->heap = heap;
	w->capacity = capacity;
	w->schedule = s;
	w->statistics = stats;
	w->trace = trace;
	w->random.state = s->seed;
	w->now = 1000 * MS; /* an instant of 0 means "never" to the state machine */
	w->store_faults = s->lost_before || s->lost_after || s->late_commit;
	w->slow_store = s->latency * s->per_agent * 4 > s->report_timeout / 2;
	machine_world = w;
	make_store(w);
	for (int i = 0; i < s->tasks; i++)
		w->task[i].deadline_latest = w->task[i].own_deadline = CLOCK_NEVER;
	w->horizon = w->now + (latest_end(s) + 120000) * MS;
	w->calm_horizon = w->now + (latest_calm_end(s) + 120000) * MS;
	for (int i = 0; i < schedule_agents(s); i++)
		agent_begin(machine_new_node(w, i));
	if (s->early)
		world_trigger(w, AT_START, NOBODY);
}

bool world_run(struct world *w, const struct schedule *s, struct statistics *stats, FILE *trace)
{
	set_up(w, s, stats, trace);
	uint64_t events = 0;
	while (w->events && !w->violated && !all_over(w)) {
		struct event event = pop(w);
		if (event.time > w->horizon)
			break;
		if (event.time > w->calm_horizon && is_calm(w))
			break;
		if (event.time > w->now)
			w->spins = 0;
		w->now = event.time;
		if (!deferred(w, &event))
			dispatch(w, &event);
		if (++events > MOST_EVENTS_RUN)
			world_violate(w, "endless", "more than %d events", MOST_EVENTS_RUN);
	}
	stats->events += events;
	store_close(w->store);
	if (!w->violated)
		check_end(w);
	count_end(w);
	return !w->violated;
}

void world_release(struct world *w)
{
	free(w->heap);
	w->heap = NULL;
	w->capacity = 0;
}
