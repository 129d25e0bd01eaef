/* SPDX-License-Identifier: MIT */
#include "fixture.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/clock.h"
#include "base/file.h"
#include "calls.h"
#include "store/sqlite/session.h"
#include "tree.h"

#define OLD 20 /* keys deleted long ago: more than one deletion makes forgotten */

/* Tokens that no process has: of a store that is not made yet, and of one that is. */
#define NOBODYS	   "s.db.lock/f-0000000000000000-0000000000000000-0000000000-"
#define HOST	   "-________________________________"
#define TOKEN	   NOBODYS TOKEN_NEW HOST
#define TOKEN_MADE NOBODYS TOKEN_BASE HOST

static struct tree images[STATES];

static _Noreturn void give_up(const char *what, const struct error *err)
{
	printf("Bail out! %s: %s\n", what, err ? err->text : "");
	exit(99);
}

static char *path_in(const struct fixture *fixture, const char *name)
{
	static char path[400];
	snprintf(path, sizeof(path), "%s/%s", fixture->directory, name);
	return path;
}

/* Remember where the page is, so that it can be removed when its lock file is. */
static void find_page(struct fixture *fixture)
{
	struct stat st;
	if (stat(path_in(fixture, "s.db.lock"), &st) == 0)
		snprintf(fixture->page, sizeof(fixture->page),
			"/dev/shm/preempt-%u/%llx-%llx-lock1", (unsigned)geteuid(),
			(unsigned long long)st.st_dev, (unsigned long long)st.st_ino);
}

void fixture_restore(struct fixture *fixture, enum state state)
{
	find_page(fixture);
	tree_restore(&images[state]);
	if (state == STATE_NOTHING && *fixture->page)
		unlink(fixture->page);
	find_page(fixture);
}

static enum status put(struct store *store, const char *key, size_t length, struct error *err)
{
	static char value[STORE_VALUE_MAX];
	struct store_op op = {STORE_PUT, key, value, length};
	struct store_request request = {.then = &op, .then_count = 1};
	struct store_answer answer = {0};
	memset(value, 'x', sizeof(value));
	return store_txn(store, &request, &answer, err);
}

/* So many revisions pass in which nothing happens. */
static enum status age(struct store *store, int revisions, struct error *err)
{
	struct session session;
	char sql[64];
	bool known;
	enum status status =
		session_begin(&session, (struct sqlite_store *)store, true, clock_after(5000), err);
	if (status != STATUS_OK)
		return status;
	snprintf(sql, sizeof(sql), "UPDATE meta SET revision=revision+%d", revisions);
	session.changed = true;
	if (sqlite3_exec(session.database, sql, NULL, NULL, NULL) != SQLITE_OK)
		status = error_set(err, STATUS_TEMPORARY, "its revision cannot be raised");
	return session_end(&session, status, &known, err);
}

static void fill(struct store *store)
{
	struct error err = {0};
	char key[32];
	enum status status = STATUS_OK;
	for (int i = 0; i < 40 && status == STATUS_OK; i++) {
		snprintf(key, sizeof(key), "run/r/%03d", i);
		status = put(store, key, 300, &err);
	}
	if (status == STATUS_OK)
		status = put(store, "large", 30000, &err);
	if (status == STATUS_OK)
		status = put(store, "gone", 30000, &err);
	if (status == STATUS_OK)
		status = store_delete(store, "gone", &err);
	for (int i = 0; i < OLD && status == STATUS_OK; i++) {
		snprintf(key, sizeof(key), "run/r/old%02d", i);
		status = put(store, key, 1, &err);
		if (status == STATUS_OK)
			status = store_delete(store, key, &err);
	}
	if (status == STATUS_OK)
		status = age(store, 600, &err);
	if (status != STATUS_OK)
		give_up("cannot fill", &err);
}

enum status fixture_change(struct store *store, bool *known, struct error *err)
{
	char large[20000];
	memset(large, 'y', sizeof(large));
	struct store_op ops[] = {{STORE_PUT, "run/r/020", "new", 3},
		{STORE_PUT, "large", large, sizeof(large)}, {STORE_PUT, "run/s", "1", 1},
		{.kind = STORE_DELETE, .key = "run/r/000"}};
	struct store_request request = {.then = ops, .then_count = 4};
	struct store_answer answer = {0};
	enum status status = store_txn(store, &request, &answer, err);
	*known = answer.known;
	store_answer_release(&answer);
	return status;
}

static struct store *open_scene(const struct fixture *fixture)
{
	struct error err = {0};
	struct store *store = NULL;
	if (store_open(&store, fixture->url, STORE_CREATE, clock_after(5000), &err) != STATUS_OK)
		give_up("cannot open", &err);
	return store;
}

/* A writer that is killed before its at-th call; 0: not. */
static void change_in_child(const struct fixture *fixture, struct plan *plan, unsigned at)
{
	plan->act = at ? ACT_BEFORE : ACT_COUNT;
	plan->at = at;
	plan->number = SIGKILL;
	plan->count = plan->hits = 0;
	pid_t pid = fork();
	if (pid == 0) {
		bool known;
		struct error err;
		struct store *store = open_scene(fixture);
		calls_arm(plan);
		_exit(fixture_change(store, &known, &err) != STATUS_OK);
	}
	int status = -1;
	waitpid(pid, &status, 0);
	if (at ? !WIFSIGNALED(status) : status != 0)
		give_up("the writer to be killed was not", NULL);
}

