/* SPDX-License-Identifier: MIT */
/*
 * A lock that was taken over, every order of events: the steps of lib/store/sqlite/takeover_step.c,
 * which the store carries out, on modelled files. Processes take the lock, commit one change
 * each in the way of SQLite, and give it back. No clock protects any process: each may be
 * overtaken at any moment, and stopped anywhere for as long as the others like; it then goes on
 * with what it was about to do. Each may be killed, and fail in the middle of its commit. Shown
 * for each state that can be reached:
 *
 *	database and journal, under their names, are what a loss of power may leave;
 *	every change that was acknowledged is in them.
 *
 * Then one part after the other is taken out of the method, and each time the search must find the
 * harm. How the lock itself is taken is in link_search.c: here that is one event.
 */
#include "store/sqlite/takeover_step.h"

#include <stdlib.h>
#include <xxhash.h>

#include "unit.h"

enum { PROCESSES = 3, TURNS = 2, FILES = 1 + PROCESSES * TURNS, FREE = 255, ABANDONED = 254 };

/* What is taken out. */
enum weakness {
	NOTHING,
	NO_TAKEOVER,   /* the files stay where they are */
	NO_CLEAR,      /* workspaces of others are not removed */
	NO_PROOF,      /* it is not asked whether the lock was ours when the workspace was made */
	NO_COMPARISON, /* the files are read once */
	JOURNAL_FIRST, /* the journal is replaced before the database */
	JOURNAL_STAYS, /* and not at all */
	BLIND_JOURNAL, /* the process that opened the journal does not ask whether it was its own */
	GIVEN_BACK,    /* one that fails in a takeover gives the lock back */
	EARLY_ANSWER,  /* it is acknowledged without asking whether the lock was still ours */
	WEAKNESSES
};

static const char *const without[WEAKNESSES] = {
	[NO_TAKEOVER] = "the files of one that was overtaken stay where they are",
	[NO_CLEAR] = "the workspace of one that was overtaken stays",
	[NO_PROOF] = "it is not asked whether the lock was ours after the workspace was made",
	[NO_COMPARISON] = "the files are copied while they change",
	[JOURNAL_FIRST] = "the journal is replaced before the database",
	[JOURNAL_STAYS] = "the journal stays",
	[BLIND_JOURNAL] = "it is not asked whether the lock was ours after the journal was opened",
	[GIVEN_BACK] = "a takeover that failed leaves the lock free",
	[EARLY_ANSWER] = "acknowledged without asking whether the lock was ours until then",
};

/* A transaction, in the order of SQLite. */
enum phase {
	IDLE,
	OVERTAKING, /* the action is in step */
	COPYING,    /* the second page */
	COMPARING,
	OPENING,
	OPENING_JOURNAL,
	PROVING,
	PLAYING_BACK,
	PLAYING_BACK_REST,
	READING,
	WRITING_JOURNAL,
	WRITING,
	WRITING_REST,
	COMMITTING,
	LEAVING,
	DEAD,
};

/* The changes that a file has, as bits. A database has two pages, both changed by each change. */
struct database {
	unsigned char page[2];
};
struct journal {
	unsigned char hot, original;
};

struct process {
	unsigned char phase, turns, token; /* what it calls itself in the lock */
	unsigned char action, rounds, failed, overtook;
	unsigned char made;			    /* its workspace is there */
	unsigned char committed, database, journal; /* which file it has open */
	unsigned char base;
	struct database copy;
	struct journal copied;
};

struct state {
	unsigned char holder; /* a token, FREE or ABANDONED */
	unsigned char acknowledged;
	unsigned char database, journal; /* which file has the name */
	unsigned char kills, faults;
	struct database databases[FILES];
	struct journal journals[FILES];
	struct process process[PROCESSES];
};

static enum weakness weakness;
static uint64_t *seen;
static size_t seen_size, seen_count;
static struct state *stack;
static size_t stack_count, stack_size;
static const char *harm;

/* What a loss of power now would leave to who comes next. */
static void check_files(const struct state *state)
{
	struct database database = state->databases[state->database];
	const struct journal *journal = &state->journals[state->journal];
	if (journal->hot)
		database.page[0] = database.page[1] = journal->original;
	if (database.page[0] != database.page[1])
		harm = "the database is damaged";
	else if (state->acknowledged & ~database.page[0])
		harm = "what was acknowledged is lost";
}

static void push(const struct state *state)
{
	uint64_t hash = XXH64(state, sizeof(*state), 0) | 1;
	size_t at = hash & (seen_size - 1);
	for (; seen[at]; at = (at + 1) & (seen_size - 1))
		if (seen[at] == hash)
			return;
	if (harm)
		return;
	seen[at] = hash;
	if (++seen_count >= seen_size * 3 / 4)
		harm = "the search is too large";
	check_files(state);
	if (stack_count == stack_size) {
		stack_size = stack_size ? stack_size * 2 : 1024;
		stack = realloc(stack, stack_size * sizeof(*stack));
	}
	stack[stack_count++] = *state;
}

