/* SPDX-License-Identifier: MIT */
/*
 * What the history checker says of histories made by hand: each fault in its words, clocks, logs
 * that are torn. (That its verdict is right: history_search.c.)
 */
#include <stdlib.h>

#include "../history/check.h"
#include "unit.h"

#define PROCESSES 10
#define STEPS	  100000

/*
 * Each line begins with the number of its process, a digit; what follows is a line of its log.
 * NULL: the logs cannot be read, and *why says so. Returns the words of the verdict; static.
 */
static const char *judge(const char *lines, enum verdict_kind *kind)
{
	static char words[4096];
	struct text logs[PROCESSES] = {0};
	struct history history = {0};
	struct verdict verdict;
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
	if (status != STATUS_OK) {
		printf("# %s\n", err.text);
		history_release(&history);
		return NULL;
	}
	check_history(&history, STEPS, &verdict);
	*kind = verdict.kind;
	snprintf(words, sizeof(words), "%s", text_string(&verdict.words));
	verdict_release(&verdict);
	history_release(&history);
	return words;
}

static bool good(const char *lines)
{
	enum verdict_kind kind = UNDECIDED;
	const char *words = judge(lines, &kind);
	if (words && kind == LINEARIZABLE)
		return true;
	printf("# %s\n", words ? words : "cannot be read");
	return false;
}

/* It is violated, and the words contain these. */
static bool bad(const char *lines, const char *because)
{
	enum verdict_kind kind = UNDECIDED;
	const char *words = judge(lines, &kind);
	if (words && kind == VIOLATED && strstr(words, because))
		return true;
	printf("# wanted: %s\n# got: %s\n", because, words ? words : "cannot be read");
	return false;
}

static bool unreadable(const char *lines)
{
	enum verdict_kind kind;
	return judge(lines, &kind) == NULL;
}

#define PUT_A "0 call 0 10 txn +pa\n0 back 0 20 held 1\n"

static void transactions(void)
{
	TEST("a stale read: an older state, answered to a later call")
	{
		CHECK(bad(PUT_A "1 call 0 30 txn +ga\n1 back 0 40 held 0 a=0\n", "went back"));
		/* The revision is the new one, the key is not. */
		CHECK(bad(PUT_A "1 call 0 30 txn +ga\n1 back 0 40 held 1 a=0\n", "read key a"));
		CHECK(bad(PUT_A "1 call 0 30 txn +pa\n1 back 0 40 held 2\n"
				"2 call 0 50 txn +ga\n2 back 0 60 held 2 a=1:0.0.0\n",
			"read key a wrongly"));
	}
	TEST("a lost write: two were told the same revision")
	{
		CHECK(bad(PUT_A "1 call 0 10 txn +pb\n1 back 0 20 held 1\n", "made twice"));
		CHECK(bad(PUT_A "1 call 0 10 txn +pa\n1 back 0 20 held 1\n", "is lost"));
	}
	TEST("two winners of one put if absent")
	{
		CHECK(bad("0 call 0 10 txn ?a=0 +pa -ga\n0 back 0 20 held 1\n"
			  "1 call 0 10 txn ?a=0 +pa -ga\n1 back 0 20 held 2\n",
			"compares held"));
		CHECK(good("0 call 0 10 txn ?a=0 +pa -ga\n0 back 0 20 held 1\n"
			   "1 call 0 10 txn ?a=0 +pa -ga\n1 back 0 20 not 1 a=1:0.0.0\n"));
		CHECK(bad("1 call 0 10 txn ?a=0 +pa -ga\n1 back 0 20 not 0 a=0\n",
			"did not hold, and they did"));
	}
}

