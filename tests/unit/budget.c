/* SPDX-License-Identifier: MIT */
/* Whether a run may run again: the budgets, and how an attempt's end is kept and read. */
#include "run/budget.h"

#include <stdlib.h>

#include "unit.h"

/*
 * A history in words, the oldest first: CAUSE[:SAVED][!][~], ":SAVED" the newest step it saved, "!"
 * it was decided not to run again after it, "~" its saves do not show, "@STEP" it began from a
 * checkpoint of that step, "+" it lasted long.
 */
static size_t read_history(const char *text, struct outcome *past)
{
	static const char *const words[] = {"open", "completed", "stopped", "preempted", "unsaved",
		"crashed", "hung", "lost", "unjoined"};
	char copy[512], *rest = copy;
	size_t count = 0;
	snprintf(copy, sizeof(copy), "%s", text);
	for (char *word; (word = strsep(&rest, " "));) {
		struct outcome *o = &past[count++];
		char *mark = word + strcspn(word, ":!~@+");
		*o = (struct outcome){.attempt = count, .measured = true, .lasted = 1000};
		while (strlen(words[o->cause]) != (size_t)(mark - word) ||
			strncmp(words[o->cause], word, (size_t)(mark - word)) != 0)
			o->cause++;
		for (; *mark; mark += 1 + strspn(mark + 1, "0123456789")) {
			uint64_t number = strtoull(mark + 1, NULL, 10);
			o->has_saved |= *mark == ':';
			o->saved = *mark == ':' ? number : o->saved;
			o->has_resume |= *mark == '@';
			o->resume = *mark == '@' ? number : o->resume;
			o->refused |= *mark == '!';
			o->measured &= *mark != '~';
			o->lasted = *mark == '+' ? BUDGET_STEADY : o->lasted;
		}
		if (o->refused)
			strcpy(o->why, "decided before");
	}
	return count;
}

enum answer { AGAIN, NOTHING, DECIDED };

