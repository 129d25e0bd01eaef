/* SPDX-License-Identifier: MIT */
/* The events of the world, and the deeds of fate. */
#include <inttypes.h>
#include <string.h>

#include "sim.h"

#define LIMIT 3600000 /* ms: after this whichever worker waits still, waits for ever */

struct world *world;

/* ---- Whom and what ---- */

static struct node *live_worker(void)
{
	int found[MOST_NODES], count = 0;
	for (int i = 0; i < world->nodes; i++)
		if (world->node[i].role == WORKER && process_lives(&world->node[i].process))
			found[count++] = i;
	return count ? &world->node[found[random_in(&kernel.random, 0, count - 1)]] : NULL;
}

/* The one that pulled the trigger, where it is a worker that lives, else any. */
static struct node *subject_of(int act)
{
	int index = world->subject[act];
	struct node *node = index == NOBODY ? NULL : &world->node[index];
	return node && node->role == WORKER && process_lives(&node->process) ? node : live_worker();
}

/* A command to which this can be done, most of the time. */
static uint64_t choose_item(enum deed deed)
{
	const struct keys *k = &world->keys;
	int chosen = 0;
	for (int tries = 0; tries < 4 && k->items; tries++) {
		chosen = (int)random_in(&kernel.random, 0, k->items - 1);
		if ((k->item[chosen].place == OVER) == (deed != CANCEL))
			break;
	}
	return (uint64_t)chosen + 1;
}

/* ---- Deeds ---- */

static void pause_worker(struct node *node, int64_t length)
{
	if (node->process.paused_until < kernel.now + length)
		node->process.paused_until = kernel.now + length;
	node_silence(node, kernel.now, kernel.now + length);
}

static void cut_off(struct node *node, int64_t length)
{
	if (node->process.cut_off_until < kernel.now + length)
		node->process.cut_off_until = kernel.now + length;
	node_silence(node, kernel.now, kernel.now + length);
}

static void kill_command(void)
{
	for (int i = world->commands - 1; i >= 0; i--)
		if (!world->command[i].ended && world->command[i].start != NOBODY) {
			command_end(i, 139);
			return;
		}
}

static void kill_clients(int64_t after)
{
	for (int i = 0; i < world->nodes; i++) {
		struct node *node = &world->node[i];
		if (node->role == WORKER || !process_lives(&node->process))
			continue;
		node_kill(node);
		if (node->role == SCHEDULER && world->schedule->once)
			kernel_at(kernel.now + after, EVENT_SCHEDULER, node->number, 0);
		else if (node->role == SCHEDULER)
			world->schedulers_done++;
	}
}

static void outage(int64_t length)
{
	for (int i = 0; i < world->nodes; i++)
		cut_off(&world->node[i], length);
}

static void signal_worker(struct node *node)
{
	node->process.signal = 15;
	process_poke(&node->process);
}

static void do_to_worker(struct node *node, enum deed deed, int64_t length)
{
	switch (deed) {
	case RESTART_WORKER:
		kernel_at(kernel.now + length, EVENT_WORKER, node->number, 0);
		node_kill(node);
		break;
	case KILL_WORKER: node_kill(node); break;
	case PAUSE_WORKER: pause_worker(node, length); break;
	case CUT_OFF: cut_off(node, length); break;
	case GIVE_NOTICE:
		(void)process_give_notice(&node->process, length < 0 ? -1 : length / MS);
		break;
	case SIGNAL_WORKER: signal_worker(node); break;
	default: break;
	}
}

static void do_deed(int number)
{
	const struct act *act = &world->schedule->act[number];
	int64_t length = act->amount * MS;
	if (world->closing)
		return;
	world->statistics->deeds[act->deed]++;
	TRACE("FATE: %s, %" PRId64 " ms", deed_name(act->deed), act->amount);
	switch (act->deed) {
	case OUTAGE: outage(length); return;
	case FULL_STORE: kernel.full_until = kernel.now + length; return;
	case KILL_COMMAND: kill_command(); return;
	case NEW_WORKER: worker_begin((int)random_in(&kernel.random, 0, MOST_WORKERS - 1)); return;
	case CANCEL:
	case RETRY:
	case RETRY_ANY:
	case FORGET: person_begin(act->deed, choose_item(act->deed)); return;
	case JOIN: joiner_begin(); return;
	case KILL_CLIENTS: kill_clients(length); return;
	default: break;
	}
	struct node *node = subject_of(number);
	if (node)
		do_to_worker(node, act->deed, length);
}

