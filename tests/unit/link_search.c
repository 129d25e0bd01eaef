/* SPDX-License-Identifier: MIT */
/*
 * Mode link, every order of events: the steps of lib/store/lock/link_step.c, which the store
 * carries out, on a modelled directory. Three processes take, keep, use and give back the lock.
 * Each may be killed between any two requests, and stopped there for as long as the others like. A
 * request may fail, be carried out without an answer, late, or twice. Shown for each state that can
 * be reached:
 *
 *	who writes holds the lock, alone, at that moment;
 *	a lock that was taken over is free only after the takeover was finished;
 *	whatever the others left, one that is alone gets it in a few steps.
 *
 * A stop between the look at the clock and the write itself is not searched here, the two are one
 * event: what makes that harmless is in takeover_search.c. Then one part after the other is taken
 * out of the method, and each time the search must find the harm.
 */
#include "store/lock/link_step.h"

#include <stdlib.h>
#include <xxhash.h>

#include "store/machine/staleness.h"
#include "unit.h"

enum { PROCESSES = 3, NAMES = 4, ALL_NAMES = PROCESSES * NAMES, PENDING = 2, NONE = 255 };

/* What is taken out. */
enum weakness {
	NOTHING,
	UNLINK_ANY,	/* giving back and breaking remove any file of the name */
	RENAME_OVER,	/* the filesystem moves a directory over one that is not empty */
	NO_PATIENCE,	/* a holder is treated as dead before the takeover time has passed */
	NO_RENEWAL,	/* a holder writes although that time may have passed */
	SWEEP_IN_PLACE, /* what is swept away is not moved aside first */
	SAME_NAME,	/* a process uses one name for all its acquisitions */
	UNLINK_OWED,	/* one that does not know whether it took over removes its name */
};

enum phase { IDLE, ASKING, HOLDING, KEEPING, LEAVING, LEAVING_NEXT, DEAD };

enum request { MOVE_IN = 1, UNLINK, MOVE_NAME, OVERTAKE };
struct pending {
	unsigned char request, from, to;
};

struct process {
	unsigned char phase, action, cause;
	unsigned char name, next; /* NONE: no such */
	unsigned char made;
	unsigned char trust; /* by its own clock it may write: it asked a short time ago */
	unsigned char fresh; /* no process can have watched its name for the takeover time */
	unsigned char acquisitions, writes, used;
	unsigned short dead; /* the names that it found dead */
	unsigned char overtook, owes;
};

struct state {
	unsigned short held;	      /* the names in HELD */
	unsigned char own[ALL_NAMES]; /* 0: no such directory, 1: empty, 2: with its name */
	struct process process[PROCESSES];
	struct pending pending[PENDING];
	unsigned char faults, kills, sweeps; /* that may still come */
	unsigned char owed; /* a lock was taken over, and no process has finished that */
};

static enum weakness weakness;
static uint64_t *seen;
static size_t seen_size, seen_count;
static struct state *stack;
static size_t stack_count, stack_size;
static unsigned names; /* that each process may use */
static const char *harm;

static bool is_new(const struct state *state)
{
	uint64_t hash = XXH64(state, sizeof(*state), 0) | 1;
	size_t at = hash & (seen_size - 1);
	for (; seen[at]; at = (at + 1) & (seen_size - 1))
		if (seen[at] == hash)
			return false;
	seen[at] = hash;
	return ++seen_count < seen_size * 3 / 4 || (harm = "the search is too large", false);
}

static void push(const struct state *state)
{
	if (harm || !is_new(state))
		return;
	if (stack_count == stack_size) {
		stack_size = stack_size ? stack_size * 2 : 1024;
		stack = realloc(stack, stack_size * sizeof(*stack));
	}
	stack[stack_count++] = *state;
}

static struct process *owner(struct state *state, unsigned name)
{
	return &state->process[name / NAMES];
}

static unsigned short bit(unsigned name)
{
	return (unsigned short)(1u << name);
}

/* A name in use appears in HELD now: every process has to wait from now on. */
static void appears(struct state *state, unsigned name)
{
	struct process *process = owner(state, name);
	if (process->phase != DEAD && (process->name == name || process->next == name))
		process->fresh = true;
}

