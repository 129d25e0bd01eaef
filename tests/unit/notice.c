/* SPDX-License-Identifier: MIT */
/* A notice as a line and back, and how late a signal may be read. */
#include "notice/notice.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "notice/source_set.h"
#include "unit.h"

/* Milliseconds; a busy machine may stop us between two looks at the clock, for long. */
static bool near(int64_t a, int64_t b)
{
	return a - b < 20000 && b - a < 20000;
}

static bool between(int64_t a, int64_t from, int64_t to)
{
	return from <= a && a <= to;
}

static bool same(const struct notice *a, const struct notice *b)
{
	bool deadline = notice_deadline(a) == CLOCK_NEVER
				? notice_deadline(b) == CLOCK_NEVER
				: a->deadline - a->received == b->deadline - b->received;
	return !strcmp(a->source, b->source) && !strcmp(a->reason, b->reason) &&
	       a->received_utc == b->received_utc && near(a->received, b->received) && deadline;
}

static bool round_trip(const struct notice *notice)
{
	struct text text = {0}, json = {0};
	struct notice from_text, from_json;
	struct error err = {0};
	notice_write_text(notice, &text);
	notice_write_json(notice, &json);
	bool good = notice_read(text_string(&text), &from_text, &err) == STATUS_OK &&
		    same(notice, &from_text) &&
		    notice_read(text_string(&json), &from_json, &err) == STATUS_OK &&
		    same(notice, &from_json) && !strchr(text_string(&text), '\n');
	if (!good)
		printf("# %s\n# %s\n# %s\n", text_string(&text), text_string(&json), err.text);
	text_release(&text);
	text_release(&json);
	return good;
}

static void round_trips(void)
{
	struct notice notice;
	struct notice_time time = notice_time();
	char longer[400];
	notice_set(&notice, "signal:TERM", "sent by process 1", time, 30000);
	CHECK(round_trip(&notice));
	notice_set(&notice, "signal:TERM", "", time, -1);
	CHECK(notice.deadline == CLOCK_NEVER && round_trip(&notice));
	notice_set(&notice, "file:/a b\\x20c", "  two blanks left=3s", time, 1);
	CHECK(round_trip(&notice));
	notice_set(&notice, "command:x\ny", "tab\there \x1b[2J\x7f \xc2\x9b bell\a \"quoted\" \\n",
		time, 0);
	CHECK(round_trip(&notice));
	CHECK_TEXT(notice.source, "command:x\\ny");
	for (const char *s = notice.reason; *s; s++)
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			CHECK(!"a control character in the reason");
	/* Cut, but not in the middle of a character. */
	for (size_t i = 0; i + 3 < sizeof(longer); i += 3)
		memcpy(longer + i, "\xe2\x82\xac", 4);
	for (size_t shift = 0; shift < 4; shift++) {
		memset(longer, 'a', shift);
		for (size_t i = shift; i + 3 < sizeof(longer); i += 3)
			memcpy(longer + i, "\xe2\x82\xac", 4);
		notice_set(&notice, longer, longer, time, 1234);
		CHECK(round_trip(&notice) && strlen(notice.reason) > 250);
	}
	/* Half a character that no process cut is no reason to lose the source. */
	notice_set(&notice, "\xf3", "\xe2\x82", time, -1);
	CHECK(round_trip(&notice));
	CHECK_TEXT(notice.source, "\\xf3");
	/* Any bytes at all. */
	srand(1);
	bool all = true;
	for (int round = 0; round < 500 && all; round++) {
		char source[80], reason[300];
		size_t n = (size_t)rand() % 79 + 1, m = (size_t)rand() % 299;
		for (size_t i = 0; i < n; i++)
			source[i] = (char)(rand() % 255 + 1);
		for (size_t i = 0; i < m; i++)
			reason[i] = (char)(rand() % 255 + 1);
		source[n] = reason[m] = '\0';
		time = notice_time();
		notice_set(&notice, source, reason, time, rand() % 3 ? rand() % 100000 : -1);
		all = round_trip(&notice);
	}
	CHECK(all);
}

