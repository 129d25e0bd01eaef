/* SPDX-License-Identifier: MIT */
/* What schedulers, workers and people do, and what they may be answered. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "sim.h"

static int64_t draw(int64_t least, int64_t most)
{
	return random_in(&kernel.random, least, most);
}

static bool chance(int permille)
{
	return random_chance(&kernel.random, permille);
}

/* An answer that is none of these is a fault of the queue. */
static void expect(enum status status, const char *what, unsigned allowed)
{
	static const enum status answers[] = {STATUS_OK, STATUS_NO, STATUS_BROKEN, STATUS_USAGE,
		STATUS_TIMEOUT, STATUS_TEMPORARY};
	for (size_t i = 0; i < sizeof(answers) / sizeof(*answers); i++)
		if (status == answers[i] && allowed & 1u << i)
			return;
	VIOLATE("answers", "%s is answered with %d", what, (int)status);
}
enum { OK = 1, NO = 2, BROKEN = 4, USAGE = 8, TIMEOUT = 16, TEMPORARY = 32 };

/* ---- Schedulers ---- */

static char **words_of(int spec)
{
	char **words = xcalloc(2, sizeof(*words));
	words[0] = xprintf("c%d", spec);
	return words;
}

/* Draw a command: each time the same one for a number. */
static void draw_item(struct queue_item *item, int spec)
{
	const struct schedule *s = world->schedule;
	struct random former = kernel.random;
	kernel.random.state = s->seed + (uint64_t)spec * 7919;
	*item = (struct queue_item){.argv = words_of(spec),
		.priority = (int)draw(-1, 1),
		.max_attempts = chance(500) ? 0 : (uint64_t)draw(1, 3),
		.max_transient = (uint64_t)draw(0, 3),
		.needs = chance(s->needs) ? 60000 : 0};
	if (chance(300))
		item->tag = xstrdup("t");
	if (chance(s->halting))
		item->halt = chance(500) ? HALT_SOON : HALT_NOW;
	world->spec[spec].halt = item->halt;
	world->spec[spec].max_attempts = item->max_attempts;
	world->spec[spec].max_transient = item->max_transient;
	kernel.random = former;
}

static bool compose(struct scheduler *scheduler, bool once)
{
	int left = MOST_COMMANDS - world->specs;
	scheduler->count = (int)draw(1, MOST_BATCH);
	scheduler->how = (struct queue_schedule){.limit = world->schedule->limit};
	if (once) {
		scheduler->how.once = "key";
		scheduler->how.number = scheduler->number;
		/* Its commands lie at the end of the specs. */
		if (scheduler->number + (uint64_t)scheduler->count > 8)
			scheduler->count = (int)(8 - scheduler->number);
		scheduler->first = MOST_COMMANDS - 8 + (int)scheduler->number;
	} else {
		left -= 8;
		scheduler->count = scheduler->count < left ? scheduler->count : left;
		scheduler->first = world->specs;
		if (scheduler->count > 0)
			world->specs += scheduler->count;
	}
	uint64_t after = 0;
	for (int i = 0; i < MOST_AFTER && world->tables.next > 1 && !once; i++)
		if (chance(world->schedule->after)) {
			scheduler->after[scheduler->how.after_count++] =
				(uint64_t)draw(1, (int64_t)world->tables.next - 1);
			after |= UINT64_C(1) << scheduler->after[scheduler->how.after_count - 1];
		}
	scheduler->how.after = scheduler->after;
	for (int i = 0; i < scheduler->count; i++) {
		struct spec *spec = &world->spec[scheduler->first + i];
		draw_item(&scheduler->items[i], scheduler->first + i);
		spec->after = after;
	}
	return scheduler->count > 0;
}

static void drop_items(struct scheduler *scheduler)
{
	for (int i = 0; i < scheduler->count; i++)
		queue_item_release(&scheduler->items[i]);
	scheduler->count = 0;
	scheduler->calling = false;
}

