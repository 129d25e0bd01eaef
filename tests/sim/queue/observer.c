/* SPDX-License-Identifier: MIT */
/*
 * Reads each transaction of the queue when it is committed, and says whether it may be. It knows
 * what the store holds, what the commands of the world have done, and nothing of what the code that
 * is tried thinks.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "queue/moves.h"
#include "queue/rules.h"
#include "sim.h"
#include "support/backends/memory.h"

#define PREFIX "queue/" QUEUE "/"

/* What one transaction does to one command. */
struct change {
	uint64_t id;
	bool asked, forgotten;		/* item/ID */
	bool blocks, waits, runs, over; /* put */
	bool left_blocked, left_waiting, left_running, left_over;
	bool told, untold;
	int spec;
	uint64_t blocked_by;
	struct queue_history history;
	struct queue_lease lease;
	struct queue_result result;
	char out[64];
};

/* One transaction. */
struct commit {
	struct change change[600];
	int changes;
	bool failed, raised; /* the key error comes, goes */
	uint64_t error;
};

static struct commit commit;

struct start *start_of(const char *token)
{
	for (int i = world->keys.starts - 1; i >= 0; i--)
		if (!strcmp(world->keys.start[i].token, token))
			return &world->keys.start[i];
	return NULL;
}

static struct registration *worker_of(const char *token)
{
	for (int i = world->keys.workers - 1; i >= 0; i--)
		if (!strcmp(world->keys.worker[i].token, token))
			return &world->keys.worker[i];
	return NULL;
}

static bool may_act(const char *token)
{
	const struct registration *worker = worker_of(token);
	return worker && worker->here && !worker->fenced;
}

/* ---- Reading ---- */

static struct change *change_of(const char *name)
{
	uint64_t id;
	if (!queue_key_id(name, &id))
		return NULL;
	for (int i = 0; i < commit.changes; i++)
		if (commit.change[i].id == id)
			return &commit.change[i];
	struct change *change = &commit.change[commit.changes++];
	*change = (struct change){.id = id, .spec = NOBODY};
	return change;
}

static void must_read(const struct queue_record *kind, const struct store_op *op, void *record)
{
	const struct store_entry entry = {
		.key = (char *)op->key, .value = (char *)op->value, .length = op->length};
	if (queue_read(kind, &entry, record, NULL) != STATUS_OK)
		VIOLATE("readable", "%s cannot be read", op->key);
}

static void read_item(const struct store_op *op, struct change *change)
{
	struct queue_item item = {0};
	change->asked = op->kind == STORE_PUT;
	change->forgotten = !change->asked;
	if (!change->asked)
		return;
	must_read(&queue_item_record, op, &item);
	change->spec = item.argv && item.argv[1] ? atoi(item.argv[1]) : NOBODY;
	queue_item_release(&item);
}

static void read_blocked(const struct store_op *op, struct change *change)
{
	struct queue_blocked blocked = {0};
	struct parse_numbers ids = {0};
	must_read(&queue_blocked_record, op, &blocked);
	(void)parse_numbers(blocked.after ? blocked.after : "", MOST_SPECS, &ids, "after", NULL);
	for (size_t i = 0; i < ids.count; i++)
		change->blocked_by |= UINT64_C(1) << (ids.items[i] - 1);
	change->history = blocked.history;
	parse_numbers_release(&ids);
	free(blocked.after);
}

static void read_place(const struct store_op *op, const char *name)
{
	struct change *change = change_of(name);
	bool put = op->kind == STORE_PUT;
	if (!change)
		return;
	switch (*name) {
	case 'i': read_item(op, change); break;
	case 'b':
		*(put ? &change->blocks : &change->left_blocked) = true;
		if (put)
			read_blocked(op, change);
		break;
	case 'w':
		*(put ? &change->waits : &change->left_waiting) = true;
		if (put)
			must_read(&queue_history_record, op, &change->history);
		break;
	case 'r':
		*(put ? &change->runs : &change->left_running) = true;
		if (put)
			must_read(&queue_lease_record, op, &change->lease);
		break;
	case 'd':
		*(put ? &change->over : &change->left_over) = true;
		if (put)
			must_read(&queue_result_record, op, &change->result);
		break;
	case 'c': *(put ? &change->told : &change->untold) = true; break;
	case 'o':
		if (put)
			snprintf(change->out, sizeof(change->out), "%.*s", (int)op->length,
				(const char *)op->value);
		break;
	default: break;
	}
}

