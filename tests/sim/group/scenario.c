/* SPDX-License-Identifier: MIT */
/*
 * The named scenarios: scenarios.txt, beside this file, has their schedules (text.c) and what must
 * come out of them besides the invariants.
 */
#include <stdlib.h>
#include <string.h>

#include "sim.h"

#define FILE_NAME      "tests/sim/group/scenarios.txt"
#define MOST_SCENARIOS 128

struct scenario scenarios[MOST_SCENARIOS + 1];
static char *lines_of[MOST_SCENARIOS]; /* what stands below the name of each */

/* ---- What may be expected; # is a number, * a set of tasks, or a word ---- */

struct expected {
	struct world *w;
	int tasks;
	const struct round_keys *last;
	const int64_t *n;
	const char *rest;
};

static bool left_with(const struct expected *e, int task, int64_t code)
{
	return e->w->task[task].finished && e->w->task[task].code == code;
}

static bool left_by(const struct expected *e, int task, int64_t limit)
{
	return e->w->task[task].finished && e->w->task[task].finished_at <= limit * MS;
}

static bool is_dead(const struct expected *e, int task)
{
	return e->w->keys.dead >> task & 1;
}

/* The set that is written there, as bits. */
static uint64_t set_of(const struct expected *e)
{
	bool set[MOST_TASKS] = {0};
	uint64_t bits = 0;
	if (!strcmp(e->rest, "nobody"))
		return 0;
	if (!keys_read_set(e->rest, MOST_TASKS, set))
		return UINT64_MAX;
	for (int i = 0; i < MOST_TASKS; i++)
		bits |= (uint64_t)set[i] << i;
	return bits;
}

static bool is_kind(const struct expected *e, const struct round_keys *round)
{
	enum agreement_kind kind;
	return keys_kind_parse(e->rest, &kind) && round->decided && round->decision.kind == kind;
}

static bool saves_of(const struct expected *e, int task, int64_t count)
{
	return (int64_t)e->w->task[task].training.asked_saves == count;
}

/* Of all agents, since the last of them has started its commands. */
static int64_t calls_since_start(const struct expected *e, enum shim_call call)
{
	return (int64_t)(kernel.shim.calls[call] - e->w->before.calls[call]);
}

#define EACH(condition)                                                                            \
	for (int i = 0; i < e->tasks; i++)                                                         \
		if (!(condition))                                                                  \
			return false;                                                              \
	return true

#define EXPECTED(name, condition)                                                                  \
	static bool name(const struct expected *e)                                                 \
	{                                                                                          \
		return condition;                                                                  \
	}
#define EXPECTED_OF_EACH(name, condition)                                                          \
	static bool name(const struct expected *e)                                                 \
	{                                                                                          \
		EACH(condition);                                                                   \
	}

EXPECTED_OF_EACH(all, left_with(e, i, e->n[0]))
EXPECTED_OF_EACH(all_or, left_with(e, i, e->n[0]) || left_with(e, i, e->n[1]))
EXPECTED(one, left_with(e, (int)e->n[0], e->n[1]))
EXPECTED_OF_EACH(others, is_dead(e, i) || left_with(e, i, e->n[0]))
EXPECTED_OF_EACH(survivors, !e->w->task[i].finished || left_with(e, i, e->n[0]))
EXPECTED_OF_EACH(
	survivors_told, !e->w->task[i].finished || e->w->task[i].panel.hold.code == e->n[0])
EXPECTED_OF_EACH(commands, e->w->task[i].training.code == e->n[0])
EXPECTED(complete, e->w->keys.rounds &&checkpoint_is_complete(e->w, e->w->keys.rounds))
EXPECTED(incomplete, !complete(e))
EXPECTED(complete_in, checkpoint_is_complete(e->w, (uint64_t)e->n[0]))
EXPECTED(rounds, (int64_t)e->w->keys.rounds == e->n[0])
EXPECTED(
	rounds_from, (int64_t)e->w->keys.rounds >= e->n[0] && (int64_t)e->w->keys.rounds <= e->n[1])