static void note_ids(struct scheduler *scheduler, bool once)
{
	for (int i = 0; i < scheduler->count; i++) {
		struct spec *spec = &world->spec[scheduler->first + i];
		uint64_t id = scheduler->items[i].id;
		if (spec->acknowledged && spec->id != id)
			VIOLATE("once", "number %d is command %" PRIu64 ", and was %" PRIu64, i, id,
				spec->id);
		if (!world->tables.row[id].there && !world->forgotten[id])
			VIOLATE("acknowledged", "command %" PRIu64 " is not there", id);
		spec->acknowledged = true;
		spec->id = id;
	}
	if (once)
		scheduler->number += (uint64_t)scheduler->count;
	/* It is killed, and begins again. */
	if (once && (scheduler->number >= 8 || chance(300)))
		scheduler->number = 0;
}

static void schedule(void)
{
	bool once = chance(300);
	struct scheduler *scheduler = &world->scheduler[once];
	if (!scheduler->calling && !compose(scheduler, once)) {
		scheduler->count = 0;
		return;
	}
	scheduler->calling = true;
	if (broken == WITHIN_THE_LIMIT)
		scheduler->how.limit = 0;
	world_enter(NULL, SCHEDULE);
	enum status status = queue_schedule(
		&world->queue, scheduler->items, (size_t)scheduler->count, &scheduler->how, NULL);
	world_leave();
	expect(status, "schedule", OK | NO | BROKEN | USAGE | TEMPORARY);
	TRACE("schedule %d from c%d: %d", scheduler->count, scheduler->first, (int)status);
	if (status == STATUS_OK)
		note_ids(scheduler, once);
	world->statistics->full += status == STATUS_NO;
	if (status == STATUS_NO && !world->schedule->limit)
		VIOLATE("limit", "full, and there is no limit");
	if (status == STATUS_BROKEN && !world->tables.failure)
		VIOLATE("failure", "no failure is pending");
	/* USAGE: what it comes after was forgotten. */
	if (status == STATUS_OK || status == STATUS_USAGE)
		drop_items(scheduler);
}

/* ---- Workers ---- */

static struct worker *any_worker(bool registered)
{
	struct worker *found = NULL;
	int seen = 0;
	for (int i = 0; i < world->workers; i++) {
		struct worker *worker = &world->worker[i];
		if (worker->here && (!registered || !worker->coming) && draw(0, seen++) == 0)
			found = worker;
	}
	return found;
}

static void register_worker(struct worker *worker)
{
	worker->coming = true;
	world_enter(worker, COME);
	enum status status = queue_register(&worker->queue, &worker->self, NULL);
	world_leave();
	expect(status, "register", OK | TEMPORARY);
	TRACE("worker %d registers as %s: %d", (int)(worker - world->worker), worker->self.token,
		(int)status);
	if (status != STATUS_OK)
		return;
	worker->coming = false;
	if (!observer_has_worker(worker->self.token))
		VIOLATE("workers", "one that has registered is not there");
}

static struct worker *come(void)
{
	if (world->workers == MOST_WORKERS)
		return NULL;
	struct worker *worker = &world->worker[world->workers++];
	*worker = (struct worker){0};
	int machine = (int)draw(1, world->schedule->machines);
	/* The clocks of the machines differ by minutes. */
	process_new(&worker->process, machine, (machine - 1) * 200000);
	worker->thread.process = &worker->process;
	worker->here = true;
	worker->queue = world->queue;
	worker->self = (struct queue_worker){
		.index = UINT64_MAX, .slots = MOST_SLOTS, .period = 5000, .limit = 6};
	worker->exchange.left = CLOCK_NEVER;
	worker->exchange.worker = worker->self.token;
	register_worker(worker);
	return worker;
}

static void draw_end(struct queue_result *result)
{
	const struct schedule *s = world->schedule;
	static const int codes[] = {1, 1, 75, 75, 42, 43, 93};
	*result = (struct queue_result){.ended = clock_utc()};
	struct queue_ending *ending = &result->ending;
	if (chance(s->refuses)) {
		ending->kind = chance(500)   ? ENDING_CANNOT
			       : chance(500) ? ENDING_MACHINE
					     : ENDING_EXITED;
		ending->code = ending->kind == ENDING_EXITED ? 127 : 1;
	} else if (chance(s->fails)) {
		ending->kind = chance(700) ? ENDING_EXITED : (enum queue_ending_kind)draw(1, 3);
		ending->code = codes[draw(0, 6)];
	}
}