/* The server carries a request out. */
static enum link_answer serve(struct state *state, struct pending request)
{
	unsigned from = request.from;
	switch (request.request) {
	case MOVE_IN:
		if (!state->own[from])
			return LINK_MISSING;
		if (state->held && weakness != RENAME_OVER)
			return LINK_OCCUPIED;
		if (state->owed)
			harm = "a lock is free before its takeover was finished";
		state->held = state->own[from] == 2 ? bit(from) : 0;
		state->own[from] = 0;
		appears(state, from);
		return LINK_YES;
	case UNLINK: {
		unsigned short mask = weakness == UNLINK_ANY ? state->held : bit(from);
		bool there = state->held & mask;
		state->held &= (unsigned short)~mask;
		return there ? LINK_YES : LINK_MISSING;
	}
	case MOVE_NAME:
	case OVERTAKE:
		if (!(state->held & bit(from)))
			return LINK_MISSING;
		state->held = (unsigned short)((state->held & ~bit(from)) | bit(request.to));
		state->owed |= request.request == OVERTAKE;
		appears(state, request.to);
		return LINK_YES;
	default: return LINK_MISSING;
	}
}

static bool fresh_name(struct process *process, unsigned number, unsigned char *name)
{
	if (weakness == SAME_NAME && process->used) {
		*name = (unsigned char)(number * NAMES);
		return true;
	}
	if (process->used == names)
		return false;
	*name = (unsigned char)(number * NAMES + process->used++);
	return true;
}

/* Without counting rounds, for which it does the same and waits in between. */
static void set_step(struct process *process, const struct link_step *step)
{
	process->action = (unsigned char)step->action;
	process->cause = (unsigned char)step->cause;
	process->overtook = step->overtook;
}

/* An answer arrives: what the process does with it. */
static void answered(struct state *state, unsigned number, enum link_answer answer)
{
	struct process *process = &state->process[number];
	struct link_step step = {.action = (enum link_action)process->action,
		.cause = (enum link_answer)process->cause,
		.overtook = process->overtook};
	if (step.action == LINK_BREAK && answer == LINK_MISSING)
		process->next = NONE;
	(void)link_next(&step, answer);
	set_step(process, &step);
	switch (step.action) {
	case LINK_HELD:
		if (process->next != NONE)
			process->name = process->next;
		process->next = NONE;
		process->owes |= process->overtook;
		process->phase = HOLDING;
		process->made = false;
		set_step(process, &(struct link_step){0});
		break;
	case LINK_BUSY:
		(void)link_begin(&step, process->made);
		set_step(process, &step);
		break;
	case LINK_LOST:
	case LINK_FAILED:
		/* What was renamed to it, or may yet be, is left for the next one. */
		if (step.overtook && weakness != UNLINK_OWED)
			process->next = NONE;
		process->phase = LEAVING;
		set_step(process, &(struct link_step){0});
		break;
	default: break;
	}
}

static void left(struct process *process)
{
	process->name = process->next = NONE;
	process->phase = IDLE;
	process->trust = process->fresh = process->made = false;
	process->owes = process->overtook = false;
	process->dead = 0;
	if (!process->acquisitions)
		process->used = (unsigned char)names;
}

/* After a request other than those of the steps. */
static void went_on(struct state *state, unsigned number)
{
	struct process *process = &state->process[number];
	if (process->phase == LEAVING && process->next != NONE)
		process->phase = LEAVING_NEXT;
	else
		left(process);
}

static void conclude(const struct state *state, unsigned number, enum link_answer answer)
{
	struct state after = *state;
	if (after.process[number].phase == LEAVING || after.process[number].phase == LEAVING_NEXT)
		went_on(&after, number);
	else
		answered(&after, number, answer);
	push(&after);
}

/* A request that changes something, with all that a network can make of it. */
static void request(const struct state *state, unsigned number, struct pending what)
{
	struct state asked = *state;
	if (what.request != UNLINK)
		asked.process[number].trust = true;
	struct state now = asked;
	enum link_answer answer = serve(&now, what);
	conclude(&now, number, answer);
	if (!state->faults)
		return;
	now.faults--;
	conclude(&now, number, LINK_UNCERTAIN);
	/* Repeated because the answer was lost. */
	struct state twice = now;
	enum link_answer second = serve(&twice, what);
	conclude(&twice, number, second);
	struct state before = asked;
	before.faults--;
	conclude(&before, number, LINK_UNCERTAIN);
	for (int i = 0; i < PENDING; i++) {
		if (before.pending[i].request)
			continue;
		/* It comes later, with or without having come before. */
		now.pending[i] = before.pending[i] = what;
		conclude(&now, number, answer);
		conclude(&before, number, LINK_UNCERTAIN);
		break;
	}
}

