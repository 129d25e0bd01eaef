/* SPDX-License-Identifier: MIT */
/*
 * Transcripts (tests/agreement): what happens to a group, line by line, and how its agents answer.
 * The agents are those of lib/agent in the simulated world; each training does only what the file
 * says. After a line the world runs on until nothing has been answered for a moment; longer times
 * pass only where the file says so. The answers to one line are printed in a fixed order, so that
 * they do not depend on which thread was first.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

#define QUIET	     (300 * MS)	  /* so long without an answer, and the next line follows */
#define LONGEST	     (10000 * MS) /* but not after that */
#define MOST_ANSWERS 128

/* ---- What the agents answer: what differs from what was there before ---- */

/* In this order, and each of these by task. Those of a round come with that round. */
enum order {
	ORDER_OF_CLAIM,
	ORDER_OF_ROUND = 10, /* 10 for each round: opened, reported, decided, saved */
	ORDER_OF_DEATH = 10 * (MOST_ROUNDS + 2),
	ORDER_OF_SEAL,
	ORDER_OF_BOARD,
	ORDER_OF_COMMAND,
	ORDER_OF_EXIT,
	ORDER_OF_GOODBYE,
	ORDER_OF_END,
};

struct answer {
	int order, task;
	char text[100];
};

/* One transcript while it is read and carried out. */
static struct {
	struct world world;
	struct schedule schedule;
	struct statistics statistics;
	struct act act[256]; /* what was done, at an address that stays */
	int acts;
	bool begun;
	bool stopped[MOST_TASKS]; /* agents */
	struct keys before;
	struct agreement_hold told[MOST_TASKS];
	bool ended[MOST_TASKS], exited[MOST_TASKS];
	struct answer answer[MOST_ANSWERS];
	int answers;
} t;

__attribute__((format(printf, 3, 4))) static void answer(
	int order, int task, const char *format, ...)
{
	int at = t.answers;
	va_list args;
	if (t.answers == MOST_ANSWERS)
		return;
	t.answers++;
	for (; at > 0; at--) {
		const struct answer *other = &t.answer[at - 1];
		if (other->order < order || (other->order == order && other->task <= task))
			break;
		t.answer[at] = *other;
	}
	t.answer[at] = (struct answer){.order = order, .task = task};
	va_start(args, format);
	vsnprintf(t.answer[at].text, sizeof(t.answer[at].text), format, args);
	va_end(args);
}

static void answer_decision(int order, uint64_t number, const struct round_keys *round)
{
	static const char *const afterwards[] = {"leave", "run on", "stop for good"};
	const struct agreement_decision *d = &round->decision;
	char what[40] = "nothing is to be saved", unheard[30] = "";
	const char *then = afterwards[d->kind == KIND_SAVE ? THEN_CONTINUE : d->then];
	if (d->kind == KIND_EACH)
		snprintf(what, sizeof(what), "each saves where it can");
	else if (d->kind != KIND_NONE)
		snprintf(what, sizeof(what), "save at %" PRIu64, d->step);
	if (round->unheard)
		snprintf(unheard, sizeof(unheard), ", %d unheard",
			__builtin_popcountll(round->unheard));
	answer(order, 0, "decided in round %" PRIu64 ": %s, %s%s", number, what, then, unheard);
}

static void answer_round(uint64_t number)
{
	const struct round_keys *is = &t.world.keys.round[number], *was = &t.before.round[number];
	int order = ORDER_OF_ROUND * (int)number;
	if (number > t.before.rounds)
		answer(order, 0, "round %" PRIu64 " is opened", number);
	for (int i = 0; i < t.schedule.tasks; i++) {
		if (is->reported[i] && !was->reported[i] && is->none[i])
			answer(order + 1, i, "task %d reports: has not begun to train", i);
		else if (is->reported[i] && !was->reported[i])
			answer(order + 1, i,
				"task %d reports: at %" PRIu64 ", can stop at %" PRIu64, i,
				is->step[i], is->next[i]);
		if (is->saved >> i & 1 && !(was->saved >> i & 1))
			answer(order + 3, i,
				"the save of task %d at %" PRIu64 " is known in round %" PRIu64, i,
				is->saved_step[i], number);
	}
	if (is->decided && !was->decided)
		answer_decision(order + 2, number, is);
}