/* Some of what it holds has ended. */
static void end_some(struct worker *worker)
{
	struct queue_exchange *x = &worker->exchange;
	x->ended = worker->ended;
	x->ended_count = 0;
	for (int i = 0; i < worker->holds; i++) {
		struct hold *hold = &worker->hold[i];
		if (!hold->ended && chance(500)) {
			hold->ended = true;
			draw_end(&hold->result);
		}
		if (hold->ended)
			worker->ended[x->ended_count++] = (struct queue_ended){
				.id = hold->id, .token = hold->token, .result = hold->result};
	}
	x->want =
		chance(700) ? (size_t)draw(0, MOST_SLOTS - worker->holds + (int)x->ended_count) : 0;
	x->left = chance(800) ? CLOCK_NEVER : 30000;
}

static struct start *find_start(uint64_t id, const char *token)
{
	for (int i = world->starts - 1; i >= 0; i--)
		if (world->start[i].id == id && !strcmp(world->start[i].token, token))
			return &world->start[i];
	return NULL;
}

/* Whether the answer about an end is true. */
static void check_accepted(const struct queue_ended *ended)
{
	const struct start *start = find_start(ended->id, ended->token);
	const struct row *row = &world->tables.row[ended->id];
	bool still = row->there && !strcmp(row->token, ended->token);
	if (ended->accepted && start && !start->ended_by_worker)
		VIOLATE("one-result",
			"an end of command %" PRIu64 " is accepted from one that lost it",
			ended->id);
	if (!ended->accepted && start && start->ended_by_worker && still)
		VIOLATE("one-result", "an end of command %" PRIu64 " is refused", ended->id);
	if (ended->accepted && still && row->state != ended->state)
		VIOLATE("one-result", "command %" PRIu64 " is not where its worker believes",
			ended->id);
	world->statistics->zombies += !ended->accepted;
}

static void drop_ended(struct worker *worker)
{
	int kept = 0;
	for (int i = 0; i < worker->holds; i++)
		if (!worker->hold[i].ended)
			worker->hold[kept++] = worker->hold[i];
	worker->holds = kept;
}

/* Whether it is told of each of its commands that is to end, and of no other. */
static void check_told(const struct worker *worker)
{
	size_t wanted = 0;
	for (uint64_t id = 1; id <= MOST_COMMANDS; id++) {
		const struct row *row = &world->tables.row[id];
		wanted += row->there && row->asked >= 0 && !strcmp(row->worker, worker->self.token);
	}
	if (wanted != worker->exchange.told_count)
		VIOLATE("cancel", "a worker is told of %zu commands, and should of %zu",
			worker->exchange.told_count, wanted);
}

static void end_told(struct worker *worker)
{
	for (size_t i = 0; i < worker->exchange.told_count; i++)
		for (int k = 0; k < worker->holds; k++) {
			struct hold *hold = &worker->hold[k];
			if (hold->id != worker->exchange.told[i].id || hold->ended || chance(300))
				continue;
			hold->ended = true;
			hold->result = (struct queue_result){.ended = clock_utc()};
			hold->result.ending.kind =
				chance(700) ? ENDING_CANCELLED : ENDING_PREEMPTED;
			world->statistics->told++;
		}
}

static void hear(struct worker *worker)
{
	struct queue_exchange *x = &worker->exchange;
	for (size_t i = 0; i < x->ended_count; i++)
		check_accepted(&x->ended[i]);
	drop_ended(worker);
	for (size_t i = 0; i < x->taken_count; i++) {
		struct hold *hold = &worker->hold[worker->holds++];
		*hold = (struct hold){.id = x->taken[i].item.id};
		memcpy(hold->token, x->taken[i].token, sizeof(hold->token));
		if (x->taken[i].history.starts != world->tables.row[hold->id].history.starts)
			VIOLATE("history", "a worker gets another history");
	}
	check_told(worker);
	bool open = false;
	for (uint64_t id = 1; id <= MOST_COMMANDS; id++)
		open |= world->tables.row[id].there && world->tables.row[id].state <= QUEUE_RUNNING;
	if (open == x->drained)
		VIOLATE("drained", "a worker hears that nothing is open, or the contrary");
	if (x->failure != world->tables.failure)
		VIOLATE("failure", "a worker hears of another failure");
	world->statistics->faults += x->faults > 0;
	end_told(worker);
	queue_exchange_release(x);
}