void world_trigger(enum trigger trigger, const struct node *node)
{
	const struct schedule *s = world->schedule;
	int nth = world->seen[trigger]++;
	for (int i = 0; i < s->acts; i++) {
		if (s->act[i].trigger != trigger || s->act[i].nth != nth)
			continue;
		world->subject[i] = node ? node->process.index : NOBODY;
		kernel_at(kernel.now + s->act[i].delay * MS, EVENT_ACT, i, 0);
	}
}

/* ---- The end: what was to come has come, and what is left must get done ---- */

static void begin_closing(void)
{
	world->closing = true;
	kernel.way.lost_before = kernel.way.lost_after = kernel.way.late_commit = 0;
	kernel.full_until = 0;
	for (int i = 0; i < world->nodes; i++) {
		struct node *node = &world->node[i];
		node->process.cut_off_until = 0;
		if (node->role == PERSON)
			node_kill(node);
	}
	TRACE("from here on nothing more comes");
	worker_begin(MOST_WORKERS - 1);
}

static void close_world(void)
{
	if (!world->closing)
		begin_closing();
	if (world->schedulers_done < world->schedule->schedulers)
		kernel_at(kernel.now + 500 * MS, EVENT_CLOSE, 0, 0);
	else
		joiner_begin();
}

static bool is_over(void)
{
	return world->closer != NOBODY && !process_lives(&world->node[world->closer].process);
}

static void happen(const struct event *event)
{
	switch ((enum event_kind)event->kind) {
	case EVENT_ACT: do_deed(event->who); break;
	case EVENT_COMMAND:
		if (event->epoch == world->command[event->who].epoch)
			command_end(event->who, world->command[event->who].code);
		break;
	case EVENT_WORKER: worker_begin(event->who); break;
	case EVENT_SCHEDULER: scheduler_begin(event->who); break;
	case EVENT_CLOSE: close_world(); break;
	}
}

static void inspect(struct process *process)
{
	struct node *node = (struct node *)process;
	if (!node->self || !node->self->registered ||
		!strcmp(node->token, node->self->worker.token))
		return;
	memcpy(node->token, node->self->worker.token, sizeof(node->token));
	check_anew(node);
}

static int64_t closing_time(const struct schedule *s)
{
	int64_t time = 4000;
	for (int i = 0; i < s->acts; i++) {
		int64_t end = s->act[i].delay + (s->act[i].amount > 0 ? s->act[i].amount : 0);
		if (time < end + 2000)
			time = end + 2000;
	}
	return time;
}

static void define_resource(void)
{
	static char build[] = "build", *const argv[] = {build, NULL};
	struct queue queue;
	if (queue_open(&queue, kernel.store, QUEUE, NULL, NULL) == STATUS_OK)
		(void)resource_define(&queue, RESOURCE, argv, "/", NULL);
	queue_release(&queue);
}

static void set_up(struct world *w, const struct schedule *s, struct statistics *stats, FILE *trace)
{
	static const struct kernel_world hooks = {
		.happen = happen, .guarded = node_guarded, .inspect = inspect};
	memset(w, 0, sizeof(*w));
	world = w;
	w->schedule = s;
	w->statistics = stats;
	w->closer = NOBODY;
	kernel_begin(&hooks, "q", &s->way, s->seed, trace);
	observer_begin();
	define_resource();
	for (int i = 0; i < s->schedulers; i++)
		scheduler_begin(i);
	for (int i = 0; i < s->workers; i++)
		worker_begin(i);
	kernel_at(kernel.now + closing_time(s) * MS, EVENT_CLOSE, 0, 0);
	world_trigger(AT_START, NULL);
}

bool world_run(struct world *w, const struct schedule *s, struct statistics *stats, FILE *trace)
{
	set_up(w, s, stats, trace);
	int64_t horizon = kernel.now + (closing_time(s) + LIMIT) * MS;
	while (!kernel.violated && !is_over() && kernel_next() <= horizon)
		kernel_step();
	stats->events += kernel.happened;
	stats->lost_answers += kernel.lost_answers;
	stats->late_commits += kernel.late_commits;
	if (!kernel.violated)
		check_end();
	kernel_end();
	return !kernel.violated;
}