EXPECTED(decision, is_kind(e, round_keys(&e->w->keys, (uint64_t)e->n[0])))
EXPECTED(last_decision, is_kind(e, e->last))
EXPECTED_OF_EACH(survivors_saved,
	e->last->decided &&
		(!e->w->task[i].finished || training_has_saved(e->w, i, e->last->decision.step)))
EXPECTED_OF_EACH(all_saved, training_has_saved(e->w, i, e->last->decision.step))
EXPECTED_OF_EACH(saved_where_reported,
	!e->last->reported[i] || training_has_saved(e->w, i, e->last->next[i]))
EXPECTED_OF_EACH(by, left_by(e, i, e->n[0]))
EXPECTED_OF_EACH(others_by, is_dead(e, i) || left_by(e, i, e->n[0]))
EXPECTED_OF_EACH(not_before, e->w->task[i].finished_at >= e->n[0] * MS)
EXPECTED_OF_EACH(saves, saves_of(e, i, e->n[0]))
EXPECTED(saves_of_one, saves_of(e, (int)e->n[0], e->n[1]))
EXPECTED_OF_EACH(
	one_step, e->w->task[i].training.asked_step[0] ==
			  e->w->task[i - i % e->w->schedule->per_agent].training.asked_step[0])
EXPECTED_OF_EACH(acknowledged, e->last->acked >> i & 1)
EXPECTED(claimed, e->w->keys.claimed)
EXPECTED(attempt, (int64_t)e->w->newest_attempt == e->n[0])
EXPECTED(dead, e->w->keys.dead == set_of(e))
EXPECTED(members, round_keys(&e->w->keys, (uint64_t)e->n[0])->members == set_of(e))
EXPECTED(unheard, round_keys(&e->w->keys, (uint64_t)e->n[0])->unheard == set_of(e))
EXPECTED_OF_EACH(saved_there,
	e->last->saved == set_of(e) &&
		(!(e->last->saved >> i & 1) || e->last->saved_step[i] == e->last->decision.step))
EXPECTED(no_part, !e->last->reported[e->n[0]] && !(e->last->acked >> e->n[0] & 1))
EXPECTED(hung, e->w->keys.hung && e->w->keys.hung == e->w->keys.dead)
EXPECTED(some_hang, e->w->keys.hung)
EXPECTED(told_again,
	e->w->keys.deadlines >= 2 && e->w->keys.deadline_latest <= e->w->keys.deadline + 2000 * MS)
EXPECTED(deadline_of, e->w->keys.deadline <= e->w->task[e->n[0]].own_deadline + MS)
EXPECTED(asked, (int64_t)kernel.shim.calls[SHIM_TXN] < e->n[0])
EXPECTED(decided_by, round_keys(&e->w->keys, 1)->decided &&round_keys(&e->w->keys, 1)->decided_at <=
			     e->n[0] * MS)
EXPECTED(writes, calls_since_start(e, SHIM_TXN) <= e->n[0])
EXPECTED(calls, calls_since_start(e, SHIM_TXN) + calls_since_start(e, SHIM_READ) <= e->n[0])

/* Since then; at most so many processes have read more than so many bytes. */
static bool readers(const struct expected *e)
{
	int64_t count = 0;
	for (int i = 0; i < kernel.processes; i++)
		count += (int64_t)kernel.process[i]->bytes > e->n[1];
	return count <= e->n[0];
}

static bool somebody_reported(const struct expected *e)
{
	int reported = 0;
	for (int i = 0; i < e->tasks; i++)
		reported += e->last->reported[i];
	return reported && saved_where_reported(e);
}

