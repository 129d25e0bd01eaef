/* SPDX-License-Identifier: MIT */
/*
 * The contract of store.h, for any backend. PREEMPT_TEST_STORE is the URL of a store with %s where
 * a fresh name goes ("etcd://127.0.0.1:2379/test/%s"); without it, SQLite in a directory of its
 * own, and the store in memory. With PREEMPT_TEST_SLOW, for a store that takes long, it does less.
 * (Many processes on one store: tests/places/suite.bats.)
 */
#include "store/store.h"

#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "scratch.h"
#include "support/backends/memory.h"
#include "unit.h"

/* So long may a call take, with sanitizers, on a machine that is busy with other things. */
#define PATIENCE 120000

static char pattern[512];
static int race_beats = 4000;
static struct error err;

/* The URL of a store that no process has used. */
static const char *fresh_url(void)
{
	static char url[640];
	static int number;
	const char *hole = strstr(pattern, "%s");
	snprintf(url, sizeof(url), "%.*sunit-%d-%d%s", (int)(hole - pattern), pattern,
		(int)getpid(), ++number, hole + 2);
	return url;
}

static struct store *open_url(const char *url, unsigned flags)
{
	struct store *store = NULL;
	if (store_open(&store, url, flags, clock_after(PATIENCE), &err) != STATUS_OK) {
		printf("# cannot open %s: %s\n", url, err.text);
		exit(99);
	}
	store_set_patience(store, PATIENCE);
	return store;
}

static struct store *open_fresh(void)
{
	return open_url(fresh_url(), STORE_CREATE);
}

/* The revision of a store that is empty: a server that others use, too, has counted before. */
static store_revision origin_of(struct store *store)
{
	struct store_answer answer = {0};
	struct store_range all = {.prefix = ""};
	CHECK_EQ(store_list(store, &all, &answer, &err), STATUS_OK);
	CHECK_EQ(answer.count, 0);
	store_revision origin = answer.revision;
	store_answer_release(&answer);
	return origin;
}

static bool has_value(struct store *store, const char *key, const char *value)
{
	struct store_entry entry = {0};
	enum status status = store_get(store, key, &entry, &err);
	bool same =
		value ? status == STATUS_OK && !strcmp(entry.value, value) : status == STATUS_NO;
	store_entry_release(&entry);
	return same;
}

/* All keys of a range in one line: "a b c"; a trailing '+' when there is more. */
static const char *keys_of(struct store *store, struct store_range range)
{
	static char line[1024];
	struct store_answer answer = {0};
	*line = '\0';
	if (store_list(store, &range, &answer, &err) != STATUS_OK)
		return err.text;
	for (size_t i = 0; i < answer.count; i++) {
		strcat(line, *line ? " " : "");
		strcat(line, answer.entries[i].key);
	}
	if (answer.more)
		strcat(line, " +");
	store_answer_release(&answer);
	return line;
}

