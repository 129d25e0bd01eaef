/* SPDX-License-Identifier: MIT */
/* Which peers are alive, and which tasks hang: the rules one by one. Random worlds are in
 * tests/sim. */
#include "live/heartbeat.h"

#include <string.h>

#include "live/progress.h"
#include "unit.h"

#define PERIOD 1000

static const struct heartbeat_rules rules = {.period = PERIOD, .timeout = 2000, .limit = 3};
/* A task that has joined must begin to beat within five periods. */
static const struct heartbeat_rules rules_first = {
	.period = PERIOD, .timeout = 2000, .limit = 3, .first = 4500};

/*
 * One period a character. peer: what its file says: + it beats, . silence, n new token, r new token
 * of a number that is used again, f farewell, 0 nothing there, j nothing there and it has not
 * joined, w it will never beat, ! error, g gone, G gone and nothing there. own: how that was read:
 * + in order, x our own beat failed, s slow reading, p we were paused, h half a period. state: ?
 * unknown, alive, late, dead, restarted, < left.
 */
static void play(const struct heartbeat_rules *by, const char *name, const char *peers,
	const char *own, const char *states)
{
	struct heartbeat_peer peer = {0};
	struct store_beat beat = {
		.token = 7, .sequence = heartbeat_sequence(0, PERIOD), .step = 40};
	uint64_t beats = 0;
	int64_t now = 1000000;
	char got[32] = "";
	TEST(name)
	for (size_t i = 0; peers[i] && own[i] && i + 1 < sizeof(got); i++) {
		struct heartbeat_exchange exchange = {
			.beaten = own[i] != 'x', .paused = own[i] == 'p'};
		struct heartbeat_look look = {.took = own[i] == 's' ? 2001 : 1};
		now += own[i] == 'h' ? PERIOD / 2 : own[i] == 'p' ? 3600000 : PERIOD;
		exchange.began = now;
		if (strchr("+n", peers[i]))
			beat.sequence = heartbeat_sequence(++beats, PERIOD);
		if (strchr("nr", peers[i]))
			beat.token++;
		look.reused = peers[i] == 'r';
		if (peers[i] == 'f')
			beat.sequence = heartbeat_farewell(PERIOD);
		look.beat = beat;
		look.expected = !strchr("jw", peers[i]);
		look.gone = strchr("gG", peers[i]);
		look.seen = strchr("0jwG", peers[i]) ? SEEN_NOTHING
			    : peers[i] == '!'	     ? SEEN_ERROR
						     : SEEN_BEAT;
		/* unknown, alive, late, hung, dead, restarted, left */
		got[i] = "?aldr<"[heartbeat_observe(&peer, by, &exchange, &look)];
	}
	CHECK_TEXT(got, states);
}

