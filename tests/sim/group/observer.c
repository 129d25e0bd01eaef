/* SPDX-License-Identifier: MIT */
/*
 * Reads every record of the attempt when it is committed, with a reader of its own, so that the
 * invariants do not depend on view.c. It decides nothing: what may be written is decided by the
 * store and by the code that is tried.
 */
#include <inttypes.h>
#include <string.h>

#include "base/json.h"
#include "sim.h"
#include "support/backends/memory.h"

/* One record: its name behind "run/sim/000001/", its value, and what the name says. */
struct record {
	const char *name;
	struct json_object *json; /* NULL: it is not JSON */
	uint64_t round;
	int task;
	store_revision revision;
};

static uint64_t bit(int task)
{
	return UINT64_C(1) << task;
}

static uint64_t get_number(const struct record *r, const char *member)
{
	uint64_t value = 0;
	(void)json_get_unsigned(r->json, member, &value);
	return value;
}

static const char *get_word(const struct record *r, const char *member)
{
	const char *word = "";
	(void)json_get_text(r->json, member, &word);
	return word;
}

static uint64_t get_set(const struct record *r, const char *member)
{
	bool set[MOST_TASKS] = {0};
	uint64_t bits = 0;
	(void)keys_read_set(get_word(r, member), MOST_TASKS, set);
	for (int i = 0; i < MOST_TASKS; i++)
		bits |= set[i] ? bit(i) : 0;
	return bits;
}

static struct round_keys *round_of(struct world *w, uint64_t round)
{
	if (!round || round > w->keys.rounds)
		world_violate(
			w, "rounds", "a record of round %" PRIu64 ", which is not open", round);
	return (struct round_keys *)round_keys(&w->keys, round);
}

/* ---- One kind of record each ---- */

static void observe_claim(struct world *w, const struct record *r)
{
	struct keys *k = &w->keys;
	uint64_t task;
	if (k->claimed)
		world_violate(w, "I1", "a second claim was written");
	k->claimed = true;
	k->claimed_at = kernel.now;
	k->claim_round = k->rounds + 1;
	k->claimer = json_get_unsigned(r->json, "task", &task) ? (int)task : NOBODY;
	const struct node *node = machine_current();
	if (node && node->agent != NOBODY && k->claimer != NOBODY)
		check_fenced(w, k->claimer);
	(void)keys_then_parse(get_word(r, "then"), &k->then);
	world_trigger(w, AT_CLAIM, k->claimer);
}

static void observe_deadline(struct world *w, const struct record *r)
{
	struct keys *k = &w->keys;
	int64_t left = (int64_t)get_number(r, "left");
	int machine = MOST_TASKS;
	(void)sscanf(get_word(r, "boot"), "boot%d", &machine);
	int64_t off = machine < MOST_TASKS ? w->schedule->clock[machine] : 0;
	int64_t deadline = ((int64_t)get_number(r, "at") - CLOCK_ZERO - off) * MS;
	/*
	 * A program, or an agent that was cut off, cannot know how old the one that it replaces is.
	 */
	const struct node *node = machine_current();
	bool knows = node && node->agent >= 0 && !w->store_faults && !w->slow_store;
	for (int i = 0; i < w->schedule->tasks && knows; i++)
		knows = schedule_agent_of(w->schedule, i) != node->agent || !w->task[i].faulted;
	if (knows && k->has_deadline && deadline > k->deadline + 5 * MS)
		world_violate(w, "clocks", "the deadline is moved to %" PRId64 " ms later",
			(deadline - k->deadline) / MS);
	k->deadlines++;
	k->deadline_revision = r->revision;
	k->deadline_machine = machine;
	k->deadline_written = deadline;
	k->deadline_latest = kernel.now + left * MS;
	int64_t earliest = deadline < k->deadline_latest ? deadline : k->deadline_latest;
	if (!k->has_deadline || k->deadline_earliest > earliest)
		k->deadline_earliest = earliest;
	if (k->has_deadline && k->deadline <= deadline)
		return;
	k->has_deadline = true;
	k->deadline = deadline;
	k->deadline_changed_at = kernel.now;
}