static void values(void)
{
	TEST("a value that was never written")
	{
		CHECK(bad(PUT_A "1 call 0 30 txn +ga\n1 back 0 40 held 1 a=1:7.0.0\n",
			"never written"));
		CHECK(bad(
			PUT_A "1 call 0 30 txn +ga\n1 back 0 40 held 1 a=1:?\n", "never written"));
		CHECK(bad(PUT_A "1 call 0 30 txn +gb\n1 back 0 40 held 1 b=1:0.0.0\n",
			"read key b wrongly"));
	}
	TEST("what was refused must not take effect")
	{
		CHECK(good("0 call 0 10 txn +pa\n0 back 0 20 refused busy\n"
			   "1 call 0 30 txn +ga\n1 back 0 40 held 0 a=0\n"));
		CHECK(bad("0 call 0 10 txn +pa\n0 back 0 20 refused busy\n"
			  "1 call 0 30 txn +ga\n1 back 0 40 held 1 a=1:0.0.0\n",
			"certainly nothing was changed"));
	}
	TEST("a revision that goes back, or is not there yet")
	{
		CHECK(bad(PUT_A "0 call 1 30 txn +pa\n0 back 1 40 held 2\n"
				"1 call 0 50 txn +gb\n1 back 0 60 held 1 b=0\n",
			"went back"));
		CHECK(bad(PUT_A "1 call 0 1 txn +gb\n1 back 0 5 held 1 b=0\n", "went back"));
		CHECK(bad(PUT_A "1 call 0 1 txn +gb\n1 back 0 60 held 2 b=0\n",
			"made by no operation"));
		CHECK(bad(PUT_A "1 call 0 1 txn +gb\n1 back 0 60 held 9000 b=0\n",
			"not so many changes"));
		CHECK(bad(PUT_A "1 call 0 10 txn +ga\n1 back 0 20 held 0 a=1:0.0.0\n",
			"was told that the store was at revision 0"));
	}
	TEST("a key is still there when its deletion was acknowledged")
	{
		CHECK(bad(PUT_A "1 call 0 30 txn +da\n1 back 0 40 held 1\n", "deleted key a"));
	}
}

/* Whose outcome no task was told. */
static void unknown(void)
{
	TEST("an unknown outcome takes effect after its call, and only if its compares hold")
	{
		CHECK(bad("9 call 0 70 txn +pa\n"
			  "0 call 0 10 txn +pb\n0 back 0 20 held 2\n"
			  "1 call 0 80 txn +ga\n1 back 0 90 held 2 a=1:9.0.0\n",
			"went back"));
		CHECK(bad(PUT_A "9 call 0 21 txn ?a=0 +pb\n"
				"1 call 0 30 txn +gb\n1 back 0 40 held 2 b=2:9.0.0\n",
			"could not have changed anything"));
	}
	TEST("one that took effect twice")
	{
		CHECK(bad("0 call 0 10 txn +pa\n"
			  "1 call 0 30 txn +ga\n1 back 0 40 held 1 a=1:0.0.0\n"
			  "1 call 1 50 txn +da\n1 back 1 60 held 2\n"
			  "1 call 2 70 txn +ga\n1 back 2 80 held 3 a=3:0.0.0\n",
			"took effect twice"));
		CHECK(bad("0 call 0 10 txn +pa\n"
			  "2 call 0 10 txn +pb\n"
			  "1 call 0 30 txn +ga\n1 back 0 40 held 1 a=1:0.0.0\n"
			  "1 call 1 50 txn +da\n1 back 1 60 held 2\n"
			  "1 call 2 70 txn +ga\n1 back 2 80 held 3 a=3:0.0.0\n",
			"took effect twice"));
		CHECK(bad(PUT_A "1 call 0 30 txn +pa\n1 back 0 40 held 2\n"
				"2 call 0 50 txn +ga\n2 back 0 60 held 2 a=2:0.0.0\n",
			"took effect twice"));
		/* An unknown delete can have emptied the key once only. */
		CHECK(bad("9 call 0 1 txn +da\n9 call 1 2 txn +pz\n" PUT_A
			  "0 call 1 30 txn ?a=0 +pa -ga\n0 back 1 40 held 3\n"
			  "0 call 2 50 txn ?a=0 +pa -ga\n0 back 2 60 held 5\n",
			"because of: a"));
	}
	TEST("a revision that no task made, and one that only an unknown outcome can have made")
	{
		CHECK(bad(PUT_A "1 call 0 30 txn +pa\n1 back 0 40 held 3\n"
				"1 call 1 50 txn +db\n1 back 1 60 held 3\n",
			"made by no operation"));
		CHECK(good(
			"9 call 0 1 txn +pa\n" PUT_A "1 call 0 30 txn +pa\n1 back 0 40 held 3\n"));
		CHECK(good(
			"9 call 0 1 txn +da\n" PUT_A "1 call 0 30 txn +pa\n1 back 0 40 held 3\n"));
		/* It was called too late. */
		CHECK(bad(PUT_A "9 call 0 50 txn +da\n"
				"1 call 0 30 txn +pa\n1 back 0 40 held 3\n",
			"made by no operation"));
		/* Its compares cannot have held. */
		CHECK(bad("9 call 0 1 txn ?a=0 +pa\n" PUT_A
			  "1 call 0 30 txn +pa\n1 back 0 40 held 3\n",
			"made by no operation"));
		/* What it would have overwritten was still there. */
		CHECK(bad("9 call 0 1 txn +pa\n" PUT_A
			  "1 call 0 30 txn +pb +ga\n1 back 0 40 held 3 a=1:0.0.0\n",
			"made by no operation"));
	}
}