static void test_rules(void)
{
	static const struct {
		const char *name, *peer, *own, *state;
	} rows[] = {
		{"HB-1: a peer that beats is alive, however often", "++++", "++++", "aaaa"},
		{"HB-3: it misses two beats and returns: nothing", "+..+..+", "+++++++", "allalla"},
		{"HB-3: it misses three: dead", "+...", "++++", "alld"},
		{"HB-4: it beats as another incarnation: restarted, at once", "+n+", "+++", "arr"},
		{"CS-2: the same incarnation stops and starts again: fine", "+f....+", "+++++++",
			"a<<<<<a"},
		{"CS-2: another one after a farewell: restarted", "+fn", "+++", "a<r"},
		{"never beaten: nothing is expected", "0000+", "+++++", "????a"},
		{"silent before our first look, too: dead after the limit", "....", "++++", "alld"},
		{"our own beat was not written: no observation", "+.....", "+xxxx+", "aaaaal"},
		{"an answer that took too long does not count", "+....", "+ssss", "aaaaa"},
		{"we were paused: no observation", "+....+", "+ppp++", "aaaala"},
		{"less than a period after the last one: no observation", "+......", "+hhhhhh",
			"aalllld"},
		{"a file that cannot be read does not count", "+!!!00", "++++++", "aaaaaa"},
		{"its process is gone: dead at once", "+g", "++", "ad"},
		{"gone after its farewell: left", "+fg", "+++", "a<<"},
		{"called dead, and back before that was committed: alive", "+...+", "+++++",
			"allda"},
		{"called dead, and it cannot be read any more: not declared", "+...!..", "+++++s+",
			"alldlld"},
		{"a number that is used again: a new token is a change", "+.r.r...", "++++++++",
			"alalalld"},
		{"the filesystem stalls for a minute, our own beats are not written: alive",
			"+.......+", "+xxxxxx++", "aaaaaaala"},
	};
	/* A task that joined, and was lost before its first beat. */
	static const struct {
		const char *name, *peer, *own, *state;
	} first[] = {
		{"joined and never beaten: dead after as many observations as the time has periods",
			"0000000", "+++++++", "?????dd"},
		{"it begins to beat in time: as any other from then on", "00000+...", "+++++++++",
			"?????alld"},
		{"it begins to beat before its death was committed: alive", "000000n", "+++++++",
			"?????da"},
		{"not joined yet: nothing is expected, and nothing counted", "jjjjjjj000000",
			"+++++++++++++", "????????????d"},
		{"what cannot be observed does not count", "0000!00000", "+xsp++++++",
			"?????????d"},
		{"one that says that it will never beat is not missed", "0wwwwwwG", "++++++++",
			"???????d"},
		{"its process is gone before it has beaten: dead at once", "0GG", "+++", "?dd"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		play(&rules, rows[i].name, rows[i].peer, rows[i].own, rows[i].state);
	for (size_t i = 0; i < sizeof(first) / sizeof(first[0]); i++)
		play(&rules_first, first[i].name, first[i].peer, first[i].own, first[i].state);
}

static void test_numbers(void)
{
	TEST("HB-7: the timeout is the period less ten seconds, at least two")
	{
		CHECK_EQ(heartbeat_timeout(5000), 2000);
		CHECK_EQ(heartbeat_timeout(30000), 20000);
		CHECK_EQ(heartbeat_timeout(12000), 2000);
		CHECK_EQ(heartbeat_timeout(100), 2000);
	}
	TEST("a record says how often it comes, and which is the last")
	{
		CHECK_EQ(heartbeat_period(heartbeat_sequence(12345, 5000)), 5000);
		CHECK_EQ(heartbeat_count(heartbeat_sequence(12345, 5000)), 12345);
		CHECK(!heartbeat_is_farewell(heartbeat_sequence(UINT64_MAX, 5000)));
		CHECK(heartbeat_is_farewell(heartbeat_farewell(5000)));
		CHECK(heartbeat_period(heartbeat_sequence(1, 365 * INT64_C(86400000))) > 16000000);
	}
	TEST("a change proves life only from one look to the next")
	{
		struct heartbeat_peer peer = {0};
		struct heartbeat_look look = {.beat = {.token = 1}};
		struct heartbeat_exchange exchange = {.beaten = true};
		static const struct {
			int64_t after;
			bool proved;
		} looks[] = {{PERIOD, false}, {PERIOD, true}, {60 * PERIOD, false}, {PERIOD, true},
			{2 * PERIOD, true}};
		for (size_t i = 0; i < sizeof(looks) / sizeof(looks[0]); i++) {
			exchange.began += looks[i].after;
			look.beat.sequence = heartbeat_sequence(i + 1, PERIOD);
			(void)heartbeat_observe(&peer, &rules, &exchange, &look);
			CHECK_EQ(peer.proved, looks[i].proved);
		}
	}
	TEST("the monitor declares; others one that restarted, or when no monitor does it")
	{
		struct heartbeat_peer peer = {
			.state = HEARTBEAT_DEAD, .beat = {.token = 7}, .silent = 3};
		CHECK(heartbeat_may_declare(&peer, &rules, true));
		CHECK(!heartbeat_may_declare(&peer, &rules, false));
		peer.silent = 3 + HEARTBEAT_DEPUTY;
		CHECK(heartbeat_may_declare(&peer, &rules, false));
		peer.state = HEARTBEAT_LATE;
		CHECK(!heartbeat_may_declare(&peer, &rules, true));
		peer.state = HEARTBEAT_RESTARTED;
		peer.silent = 0;
		CHECK(heartbeat_may_declare(&peer, &rules, false));
	}
	TEST("a limit of its own, and a period of its own that its beats do not tell")
	{
		struct heartbeat_rules own = {
			.period = 10 * PERIOD, .timeout = 10 * PERIOD, .limit = 2};
		struct heartbeat_peer peer = {0};
		struct heartbeat_look look = {.beat = {.token = 7, .sequence = 1}, .reused = true};
		struct heartbeat_exchange exchange = {.beaten = true};
		for (int i = 0; i < 20; i++) {
			CHECK(heartbeat_observe(&peer, &own, &exchange, &look) != HEARTBEAT_DEAD);
			exchange.began += PERIOD;
		}
		CHECK_EQ(heartbeat_observe(&peer, &own, &exchange, &look), HEARTBEAT_DEAD);
	}
	TEST("a slow reading that shows a change proves a worker alive, and no silence")
	{
		struct heartbeat_peer peer = {0};
		struct heartbeat_look look = {.beat = {.token = 7, .sequence = 1},
			.took = rules.timeout + 1,
			.reused = true};
		struct heartbeat_exchange exchange = {.beaten = true};
		CHECK_EQ(heartbeat_observe(&peer, &rules, &exchange, &look), HEARTBEAT_ALIVE);
		for (int i = 0; i < 20; i++) {
			exchange.began += PERIOD;
			CHECK_EQ(heartbeat_observe(&peer, &rules, &exchange, &look),
				HEARTBEAT_ALIVE);
		}
	}
	TEST("a peer with a longer period has that one")
	{
		struct heartbeat_peer peer = {0};
		struct heartbeat_look look = {
			.beat = {.token = 1, .sequence = heartbeat_sequence(1, 10 * PERIOD)}};
		struct heartbeat_exchange exchange = {.beaten = true};
		for (int i = 0; i <= 29; i++) {
			exchange.began += PERIOD;
			CHECK(heartbeat_observe(&peer, &rules, &exchange, &look) != HEARTBEAT_DEAD);
		}
		exchange.began += PERIOD;
		CHECK_EQ(heartbeat_observe(&peer, &rules, &exchange, &look), HEARTBEAT_DEAD);
	}
}

/* ---- Progress ---- */

struct training {
	struct progress p;
	int64_t limit;
	struct progress_reading look;
};

static struct training begun(int64_t limit)
{
	return (struct training){.limit = limit, .look = {.counts = true, .started = true}};
}

static bool tick(struct training *t, int64_t ms)
{
	bool hangs = false;
	for (int64_t done = 0; done < ms; done += 1000) {
		t->look.now += 1000;
		hangs = progress_observe(&t->p, t->limit, &t->look);
	}
	return hangs;
}

static void test_progress(void)
{
	TEST("a step that does not change for the limit hangs, one that does never")
	{
		struct training t = begun(10000);
		CHECK(!tick(&t, 1000));
		for (int i = 0; i < 100; i++) {
			t.look.step++;
			CHECK(!tick(&t, 9000));
		}
		t.look.step++;
		CHECK(!tick(&t, 10000));
		CHECK(tick(&t, 1000));
		t.look.step++;
		CHECK(!tick(&t, 1000));
	}
	TEST("to ask again at the same step is progress; before the first time nothing is a hang")
	{
		struct training t = begun(10000);
		t.look.started = false;
		CHECK(!tick(&t, 3600000));
		t.look.started = true;
		for (int i = 0; i < 100; i++) {
			t.look.written++;
			CHECK(!tick(&t, 9000));
		}
		CHECK(tick(&t, 2000));
	}
	TEST("time that does not count: held, the store away, the agent itself paused")
	{
		struct training t = begun(10000);
		CHECK(!tick(&t, 5000));
		t.look.counts = false;
		CHECK(!tick(&t, 3600000));
		t.look.counts = true;
		t.look.now += 3600000;
		CHECK(!tick(&t, 3000));
		CHECK(tick(&t, 4000));
	}
}

int main(void)
{
	test_rules();
	test_numbers();
	test_progress();
	return unit_end();
}