static void observe_seal(struct world *w, const struct record *r)
{
	const char *by = get_word(r, "by");
	if (w->keys.seal != SEAL_NONE)
		world_violate(w, "seal", "the attempt is sealed a second time");
	w->keys.seal = !strcmp(by, "claim")   ? SEAL_CLAIM
		       : !strcmp(by, "error") ? SEAL_ERROR
					      : SEAL_DEAD;
}

static void observe_round(struct world *w, const struct record *r)
{
	if (r->round <= w->keys.rounds)
		return;
	if (r->round > MOST_ROUNDS) {
		world_violate(w, "rounds", "round %" PRIu64 " is opened", r->round);
		return;
	}
	w->keys.rounds = r->round;
	*round_of(w, r->round) = (struct round_keys){0};
	check_rounds(w, r->round, get_number(r, "try"));
}

static void observe_report(struct world *w, const struct record *r)
{
	struct round_keys *round = round_of(w, r->round);
	check_fenced(w, r->task);
	(void)json_get_bool(r->json, "none", &round->none[r->task]);
	round->step[r->task] = get_number(r, "step");
	round->next[r->task] = get_number(r, "next");
	round->reported[r->task] =
		round->none[r->task] || round->next[r->task] > round->step[r->task];
	if (!round->reported[r->task])
		return; /* garbage */
	world_trigger(w, AT_REPORT, r->task);
}

static void observe_decision(struct world *w, const struct record *r)
{
	struct round_keys *round = round_of(w, r->round);
	const struct node *node = machine_current();
	if (round->decided)
		world_violate(w, "I2", "round %" PRIu64 " is decided a second time", r->round);
	if (!keys_kind_parse(get_word(r, "kind"), &round->decision.kind) ||
		!keys_then_parse(get_word(r, "then"), &round->decision.then))
		return; /* garbage */
	round->decided = true;
	round->decided_at = kernel.now;
	round->decision.step = get_number(r, "step");
	for (int i = 0; i < w->schedule->tasks && round->decision.kind == KIND_EACH; i++)
		if (round->reported[i] && round->next[i] > round->decision.step)
			round->decision.step = round->next[i]; /* what would have suited all */
	round->members = get_set(r, "members");
	round->unheard = get_set(r, "missing");
	check_decision(w, r->round);
	if (node)
		check_decider(w, node);
	world_trigger(w, AT_DECISION, node ? node->agent * w->schedule->per_agent : NOBODY);
}

static void observe_ack(struct world *w, const struct record *r)
{
	check_fenced(w, r->task);
	round_of(w, r->round)->acked |= bit(r->task);
}

static void observe_saved(struct world *w, const struct record *r)
{
	struct round_keys *round = round_of(w, r->round);
	check_fenced(w, r->task);
	round->saved |= bit(r->task);
	round->saved_at = kernel.now;
	round->saved_step[r->task] = get_number(r, "step");
	check_saved(w, r->task, r->round);
}

static void observe_left(struct world *w, const struct record *r)
{
	struct keys *k = &w->keys;
	if (k->left[r->task] == REASON_NONE) {
		k->left_at[r->task] = kernel.now;
		k->left[r->task] = REASON_PREEMPTED;
	}
	(void)keys_reason_parse(get_word(r, "reason"), &k->left[r->task]);
}

static void observe_dead(struct world *w, const struct record *r)
{
	TRACE(w, r->task, "is declared dead");
	if (!strcmp(get_word(r, "by"), keys_death_word(DEATH_HUNG)))
		w->keys.hung |= bit(r->task);
	check_death(w, r->task);
	w->keys.dead |= bit(r->task);
	w->keys.dead_at[r->task] = kernel.now;
}

static void observe_join(struct world *w, const struct record *r)
{
	check_join(w, r->task);
	w->keys.joined |= bit(r->task);
}