static void exchange(struct worker *worker)
{
	if (!worker->calling)
		end_some(worker);
	worker->calling = true;
	bool registered = observer_has_worker(worker->self.token);
	world_enter(worker, WORK);
	enum status status = queue_exchange(&worker->queue, &worker->exchange, NULL);
	world_leave();
	expect(status, "an exchange", OK | NO | TEMPORARY);
	TRACE("worker %d hands in %zu and wants %zu, gets %zu: %d", (int)(worker - world->worker),
		worker->exchange.ended_count, worker->exchange.want, worker->exchange.taken_count,
		(int)status);
	if (status == STATUS_TEMPORARY)
		return;
	worker->calling = false;
	if ((status == STATUS_OK) != registered)
		VIOLATE("fenced", "a worker hears %s", registered ? "that it is dead" : "nothing");
	if (status == STATUS_OK) {
		hear(worker);
		return;
	}
	/* It is dead to the others: it ends its commands, and comes again. */
	queue_exchange_release(&worker->exchange);
	worker->holds = 0;
	*worker->self.token = '\0';
	worker->self.index = UINT64_MAX;
	register_worker(worker);
}

static void work(void)
{
	struct worker *worker = any_worker(false);
	if (worker && worker->coming)
		register_worker(worker);
	else if (worker)
		exchange(worker);
}

static void vanish(struct worker *worker)
{
	TRACE("worker %d vanishes", (int)(worker - world->worker));
	worker->here = false;
	queue_exchange_release(&worker->exchange);
}

static void fence(struct worker *judge, const char *token)
{
	uint64_t back = 0;
	bool registered = observer_has_worker(judge->self.token);
	world_enter(judge, FENCE);
	enum status status = queue_fence(&judge->queue, judge->self.token, token, &back, NULL);
	world_leave();
	expect(status, "a fence", OK | NO | TEMPORARY);
	TRACE("worker %d fences %s: %d", (int)(judge - world->worker), token, (int)status);
	if (status != STATUS_TEMPORARY && (status == STATUS_OK) != registered)
		VIOLATE("fenced", "one that is dead fences another");
	if (status == STATUS_OK && observer_has_worker(token))
		VIOLATE("fenced", "one that was fenced is still there");
}

static void fence_any(void)
{
	struct worker *judge = any_worker(true);
	const struct tables *t = &world->tables;
	if (!judge || t->workers < 2)
		return;
	const char *token = t->worker[draw(0, t->workers - 1)];
	char copy[QUEUE_TOKEN];
	memcpy(copy, token, sizeof(copy));
	if (strcmp(copy, judge->self.token) != 0)
		fence(judge, copy);
}

static void leave(void)
{
	struct worker *worker = any_worker(true);
	if (!worker || worker->calling)
		return;
	world_enter(worker, LEAVE);
	enum status status = queue_leave(&worker->queue, worker->self.token, NULL);
	world_leave();
	expect(status, "leaving", OK | TEMPORARY);
	TRACE("worker %d leaves: %d", (int)(worker - world->worker), (int)status);
	if (status == STATUS_OK && observer_has_worker(worker->self.token))
		VIOLATE("workers", "one that has left is still there");
	if (status == STATUS_OK)
		vanish(worker);
}

/* ---- People ---- */