static void answer_records(void)
{
	static const char *const reasons[] = {
		"", "completed", "saved", "preempted", "failed", "because of another task", "left"};
	static const char *const seals[] = {"", "", "by an error", "by a death"};
	const struct keys *is = &t.world.keys, *was = &t.before;
	if (is->claimed && !was->claimed && is->claimer == NOBODY)
		answer(ORDER_OF_CLAIM, 0, "the claim stands");
	else if (is->claimed && !was->claimed)
		answer(ORDER_OF_CLAIM, 0, "task %d claims", is->claimer);
	if (is->deadlines != was->deadlines)
		answer(ORDER_OF_CLAIM + 1, 0, "the deadline is in %" PRId64 " s",
			(is->deadline - kernel.now + 500 * MS) / (1000 * MS));
	for (uint64_t r = 1; r <= is->rounds; r++)
		answer_round(r);
	for (int i = 0; i < t.schedule.tasks; i++) {
		if (is->dead >> i & 1 && !(was->dead >> i & 1))
			answer(ORDER_OF_DEATH, i, "task %d is declared dead%s", i,
				is->hung >> i & 1 ? ": it hangs" : "");
		if (is->left[i] != was->left[i])
			answer(ORDER_OF_GOODBYE, i, "the goodbye of task %d: %s", i,
				reasons[is->left[i]]);
	}
	if (is->seal != was->seal && is->seal != SEAL_CLAIM)
		answer(ORDER_OF_SEAL, 0, "the attempt is broken %s", seals[is->seal]);
	if (is->closed && !was->closed)
		answer(ORDER_OF_END, 0, "the attempt is closed");
	t.before = *is;
}

static void answer_board(int task)
{
	const struct agreement_hold *hold = &t.world.task[task].panel.hold, *was = &t.told[task];
	if (hold->order == was->order && hold->step == was->step && hold->code == was->code)
		return;
	t.told[task] = *hold;
	switch (hold->order) {
	case ORDER_RUN: answer(ORDER_OF_BOARD, task, "task %d is told: run", task); break;
	case ORDER_WAIT: answer(ORDER_OF_BOARD, task, "task %d is told: wait", task); break;
	case ORDER_SAVE:
		answer(ORDER_OF_BOARD, task, "task %d is told: save at %" PRIu64 ", run on", task,
			hold->step);
		break;
	case ORDER_EXIT:
		answer(ORDER_OF_BOARD, task, "task %d is told: save at %" PRIu64 ", stay", task,
			hold->step);
		break;
	case ORDER_LEAVE:
		answer(ORDER_OF_BOARD, task, "task %d is told: leave with %d", task, hold->code);
		break;
	}
}

static void answer_all(void)
{
	struct world *w = &t.world;
	answer_records();
	for (int i = 0; i < t.schedule.tasks; i++) {
		answer_board(i);
		if (w->task[i].stopping && !t.ended[i])
			answer(ORDER_OF_COMMAND, i, "the command of task %d is ended", i);
		t.ended[i] = w->task[i].stopping;
	}
	for (int i = 0; i < schedule_agents(&t.schedule); i++) {
		if (w->node[i].process.exited && !t.exited[i])
			answer(ORDER_OF_EXIT, i, "agent %d exits with %d", i, w->node[i].code);
		t.exited[i] = w->node[i].process.exited;
	}
}

/* ---- Time ---- */

static void step_once(void)
{
	/* An event of a stopped process waits: only for a moment, because it may go on at any time.
	 */
	for (int i = 0; i < schedule_agents(&t.schedule); i++)
		if (t.stopped[i])
			t.world.node[i].process.paused_until = kernel_next() + MS;
	kernel_step();
	answer_all();
}

static void run_until(int64_t time)
{
	while (!kernel.violated && kernel_next() <= time)
		step_once();
	kernel.now = time;
}

static void run_until_quiet(void)
{
	int64_t latest = kernel.now + LONGEST, quiet = kernel.now + QUIET;
	while (!kernel.violated && kernel_next() <= quiet && kernel_next() <= latest) {
		int answers = t.answers;
		step_once();
		if (t.answers > answers)
			quiet = kernel.now + QUIET;
	}
	kernel.now = quiet < latest ? quiet : latest;
}