/* Whether the holder of a name in HELD may be treated as dead. */
static bool may_be_dead(struct state *state, unsigned name)
{
	struct process *process = owner(state, name);
	bool in_use = process->name == name || process->next == name;
	return process->phase == DEAD || !in_use || !process->fresh || weakness == NO_PATIENCE;
}

static void look(const struct state *state, unsigned number)
{
	struct state now = *state;
	struct process *process = &now.process[number];
	unsigned short ours = process->name == NONE ? 0 : bit(process->name);
	unsigned short others = now.held & (unsigned short)~ours;
	bool all = true;
	for (unsigned name = 0; name < ALL_NAMES; name++)
		if (others & bit(name))
			all = all && may_be_dead(&now, name);
	if (!now.held) {
		conclude(&now, number, LINK_NOBODY);
	} else if (!others) {
		conclude(&now, number, LINK_OURSELVES);
	} else {
		conclude(&now, number, LINK_ALIVE);
		process->dead = others;
		if (all)
			conclude(&now, number, LINK_DEAD);
	}
}

/* Never more than one: who moves a name into HELD finds that empty. */
static void break_dead(const struct state *state, unsigned number)
{
	struct state now = *state;
	struct process *process = &now.process[number];
	unsigned name = 0;
	while (!(process->dead & bit(name)))
		name++;
	process->dead = 0;
	if (!fresh_name(process, number, &process->next)) {
		process->phase = LEAVING;
		push(&now);
		return;
	}
	request(&now, number, (struct pending){OVERTAKE, (unsigned char)name, process->next});
}

static void carry_out(const struct state *state, unsigned number)
{
	struct state now = *state;
	struct process *process = &now.process[number];
	switch ((enum link_action)process->action) {
	case LINK_MAKE:
		if (!fresh_name(process, number, &process->name)) {
			process->acquisitions = 0;
			left(process);
			push(&now);
			return;
		}
		now.own[process->name] = 2;
		process->made = true;
		conclude(&now, number, LINK_YES);
		return;
	case LINK_TAKE: request(&now, number, (struct pending){MOVE_IN, process->name, 0}); return;
	case LINK_CHECK:
	case LINK_CHECK_NEXT: {
		unsigned name = process->action == LINK_CHECK ? process->name : process->next;
		bool there = name != NONE && (now.held & bit(name));
		conclude(&now, number, there ? LINK_YES : LINK_MISSING);
		if (now.faults--)
			conclude(&now, number, LINK_UNCERTAIN);
		return;
	}
	case LINK_LIST_HELD: look(&now, number); return;
	case LINK_BREAK: break_dead(&now, number); return;
	case LINK_CLEAR: conclude(&now, number, LINK_YES); return;
	case LINK_UNMAKE:
		if (process->name != NONE)
			now.own[process->name] = 0;
		process->made = false;
		conclude(&now, number, LINK_YES);
		return;
	case LINK_RENEW:
		if (!fresh_name(process, number, &process->next)) {
			process->phase = LEAVING;
			push(&now);
			return;
		}
		request(&now, number, (struct pending){MOVE_NAME, process->name, process->next});
		return;
	default: harm = "a step that there is not";
	}
}

static void hold(const struct state *state, unsigned number)
{
	struct state now = *state;
	struct process *process = &now.process[number];
	struct link_step step;
	if (process->owes) {
		/* takeover_search.c: where it was overtaken in its turn, it cannot. */
		if (now.held == bit(process->name))
			now.owed = process->owes = false;
		else
			process->phase = LEAVING;
		push(&now);
		return;
	}
	if (process->writes == 0) {
		process->phase = LEAVING;
		push(&now);
		return;
	}
	if (process->trust || weakness == NO_RENEWAL) {
		if (now.held != bit(process->name))
			harm = "one wrote without the lock";
		else if (now.owed)
			harm = "one wrote before its takeover was finished";
		process->writes--;
		push(&now);
	}
	/* Where nothing can fail, to ask before the write gives no more than not to ask. */
	if (process->trust && !state->faults)
		return;
	now = *state;
	(void)link_begin_renewal(&step);
	process->phase = KEEPING;
	set_step(process, &step);
	push(&now);
}

