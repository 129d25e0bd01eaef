/* SPDX-License-Identifier: MIT */
/* The agents, the lock that they wait for, and what each of them costs. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "scale.h"
#include "support/backends/memory.h"

#define STORE	    "shim:memory:scale"
#define APART	    500	 /* ms between the first and the last start of an agent */
#define SETTLED	    5000 /* ms of training before the notice */
#define LONGEST	    (INT64_C(3600000) * MS) /* us that a run may take */
#define TEN_BILLION UINT64_C(10000000000)   /* events: a run ends by its time */

struct world scale_world;

/* ---- The lock ---- */

static struct cost *cost_of(const struct process *process)
{
	struct world *w = &scale_world;
	return &w->cost[w->phase][((const struct node *)process)->agent];
}

static bool is_cut_off(const struct process *process)
{
	const struct world *w = &scale_world;
	return w->scale->cut && w->phase == PHASE_END &&
	       ((const struct node *)process)->agent < w->scale->lost;
}

static void wait_for_lock(int64_t deadline, struct shim_fate *fate)
{
	struct world *w = &scale_world;
	int64_t begins = w->lock_free_at > kernel.now ? w->lock_free_at : kernel.now;
	int64_t wait = begins - kernel.now, left = (deadline - clock_now()) * MS;
	if (deadline != CLOCK_NEVER && wait > left) {
		w->at.refused++;
		fate->before = left > 0 ? left : 0;
		fate->loss = SHIM_REQUEST_LOST;
		return;
	}
	w->lock_free_at = begins + w->scale->lock;
	fate->before = wait + w->scale->lock;
	if (w->phase != PHASE_END)
		return;
	w->at.lock_held += w->scale->lock;
	if (wait > w->at.longest_wait)
		w->at.longest_wait = wait;
}

static void decide(void *context, enum shim_call call, int64_t deadline, struct shim_fate *fate)
{
	const struct process *process = process_current();
	(void)context;
	if (!process)
		return;
	machine_spin();
	if (is_cut_off(process) && call != SHIM_WAIT) {
		*fate = (struct shim_fate){.before = 1000 * MS, .loss = SHIM_REQUEST_LOST};
		return;
	}
	switch (call) {
	case SHIM_TXN:
	case SHIM_READ:
		*(call == SHIM_TXN ? &cost_of(process)->writes : &cost_of(process)->reads) += 1;
		wait_for_lock(deadline, fate);
		break;
	case SHIM_WAIT:
		fate->after = random_in(&kernel.random, 0, scale_world.scale->look * MS);
		break;
	default: break;
	}
}

static void answered(void *context, size_t entries, size_t bytes)
{
	const struct process *process = process_current();
	(void)context;
	if (!process)
		return;
	cost_of(process)->entries += entries;
	cost_of(process)->bytes += bytes;
}

static void changed(
	void *context, const struct store_op *ops, size_t count, store_revision revision)
{
	struct moments *at = &scale_world.at;
	(void)context, (void)revision;
	for (size_t i = 0; i < count; i++) {
		if (ops[i].kind != STORE_PUT)
			continue;
		if (strstr(ops[i].key, "RUN_TO_CHECKPOINT") && !at->decided)
			at->decided = kernel.now;
		else if (strstr(ops[i].key, "/ALL_SAVED/") && !at->all_saved)
			at->all_saved = kernel.now;
		else if (strstr(ops[i].key, "/SAVED/"))
			at->last_saved_key = kernel.now;
		else if (strstr(ops[i].key, "/CLOSED"))
			at->closed = kernel.now;
	}
}

/* ---- What happens ---- */

void world_commands_started(void)
{
	struct world *w = &scale_world;
	if (++w->started < w->tasks)
		return;
	w->phase = PHASE_TRAIN;
	w->at.joined = kernel.now;
	if (w->scale->ends)
		return;
	int64_t time = kernel.now + SETTLED * MS;
	for (int i = 0; i < w->scale->agents && w->scale->all_noticed; i++)
		kernel_at(time + random_in(&kernel.random, 0, 100 * MS), EVENT_NOTICE, i, 0);
	kernel_at(time, EVENT_NOTICE, w->scale->agents / 2, 0);
}

static void begin_end(void)
{
	if (scale_world.phase != PHASE_TRAIN)
		return;
	scale_world.phase = PHASE_END;
	scale_world.at.end_began = kernel.now;
}

void world_command_finished(void)
{
	begin_end();
}

static void happen(const struct event *event)
{
	struct world *w = &scale_world;
	int who = event->who;
	switch ((enum event_kind)event->kind) {
	case EVENT_TRAINING:
		if (event->epoch == w->task[who].epoch)
			training_event(who);
		break;
	case EVENT_HOLD: training_hold_changed(who); break;
	case EVENT_ENDED:
		w->task[who].unreaped = true;
		process_poke(&w->node[who / w->scale->per_agent].process);
		break;
	case EVENT_NOTICE:
		begin_end();
		for (int i = 0; i < w->scale->lost && !w->scale->cut; i++)
			process_kill(&w->node[i].process);
		(void)process_give_notice(&w->node[who].process, w->scale->deadline);
		break;
	}
}

