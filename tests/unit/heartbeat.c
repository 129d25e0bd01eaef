/* SPDX-License-Identifier: MIT */
/* Which peers are alive: the rules one by one, then random worlds with stalls, pauses and jumps. */
#include "live/heartbeat.h"

#include <stdlib.h>
#include <string.h>

#include "live/progress.h"
#include "unit.h"

#define PERIOD 1000

static const struct heartbeat_rules rules = {.period = PERIOD, .timeout = 2000, .limit = 3};
/* A task that has joined must begin to beat within five periods. */
static const struct heartbeat_rules rules_first = {
	.period = PERIOD, .timeout = 2000, .limit = 3, .first = 4500};

/* What happens in one period: what the peer's file says, and how it was read. */
struct row {
	char peer; /* + it beats, . silence, n new token, r new token of a number that is used
		      again, f farewell, 0 nothing there, j nothing
		      there and it has not joined, w it will never beat, ! error, g gone, G gone and
		      nothing there */
	char own;  /* + in order, x own beat failed, s slow reading, p we were paused, h half a
		      period */
	const char *state;
};

static void play(
	const char *name, const struct heartbeat_rules *by, const struct row *rows, size_t count)
{
	struct heartbeat_peer peer = {0};
	struct store_beat beat = {
		.token = 7, .sequence = heartbeat_sequence(0, PERIOD), .step = 40};
	uint64_t beats = 0;
	int64_t now = 1000000;
	TEST(name)
	for (size_t i = 0; i < count; i++) {
		struct heartbeat_exchange exchange = {
			.beaten = rows[i].own != 'x', .paused = rows[i].own == 'p'};
		struct heartbeat_look look = {.took = rows[i].own == 's' ? 2001 : 1};
		now += rows[i].own == 'h' ? PERIOD / 2 : rows[i].own == 'p' ? 3600000 : PERIOD;
		exchange.began = now;
		if (rows[i].peer == '+' || rows[i].peer == 'n')
			beat.sequence = heartbeat_sequence(++beats, PERIOD);
		if (strchr("nr", rows[i].peer))
			beat.token++;
		look.reused = rows[i].peer == 'r';
		if (rows[i].peer == 'f')
			beat.sequence = heartbeat_farewell(PERIOD);
		look.beat = beat;
		look.expected = !strchr("jw", rows[i].peer);
		look.gone = strchr("gG", rows[i].peer);
		look.seen = strchr("0jwG", rows[i].peer) ? SEEN_NOTHING
			    : rows[i].peer == '!'	 ? SEEN_ERROR
							 : SEEN_BEAT;
		static const char *const words[] = {
			"unknown", "alive", "late", "hung", "dead", "restarted", "left"};
		enum heartbeat_state state = heartbeat_observe(&peer, by, &exchange, &look);
		if (!CHECK_TEXT(words[state], rows[i].state))
			printf("# at row %zu\n", i);
	}
}

#define PLAY_BY(rules_, name, ...)                                                                 \
	do {                                                                                       \
		static const struct row rows_[] = {__VA_ARGS__};                                   \
		play(name, rules_, rows_, sizeof(rows_) / sizeof(rows_[0]));                       \
	} while (0)
#define PLAY(...)	PLAY_BY(&rules, __VA_ARGS__)
#define PLAY_FIRST(...) PLAY_BY(&rules_first, __VA_ARGS__)
#define ABSENT                                                                                     \
	{                                                                                          \
		'0', '+', "unknown"                                                                \
	}