/* The last write of the commit is the one that makes the journal void: killed just before it. */
static void make_hot(struct fixture *fixture)
{
	struct plan *plan = mmap(
		NULL, sizeof(*plan), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	unsigned last = 0;
	snprintf(plan->directory, sizeof(plan->directory), "%s", fixture->directory);
	change_in_child(fixture, plan, 0);
	for (unsigned i = 0; i < plan->count; i++)
		if (!strcmp(plan->log[i].name, "pwrite") &&
			!strcmp(plan->log[i].file, "s.db-journal"))
			last = i + 1;
	fixture_restore(fixture, STATE_FULL);
	change_in_child(fixture, plan, last);
	munmap(plan, sizeof(*plan));
}

/* Let this be the token of the store. */
static void put_token(const struct fixture *fixture, const char *name)
{
	(void)file_remove_tree(path_in(fixture, "s.db.lock"), NULL);
	if (mkdir(path_in(fixture, "s.db.lock"), 0700) < 0 ||
		close(open(path_in(fixture, name), O_CREAT | O_WRONLY, 0600)) < 0)
		give_up("no token", NULL);
}

void fixture_make(struct fixture *fixture, const char *parameters)
{
	const char *parent = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
	snprintf(fixture->directory, sizeof(fixture->directory), "%s/faults-XXXXXX", parent);
	if (!mkdtemp(fixture->directory))
		give_up("no directory", NULL);
	snprintf(fixture->database, sizeof(fixture->database), "%s/s.db", fixture->directory);
	bool token = !strcmp(parameters, "token");
	snprintf(fixture->url, sizeof(fixture->url), "%s%s", fixture->database,
		token ? "" : parameters);
	if (token)
		put_token(fixture, TOKEN);
	tree_keep(&images[STATE_NOTHING], fixture->directory);
	struct store *store = open_scene(fixture);
	fill(store);
	store_close(store);
	tree_keep(&images[STATE_FULL], fixture->directory);
	make_hot(fixture);
	/* What the dead writer holds: a row of store.rows takes it over. */
	if (token)
		put_token(fixture, TOKEN_MADE);
	tree_keep(&images[STATE_HOT], fixture->directory);
}

void fixture_remove(struct fixture *fixture)
{
	fixture_restore(fixture, STATE_NOTHING);
	(void)file_remove_tree(fixture->directory, NULL);
	for (int state = 0; state < STATES; state++)
		tree_release(&images[state]);
}

static void add_beats(struct store *store, struct text *lines)
{
	for (uint64_t task = 0; task < 3; task++) {
		struct store_beat beat = {0};
		struct error err;
		enum status status = store_beat_read(store, "r/1", task, &beat, &err);
		text_addf(lines, "beat %" PRIu64 " %d %" PRIu64 "\n", task, (int)status,
			beat.sequence);
	}
}

/* How much is remembered of what was deleted. */
static enum status add_gone(struct store *store, struct text *lines, struct error *err)
{
	struct session session;
	bool known;
	enum status status = session_begin(
		&session, (struct sqlite_store *)store, false, clock_after(store->patience), err);
	if (status != STATUS_OK)
		return status;
	sqlite3_stmt *statement =
		session_prepare(&session, "SELECT count(*), min(revision) FROM gone", err);
	if (statement && sqlite3_step(statement) == SQLITE_ROW)
		text_addf(lines, "gone %d from %d floor %" PRId64 "\n",
			sqlite3_column_int(statement, 0), sqlite3_column_int(statement, 1),
			session.floor);
	sqlite3_finalize(statement);
	return session_end(&session, STATUS_OK, &known, err);
}

enum status fixture_inspect(const struct fixture *fixture, int64_t patience, struct text *lines,
	struct text *without_revisions, struct error *err)
{
	struct store *store = NULL;
	struct store_answer answer = {0};
	struct store_range all = {.prefix = ""};
	/* Not read-only: like a program that goes on working. */
	enum status status = store_open(&store, fixture->url, 0, clock_after(patience), err);
	if (status != STATUS_OK)
		return status;
	store_set_patience(store, patience);
	status = store_list(store, &all, &answer, err);
	if (status == STATUS_OK) {
		for (size_t i = 0; i < answer.count; i++) {
			struct store_entry *entry = &answer.entries[i];
			char line[700];
			snprintf(line, sizeof(line), "%s %zu %016llx", entry->key, entry->length,
				(unsigned long long)XXH64(entry->value, entry->length, 0));
			text_addf(lines, "%s %" PRId64 "\n", line, entry->revision);
			text_addf(without_revisions, "%s\n", line);
		}
		text_addf(lines, "revision %" PRId64 "\n", answer.revision);
		add_beats(store, lines);
		add_beats(store, without_revisions);
		status = add_gone(store, lines, err);
	}
	store_answer_release(&answer);
	store_close(store);
	return status;
}

const char *fixture_stranger(const struct fixture *fixture)
{
	static const char *const ours[] = {
		".", "..", "s.db", "s.db-journal", "s.db.lock", "s.db.beats"};
	static char name[256];
	DIR *entries = opendir(fixture->directory);
	*name = '\0';
	for (struct dirent *entry; entries && (entry = readdir(entries));) {
		bool known = false;
		for (size_t i = 0; i < sizeof(ours) / sizeof(*ours); i++)
			known |= !strcmp(entry->d_name, ours[i]);
		/* After a takeover: */
		known |= !strncmp(entry->d_name, "s.db.", 5) &&
			 strspn(entry->d_name + 5, "0123456789abcdef") == 16;
		if (!known)
			snprintf(name, sizeof(name), "%s", entry->d_name);
	}
	closedir(entries);
	return *name ? name : NULL;
}