#define PUT_B_C                                                                                    \
	"0 call 1 30 txn +pd/b\n0 back 1 40 held 2\n"                                              \
	"0 call 2 50 txn +pd/c\n0 back 2 60 held 3\n"

static void lists(void)
{
	TEST("a list shows every key under its prefix at one revision")
	{
		CHECK(good(PUT_A PUT_B_C "1 call 0 70 list d/ 0\n"
					 "1 back 0 80 list 3 d/b=2:0.0.1 d/c=3:0.0.2\n"));
		CHECK(good(
			PUT_A PUT_B_C "1 call 0 45 list d/ 0\n1 back 0 80 list 2 d/b=2:0.0.1\n"));
		CHECK(good(
			PUT_A PUT_B_C "1 call 0 70 list d/ 2\n1 back 0 80 list 3 d/c=3:0.0.2\n"));
		CHECK(bad(PUT_A PUT_B_C "1 call 0 70 list d/ 0\n1 back 0 80 list 3 d/b=2:0.0.1\n",
			"lacks key d/c"));
	}
	TEST("a prefix that ends in a slash does not contain itself")
	{
		CHECK(good("0 call 0 10 txn +pd/ +pd\n0 back 0 20 held 1\n"
			   "1 call 0 30 list d/ 0\n1 back 0 40 list 1\n"
			   "1 call 1 50 list d 0\n1 back 1 60 list 1 d=1:0.0.0 d/=1:0.0.0\n"));
	}
	TEST("a list shows nothing else")
	{
		CHECK(bad(PUT_A PUT_B_C "1 call 0 70 list d/ 0\n"
					"1 back 0 80 list 3 a=1:0.0.0 d/b=2:0.0.1 d/c=3:0.0.2\n",
			"does not fit"));
		CHECK(bad(PUT_A PUT_B_C "1 call 0 70 list d/ 2\n"
					"1 back 0 80 list 3 d/b=2:0.0.1 d/c=3:0.0.2\n",
			"does not fit"));
		CHECK(bad(PUT_A PUT_B_C "0 call 3 61 txn +dd/b\n0 back 3 65 held 4\n"
					"1 call 0 70 list d/ 0\n"
					"1 back 0 80 list 4 d/b=2:0.0.1 d/c=3:0.0.2\n",
			"read key d/b wrongly"));
	}
}

