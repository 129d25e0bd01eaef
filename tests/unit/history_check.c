/* SPDX-License-Identifier: MIT */
/* What the history checker says of histories made by hand: each fault in its words. */
#include <stdlib.h>

#include "../history/check.h"
#include "unit.h"

#define PROCESSES 10
#define STEPS	  100000

#define PUT_A "0 call 0 10 txn +pa\n0 back 0 20 held 1\n"
#define PUT_B_C                                                                                    \
	PUT_A "0 call 1 30 txn +pd/b\n0 back 1 40 held 2\n"                                        \
	      "0 call 2 50 txn +pd/c\n0 back 2 60 held 3\n"
#define FIRST_WINS "0 call 0 10 txn ?a=0 +pa -ga\n0 back 0 20 held 1\n"
#define GOOD	   ""
#define NO_LOG	   NULL

/* Each line begins with the number of its process, a digit; what follows is a line of its log. */
static const struct {
	const char *title, *says, *lines;
} rows[] = {
	{"an older state, answered to a later call", "went back",
		PUT_A "1 call 0 30 txn +ga\n1 back 0 40 held 0 a=0\n"},
	{"the new revision without the new key", "read key a",
		PUT_A "1 call 0 30 txn +ga\n1 back 0 40 held 1 a=0\n"},
	{"two were told the same revision", "made twice",
		PUT_A "1 call 0 10 txn +pb\n1 back 0 20 held 1\n"},
	{"a lost write", "is lost", PUT_A "1 call 0 10 txn +pa\n1 back 0 20 held 1\n"},
	{"one winner of a put if absent", GOOD,
		FIRST_WINS "1 call 0 10 txn ?a=0 +pa -ga\n1 back 0 20 not 1 a=1:0.0.0\n"},
	{"two winners of one put if absent", "compares held",
		FIRST_WINS "1 call 0 10 txn ?a=0 +pa -ga\n1 back 0 20 held 2\n"},
	{"a value that was never written", "never written",
		PUT_A "1 call 0 30 txn +ga\n1 back 0 40 held 1 a=1:7.0.0\n"},
	{"what was refused has no effect", GOOD,
		"0 call 0 10 txn +pa\n0 back 0 20 refused busy\n"
		"1 call 0 30 txn +ga\n1 back 0 40 held 0 a=0\n"},
	{"what was refused has one", "certainly nothing was changed",
		"0 call 0 10 txn +pa\n0 back 0 20 refused busy\n"
		"1 call 0 30 txn +ga\n1 back 0 40 held 1 a=1:0.0.0\n"},
	{"deleted, and still there", "deleted key a",
		PUT_A "1 call 0 30 txn +da\n1 back 0 40 held 1\n"},
	{"a killed process: its write took effect", GOOD,
		"9 call 0 1 txn +pa\n" PUT_A "1 call 0 30 txn +pa\n1 back 0 40 held 3\n"},
	{"a killed process: before it was asked for", "went back",
		"9 call 0 70 txn +pa\n0 call 0 10 txn +pb\n0 back 0 20 held 2\n"
		"1 call 0 80 txn +ga\n1 back 0 90 held 2 a=1:9.0.0\n"},
	{"a killed process: twice", "took effect twice",
		"0 call 0 10 txn +pa\n1 call 0 30 txn +ga\n1 back 0 40 held 1 a=1:0.0.0\n"
		"1 call 1 50 txn +da\n1 back 1 60 held 2\n"
		"1 call 2 70 txn +ga\n1 back 2 80 held 3 a=3:0.0.0\n"},
	{"a revision that no process made", "made by no operation",
		PUT_A "1 call 0 30 txn +pa\n1 back 0 40 held 3\n"
		      "1 call 1 50 txn +db\n1 back 1 60 held 3\n"},
	{"a list of all keys", GOOD,
		PUT_B_C "1 call 0 70 list d/ 0\n1 back 0 80 list 3 d/b=2:0.0.1 d/c=3:0.0.2\n"},
	{"a list that lacks one", "lacks key d/c",
		PUT_B_C "1 call 0 70 list d/ 0\n1 back 0 80 list 3 d/b=2:0.0.1\n"},
	{"a list that shows one of another prefix", "does not fit",
		PUT_B_C "1 call 0 70 list d/ 0\n"
			"1 back 0 80 list 3 a=1:0.0.0 d/b=2:0.0.1 d/c=3:0.0.2\n"},
	{"a wait that is over", GOOD, PUT_B_C "1 call 0 45 wait d/ 1 5\n1 back 0 80 changed 3\n"},
	{"a wait that is over for nothing", "nothing under its prefix has changed",
		PUT_B_C "0 call 3 61 txn +pa\n0 back 3 65 held 4\n"
			"1 call 0 45 wait d/ 3 5\n1 back 0 80 changed 4\n"},
	{"a wait that timed out", GOOD,
		PUT_B_C "1 call 0 45 wait d/ 2 5\n1 back 0 80 quiet 2 55\n"},
	{"a wait that steps over a change", "missed a change",
		PUT_B_C "1 call 0 45 wait d/ 2 5\n1 back 0 80 quiet 3 0\n"},
	{"a wait that looked after a change, and missed it", "should have known",
		PUT_B_C "1 call 0 45 wait d/ 2 5\n1 back 0 80 quiet 2 61\n"},
	{"a long wait that missed what was there before", "should have known",
		PUT_B_C "1 call 0 70 wait d/ 2 60000\n1 back 0 60000000080 quiet 2 0\n"},
	/* Nanoseconds in the log, microseconds in its clock line. */
	{"another machine's clock, whose error is known", "went back",
		PUT_A "1 clock -50 0\n1 call 0 51000 txn +ga\n1 back 0 52000 held 0 a=0\n"},
	{"the same with a larger error", GOOD,
		PUT_A "1 clock -50 1\n1 call 0 51000 txn +ga\n1 back 0 52000 held 0 a=0\n"},
	{"a line whose end was not written", GOOD, PUT_A "1 call 0 30 txn +pb\n1 back 0 4"},
	{"an answer to no question", NO_LOG, "0 call 0 10 txn +pa\n0 back 1 20 held 1\n"},
	{"no log", NO_LOG, "0 nonsense\n"},
};

