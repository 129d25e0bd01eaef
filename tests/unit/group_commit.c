/* SPDX-License-Identifier: MIT */
/*
 * One process of a machine carries out the requests of the others; here it finds garbage, or what
 * it did is forgotten. Killed, stopped and failing at each of its calls: tests/crash/together.
 */
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "scratch.h"
#include "store/sqlite/group_commit.h"
#include "unit.h"

#define PATIENCE 60000 /* milliseconds */
#define CROWD	 8
#define VALUE	 "0123456789012345678901234567890123456789"

static struct error err;

/* Of one that asked; shared memory. */
static struct result {
	_Atomic bool may_begin;
	bool ended;
	enum status status;
	bool known, value;
	char text[400];
} * results;

static struct sqlite_store *open_store(const char *name)
{
	struct store *store = NULL;
	char url[160];
	snprintf(url, sizeof(url), "%s/%s", scratch, name);
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
	result->status = store_txn(&store->base, &request, &answer, &why);
	result->known = answer.known;
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

/* ---- What the one that carries them out may do ---- */

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
 * Take our turn by hand, with a request of our own, and die when all is committed, forgotten, and
 * told to no process. The revision is written as transaction.c does it.
 */
static void carry_out(const char *name)
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
	group_commit_announce(&others, &session);
	(void)session_commit(&session, status, &known, &err);
	forget_all(store);
	raise(SIGKILL);
}

/* They look, and the mark of that commit may have been forgotten. */
static void forgotten(const char *name)
{
	pid_t pids[4];
	struct sqlite_store *store = open_store(name);
	CHECK_EQ(store_put(&store->base, "before", "1", NULL, &err), STATUS_OK);
	memset(results, 0, 4 * sizeof(*results));
	fflush(stdout);
	pids[3] = fork();
	if (pids[3] == 0)
		carry_out(name);
	for (int i = 0; i < 3; i++)
		pids[i] = start(name, i, PATIENCE, i == 1 ? ask_to_read : ask);
	hold(store);
	results[3].may_begin = true;
	wait_until(store, 1, true);
	for (int i = 0; i < 3; i++) {
		results[i].may_begin = true;
		wait_until(store, i + 1, false);
	}
	let_go(store);
	close_store(store);
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
	TEST("killed when it had committed, and so much has changed since that it may be forgotten: they do not know")
	{
		forgotten("forgotten.db");
	}
	scribble();
	scratch_remove();
	return unit_end();
}