/* Whatever process number can do next. */
static void act(const struct state *state, unsigned number)
{
	struct state now = *state;
	struct process *process = &now.process[number];
	struct link_step step;
	switch ((enum phase)process->phase) {
	case IDLE:
		if (!process->acquisitions)
			return;
		process->acquisitions--;
		process->writes = 1;
		process->phase = ASKING;
		(void)link_begin(&step, false);
		set_step(process, &step);
		push(&now);
		return;
	case ASKING:
	case KEEPING: carry_out(&now, number); return;
	case HOLDING: hold(&now, number); return;
	case LEAVING:
		/* One that did not finish its takeover leaves its name. */
		if (process->name == NONE || process->owes) {
			process->next = process->owes ? NONE : process->next;
			went_on(&now, number);
			push(&now);
		} else {
			request(&now, number, (struct pending){UNLINK, process->name, 0});
		}
		return;
	case LEAVING_NEXT:
		request(&now, number, (struct pending){UNLINK, process->next, 0});
		return;
	case DEAD: return;
	}
}

/* What happens to them. */
static void befall(const struct state *state)
{
	for (unsigned i = 0; i < PROCESSES; i++) {
		struct state now = *state;
		struct process *process = &now.process[i];
		if (process->phase == DEAD || process->phase == IDLE)
			continue;
		if (process->trust || process->fresh) {
			/* It is stopped, or slow, for longer than the takeover time. */
			process->trust = process->fresh = false;
			push(&now);
		}
		if (state->kills) {
			now.kills--;
			unsigned char name = process->name;
			*process = (struct process){.phase = DEAD, .name = name, .next = NONE};
			push(&now);
		}
	}
	for (unsigned i = 0; i < PENDING; i++) {
		struct state now = *state;
		if (!now.pending[i].request)
			continue;
		now.pending[i] = (struct pending){0};
		(void)serve(&now, state->pending[i]);
		push(&now);
	}
	for (unsigned name = 0; name < ALL_NAMES; name++) {
		struct state now = *state;
		if (!now.own[name] || (now.own[name] == 2 && !now.sweeps))
			continue;
		if (now.own[name] == 2)
			now.sweeps--;
		now.own[name] = weakness == SWEEP_IN_PLACE && now.own[name] == 2;
		push(&now);
	}
}

/* Whether a process gets it when all others have gone and left what they had. */
static void check_alone(const struct state *state, unsigned number)
{
	struct state now = *state;
	struct process *process = &now.process[number];
	if (process->phase != ASKING || process->used == names)
		return;
	for (int steps = 0; steps < 40 && process->phase == ASKING; steps++) {
		switch ((enum link_action)process->action) {
		case LINK_MAKE:
			if (!fresh_name(process, number, &process->name))
				return;
			now.own[process->name] = 2;
			process->made = true;
			answered(&now, number, LINK_YES);
			break;
		case LINK_TAKE:
			answered(&now, number,
				serve(&now, (struct pending){MOVE_IN, process->name, 0}));
			break;
		case LINK_CHECK:
			answered(&now, number,
				now.held & bit(process->name) ? LINK_YES : LINK_MISSING);
			break;
		case LINK_CHECK_NEXT: return;
		case LINK_LIST_HELD: {
			unsigned short others = now.held & (unsigned short)~bit(process->name);
			process->dead = others;
			answered(&now, number,
				others	   ? LINK_DEAD
				: now.held ? LINK_OURSELVES
					   : LINK_NOBODY);
			break;
		}
		case LINK_BREAK:
			if (!fresh_name(process, number, &process->next))
				return;
			now.held = bit(process->next);
			process->dead = 0;
			answered(&now, number, LINK_YES);
			break;
		case LINK_RENEW:
			if (!fresh_name(process, number, &process->next))
				return;
			answered(&now, number,
				serve(&now,
					(struct pending){MOVE_NAME, process->name, process->next}));
			break;
		case LINK_UNMAKE: return; /* it fails, because of a fault: no wedge */
		default: answered(&now, number, LINK_YES); break;
		}
	}
	if (process->phase == ASKING)
		harm = "one that is alone does not get the lock";
}