static struct tally *tally_of(const char *who)
{
	struct keys *k = &world->keys;
	int free = NOBODY;
	for (int i = 0; i < k->tallies; i++) {
		if (!strcmp(k->tally[i].who, who))
			return &k->tally[i];
		if (!*k->tally[i].who)
			free = i;
	}
	assert(free != NOBODY || k->tallies < MOST_TALLIES);
	struct tally *tally = &k->tally[free == NOBODY ? k->tallies++ : free];
	*tally = (struct tally){0};
	snprintf(tally->who, sizeof(tally->who), "%s", who);
	return tally;
}

static void read_tally(const struct store_op *op, const char *who)
{
	struct tally *tally = tally_of(who);
	if (op->kind == STORE_PUT)
		must_read(&queue_tally_record, op, &tally->counts);
	else
		*tally = (struct tally){0};
}

static void read_error(const struct store_op *op)
{
	struct queue_failure failure;
	commit.raised = op->kind == STORE_DELETE;
	if (commit.raised)
		return;
	must_read(&queue_failure_record, op, &failure);
	commit.failed = true;
	commit.error = failure.id;
}

/* ---- Workers ---- */

static bool has_leases(const char *worker)
{
	for (int i = 0; i < world->keys.items; i++) {
		const struct item *item = &world->keys.item[i];
		if (item->place == RUNNING &&
			!strcmp(world->keys.start[item->start].worker, worker))
			return true;
	}
	return false;
}

static void come(const struct queue_worker *read)
{
	struct keys *k = &world->keys;
	int node = NOBODY;
	for (int i = 0; i < world->nodes; i++)
		if (world->node[i].process.who.pid == read->process.pid)
			node = i;
	assert(k->workers < MOST_NODES * 2);
	for (int i = 0; i < k->workers; i++)
		if (k->worker[i].here && k->worker[i].beat == read->beat)
			VIOLATE("beats", "two workers have beat number %" PRIu64, read->beat);
	struct registration *worker = &k->worker[k->workers++];
	*worker = (struct registration){.here = true, .node = node, .beat = read->beat};
	memcpy(worker->token, read->token, sizeof(worker->token));
	TRACE("worker %s of process %d is here", read->token, read->process.pid);
	world_trigger(AT_HERE, node == NOBODY ? NULL : &world->node[node]);
}

static void observe_worker(const struct store_op *op, const char *token)
{
	struct registration *worker = worker_of(token);
	struct queue_worker read;
	if (op->kind == STORE_DELETE) {
		if (worker && worker->here && has_leases(token))
			VIOLATE("leases", "worker %s goes, and has leases", token);
		if (worker)
			worker->here = false;
		return;
	}
	must_read(&queue_worker_record, op, &read);
	if (!worker) {
		come(&read);
		return;
	}
	if (!read.fenced || worker->fenced || !worker->here)
		VIOLATE("registration", "worker %s is written again", token);
	worker->fenced = true;
	world->statistics->fenced++;
	TRACE("worker %s is treated as dead", token);
	check_fence(worker);
	world_trigger(AT_FENCE, worker->node == NOBODY ? NULL : &world->node[worker->node]);
}

/* ---- Moves ---- */

/* Those of this set for which it does not hold that they have just now succeeded. */
static uint64_t not_succeeded(uint64_t set)
{
	for (int i = 0; i < world->keys.items; i++) {
		const struct item *item = &world->keys.item[i];
		if (item->place == OVER && item->result.state == QUEUE_SUCCEEDED)
			set &= ~(UINT64_C(1) << i);
	}
	return set;
}

static uint64_t not_there(uint64_t set)
{
	for (int i = 0; i < world->keys.items; i++)
		if (world->keys.item[i].place != NOWHERE)
			set &= ~(UINT64_C(1) << i);
	return set;
}

/* Less blocks it, or nothing does: what no longer does has succeeded. */
static void release(struct item *item, const struct change *change)
{
	uint64_t left = change->blocks ? change->blocked_by : 0, gone = item->blocked_by & ~left;
	if (!gone || (left & ~item->blocked_by) || (change->blocks && !left))
		VIOLATE("after", "command %" PRIu64 " is blocked by others than before",
			change->id);
	if (not_succeeded(gone))
		VIOLATE("after",
			"command %" PRIu64 " is released, and what blocks it has not "
			"succeeded",
			change->id);
	item->blocked_by = left;
	item->place = left ? BLOCKED : WAITING;
	world->statistics->released += !left;
	TRACE("command %" PRIu64 " is blocked by less", change->id);
}