static void observe_end(struct world *w, const struct record *r)
{
	(void)r;
	check_closed(w);
	w->keys.closed = true;
}

/* It is only traced. */
static void observe_nothing(struct world *w, const struct record *r)
{
	(void)w, (void)r;
}

/* Names as printf would write them: %r the round, %t the task. */
static const struct {
	const char *form;
	void (*observe)(struct world *w, const struct record *r);
	bool exists; /* garbage is as good */
} kinds[] = {
	{"TERMINATED_WORKER", observe_claim, true},
	{"DEADLINE", observe_deadline, false},
	{"SEAL", observe_seal, false},
	{"ROUND/%r", observe_round, true},
	{"STEP/%r/%t", observe_report, false},
	{"RUN_TO_CHECKPOINT", observe_decision, true},
	{"LAST_RUN_TO_CHECKPOINT/%r", observe_decision, true},
	{"RECEIVED_SIGNAL_RUN_TO_CHECKPOINT_%t", observe_ack, false},
	{"RECEIVED_SIGNAL_LAST_RUN_TO_CHECKPOINT/%r_%t", observe_ack, false},
	{"SAVED/%r/%t", observe_saved, false},
	{"LEFT/%t", observe_left, false},
	{"DEAD/%t", observe_dead, false},
	{"TASK/%t", observe_join, false},
	{"CLOSED", observe_end, false},
	{"ALL_JOINED", observe_nothing, false},
	{"ALL_SAVED/%r", observe_nothing, false},
};

static bool take_number(const char **at, uint64_t *number)
{
	const char *from = *at;
	*number = 0;
	while (**at >= '0' && **at <= '9')
		*number = *number * 10 + (uint64_t)(*(*at)++ - '0');
	return *at > from;
}

static bool fits(const char *form, struct record *r)
{
	const char *at = r->name;
	uint64_t number;
	r->round = 1;
	r->task = 0;
	for (; *form; form++) {
		if (*form != '%') {
			if (*form != *at++)
				return false;
			continue;
		}
		if (!take_number(&at, &number))
			return false;
		if (*++form == 'r')
			r->round = number;
		else if (number < MOST_TASKS)
			r->task = (int)number;
		else
			return false;
	}
	return !*at;
}

/* A further attempt counts only where no training of the one before has begun. */
static void observe_open(struct world *w, uint64_t attempt)
{
	check_open(w, attempt);
	w->newest_attempt = attempt;
	if (w->started)
		return;
	memset(&w->keys, 0, sizeof(w->keys));
	w->keys.attempt = attempt;
	w->keys.claimer = NOBODY;
}

static void observe(struct world *w, const struct store_op *op, store_revision revision)
{
	static const char prefix[] = "run/sim/";
	struct record r = {.revision = revision};
	uint64_t attempt;
	const char *at = op->key + strlen(prefix);
	if (op->kind != STORE_PUT || strncmp(op->key, prefix, strlen(prefix)) ||
		!take_number(&at, &attempt) || *at != '/')
		return;
	r.name = at + 1;
	if (!strcmp(r.name, "OPEN"))
		observe_open(w, attempt);
	else
		check_own_attempt(w, attempt, r.name);
	if (attempt != w->keys.attempt)
		return;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (!fits(kinds[i].form, &r))
			continue;
		TRACE(w, NOBODY, "%s = %.*s", r.name, (int)op->length, (const char *)op->value);
		r.json = json_parse(op->value, op->length);
		if (r.json || kinds[i].exists)
			kinds[i].observe(w, &r);
		json_object_put(r.json);
		return;
	}
}

static void changed(
	void *context, const struct store_op *ops, size_t count, store_revision revision)
{
	for (size_t i = 0; i < count; i++)
		observe(context, &ops[i], revision);
}

void observer_begin(struct world *w)
{
	static struct memory_observer observer;
	observer = (struct memory_observer){w, changed};
	w->keys.claimer = NOBODY;
	memory_observe(&observer);
}