struct bounds {
	unsigned char processes, acquisitions, faults, kills, sweeps, names;
};

/* Search all of it. The harm that was found; NULL: none. */
static const char *search(enum weakness which, struct bounds bounds)
{
	struct state first = {
		.faults = bounds.faults, .kills = bounds.kills, .sweeps = bounds.sweeps};
	for (unsigned i = 0; i < PROCESSES; i++)
		first.process[i] = (struct process){.name = NONE,
			.next = NONE,
			.acquisitions = i < bounds.processes ? bounds.acquisitions : 0};
	weakness = which;
	names = bounds.names;
	harm = NULL;
	memset(seen, 0, seen_size * sizeof(*seen));
	seen_count = stack_count = 0;
	push(&first);
	while (stack_count && !harm) {
		struct state state = stack[--stack_count];
		for (unsigned i = 0; i < bounds.processes && !harm; i++) {
			act(&state, i);
			if (!harm)
				check_alone(&state, i);
		}
		if (!harm)
			befall(&state);
	}
	printf("# %zu states%s%s\n", seen_count, harm ? ": " : "", harm ? harm : "");
	return harm;
}

static void timers(void)
{
	TEST("silence adds up only in small pieces that were seen")
	{
		struct staleness staleness = {0};
		CHECK_EQ(staleness_observe(&staleness, 7, 1000, 16000), 0);
		CHECK_EQ(staleness_observe(&staleness, 7, 1500, 16000), 500);
		/* Suspended for an hour: one observation, one sixteenth. */
		CHECK_EQ(staleness_observe(&staleness, 7, 3601500, 16000), 1500);
		/* A clock that went back. */
		CHECK_EQ(staleness_observe(&staleness, 7, 1, 16000), 1500);
		CHECK_EQ(staleness_observe(&staleness, 8, 2, 16000), 0);
		int64_t silent = 0;
		int observations = 0;
		for (int64_t now = 2; silent < 16000; now += 100000, observations++)
			silent = staleness_observe(&staleness, 8, now, 16000);
		CHECK_EQ(observations, 17);
	}
}

/* "all": the cases that take long, too, as tests/crash/sweep soak does. */
int main(int argc, char **argv)
{
	static const struct bounds small = {2, 2, 1, 1, 1, 4};
	static const struct bounds cases[] = {
		{3, 1, 0, 1, 1, 3},
		{2, 2, 1, 1, 1, 4},
		{3, 1, 0, 2, 0, 3},
		{3, 2, 0, 0, 0, 3},
		{3, 1, 1, 0, 0, 3},
		{2, 1, 2, 1, 1, 3},
	};
	size_t count = argc > 1 && !strcmp(argv[1], "all") ? sizeof(cases) / sizeof(cases[0]) : 1;
	seen_size = (size_t)1 << 23;
	seen = calloc(seen_size, sizeof(*seen));
	timers();
	for (size_t i = 0; i < count; i++) {
		char name[160];
		snprintf(name, sizeof(name),
			"%d processes, %d times, %d faults, %d killed, %d swept: who writes holds the "
			"lock alone, no process is stuck",
			cases[i].processes, cases[i].acquisitions, cases[i].faults, cases[i].kills,
			cases[i].sweeps);
		TEST(name) CHECK(!search(NOTHING, cases[i]));
		(void)unit_begin(NULL);
	}
	TEST("a plain file instead of a name in a directory: two write")
	CHECK(search(UNLINK_ANY, small));
	TEST("a filesystem that moves a directory over one in use: two write")
	CHECK(search(RENAME_OVER, small));
	TEST("treated as dead before the takeover time: two write")
	CHECK(search(NO_PATIENCE, small));
	TEST("writing without renewal: two write")
	CHECK(search(NO_RENEWAL, small));
	TEST("swept without moving it aside: two write")
	CHECK(search(SWEEP_IN_PLACE, small));
	TEST("one name for all acquisitions of a process: two write")
	CHECK(search(SAME_NAME, small));
	TEST("one that does not know whether it took over unlinks its name: others write")
	CHECK(search(UNLINK_OWED, small));
	free(seen);
	free(stack);
	return unit_end();
}