static void schedule_it(struct item *item, const struct change *change)
{
	struct keys *k = &world->keys;
	if (change->id != (uint64_t)k->items + 1 || item->place != NOWHERE || item->forgotten)
		VIOLATE("ids", "command %" PRIu64 " is scheduled after %d", change->id, k->items);
	if ((!change->waits && !change->blocked_by) || change->spec < 0 ||
		change->spec >= world->schedule->specs)
		VIOLATE("schedule", "command %" PRIu64 " comes, and does not wait", change->id);
	if (k->error)
		VIOLATE("pending", "command %" PRIu64 " is scheduled while a failure is pending",
			change->id);
	for (int i = 0; i < k->items; i++)
		if (k->item[i].spec == change->spec)
			VIOLATE("once", "what was scheduled as command %d is so again as %" PRIu64,
				i + 1, change->id);
	k->items++;
	if (not_there(change->blocked_by) & (UINT64_MAX << (change->id - 1)))
		VIOLATE("after", "command %" PRIu64 " comes after one that is not there",
			change->id);
	*item = (struct item){.place = change->blocks ? BLOCKED : WAITING,
		.spec = change->spec,
		.after = change->blocked_by,
		.blocked_by = change->blocked_by};
	world->statistics->blocked += change->blocks;
	world->statistics->items++;
	world_trigger(AT_SCHEDULE, node_current());
}

static void take(struct item *item, const struct change *change)
{
	struct keys *k = &world->keys;
	const struct queue_lease *lease = &change->lease;
	if (!may_act(lease->worker_token))
		VIOLATE("fence", "command %" PRIu64 " is taken by one that is treated as dead",
			change->id);
	if (k->error && !commit.failed)
		VIOLATE("pending", "command %" PRIu64 " is taken while a failure is pending",
			change->id);
	if (start_of(lease->token) || lease->history.starts != item->leases + 1)
		VIOLATE("lease", "command %" PRIu64 " is taken with an old lease", change->id);
	assert(k->starts < MOST_STARTS);
	struct start *start = &k->start[k->starts];
	*start = (struct start){
		.item = (int)change->id - 1, .number = lease->history.starts, .command = NOBODY};
	memcpy(start->token, lease->token, sizeof(start->token));
	memcpy(start->worker, lease->worker_token, sizeof(start->worker));
	memcpy(item->lease, lease->token, sizeof(item->lease));
	item->start = k->starts++;
	item->leases++;
	item->history = lease->history;
	item->place = RUNNING;
	item->told = false;
	world->statistics->leases++;
	TRACE("command %" PRIu64 " is taken by worker %s", change->id, lease->worker_token);
	world_trigger(AT_TAKE, node_current());
}

/* How its command ended; NULL: it was not started, or has not ended. */
static const struct command *ended_command(const struct item *item)
{
	const struct start *start = &world->keys.start[item->start];
	const struct command *command =
		start->command == NOBODY ? NULL : &world->command[start->command];
	return command && command->ended ? command : NULL;
}

static uint64_t budget(const struct item *item, bool lost)
{
	const struct spec *spec = &world->schedule->spec[item->spec];
	return spec->max_attempts ? spec->max_attempts : lost ? QUEUE_LOST_MAX : 1;
}

/* It ended with 0, and was not told to because its time was up. */
static bool has_succeeded(const struct item *item, const struct command *command)
{
	bool was_told = command && command->told && world->schedule->spec[item->spec].timeout;
	return command && command->code == 0 && !was_told;
}

/* A worker that moves it away must be its worker, or the worker must have been marked. */
static void check_mover(const struct item *item, uint64_t id, bool lost)
{
	const char *token = world->keys.start[item->start].worker;
	const struct registration *worker = worker_of(token);
	if (lost && (!worker || !worker->fenced))
		VIOLATE("fence", "command %" PRIu64 " is lost, and its worker is not marked", id);
	if (!lost && !may_act(token))
		VIOLATE("fence", "what worker %s did with command %" PRIu64 " counts", token, id);
}

