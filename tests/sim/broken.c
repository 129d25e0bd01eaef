/* SPDX-License-Identifier: MIT */
#include "broken.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST 1024

enum rule broken;

/*
 * Where a transaction is changed: into one that puts a key which has `puts` in its name, if that is
 * given, without its compares on keys that have one of `compares` in theirs.
 */
static const struct {
	const char *name, *meaning, *simulator, *puts, *compares[5];
} rules[RULES] = {
	[ONE_CLAIM] = {"one-claim", "a claim is written over another one", "agreement_sim",
		"/TERMINATED_WORKER", {"/TERMINATED_WORKER", "/SEAL", "/ROUND/"}},
	[ONE_DECISION] = {"one-decision", "a decision is written over another one", "agreement_sim",
		NULL, {"/RUN_TO_CHECKPOINT", "/LAST_RUN_TO_CHECKPOINT/"}},
	[THE_DEAD_WRITE_NOTHING] = {"the-dead-write-nothing",
		"a task that was declared dead writes", "agreement_sim", NULL, {"/DEAD/"}},
	[ATTEMPTS_FOLLOW] = {"attempts-follow-each-other",
		"an attempt is opened over another one, or joined when it is over", "agreement_sim",
		NULL, {"/SEAL", "/CLOSED", "/OPEN", "/LAST"}},
	[UNKNOWN_IS_NOT_DONE] = {"unknown-is-not-done",
		"a request that the store never got is taken for done", "agreement_sim"},
	[LARGEST_REPORT] = {"largest-report", "the step is one less than the largest report",
		"agreement_sim"},
	[SAVED_MEANS_SAVED] = {"saved-means-saved", "who is asked to save is taken to have saved",
		"agreement_sim"},
	[LEAVE_TOGETHER] = {"leave-together", "a task is told to leave instead of to save and stay",
		"agreement_sim"},
	[TIME_IS_MONOTONIC] = {"time-is-monotonic", "time is what the wall clock says",
		"agreement_sim"},
	[ONE_LEASE] = {"one-lease", "a command is taken that runs", "queue_sim"},
	[ONE_RESULT] = {"one-result", "an end is accepted after another one", "queue_sim"},
	[FENCED_ARE_REFUSED] = {"fenced-are-refused", "a worker that was declared dead goes on",
		"queue_sim"},
	[AFTER_OTHERS] = {"after-others", "a command does not wait for those it comes after",
		"queue_sim"},
	[ACKNOWLEDGED_IS_THERE] = {"acknowledged-is-there",
		"what was scheduled is not kept, and that is not said", "queue_sim"},
	[REPEATED_IS_ONCE] = {"repeated-is-once",
		"a schedule whose answer was lost schedules again", "queue_sim"},
	[TOLD_TO_END] = {"told-to-end", "a cancel does not reach what runs", "queue_sim"},
	[FAILURE_IS_TOLD] = {"failure-is-told", "the first failure is lost", "queue_sim"},
	[WITHIN_THE_LIMIT] = {"within-the-limit", "more wait than may", "queue_sim"},
	[NO_ID_TWICE] = {"no-id-twice", "an id that was forgotten is given again", "queue_sim"},
	[BOUNDED_ATTEMPTS] = {"bounded-attempts", "failures are not counted", "queue_sim"},
	[WAITING_IS_WOKEN] = {"waiting-is-woken", "a change wakes nobody", "queue_sim"},
	[FORGET_WHAT_IS_OVER] = {"forget-what-is-over", "a command is forgotten that waits",
		"queue_sim"},
	[PAUSE_BETWEEN] = {"pause-between", "a command is tried again at once", "queue_sim"},
	[REFUSED_ELSEWHERE] = {"refused-elsewhere", "a command is tried again where it cannot run",
		"queue_sim"},
};

const char *rule_name(enum rule rule)
{
	return rules[rule].name;
}

const char *rule_meaning(enum rule rule)
{
	return rules[rule].meaning;
}

bool rule_is_for(enum rule rule, const char *simulator)
{
	return rules[rule].name && !strcmp(rules[rule].simulator, simulator);
}

static bool has_put(const struct store_request *request, const char *what)
{
	for (size_t i = 0; i < request->then_count && what; i++)
		if (request->then[i].kind == STORE_PUT && strstr(request->then[i].key, what))
			return true;
	return !what;
}

static bool is_left_out(const char *key)
{
	for (size_t i = 0; rules[broken].compares[i]; i++)
		if (strstr(key, rules[broken].compares[i]))
			return true;
	return false;
}

static void leave_compares_out(struct store_request *request)
{
	static struct store_compare kept[MOST];
	size_t count = 0;
	for (size_t i = 0; i < request->compare_count; i++)
		if (!is_left_out(request->compares[i].key))
			kept[count++] = request->compares[i];
	request->compares = kept;
	request->compare_count = count;
}

/* The number of "step" in a decision is lowered by one. */
static void lower_step(struct store_request *request)
{
	static struct store_op ops[MOST];
	static char value[MOST];
	memcpy(ops, request->then, request->then_count * sizeof(*ops));
	request->then = ops;
	for (size_t i = 0; i < request->then_count; i++) {
		const char *text = ops[i].value, *step = NULL, *word = "\"step\":";
		if (ops[i].kind == STORE_PUT && strstr(ops[i].key, "RUN_TO_CHECKPOINT") &&
			!strstr(ops[i].key, "RECEIVED_"))
			step = strstr(text, word);
		if (!step)
			continue;
		step += strlen(word);
		char *rest;
		unsigned long long number = strtoull(step, &rest, 10);
		snprintf(value, sizeof(value), "%.*s%llu%s", (int)(step - text), text,
			number ? number - 1 : 0, rest);
		ops[i].value = value;
		ops[i].length = strlen(value);
	}
}

void rule_alter(void *context, struct store_request *request)
{
	(void)context;
	if (request->compare_count > MOST || request->then_count > MOST)
		return;
	if (rules[broken].compares[0] && has_put(request, rules[broken].puts))
		leave_compares_out(request);
	if (broken == LARGEST_REPORT)
		lower_step(request);
}
