/* SPDX-License-Identifier: MIT */
/*
 * One process of a machine carries out the requests of the others: what each is answered is what it
 * would have been answered alone, also where the one that carries them out is killed or stopped at
 * any step, fails, or finds garbage.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "scratch.h"
#include "store/sqlite/group_commit.h"
#include "unit.h"

#define PATIENCE 60000 /* milliseconds */
#define CROWD	 40
#define VALUE	 "0123456789012345678901234567890123456789"

static struct error err;
static const char *parameters = "";

/* Of one that asked; shared memory. */
static struct result {
	_Atomic bool may_begin;
	bool ended;
	enum status status;
	bool known, held, value;
	store_revision revision;
	int64_t took;
	char text[400];
} * results;

static struct sqlite_store *open_store(const char *name)
{
	struct store *store = NULL;
	char url[160];
	snprintf(url, sizeof(url), "%s/%s%s", scratch, name, parameters);
	if (store_open(&store, url, STORE_CREATE, clock_after(PATIENCE), &err) != STATUS_OK) {
		printf("# cannot open %s: %s\n", name, err.text);
		exit(99);
	}
	store_set_patience(store, PATIENCE);
	return (struct sqlite_store *)store;
}

static void close_store(struct sqlite_store *store)
{
	store_close(&store->base);
}

static bool exists(struct sqlite_store *store, const char *key)
{
	struct store_entry entry = {0};
	enum status status = store_get(&store->base, key, &entry, &err);
	if (status != STATUS_OK && status != STATUS_NO)
		printf("# %s: %s\n", key, err.text);
	store_entry_release(&entry);
	return status == STATUS_OK;
}

/* ---- Those that ask ---- */

/* What number i asks: its own key, and for all the key "claim", which one of them gets. */
static void ask(struct sqlite_store *store, int i, struct result *result)
{
	char key[32];
	snprintf(key, sizeof(key), "row/%d", i);
	struct store_compare absent = {"claim", 0};
	struct store_op first[] = {
		{STORE_PUT, key, VALUE, 40}, {STORE_PUT, "claim", key, strlen(key)}};
	struct store_op second[] = {{STORE_PUT, key, VALUE, 40}, {STORE_GET, "claim", NULL, 0}};
	struct store_request request = {&absent, 1, first, 2, second, 2, NULL, false, {NULL}};
	struct store_answer answer = {0};
	struct error why = {0};
	int64_t began = clock_now();
	result->status = store_txn(&store->base, &request, &answer, &why);
	result->took = clock_now() - began;
	result->known = answer.known;
	result->held = answer.held;
	result->revision = answer.revision;
	result->value = answer.count == 1 && answer.entries[0].value;
	snprintf(result->text, sizeof(result->text), "%.399s", why.text);
	store_answer_release(&answer);
	result->ended = true;
}

static void ask_to_read(struct sqlite_store *store, int i, struct result *result)
{
	struct store_entry entry = {0};
	struct error why = {0};
	(void)i;
	result->status = store_get(&store->base, "before", &entry, &why);
	result->value = entry.value;
	result->ended = true;
}

/*
 * One who asks once it may begin. To be started while we do not hold the lock: what a process holds
 * is held in its children, too.
 */
static pid_t start(const char *name, int i, int64_t patience,
	void (*what)(struct sqlite_store *store, int i, struct result *result))
{
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		struct sqlite_store *store = open_store(name);
		while (!results[i].may_begin)
			poll(NULL, 0, 1);
		store_set_patience(&store->base, patience);
		what(store, i, &results[i]);
		close_store(store);
		_exit(0);
	}
	return pid;
}

/* How many wait behind us in the line with a request posted; others: or whatever they do there. */
static int waiting(struct sqlite_store *store, bool others)
{
	uint64_t ticket, end;
	int count = 0;
	struct posts *posts = machine_posts(&store->lock.machine, &ticket, &end);
	for (; posts && ticket < end; ticket++)
		count += others || posts->posts[ticket % TICKET_QUEUE_PLACES].word ==
					   request_word(ticket, REQUEST_WAITING);
	return count;
}

static void wait_until(struct sqlite_store *store, int count, bool others)
{
	int64_t deadline = clock_after(PATIENCE);
	while (waiting(store, others) < count && clock_now() < deadline)
		poll(NULL, 0, 1);
	CHECK(waiting(store, others) >= count);
}

static void hold(struct sqlite_store *store)
{
	CHECK_EQ(lock_acquire(&store->lock, clock_after(PATIENCE), &err), STATUS_OK);
}