static void put_and_get(void)
{
	struct store *store = open_fresh();
	store_revision origin = origin_of(store), revision = 0;
	struct store_entry entry = {0};

	TEST("a key that was put is read back, with its revision")
	{
		CHECK(has_value(store, "a", NULL));
		CHECK_EQ(store_put(store, "a", "one", &revision, &err), STATUS_OK);
		CHECK_EQ(revision, origin + 1);
		CHECK_EQ(store_get(store, "a", &entry, &err), STATUS_OK);
		CHECK_TEXT(entry.key, "a");
		CHECK_TEXT(entry.value, "one");
		CHECK_EQ(entry.revision, origin + 1);
		store_entry_release(&entry);
	}
	TEST("put if absent keeps the old value and answers it")
	{
		CHECK_EQ(store_put_if_absent(store, "a", "two", &entry, &err), STATUS_NO);
		CHECK_TEXT(entry.value, "one");
		store_entry_release(&entry);
		CHECK_EQ(store_put_if_absent(store, "a", "two", NULL, &err), STATUS_NO);
		CHECK(has_value(store, "a", "one"));
		CHECK_EQ(store_put_if_absent(store, "b", "two", &entry, &err), STATUS_OK);
		CHECK(has_value(store, "b", "two"));
	}
	TEST("a deleted key is absent, can be put if absent, and deleting twice is fine")
	{
		CHECK_EQ(store_delete(store, "b", &err), STATUS_OK);
		CHECK_EQ(store_delete(store, "b", &err), STATUS_OK);
		CHECK(has_value(store, "b", NULL));
		CHECK_EQ(store_put_if_absent(store, "b", "three", NULL, &err), STATUS_OK);
		CHECK(has_value(store, "b", "three"));
	}
	TEST("the revision counts the transactions that changed something")
	{
		/* put a, put b, delete b, put b: the second delete changed nothing */
		CHECK_EQ(store_put(store, "c", "", &revision, &err), STATUS_OK);
		CHECK_EQ(revision, origin + 5);
		CHECK_EQ(store_get(store, "a", &entry, &err), STATUS_OK);
		CHECK_EQ(entry.revision, origin + 1);
		store_entry_release(&entry);
	}
	TEST("an empty value is not an absent one")
	{
		CHECK_EQ(store_get(store, "c", &entry, &err), STATUS_OK);
		CHECK(entry.value && entry.length == 0);
		store_entry_release(&entry);
	}
	TEST("a value may hold any bytes, up to the limit")
	{
		char *bytes = malloc(STORE_VALUE_MAX);
		for (size_t i = 0; i < STORE_VALUE_MAX; i++)
			bytes[i] = (char)(i * 7);
		struct store_op put = {STORE_PUT, "bytes", bytes, STORE_VALUE_MAX};
		struct store_request request = {.then = &put, .then_count = 1};
		struct store_answer answer = {0};
		CHECK_EQ(store_txn(store, &request, &answer, &err), STATUS_OK);
		store_answer_release(&answer);
		CHECK_EQ(store_get(store, "bytes", &entry, &err), STATUS_OK);
		CHECK_EQ(entry.length, STORE_VALUE_MAX);
		CHECK(entry.value && !memcmp(entry.value, bytes, STORE_VALUE_MAX));
		store_entry_release(&entry);
		free(bytes);
	}
	store_close(store);
}

static void transactions(void)
{
	struct store *store = open_fresh();
	store_revision first = 0;
	(void)store_put(store, "x", "1", &first, &err);

	TEST("all compares must hold, and only one branch runs")
	{
		struct store_compare compares[] = {{"x", first}, {"y", 0}};
		struct store_op then[] = {{STORE_PUT, "y", "2", 1}, {STORE_GET, "x", NULL, 0},
			{STORE_GET, "y", NULL, 0}};
		struct store_op otherwise[] = {{STORE_PUT, "z", "3", 1}, {STORE_GET, "x", NULL, 0}};
		struct store_request request = {
			compares, 2, then, 3, otherwise, 2, NULL, false, {NULL}};
		struct store_answer answer = {0};
		CHECK_EQ(store_txn(store, &request, &answer, &err), STATUS_OK);
		CHECK(answer.held && answer.known);
		CHECK_EQ(answer.revision, first + 1);
		CHECK_EQ(answer.count, 2);
		CHECK_TEXT(answer.entries[0].value, "1");
		CHECK_TEXT(answer.entries[1].value, "2");
		CHECK_EQ(answer.entries[1].revision, first + 1);
		store_answer_release(&answer);

		CHECK_EQ(store_txn(store, &request, &answer, &err), STATUS_OK);
		CHECK(!answer.held);
		CHECK_EQ(answer.count, 1);
		CHECK_EQ(answer.revision, first + 2);
		store_answer_release(&answer);
		CHECK(has_value(store, "y", "2") && has_value(store, "z", "3"));
	}
	TEST("a compare with the revision of a key that was deleted does not hold; with 0 it does")
	{
		store_revision revision = 0;
		struct store_answer answer = {0};
		struct store_op get = {.kind = STORE_GET, .key = "gone"};
		struct store_compare compare = {"gone", 0};
		struct store_request request = {&compare, 1, &get, 1, NULL, 0, NULL, false, {NULL}};
		CHECK_EQ(store_put(store, "gone", "v", &revision, &err), STATUS_OK);
		CHECK_EQ(store_delete(store, "gone", &err), STATUS_OK);
		CHECK_EQ(store_txn(store, &request, &answer, &err), STATUS_OK);
		CHECK(answer.held);
		CHECK(answer.count == 1 && !answer.entries[0].value &&
			answer.entries[0].revision == 0);
		store_answer_release(&answer);
		for (compare.revision = revision; compare.revision <= revision + 1;
			compare.revision++) {
			CHECK_EQ(store_txn(store, &request, &answer, &err), STATUS_OK);
			CHECK(!answer.held);
			store_answer_release(&answer);
		}
	}
	TEST("a transaction that changes nothing keeps the revision")
	{
		struct store_answer before = {0}, after = {0};
		struct store_request nothing = {0};
		struct store_op delete = {.kind = STORE_DELETE, .key = "never"};
		struct store_request vain = {.then = &delete, .then_count = 1};
		CHECK_EQ(store_txn(store, &nothing, &before, &err), STATUS_OK);
		CHECK_EQ(store_txn(store, &vain, &after, &err), STATUS_OK);
		CHECK_EQ(before.revision, after.revision);
		store_answer_release(&before);
		store_answer_release(&after);
	}
	store_close(store);
}