static void lines(void)
{
	struct notice notice = {.received_utc = 1769860800123, .received = 5, .deadline = 30005};
	struct text line = {0};
	strcpy(notice.source, "signal:TERM");
	strcpy(notice.reason, "reason text");
	notice_write_text(&notice, &line);
	CHECK_TEXT(text_string(&line), "2026-01-31T12:00:00.123Z signal:TERM left=30s reason text");
	text_release(&line);
	notice_write_json(&notice, &line);
	CHECK_TEXT(text_string(&line),
		"{\"utc\":\"2026-01-31T12:00:00.123Z\",\"source\":\"signal:TERM\","
		"\"reason\":\"reason text\",\"left_ms\":30000}");
	text_release(&line);
	/* No time that is left is known; preempt-watch --grace 0 says the same. */
	const int64_t unknown[] = {5, CLOCK_NEVER};
	for (size_t i = 0; i < 2; i++) {
		notice.deadline = unknown[i];
		notice_write_json(&notice, &line);
		CHECK(!strstr(text_string(&line), "left_ms"));
		text_release(&line);
	}
	/* What another program has put into the claim is not printed as it is. */
	strcpy(notice.claim.run, "r\x7f");
	notice_write_json(&notice, &line);
	CHECK(strstr(text_string(&line), "\"run\":\"r\\u007f\""));
	text_release(&line);
	*notice.claim.run = '\0';
}

static void readings(void)
{
	struct notice notice, before;
	struct error err;
	struct text line = {0};
	memset(&before, 'x', sizeof(before));
	notice = before;
	static const char *const garbage[] = {"", "\n", " ", "hello", "x y left=3s",
		"2026-01-31T12:00:00.123Z", "2026-01-31T12:00:00.123Z signal:TERM",
		"2026-01-31T12:00:00.123Z signal:TERM left=",
		"2026-01-31T12:00:00.123Z signal:TERM left=-3s",
		"2026-01-31T12:00:00.123Z signal:TERM left=3x",
		"2026-01-31T12:00:00.123Z signal:TERM 3s", "2026-01-31T12:00:00.123Z  left=3s",
		"2026-02-31T12:00:00.123Z a left=3s", "2026-01-31T25:00:00.123Z a left=3s",
		"2026-01-31 12:00:00.123Z a left=3s", "1969-01-31T12:00:00.123Z a left=3s",
		"2026-01-31T12:00:00.123Z a\\x07b left=3s", "2026-01-31T12:00:00.123Z a\\ left=3s",
		"{", "{}", "{\"utc\":1,\"source\":\"a\"}", "{\"utc\":\"2026-01-31T12:00:00.123Z\"}",
		"{\"utc\":\"2026-01-31T12:00:00.123Z\",\"source\":\"\"}",
		"{\"utc\":\"2026-01-31T12:00:00.123Z\",\"source\":\"a\",\"reason\":3}",
		"{\"utc\":\"2026-01-31T12:00:00.123Z\",\"source\":\"a\",\"left_ms\":-1}",
		"{\"utc\":\"2026-01-31T12:00:00.123Z\",\"source\":\"a\",\"left_ms\":\"1\"}",
		"{\"utc\":\"2026-01-31T12:00:00.123Z\",\"source\":\"a\",\"left_ms\":9e18}",
		"{\"utc\":\"2026-01-31T12:00:00.123Z\",\"source\":\"a\"} x", "[]", "null"};
	for (size_t i = 0; i < sizeof(garbage) / sizeof(garbage[0]); i++) {
		err = (struct error){0};
		bool refused = notice_read(garbage[i], &notice, &err) == STATUS_USAGE &&
			       err.status == STATUS_USAGE && *err.text &&
			       !memcmp(&notice, &before, sizeof(notice));
		if (!refused)
			printf("# %s\n", garbage[i]);
		CHECK(refused);
	}
	/* Escape sequences in a line made by hand do not come through. */
	CHECK(notice_read("2026-01-31T12:00:00.123Z a left=unknown x\x1b[2J\n", &notice, &err) ==
		STATUS_OK);
	CHECK_TEXT(notice.reason, "x\\x1b[2J");
	CHECK(notice_read(
		      "{\"utc\":\"2026-01-31T12:00:00.123Z\",\"source\":\"a\",\"reason\":\"\\u0007\","
		      "\"new\":[1]}",
		      &notice, &err) == STATUS_OK);
	CHECK_TEXT(notice.reason, "\\x07");

	/* An hour old: what was left is gone. From a clock that is ahead: counted from now. */
	int64_t now = clock_now();
	struct notice_time time = {.now = now - 3600000, .utc = clock_utc() - 3600000};
	notice_set(&before, "a", "", time, 30000);
	notice_write_text(&before, &line);
	CHECK(notice_read(text_string(&line), &notice, &err) == STATUS_OK &&
		near(notice.deadline, now - 3600000 + 30000));
	text_release(&line);
	time.utc = clock_utc() + 3600000;
	notice_set(&before, "a", "", time, 30000);
	notice_write_text(&before, &line);
	CHECK(notice_read(text_string(&line), &notice, &err) == STATUS_OK &&
		near(notice.deadline, clock_now() + 30000) && near(notice.received, clock_now()));
	text_release(&line);
}