static void change(enum act act)
{
	uint64_t ids[2];
	struct queue_selection set = {0};
	struct queue_changed changed = {0};
	struct parse_numbers gone = {0};
	int how = (int)draw(0, 9);
	if (how < 6 && world->tables.next > 1) {
		for (int i = 0; i < 2; i++)
			ids[i] = (uint64_t)draw(1, (int64_t)world->tables.next - 1);
		set.ids = ids;
		set.count = ids[0] == ids[1] ? 1 : 2;
	} else if (how < 9) {
		set.tag = "t";
	}
	world->has_by_ids = set.ids != NULL;
	world_enter(NULL, act);
	enum status status;
	if (act == CANCEL)
		status = queue_cancel(&world->queue, &set, &changed, NULL);
	else if (act == RETRY)
		status = queue_retry(&world->queue, &set, &changed, NULL);
	else
		status = queue_forget(&world->queue, &set, INT64_MAX, &gone, &changed, NULL);
	world_leave();
	for (size_t i = 0; i < gone.count; i++)
		if (world->tables.row[gone.items[i]].there)
			VIOLATE("kept", "command %" PRIu64 " is said to be gone", gone.items[i]);
	parse_numbers_release(&gone);
	expect(status, act_name(act), OK | TEMPORARY | (act == RETRY ? BROKEN : 0));
	TRACE("%s: %d, %" PRIu64 " changed", act_name(act), (int)status, changed.changed);
	if (status == STATUS_OK && set.ids &&
		changed.changed + changed.told + changed.refused + changed.absent != set.count)
		VIOLATE("answers", "%s counts wrongly", act_name(act));
	if (act == CANCEL && status == STATUS_OK)
		for (uint64_t id = 1; id <= MOST_COMMANDS; id++) {
			const struct row *row = &world->tables.row[id];
			bool chosen = set.ids ? id == ids[0] || (set.count == 2 && id == ids[1])
					      : !set.tag;
			if (chosen && row->there && row->state <= QUEUE_RUNNING && row->asked < 0)
				VIOLATE("cancel", "command %" PRIu64 " goes on after a cancel", id);
		}
}

static void raise_failure(void)
{
	world_enter(NULL, RAISE);
	enum status status = queue_raise(&world->queue, &world->failure, NULL);
	world_leave();
	expect(status, "raise", NO | BROKEN | TIMEOUT | TEMPORARY);
	TRACE("raise: %d, command %" PRIu64, (int)status, world->failure.id);
	world->raised += status == STATUS_BROKEN;
	world->statistics->raised += status == STATUS_BROKEN;
	if (status == STATUS_NO && world->tables.failure)
		VIOLATE("failure", "a failure is not told");
}

static enum status add_view(void *context, const struct queue_view *view)
{
	uint64_t *seen = context;
	const struct row *row = &world->tables.row[view->item.id];
	seen[view->item.id]++;
	if (!row->there || row->state != view->state)
		VIOLATE("look", "a list shows command %" PRIu64 " wrongly", view->item.id);
	if ((view->state == QUEUE_BLOCKED) != (view->after != NULL))
		VIOLATE("look", "what command %" PRIu64 " comes after is not shown", view->item.id);
	return STATUS_OK;
}

static void look(void)
{
	uint64_t in[QUEUE_STATES] = {0}, seen[MOST_COMMANDS + 1] = {0}, over = 0;
	uint64_t seen_over[MOST_COMMANDS + 1] = {0};
	struct queue_outcome outcome = {0};
	const struct queue_selection all = {0}, ended = {.beyond = &over};
	for (uint64_t id = 1; id <= MOST_COMMANDS; id++)
		if (world->tables.row[id].there)
			in[world->tables.row[id].state]++;
	world_enter(NULL, LOOK);
	bool looked = queue_outcome(&world->queue, &all, &outcome, NULL) == STATUS_OK &&
		      queue_visit(&world->queue, &all, add_view, seen, NULL) == STATUS_OK &&
		      queue_visit(&world->queue, &ended, add_view, seen_over, NULL) == STATUS_OK;
	world_leave();
	if (!looked)
		return;
	if (memcmp(in, outcome.in, sizeof(in)) != 0)
		VIOLATE("look", "the counts are wrong");
	if (outcome.open != in[QUEUE_BLOCKED] + in[QUEUE_WAITING] + in[QUEUE_RUNNING] ||
		!outcome.failed != !in[QUEUE_FAILED] || outcome.failure != world->tables.failure)
		VIOLATE("look", "the outcome is wrong");
	for (uint64_t id = 1; id <= MOST_COMMANDS; id++) {
		const struct row *row = &world->tables.row[id];
		if (seen[id] != row->there ||
			seen_over[id] != (row->there && row->state > QUEUE_RUNNING))
			VIOLATE("look", "command %" PRIu64 " is shown %" PRIu64 " times", id,
				seen[id]);
	}
}