static void test_rules(void)
{
	PLAY("HB-1: a peer that beats is alive, however often", {'+', '+', "alive"},
		{'+', '+', "alive"}, {'+', '+', "alive"}, {'+', '+', "alive"});
	PLAY("HB-3: it misses two beats and returns: nothing", {'+', '+', "alive"},
		{'.', '+', "late"}, {'.', '+', "late"}, {'+', '+', "alive"}, {'.', '+', "late"},
		{'.', '+', "late"}, {'+', '+', "alive"});
	PLAY("HB-3: it misses three: dead", {'+', '+', "alive"}, {'.', '+', "late"},
		{'.', '+', "late"}, {'.', '+', "dead"});
	PLAY("HB-4: it beats as another incarnation: restarted, at once", {'+', '+', "alive"},
		{'n', '+', "restarted"}, {'+', '+', "restarted"});
	PLAY("CS-2: the same incarnation stops and starts again: fine", {'+', '+', "alive"},
		{'f', '+', "left"}, {'.', '+', "left"}, {'.', '+', "left"}, {'.', '+', "left"},
		{'.', '+', "left"}, {'+', '+', "alive"});
	PLAY("CS-2: another one after a farewell: restarted", {'+', '+', "alive"},
		{'f', '+', "left"}, {'n', '+', "restarted"});
	PLAY("never beaten: nothing is expected", {'0', '+', "unknown"}, {'0', '+', "unknown"},
		{'0', '+', "unknown"}, {'0', '+', "unknown"}, {'+', '+', "alive"});
	PLAY("silent before our first look, too: dead after the limit", {'.', '+', "alive"},
		{'.', '+', "late"}, {'.', '+', "late"}, {'.', '+', "dead"});
	PLAY("our own beat was not written: no observation", {'+', '+', "alive"},
		{'.', 'x', "alive"}, {'.', 'x', "alive"}, {'.', 'x', "alive"}, {'.', 'x', "alive"},
		{'.', '+', "late"});
	PLAY("an answer that took too long does not count", {'+', '+', "alive"},
		{'.', 's', "alive"}, {'.', 's', "alive"}, {'.', 's', "alive"}, {'.', 's', "alive"});
	PLAY("we were paused: no observation", {'+', '+', "alive"}, {'.', 'p', "alive"},
		{'.', 'p', "alive"}, {'.', 'p', "alive"}, {'.', '+', "late"}, {'+', '+', "alive"});
	PLAY("less than a period after the last one: no observation", {'+', '+', "alive"},
		{'.', 'h', "alive"}, {'.', 'h', "late"}, {'.', 'h', "late"}, {'.', 'h', "late"},
		{'.', 'h', "late"}, {'.', 'h', "dead"});
	PLAY("a file that cannot be read does not count", {'+', '+', "alive"}, {'!', '+', "alive"},
		{'!', '+', "alive"}, {'!', '+', "alive"}, {'0', '+', "alive"}, {'0', '+', "alive"});
	PLAY("its process is gone: dead at once", {'+', '+', "alive"}, {'g', '+', "dead"});
	PLAY("gone after its farewell: left", {'+', '+', "alive"}, {'f', '+', "left"},
		{'g', '+', "left"});
	PLAY("called dead, and back before that was committed: alive", {'+', '+', "alive"},
		{'.', '+', "late"}, {'.', '+', "late"}, {'.', '+', "dead"}, {'+', '+', "alive"});
	PLAY("called dead, and it cannot be read any more: not declared", {'+', '+', "alive"},
		{'.', '+', "late"}, {'.', '+', "late"}, {'.', '+', "dead"}, {'!', '+', "late"},
		{'.', 's', "late"}, {'.', '+', "dead"});
	PLAY("a number that is used again: a new token is a change", {'+', '+', "alive"},
		{'.', '+', "late"}, {'r', '+', "alive"}, {'.', '+', "late"}, {'r', '+', "alive"},
		{'.', '+', "late"}, {'.', '+', "late"}, {'.', '+', "dead"});
	PLAY("the filesystem stalls for a minute, our own beats are not written: alive",
		{'+', '+', "alive"}, {'.', 'x', "alive"}, {'.', 'x', "alive"}, {'.', 'x', "alive"},
		{'.', 'x', "alive"}, {'.', 'x', "alive"}, {'.', 'x', "alive"}, {'.', '+', "late"},
		{'+', '+', "alive"});
}

/* A task that joined, and was lost before its first beat. */
static void test_first_beat(void)
{
	PLAY_FIRST(
		"joined and never beaten: dead after as many observations as the time has periods",
		ABSENT, ABSENT, ABSENT, ABSENT, ABSENT, {'0', '+', "dead"}, {'0', '+', "dead"});
	PLAY_FIRST("it begins to beat in time: as any other from then on", ABSENT, ABSENT, ABSENT,
		ABSENT, ABSENT, {'+', '+', "alive"}, {'.', '+', "late"}, {'.', '+', "late"},
		{'.', '+', "dead"});
	PLAY_FIRST("it begins to beat before its death was committed: alive", ABSENT, ABSENT,
		ABSENT, ABSENT, ABSENT, {'0', '+', "dead"}, {'n', '+', "alive"});
	PLAY_FIRST("not joined yet: nothing is expected, and nothing counted",
		{'j', '+', "unknown"}, {'j', '+', "unknown"}, {'j', '+', "unknown"},
		{'j', '+', "unknown"}, {'j', '+', "unknown"}, {'j', '+', "unknown"},
		{'j', '+', "unknown"}, ABSENT, ABSENT, ABSENT, ABSENT, ABSENT, {'0', '+', "dead"});
	PLAY_FIRST("what cannot be observed does not count", ABSENT, {'0', 'x', "unknown"},
		{'0', 's', "unknown"}, {'0', 'p', "unknown"}, {'!', '+', "unknown"}, ABSENT, ABSENT,
		ABSENT, ABSENT, {'0', '+', "dead"});
	PLAY_FIRST("one that says that it will never beat is not missed", ABSENT,
		{'w', '+', "unknown"}, {'w', '+', "unknown"}, {'w', '+', "unknown"},
		{'w', '+', "unknown"}, {'w', '+', "unknown"}, {'w', '+', "unknown"},
		{'G', '+', "dead"});
	PLAY_FIRST("its process is gone before it has beaten: dead at once", ABSENT,
		{'G', '+', "dead"}, {'G', '+', "dead"});
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

/* ---- Random worlds ---- */

#define TASKS 6

static uint64_t seed;
static int64_t dice(int64_t sides)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (int64_t)((seed >> 33) % (uint64_t)sides);
}