static void decided(void)
{
	static const struct {
		const char *what, *history;
		enum answer answer;
		const char *why; /* part of it */
	} rows[] = {
		{"finished: nothing to run again", "completed", NOTHING, "finished"},
		{"finished after crashes", "crashed crashed crashed completed", NOTHING, ""},
		{"asked to stop: permanently", "preempted:5 stopped:9", DECIDED, "asked to stop"},
		{"preempted: again", "preempted:5", AGAIN, "attempt 1 was preempted"},
		{"preempted is unlimited, with progress",
			"preempted:1 preempted:2 preempted:3 preempted:4 preempted:5 preempted:6",
			AGAIN, "preempted"},
		{"preempted is unlimited, before the first save",
			"preempted preempted preempted preempted preempted preempted", AGAIN, ""},
		{"preempted without a checkpoint: again", "unsaved", AGAIN, "without a new"},
		{"the fourth in a row without a checkpoint is no progress",
			"unsaved unsaved unsaved unsaved", DECIDED, "no step was ever saved"},
		{"but not where saves do not show", "unsaved~ unsaved~ unsaved~ unsaved~ unsaved~",
			AGAIN, ""},
		{"periodic saves are progress, whatever the end",
			"unsaved:1 unsaved:2 unsaved:3 unsaved:4 unsaved:5", AGAIN, ""},
		{"three crashes are forgiven", "crashed:1 crashed:2 crashed:3", AGAIN,
			"attempt 3 crashed, 3 of 3"},
		{"the fourth is not, even with progress", "crashed:1 crashed:2 crashed:3 crashed:4",
			DECIDED, "4 crashes, 3 allowed (--max-crashes)"},
		{"preemptions between them do not count",
			"crashed:1 preempted:2 crashed:3 preempted:4 preempted:5 crashed:6", AGAIN,
			"3 of 3"},
		{"nor do they forgive",
			"crashed:1 preempted:2 crashed:3 preempted:4 crashed:5 preempted:6 crashed:7",
			DECIDED, "4 crashes"},
		{"a preemption after too many crashes is no crash",
			"crashed:1 crashed:2 crashed:3 preempted:4", AGAIN, "preempted"},
		{"hangs are counted apart from crashes",
			"crashed:1 crashed:2 crashed:3 hung:4 hung:5 hung:6", AGAIN,
			"attempt 6 hung, 3 of 3"},
		{"and crashes apart from all else",
			"hung:1 lost:2 hung:3 lost:4 preempted:5 hung:6 crashed:7", AGAIN,
			"attempt 7 crashed, 1 of 3"},
		{"the fourth hang", "hung:1 hung:2 hung:3 hung:4", DECIDED, "4 hangs"},
		{"lost peers have no limit of their own",
			"lost:1 lost:2 lost:3 lost:4 lost:5 lost:6 lost:7", AGAIN, "lost a task"},
		{"but have to make progress", "preempted:9 lost:9 lost:9 lost:9 lost:9", DECIDED,
			"the newest saved step is still 9"},
		{"three without progress are forgiven", "preempted:9 lost:9 lost:9 lost:9", AGAIN,
			""},
		{"progress in between begins again", "lost:9 lost:9 lost:9 lost:10 lost:9 lost:10",
			AGAIN, ""},
		{"a step that was reached before is none",
			"preempted:100 lost:40 lost:50 lost:60 lost:70", DECIDED, "still 100"},
		{"crashes at the same step: the crashes end it first",
			"crashed:9 crashed:9 crashed:9", AGAIN, ""},
		{"crashes at the same step", "crashed:9 crashed:9 crashed:9 crashed:9", DECIDED,
			"4 crashes"},
		{"nothing saved in it, crashes and losses", "crashed lost crashed lost", DECIDED,
			"no progress in 4 attempts"},
		{"not all came: neither progress nor none",
			"unjoined unjoined unjoined unjoined unjoined", AGAIN,
			"did not get all its tasks"},
		{"not closed, and nothing of it runs: lost", "open", AGAIN, "lost a task"},
		{"what the next one began from was saved",
			"lost~ lost@10~ lost@20~ lost@30~ lost@40~ lost@50~", AGAIN, ""},
		{"and what it began from is not its own", "lost@10 lost@10 lost@10 lost@10",
			DECIDED, "still 10"},
		{"the first save counts, whatever its step", "lost@0 lost@0 lost@0 lost@0:1", AGAIN,
			""},
		{"decided before: decided", "crashed!", DECIDED, "decided before"},
		{"started after a decision: again", "crashed crashed crashed crashed! crashed",
			AGAIN, "1 of 3"},
		{"also with the newest saved step",
			"preempted:9 crashed:9 crashed:9 crashed:9 crashed:9! lost:8 lost:8 lost:8 lost:8",
			AGAIN, ""},
		{"but not for ever",
			"preempted:9 crashed:9 crashed:9 crashed! lost:8 lost:8 lost:8 lost:8 lost:8",
			DECIDED, "still 8"},
		{"started after it had finished: again",
			"crashed:9 crashed:19 crashed:29 completed:99 crashed:9 crashed:19", AGAIN,
			"2 of 3"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct outcome past[16];
		struct budget_decision decision;
		const struct budget_limits limits = BUDGET_DEFAULTS;
		size_t count = read_history(rows[i].history, past);
		budget_decide(past, count, &limits, 7, &decision);
		enum answer answer = decision.again ? AGAIN : decision.decided ? DECIDED : NOTHING;
		if (!CHECK(answer == rows[i].answer && strstr(decision.why, rows[i].why), "%s",
			    rows[i].what))
			printf("# again %d, decided %d: %s\n", decision.again, decision.decided,
				decision.why);
	}
}

static void limits(void)
{
	struct outcome past[16];
	struct budget_decision decision;
	struct budget_limits none = {.restarts = BUDGET_UNLIMITED, .no_progress = 0};
	budget_decide(past, read_history("crashed:1", past), &none, 0, &decision);
	CHECK(decision.decided, "--max-crashes 0: the first is too many");
	budget_decide(past, read_history("hung:1", past), &none, 0, &decision);
	CHECK(decision.decided, "--max-hangs 0");
	budget_decide(past, read_history("lost", past), &none, 0, &decision);
	CHECK(decision.decided && strstr(decision.why, "--max-no-progress"), "--max-no-progress 0");
	budget_decide(past, read_history("lost:1", past), &none, 0, &decision);
	CHECK(decision.again, "it made progress");
	struct budget_limits two = BUDGET_DEFAULTS;
	two.restarts = 2;
	two.crashes = 100;
	budget_decide(past, read_history("crashed:1 preempted:2 lost:3 preempted:4", past), &two, 0,
		&decision);
	CHECK(decision.again, "--restarts 2: two failures");
	budget_decide(past, read_history("crashed:1 preempted:2 lost:3 hung:4", past), &two, 0,
		&decision);
	CHECK(decision.decided && strstr(decision.why, "--restarts"), "--restarts 2: a third");
}

static int64_t longest_pause(const char *history)
{
	struct outcome past[16];
	struct budget_decision decision;
	struct budget_limits wide = {100, 100, 100, 100, 1000, 300000};
	int64_t longest = 0;
	size_t count = read_history(history, past);
	for (uint64_t draw = 0; draw < 300000; draw += 7) {
		budget_decide(past, count, &wide, draw, &decision);
		if (decision.pause > longest)
			longest = decision.pause;
		if (decision.pause < 0 ||
			(!decision.pause && past[count - 1].cause != CAUSE_PREEMPTED))
			return -1;
	}
	return longest;
}

static void pauses(void)
{
	CHECK_EQ(longest_pause("preempted:1"), 0);
	CHECK_EQ(longest_pause("crashed"), 1000);
	CHECK_EQ(longest_pause("crashed crashed"), 2000);
	CHECK_EQ(longest_pause("crashed crashed crashed"), 4000);
	CHECK_EQ(longest_pause("crashed crashed crashed:4"), 1000);
	CHECK_EQ(longest_pause("crashed crashed crashed+"), 1000);
	CHECK_EQ(longest_pause("lost lost lost lost lost lost lost lost lost lost lost lost"),
		300000);
}

static void kept(void)
{
	struct outcome was = {.cause = CAUSE_CRASHED,
			       .code = 139,
			       .text = "task 2 failed on n3 with 139",
			       .lasted = 12345,
			       .measured = true,
			       .has_saved = true,
			       .saved = 99,
			       .has_resume = true,
			       .resume = 9,
			       .from = UINT64_MAX >> 1},
		       is;
	struct json_object *json = json_object_new_object();
	outcome_write(&was, json);
	bool right = outcome_read(json, &is);
	CHECK(right && is.cause == was.cause && is.code == was.code && !strcmp(is.text, was.text) &&
			is.lasted == was.lasted && is.measured && is.has_saved &&
			is.saved == was.saved && is.has_resume && is.resume == was.resume &&
			is.from == was.from,
		"CLOSED keeps an outcome");
	json_object_put(json);
	for (enum outcome_cause cause = 0; cause < CAUSE_KINDS; cause++) {
		json = json_object_new_object();
		outcome_write(&(struct outcome){.cause = cause, .lasted = -1}, json);
		CHECK(outcome_read(json, &is) && is.cause == cause && is.lasted == -1 &&
				!is.has_saved && !is.measured,
			"%s is kept", outcome_word(cause));
		json_object_put(json);
	}
	json = json_object_new_object();
	CHECK(!outcome_read(json, &is) && !outcome_read(NULL, &is),
		"an older CLOSED has no outcome");
	json_put_text(json, "cause", "eaten by a grue");
	CHECK(!outcome_read(json, &is), "nor does a newer one");
	json_object_put(json);
}

/* Restarts that failed from the checkpoint of step 5. */
static void failed_from(void)
{
	static const struct {
		const char *text;
		uint64_t failed;
	} rows[] = {
		{"", 0},
		{"crashed@5", 1},
		{"crashed@5 hung@5 lost@5 unjoined@5", 4},
		{"crashed@5 preempted@5 unsaved@5 completed@5 stopped@5 crashed@5", 2},
		{"crashed@5 open@5", 1},	      /* how it ended is not known */
		{"crashed@5 crashed@4 crashed@5", 1}, /* another checkpoint came between */
		{"crashed@5 crashed", 0},	      /* it began from none */
		{"crashed@4", 0},
	};
	struct outcome past[16];
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		size_t count = *rows[i].text ? read_history(rows[i].text, past) : 0;
		for (size_t k = 0; k < count; k++)
			past[k].from = outcome_from("/ck/5");
		CHECK_EQ(budget_failed_from(past, count, 5, outcome_from("/ck/5")), rows[i].failed);
		CHECK_EQ(budget_failed_from(past, count, 5, outcome_from("/other/5")), 0);
	}
	CHECK(outcome_from("") == 0 && outcome_from("/ck/5") != 0,
		"a path has a hash, and no path has none");
}

int main(void)
{
	failed_from();
	decided();
	limits();
	pauses();
	kept();
	return unit_end();
}
