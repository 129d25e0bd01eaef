/* SPDX-License-Identifier: MIT */
/* What the processes of the world run: workers, schedulers, and people. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../../../src/preempt-queue/client.h"
#include "queue/after.h"
#include "sim.h"

struct node *node_current(void)
{
	return (struct node *)process_current();
}

struct node *node_new(enum role role, int number, int machine)
{
	if (world->nodes == MOST_NODES)
		return NULL;
	const struct schedule *s = world->schedule;
	struct node *node = &world->node[world->nodes];
	*node = (struct node){.role = role, .number = number, .began = kernel.now};
	if (!process_new(&node->process, machine, s->clock[machine]))
		return NULL;
	world->nodes++;
	node->process.sees_others = s->sees_others;
	return node;
}

void node_guarded(struct process *process, struct reaper *reaper)
{
	struct node *node = (struct node *)process;
	node->self =
		reaper ? (struct work *)((char *)reaper - offsetof(struct work, reaper)) : NULL;
	node->has_resource = false;
}

void node_kill(struct node *node)
{
	if (!process_lives(&node->process))
		return;
	TRACE("process %d dies", node->process.who.pid);
	process_kill(&node->process);
	commands_of_node_end(node);
	node->self = NULL;
	node->ended = kernel.now;
}

void node_silence(struct node *node, int64_t from, int64_t until)
{
	if (node->silent_until < from)
		node->silent_since = from;
	if (node->silent_until < until)
		node->silent_until = until;
}

static void exit_node(struct node *node, int code)
{
	TRACE("process %d exits with %d", node->process.who.pid, code);
	node->code = code;
	node->ended = kernel.now;
	commands_of_node_end(node);
	process_exit(&node->process);
}

/* As often as it takes: what is tried here is not how a store is opened. */
static struct store *open_store(void)
{
	struct store *store = NULL;
	while (store_open(&store, STORE, STORE_CREATE, clock_after(10000), NULL) != STATUS_OK)
		clock_sleep_until(clock_after(500));
	return store;
}

/* ---- Workers ---- */

static void *work(void *context)
{
	struct node *node = context;
	struct queue queue;
	struct store *store = open_store();
	int code = STATUS_TEMPORARY;
	if (queue_open(&queue, store, QUEUE, NULL, NULL) == STATUS_OK) {
		code = work_run(&queue, &node->options);
		queue_release(&queue);
	}
	store_close(store);
	exit_node(node, code);
	return NULL;
}

void worker_begin(int number)
{
	const struct schedule *s = world->schedule;
	static char names[MOST_NODES][16], world_name[] = "world";
	static struct source notices = {.name = world_name};
	struct node *node = node_new(WORKER, number, number / s->per_machine % MOST_WORKERS);
	if (!node)
		return;
	char *name = names[node->process.index];
	snprintf(name, sizeof(names[0]), "w%d", number);
	node->watch.sources[0].source = &notices;
	node->options = (struct work_options){.url = STORE,
		.worker = name,
		.index = UINT64_MAX,
		.slots = s->slots,
		.idle_exit = world->closing ? -1 : s->idle_exit,
		.watch = &node->watch,
		.grace = s->grace,
		.term_signal = SIGTERM,
		.kill_after = s->kill_after,
		.period = s->period,
		.limit = s->silent_limit};
	process_new_thread(&node->process, work, node);
}

/* ---- Schedulers ---- */

static void fill(struct queue_item *item, int number)
{
	static char name[] = RESOURCE, *const resources[] = {name, NULL};
	const struct spec *spec = &world->schedule->spec[number];
	char **argv = calloc(3, sizeof(*argv));
	argv[0] = strdup("command");
	(void)asprintf(&argv[1], "%d", number);
	*item = (struct queue_item){.argv = argv,
		.resources = spec->uses_resource ? (char **)resources : NULL,
		.priority = spec->priority,
		.max_attempts = spec->max_attempts,
		.max_transient = spec->max_transient,
		.timeout = spec->timeout,
		.halt = spec->halt,
		.scheduled = clock_utc()};
}

/* It comes after those of its spec that are there by now. */
static void block(struct queue *queue, struct queue_item *item, const struct spec *spec)
{
	const struct keys *k = &world->keys;
	uint64_t numbers[MOST_AFTER], seen = 0;
	struct parse_numbers ids = {.items = numbers};
	struct error err;
	for (int i = 0; i < k->items; i++)
		for (int a = 0; a < MOST_AFTER; a++)
			if (k->item[i].spec == spec->after[a] && k->item[i].place != NOWHERE &&
				!(seen & (UINT64_C(1) << i))) {
				seen |= UINT64_C(1) << i;
				numbers[ids.count++] = (uint64_t)i + 1;
			}
	enum status status = ids.count ? STATUS_TEMPORARY : STATUS_OK;
	while (status == STATUS_TEMPORARY) {
		status = queue_after(queue, &ids, false, &item->after, &err);
		if (status == STATUS_TEMPORARY)
			clock_sleep_until(clock_after(300));
	}
	for (int i = 0; i < k->items; i++)
		if (!item->after && status == STATUS_OK && (seen & (UINT64_C(1) << i)) &&
			!k->item[i].has_succeeded)
			VIOLATE("after", "command %d counts as succeeded", i + 1);
}