static void lists(void)
{
	struct store *store = open_fresh();
	const char *keys[] = {"a/2", "b", "a/1", "a", "a/10", "aa", "a0", "\xc3\xa4", "a/\xff"};
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		(void)store_put(store, keys[i], keys[i], NULL, &err);

	TEST("a list is in the order of bytes, and a prefix with a slash leaves itself out")
	{
		CHECK_TEXT(keys_of(store, (struct store_range){.prefix = ""}),
			"a a/1 a/10 a/2 a/\xff a0 aa b \xc3\xa4");
		CHECK_TEXT(keys_of(store, (struct store_range){.prefix = "a"}),
			"a a/1 a/10 a/2 a/\xff a0 aa");
		CHECK_TEXT(keys_of(store, (struct store_range){.prefix = "a/"}),
			"a/1 a/10 a/2 a/\xff");
		CHECK_EQ(store_put(store, "a/", "", NULL, &err), STATUS_OK);
		CHECK_TEXT(keys_of(store, (struct store_range){.prefix = "a/"}),
			"a/1 a/10 a/2 a/\xff");
		CHECK_EQ(store_delete(store, "a/", &err), STATUS_OK);
		CHECK_TEXT(keys_of(store, (struct store_range){.prefix = "a/\xff"}), "a/\xff");
		CHECK_TEXT(keys_of(store, (struct store_range){.prefix = "none"}), "");
	}
	TEST("a list can be cut and gone on with")
	{
		CHECK_TEXT(keys_of(store, (struct store_range){.prefix = "a/", .limit = 2}),
			"a/1 a/10 +");
		CHECK_TEXT(
			keys_of(store,
				(struct store_range){.prefix = "a/", .after = "a/10", .limit = 2}),
			"a/2 a/\xff");
		CHECK_TEXT(keys_of(store, (struct store_range){.prefix = "a/", .after = "a/zz"}),
			"a/\xff");
		CHECK_TEXT(keys_of(store, (struct store_range){.prefix = "b", .after = "a"}), "b");
	}
	TEST("a list since a revision holds what changed later, and nothing deleted")
	{
		store_revision revision = 0;
		CHECK_EQ(store_put(store, "a/2", "new", &revision, &err), STATUS_OK);
		CHECK_EQ(store_put(store, "b", "new", NULL, &err), STATUS_OK);
		CHECK_EQ(store_delete(store, "a/1", &err), STATUS_OK);
		struct store_range range = {.prefix = "", .since = revision - 1};
		CHECK_TEXT(keys_of(store, range), "a/2 b");
		range.prefix = "a/";
		CHECK_TEXT(keys_of(store, range), "a/2");
		range.since = revision;
		CHECK_TEXT(keys_of(store, range), "");
	}
	TEST("a purge removes what is under the prefix only, and only if the compares hold")
	{
		struct store_compare wrong = {"b", 1}, right = {"nothing", 0};
		CHECK_EQ(store_purge(store, "a/", &wrong, 1, &err), STATUS_NO);
		CHECK_TEXT(keys_of(store, (struct store_range){.prefix = "a/"}), "a/10 a/2 a/\xff");
		CHECK_EQ(store_purge(store, "a/", &right, 1, &err), STATUS_OK);
		CHECK_TEXT(
			keys_of(store, (struct store_range){.prefix = ""}), "a a0 aa b \xc3\xa4");
	}
	store_close(store);
}

