/* SPDX-License-Identifier: MIT */
/*
 * together kills|errors|stops [--one-in N] [--seed S] [--url PARAMETERS]
 *
 * One process carries out its own request and those of three others (store/sqlite/group_commit.c),
 * with a fault at each of its calls: it is killed before or after it, the call fails once or from
 * then on, or it is stopped for longer than the others have patience. Then: a process that was
 * acknowledged has its key, a process that was refused has none, each was answered in time, one
 * has won, no request ran twice, and the next one proceeds.
 *
 * One in N faults (default: every one) is taken, by chance under the seed, which is printed.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "calls.h"
#include "store/sqlite/session.h"

#define PATIENCE 40000 /* milliseconds */
#define AT_ONCE	 20000
#define SHORT	 300 /* of those that wait for one that is stopped */
#define OTHERS	 3
#define ALL	 (OTHERS + 1) /* the last is the one with the faults */

static struct shared {
	_Atomic bool may_begin[ALL];
	_Atomic bool ended[ALL]; /* it was answered */
	enum status status[ALL];
	bool known[ALL], held[ALL];
	store_revision revision[ALL];
	int64_t took[ALL];
	char text[ALL][400];
} * shared;

static struct plan *plan;
static char directory[64], url[160];
static struct error err;
static unsigned long injected, wrong, one_in = 1;
static uint64_t chance;

static bool is_taken(void)
{
	chance ^= chance << 13;
	chance ^= chance >> 7;
	chance ^= chance << 17;
	return chance % one_in == 0;
}

static struct sqlite_store *open_store(int64_t patience)
{
	struct store *store = NULL;
	if (store_open(&store, url, STORE_CREATE, clock_after(PATIENCE), &err) != STATUS_OK) {
		printf("Bail out! cannot open: %s\n", err.text);
		exit(99);
	}
	store_set_patience(store, patience);
	return (struct sqlite_store *)store;
}

static void ask(struct store *store, int i)
{
	char key[32];
	struct error why = {0};
	struct store_answer answer = {0};
	snprintf(key, sizeof(key), "row/%d", i);
	struct store_compare absent = {"claim", 0};
	struct store_op first[] = {
		{STORE_PUT, key, "v", 1}, {STORE_PUT, "claim", key, strlen(key)}};
	struct store_op second[] = {{STORE_PUT, key, "v", 1}, {STORE_GET, "claim", NULL, 0}};
	struct store_request request = {&absent, 1, first, 2, second, 2, NULL, false, {NULL}};
	int64_t began = clock_now();
	shared->status[i] = store_txn(store, &request, &answer, &why);
	shared->took[i] = clock_now() - began;
	shared->known[i] = answer.known;
	shared->held[i] = answer.held;
	shared->revision[i] = answer.revision;
	snprintf(shared->text[i], sizeof(shared->text[i]), "%.399s", why.text);
	shared->ended[i] = true;
	store_answer_release(&answer);
}

static pid_t start(int i, int64_t patience)
{
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		struct sqlite_store *store = open_store(i == OTHERS ? PATIENCE : patience);
		while (!shared->may_begin[i])
			poll(NULL, 0, 1);
		if (i == OTHERS)
			calls_arm(plan);
		ask(&store->base, i);
		calls_arm(NULL);
		store_close(&store->base);
		_exit(0);
	}
	return pid;
}

static void wait_for_line(struct sqlite_store *store, uint64_t count)
{
	uint64_t first = 0, end = 0;
	int64_t deadline = clock_after(PATIENCE);
	while (machine_posts(&store->lock.machine, &first, &end) && end - first < count &&
		clock_now() < deadline)
		poll(NULL, 0, 1);
	/* The last of them may be about to post. */
	while (count > 1 &&
		!posts_any(machine_posts(&store->lock.machine, &first, &end), end - 1, end) &&
		clock_now() < deadline)
		poll(NULL, 0, 1);
}

static void clear(struct store *store)
{
	static const char *const keys[] = {"row/0", "row/1", "row/2", "row/3", "claim", "next"};
	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
		if (store_delete(store, keys[i], &err) != STATUS_OK)
			printf("# %s\n", err.text);
}

/* The one with the faults, and behind it the others; all have ended but one that is stopped. */
static pid_t run(struct sqlite_store *store, int64_t patience, store_revision *before)
{
	pid_t pids[ALL];
	memset(shared, 0, sizeof(*shared));
	clear(&store->base);
	(void)store_put(&store->base, "before", "v", before, &err);
	plan->count = plan->hits = 0;
	for (int i = 0; i < ALL; i++)
		pids[i] = start(i, patience);
	if (lock_acquire(&store->lock, clock_after(PATIENCE), &err) != STATUS_OK)
		exit(99);
	shared->may_begin[OTHERS] = true;
	wait_for_line(store, 1);
	for (int i = 0; i < OTHERS; i++) {
		shared->may_begin[i] = true;
		wait_for_line(store, (uint64_t)i + 2);
	}
	lock_release(&store->lock);
	for (int i = 0; i < OTHERS; i++)
		waitpid(pids[i], NULL, 0);
	return pids[OTHERS];
}

static void complain(const char *what, int i)
{
	wrong++;
	printf("# call %u of %u (%s %s), fault %d %d: %s, number %d: %d %s\n", plan->at,
		plan->count, plan->hit.name, plan->hit.file, (int)plan->act, plan->number, what, i,
		(int)shared->status[i], shared->text[i]);
}