static void let_go(struct sqlite_store *store)
{
	lock_release(&store->lock);
}

static void reap(pid_t *pids, int count)
{
	for (int i = 0; i < count; i++)
		waitpid(pids[i], NULL, 0);
}

static uint32_t change_counter(const char *name)
{
	char path[128];
	unsigned char bytes[4] = {0};
	snprintf(path, sizeof(path), "%s/%s", scratch, name);
	int descriptor = open(path, O_RDONLY | O_CLOEXEC);
	CHECK_EQ(pread(descriptor, bytes, 4, 24), 4);
	close(descriptor);
	return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 |
	       bytes[3];
}

static void crowd(const char *name)
{
	pid_t pids[CROWD];
	bool revisions[CROWD + 2] = {0};
	int winners = 0;
	struct sqlite_store *store = open_store(name);
	CHECK_EQ(store_put(&store->base, "before", "1", NULL, &err), STATUS_OK);
	memset(results, 0, CROWD * sizeof(*results));
	for (int i = 0; i < CROWD; i++)
		pids[i] = start(name, i, PATIENCE, ask);
	hold(store);
	for (int i = 0; i < CROWD; i++)
		results[i].may_begin = true;
	wait_until(store, CROWD, false);
	uint32_t counter = change_counter(name);
	let_go(store);
	reap(pids, CROWD);
	for (int i = 0; i < CROWD; i++) {
		char key[32];
		snprintf(key, sizeof(key), "row/%d", i);
		CHECK_EQ(results[i].status, STATUS_OK);
		CHECK(exists(store, key));
		winners += results[i].held;
		CHECK(results[i].held || results[i].value);
		store_revision revision = results[i].revision;
		if (CHECK(revision >= 2 && revision <= CROWD + 1 && !revisions[revision]))
			revisions[revision] = true;
	}
	CHECK_EQ(winners, 1);
	printf("# %u commits\n", change_counter(name) - counter);
	/* One, where the processor is ours: there is a limit to the time of one turn. */
	CHECK(change_counter(name) - counter < CROWD / 2);
	close_store(store);
}

/* ---- What the one that carries them out may do ---- */

enum step {
	STEP_TAKEN,
	STEP_COMMITTING,
	STEP_COMMITTED,
	STEP_FORGOTTEN,
	STEP_END,
};

/* As if what was deleted, and all marks, had been forgotten. */
static void forget_all(struct sqlite_store *store)
{
	sqlite3 *database = NULL;
	(void)sqlite3_open(store->base.where, &database);
	if (sqlite3_exec(database, "DELETE FROM gone; UPDATE meta SET floor=revision", NULL, NULL,
		    NULL) != SQLITE_OK)
		printf("# %s\n", sqlite3_errmsg(database));
	sqlite3_close(database);
}

/*
 * Take our turn by hand, with a request of our own, and stop or die of a signal at a step. The
 * revision is written as transaction.c does it.
 */
static void carry_out(const char *name, enum step step, int number)
{
	struct session session;
	struct group_commit others = {0};
	struct store_answer answer = {0};
	char sql[64];
	bool known;
	struct sqlite_store *store = open_store(name);
	struct store_op put = {STORE_PUT, "own", "v", 1};
	struct store_request request = {.then = &put, .then_count = 1};
	while (!results[3].may_begin)
		poll(NULL, 0, 1);
	enum status status = session_begin(&session, store, true, clock_after(PATIENCE), &err);
	if (status == STATUS_OK)
		status = session_run_one(&session, &request, &answer, &err);
	if (status == STATUS_OK)
		status = group_commit_run_others(&others, &session, &err);
	snprintf(sql, sizeof(sql), "UPDATE meta SET revision=%lld", (long long)session.revision);
	if (status == STATUS_OK)
		status = session_execute(&session, sql, "change", &err);
	if (step == STEP_TAKEN)
		raise(number);
	group_commit_announce(&others, &session);
	if (step == STEP_COMMITTING)
		raise(number);
	status = session_commit(&session, status, &known, &err);
	if (step == STEP_FORGOTTEN)
		forget_all(store);
	if (step == STEP_COMMITTED || step == STEP_FORGOTTEN)
		raise(number);
	group_commit_answer(&others, &session, status, known);
	if (step == STEP_END)
		raise(number);
	lock_leave_queue(&store->lock);
	store_answer_release(&answer);
	close_store(store);
	_exit(status != STATUS_OK);
}

/*
 * It is in the line before the others, who are a writer, a reader and a writer, and wait for this
 * long.
 */
