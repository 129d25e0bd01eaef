/* SPDX-License-Identifier: MIT */
/* Mode link with real processes and files: who is dead, what a lost lock stops, what is left. */
#include "store/lock/lock_link.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "scratch.h"
#include "store/sqlite/session.h"
#include "unit.h"

#define TAKEOVER 2000
#define OTHER	 "1123456789abcdef-0123456789abcdef0123456789abcdef-f0000000-f0000001-7-99-faraway"
#define PATIENCE                                                                                   \
	50000 /* milliseconds: shorter than the takeover time of those stores where that is not to \
		 come */

/* A holder on a machine that we do not know. */
#define STRANGER "0123456789abcdef-0123456789abcdef0123456789abcdef-f0000000-f0000001-7-99-faraway"

static struct error err;

static const char *path_of(const char *name, const char *end)
{
	static _Thread_local char paths[4][512];
	static _Thread_local unsigned next;
	char *path = paths[next++ % 4];
	snprintf(path, sizeof(paths[0]), "%s/%s%s", scratch, name, end);
	return path;
}

static struct sqlite_store *open_with(const char *name, const char *parameters)
{
	struct store *store = NULL;
	const char *url = path_of(name, parameters);
	if (store_open(&store, url, STORE_CREATE, clock_after(PATIENCE), &err) != STATUS_OK) {
		printf("# cannot open %s: %s\n", name, err.text);
		exit(99);
	}
	store_set_patience(store, PATIENCE);
	return (struct sqlite_store *)store;
}

static struct sqlite_store *open_store(const char *name)
{
	return open_with(name, "?lock=link&takeover=2s");
}

static enum status put(struct sqlite_store *store, const char *key)
{
	return store_put(&store->base, key, "v", NULL, &err);
}

/* The names in a directory: how many, and the last one. */
static int names_in(const char *directory, char name[256])
{
	int count = 0;
	DIR *entries = opendir(directory);
	*name = '\0';
	for (struct dirent *entry; entries && (entry = readdir(entries));)
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..")) {
			snprintf(name, 256, "%s", entry->d_name);
			count++;
		}
	if (entries)
		closedir(entries);
	return count;
}

static void touch(const char *directory, const char *name)
{
	char path[1024];
	snprintf(path, sizeof(path), "%s/%s", directory, name);
	(void)mkdir(directory, 0700);
	int descriptor = open(path, O_WRONLY | O_CREAT, 0600);
	if (descriptor >= 0)
		close(descriptor);
}

static void remove_name(const char *directory, const char *name)
{
	char path[1024];
	snprintf(path, sizeof(path), "%s/%s", directory, name);
	(void)unlink(path);
}

static void names(void)
{
	char name[LINK_NAME_MAX], again[LINK_NAME_MAX];
	TEST("a name says who made it, and never comes again")
	{
		struct process_identity who, us;
		CHECK(link_name_make(name) && link_name_make(again));
		CHECK(strcmp(name, again) != 0 && strncmp(name, again, LINK_NONCE) != 0);
		CHECK(link_name_parse(name, &who));
		CHECK_EQ(process_identify(0, &us, &err), STATUS_OK);
		CHECK_EQ(who.pid, us.pid);
		CHECK_EQ(who.start, us.start);
		CHECK_EQ(who.pid_namespace, us.pid_namespace);
		CHECK_TEXT(who.boot, us.boot);
		CHECK_EQ(link_name_classify(name), HOLDER_OURSELVES);
	}
	TEST("who is alive, gone, on another machine, or no name at all")
	{
		int pipes[2];
		CHECK_EQ(pipe(pipes), 0);
		fflush(stdout);
		pid_t pid = fork();
		if (pid == 0) {
			bool made = link_name_make(name) &&
				    write(pipes[1], name, sizeof(name)) == sizeof(name);
			for (;;)
				pause();
			_exit(made);
		}
		CHECK_EQ(read(pipes[0], name, sizeof(name)), sizeof(name));
		CHECK_EQ(link_name_classify(name), HOLDER_HERE);
		kill(pid, SIGSTOP);
		CHECK_EQ(link_name_classify(name), HOLDER_HERE);
		kill(pid, SIGKILL);
		/* Dead, and not yet waited for. */
		for (int i = 0; i < 500 && link_name_classify(name) != HOLDER_GONE; i++)
			poll(NULL, 0, 10);
		CHECK_EQ(link_name_classify(name), HOLDER_GONE);
		waitpid(pid, NULL, 0);
		CHECK_EQ(link_name_classify(name), HOLDER_GONE);
		CHECK_EQ(link_name_classify(STRANGER), HOLDER_ELSEWHERE);
		CHECK_EQ(link_name_classify(".nfs000000000000001"), HOLDER_ELSEWHERE);
		CHECK_EQ(link_name_classify(""), HOLDER_ELSEWHERE);
		close(pipes[0]);
		close(pipes[1]);
	}
}