static void begin(void)
{
	struct schedule *s = &t.schedule;
	for (int i = 0; i < s->tasks; i++)
		s->trainee[i].startup = CLOCK_NEVER;
	t.begun = true;
	world_begin(&t.world, s, &t.statistics, getenv("SIM_TRACE") ? stderr : NULL);
	while (!kernel.violated && t.world.started < schedule_agents(s))
		kernel_step();
	run_until_quiet();
	t.answers = 0;
}

/* ---- What may happen: lines of a file, with # for a number ---- */

static void do_deed(enum deed deed, int who, int64_t amount, enum agreement_then then)
{
	struct act *act = &t.act[t.acts];
	if (t.acts + 1 < (int)(sizeof(t.act) / sizeof(t.act[0])))
		t.acts++;
	*act = (struct act){.deed = deed, .who = who, .amount = amount, .then = then};
	world_do(&t.world, act, NOBODY);
}

enum happening {
	CALLS,
	CALLS_NEXT,
	SAVES,
	HAS_SAVED,
	ENDS,
	GETS_NOTICE,
	GETS_NOTICE_LEFT,
	CLAIMS,
	CLAIMS_STOP,
	ASKS,
	KILLED,
	RESTARTED,
	STOPPED,
	GOES_ON,
	BOARD_GONE,
	STORE_GONE,
	STORE_BACK,
	STORE_TAKES,
	PASS,
	HAPPENINGS,
};

static const char *const forms[HAPPENINGS] = {
	[CALLS] = "task # calls step #",
	[CALLS_NEXT] = "task # calls step #, its next is #",
	[SAVES] = "task # saves",
	[HAS_SAVED] = "task # has saved",
	[ENDS] = "the command of task # ends with #",
	[GETS_NOTICE] = "task # gets a notice",
	[GETS_NOTICE_LEFT] = "task # gets a notice, # s left",
	[CLAIMS] = "somebody claims",
	[CLAIMS_STOP] = "somebody claims, to stop for good",
	[ASKS] = "somebody asks for a checkpoint",
	[KILLED] = "agent # is killed",
	[RESTARTED] = "agent # is killed and started again",
	[STOPPED] = "agent # is stopped",
	[GOES_ON] = "agent # goes on",
	[BOARD_GONE] = "the board of task # vanishes",
	[STORE_GONE] = "the store is gone",
	[STORE_BACK] = "the store is back",
	[STORE_TAKES] = "the store takes # ms",
	[PASS] = "# s pass",
};

static void happen(enum happening what, const int64_t *n)
{
	struct world *w = &t.world;
	int task = (int)n[0], first = task * t.schedule.per_agent; /* task of agent n[0] */
	switch (what) {
	case CALLS: training_call(w, task, (uint64_t)n[1], (uint64_t)n[1] + 1); break;
	case CALLS_NEXT: training_call(w, task, (uint64_t)n[1], (uint64_t)n[2]); break;
	case SAVES: training_begin_save(w, task); break;
	case HAS_SAVED: training_finish_save(w, task); break;
	case ENDS: training_end(w, task, (int)n[1]); break;
	case GETS_NOTICE: do_deed(NOTICE, task, -1, THEN_EXIT); break;
	case GETS_NOTICE_LEFT: do_deed(NOTICE, task, n[1] * 1000, THEN_EXIT); break;
	case CLAIMS: do_deed(CLAIM_OUTSIDE, NOBODY, -1, THEN_EXIT); break;
	case CLAIMS_STOP: do_deed(CLAIM_OUTSIDE, NOBODY, -1, THEN_STOP); break;
	case ASKS: do_deed(ON_DEMAND, NOBODY, -1, THEN_CONTINUE); break;
	case KILLED: do_deed(KILL_AGENT, first, 0, THEN_EXIT); break;
	case RESTARTED: do_deed(RESTART, first, 0, THEN_EXIT); break;
	case STOPPED:
		do_deed(PAUSE_AGENT, first, 0, THEN_EXIT);
		t.stopped[task] = true;
		break;
	case GOES_ON: t.stopped[task] = false; break;
	case BOARD_GONE: do_deed(LOSE_BOARD, task, 0, THEN_EXIT); break;
	case STORE_GONE: do_deed(CUT_OFF, EVERYBODY, INT64_C(1000000000), THEN_EXIT); break;
	case STORE_BACK:
		for (int i = 0; i < schedule_agents(&t.schedule); i++)
			w->node[i].process.cut_off_until = 0;
		break;
	case STORE_TAKES:
		kernel.way.latency = n[0];
		kernel.way.give_up = 3 * n[0] > 2000 ? 3 * n[0] : 2000;
		break;
	case PASS: run_until(kernel.now + n[0] * 1000 * MS); break;
	case HAPPENINGS: break;
	}
}