static void limits(void)
{
	struct store *store = open_fresh();
	char long_key[STORE_KEY_MAX + 2];
	memset(long_key, 'k', sizeof(long_key));

	TEST("keys and values over the limits are refused and nothing is changed")
	{
		long_key[STORE_KEY_MAX + 1] = '\0';
		CHECK_EQ(store_put(store, long_key, "v", NULL, &err), STATUS_USAGE);
		CHECK_EQ(store_put(store, "", "v", NULL, &err), STATUS_USAGE);
		long_key[STORE_KEY_MAX] = '\0';
		CHECK_EQ(store_put(store, long_key, "v", NULL, &err), STATUS_OK);
		CHECK(has_value(store, long_key, "v"));

		char *large = calloc(1, STORE_VALUE_MAX + 2);
		memset(large, 'v', STORE_VALUE_MAX + 1);
		struct store_op ops[] = {{STORE_PUT, "small", "v", 1},
			{STORE_PUT, "large", large, STORE_VALUE_MAX + 1}};
		struct store_request request = {.then = ops, .then_count = 2};
		struct store_answer answer = {0};
		CHECK_EQ(store_txn(store, &request, &answer, &err), STATUS_USAGE);
		CHECK(answer.known);
		CHECK(has_value(store, "small", NULL));
		free(large);
	}
	TEST("a key changed twice in one transaction is refused, as etcd does")
	{
		struct store_op ops[] = {{STORE_PUT, "twice", "1", 1}, {STORE_PUT, "other", "1", 1},
			{STORE_GET, "other", NULL, 0}, {STORE_DELETE, "twice", NULL, 0}};
		struct store_request request = {.then = ops, .then_count = 4};
		struct store_answer answer = {0};
		CHECK_EQ(store_txn(store, &request, &answer, &err), STATUS_USAGE);
		CHECK(strstr(err.text, "\"twice\""));
		CHECK(has_value(store, "other", NULL));
		/* What is only read may be read again. */
		request.then_count = 3;
		CHECK_EQ(store_txn(store, &request, &answer, &err), STATUS_OK);
		store_answer_release(&answer);
	}
	TEST("a transaction takes as many operations as are said, and not one more")
	{
		size_t most = store_operations(store);
		char(*keys)[32] = calloc(most + 1, sizeof(*keys));
		struct store_op *ops = calloc(most + 1, sizeof(*ops));
		CHECK(most >= 122);
		if (!keys || !ops)
			exit(98);
		for (size_t i = 0; i <= most; i++) {
			snprintf(keys[i], sizeof(keys[i]), "many/%zu", i);
			ops[i] = (struct store_op){STORE_PUT, keys[i], "v", 1};
		}
		struct store_request request = {.then = ops, .then_count = most + 1};
		struct store_answer answer = {0};
		CHECK_EQ(store_txn(store, &request, &answer, &err), STATUS_USAGE);
		CHECK(has_value(store, keys[0], NULL));
		/* As many compares, too. */
		struct store_compare *compares = calloc(most + 1, sizeof(*compares));
		if (!compares)
			exit(98);
		for (size_t i = 0; i <= most; i++)
			compares[i].key = keys[i];
		request.compares = compares;
		request.then_count = most;
		request.compare_count = most + 1;
		CHECK_EQ(store_txn(store, &request, &answer, &err), STATUS_USAGE);
		request.compare_count = most;
		CHECK_EQ(store_txn(store, &request, &answer, &err), STATUS_OK);
		CHECK(answer.held && has_value(store, keys[most - 1], "v"));
		store_answer_release(&answer);
		free(compares);
		free(ops);
		free(keys);
	}
	store_close(store);

	TEST("a store opened for reading reads, and refuses to write")
	{
		char url[640];
		snprintf(url, sizeof(url), "%s", fresh_url());
		struct store *nothing = NULL;
		CHECK_EQ(store_open(&nothing, url, STORE_READ_ONLY, clock_after(60000), &err),
			STATUS_NO);
		store = open_url(url, STORE_CREATE);
		CHECK_EQ(store_put(store, "k", "v", NULL, &err), STATUS_OK);
		store_close(store);
		store = open_url(url, STORE_READ_ONLY);
		CHECK(has_value(store, "k", "v"));
		CHECK_EQ(store_put(store, "k", "w", NULL, &err), STATUS_USAGE);
		CHECK(has_value(store, "k", "v"));
		store_close(store);
	}
}

