/* SPDX-License-Identifier: MIT */
/*
 * The token, every order of events: the steps of lib/store/lock/token_step.c, which the store
 * carries out, on a modelled directory with modelled files. Processes of two machines take the
 * token, commit one change each in the way of SQLite, and give it back. No clock protects any of
 * them: each may be overtaken at any moment, and stopped anywhere for as long as the others like;
 * it then goes on with what it was about to do. Each may be killed. A request may fail, be carried
 * out without an answer, late, or twice. Shown for each state that can be reached:
 *
 *	the file that the token names is there, and is what a loss of power may leave;
 *	every change that was acknowledged is in it, and none that was denied;
 *	who is acknowledged has read all that was acknowledged before it began.
 *
 * Then one safeguard after the other is taken out, and each time the search must find the harm.
 */
#include "store/lock/token_step.h"

#include <stdlib.h>
#include <xxhash.h>

#include "unit.h"

enum { PROCESSES = 3, TURNS = 2, FILES = 1 + PROCESSES * TURNS, NOBODY = 255 };

/* What is taken out. */
enum weakness {
	NOTHING,
	SAME_NAME,	   /* a process uses one name for all its tokens */
	NO_MACHINE_LOCK,   /* processes of one machine take the token from each other */
	IN_PLACE,	   /* the database is not copied when the token was overtaken */
	MOVING_IS_HELD,	   /* nor if the process that was to copy it died on this machine */
	NO_COMPARISON,	   /* the files are copied while they change */
	REMOVED_EARLY,	   /* the old file is removed before the token names the new one */
	SWEPT_LATE,	   /* what is removed is chosen after that */
	ERROR_IS_YES,	   /* a token that could not be given back was given back */
	ERROR_IS_NO,	   /* and then nothing was changed */
	GIVEN_UNSEEN,	   /* acknowledged before the token was given back */
	COPY_IN_ONE_PLACE, /* all copies have the same name */
	COPY_REMOVED,	   /* a copy is removed although the token may yet name it */
	WEAKNESSES
};

static const char *const without[WEAKNESSES] = {
	[SAME_NAME] = "a process uses one name again",
	[NO_MACHINE_LOCK] = "processes of one machine do not exclude each other",
	[IN_PLACE] = "who overtakes uses the old file",
	[MOVING_IS_HELD] = "a move that was begun is not begun again",
	[NO_COMPARISON] = "the files are copied while they change",
	[REMOVED_EARLY] = "the old file is removed before the token names the new one",
	[SWEPT_LATE] = "what is removed is chosen after the token was renamed",
	[ERROR_IS_YES] = "an error of giving back counts as given back",
	[ERROR_IS_NO] = "an error of giving back counts as nothing changed",
	[GIVEN_UNSEEN] = "acknowledged before the token is given back",
	[COPY_IN_ONE_PLACE] = "two copies can have one name",
	[COPY_REMOVED] = "a copy is removed after an error of the rename that names it",
};

enum phase {
	IDLE,
	TAKING,
	KEEPING,
	COPYING_JOURNAL, /* after a move */
	COPYING,
	COPYING_REST,
	COMPARING_JOURNAL,
	COMPARING,
	COMPARING_REST,
	RECOVERING,
	SETTLING,
	SWEEPING,
	OPENING, /* the transaction, in the order of SQLite */
	PLAYING_BACK,
	PLAYING_BACK_REST,
	READING,
	WRITING_JOURNAL,
	WRITING,
	WRITING_REST,
	COMMITTING,
	GIVING,
	DEAD,
};

enum token_state { FREE, HELD, MOVING };
struct token {
	unsigned char state, nonce, owner, file;
};

/* The changes that a file has, as bits. A database has two pages, both changed by each change. */
struct file {
	unsigned char page[2], hot, original;
};