/*
 * Another machine, whose time of waiting is over, takes the lock over from victim and puts a key;
 * victim's own clock has not gone on, as on a machine that its hypervisor stops.
 */
static void overtake(struct sqlite_store *from)
{
	static int count;
	char key[32];
	struct sqlite_store *other = open_with(strrchr(from->base.where, '/') + 1, "");
	/* Nothing in common with victim: no thread of its process, no queue. */
	database_mutex_put(other->lock.mutex);
	other->lock.mutex = database_mutex_get("another machine");
	machine_close(&other->lock.machine);
	other->lock.link.staleness.what = link_name_hash(from->lock.link.name);
	other->lock.link.staleness.last = clock_now();
	other->lock.link.staleness.silent = other->lock.file.takeover;
	snprintf(key, sizeof(key), "overtook/%d", count++);
	int64_t since = from->lock.link.since;
	CHECK_EQ(put(other, key), STATUS_OK);
	from->lock.link.since = since;
	store_close(&other->base);
}

/* In the place of libc's: at the first sync of the file that ends so, the lock is lost. then: at
 * the first one of that file after this. */
static struct sqlite_store *victim;
static const char *at_sync, *then;
int fdatasync(int descriptor)
{
	char link[64], path[512];
	snprintf(link, sizeof(link), "/proc/self/fd/%d", descriptor);
	ssize_t n = readlink(link, path, sizeof(path) - 1);
	int result = (int)syscall(SYS_fdatasync, descriptor);
	path[n < 0 ? 0 : n] = '\0';
	size_t length = strlen(path), end = at_sync ? strlen(at_sync) : 0;
	if (end && length > end && !strcmp(path + length - end, at_sync)) {
		at_sync = then;
		then = NULL;
		if (!at_sync)
			overtake(victim);
	}
	return result;
}

/* A transaction that puts a key, begun and not ended. */
static void begin_put(struct sqlite_store *store, struct session *session)
{
	CHECK_EQ(session_begin(session, store, true, clock_after(PATIENCE), &err), STATUS_OK);
	session->changed = true;
	(void)sqlite3_exec(session->database,
		"INSERT OR REPLACE INTO keys SELECT x'6c6f7374', x'76', revision+1 FROM meta;"
		"UPDATE meta SET revision=revision+1",
		NULL, NULL, NULL);
}

/* How many keys overtake has put, and whether the database is whole. */
static void is_whole(struct sqlite_store *store, size_t overtook)
{
	struct store_range range = {.prefix = "overtook/"};
	struct store_answer answer = {0};
	sqlite3 *database = NULL;
	sqlite3_stmt *statement = NULL;
	CHECK_EQ(store_list(&store->base, &range, &answer, &err), STATUS_OK);
	CHECK_EQ(answer.count, overtook);
	store_answer_release(&answer);
	CHECK_EQ(sqlite3_open(store->base.where, &database), SQLITE_OK);
	CHECK_EQ(sqlite3_prepare_v2(database, "PRAGMA integrity_check", -1, &statement, NULL),
		SQLITE_OK);
	CHECK_EQ(sqlite3_step(statement), SQLITE_ROW);
	CHECK_TEXT((const char *)sqlite3_column_text(statement, 0), "ok");
	sqlite3_finalize(statement);
	sqlite3_close(database);
}

/* The clock is of no help: the holder writes all that it wanted to. */
static void takeovers(void)
{
	static const struct {
		const char *sync, *then, *name;
		bool there; /* the key of the one that was overtaken */
	} points[] = {
		{NULL, NULL, "before its commit", false},
		{"-journal", NULL, "while its journal is synced", false},
		{".db", NULL, "while its database is synced", false},
		{".db", "-journal", "when its commit is done", true},
	};
	/*
	 * A process that stands still for a part of that time looks at its name again, and knows.
	 */
	struct sqlite_store *store = open_with("overtaken.db", "?lock=link&takeover=60s");
	struct session session;
	bool known;
	victim = store;
	for (size_t i = 0; i < sizeof(points) / sizeof(points[0]); i++) {
		char name[128];
		snprintf(name, sizeof(name),
			"overtaken %s, it writes on: it says that it does not know, and no write of "
			"its own arrives",
			points[i].name);
		TEST(name)
		{
			struct store_entry entry = {0};
			begin_put(store, &session);
			at_sync = points[i].sync;
			then = points[i].then;
			if (!at_sync)
				overtake(store);
			CHECK_EQ(session_end(&session, STATUS_OK, &known, &err), STATUS_TEMPORARY);
			CHECK(!at_sync && !known && strstr(err.text, "was taken over by others"));
			is_whole(store, i + 1);
			CHECK_EQ(store_get(&store->base, "lost", &entry, &err),
				points[i].there ? STATUS_OK : STATUS_NO);
			store_entry_release(&entry);
		}
		(void)unit_begin(NULL);
	}
	CHECK_EQ(store_delete(&store->base, "lost", &err), STATUS_OK);
	TEST("overtaken before it has opened its journal: it does not write to that of another")
	{
		CHECK_EQ(session_begin(&session, store, true, clock_after(PATIENCE), &err),
			STATUS_OK);
		overtake(store);
		CHECK(sqlite3_exec(session.database, "UPDATE meta SET revision=99", NULL, NULL,
			      NULL) != SQLITE_OK);
		CHECK_EQ(session_end(&session, STATUS_TEMPORARY, &known, &err), STATUS_TEMPORARY);
		CHECK(known);
		is_whole(store, 5);
	}
	TEST("a reader that is overtaken answers nothing")
	{
		CHECK_EQ(session_begin(&session, store, false, clock_after(PATIENCE), &err),
			STATUS_OK);
		overtake(store);
		CHECK_EQ(session_end(&session, STATUS_OK, &known, &err), STATUS_TEMPORARY);
		CHECK(known);
		is_whole(store, 6);
	}
	store_close(&store->base);
}