static void give_back(struct item *item, const struct change *change)
{
	const struct queue_history *old = &item->history, *new = &change->history;
	const struct spec *spec = &world->schedule->spec[item->spec];
	const struct command *command = ended_command(item);
	bool lost = new->lost != old->lost, failed = new->attempts != old->attempts && !lost;
	check_mover(item, change->id, lost);
	if (new->starts != old->starts || new->lost > old->lost + 1 ||
		new->attempts > old->attempts + 1 || new->preempted > old->preempted + 1)
		VIOLATE("history", "that of command %" PRIu64 " is wrong", change->id);
	if ((failed || lost) && new->attempts >= budget(item, lost))
		VIOLATE("budget", "command %" PRIu64 " has used up its %" PRIu64 " attempts",
			change->id, new->attempts);
	if (new->transients > spec->max_transient)
		VIOLATE("budget", "command %" PRIu64 " has ended with 75 too often", change->id);
	if (failed && (!command || has_succeeded(item, command)))
		VIOLATE("truth", "command %" PRIu64 " goes back as failed, and did not",
			change->id);
	if (!failed && !lost && command && !command->told && command->code == 0)
		VIOLATE("truth", "command %" PRIu64 " goes back, and succeeded", change->id);
	if (item->told)
		VIOLATE("cancel", "command %" PRIu64 " waits again, and was to end", change->id);
	item->history = *new;
	item->place = WAITING;
	world->statistics->returned++;
	world->statistics->lost += lost;
	TRACE("command %" PRIu64 " waits again", change->id);
	world_trigger(AT_BACK, node_current());
}

static void check_output(const struct item *item, const struct change *change)
{
	const struct queue_result *result = &change->result;
	char expected[64];
	snprintf(expected, sizeof(expected), "out of lease %s", item->lease);
	if (result->out_filed && !file_is_there(change->id, result->token, OUTPUT_OUT))
		VIOLATE("output", "that of command %" PRIu64 " is not there", change->id);
	if (result->state == QUEUE_SUCCEEDED && !result->out_filed &&
		strcmp(change->out, expected) != 0)
		VIOLATE("output", "that of command %" PRIu64 " is not its own", change->id);
}

static void check_failed(const struct item *item, const struct change *change)
{
	const struct queue_result *result = &change->result;
	const struct spec *spec = &world->schedule->spec[item->spec];
	const struct command *command = ended_command(item);
	bool lost = result->ending.kind == ENDING_LOST;
	if (result->ending.kind == ENDING_CANNOT)
		return;
	if (!lost && has_succeeded(item, command))
		VIOLATE("truth", "command %" PRIu64 " has failed, and did not", change->id);
	bool is_final = command && (command->code == CODE_DECIDED ||
					   result->history.transients > spec->max_transient);
	bool postponed = !command && result->history.transients > spec->max_transient;
	if (!is_final && !postponed && result->history.attempts < budget(item, lost))
		VIOLATE("budget", "command %" PRIu64 " fails with attempts left", change->id);
	if (commit.failed && commit.error == change->id && spec->halt == HALT_NEVER)
		VIOLATE("halt", "command %" PRIu64 " cancels others", change->id);
	if (!commit.failed && !world->keys.error && spec->halt != HALT_NEVER)
		VIOLATE("halt", "the failure of command %" PRIu64 " is not told", change->id);
}

static void finish(struct item *item, const struct change *change)
{
	const struct queue_result *result = &change->result;
	const struct command *command = ended_command(item);
	bool lost = result->ending.kind == ENDING_LOST;
	const struct registration *worker = worker_of(world->keys.start[item->start].worker);
	/* Who gives back what is lost ends what was to end, too. */
	bool by_judge = lost || (result->state == QUEUE_CANCELLED && worker && worker->fenced);
	if (strcmp(result->token, item->lease) != 0)
		VIOLATE("lease", "the result of command %" PRIu64 " is of another lease",
			change->id);
	check_mover(item, change->id, by_judge);
	if (result->state == QUEUE_SUCCEEDED && (!command || command->code != 0))
		VIOLATE("truth", "command %" PRIu64 " has succeeded, and did not", change->id);
	if (result->state == QUEUE_CANCELLED && !item->told)
		VIOLATE("cancel", "command %" PRIu64 " is cancelled, and no client asked",
			change->id);
	if (result->state == QUEUE_FAILED)
		check_failed(item, change);
	check_output(item, change);
}

