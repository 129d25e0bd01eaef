/* SPDX-License-Identifier: MIT */
/* What must hold beyond single transactions. */
#include <inttypes.h>
#include <string.h>

#include "sim.h"

#define SLACK (5000 * MS)

/* ---- Who is treated as dead ---- */

/*
 * Whether its silence, from one instant to another, was long enough and is not long over. Its last
 * beat may be a period older than that, and its next one comes up to a period after it.
 */
static bool was_silent(int64_t from, int64_t until)
{
	const struct schedule *s = world->schedule;
	int64_t end = until < kernel.now ? until : kernel.now;
	/* Its last beat may have been a period before, and the one before that one lost. */
	bool loses = s->way.lost_before || s->way.lost_after || kernel.full_until;
	int64_t lost = loses ? 3 : 2;
	return from && end - from >= ((int64_t)s->silent_limit - lost) * s->period * MS &&
	       kernel.now - end <= 3 * s->period * MS + SLACK;
}

void check_fence(const struct registration *worker)
{
	const struct node *judge = node_current();
	if (worker->node == NOBODY)
		return;
	const struct node *node = &world->node[worker->node];
	/* A registration whose answer was lost: no worker beats for it. */
	if (strcmp(node->token, worker->token) != 0)
		return;
	if (!process_lives(&node->process)) {
		bool sees = judge && judge->process.sees_others &&
			    !strcmp(judge->process.who.boot, node->process.who.boot);
		/* One that dies while it cannot be heard was silent before. */
		bool unheard = node->silent_since && node->silent_since < node->ended &&
			       node->silent_until >= node->ended;
		if (judge && !sees &&
			!was_silent(unheard ? node->silent_since : node->ended, kernel.now) &&
			!was_silent(node->silent_since, node->silent_until))
			VIOLATE("dead",
				"worker %d is treated as dead %" PRId64 " ms after its death",
				node->number, (kernel.now - node->ended) / MS);
		return;
	}
	if (!was_silent(node->silent_since, node->silent_until))
		VIOLATE("dead", "worker %d is treated as dead, and lives", node->number);
}

void check_anew(const struct node *node)
{
	for (int i = 0; i < world->commands; i++) {
		const struct command *command = &world->command[i];
		if (command->node == node->process.index && !command->ended &&
			command->start != NOBODY &&
			strcmp(world->keys.start[command->start].worker, node->token) != 0)
			VIOLATE("again", "worker %d begins again, and a command of its runs on",
				node->number);
	}
}

/* ---- Who waits ---- */

/* The answer that follows from the contents of the store. */
static int right_code(void)
{
	const struct keys *k = &world->keys;
	int code = STATUS_OK;
	bool any = false;
	for (int i = 0; i < k->items; i++) {
		const struct item *item = &k->item[i];
		if (item->place != OVER)
			continue;
		any = true;
		bool failed = item->result.state == QUEUE_FAILED;
		if (failed && world->schedule->spec[item->spec].halt != HALT_NEVER)
			return CODE_BROKEN;
		if (item->result.state == QUEUE_CANCELLED && item->result.because)
			return CODE_BROKEN;
		if (failed)
			code = STATUS_NO;
	}
	return any || k->items ? code : STATUS_NO;
}

void check_joined(const struct node *node)
{
	int code = node->code;
	struct statistics *statistics = world->statistics;
	statistics->joined[code == STATUS_OK	 ? 0
			   : code == STATUS_NO	 ? 1
			   : code == CODE_BROKEN ? 2
						 : 3]++;
	if (code != STATUS_OK && code != STATUS_NO && code != CODE_BROKEN) {
		VIOLATE("join", "it gives up with %d", code);
		return;
	}
	if (!world->keys.drained && world->keys.drained_until < node->began)
		VIOLATE("join", "it ends with %d before all is done", code);
	if (world->closing && node->process.index == world->closer && code != right_code())
		VIOLATE("join", "it ends with %d, not with %d", code, right_code());
}

/* ---- At the end ---- */

static bool was_disturbed(void)
{
	const struct schedule *s = world->schedule;
	for (int i = 0; i < s->acts; i++)
		if (s->act[i].deed != NOTHING && s->act[i].deed != JOIN &&
			s->act[i].deed != NEW_WORKER)
			return true;
	return s->way.lost_before || s->way.lost_after || s->way.late_commit;
}

/* Files that no worker will ever ask for. */
static void check_files(void)
{
	for (int i = 0; i < world->files && !was_disturbed(); i++) {
		const struct file *file = &world->file[i];
		const struct item *item = &world->keys.item[file->id - 1];
		if (file->there && strcmp(item->result.token, file->token) != 0)
			VIOLATE("output", "a file of command %" PRIu64 " is left", file->id);
	}
}

void check_end(void)
{
	const struct keys *k = &world->keys;
	bool scheduled[MOST_SPECS] = {0};
	bool closed =
		world->closer != NOBODY && !process_lives(&world->node[world->closer].process);
	for (int i = 0; i < k->items; i++) {
		const struct item *item = &k->item[i];
		scheduled[item->spec] = true;
		if (item->place == BLOCKED || item->place == WAITING || item->place == RUNNING)
			VIOLATE("hangs", "command %d still %s", i + 1,
				item->place == BLOCKED	 ? "is blocked"
				: item->place == WAITING ? "waits"
							 : "runs");
		if (item->place == OVER && item->result.out_filed &&
			!file_is_there((uint64_t)i + 1, item->result.token, OUTPUT_OUT))
			VIOLATE("output", "that of command %d is lost", i + 1);
	}
	if (!closed)
		VIOLATE("hangs",
			world->closer == NOBODY ? "a scheduler does not end" : "join does not end");
	for (int i = 0; i < world->schedule->specs; i++)
		if (world->acknowledged[i] && !scheduled[i])
			VIOLATE("acknowledged", "spec %d is not there", i);
	check_files();
}