/* SY-12 */
static void signals(void)
{
	struct source_options how = {.grace = 30000};
	struct source *source, *second = NULL;
	struct notice notice;
	struct error err;
	sigset_t usr1, old;

	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	sigprocmask(SIG_BLOCK, &usr1, &old);
	CHECK(source_open(&source, "signal:USR1,USR2", &how, &err) == STATUS_OK);
	CHECK(source_due(source) == CLOCK_NEVER);
	CHECK(source_check(source, clock_now(), &notice, &err) == SOURCE_NONE);
	int64_t sent = clock_now(), sent_utc = clock_utc();
	raise(SIGUSR1);
	int64_t caught = clock_now(), caught_utc = clock_utc();
	clock_sleep_until(caught + 100);
	int64_t sent_again = clock_now();
	raise(SIGUSR2);
	int64_t caught_again = clock_now();
	clock_sleep_until(caught_again + 100);
	CHECK(source_check(source, clock_now(), &notice, &err) == SOURCE_NOTICE);
	CHECK_TEXT(notice.source, "signal:USR1");
	CHECK(between(notice.received, sent, caught) &&
		between(notice.received_utc, sent_utc, caught_utc) &&
		notice.deadline == notice.received + 30000);
	CHECK(source_check(source, clock_now(), &notice, &err) == SOURCE_NOTICE);
	CHECK_TEXT(notice.source, "signal:USR2");
	CHECK(between(notice.received, sent_again, caught_again));
	CHECK(source_check(source, clock_now(), &notice, &err) == SOURCE_NONE);
	/* Caught, and not looked at when its user goes. */
	CHECK(!source_take_held(source, &notice));
	raise(SIGUSR1);
	CHECK(source_take_held(source, &notice) && !source_take_held(source, &notice));
	CHECK_TEXT(notice.source, "signal:USR1");
	/* A signal stays with the source that has it; each lets go of its own. */
	CHECK(source_open(&second, "signal:TERM,USR2", &how, &err) == STATUS_OK);
	raise(SIGUSR2);
	CHECK(source_check(second, clock_now(), &notice, &err) == SOURCE_NONE);
	source_close(second);
	struct sigaction action;
	CHECK(sigaction(SIGTERM, NULL, &action) == 0 && action.sa_handler == SIG_DFL);
	CHECK(sigaction(SIGUSR2, NULL, &action) == 0 && action.sa_handler != SIG_DFL);
	CHECK(source_check(source, clock_now(), &notice, &err) == SOURCE_NOTICE);
	source_close(source);
	CHECK(sigaction(SIGUSR1, NULL, &action) == 0 && action.sa_handler == SIG_DFL);
	sigprocmask(SIG_SETMASK, &old, &usr1);
	CHECK(sigismember(&usr1, SIGUSR1) == 1);
}

/* A duration counts from when its user says that it began. */
static void deadlines(void)
{
	struct source_options how = {.grace = 10000, .since = clock_now() - 60000};
	struct source *source;
	struct notice notice;
	struct error err;
	CHECK(source_open(&source, "deadline:+65s", &how, &err) == STATUS_OK);
	CHECK(source_check(source, clock_now(), &notice, &err) == SOURCE_NOTICE);
	CHECK(near(notice.deadline, how.since + 65000));
	source_close(source);
	how.since = 0;
	CHECK(source_open(&source, "deadline:+65s", &how, &err) == STATUS_OK);
	CHECK(source_check(source, clock_now(), &notice, &err) == SOURCE_NONE);
	source_close(source);
}

int main(void)
{
	round_trips();
	lines();
	readings();
	signals();
	deadlines();
	return unit_end();
}