/* A task: a process that beats and looks, one operation on the filesystem at a time. */
struct task {
	bool dead; /* really */
	int64_t died_at, found_at;
	int64_t paused_until;
	int64_t next, last;  /* exchange */
	int64_t stuck_since; /* in an operation on the filesystem; 0: not */
	bool beaten;	     /* before it got stuck */
	uint64_t count;
	struct store_beat file; /* what others read */
	struct heartbeat_peer peers[TASKS];
};

struct world {
	struct task tasks[TASKS];
	int64_t now, stalled_until, suspended_until;
	int64_t slowest;
};

static void write_beat(struct world *w, int i)
{
	struct task *t = &w->tasks[i];
	t->file = (struct store_beat){
		.token = (uint64_t)i + 1, .sequence = heartbeat_sequence(++t->count, PERIOD)};
	t->beaten = true;
}

/* Whether it really is. */
static bool note_lost(struct world *w, int by, int lost)
{
	struct task *t = &w->tasks[lost];
	if (!t->dead) {
		printf("# task %d called %d dead at %lld ms\n", by, lost, (long long)w->now);
		return false;
	}
	if (!t->found_at) {
		t->found_at = w->now;
		if (w->now - t->died_at > w->slowest)
			w->slowest = w->now - t->died_at;
	}
	return true;
}

static bool look_around(struct world *w, int i, int64_t began)
{
	struct task *t = &w->tasks[i];
	int64_t took = w->now - began;
	struct heartbeat_exchange exchange = {.began = began,
		.beaten = took <= rules.timeout,
		.paused = t->last && began - t->last > 2 * PERIOD};
	t->last = began;
	for (int j = 0; j < TASKS; j++) {
		struct heartbeat_look look = {
			.seen = w->tasks[j].file.token ? SEEN_BEAT : SEEN_NOTHING,
			.beat = w->tasks[j].file,
			.took = took};
		if (i != j &&
			heartbeat_is_lost(
				heartbeat_observe(&t->peers[j], &rules, &exchange, &look)) &&
			!note_lost(w, i, j))
			return false;
	}
	return true;
}

static bool step_task(struct world *w, int i)
{
	struct task *t = &w->tasks[i];
	if (t->dead || w->now < t->paused_until)
		return true;
	/* Load, or STOP: less than two periods, else it is not to be told from death. */
	if (dice(1000) == 0 && w->now > t->paused_until + 5 * PERIOD) {
		t->paused_until = w->now + dice(3 * PERIOD / 2);
		return true;
	}
	if (!t->stuck_since && w->now < t->next)
		return true;
	int64_t began = t->stuck_since ? t->stuck_since : w->now;
	/* A stall catches it before its beat is written, or after. */
	if (!t->stuck_since)
		t->beaten = false;
	if (!t->beaten && (w->now >= w->stalled_until || (!t->stuck_since && dice(2))))
		write_beat(w, i);
	if (w->now < w->stalled_until) {
		t->stuck_since = began;
		return true;
	}
	t->stuck_since = 0;
	t->next = began + PERIOD;
	return look_around(w, i, began);
}

/*
 * A world in steps of 10 ms for some minutes. The filesystem stalls for all, each task is paused
 * now and then, all are suspended together; some die. The living see each other through the files.
 */
static bool live(bool deaths, int64_t *slowest)
{
	struct world w = {0};
	for (int i = 0; i < TASKS; i++)
		w.tasks[i].next = dice(PERIOD);
	for (w.now = 1; w.now < 200000; w.now += 10) {
		if (dice(8000) == 0 && w.now >= w.stalled_until)
			w.stalled_until = w.now + dice(60000);
		if (dice(8000) == 0)
			w.suspended_until = w.now + dice(30000);
		if (w.now < w.suspended_until)
			continue;
		for (int i = 0; i < TASKS; i++) {
			struct task *t = &w.tasks[i];
			if (deaths && i && !t->dead && w.now > 3000 && dice(40000) == 0) {
				t->dead = true;
				t->died_at = w.now;
			}
			if (!step_task(&w, i))
				return false;
		}
	}
	for (int i = 0; i < TASKS; i++)
		if (w.tasks[i].dead && !w.tasks[i].found_at && w.tasks[i].died_at < 10000) {
			printf("# task %d died at %lld ms and was not found\n", i,
				(long long)w.tasks[i].died_at);
			return false;
		}
	if (w.slowest > *slowest)
		*slowest = w.slowest;
	return true;
}

