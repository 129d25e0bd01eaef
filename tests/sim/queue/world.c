/* SPDX-License-Identifier: MIT */
/* The store of the world, whose requests and answers are lost; what is drawn; the named schedules.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "sim.h"

struct world *world;

static const char *const names[ACTS] = {"schedule", "come", "work", "vanish", "fence", "leave",
	"cancel", "retry", "forget", "raise", "look", "pass"};

const char *act_name(enum act act)
{
	return names[act];
}

/* ---- Broken rules ---- */

static void execute(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void execute(const char *format, ...)
{
	char sql[512];
	va_list args;
	va_start(args, format);
	vsnprintf(sql, sizeof(sql), format, args);
	va_end(args);
	if (sqlite3_exec(world->database, sql, NULL, NULL, NULL) != SQLITE_OK)
		abort();
}

static void break_before(void)
{
	const struct worker *worker = world->caller;
	if (broken == ONE_LEASE && world->act == WORK)
		execute("UPDATE command SET state='waiting' WHERE state='running'");
	if (broken == REFUSED_ELSEWHERE && world->act == WORK)
		execute("UPDATE command SET refused_on=NULL");
	if (broken == PAUSE_BETWEEN && world->act == WORK)
		execute("UPDATE command SET rest=0");
	if (broken == BOUNDED_ATTEMPTS && world->act == WORK)
		execute("UPDATE command SET attempts=0, transients=0, lost_early=0");
	if (broken == FORGET_WHAT_IS_OVER && world->act == FORGET)
		execute("UPDATE command SET state='succeeded' WHERE state='waiting'");
	if (broken == ONE_RESULT && world->act == WORK && worker->exchange.ended_count)
		execute("UPDATE command SET state='running', token='%s', worker='%s' WHERE"
			" id=%" PRIu64,
			worker->exchange.ended[0].token, worker->self.token,
			worker->exchange.ended[0].id);
}

static void break_after(void)
{
	const struct worker *worker = world->caller;
	if (broken == FENCED_ARE_REFUSED && world->act == WORK && *worker->self.token)
		execute("INSERT OR IGNORE INTO worker VALUES(1, '%s', %d, '%s', 0, 0, 0, '{}')",
			worker->self.token, 1000 + (int)(worker - world->worker),
			worker->process.who.host);
	if (broken == AFTER_OTHERS)
		execute("UPDATE command SET state='waiting' WHERE state='blocked'");
	if (broken == REPEATED_IS_ONCE)
		execute("DELETE FROM once");
	if (broken == TOLD_TO_END)
		execute("UPDATE command SET asked=NULL");
	if (broken == FAILURE_IS_TOLD)
		execute("UPDATE queue SET failure=NULL");
	if (broken == NO_ID_TWICE)
		execute("UPDATE queue SET next=(SELECT coalesce(max(id), 0)+1 FROM command)");
}

/* ---- The store ---- */

static enum status lose(struct error *err, uint64_t *count)
{
	++*count;
	TRACE("%s is lost",
		count == &world->statistics->lost_answers ? "the answer" : "the request");
	return error_set(err, STATUS_TEMPORARY, "lost");
}

static enum status tables_run(
	struct store *store, struct store_operation *operation, int64_t deadline, struct error *err)
{
	(void)store, (void)deadline;
	const struct schedule *s = world->schedule;
	struct statistics *stats = world->statistics;
	if (!world->quiet && random_chance(&kernel.outside, s->lost_before))
		return lose(err, &stats->lost_requests);
	execute("BEGIN");
	if (operation->write)
		break_before();
	int code = operation->run(world->database, operation->context);
	if (operation->write && code == SQLITE_OK)
		break_after();
	bool rolls = broken == ACKNOWLEDGED_IS_THERE && world->act == SCHEDULE;
	execute(code == SQLITE_OK && !rolls ? "COMMIT" : "ROLLBACK");
	if (code != SQLITE_OK) {
		VIOLATE("sqlite", "an operation fails: %s", sqlite3_errstr(code));
		return error_set(err, STATUS_TEMPORARY, "%s", sqlite3_errstr(code));
	}
	if (broken == WAITING_IS_WOKEN)
		memset(operation->changed, 0, sizeof(operation->changed));
	operation->revision = ++world->revision;
	if (operation->write)
		observer_commit(operation->changed);
	if (!world->quiet && random_chance(&kernel.outside, s->lost_after))
		return lose(err, &stats->lost_answers);
	return STATUS_OK;
}

static const struct store_backend tables = {.scheme = "tables", .run = tables_run};

void world_enter(struct worker *worker, enum act act)
{
	world->act = act;
	world->caller = worker;
	kernel.running = worker ? &worker->thread : NULL;
}

void world_leave(void)
{
	world->caller = NULL;
	kernel.running = NULL;
}

/* ---- A world from beginning to end ---- */

static enum act draw_act(void)
{
	int sum = 0;
	for (int i = 0; i < ACTS; i++)
		sum += world->schedule->weight[i];
	int64_t at = random_in(&kernel.random, 0, sum - 1);
	enum act act = SCHEDULE;
	while (at >= world->schedule->weight[act])
		at -= world->schedule->weight[act++];
	return act;
}

static void begin(struct world *w, const struct schedule *s, struct statistics *stats, FILE *trace)
{
	static const struct kernel_world nothing = {0};
	static char where[] = "tables", files[] = "/files";
	memset(w, 0, sizeof(*w));
	*w = (struct world){.schedule = s, .statistics = stats};
	world = w;
	struct kernel former = kernel;
	memset(&kernel, 0, sizeof(kernel));
	kernel.process = former.process;
	kernel.process_room = former.process_room;
	kernel.world = &nothing;
	kernel.random.state = s->seed;
	kernel.outside.state = s->seed + 7;
	kernel.now = 1000 * MS;
	kernel.trace = trace;
	w->store = (struct store){.backend = &tables, .where = where, .files = files};
	if (sqlite3_open(":memory:", &w->database) != SQLITE_OK)
		abort();
	execute("CREATE TABLE keys(key BLOB PRIMARY KEY, value BLOB, revision INTEGER)");
	if (queue_open(&w->queue, &w->store, "q", NULL, NULL) != STATUS_OK)
		abort();
	/* Make the tables. */
	w->quiet = true;
	w->act = LOOK;
	struct queue_changed changed;
	const struct queue_selection none = {.ids = &(uint64_t){1}, .count = 1};
	struct queue_failure failure = {0};
	(void)queue_raise(&w->queue, &failure, NULL);
	(void)queue_cancel(&w->queue, &none, &changed, NULL);
	w->quiet = false;
	observer_begin();
	actors_begin();
}

bool world_run(struct world *w, const struct schedule *s, struct statistics *stats, FILE *trace)
{
	begin(w, s, stats, trace);
	for (int i = 0; i < s->acts && !kernel.violated; i++) {
		kernel.now += random_in(&kernel.random, 1, 200) * MS;
		actors_do(draw_act());
	}
	if (!kernel.violated)
		actors_drain();
	if (!kernel.violated)
		actors_check_end();
	actors_release();
	queue_release(&w->queue);
	observer_end();
	sqlite3_close(w->database);
	kernel.trace = NULL;
	return !kernel.violated;
}

/* ---- Schedules ---- */

static void draw_common(struct schedule *s)
{
	static const int weight[ACTS] = {[SCHEDULE] = 14,
		[COME] = 6,
		[WORK] = 50,
		[VANISH] = 3,
		[FENCE] = 4,
		[LEAVE] = 1,
		[CANCEL] = 3,
		[RETRY] = 3,
		[FORGET] = 2,
		[RAISE] = 8,
		[LOOK] = 2,
		[PASS] = 4};
	memcpy(s->weight, weight, sizeof(weight));
	s->acts = 120;
	s->machines = 3;
}

void schedule_draw(struct schedule *s, uint64_t seed)
{
	struct random r = {.state = seed * 1000003};
	*s = (struct schedule){.seed = random_next(&r)};
	draw_common(s);
	s->acts = (int)random_in(&r, 20, 200);
	s->machines = (int)random_in(&r, 1, 3);
	if (random_chance(&r, 700)) {
		s->lost_before = (int)random_in(&r, 0, 150);
		s->lost_after = (int)random_in(&r, 0, 150);
	}
	s->halting = random_chance(&r, 500) ? (int)random_in(&r, 0, 400) : 0;
	s->after = random_chance(&r, 600) ? (int)random_in(&r, 0, 700) : 0;
	s->fails = (int)random_in(&r, 0, 600);
	s->refuses = random_chance(&r, 400) ? (int)random_in(&r, 0, 400) : 0;
	s->needs = random_chance(&r, 300) ? 300 : 0;
	s->limit = random_chance(&r, 300) ? (uint64_t)random_in(&r, 1, 8) : 0;
	for (int i = 0; i < ACTS; i++)
		s->weight[i] = (int)random_in(&r, s->weight[i] / 2, 2 * s->weight[i]);
}

void schedule_print(const struct schedule *s, FILE *out)
{
	fprintf(out,
		"%d acts, %d machines, lost %d and %d, halting %d, after %d, fails %d, refuses %d, "
		"needs %d, limit %" PRIu64 "\n",
		s->acts, s->machines, s->lost_before, s->lost_after, s->halting, s->after, s->fails,
		s->refuses, s->needs, s->limit);
}

/* ---- Named schedules ---- */

static void quiet(struct schedule *s)
{
	draw_common(s);
	s->seed = 1;
	for (int i = 0; i < ACTS; i++)
		s->weight[i] = i == SCHEDULE || i == COME || i == WORK ? s->weight[i] : 0;
}

static const char *expect_all(struct world *w)
{
	return w->statistics->succeeded && w->statistics->succeeded == w->statistics->scheduled
		       ? NULL
		       : "not all have succeeded";
}

static void chains(struct schedule *s)
{
	draw_common(s);
	s->seed = 3;
	s->acts = 300;
	s->after = 600;
	s->fails = 100;
	s->weight[SCHEDULE] = 30;
}

static const char *expect_chains(struct world *w)
{
	return w->statistics->dependents && w->statistics->released
		       ? NULL
		       : "no command came after another one";
}

static void lossy(struct schedule *s)
{
	draw_common(s);
	s->seed = 3;
	s->acts = 400;
	s->lost_before = s->lost_after = 300;
}

static const char *expect_loss(struct world *w)
{
	return w->statistics->lost_answers > 20 && w->statistics->lost_requests > 20
		       ? NULL
		       : "hardly anything was lost";
}

static void zombies(struct schedule *s)
{
	draw_common(s);
	s->seed = 4;
	s->acts = 400;
	s->weight[FENCE] = 20;
}

static const char *expect_zombies(struct world *w)
{
	return w->statistics->lost > 3 ? NULL : "nobody was declared dead";
}

static void halts(struct schedule *s)
{
	draw_common(s);
	s->seed = 6;
	s->acts = 400;
	s->halting = 500;
	s->fails = 500;
}

static const char *expect_halts(struct world *w)
{
	return w->statistics->raised > 1 ? NULL : "no failure was told";
}

const struct scenario scenarios[] = {
	{"quiet", "WQ-1, WQ-3: what is scheduled runs once, and succeeds", quiet, expect_all},
	{"chains", "commands that come after others", chains, expect_chains},
	{"lossy", "requests and answers are lost, and calls are repeated later", lossy,
		expect_loss},
	{"zombies", "WQ-10: living workers are declared dead, and go on", zombies, expect_zombies},
	{"halts", "WQ-4 to WQ-9: the first failure is told once, then all is clean", halts,
		expect_halts},
	{0},
};