/*
 * In a child: put or delete a key when a byte arrives on the pipe; its exit tells when it was done.
 */
static pid_t change_later(
	const char *url, const char *key, bool delete, int go, _Atomic int64_t *done)
{
	fflush(stdout);
	pid_t pid = fork();
	if (pid)
		return pid;
	char byte;
	struct store *store = open_url(url, STORE_CREATE);
	if (read(go, &byte, 1) != 1)
		_exit(1);
	enum status status =
		delete ? store_delete(store, key, &err) : store_put(store, key, "new", NULL, &err);
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	*done = (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
	_exit(status == STATUS_OK ? 0 : 1);
}

static void waits(void)
{
	char url[640];
	snprintf(url, sizeof(url), "%s", fresh_url());
	struct store *store = open_url(url, STORE_CREATE);
	store_revision at = 0, seen = 0;
	int go[2], wake[2];
	_Atomic int64_t *done =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (pipe(go) < 0 || pipe(wake) < 0)
		exit(99);
	(void)store_put(store, "p/1", "old", &at, &err);

	TEST("a wait answers at once what changed before it, deletions too")
	{
		CHECK_EQ(
			store_wait(store, "p/", &seen, clock_after(PATIENCE), -1, &err), STATUS_OK);
		CHECK_EQ(seen, at);
		CHECK_EQ(store_delete(store, "p/1", &err), STATUS_OK);
		CHECK_EQ(
			store_wait(store, "p/", &seen, clock_after(PATIENCE), -1, &err), STATUS_OK);
		CHECK_EQ(seen, at + 1);
		store_revision beginning = 0; /* only the deletion is left to be found */
		CHECK_EQ(store_wait(store, "p/", &beginning, clock_after(PATIENCE), -1, &err),
			STATUS_OK);
	}
	TEST("a wait times out, though other keys change")
	{
		(void)store_put(store, "q", "1", NULL, &err);
		int64_t began = clock_now();
		CHECK_EQ(
			store_wait(store, "p/", &seen, clock_after(300), -1, &err), STATUS_TIMEOUT);
		CHECK(clock_now() - began >= 299 && clock_now() - began < 30000);
		CHECK_EQ(store_wait(store, "p/", &seen, clock_now() - 1, -1, &err), STATUS_TIMEOUT);
		/* Up to the other key's change it was looked for, and is not again. */
		store_revision other = 0;
		CHECK_EQ(store_put(store, "q", "2", &other, &err), STATUS_OK);
		CHECK_EQ(
			store_wait(store, "p/", &seen, clock_after(300), -1, &err), STATUS_TIMEOUT);
		CHECK_EQ(seen, other);
	}
	for (int delete = 0; delete < 2; delete ++) {
		TEST(delete ? "a deletion by another process wakes a wait"
			    : "a put by another process wakes a wait")
		{
			int status = -1;
			pid_t pid = change_later(url, "p/2", delete, go[0], done);
			/* The wait goes on from what an earlier call learned. */
			CHECK_EQ(store_wait(store, "p/", &seen, clock_after(50), -1, &err),
				STATUS_TIMEOUT);
			CHECK_EQ(write(go[1], "x", 1), 1);
			CHECK_EQ(store_wait(store, "p/", &seen, clock_after(PATIENCE), -1, &err),
				STATUS_OK);
			struct timespec now;
			clock_gettime(CLOCK_MONOTONIC, &now);
			waitpid(pid, &status, 0);
			CHECK_EQ(status, 0);
			CHECK(has_value(store, "p/2", delete ? NULL : "new"));
			printf("# woken %lld us after the change was acknowledged\n",
				(long long)now.tv_sec * 1000000 + now.tv_nsec / 1000 - *done);
		}
	}
	TEST("a wait ends when the wake descriptor becomes readable, before and while it waits")
	{
		char byte;
		CHECK_EQ(write(wake[1], "x", 1), 1);
		CHECK_EQ(store_wait(store, "p/", &seen, clock_now() - 1, wake[0], &err), STATUS_NO);
		CHECK_EQ(read(wake[0], &byte, 1), 1);
		/*
		 * A busy machine may be late: then once more. Else it looks every 5 s, each time.
		 */
		int64_t took = INT64_MAX;
		for (int i = 0; i < 10 && took > 3000; i++) {
			fflush(stdout);
			int64_t began = clock_now();
			pid_t pid = fork();
			if (pid == 0) {
				poll(NULL, 0, 100);
				_exit(write(wake[1], "x", 1) != 1);
			}
			CHECK_EQ(store_wait(
					 store, "p/", &seen, clock_after(PATIENCE), wake[0], &err),
				STATUS_NO);
			took = clock_now() - began;
			waitpid(pid, NULL, 0);
			CHECK_EQ(read(wake[0], &byte, 1), 1);
		}
		CHECK(took <= 3000);
	}
	store_close(store);
	munmap((void *)done, 4096);
}

static void beats(void)
{
	char url[640];
	snprintf(url, sizeof(url), "%s", fresh_url());
	struct store *store = open_url(url, STORE_CREATE);
	struct store_beat beat = {.token = 7, .sequence = 1, .step = UINT64_MAX}, seen = {0};

	TEST("beats are prepared, written, read back, and removed")
	{
		CHECK_EQ(store_beats_prepare(store, "run/000001", 3, &err), STATUS_OK);
		CHECK_EQ(store_beat_read(store, "run/000001", 2, &seen, &err), STATUS_NO);
		CHECK_EQ(store_beat(store, "run/000001", 2, &beat, &err), STATUS_OK);
		CHECK_EQ(store_beat_read(store, "run/000001", 2, &seen, &err), STATUS_OK);
		CHECK(seen.token == 7 && seen.sequence == 1 && seen.step == UINT64_MAX);
		CHECK_EQ(store_beats_prepare(store, "run/000001", 3, &err), STATUS_OK);
		CHECK_EQ(store_beat_read(store, "run/000001", 2, &seen, &err), STATUS_OK);
		CHECK_EQ(store_beat_read(store, "run/000001", 0, &seen, &err), STATUS_NO);
		CHECK_EQ(store_beat(store, "run/000001", 3, &beat, &err), STATUS_NO);
		CHECK_EQ(store_beats_prepare(store, "run/000001", 4, &err), STATUS_OK);
		CHECK_EQ(store_beat(store, "run/000001", 3, &beat, &err), STATUS_OK);
		CHECK_EQ(store_beats_prepare(store, "run/000001", 2, &err), STATUS_OK);
		CHECK_EQ(store_beat(store, "run/000001", 3, &beat, &err), STATUS_OK);
		CHECK_EQ(store_beats_remove(store, "run/000001", &err), STATUS_OK);
		CHECK_EQ(store_beats_remove(store, "run/000001", &err), STATUS_OK);
		CHECK_EQ(store_beat(store, "run/000001", 2, &beat, &err), STATUS_NO);
	}
	TEST("a group that leads out of the store is refused")
	{
		CHECK_EQ(store_beats_prepare(store, "../x", 1, &err), STATUS_USAGE);
		CHECK_EQ(store_beats_prepare(store, "a//b", 1, &err), STATUS_USAGE);
		CHECK_EQ(store_beats_prepare(store, "/a", 1, &err), STATUS_USAGE);
		CHECK_EQ(store_beats_prepare(store, "", 1, &err), STATUS_USAGE);
		CHECK_EQ(store_beats_remove(store, "..", &err), STATUS_USAGE);
	}
	TEST("a reader never sees half a beat")
	{
		CHECK_EQ(store_beats_prepare(store, "race/1", 1, &err), STATUS_OK);
		fflush(stdout);
		pid_t pid = fork();
		if (pid == 0) {
			struct store *own = open_url(url, 0);
			for (uint64_t i = 1; i <= (uint64_t)race_beats; i++) {
				struct store_beat mine = {i, i, i};
				if (store_beat(own, "race/1", 0, &mine, &err) != STATUS_OK) {
					fprintf(stderr, "# %s\n", err.text);
					_exit(1);
				}
			}
			_exit(0);
		}
		int status;
		while (waitpid(pid, &status, WNOHANG) == 0) {
			enum status got = store_beat_read(store, "race/1", 0, &seen, &err);
			CHECK(got == STATUS_NO || (got == STATUS_OK && seen.token == seen.step));
		}
		CHECK_EQ(status, 0);
	}
	store_close(store);
}

static void skipping(void)
{
	static const char *const skip[] = {"b/", "d", NULL};
	static const char *const keys[] = {
		"p/a", "p/b", "p/b/1", "p/b/2", "p/c", "p/d", "p/d/1", "q"};
	struct store *store = open_fresh();
	store_revision third = 0;
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		CHECK_EQ(store_put(store, keys[i], "v", i == 2 ? &third : NULL, &err), STATUS_OK);
	TEST("a list is without what is to be skipped")
	{
		struct store_range range = {.prefix = "p/", .skip = skip};
		struct store_answer answer = {0};
		CHECK_EQ(store_list(store, &range, &answer, &err), STATUS_OK);
		CHECK_EQ(answer.count, 3);
		CHECK_TEXT(answer.entries[0].key, "p/a");
		CHECK_TEXT(answer.entries[1].key, "p/b");
		CHECK_TEXT(answer.entries[2].key, "p/c");
		store_answer_release(&answer);
		range.since = third;
		CHECK_EQ(store_list(store, &range, &answer, &err), STATUS_OK);
		CHECK_EQ(answer.count, 1);
		CHECK_TEXT(answer.entries[0].key, "p/c");
		CHECK_TEXT(answer.entries[0].value, "v");
		store_answer_release(&answer);
		range.skip = (const char *const[]){"", NULL};
		CHECK_EQ(store_list(store, &range, &answer, &err), STATUS_USAGE);
	}
	store_close(store);
}

static void counting(void)
{
	struct store *store = open_fresh();
	struct store_op ops[] = {{STORE_PUT, "c/1", "v", 1}, {STORE_PUT, "c/2", "v", 1},
		{STORE_PUT, "c", "v", 1}, {STORE_PUT, "d", "v", 1}};
	TEST("a transaction counts the keys below a prefix, its own among them")
	{
		struct store_request request = {.then = ops, .then_count = 1, .count = {"c/"}};
		struct store_answer answer = {0};
		CHECK_EQ(store_txn(store, &request, &answer, &err), STATUS_OK);
		CHECK_EQ(answer.counted[0], 1);
		store_answer_release(&answer);
		/* Those of the request before count once. */
		request.then_count = 4;
		CHECK_EQ(store_txn(store, &request, &answer, &err), STATUS_OK);
		CHECK_EQ(answer.counted[0], 2);
		store_answer_release(&answer);
		request.count[0] = "c";
		request.count[1] = "d";
		CHECK_EQ(store_txn(store, &request, &answer, &err), STATUS_OK);
		CHECK_EQ(answer.counted[0], 3);
		CHECK_EQ(answer.counted[1], 1);
		store_answer_release(&answer);
		request.count[0] = request.count[1] = NULL;
		CHECK_EQ(store_txn(store, &request, &answer, &err), STATUS_OK);
		CHECK_EQ(answer.counted[0], 0);
		store_answer_release(&answer);
	}
	TEST("a list counts beside what it lists, without what was deleted")
	{
		struct store_range range = {.prefix = "d", .count = {"c/"}};
		struct store_answer answer = {0};
		CHECK_EQ(store_list(store, &range, &answer, &err), STATUS_OK);
		CHECK_EQ(answer.count, 1);
		CHECK_EQ(answer.counted[0], 2);
		store_answer_release(&answer);
		CHECK_EQ(store_delete(store, "c/1", &err), STATUS_OK);
		range.prefix = "none/";
		CHECK_EQ(store_list(store, &range, &answer, &err), STATUS_OK);
		CHECK_EQ(answer.count, 0);
		CHECK_EQ(answer.counted[0], 1);
		store_answer_release(&answer);
		char prefix[STORE_KEY_MAX + 2];
		memset(prefix, 'c', sizeof(prefix) - 1);
		prefix[sizeof(prefix) - 1] = '\0';
		range.count[1] = prefix;
		CHECK_EQ(store_list(store, &range, &answer, &err), STATUS_USAGE);
	}
	store_close(store);
}

/* A put that is news for the group or not; the count that it was answered. */
static uint32_t put_news(struct store *store, const char *key, bool news)
{
	struct store_op put = {STORE_PUT, key, "v", 1};
	struct store_request request = {
		.then = &put, .then_count = 1, .group = "run/000001", .news = news};
	struct store_answer answer = {0};
	CHECK_EQ(store_txn(store, &request, &answer, &err), STATUS_OK);
	uint32_t count = answer.news;
	store_answer_release(&answer);
	return count;
}

static void news(void)
{
	char url[640];
	snprintf(url, sizeof(url), "%s", fresh_url());
	struct store *store = open_url(url, STORE_CREATE), *other = open_url(url, 0);
	struct store_awaited awaited = {
		.group = "run/000001", .prefix = "run/000001/", .every = 20};

	TEST("where there is no count, any change below the prefix is news")
	{
		CHECK_EQ(store_news(store, "run/000001"), 0);
		CHECK_EQ(put_news(other, "run/000001/a", true), 0);
		CHECK_EQ(store_await_news(store, &awaited, clock_after(PATIENCE), -1, &err),
			STATUS_OK);
		CHECK_EQ(awaited.heard, 0);
	}
	TEST("only news wakes who waits for news, and only of that group")
	{
		CHECK_EQ(store_beats_prepare(store, "run/000001", 1, &err), STATUS_OK);
		CHECK_EQ(store_beats_prepare(store, "run/000002", 1, &err), STATUS_OK);
		awaited.heard = store_news(store, "run/000001");
		CHECK(awaited.heard > 0);
		uint32_t before = awaited.heard;
		CHECK_EQ(put_news(other, "run/000001/b", false), before);
		CHECK_EQ(store_await_news(store, &awaited, clock_after(100), -1, &err),
			STATUS_TIMEOUT);
		CHECK_EQ(put_news(other, "run/000001/b", true), before + 1);
		CHECK_EQ(store_await_news(store, &awaited, clock_after(PATIENCE), -1, &err),
			STATUS_OK);
		CHECK_EQ(awaited.heard, before + 1);
		CHECK_EQ(store_news(other, "run/000001"), before + 1);
		CHECK_EQ(store_news(other, "run/000002"), before);
	}
	TEST("news of another process wakes, and is read by who was woken")
	{
		int status = -1;
		store_revision at = 0;
		CHECK_EQ(store_put(store, "x", "1", &at, &err), STATUS_OK);
		pid_t pid = fork();
		if (pid == 0) {
			struct store *mine = open_url(url, 0);
			clock_sleep_until(clock_after(100));
			(void)put_news(mine, "run/000001/c", true);
			_exit(0);
		}
		CHECK_EQ(store_await_news(store, &awaited, clock_after(PATIENCE), -1, &err),
			STATUS_OK);
		CHECK(has_value(store, "run/000001/c", "v"));
		waitpid(pid, &status, 0);
		CHECK_EQ(status, 0);
	}
	store_close(other);
	store_close(store);
}

/* What one process can see of it. */
static void check_calls(const char *urls)
{
	snprintf(pattern, sizeof(pattern), "%s", urls);
	printf("# %s\n", pattern);
	put_and_get();
	transactions();
	lists();
	limits();
	skipping();
	counting();
}

static void check_contract(const char *urls)
{
	check_calls(urls);
	waits();
	beats();
	news();
}

int main(void)
{
	const char *given = getenv("PREEMPT_TEST_STORE");
	char sqlite[512];
	scratch_make();
	store_register(&store_memory);
	if (getenv("PREEMPT_TEST_SLOW"))
		race_beats = 100;
	snprintf(sqlite, sizeof(sqlite), "sqlite:%s/%%s.db", scratch);
	check_contract(given && *given ? given : sqlite);
	/* The store in memory, which the simulators trust, belongs to one process. */
	if (!given || !*given)
		check_calls("memory:%s");
	scratch_remove();
	return unit_end();
}