/* *owner: whose value the key has, or -1. */
static bool find(struct store *store, const char *key, store_revision *revision, int *owner)
{
	struct store_entry entry = {0};
	enum status status = store_get(store, key, &entry, &err);
	if (status != STATUS_OK && status != STATUS_NO)
		printf("# %s: %s\n", key, err.text);
	*revision = entry.revision;
	*owner = entry.value && !strncmp(entry.value, "row/", 4) ? atoi(entry.value + 4) : -1;
	store_entry_release(&entry);
	return status == STATUS_OK;
}

static void judge(struct sqlite_store *store, store_revision before, bool stopped)
{
	store_revision revision, last = 0;
	int owner, claimer, changes = 0;
	int64_t began = clock_now();
	(void)find(&store->base, "claim", &revision, &claimer);
	if (clock_now() - began > AT_ONCE)
		complain("the next one is late", 0);
	for (int i = 0; i < ALL; i++) {
		char key[32];
		snprintf(key, sizeof(key), "row/%d", i);
		bool there = find(&store->base, key, &revision, &owner);
		changes += there;
		if (!shared->ended[i]) {
			if (i < OTHERS)
				complain("never answered", i);
			continue;
		}
		if (shared->status[i] == STATUS_OK) {
			if (!there || revision != shared->revision[i])
				complain("acknowledged, and not there", i);
			if (shared->held[i] != (claimer == i))
				complain("another has won", i);
		} else if (shared->known[i] && there) {
			complain("nothing was changed, and it is there", i);
		} else if (i < OTHERS && !stopped) {
			complain("does not know, or failed", i);
		}
		if (shared->took[i] > AT_ONCE)
			complain("late", i);
	}
	if (store_put(&store->base, "next", "v", &last, &err) != STATUS_OK)
		complain("then nothing can be put", 0);
	else if (last != before + changes + 1)
		complain("something ran twice", 0);
}

static void inject(struct sqlite_store *store, unsigned at, enum call_act act, int number)
{
	store_revision before = 0;
	bool stops = number == SIGSTOP && act == ACT_BEFORE;
	if (!is_taken())
		return;
	plan->at = at;
	plan->act = act;
	plan->number = number;
	pid_t pid = run(store, stops ? SHORT : PATIENCE, &before);
	injected++;
	if (stops)
		kill(pid, SIGCONT);
	waitpid(pid, NULL, 0);
	plan->at = 0;
	judge(store, before, stops);
}

int main(int argc, char **argv)
{
	static const int numbers[] = {EIO, ENOSPC, ESTALE, EFBIG};
	const char *parameters = "", *mode = argc > 1 ? argv[1] : "";
	chance = (uint64_t)clock_utc();
	for (int i = 2; i + 1 < argc; i += 2) {
		if (!strcmp(argv[i], "--one-in"))
			one_in = strtoul(argv[i + 1], NULL, 10);
		else if (!strcmp(argv[i], "--seed"))
			chance = strtoull(argv[i + 1], NULL, 10);
		else if (!strcmp(argv[i], "--url"))
			parameters = argv[i + 1];
	}
	bool kills = !strcmp(mode, "kills"), errors = !strcmp(mode, "errors");
	if ((!kills && !errors && strcmp(mode, "stops") != 0) || !one_in) {
		fprintf(stderr, "usage: together kills|errors|stops [--one-in N] [--seed S] "
				"[--url PARAMETERS]\n");
		return 2;
	}
	chance += !chance;
	printf("# --seed %llu\n", (unsigned long long)chance);
	snprintf(directory, sizeof(directory), "/dev/shm/together-XXXXXX");
	if (!mkdtemp(directory))
		return 99;
	snprintf(url, sizeof(url), "%s/s.db%s", directory, parameters);
	int access = PROT_READ | PROT_WRITE, flags = MAP_SHARED | MAP_ANONYMOUS;
	plan = mmap(NULL, sizeof(*plan), access, flags, -1, 0);
	shared = mmap(NULL, sizeof(*shared), access, flags, -1, 0);
	snprintf(plan->directory, sizeof(plan->directory), "%s", directory);
	struct sqlite_store *store = open_store(PATIENCE);
	store_revision before = 0;
	plan->act = ACT_COUNT;
	waitpid(run(store, PATIENCE, &before), NULL, 0);
	judge(store, before, false);
	unsigned calls = plan->count;
	for (unsigned at = 1; at <= calls; at++) {
		if (kills) {
			inject(store, at, ACT_BEFORE, SIGKILL);
			inject(store, at, ACT_AFTER, SIGKILL);
		} else if (errors) {
			for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
				inject(store, at, ACT_FAIL, numbers[i]);
				inject(store, at, ACT_FAIL_ALWAYS, numbers[i]);
			}
			inject(store, at, ACT_LATE, EIO);
		} else {
			inject(store, at, ACT_BEFORE, SIGSTOP);
		}
	}
	printf("%sok 1 - %s of one that carries out the requests of others\n1..1\n"
	       "# %lu faults at %u calls, %lu wrong\n",
		wrong ? "not " : "", mode, injected, calls, wrong);
	unlink(store->lock.machine.path);
	store_close(&store->base);
	(void)file_remove_tree(directory, NULL);
	return wrong != 0;
}