static void carry_out_for_three(
	const char *name, enum step step, int number, int64_t patience, pid_t pids[4])
{
	struct sqlite_store *store = open_store(name);
	CHECK_EQ(store_put(&store->base, "before", "1", NULL, &err), STATUS_OK);
	memset(results, 0, 4 * sizeof(*results));
	fflush(stdout);
	pids[3] = fork();
	if (pids[3] == 0)
		carry_out(name, step, number);
	for (int i = 0; i < 3; i++)
		pids[i] = start(name, i, patience, i == 1 ? ask_to_read : ask);
	hold(store);
	results[3].may_begin = true;
	wait_until(store, 1, true);
	for (int i = 0; i < 3; i++) {
		results[i].may_begin = true;
		wait_until(store, i + 1, false);
	}
	let_go(store);
	close_store(store);
}

/* last: the revision of what is put then; with one more than was changed, something ran twice. */
static void killed_at(const char *name, enum step step, store_revision last)
{
	pid_t pids[4];
	store_revision revision = 0;
	carry_out_for_three(name, step, SIGKILL, PATIENCE, pids);
	int64_t began = clock_now();
	reap(pids, 4);
	CHECK(clock_now() - began < PATIENCE / 2);
	struct sqlite_store *store = open_store(name);
	for (int i = 0; i < 3; i += 2) {
		if (!CHECK_EQ(results[i].status, STATUS_OK))
			printf("# %s\n", results[i].text);
		CHECK_EQ(results[i].held, i == 0);
		CHECK_EQ(results[i].revision, last - 2 + i / 2);
		CHECK(exists(store, i ? "row/2" : "row/0"));
	}
	CHECK_EQ(results[1].status, STATUS_OK);
	CHECK(results[1].value);
	CHECK_EQ(exists(store, "own"), last == 5);
	CHECK_EQ(store_put(&store->base, "after", "1", &revision, &err), STATUS_OK);
	CHECK_EQ(revision, last);
	close_store(store);
}

/* They look, and the mark of that commit may have been forgotten. */
static void forgotten(const char *name)
{
	pid_t pids[4];
	carry_out_for_three(name, STEP_FORGOTTEN, SIGKILL, PATIENCE, pids);
	reap(pids, 4);
	char who[64];
	snprintf(who, sizeof(who), "process %d of this machine", (int)pids[3]);
	for (int i = 0; i < 3; i += 2) {
		CHECK_EQ(results[i].status, STATUS_TEMPORARY);
		CHECK(!results[i].known);
		CHECK(strstr(results[i].text, who));
		CHECK(strstr(results[i].text, "whether this change was made is not known"));
	}
	CHECK_EQ(results[1].status, STATUS_OK);
}

static void kills(void)
{
	TEST("killed before it commits: those whose requests it took run them")
	{
		killed_at("taken.db", STEP_TAKEN, 4);
	}
	TEST("killed when it was to commit: they look, and run them")
	{
		killed_at("committing.db", STEP_COMMITTING, 4);
	}
	TEST("killed when it had committed and told to no process: they look, and know the answer")
	{
		killed_at("committed.db", STEP_COMMITTED, 5);
		parameters = "?assume=shared";
		killed_at("committed-shared.db", STEP_COMMITTED, 5);
		parameters = "?lock=link";
		killed_at("committed-link.db", STEP_COMMITTED, 5);
		parameters = "";
	}
	TEST("killed when it had told them: they know")
	{
		killed_at("told.db", STEP_END, 5);
	}
	TEST("where so much has changed since that it may be forgotten, they do not know")
	{
		forgotten("forgotten.db");
	}
}

static void stops(void)
{
	pid_t pids[4];
	TEST("stopped with what it took: they do not know at their deadline, and no later; it goes on")
	{
		int64_t began = clock_now();
		carry_out_for_three("stopped.db", STEP_TAKEN, SIGSTOP, 300, pids);
		reap(pids, 3);
		for (int i = 0; i < 3; i += 2) {
			CHECK_EQ(results[i].status, STATUS_TEMPORARY);
			CHECK(!results[i].known);
			CHECK(results[i].took >= 299 && results[i].took < 30000);
		}
		printf("# %lld ms\n", (long long)(clock_now() - began));
		CHECK_EQ(results[1].status, STATUS_TEMPORARY);
		kill(pids[3], SIGCONT);
		reap(&pids[3], 1);
		struct sqlite_store *store = open_store("stopped.db");
		CHECK(exists(store, "row/0") && exists(store, "row/2") && exists(store, "own"));
		close_store(store);
	}
	TEST("who gives up before any process took its request: nothing was changed, and no process takes it")
	{
		struct sqlite_store *store = open_store("withdrawn.db");
		memset(results, 0, 2 * sizeof(*results));
		pids[0] = start("withdrawn.db", 0, 300, ask);
		pids[1] = start("withdrawn.db", 1, PATIENCE, ask);
		hold(store);
		results[0].may_begin = true;
		wait_until(store, 1, false);
		results[1].may_begin = true;
		reap(&pids[0], 1);
		wait_until(store, 1, false);
		CHECK_EQ(results[0].status, STATUS_TEMPORARY);
		CHECK(results[0].known);
		let_go(store);
		reap(&pids[1], 1);
		CHECK_EQ(results[1].status, STATUS_OK);
		CHECK(!exists(store, "row/0") && exists(store, "row/1"));
		close_store(store);
	}
}