/* Whether the result names the end of one that blocks it as its reason. */
static bool is_because_of_another(const struct item *item, const struct queue_result *result)
{
	for (int i = 0; i < world->keys.items && item->place == BLOCKED; i++) {
		const struct item *other = &world->keys.item[i];
		uint64_t because = other->result.state == QUEUE_FAILED ? (uint64_t)i + 1
								       : other->result.because;
		if (!(item->blocked_by & (UINT64_C(1) << i)))
			continue;
		if (other->place == OVER && other->result.state != QUEUE_SUCCEEDED &&
			result->because == because)
			return true;
		if (other->forgotten && !result->because)
			return true;
	}
	return false;
}

static void cancel(const struct item *item, const struct change *change)
{
	const struct queue_result *result = &change->result;
	if (result->state != QUEUE_CANCELLED)
		VIOLATE("moves", "command %" PRIu64 " is over, and did not run", change->id);
	const struct node *node = node_current();
	bool asked = node && node->role == PERSON && node->deed == CANCEL;
	bool blocked = is_because_of_another(item, result);
	world->statistics->cancelled_after += blocked;
	if (node && result->because != world->keys.error && !asked && !blocked)
		VIOLATE("cancel", "command %" PRIu64 " is cancelled for no reason", change->id);
}

static void end(struct item *item, const struct change *change)
{
	struct statistics *statistics = world->statistics;
	if (item->place == RUNNING)
		finish(item, change);
	else
		cancel(item, change);
	item->place = OVER;
	item->blocked_by = 0;
	item->has_succeeded |= change->result.state == QUEUE_SUCCEEDED;
	item->result = change->result;
	item->history = change->result.history;
	statistics->succeeded += item->result.state == QUEUE_SUCCEEDED;
	statistics->failed += item->result.state == QUEUE_FAILED;
	statistics->cancelled += item->result.state == QUEUE_CANCELLED;
	TRACE("command %" PRIu64 " is over: %s", change->id, queue_state_word(item->result.state));
	world_trigger(AT_OVER, node_current());
}

static void reopen(struct item *item, const struct change *change)
{
	const struct node *node = node_current();
	bool asked =
		!node ||
		(node->role == PERSON &&
			(node->deed == RETRY_ANY ||
				(node->deed == RETRY && item->result.state != QUEUE_SUCCEEDED)));
	if (!asked)
		VIOLATE("over", "command %" PRIu64 " was over, and waits again", change->id);
	if (change->history.starts != item->leases || change->history.attempts)
		VIOLATE("history", "that of command %" PRIu64 " is not fresh", change->id);
	if ((change->blocked_by | not_there(item->after)) != item->after)
		VIOLATE("after",
			"command %" PRIu64 " waits again, not after all that it came after",
			change->id);
	item->place = change->blocks ? BLOCKED : WAITING;
	item->blocked_by = change->blocked_by;
	item->reopened = true;
	item->history = change->history;
	item->result = (struct queue_result){0};
	TRACE("command %" PRIu64 " is to run again", change->id);
}

static void move(const struct change *change)
{
	struct item *item = &world->keys.item[change->id - 1];
	enum place was = item->place;
	if (change->blocks + change->waits + change->runs + change->over > 1)
		VIOLATE("one place", "command %" PRIu64 " comes to two places", change->id);
	if (was == RUNNING && change->told)
		item->told = true;
	else if (change->told)
		VIOLATE("cancel", "command %" PRIu64 " is to end, and does not run", change->id);
	bool moves = change->blocks || change->waits || change->runs || change->over ||
		     change->asked || (change->forgotten && was != NOWHERE);
	if (!moves)
		return;
	bool left = (was == BLOCKED && change->left_blocked != change->blocks) ||
		    (was == WAITING && change->left_waiting) ||
		    (was == RUNNING && change->left_running) ||
		    (was == OVER && change->left_over) || was == NOWHERE;
	if (!left)
		VIOLATE("one place", "command %" PRIu64 " stays where it was", change->id);
	if (change->asked)
		schedule_it(item, change);
	else if (was == NOWHERE)
		VIOLATE("moves", "command %" PRIu64 " was not there", change->id);
	else if (change->forgotten && was == OVER) {
		item->place = NOWHERE;
		item->forgotten = true;
	} else if (change->runs && was == WAITING)
		take(item, change);
	else if ((change->blocks || change->waits) && was == BLOCKED)
		release(item, change);
	else if (change->waits && was == RUNNING)
		give_back(item, change);
	else if ((change->blocks || change->waits) && was == OVER)
		reopen(item, change);
	else if (change->over && was != OVER)
		end(item, change);
	else
		VIOLATE("moves", "command %" PRIu64 " moves as none may", change->id);
}

