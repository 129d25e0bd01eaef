/* SPDX-License-Identifier: MIT */
/* The event loop, and the deeds of fate. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

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

static void give_notice(struct world *w, int task, int64_t amount)
{
	struct agent *agent = agent_of(w, task);
	struct task *t = &w->task[task];
	if (!agent->alive || agent->exited || t->finished)
		return;
	t->noticed = true;
	t->first_noticed = w->now;
	int number = schedule_agent_of(w->schedule, task);
	agreement_noticed(&t->agreement, amount < 0 ? CLOCK_NEVER : clock_of(w, number) + amount);
	world_at(w, w->now, EVENT_AGENT, number, 0);
}

static void mark_faulted(struct world *w, int agent)
{
	for (int i = 0; i < w->schedule->tasks; i++)
		if (schedule_agent_of(w->schedule, i) == agent)
			w->task[i].faulted = true;
}

static void pause_agent(struct world *w, int agent, int64_t length)
{
	struct agent *self = &w->agent[agent];
	mark_faulted(w, agent);
	if (self->paused_until < w->now + length)
		self->paused_until = w->now + length;
}

static void cut_off(struct world *w, int task, int64_t length)
{
	w->store_faults = true;
	for (int i = 0; i < schedule_agents(w->schedule); i++) {
		if (task >= 0 && i != schedule_agent_of(w->schedule, task))
			continue;
		mark_faulted(w, i);
		if (w->agent[i].cut_off_until < w->now + length)
			w->agent[i].cut_off_until = w->now + length;
	}
}

/* By somebody on another machine. */
static struct announcement announce_in(const struct world *w, int64_t amount)
{
	int64_t deadline = amount < 0 ? CLOCK_NEVER : w->now + amount * MS;
	return (struct announcement){.deadline = deadline, .left = amount, .machine = NOBODY};
}

static void move_deadline(struct world *w, const struct announcement *announcement)
{
	const struct keys *k = &w->keys;
	bool sooner_than_known = !k->has_deadline || announcement->deadline < k->deadline;
	if (announcement->deadline != CLOCK_NEVER && sooner_than_known)
		keys_put_deadline(w, announcement);
}

static void claim_outside(struct world *w, const struct act *act)
{
	if (w->keys.closed)
		return;
	struct announcement announcement = announce_in(w, act->amount);
	if (!keys_claim(w, NOBODY, act->then, w->keys.rounds + 1, &announcement) && w->keys.claimed)
		move_deadline(w, &announcement);
	agent_store_changed(w);
}

static void put_rubbish(struct world *w)
{
	struct keys *k = &w->keys;
	if (k->rounds == 0 || k->round[k->rounds].decided)
		return;
	k->round[k->rounds].rubbish = true;
	w->store_faults = true;
	agent_store_changed(w);
}