/* ---- Requests of all kinds ---- */

/* Whose file sizes are limited: what it writes for the others does not fit. */
static void ask_limited(struct sqlite_store *store, int i, struct result *result)
{
	struct rlimit limit = {.rlim_cur = 20000, .rlim_max = RLIM_INFINITY};
	signal(SIGXFSZ, SIG_IGN);
	setrlimit(RLIMIT_FSIZE, &limit);
	ask(store, i, result);
}

static void ask_much(struct sqlite_store *store, int i, struct result *result)
{
	char key[32], value[3000];
	struct error why = {0};
	memset(value, 'x', sizeof(value) - 1);
	value[sizeof(value) - 1] = '\0';
	snprintf(key, sizeof(key), "much/%d", i);
	result->status = store_put(&store->base, key, value, NULL, &why);
	snprintf(result->text, sizeof(result->text), "%.399s", why.text);
}

/* It gets more than fits into a room, and changes something. */
static void ask_large(struct sqlite_store *store, int i, struct result *result)
{
	(void)i;
	struct store_op ops[] = {{STORE_PUT, "mixed", "1", 1}, {STORE_GET, "large", NULL, 0}};
	struct store_request request = {.then = ops, .then_count = 2};
	struct store_answer answer = {0};
	struct error why;
	result->status = store_txn(&store->base, &request, &answer, &why);
	result->value = answer.count == 1 && answer.entries[0].length == 20000;
	result->revision = answer.revision;
	store_answer_release(&answer);
}

static void ask_what_does_not_fit(struct sqlite_store *store, int i, struct result *result)
{
	struct error why;
	char *value = calloc(1, 20001);
	(void)i;
	memset(value, 'y', 20000);
	result->status = store_put(&store->base, "huge", value, NULL, &why);
	free(value);
}

/* It has seen more of this store than is there. */
static void ask_ahead(struct sqlite_store *store, int i, struct result *result)
{
	struct error why;
	store->newest = 1000;
	ask(store, i, result);
	result->value = store_was_set_back(&store->base, &why);
}

static void ask_and_wait(struct sqlite_store *store, int i, struct result *result)
{
	struct error why = {0};
	ask(store, i, result);
	/* Those behind it were carried out in the same commit. */
	result->status =
		store_wait(&store->base, "", &result->revision, clock_after(PATIENCE), -1, &why);
}

typedef void asks(struct sqlite_store *store, int i, struct result *result);

/* All at once, in this order. */
static void all_at_once(const char *name, asks *const *what, int count, int posted)
{
	pid_t pids[CROWD];
	struct sqlite_store *store = open_store(name);
	memset(results, 0, CROWD * sizeof(*results));
	for (int i = 0; i < count; i++)
		pids[i] = start(name, i, PATIENCE, what[i]);
	hold(store);
	for (int i = 0; i < count; i++) {
		results[i].may_begin = true;
		wait_until(store, i + 1, true);
	}
	wait_until(store, posted, false);
	let_go(store);
	close_store(store);
	reap(pids, count);
}