static void empty(struct queue_item *item)
{
	item->resources = NULL;
	queue_item_release(item);
}

/* One batch, from spec number first on. False: it does not go on after this. */
static bool schedule_batch(struct node *node, struct queue *queue, int first, int count, int number)
{
	char once[16];
	struct queue_item items[MOST_SPECS];
	struct queue_schedule how = {.limit = world->schedule->limit,
		.deadline = CLOCK_NEVER,
		.once = world->schedule->once ? once : NULL,
		.wake = -1};
	struct error err;
	enum status status;
	snprintf(once, sizeof(once), "s%d", node->number);
	for (int i = 0; i < count; i++) {
		fill(&items[i], first + i);
		block(queue, &items[i], &world->schedule->spec[first + i]);
	}
	do {
		status = queue_schedule(queue, items, (size_t)count, (uint64_t)number, &how, &err);
		if (status == STATUS_TEMPORARY && how.once)
			clock_sleep_until(clock_after(300));
	} while ((status == STATUS_TEMPORARY && how.once) ||
		 (status == STATUS_BROKEN && (how.once || !world->schedule->way.late_commit)));
	for (int i = 0; i < count; i++) {
		if (status == STATUS_OK)
			world->acknowledged[first + i] = true;
		if (status == STATUS_OK && world->keys.item[items[i].id - 1].spec != first + i)
			VIOLATE("acknowledged", "id %" PRIu64 " is not what was scheduled",
				items[i].id);
		empty(&items[i]);
	}
	if (status == STATUS_OK)
		(void)queue_carry_on(queue, NULL, NULL);
	if (status != STATUS_OK)
		TRACE("scheduler %d: %s", node->number, err.text);
	return status == STATUS_OK;
}

static void *schedule(void *context)
{
	struct node *node = context;
	const struct schedule *s = world->schedule;
	struct store *store = open_store();
	struct queue queue;
	int share = (s->specs + s->schedulers - 1) / s->schedulers, from = node->number * share;
	int to = from + share < s->specs ? from + share : s->specs;
	if (queue_open(&queue, store, QUEUE, NULL, NULL) == STATUS_OK) {
		for (int at = from; at < to; at += s->batch) {
			int count = to - at < s->batch ? to - at : s->batch;
			if (!schedule_batch(node, &queue, at, count, at - from))
				break;
		}
		queue_release(&queue);
	}
	store_close(store);
	world->schedulers_done++;
	exit_node(node, 0);
	return NULL;
}

void scheduler_begin(int number)
{
	struct node *node = node_new(SCHEDULER, number, MOST_WORKERS);
	if (node)
		process_new_thread(&node->process, schedule, node);
}

/* ---- Who waits ---- */

static void *join(void *context)
{
	struct node *node = context;
	static const struct args_rest nothing;
	client_options.store = STORE;
	client_options.queue = QUEUE;
	int code = run_join(&nothing);
	node->code = code;
	check_joined(node);
	exit_node(node, code);
	return NULL;
}

void joiner_begin(void)
{
	struct node *node = node_new(JOINER, 0, MOST_WORKERS);
	if (!node)
		return;
	if (world->closing)
		world->closer = node->process.index;
	process_new_thread(&node->process, join, node);
}

/* ---- Who cancels, retries, forgets ---- */

static void *change(void *context)
{
	struct node *node = context;
	struct queue queue;
	struct store *store = open_store();
	enum queue_change how = node->deed == CANCEL   ? QUEUE_CANCEL
				: node->deed == FORGET ? QUEUE_FORGET
				: node->deed == RETRY  ? QUEUE_RETRY
						       : QUEUE_RETRY_ANY;
	enum queue_changed changed;
	enum status status = STATUS_TEMPORARY;
	if (queue_open(&queue, store, QUEUE, NULL, NULL) == STATUS_OK) {
		for (int i = 0; i < 5 && status == STATUS_TEMPORARY; i++)
			status = queue_change(&queue, how, &node->id, 1, &changed, NULL);
		if (status == STATUS_OK &&
			(changed == QUEUE_CHANGED_NOT || changed == QUEUE_CHANGED_ABSENT))
			status = STATUS_NO;
		queue_release(&queue);
	}
	store_close(store);
	exit_node(node, (int)status);
	return NULL;
}

void person_begin(enum deed deed, uint64_t id)
{
	struct node *node = node_new(PERSON, 0, MOST_WORKERS);
	if (!node)
		return;
	node->deed = deed;
	node->id = id;
	process_new_thread(&node->process, change, node);
}