static bool is_ours(const struct state *state, const struct process *process)
{
	return state->holder == process->token;
}

/* What it had before does not matter any more. */
static void begin(struct process *process, enum phase phase)
{
	unsigned char turns = process->turns, token = process->token, made = process->made;
	*process = (struct process){
		.phase = (unsigned char)phase, .turns = turns, .token = token, .made = made};
}

/* ---- The takeover ---- */

static enum takeover_answer place(struct state *state, struct process *process, bool journal)
{
	/* Its file is where its workspace is. */
	if (!process->made)
		return TAKEOVER_NO;
	/* Each has a name of its own, and makes at most one file of each kind. */
	unsigned char file = (unsigned char)(process->token + 1);
	if (journal) {
		state->journals[file] = (struct journal){0};
		state->journal = file;
	} else {
		state->databases[file] = process->copy;
		state->database = file;
	}
	return TAKEOVER_YES;
}

static void answer(struct process *process, enum takeover_answer answer)
{
	struct takeover_step step = {.action = (enum takeover_action)process->action,
		.rounds = 0,
		.failed = process->failed};
	(void)takeover_next(&step, answer);
	process->action = (unsigned char)step.action;
	process->failed = step.failed;
	process->phase = OVERTAKING;
	if (step.action == TAKEOVER_DONE) {
		begin(process, OPENING);
	} else if (step.action == TAKEOVER_FAILED) {
		begin(process, LEAVING);
		process->overtook = true;
	}
}

static void overtaking(struct state *state, struct process *process)
{
	enum takeover_action action = (enum takeover_action)process->action;
	if (weakness == JOURNAL_FIRST && action == TAKEOVER_PLACE_DATABASE)
		action = TAKEOVER_PLACE_JOURNAL;
	else if (weakness == JOURNAL_FIRST && action == TAKEOVER_PLACE_JOURNAL)
		action = TAKEOVER_PLACE_DATABASE;
	switch (action) {
	case TAKEOVER_MAKE: process->made = true; break;
	case TAKEOVER_PROVE:
		if (weakness != NO_PROOF && !is_ours(state, process)) {
			answer(process, TAKEOVER_NO);
			return;
		}
		break;
	case TAKEOVER_CLEAR:
		for (unsigned i = 0; i < PROCESSES && weakness != NO_CLEAR; i++)
			if (&state->process[i] != process)
				state->process[i].made = false;
		break;
	case TAKEOVER_COPY_JOURNAL: process->copied = state->journals[state->journal]; break;
	case TAKEOVER_COPY_DATABASE:
		process->copy.page[0] = state->databases[state->database].page[0];
		process->phase = COPYING;
		return;
	case TAKEOVER_COMPARE_JOURNAL:
		if (weakness != NO_COMPARISON &&
			memcmp(&process->copied, &state->journals[state->journal],
				sizeof(process->copied)) != 0) {
			answer(process, TAKEOVER_CHANGED);
			return;
		}
		break;
	case TAKEOVER_COMPARE_DATABASE:
		if (weakness != NO_COMPARISON &&
			process->copy.page[0] != state->databases[state->database].page[0]) {
			answer(process, TAKEOVER_CHANGED);
			return;
		}
		process->phase = COMPARING;
		return;
	case TAKEOVER_RECOVER:
		if (process->copied.hot)
			process->copy.page[0] = process->copy.page[1] = process->copied.original;
		process->copied = (struct journal){0};
		break;
	case TAKEOVER_PLACE_DATABASE: answer(process, place(state, process, false)); return;
	case TAKEOVER_PLACE_JOURNAL:
		answer(process,
			weakness == JOURNAL_STAYS ? TAKEOVER_YES : place(state, process, true));
		return;
	case TAKEOVER_UNMAKE: process->made = false; break;
	default: harm = "a step that there is not"; return;
	}
	answer(process, TAKEOVER_YES);
}

/* ---- The transaction ---- */

static void acquire(const struct state *state, unsigned number)
{
	struct state now = *state;
	struct process *process = &now.process[number];
	if (!process->turns)
		return;
	process->turns--;
	process->token = (unsigned char)(number * TURNS + process->turns);
	bool overtakes = now.holder != FREE;
	now.holder = process->token;
	begin(process, overtakes && weakness != NO_TAKEOVER ? OVERTAKING : OPENING);
	process->overtook = process->phase == OVERTAKING;
	push(&now);
}