/* Whether these logs can be read; then *verdict is to be released. */
static bool judge(const char *lines, struct verdict *verdict)
{
	struct text logs[PROCESSES] = {0};
	struct history history = {0};
	struct error err;
	enum status status = STATUS_OK;
	for (const char *end; *lines; lines = end) {
		int process = *lines - '0';
		end = strchrnul(lines, '\n');
		end += *end == '\n';
		if (!logs[process].length)
			text_addf(&logs[process], "history 1 %d 0 0\n", process);
		text_add_bytes(&logs[process], lines + 2, (size_t)(end - lines - 2));
	}
	for (int p = 0; p < PROCESSES; p++) {
		if (logs[p].length && status == STATUS_OK)
			status = history_add(&history, "log", logs[p].data, logs[p].length, &err);
		text_release(&logs[p]);
	}
	if (status == STATUS_OK)
		status = history_finish(&history, &err);
	if (status == STATUS_OK)
		check_history(&history, STEPS, verdict);
	history_release(&history);
	return status == STATUS_OK;
}

int main(void)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct verdict verdict = {0};
		const char *words = "cannot be read", *says = rows[i].says;
		bool right = !says;
		if (judge(rows[i].lines, &verdict)) {
			words = text_string(&verdict.words);
			right = says && verdict.kind == (*says ? VIOLATED : LINEARIZABLE) &&
				strstr(words, says);
		}
		if (!CHECK(right, "%s", rows[i].title))
			printf("# %s\n", words);
		verdict_release(&verdict);
	}
	return unit_end();
}