static void guarded(struct process *process, struct reaper *reaper)
{
	(void)process, (void)reaper;
}

/* What the lost have not saved makes the checkpoint incomplete. */
static int right_code(void)
{
	const struct scale *what = scale_world.scale;
	return what->ends ? STATUS_OK : what->lost ? CODE_PREEMPTED : CODE_SAVED;
}

static void *run_agent(void *context)
{
	struct node *node = context;
	struct agent_end end;
	kernel_sleep(random_in(&kernel.random, 0, APART * MS));
	node->code = agent_run(&node->options, &end);
	agent_end_release(&end);
	process_exit(&node->process);
	if (node->agent < scale_world.scale->lost)
		return NULL;
	if (node->code != right_code())
		kernel_violate("code", "agent %d leaves with %d", node->agent, node->code);
	scale_world.exited++;
	scale_world.at.gone = kernel.now;
	return NULL;
}

/* With the defaults of preempt-run. */
static void begin_agent(struct node *node, int agent)
{
	static char name[] = "train", *const command[] = {name, NULL};
	const struct world *w = &scale_world;
	uint64_t count = (uint64_t)w->scale->per_agent;
	if (!process_new(&node->process, agent, 0))
		abort();
	node->agent = agent;
	node->identity = (struct identity){.run = "scale",
		.is_task = true,
		.task = (uint64_t)agent * count,
		.count = count,
		.tasks = (uint64_t)w->tasks,
		.launch = "slurm:7:0"};
	node->options = (struct agent_options){.identity = &node->identity,
		.store = STORE,
		.command = command,
		.grace = -1,
		.exit_code = CODE_SAVED,
		.join_timeout = 300000,
		.kill_after = 5000,
		.beats = {.period = HEARTBEAT_PERIOD,
			.timeout = heartbeat_timeout(HEARTBEAT_PERIOD),
			.limit = HEARTBEAT_LIMIT,
			.first = HEARTBEAT_FIRST},
		.agreement = {.report_timeout = w->scale->report_timeout,
			.save_timeout = AGREEMENT_SAVE_TIMEOUT,
			.startup = AGREEMENT_STARTUP}};
	process_new_thread(&node->process, run_agent, node);
}

static void set_up(const struct scale *what)
{
	static const struct kernel_world hooks = {
		.happen = happen, .guarded = guarded, .most_events = TEN_BILLION};
	static const struct memory_observer observer = {.changed = changed};
	static const struct way way = {0};
	struct world *w = &scale_world;
	size_t agents = (size_t)what->agents;
	*w = (struct world){.scale = what, .tasks = what->agents * what->per_agent};
	w->task = calloc((size_t)w->tasks, sizeof(*w->task));
	w->node = calloc(agents, sizeof(*w->node));
	for (int i = 0; i < PHASES; i++)
		w->cost[i] = calloc(agents, sizeof(*w->cost[i]));
	if (!w->task || !w->node || !w->cost[0] || !w->cost[1] || !w->cost[2])
		abort();
	kernel_begin(&hooks, "scale", &way, 1, NULL);
	kernel.shim.decide = decide;
	kernel.shim.answered = answered;
	memory_observe(&observer);
	w->at.began = kernel.now;
	for (int i = 0; i < what->agents; i++)
		begin_agent(&w->node[i], i);
}

static void give_back(void)
{
	struct world *w = &scale_world;
	free(w->task);
	free(w->node);
	for (int i = 0; i < PHASES; i++)
		free(w->cost[i]);
}

/* All have left with the right code, and have saved the same step. */
static void judge(struct report *report)
{
	const struct world *w = &scale_world;
	int others = 0, living = w->scale->agents - w->scale->lost;
	const struct task *last = &w->task[w->tasks - 1];
	for (int i = w->scale->lost * w->scale->per_agent; i < w->tasks && !w->scale->ends; i++)
		others += !w->task[i].has_saved || w->task[i].saved != last->saved;
	if (!kernel.violated && w->exited < living)
		kernel_violate("time", "%d agents have exited", w->exited);
	if (others)
		kernel_violate("step", "%d tasks have not saved the same step", others);
	if (kernel.violated)
		snprintf(report->wrong, sizeof(report->wrong), "%s: %s", kernel.violated,
			kernel.detail);
}

void scale_run(const struct scale *what, struct report *report)
{
	static bool before;
	struct world *w = &scale_world;
	if (before)
		give_back();
	before = true;
	set_up(what);
	while (!kernel.violated && w->exited < what->agents - what->lost &&
		kernel_next() < w->at.began + LONGEST)
		kernel_step();
	*report = (struct report){.at = w->at};
	for (int i = 0; i < PHASES; i++)
		report->cost[i] = w->cost[i];
	judge(report);
	memory_observe(NULL);
	kernel_end();
}