static void waits(void)
{
	TEST("a wait answers when something under its prefix is newer")
	{
		CHECK(good(PUT_A PUT_B_C "1 call 0 45 wait d/ 1 5\n1 back 0 80 changed 3\n"));
		CHECK(good(PUT_A PUT_B_C "0 call 3 61 txn +dd/b\n0 back 3 65 held 4\n"
					 "1 call 0 45 wait d/ 3 5\n1 back 0 80 changed 4\n"));
		CHECK(bad(PUT_A PUT_B_C "0 call 3 61 txn +pa\n0 back 3 65 held 4\n"
					"1 call 0 45 wait d/ 3 5\n1 back 0 80 changed 4\n",
			"nothing under its prefix has changed"));
		CHECK(bad(PUT_A PUT_B_C "1 call 0 70 wait d/ 0 5\n1 back 0 80 changed 2\n",
			"went back"));
	}
	TEST("a wait that timed out does not step over a change")
	{
		CHECK(good(PUT_A PUT_B_C "1 call 0 45 wait d/ 2 5\n1 back 0 80 quiet 2 0\n"));
		CHECK(good(PUT_A "1 call 0 45 wait d/ 0 5\n1 back 0 80 quiet 1 0\n"));
		CHECK(bad(PUT_A PUT_B_C "1 call 0 45 wait d/ 2 5\n1 back 0 80 quiet 3 0\n",
			"missed a change"));
	}
	TEST("a wait that timed out knows what was acknowledged when it says it looked")
	{
		CHECK(good(PUT_A PUT_B_C "1 call 0 45 wait d/ 2 5\n1 back 0 80 quiet 2 55\n"));
		CHECK(bad(PUT_A PUT_B_C "1 call 0 45 wait d/ 2 5\n1 back 0 80 quiet 2 61\n",
			"should have known"));
		CHECK(good(PUT_A PUT_B_C "1 call 0 45 wait e/ 2 5\n1 back 0 80 quiet 2 61\n"));
	}
	TEST("a wait that timed out knows what another process had seen when it says it looked")
	{
#define SEEN "1 call 0 10 txn +gd/a\n1 back 0 20 held 1 d/a=1:9.0.0\n"
		/* The operation that made revision 1 never returned. */
		CHECK(bad("9 call 0 1 txn +pd/a\n" SEEN
			  "2 call 0 30 wait d/ 0 5\n2 back 0 80 quiet 0 61\n",
			"operation 1.0.0 was answered earlier"));
		CHECK(good("9 call 0 1 txn +pd/a\n" SEEN
			   "2 call 0 5 wait d/ 0 5\n2 back 0 80 quiet 0 20\n"));
		/* It returned, and too late. */
		CHECK(bad("0 call 0 1 txn +pd/a\n0 back 0 70 held 1\n"
			  "1 call 0 10 txn +gd/a\n1 back 0 20 held 1 d/a=1:0.0.0\n"
			  "2 call 0 30 wait d/ 0 5\n2 back 0 80 quiet 0 61\n",
			"operation 1.0.0 was answered earlier"));
		/* A later revision was seen, of a key elsewhere. */
		CHECK(bad("9 call 0 1 txn +pd/a\n0 call 0 10 txn +pe\n0 back 0 20 held 2\n"
			  "2 call 0 30 wait d/ 0 5\n2 back 0 80 quiet 0 61\n"
			  "1 call 0 70 list d/ 0\n1 back 0 90 list 2 d/a=1:9.0.0\n",
			"operation 0.0.0 was answered earlier"));
		CHECK(bad("9 call 0 1 txn +pd/a\n" SEEN
			  "2 call 0 30 wait d/ 0 60000\n2 back 0 60000000080 quiet 0 0\n",
			"operation 1.0.0 was answered earlier"));
#undef SEEN
	}
	TEST("a long wait does not miss what was acknowledged before its call")
	{
		CHECK(bad(PUT_A PUT_B_C
			"1 call 0 70 wait d/ 2 60000\n1 back 0 60000000080 quiet 2 0\n",
			"should have known"));
		CHECK(good(PUT_A PUT_B_C
			"1 call 0 55 wait d/ 2 60000\n1 back 0 60000000080 quiet 2 0\n"));
	}
	TEST("a wait from so long ago that deletions are forgotten may be answered at once")
	{
		struct text lines = {0};
		for (int i = 0; i < CHECK_REMEMBERED + 2; i++)
			text_addf(&lines, "0 call %d %d txn +pa\n0 back %d %d held %d\n", i, 10 * i,
				i, 10 * i + 5, i + 1);
		size_t length = lines.length;
		text_addf(&lines, "1 call 0 1 wait d/ 1 5\n1 back 0 9000 changed %d\n",
			CHECK_REMEMBERED + 2);
		CHECK(good(lines.data));
		lines.length = length;
		text_addf(&lines, "1 call 0 1 wait d/ 2 5\n1 back 0 9000 changed %d\n",
			CHECK_REMEMBERED + 2);
		CHECK(bad(lines.data, "nothing under its prefix"));
		text_release(&lines);
	}
}