/* A process that holds the lock, until it is killed, and has no page of this machine. */
static pid_t start_holder(const char *name, const char *parameters)
{
	int ready[2];
	char byte;
	if (pipe(ready) < 0)
		exit(99);
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		struct sqlite_store *store = open_with(name, parameters);
		machine_close(&store->lock.machine);
		if (lock_acquire(&store->lock, clock_after(PATIENCE), &err) != STATUS_OK ||
			write(ready[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(ready[1]);
	CHECK_EQ(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return pid;
}

static void kill_and_reap(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void holders(void)
{
	struct sqlite_store *store = open_store("held.db");
	char held[512], name[256];
	snprintf(held, sizeof(held), "%s", path_of("held.db", ".lock.held"));

	TEST("a holder elsewhere is broken after the takeover time, by many short attempts, too")
	{
		int64_t began, renewed = 0;
		enum status status;
		store_set_patience(&store->base, 300);
		/* A machine that stops us for so long that it is broken before it is renewed:
		 * again. */
		for (int i = 0; i < 20 && !renewed; i++) {
			began = clock_now();
			touch(held, STRANGER);
			do {
				status = put(store, "k");
				if (status != STATUS_OK && !renewed && clock_now() - began > 1000) {
					CHECK(strstr(err.text, "process 7 on faraway"));
					remove_name(held, STRANGER);
					touch(held, OTHER);
					renewed = clock_now();
				}
			} while (status == STATUS_TEMPORARY && clock_now() - began < 60000);
			CHECK_EQ(status, STATUS_OK);
			CHECK(clock_now() - (renewed ? renewed : began) >= TAKEOVER);
		}
		CHECK(renewed);
		printf("# after %lld ms\n", (long long)(clock_now() - renewed));
		store_set_patience(&store->base, PATIENCE);
	}
	TEST("what killed processes left is swept, what others may use is not")
	{
		/* Where a name that is a little older than the others is not old. */
		struct sqlite_store *slow = open_with("slow.db", "?lock=link&takeover=60s");
		static const char nonce[] = ".lock.00112233445566";
		char dead[LINK_NAME_MAX];
		pid_t holder = start_holder("slow.db", "");
		CHECK_EQ(names_in(path_of("slow.db", ".lock.held"), name), 1);
		snprintf(dead, sizeof(dead), "%.*s", LINK_NAME_MAX - 1, name);
		kill_and_reap(holder);
		char one[512], two[512], three[512];
		snprintf(one, sizeof(one), "%s77", path_of("slow.db", nonce));
		snprintf(two, sizeof(two), "%s78", path_of("slow.db", nonce));
		snprintf(three, sizeof(three), "%s79", path_of("slow.db", nonce));
		touch(one, dead);
		touch(two, STRANGER);
		touch(scratch, "slow.db.lock.backup");
		touch(three, STRANGER);
		struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
		CHECK_EQ(utimensat(AT_FDCWD, three, old, 0), 0);
		CHECK_EQ(put(slow, "k"), STATUS_OK);
		CHECK(access(one, F_OK) < 0);
		CHECK(access(two, F_OK) == 0);
		CHECK(access(three, F_OK) < 0);
		CHECK(access(path_of("slow.db", ".lock.backup"), F_OK) == 0);
		(void)file_remove_tree(two, NULL);
		store_close(&slow->base);
	}
	store_close(&store->base);
	TEST("nothing is left when the store is closed")
	{
		CHECK(access(held, F_OK) < 0);
	}
}

int main(void)
{
	scratch_make();
	names();
	takeovers();
	holders();
	scratch_remove();
	return unit_end();
}