static void restart(struct world *w, int task, int64_t after)
{
	int agent = schedule_agent_of(w->schedule, task);
	mark_faulted(w, agent);
	agent_kill(w, agent, "restarted");
	for (int i = 0; i < w->schedule->tasks; i++)
		if (schedule_agent_of(w->schedule, i) == agent)
			world_at(w, w->now + after, EVENT_RETURN, i, 0);
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
	case CLAIM_OUTSIDE: claim_outside(w, act); return;
	case ON_DEMAND:
		if (!w->keys.claimed && w->keys.seal == SEAL_NONE && !w->keys.closed)
			keys_open_round(w, w->keys.rounds + 1, false);
		agent_store_changed(w);
		return;
	case MOVE_DEADLINE:
		if (w->keys.claimed) {
			struct announcement announcement = announce_in(w, act->amount);
			move_deadline(w, &announcement);
		}
		agent_store_changed(w);
		return;
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
		agent_kill(w, agent, "killed");
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
	case RESTART: restart(w, who, act->amount * MS); break;
	case DECLARE_DEAD:
		mark_faulted(w, agent);
		world_at(w, w->now + length, EVENT_HEARTBEAT, who, 0);
		break;
	case LOSE_BOARD:
		w->task[who].faulted = true;
		w->task[who].board.lost = true;
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

/* Its machine is gone, or it has been silent for the whole limit: only then is it called dead. */
static void heartbeat_concludes(struct world *w, int task)
{
	const struct agent *agent = agent_of(w, task);
	if (agent->alive && agent->paused_until <= w->now)
		return;
	keys_declare_dead(w, task);
	agent_store_changed(w);
}

static void incarnation_returns(struct world *w, int task)
{
	if (agent_of(w, task)->alive)
		return;
	keys_declare_dead(w, task);
	agent_store_changed(w);
}

static void launcher_kills(struct world *w)
{
	for (int i = 0; i < schedule_agents(w->schedule); i++)
		agent_kill(w, i, "the launcher ends the job");
}

/* ---- Events ---- */

/* What happens to whom is stopped happens when it goes on. */
static bool deferred(struct world *w, const struct event *event)
{
	int64_t until = 0;
	switch ((enum event_kind)event->kind) {
	case EVENT_AGENT:
	case EVENT_NOTIFY:
	case EVENT_ANSWER:
	case EVENT_WATCH: until = w->agent[event->who].paused_until; break;
	case EVENT_ENDED:
	case EVENT_KILL: until = agent_of(w, event->who)->paused_until; break;
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

static bool agent_lives(const struct world *w, int agent)
{
	return w->agent[agent].alive && !w->agent[agent].exited;
}

static void wake_agent(struct world *w, const struct event *event)
{
	struct agent *agent = &w->agent[event->who];
	if (event->epoch == 1) {
		if (agent->wake_scheduled > w->now)
			return; /* superseded by an earlier one, which will ask again */
		agent->wake_scheduled = CLOCK_NEVER;
	}
	agent_run(w, event->who);
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
		if (agent_lives(w, schedule_agent_of(w->schedule, who)))
			agent_command_ended(w, who);
		break;
	case EVENT_KILL:
		if (agent_lives(w, schedule_agent_of(w->schedule, who)))
			training_end(w, who, 137);
		break;
	case EVENT_AGENT: wake_agent(w, event); break;
	case EVENT_NOTIFY:
		w->agent[who].notify_pending = false;
		w->agent[who].want_list = true;
		agent_run(w, who);
		break;
	case EVENT_COMMIT: agent_commit(w, who); break; /* even if the asker died since */
	case EVENT_ANSWER:
		if (agent_lives(w, who))
			agent_answer(w, who);
		break;
	case EVENT_LATE:
		if (keys_commit(w, &w->late[who]))
			agent_store_changed(w);
		break;
	case EVENT_WATCH: agent_watch(w, who); break;
	case EVENT_RETURN: incarnation_returns(w, who); break;
	case EVENT_HEARTBEAT: heartbeat_concludes(w, who); break;
	case EVENT_LAUNCHER: launcher_kills(w); break;
	}
}

static bool all_over(const struct world *w)
{
	for (int i = 0; i < schedule_agents(w->schedule); i++)
		if (agent_lives(w, i))
			return false;
	return true;
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

static bool is_calm(const struct world *w)
{
	if (w->keys.claimed || w->keys.seal != SEAL_NONE)
		return false;
	for (int i = 0; i < w->schedule->tasks; i++)
		if (w->task[i].noticed || w->task[i].training.state == GONE)
			return false;
	return true;
}

static void set_up(struct world *w, const struct schedule *s, struct statistics *stats, FILE *trace)
{
	w->schedule = s;
	w->statistics = stats;
	w->trace = trace;
	w->random.state = s->seed;
	w->now = 1000 * MS; /* an instant of 0 means "never" to the state machine */
	w->events = 0;
	w->order = 0;
	w->changes = 0;
	w->in_collective = 0;
	w->lates = 0;
	w->violated = NULL;
	w->store_faults = s->lost_before || s->lost_after || s->late_commit;
	w->slow_store = s->latency * s->per_agent * 4 > s->report_timeout / 2;
	w->exits_begun = false;
	w->first_exit = 0;
	memset(w->pulled, 0, sizeof w->pulled);
	memset(&w->keys, 0, offsetof(struct keys, round));
	w->keys.claimer = NOBODY;
	memset(w->task, 0, (size_t)s->tasks * sizeof *w->task);
	w->horizon = w->now + latest_end(s) * MS;
	w->calm_horizon = w->now + latest_calm_end(s) * MS;
	for (int i = 0; i < schedule_agents(s); i++) {
		agent_start(w, i);
		if (s->watches_peers)
			world_at(
				w, w->now + random_in(&w->random, 0, 1000 * MS), EVENT_WATCH, i, 0);
	}
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
		w->now = event.time;
		if (!deferred(w, &event))
			dispatch(w, &event);
		if (++events > MOST_EVENTS_RUN)
			world_violate(w, "endless", "more than %d events", MOST_EVENTS_RUN);
	}
	stats->events += events;
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