/* The lock is given back, or turns out to be another's. */
static void leave(struct state *state, struct process *process)
{
	bool ours = is_ours(state, process);
	if (process->committed && (ours || weakness == EARLY_ANSWER))
		state->acknowledged |= (unsigned char)(1u << process->token);
	if (ours)
		state->holder = process->overtook && weakness != GIVEN_BACK ? ABANDONED : FREE;
	begin(process, IDLE);
	process->token = 0;
}

static void transaction(struct state *state, struct process *process)
{
	struct database *database = &state->databases[process->database];
	struct journal *journal = &state->journals[process->journal];
	switch ((enum phase)process->phase) {
	case COPYING:
		process->copy.page[1] = state->databases[state->database].page[1];
		answer(process, TAKEOVER_YES);
		return;
	case COMPARING:
		answer(process, weakness == NO_COMPARISON ||
						process->copy.page[1] ==
							state->databases[state->database].page[1]
					? TAKEOVER_YES
					: TAKEOVER_CHANGED);
		return;
	case OPENING: process->database = state->database; break;
	case OPENING_JOURNAL: process->journal = state->journal; break;
	case PROVING:
		if (weakness != BLIND_JOURNAL && !is_ours(state, process)) {
			begin(process, LEAVING);
			return;
		}
		process->phase = journal->hot ? PLAYING_BACK : READING;
		return;
	case PLAYING_BACK: database->page[0] = journal->original; break;
	case PLAYING_BACK_REST:
		database->page[1] = journal->original;
		journal->hot = false;
		break;
	case READING: process->base = database->page[0]; break;
	case WRITING_JOURNAL:
		*journal = (struct journal){.hot = true, .original = process->base};
		break;
	case WRITING:
		database->page[0] = (unsigned char)(process->base | 1u << process->token);
		break;
	case WRITING_REST:
		database->page[1] = (unsigned char)(process->base | 1u << process->token);
		break;
	case COMMITTING:
		journal->hot = false;
		process->committed = true;
		break;
	case LEAVING: leave(state, process); return;
	default: harm = "a phase that there is not"; return;
	}
	process->phase++;
}

/* Whatever process number can do next, and what can happen to it. */
static void act(const struct state *state, unsigned number)
{
	struct state now = *state;
	struct process *process = &now.process[number];
	if (process->phase == DEAD)
		return;
	if (process->phase == IDLE) {
		acquire(state, number);
		return;
	}
	if (process->phase == OVERTAKING)
		overtaking(&now, process);
	else
		transaction(&now, process);
	push(&now);
	if (state->kills) {
		now = *state;
		now.kills--;
		begin(process, DEAD);
		push(&now);
	}
	/* An error: it gives up what it is about. */
	if (!state->faults)
		return;
	now = *state;
	now.faults--;
	if (process->phase >= OVERTAKING && process->phase <= COMPARING) {
		if (process->action == TAKEOVER_UNMAKE)
			return;
		answer(process, TAKEOVER_NO);
	} else if (process->phase < LEAVING) {
		begin(process, LEAVING);
	} else {
		return;
	}
	push(&now);
}

struct bounds {
	unsigned char processes, turns, kills, faults;
};

/* Search all of it. The harm that was found; NULL: none. */
static const char *search(enum weakness which, struct bounds bounds)
{
	struct state first = {.holder = FREE, .kills = bounds.kills, .faults = bounds.faults};
	for (unsigned i = 0; i < bounds.processes; i++)
		first.process[i].turns = bounds.turns;
	weakness = which;
	harm = NULL;
	memset(seen, 0, seen_size * sizeof(*seen));
	seen_count = stack_count = 0;
	push(&first);
	while (stack_count && !harm) {
		struct state state = stack[--stack_count];
		for (unsigned i = 0; i < bounds.processes && !harm; i++)
			act(&state, i);
	}
	printf("# %zu states%s%s\n", seen_count, harm ? ": " : "", harm ? harm : "");
	return harm;
}

int main(void)
{
	static const struct bounds cases[] = {
		{2, 2, 1, 1},
		{3, 1, 1, 1},
		{3, 1, 2, 0},
	};
	static const struct bounds small = {3, 1, 1, 1};
	char name[192];
	seen_size = (size_t)1 << 23;
	seen = calloc(seen_size, sizeof(*seen));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		snprintf(name, sizeof(name),
			"%d processes, %d times, %d killed, %d failing, overtaken at any moment: nothing "
			"that was acknowledged is lost",
			cases[i].processes, cases[i].turns, cases[i].kills, cases[i].faults);
		TEST(name) CHECK(!search(NOTHING, cases[i]));
		(void)unit_begin(NULL);
	}
	for (enum weakness which = NOTHING + 1; which < WEAKNESSES; which++) {
		snprintf(name, sizeof(name), "%s: harm", without[which]);
		TEST(name) CHECK(search(which, small));
		(void)unit_begin(NULL);
	}
	free(seen);
	free(stack);
	return unit_end();
}