static void kinds(void)
{
	TEST("a commit that fails for what the others asked: each runs its own, all succeed")
	{
		asks *what[] = {
			ask_limited, ask_much, ask_much, ask_much, ask_much, ask_much, ask_much};
		all_at_once("limited.db", what, 7, 7);
		for (int i = 0; i < 7; i++)
			if (!CHECK_EQ(results[i].status, STATUS_OK))
				printf("# %s\n", results[i].text);
		struct sqlite_store *store = open_store("limited.db");
		CHECK(exists(store, "row/0") && exists(store, "much/1") && exists(store, "much/6"));
		close_store(store);
	}
	TEST("an answer that does not fit: what was changed is undone, its owner runs it")
	{
		asks *what[] = {ask, ask_large, ask_what_does_not_fit, ask};
		char value[20001] = {0};
		struct sqlite_store *store = open_store("large.db");
		memset(value, 'x', 20000);
		CHECK_EQ(store_put(&store->base, "large", value, NULL, &err), STATUS_OK);
		all_at_once("large.db", what, 4, 3);
		for (int i = 0; i < 4; i++)
			CHECK_EQ(results[i].status, STATUS_OK);
		CHECK(results[1].value);
		CHECK_EQ(results[0].revision, 2);
		CHECK_EQ(results[3].revision, 3);
		CHECK_EQ(results[1].revision, 4);
		CHECK(exists(store, "mixed") && exists(store, "huge"));
		close_store(store);
	}
	TEST("who has seen more of the store than there is sees itself that it was set back")
	{
		asks *what[] = {ask, ask_ahead, ask};
		all_at_once("ahead.db", what, 3, 3);
		CHECK_EQ(results[0].status, STATUS_OK);
		CHECK_EQ(results[1].status, STATUS_OK);
		CHECK_EQ(results[2].status, STATUS_OK);
		CHECK_EQ(results[0].revision, 1);
		CHECK_EQ(results[2].revision, 2);
		CHECK(results[1].value);
		CHECK(results[1].revision > 1000);
	}
	TEST("who was answered and waits for changes sees those of the same commit")
	{
		asks *what[] = {ask_and_wait, ask_and_wait, ask};
		all_at_once("waits.db", what, 3, 3);
		CHECK_EQ(results[0].status, STATUS_OK);
		CHECK_EQ(results[1].status, STATUS_OK);
		CHECK_EQ(results[0].revision, 3);
		CHECK_EQ(results[1].revision, 3);
	}
}

static void scribble(void)
{
	TEST("a page on which a process scribbles: no process crashes, and each change is made once")
	{
		pid_t pids[8];
		uint64_t ticket, end;
		struct sqlite_store *store = open_store("scribbled.db");
		memset(results, 0, 8 * sizeof(*results));
		for (int i = 0; i < 8; i++)
			pids[i] = start("scribbled.db", i, PATIENCE, ask);
		hold(store);
		for (int i = 0; i < 8; i++)
			results[i].may_begin = true;
		wait_until(store, 8, false);
		struct posts *posts = machine_posts(&store->lock.machine, &ticket, &end);
		for (int i = 0; ticket < end; ticket++, i++) {
			struct request_room *room = &posts->rooms[ticket % TICKET_QUEUE_PLACES];
			if (i % 4 == 0)
				memset(room, 0xff, sizeof(*room));
			else if (i % 4 == 1)
				room->bytes[20] ^= 1;
			else if (i % 4 == 2)
				posts->posts[ticket % TICKET_QUEUE_PLACES].word = UINT64_MAX;
		}
		let_go(store);
		reap(pids, 8);
		for (int i = 0; i < 8; i++) {
			char key[32];
			snprintf(key, sizeof(key), "row/%d", i);
			bool unknown = results[i].status == STATUS_TEMPORARY && !results[i].known;
			CHECK(results[i].ended);
			CHECK(results[i].status == STATUS_OK ? exists(store, key) : unknown);
		}
		struct store_answer answer = {0};
		struct store_range range = {.prefix = ""};
		CHECK_EQ(store_list(&store->base, &range, &answer, &err), STATUS_OK);
		for (size_t i = 0; i < answer.count; i++)
			CHECK(!strncmp(answer.entries[i].key, "row/", 4) ||
				!strcmp(answer.entries[i].key, "claim"));
		store_answer_release(&answer);
		close_store(store);
	}
}

int main(void)
{
	scratch_make();
	results = mmap(NULL, CROWD * sizeof(*results), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct sqlite_store *store = open_store("any.db");
	bool has_page = store->lock.machine.page;
	close_store(store);
	if (!has_page) {
		printf("# /dev/shm cannot be used: not tried\n");
		scratch_remove();
		return unit_end();
	}
	TEST("all that wait are carried out in one or a few commits: one winner, revisions without a gap")
	{
		crowd("crowd.db");
	}
	TEST("the same on a shared filesystem, and with lock=link")
	{
		parameters = "?assume=shared";
		crowd("shared.db");
		parameters = "?lock=link";
		crowd("link.db");
		parameters = "";
	}
	kills();
	stops();
	kinds();
	scribble();
	scratch_remove();
	return unit_end();
}