static void test_worlds(void)
{
	int64_t slowest = 0;
	TEST("2000 worlds with stalls, pauses and suspensions: no task alive is called dead")
	for (uint64_t i = 0; i < 1000; i++) {
		seed = i;
		if (!CHECK(live(false, &slowest)) || !CHECK(live(true, &slowest)))
			printf("# world %llu\n", (unsigned long long)i);
	}
	printf("# the dead were found after at most %lld ms, stalls included\n",
		(long long)slowest);
}

/* ---- Progress ---- */

struct training {
	struct progress p;
	struct progress_rules rules;
	struct progress_reading look;
};

static bool tick(struct training *t, int64_t ms)
{
	bool hangs = false;
	for (int64_t done = 0; done < ms; done += 1000) {
		t->look.now += 1000;
		hangs = progress_observe(&t->p, &t->rules, &t->look);
	}
	return hangs;
}

static void test_progress(void)
{
	struct error err;
	TEST("a step that does not change for the limit hangs, one that does never")
	{
		struct training t = {.rules = {.limit = 10000},
			.look = {.counts = true, .started = true, .section = ""}};
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
	TEST("time that does not count: held, the store away, the agent itself paused")
	{
		struct training t = {.rules = {.limit = 10000},
			.look = {.counts = true, .started = true, .section = ""}};
		CHECK(!tick(&t, 5000));
		t.look.counts = false;
		CHECK(!tick(&t, 3600000));
		t.look.counts = true;
		t.look.now += 3600000;
		CHECK(!tick(&t, 3000));
		CHECK(tick(&t, 4000));
	}
	TEST("before the first step only --section setup limits; sections have their own")
	{
		struct training t = {
			.rules = {.limit = 5000}, .look = {.counts = true, .section = ""}};
		CHECK(!tick(&t, 100000));
		CHECK(progress_add_section(&t.rules, "setup=20s", &err) == STATUS_OK);
		CHECK(progress_add_section(&t.rules, "eval=1m", &err) == STATUS_OK);
		CHECK(tick(&t, 1000));
		t.look.started = true;
		t.look.section = "eval";
		CHECK(!tick(&t, 60000));
		t.look.written++; /* said again: that is progress */
		CHECK(!tick(&t, 60000));
		CHECK(tick(&t, 2000));
		t.look.section = "other";
		CHECK(!tick(&t, 5000));
		CHECK(tick(&t, 1000));
	}
	TEST("a section needs a name and a time")
	{
		struct progress_rules r = {0};
		static const char *const bad[] = {"", "=5s", "eval", "eval=", "eval=x", "a b=5s",
			"0123456789012345678901234567890123=5s"};
		for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
			CHECK(progress_add_section(&r, bad[i], &err) == STATUS_USAGE);
		CHECK_EQ(r.count, 0);
	}
	TEST("learned: five times the longest, at least the limit given; nothing known, no limit")
	{
		struct training t = {.rules = {.limit = 5000, .learn = true},
			.look = {.counts = true, .started = true, .section = ""}};
		CHECK(!tick(&t, 1000000));
		for (int i = 0; i < 5; i++) {
			t.look.step++;
			tick(&t, 4000);
		}
		t.look.step++;
		CHECK(!tick(&t, 20000));
		CHECK(tick(&t, 1000));
		progress_section(&t.rules, PROGRESS_TRAINING)->longest = 500;
		CHECK_EQ(progress_limit(&t.p, &t.rules), 5000);
	}
	TEST("the first steps are learned apart: compiling again after a restart is no hang")
	{
		struct progress_rules learned = {.learn = true};
		for (int attempt = 1; attempt <= 3; attempt++) {
			struct training t = {
				.rules = learned, .look = {.counts = true, .section = ""}};
			CHECK(!tick(&t, 20000));
			t.look.started = true;
			CHECK(!tick(&t, 1800000));
			for (int i = 0; i < 100; i++) {
				t.look.step++;
				CHECK(!tick(&t, 1000));
			}
			learned = t.rules;
			CHECK(!tick(&t, 57000));
			CHECK(tick(&t, 3000));
		}
		struct training t = {.rules = {.limit = 5000},
			.look = {.counts = true, .started = true, .section = ""}};
		CHECK(progress_add_section(&t.rules, "warm-up=1h", &err) == STATUS_OK);
		CHECK(!tick(&t, 1800000));
		t.look.step = 1;
		CHECK(!tick(&t, 1800000));
		t.look.step = 2;
		CHECK(!tick(&t, 5000));
		CHECK(tick(&t, 1000));
	}
}

int main(void)
{
	test_rules();
	test_first_beat();
	test_numbers();
	test_progress();
	test_worlds();
	return unit_end();
}