/* ---- All ---- */

void actors_begin(void)
{
	for (int i = 0; i < SCHEDULERS; i++)
		world->scheduler[i] = (struct scheduler){0};
}

void actors_do(enum act act)
{
	struct worker *worker;
	world->statistics->acts[act]++;
	switch (act) {
	case SCHEDULE: schedule(); break;
	case COME: come(); break;
	case WORK: work(); break;
	case VANISH:
		worker = any_worker(false);
		if (worker)
			vanish(worker);
		break;
	case FENCE: fence_any(); break;
	case LEAVE: leave(); break;
	case CANCEL:
	case RETRY:
	case FORGET: change(act); break;
	case RAISE: raise_failure(); break;
	case LOOK: look(); break;
	case PASS: kernel.now += draw(1, 120000) * MS; break;
	case ACTS: break;
	}
}

/* From now on nothing is lost, and all goes well: then all must come to its end. */
void actors_drain(void)
{
	world->quiet = true;
	for (int i = 0; i < SCHEDULERS; i++) {
		struct scheduler *scheduler = &world->scheduler[i];
		if (!scheduler->calling)
			continue;
		raise_failure();
		drop_items(scheduler);
	}
	for (int i = 0; i < world->workers; i++)
		if (world->worker[i].here && chance(500))
			vanish(&world->worker[i]);
	if (world->workers == MOST_WORKERS)
		vanish(&world->worker[--world->workers]);
	struct worker *last = come();
	bool drained = false;
	for (int round = 0; round < 400 && !drained && !kernel.violated && last; round++) {
		raise_failure();
		for (int i = 0; i < world->tables.workers; i++) {
			char token[QUEUE_TOKEN];
			memcpy(token, world->tables.worker[i], sizeof(token));
			if (strcmp(token, last->self.token) != 0)
				fence(last, token);
		}
		for (int i = 0; i < last->holds; i++) {
			last->hold[i].ended = true;
			last->hold[i].result = (struct queue_result){.ended = clock_utc()};
		}
		end_some(last);
		last->exchange.left = CLOCK_NEVER;
		last->exchange.want =
			(size_t)(MOST_SLOTS - last->holds) + last->exchange.ended_count;
		last->calling = true;
		exchange(last);
		kernel.now += 400000 * MS; /* pauses end */
		drained = !world->tables.failure;
		for (uint64_t id = 1; id <= MOST_COMMANDS; id++)
			drained &= !world->tables.row[id].there ||
				   world->tables.row[id].state > QUEUE_RUNNING;
	}
	if (!drained)
		VIOLATE("ends", "not all comes to its end");
}

void actors_check_end(void)
{
	for (int i = 0; i < MOST_COMMANDS; i++) {
		const struct spec *spec = &world->spec[i];
		if (spec->acknowledged && !world->forgotten[spec->id] &&
			!world->tables.row[spec->id].there)
			VIOLATE("acknowledged", "command %" PRIu64 " is lost", spec->id);
	}
	/* One whose answer was lost is told again to the same caller, and to no other. */
	if (world->raised > world->cleared)
		VIOLATE("failure", "%" PRIu64 " failures are told, and %" PRIu64 " were there",
			world->raised, world->cleared);
	if (world->raised + 1 < world->cleared)
		VIOLATE("failure", "a failure is not told");
}

void actors_release(void)
{
	for (int i = 0; i < SCHEDULERS; i++)
		drop_items(&world->scheduler[i]);
	for (int i = 0; i < MOST_WORKERS; i++)
		queue_exchange_release(&world->worker[i].exchange);
}