/* Whether the first number of the line is one of a task, or an agent, that there is. */
static bool is_of_a_task(const char *form, int64_t number)
{
	int tasks = strstr(form, "agent #") ? schedule_agents(&t.schedule) : t.schedule.tasks;
	return (!strstr(form, "agent #") && !strstr(form, "task #")) ||
	       (number >= 0 && number < tasks);
}

static bool happens(const char *line)
{
	for (enum happening i = 0; i < HAPPENINGS; i++) {
		int64_t number[3] = {0};
		if (!line_fits(line, forms[i], number, NULL) || t.schedule.tasks == 0 ||
			!is_of_a_task(forms[i], number[0]))
			continue;
		if (!t.begun)
			begin();
		happen(i, number);
		answer_all();
		run_until_quiet();
		return true;
	}
	return false;
}

/* ---- Files ---- */

/* Print the transcript of the lines of `in`, without its answers, with those that come. NULL: a
 * line cannot be read, or an invariant does not hold; what is wrong is said. */
static char *transcribe(FILE *in, const char **wrong)
{
	char line[256], *text = NULL;
	size_t length;
	FILE *out = open_memstream(&text, &length);
	memset(&t, 0, sizeof(t));
	schedule_usual(&t.schedule);
	t.schedule.latency = t.schedule.notify = 1;
	while (!*wrong && fgets(line, sizeof(line), in)) {
		line[strcspn(line, "\n")] = '\0';
		if (!strncmp(line, "  -> ", 5))
			continue;
		fprintf(out, "%s\n", line);
		bool read = !*line || *line == '#' ||
			    (!t.begun && schedule_read(&t.schedule, line)) || happens(line);
		for (int i = 0; i < t.answers; i++)
			fprintf(out, "  -> %s\n", t.answer[i].text);
		t.answers = 0;
		*wrong = !read			      ? "the last line cannot be read"
			 : t.begun && kernel.violated ? kernel.detail
						      : NULL;
	}
	if (t.begun)
		kernel_end();
	fclose(out);
	return text;
}

static char *read_all(FILE *in)
{
	char *text = calloc(1, 1 << 20);
	if (text)
		text[fread(text, 1, (1 << 20) - 1, in)] = '\0';
	rewind(in);
	return text;
}

/* The first line in which they differ. */
static void print_difference(const char *is, const char *was)
{
	int line = 1;
	size_t start = 0;
	for (size_t i = 0; is[i] && is[i] == was[i]; i++)
		if (is[i] == '\n') {
			line++;
			start = i + 1;
		}
	printf("# line %d says:     %.*s\n", line, (int)strcspn(was + start, "\n"), was + start);
	printf("# but what comes is: %.*s\n", (int)strcspn(is + start, "\n"), is + start);
}

static bool write_back(const char *path, const char *text)
{
	FILE *out = fopen(path, "w");
	bool written = out && fputs(text, out) >= 0;
	return out && !fclose(out) && written;
}

bool transcript(const char *path, bool writes)
{
	FILE *in = fopen(path, "r");
	const char *wrong = NULL;
	if (!in) {
		printf("# there is no %s\n", path);
		return false;
	}
	char *was = read_all(in), *is = transcribe(in, &wrong);
	bool good = !wrong && (writes ? write_back(path, is) : !strcmp(is, was));
	if (wrong)
		printf("# %s, after:\n%s", wrong, is);
	else if (!good && !writes)
		print_difference(is, was);
	fclose(in);
	free(was);
	free(is);
	return good;
}