static void logs(void)
{
	TEST("clocks of other machines: what may be within their error is no violation")
	{
		/* Nanoseconds in the log, microseconds in its clock line. */
		CHECK(bad(PUT_A "1 clock -50 0\n1 call 0 51000 txn +ga\n"
				"1 back 0 52000 held 0 a=0\n",
			"went back"));
		CHECK(good(PUT_A "1 clock -50 1\n1 call 0 51000 txn +ga\n"
				 "1 back 0 52000 held 0 a=0\n"));
		CHECK(good(PUT_A "1 call 0 51000 txn +ga\n1 back 0 52000 held 0 a=0\n"
				 "1 clock -52 0\n"));
		CHECK(bad(PUT_A "1 call 0 51000 txn +ga\n1 back 0 52000 held 1 a=1:0.0.0\n"
				"1 clock -60 0\n",
			"went back"));
	}
	TEST("the error of a clock counts at both ends")
	{
		CHECK(bad(PUT_A "1 call 0 3 txn +ga\n1 back 0 5 held 1 a=1:0.0.0\n", "went back"));
		CHECK(good(PUT_A "1 call 0 3 txn +ga\n1 back 0 5 held 1 a=1:0.0.0\n"
				 "1 clock 0 1\n"));
		CHECK(good(PUT_A PUT_B_C "1 call 0 45 wait d/ 2 5\n1 back 0 80 quiet 2 61\n"
					 "1 clock 0 1\n"));
	}
	TEST("the end of a log that was not written is an unknown outcome")
	{
		CHECK(good(PUT_A "1 call 0 30 txn +pb\n1 back 0 4"));
		CHECK(good(PUT_A "1 call 0 30 txn +pb\n1 call 1 4"));
		CHECK(good("1 call 0 30 txn +pb\n2 call 0 50 txn +gb\n"
			   "2 back 0 60 held 1 b=1:1.0.0\n1 ba"));
	}
	TEST("what is no log is refused")
	{
		CHECK(unreadable("0 call 0 10 txn a\n"));
		CHECK(unreadable("0 call 0 10 txn +xa\n"));
		CHECK(unreadable("0 call 0 10 get a\n"));
		CHECK(unreadable("0 call 0 10 txn +pa\n0 back 1 20 held 1\n"));
		CHECK(unreadable("0 call 0 10 txn +pa\n0 back 0 20 list 1\n"));
		CHECK(unreadable("0 call 0 10 txn +pa\n0 back 0 20 held x\n"));
		CHECK(unreadable("0 call 0 10 list a/ 0\n0 back 0 20 list 1 b=1\n"));
		CHECK(unreadable("0 nonsense\n"));
		CHECK(unreadable("0 call 0 1 txn +pa\n0 back 0 2 held 1\n"
				 "0 call 0 3 txn +pa\n0 back 0 4 held 2\n"));
	}
}

int main(void)
{
	transactions();
	values();
	unknown();
	lists();
	waits();
	logs();
	return unit_end();
}