struct process {
	unsigned char phase, after; /* after KEEPING */
	struct token_step step;
	struct token own, from, to; /* of the rename under way */
	unsigned char turns, keeps, names;
	unsigned char base, before; /* read; acknowledged when it began */
	unsigned char committed, touched, change, strays;
	struct file copy;
};

struct state {
	struct token token;
	struct token late[2];	  /* a request that may still come: from, to; nonce 0: none */
	unsigned char machine[2]; /* who has its lock */
	unsigned char acknowledged, denied, kills, faults;
	unsigned char files_there; /* bits */
	struct file files[FILES];
	struct process process[PROCESSES];
};

static enum weakness weakness;
static uint64_t *seen;
static size_t seen_size, seen_count;
static struct state *stack;
static size_t stack_count, stack_size;
static const char *harm;

static unsigned machine_of(unsigned number)
{
	return number == PROCESSES - 1;
}

/* What a loss of power now would leave to who comes next. */
static void check_files(const struct state *state)
{
	struct file file = state->files[state->token.file];
	if (file.hot)
		file.page[0] = file.page[1] = file.original;
	if (!(state->files_there & 1u << state->token.file))
		harm = "the file that the token names is not there";
	else if (file.page[0] != file.page[1])
		harm = "the database is damaged";
	else if (state->acknowledged & ~file.page[0])
		harm = "what was acknowledged is lost";
	else if (state->denied & file.page[0])
		harm = "what was denied is there";
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

static void begin(struct process *process, enum phase phase, enum token_action action)
{
	process->phase = (unsigned char)phase;
	token_begin(&process->step, action);
	process->from = process->to = (struct token){0};
}

/* Its turn is over. */
static void leave(struct state *state, unsigned number)
{
	struct process *process = &state->process[number];
	if (state->machine[machine_of(number)] == number)
		state->machine[machine_of(number)] = NOBODY;
	*process = (struct process){
		.turns = process->turns, .keeps = process->keeps, .names = process->names};
}

static void deny(struct state *state, const struct process *process)
{
	state->denied |= process->change;
}

static void acknowledge(struct state *state, const struct process *process)
{
	state->acknowledged |= process->change;
	if (process->before & ~process->base)
		harm = "what was acknowledged before was not read";
}

/* It gives up in the middle of a transaction, of which nothing is committed yet. */
static void give_up(struct state *state, struct process *process)
{
	if (!process->touched)
		deny(state, process);
	begin(process, GIVING, TOKEN_GIVE);
}

static void settled(struct state *state, struct process *process)
{
	if (weakness == SWEPT_LATE)
		process->strays = (unsigned char)(state->files_there & ~(1u << process->own.file));
	process->phase = process->strays ? SWEEPING : OPENING;
}

static void fail_to_settle(struct state *state, unsigned number)
{
	const struct process *process = &state->process[number];
	if (weakness == COPY_REMOVED)
		state->files_there &= (unsigned char)~(1u << process->to.file);
	leave(state, number);
}

/* Its steps have ended. */
static void ended(struct state *state, unsigned number, enum token_action result)
{
	struct process *process = &state->process[number];
	enum phase phase = (enum phase)process->phase;
	bool given = result == TOKEN_DONE || weakness == ERROR_IS_YES;
	process->own = result == TOKEN_DONE ? process->to : (struct token){0};
	switch (phase) {
	case TAKING:
		if (result == TOKEN_BUSY)
			begin(process, TAKING, TOKEN_LIST);
		else if (result == TOKEN_DONE)
			process->phase = process->own.state == MOVING ? COPYING_JOURNAL : OPENING;
		else if (result == TOKEN_FAILED)
			leave(state, number);
		else
			harm = "there is no token";
		return;
	case KEEPING:
		if (result == TOKEN_DONE) {
			process->phase = process->after;
			return;
		}
		if (!process->touched)
			deny(state, process);
		leave(state, number);
		return;
	case SETTLING:
		if (result == TOKEN_DONE)
			settled(state, process);
		else
			fail_to_settle(state, number);
		return;
	case GIVING:
		if (process->committed && given && weakness != GIVEN_UNSEEN)
			acknowledge(state, process);
		if (process->committed && !given && weakness == ERROR_IS_NO)
			deny(state, process);
		leave(state, number);
		return;
	default: harm = "steps in a phase that has none";
	}
}

static void answered(const struct state *state, unsigned number, enum token_answer answer)
{
	struct state now = *state;
	struct process *process = &now.process[number];
	enum token_action action = token_next(&process->step, answer);
	if (action >= TOKEN_DONE)
		ended(&now, number, action);
	push(&now);
}

/* ---- The directory ---- */

static enum token_answer serve(struct state *state, struct token from, struct token to)
{
	if (state->token.nonce != from.nonce)
		return TOKEN_ERROR;
	state->token = to;
	return TOKEN_YES;
}

/* A rename, with all that a network can make of it. */
static void request(const struct state *state, unsigned number)
{
	struct token from = state->process[number].from, to = state->process[number].to;
	struct state now = *state;
	enum token_answer answer = serve(&now, from, to);
	answered(&now, number, answer);
	if (!state->faults)
		return;
	now.faults--;
	answered(&now, number, TOKEN_ERROR);
	struct state twice = now;
	answered(&twice, number, serve(&twice, from, to));
	struct state before = *state;
	before.faults--;
	answered(&before, number, TOKEN_ERROR);
	if (before.late[0].nonce)
		return;
	/* It comes later, with or without having come before. */
	now.late[0] = before.late[0] = from;
	now.late[1] = before.late[1] = to;
	answered(&now, number, answer);
	answered(&before, number, TOKEN_ERROR);
}

static unsigned char fresh_name(struct process *process, unsigned number)
{
	if (weakness != SAME_NAME || !process->names)
		process->names++;
	if (process->names >= 32)
		harm = "too many names";
	return (unsigned char)(32 * (number + 1) + process->names);
}

/* The names of a rename; they stay the same when it is tried again. */
static void choose_names(const struct state *state, struct process *process, unsigned number)
{
	if (process->to.nonce)
		return;
	process->to = process->from =
		process->step.action <= TOKEN_MOVE ? state->token : process->own;
	process->to.nonce = fresh_name(process, number);
	process->to.owner = (unsigned char)number;
	switch ((enum token_action)process->step.action) {
	case TOKEN_TAKE: process->to.state = HELD; break;
	case TOKEN_MOVE: process->to.state = weakness == IN_PLACE ? HELD : MOVING; break;
	case TOKEN_SETTLE:
		process->to.state = HELD;
		process->to.file = weakness == COPY_IN_ONE_PLACE
					   ? 1
					   : (unsigned char)(1 + number * TURNS + process->turns);
		break;
	case TOKEN_GIVE: process->to.state = FREE; break;
	default: break;
	}
}

static void list(const struct state *state, unsigned number)
{
	struct state now = *state;
	struct process *process = &now.process[number];
	const struct token *token = &now.token;
	bool ours = token->state != FREE && machine_of(token->owner) == machine_of(number);
	process->to.nonce = 0;
	/* What it renames is what it has seen. */
	process->step.action = TOKEN_TAKE;
	bool held = token->state == HELD || weakness == MOVING_IS_HELD;
	if (token->state == FREE || (ours && held)) {
		choose_names(&now, process, number);
		process->step.action = TOKEN_LIST;
		answered(&now, number, TOKEN_IS_FREE);
		return;
	}
	process->step.action = TOKEN_MOVE;
	choose_names(&now, process, number);
	process->step.action = TOKEN_LIST;
	answered(&now, number, TOKEN_IS_SILENT);
}

static void steps(const struct state *state, unsigned number)
{
	struct state now = *state;
	struct process *process = &now.process[number];
	unsigned char there = now.token.nonce;
	switch ((enum token_action)process->step.action) {
	case TOKEN_LIST: list(&now, number); return;
	case TOKEN_LOOK:
		answered(&now, number,
			there == process->to.nonce     ? TOKEN_YES
			: there == process->from.nonce ? TOKEN_IS_OLD
						       : TOKEN_IS_OTHER);
		break;
	case TOKEN_SYNC: answered(&now, number, TOKEN_YES); break;
	default:
		choose_names(&now, process, number);
		request(&now, number);
		return;
	}
	if (now.faults--)
		answered(&now, number, TOKEN_ERROR);
}

/* ---- What is done with the files ---- */

static void compared(struct process *process, bool same)
{
	process->phase = same || weakness == NO_COMPARISON ? process->phase + 1 : COPYING_JOURNAL;
}

static void takeover(struct state *state, unsigned number)
{
	struct process *process = &state->process[number];
	struct file *old = &state->files[process->own.file], *copy = &process->copy;
	unsigned own = weakness == COPY_IN_ONE_PLACE ? 1 : 1 + number * TURNS + process->turns;
	bool there = state->files_there & 1u << process->own.file;
	switch ((enum phase)process->phase) {
	case COPYING_JOURNAL:
		if (!there) { /* it was overtaken in its turn */
			deny(state, process);
			leave(state, number);
			return;
		}
		state->files_there |= (unsigned char)(1u << own);
		copy->hot = old->hot;
		copy->original = old->original;
		break;
	case COPYING: copy->page[0] = old->page[0]; break;
	case COPYING_REST: copy->page[1] = old->page[1]; break;
	case COMPARING_JOURNAL:
		compared(process, copy->hot == old->hot && copy->original == old->original);
		return;
	case COMPARING: compared(process, copy->page[0] == old->page[0]); return;
	case COMPARING_REST: compared(process, copy->page[1] == old->page[1]); return;
	case RECOVERING:
		if (copy->hot)
			copy->page[0] = copy->page[1] = copy->original;
		copy->hot = copy->original = 0;
		if (!(state->files_there & 1u << own)) { /* swept away by who has overtaken us */
			deny(state, process);
			leave(state, number);
			return;
		}
		state->files[own] = *copy;
		process->strays = (unsigned char)(state->files_there & ~(1u << own));
		if (weakness == REMOVED_EARLY)
			state->files_there &= (unsigned char)~(1u << process->own.file);
		*copy = (struct file){0};
		begin(process, SETTLING, TOKEN_SETTLE);
		return;
	case SWEEPING:
		state->files_there &= (unsigned char)~process->strays;
		process->strays = 0;
		break;
	default: harm = "a phase that there is not"; return;
	}
	process->phase++;
}

static void transaction(struct state *state, unsigned number)
{
	struct process *process = &state->process[number];
	struct file *file = &state->files[process->own.file];
	switch ((enum phase)process->phase) {
	case OPENING:
		if (!(state->files_there & 1u << process->own.file)) {
			give_up(state, process);
			return;
		}
		process->phase = file->hot ? PLAYING_BACK : READING;
		return;
	case PLAYING_BACK: file->page[0] = file->original; break;
	case PLAYING_BACK_REST:
		file->page[1] = file->original;
		file->hot = file->original = 0;
		break;
	case READING: process->base = file->page[0]; break;
	case WRITING_JOURNAL:
		process->touched = true;
		file->hot = true;
		file->original = process->base;
		break;
	case WRITING: file->page[0] = process->base | process->change; break;
	case WRITING_REST: file->page[1] = process->base | process->change; break;
	case COMMITTING:
		file->hot = file->original = 0;
		process->committed = true;
		if (weakness == GIVEN_UNSEEN)
			acknowledge(state, process);
		begin(process, GIVING, TOKEN_GIVE);
		return;
	default: harm = "a phase that there is not"; return;
	}
	process->phase++;
}

/* Whatever process number can do next, and what can happen to it. */
static void act(const struct state *state, unsigned number)
{
	struct state now = *state;
	struct process *process = &now.process[number];
	unsigned char *lock = &now.machine[machine_of(number)];
	switch ((enum phase)process->phase) {
	case DEAD: return;
	case IDLE:
		if (!process->turns || (*lock != NOBODY && weakness != NO_MACHINE_LOCK))
			return;
		*lock = (unsigned char)number;
		process->turns--;
		process->change = (unsigned char)(1u << (number * TURNS + process->turns));
		process->before = now.acknowledged;
		begin(process, TAKING, TOKEN_LIST);
		push(&now);
		return;
	case TAKING:
	case KEEPING:
	case SETTLING:
	case GIVING: steps(&now, number); break;
	default:
		if (process->phase < OPENING)
			takeover(&now, number);
		else
			transaction(&now, number);
		push(&now);
	}
	now = *state;
	bool busy =
		process->phase > KEEPING && process->phase != SETTLING && process->phase != GIVING;
	if (process->keeps && busy) {
		process->keeps--;
		process->after = process->phase;
		begin(process, KEEPING, TOKEN_KEEP);
		push(&now);
	}
	now = *state;
	if (now.kills) {
		now.kills--;
		leave(&now, number);
		process->turns = process->keeps = process->names = 0;
		process->phase = DEAD;
		push(&now);
	}
}

/* A request comes late. */
static void come_late(const struct state *state)
{
	struct state now = *state;
	if (!now.late[0].nonce)
		return;
	(void)serve(&now, now.late[0], now.late[1]);
	memset(now.late, 0, sizeof(now.late));
	push(&now);
}

struct bounds {
	unsigned char turns[PROCESSES], keeps, kills, faults;
};

/* Search all of it. The harm that was found; NULL: none. */
static const char *search(enum weakness which, struct bounds bounds)
{
	struct state first = {.token = {.state = FREE, .nonce = 1},
		.machine = {NOBODY, NOBODY},
		.kills = bounds.kills,
		.faults = bounds.faults,
		.files_there = 1};
	for (unsigned i = 0; i < PROCESSES; i++) {
		first.process[i].turns = bounds.turns[i];
		first.process[i].keeps = bounds.keeps;
	}
	weakness = which;
	harm = NULL;
	memset(seen, 0, seen_size * sizeof(*seen));
	seen_count = stack_count = 0;
	push(&first);
	while (stack_count && !harm) {
		struct state state = stack[--stack_count];
		for (unsigned i = 0; i < PROCESSES && !harm; i++)
			act(&state, i);
		if (!harm)
			come_late(&state);
	}
	printf("# %zu states%s%s\n", seen_count, harm ? ": " : "", harm ? harm : "");
	return harm;
}

int main(void)
{
	static const struct bounds cases[] = {
		{{1, 1, 1}, 0, 1, 1},
		{{1, 0, 2}, 0, 1, 1},
		{{2, 1, 1}, 0, 1, 0},
		{{1, 0, 1}, 1, 1, 1},
	};
	static const struct bounds small = {{1, 1, 1}, 0, 1, 1}, two = {{2, 0, 2}, 0, 0, 1};
	char name[192];
	seen_size = (size_t)1 << 23;
	seen = calloc(seen_size, sizeof(*seen));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct bounds *of = &cases[i];
		snprintf(name, sizeof(name),
			"%d and %d times on one machine, %d on another, %d kept, %d killed, %d requests "
			"failing: nothing that was acknowledged is lost",
			of->turns[0], of->turns[1], of->turns[2], of->keeps, of->kills, of->faults);
		TEST(name) CHECK(!search(NOTHING, *of));
		(void)unit_begin(NULL);
	}
	for (enum weakness which = NOTHING + 1; which < WEAKNESSES; which++) {
		snprintf(name, sizeof(name), "%s: harm", without[which]);
		TEST(name) CHECK(search(which, which == SAME_NAME ? two : small));
		(void)unit_begin(NULL);
	}
	free(seen);
	free(stack);
	return unit_end();
}