/* ---- All together ---- */

static void check_counts(void)
{
	struct keys *k = &world->keys;
	struct queue_tally all = {0};
	struct queue_count count = {0}, is = {0};
	uint64_t forgotten = 0;
	for (int i = 0; i < k->tallies; i++)
		queue_tally_add(&all, &k->tally[i].counts);
	queue_tally_count(&all, &count);
	for (int i = 0; i < k->items; i++) {
		const struct item *item = &k->item[i];
		is.waiting += item->place == WAITING || item->place == BLOCKED;
		is.running += item->place == RUNNING;
		forgotten += item->forgotten;
	}
	if (count.scheduled != (uint64_t)k->items || count.waiting != is.waiting ||
		count.running != is.running ||
		count.succeeded + count.failed + count.cancelled + is.waiting + is.running !=
			(uint64_t)k->items)
		VIOLATE("counts",
			"%" PRIu64 " wait and %" PRIu64 " run, and %" PRIu64 " and %" PRIu64
			" are counted",
			is.waiting, is.running, count.waiting, count.running);
	bool drained = !is.waiting && !is.running;
	if (k->drained || drained)
		k->drained_until = kernel.now;
	k->drained = drained;
}

static void observe_error(void)
{
	struct keys *k = &world->keys;
	if (commit.failed && k->error && commit.error != k->error)
		VIOLATE("pending", "the failure of command %" PRIu64 " hides that of %" PRIu64,
			commit.error, k->error);
	if (commit.failed && !k->error) {
		k->error = commit.error;
		world->statistics->errors++;
		TRACE("the failure of command %" PRIu64 " is pending", k->error);
		world_trigger(AT_ERROR, node_current());
	}
	if (!commit.raised || !k->error)
		return;
	for (int i = 0; i < k->items; i++)
		if (((k->item[i].place == WAITING || k->item[i].place == BLOCKED) &&
			    !k->item[i].reopened) ||
			k->item[i].place == RUNNING)
			VIOLATE("raise", "a failure is told while command %d is not over", i + 1);
	k->error = 0;
	world->statistics->raised++;
	TRACE("the failure was told");
}

static void read_op(const struct store_op *op)
{
	const char *name = op->key + strlen(PREFIX);
	if (op->kind == STORE_GET || strncmp(op->key, PREFIX, strlen(PREFIX)) != 0)
		return;
	if (!strncmp(name, "worker/", 7))
		observe_worker(op, name + 7);
	else if (!strncmp(name, "count/", 6))
		read_tally(op, name + 6);
	else if (!strcmp(name, "error"))
		read_error(op);
	else if (!strncmp(name, "item/", 5) || !strncmp(name, "wait/", 5) ||
		 !strncmp(name, "blocked/", 8) || !strncmp(name, "run/", 4) ||
		 !strncmp(name, "done/", 5) || !strncmp(name, "cancel/", 7) ||
		 !strncmp(name, "out/", 4))
		read_place(op, name);
}

static void changed(
	void *context, const struct store_op *ops, size_t count, store_revision revision)
{
	(void)context, (void)revision;
	commit.changes = 0;
	commit.failed = commit.raised = false;
	world->statistics->commits++;
	for (size_t i = 0; i < count; i++)
		read_op(&ops[i]);
	for (int i = 0; i < commit.changes; i++)
		if (commit.change[i].id <= MOST_SPECS)
			move(&commit.change[i]);
		else
			VIOLATE("ids", "command %" PRIu64 " is one too many", commit.change[i].id);
	observe_error();
	check_counts();
}

void observer_begin(void)
{
	static const struct memory_observer observer = {NULL, changed};
	world->keys.drained = true;
	world->keys.drained_until = kernel.now;
	memory_observe(&observer);
}