static const struct {
	const char *form;
	bool (*holds)(const struct expected *e);
} expectations[] = {
	{"all leave with #", all},
	{"all leave with # or #", all_or},
	{"task # leaves with #", one},
	{"others leave with #", others}, /* than those that are called dead */
	{"survivors leave with #", survivors},
	{"survivors are told #", survivors_told},
	{"commands end with #", commands},
	{"complete", complete}, /* the checkpoint of the last round */
	{"incomplete", incomplete},
	{"complete in round #", complete_in},
	{"rounds: #", rounds},
	{"rounds: # to #", rounds_from},
	{"decision # is *", decision},
	{"the last decision is *", last_decision},
	{"survivors have saved there", survivors_saved}, /* at the last decision */
	{"all have saved there", all_saved},
	{"saves are known there of *", saved_there},
	{"who has reported has saved where", somebody_reported},
	{"left by # ms", by},
	{"others left by # ms", others_by},
	{"nobody left before # ms", not_before},
	{"saves of each: #", saves},
	{"saves of task #: #", saves_of_one},
	{"one step in each agent", one_step},
	{"acknowledged by all", acknowledged},
	{"claimed", claimed},
	{"attempt #", attempt},
	{"dead: *", dead},
	{"members of round #: *", members},
	{"unheard in round #: *", unheard},
	{"task # takes no part", no_part},
	{"the dead hang", hung},
	{"somebody hangs", some_hang},
	{"the deadline is told again", told_again},
	{"the deadline of task # is told", deadline_of},
	{"the store is asked less than # times", asked},
	{"decided by # ms", decided_by}, /* in the first round */
	{"at most # writes", writes},
	{"at most # calls", calls}, /* those that read, too */
	{"at most # agents read more than # bytes", readers},
};

/* ---- The file ---- */

static const char *wrong_line(const char *line, const char *why)
{
	static char text[300];
	snprintf(text, sizeof(text), "%s: %s", why, line);
	return text;
}

static const char *expect_one(struct world *w, const char *what)
{
	int64_t number[2] = {0};
	struct expected e = {.w = w,
		.tasks = w->schedule->tasks,
		.last = round_keys(&w->keys, w->keys.rounds),
		.n = number};
	for (size_t i = 0; i < sizeof(expectations) / sizeof(expectations[0]); i++)
		if (line_fits(what, expectations[i].form, number, &e.rest))
			return expectations[i].holds(&e) ? NULL : wrong_line(what, "not so");
	return wrong_line(what, "this cannot be read");
}

/* Call for each line of the scenario that runs; stops at what that returns, if it is not NULL. */
static const char *each_line(const char *(*call)(void *context, char *line), void *context)
{
	const char *wrong = NULL;
	char *copy = strdup(lines_of[runner_scenario - scenarios]), *rest = copy;
	while (!wrong && rest && *rest) {
		char *line = rest + strspn(rest, " "), *end = strchr(line, '\n');
		rest = end ? end + 1 : NULL;
		if (end)
			*end = '\0';
		if (*line && *line != '#')
			wrong = call(context, line);
	}
	free(copy);
	return wrong;
}

static const char *read_line(void *context, char *line)
{
	bool read = !strncmp(line, "expect ", 7) || schedule_read(context, line);
	return read ? NULL : wrong_line(line, "this cannot be read");
}

static void build(struct schedule *s)
{
	schedule_usual(s);
	const char *wrong = each_line(read_line, s);
	if (!wrong)
		return;
	fprintf(stderr, "%s: %s\n", runner_scenario->name, wrong);
	exit(2);
}

static const char *expect_line(void *context, char *line)
{
	const char *wrong = NULL;
	char *rest = line + strlen("expect ");
	if (strncmp(line, "expect ", 7) != 0)
		return NULL;
	for (const char *part; !wrong && (part = next_part(&rest));)
		wrong = expect_one(context, part);
	return wrong;
}

static const char *expect(struct world *w)
{
	return each_line(expect_line, w);
}

/* A scenario begins with "NAME: what it shows", at the begin of a line. */
void scenarios_read(void)
{
	static char text[1 << 17];
	FILE *file = fopen(FILE_NAME, "r");
	if (!file) {
		fprintf(stderr, "agreement_sim: no %s: call it from the source's directory\n",
			FILE_NAME);
		exit(2);
	}
	text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
	fclose(file);
	int count = 0;
	for (char *line = text, *next; line && *line; line = next) {
		char *colon = strstr(line, ": ");
		next = strchr(line, '\n');
		if (next)
			next++;
		if (!strchr(" #\n", *line) && colon && next && count < MOST_SCENARIOS) {
			if (line > text)
				line[-1] = '\0';
			*colon = next[-1] = '\0';
			scenarios[count] = (struct scenario){
				.name = line, .shows = colon + 2, .build = build, .expect = expect};
			lines_of[count++] = next;
		}
	}
}
