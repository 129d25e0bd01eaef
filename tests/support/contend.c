/* SPDX-License-Identifier: MIT */
/*
 * contend [OPTION]... STORE...: let many processes use one store, each through one STORE (the same
 * file, through several mounts), then count: does it hold everything that was acknowledged?
 *
 * Process p makes transactions i = 0, 1, ...: put row/P/I and, if it is absent, claim/I = P; all
 * processes ask for the same claims. The answers are kept in shared memory, which outlives a killed
 * process. At the end every mount must show every acknowledged row and no refused row, one owner
 * for each claim, which every answer named, one revision for each row, and a database that SQLite
 * finds whole. A transaction with an unknown outcome (an error, or its process was killed) may have
 * been made or not, but not in part.
 *
 *   -p N        processes (8), which take the stores in turns
 *   -k N        transactions of each process (50)
 *   -t MS       patience of each transaction (120000)
 *   --kill N    N times on the way: kill -9 a random process; another continues its work
 *   --stop N    N times on the way: stop a random process for --for MS (2000)
 *   --look      on every mount, another process reads the files without a lock, again and again,
 *               so that the mount's caches always hold old data
 *   --plain     not the store, but SQLite alone with a busy timeout: STORE is a path
 *
 * Prints one line of figures, and to stderr what is wrong. Exit code 1: something is wrong, such as
 * an acknowledged row that is lost, or a claim with two owners.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/parse.h"
#include "store/cache.h"
#include "store/store.h"

enum answer {
	NONE,
	ASKED, /* but not answered, because its process was killed */
	WON,
	LOST,
	REFUSED, /* an error, and it is known that nothing was changed */
	UNKNOWN, /* an error; it is not known whether something was changed */
};

struct outcome {
	enum answer answer;
	int owner; /* of the claim, as the answer named it */
	double milliseconds;
};

static int processes = 8, transactions = 50, kills, stops;
static int64_t patience = 120000, stop_for = 2000;
static int plain, look;
static char **stores;
static int store_count;
static struct outcome *outcomes; /* shared: [process][transaction] */
/* Shared: the number of answers after which no process begins a transaction, so that some work is
 * left to disturb even if a busy machine delays the disturbance. */
static _Atomic int *barrier;
static pid_t *pids;
static int problems;

static struct outcome *outcome_of(int process, int transaction)
{
	return &outcomes[(size_t)process * (size_t)transactions + (size_t)transaction];
}

static void problem(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void problem(const char *format, ...)
{
	va_list arguments;
	if (++problems > 20)
		return;
	va_start(arguments, format);
	fprintf(stderr, "contend: ");
	vfprintf(stderr, format, arguments);
	fprintf(stderr, "\n");
	va_end(arguments);
}

/* The path of a store's URL; valid until the next call. */
static const char *path_of(const char *where)
{
	static char path[4000];
	if (strncmp(where, "sqlite:", 7) == 0)
		where += 7;
	snprintf(path, sizeof(path), "%.*s", (int)strcspn(where, "?"), where);
	return path;
}

static double milliseconds_now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int answered(void)
{
	int count = 0;
	for (int i = 0; i < processes * transactions; i++)
		count += outcomes[i].answer > ASKED;
	return count;
}

/* ---- A contender: the store ---- */

static void ask_store(struct store *store, int process, int i, struct outcome *outcome)
{
	char row[64], claim[64], value[16];
	int length = snprintf(value, sizeof(value), "%d", process);
	snprintf(row, sizeof(row), "row/%d/%d", process, i);
	snprintf(claim, sizeof(claim), "claim/%d", i);
	struct store_compare absent = {claim, 0};
	struct store_op first[] = {
		{STORE_PUT, row, value, (size_t)length}, {STORE_PUT, claim, value, (size_t)length}};
	struct store_op second[] = {
		{STORE_PUT, row, value, (size_t)length}, {STORE_GET, claim, NULL, 0}};
	struct store_request request = {&absent, 1, first, 2, second, 2, NULL, false, {NULL}};
	struct store_answer answer = {0};
	struct error err = {0};
	if (store_txn(store, &request, &answer, &err) != STATUS_OK) {
		fprintf(stderr, "# %d/%d: %s\n", process, i, err.text);
		outcome->answer = answer.known ? REFUSED : UNKNOWN;
	} else if (answer.held) {
		outcome->owner = process;
		outcome->answer = WON;
	} else {
		outcome->owner = answer.count == 1 && answer.entries[0].value
					 ? atoi(answer.entries[0].value)
					 : -1;
		outcome->answer = LOST;
	}
	store_answer_release(&answer);
}

/* ---- A contender: SQLite itself ---- */

static sqlite3 *plain_open(const char *path)
{
	sqlite3 *database = NULL;
	if (sqlite3_open(path, &database) != SQLITE_OK)
		exit(3);
	sqlite3_busy_timeout(database, (int)patience);
	sqlite3_exec(database,
		"PRAGMA journal_mode=PERSIST; PRAGMA synchronous=FULL;"
		"CREATE TABLE IF NOT EXISTS keys(key TEXT PRIMARY KEY, value INTEGER) WITHOUT "
		"ROWID",
		NULL, NULL, NULL);
	return database;
}

static int take_number(void *number, int columns, char **values, char **names)
{
	(void)names;
	*(int *)number = columns == 1 && values[0] ? atoi(values[0]) : -1;
	return 0;
}

static void ask_plain(sqlite3 *database, int process, int i, struct outcome *outcome)
{
	char sql[512];
	int owner = -1;
	snprintf(sql, sizeof(sql),
		"BEGIN IMMEDIATE; INSERT INTO keys VALUES('row/%d/%d', %d);"
		"INSERT OR IGNORE INTO keys VALUES('claim/%d', %d);"
		"SELECT value FROM keys WHERE key = 'claim/%d'",
		process, i, process, i, process, i);
	if (sqlite3_exec(database, sql, take_number, &owner, NULL) != SQLITE_OK) {
		sqlite3_exec(database, "ROLLBACK", NULL, NULL, NULL);
		outcome->answer = REFUSED;
	} else if (sqlite3_exec(database, "COMMIT", NULL, NULL, NULL) != SQLITE_OK) {
		sqlite3_exec(database, "ROLLBACK", NULL, NULL, NULL);
		outcome->answer = UNKNOWN;
	} else {
		outcome->owner = owner;
		outcome->answer = owner == process ? WON : LOST;
	}
}

/* ---- All contenders ---- */

static void contend(int process)
{
	const char *where = stores[process % store_count];
	double began = milliseconds_now();
	struct store *store = NULL;
	sqlite3 *database = NULL;
	if (plain) {
		database = plain_open(where);
	} else {
		struct error err = {0};
		if (store_open(&store, where, STORE_CREATE, clock_after(patience), &err) !=
			STATUS_OK) {
			fprintf(stderr, "# %d: %s\n", process, err.text);
			exit(3);
		}
		store_set_patience(store, patience);
	}
	for (int i = 0; i < transactions; i++) {
		struct outcome *outcome = outcome_of(process, i);
		if (outcome->answer != NONE)
			continue; /* made by an earlier process, which was killed */
		while (*barrier < processes * transactions && answered() >= *barrier)
			clock_sleep_until(clock_after(2));
		outcome->answer = ASKED;
		if (plain)
			ask_plain(database, process, i, outcome);
		else
			ask_store(store, process, i, outcome);
		double now = milliseconds_now();
		outcome->milliseconds = now - began;
		began = now;
	}
	store_close(store);
	sqlite3_close(database);
	exit(0);
}

/* Read the store's files again and again, only to fill the caches of the mount. */
static void look_on(const char *where)
{
	static const char *const suffixes[] = {"", "-journal", ".lock"};
	char path[4096], bytes[4096];
	pid_t parent = getppid();
	while (getppid() == parent) {
		for (int i = 0; i < 3; i++) {
			snprintf(path, sizeof(path), "%s%s", path_of(where), suffixes[i]);
			/*
			 * This makes GlusterFS's client forget the name, so that it reads the file.
			 */
			(void)setxattr(path, "inode-invalidate", "1", 1, 0);
			int descriptor = open(path, O_RDONLY | O_CLOEXEC);
			if (descriptor >= 0 && read(descriptor, bytes, sizeof(bytes)) >= 0)
				close(descriptor);
		}
		clock_sleep_until(clock_after(5));
	}
	exit(0);
}

/* go: a pipe; all wait until it is closed, so that they start together. -1: do not wait. */
static void start(int process, int go)
{
	pid_t pid = fork();
	if (pid == 0) {
		struct pollfd started = {.fd = go, .events = POLLIN};
		while (go >= 0 && poll(&started, 1, -1) < 0)
			;
		contend(process);
	}
	if (pid < 0) {
		perror("contend: fork");
		exit(2);
	}
	pids[process] = pid;
}

/* Reap processes that have ended. Returns the number of the others; *process is their nth. */
static int living(int nth, int *process)
{
	int count = 0;
	for (int p = 0; p < processes; p++) {
		int status;
		if (pids[p] > 0 && waitpid(pids[p], &status, WNOHANG) == pids[p]) {
			pids[p] = 0;
			if (status != 0)
				problem("process %d ended with status %#x", p, (unsigned)status);
		}
		if (pids[p] > 0 && count++ == nth)
			*process = p;
	}
	return count;
}

static void disturb(bool kill_it, int process)
{
	if (!kill_it) {
		kill(pids[process], SIGSTOP);
		clock_sleep_until(clock_after(stop_for));
		kill(pids[process], SIGCONT);
		return;
	}
	kill(pids[process], SIGKILL);
	waitpid(pids[process], NULL, 0);
	start(process, -1);
}

/* The number of answers after which the next disturbance comes, after `done` of `all`. */
static int due_at(int done, int all)
{
	return (int)((int64_t)(done + 1) * processes * transactions / (all + 1));
}

static int barrier_at(int done, int all)
{
	int total = processes * transactions;
	return done == all ? total : (due_at(done, all) + due_at(done + 1, all)) / 2;
}

/* Wait for all processes. The disturbances are spread evenly over their work. */
static void supervise(void)
{
	int done = 0, all = kills + stops, process = 0, count;
	while ((count = living(-1, &process)) > 0) {
		int due = due_at(done, all);
		if (done < all && answered() >= due) {
			clock_sleep_until(clock_after(clock_jitter(20)));
			if (living((int)(random() % count), &process) > 0 && pids[process] > 0)
				disturb(done % 2 ? done / 2 < kills && done / 2 >= stops
						 : done / 2 < kills,
					process);
			done++;
			*barrier = barrier_at(done, all);
			continue;
		}
		clock_sleep_until(clock_after(2));
	}
	if (done < all)
		problem("only %d of %d were killed or stopped: too little to do", done, all);
}

/* ---- The count ---- */

struct count {
	int rows, claims;
	int64_t revision;
	const char *integrity;
};

static bool *seen; /* rows of one mount */
static int *owners;

static void count_key(struct count *count, const char *where, const char *key, const char *value)
{
	int process, i;
	if (sscanf(key, "row/%d/%d", &process, &i) == 2 && process < processes &&
		i < transactions) {
		if (atoi(value) != process)
			problem("%s: %s is %s", where, key, value);
		seen[process * transactions + i] = true;
		count->rows++;
	} else if (sscanf(key, "claim/%d", &i) == 1 && i < transactions) {
		owners[i] = atoi(value);
		count->claims++;
	} else {
		problem("%s: no process put %s", where, key);
	}
}

static void count_store(struct count *count, const char *where)
{
	static const char *const prefixes[] = {"row/", "claim/"};
	struct store *store = NULL;
	struct error err = {0};
	if (store_open(&store, where, 0, clock_after(patience), &err) != STATUS_OK) {
		problem("%s", err.text);
		return;
	}
	for (int part = 0; part < 2; part++) {
		struct store_answer answer = {0};
		struct store_range range = {.prefix = prefixes[part]};
		if (store_list(store, &range, &answer, &err) != STATUS_OK)
			problem("%s", err.text);
		for (size_t n = 0; n < answer.count; n++)
			count_key(count, where, answer.entries[n].key, answer.entries[n].value);
		count->revision = answer.revision;
		store_answer_release(&answer);
	}
	store_close(store);
}

static int take_row(void *count, int columns, char **values, char **names)
{
	(void)columns;
	(void)names;
	count_key(count, "plain", values[0], values[1]);
	return 0;
}

static int take_integrity(void *integrity, int columns, char **values, char **names)
{
	(void)columns;
	(void)names;
	if (strcmp(values[0], "ok") != 0) {
		problem("integrity_check: %s", values[0]);
		*(const char **)integrity = "damaged";
	}
	return 0;
}

/* Check the database by SQLite itself, without the mount's cache. No process writes now. */
static void count_sqlite(struct count *count, const char *where)
{
	const char *path = path_of(where);
	cache_drop_path(CACHE_CLIENT, path);
	sqlite3 *database = NULL;
	count->integrity = "ok";
	if (sqlite3_open_v2(path, &database, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK ||
		sqlite3_exec(database, "PRAGMA integrity_check", take_integrity, &count->integrity,
			NULL) != SQLITE_OK) {
		problem("%s: %s", path, sqlite3_errmsg(database));
		count->integrity = "unreadable";
	}
	if (plain && sqlite3_exec(database, "SELECT key, value FROM keys", take_row, count, NULL) !=
			     SQLITE_OK)
		problem("%s: %s", path, sqlite3_errmsg(database));
	sqlite3_close(database);
}

/* Compare what this mount shows with the answers. Returns the lost rows; counts split claims. */
static int compare(const char *where, int *split)
{
	int lost = 0;
	for (int p = 0; p < processes; p++)
		for (int i = 0; i < transactions; i++) {
			const struct outcome *outcome = outcome_of(p, i);
			bool there = seen[p * transactions + i];
			bool told = outcome->answer == WON || outcome->answer == LOST;
			if (told && !there) {
				problem("%s: row/%d/%d was acknowledged and is lost", where, p, i);
				lost++;
			}
			if (there && (outcome->answer == REFUSED || outcome->answer == NONE))
				problem("%s: row/%d/%d was refused and is there", where, p, i);
			if (told && owners[i] != outcome->owner) {
				problem("%s: claim/%d is %d's, process %d was told %d", where, i,
					owners[i], p, outcome->owner);
				++*split;
			}
			if (there && owners[i] < 0)
				problem("%s: half of row/%d/%d is there", where, p, i);
		}
	return lost;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return x < y ? -1 : x > y;
}

static int report(double milliseconds)
{
	size_t all = (size_t)processes * (size_t)transactions;
	int counts[UNKNOWN + 1] = {0}, lost = 0, split = 0;
	double *times = calloc(all, sizeof(*times));
	size_t told = 0;
	for (size_t n = 0; n < all; n++) {
		counts[outcomes[n].answer]++;
		if (outcomes[n].answer == WON || outcomes[n].answer == LOST)
			times[told++] = outcomes[n].milliseconds;
	}
	qsort(times, told, sizeof(*times), by_size);
	int acknowledged = counts[WON] + counts[LOST];
	int unknown = counts[ASKED] + counts[UNKNOWN];
	struct count count = {.integrity = "ok"};
	int present = 0;
	seen = calloc(all, sizeof(*seen));
	owners = calloc((size_t)transactions, sizeof(*owners));
	for (int s = 0; s < store_count && s < processes; s++) {
		count = (struct count){0};
		memset(seen, 0, all * sizeof(*seen));
		memset(owners, 0xff, (size_t)transactions * sizeof(*owners));
		if (!plain)
			count_store(&count, stores[s]);
		count_sqlite(&count, stores[s]);
		int lost_here = compare(stores[s], &split);
		if (lost_here > lost || s == 0) {
			lost = lost_here;
			present = count.rows;
		}
		if (!plain && count.revision != count.rows)
			problem("%s: %d rows and revision %lld", stores[s], count.rows,
				(long long)count.revision);
	}
	printf("processes %d transactions %zu acknowledged %d refused %d unknown %d present %d "
	       "lost %d claims %d split %d integrity %s seconds %.2f median_ms %.1f max_ms %.1f\n",
		processes, all, acknowledged, counts[REFUSED] + counts[NONE], unknown, present,
		lost, count.claims, split, count.integrity, milliseconds / 1e3,
		told ? times[told / 2] : 0, told ? times[told - 1] : 0);
	free(times);
	free(seen);
	free(owners);
	return problems > 0 ? 1 : 0;
}

static int64_t number(const char *text, const char *what)
{
	uint64_t value;
	struct error err;
	if (parse_unsigned(text, 0, 1000000, &value, what, &err) != STATUS_OK) {
		fprintf(stderr, "contend: %s\n", err.text);
		exit(2);
	}
	return (int64_t)value;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"kill", required_argument, NULL, 'K'},
		{"stop", required_argument, NULL, 'S'}, {"for", required_argument, NULL, 'F'},
		{"plain", no_argument, &plain, 1}, {"look", no_argument, &look, 1}, {0}};
	for (int option; (option = getopt_long(argc, argv, "p:k:t:", options, NULL)) != -1;)
		switch (option) {
		case 'p': processes = (int)number(optarg, "-p"); break;
		case 'k': transactions = (int)number(optarg, "-k"); break;
		case 't': patience = number(optarg, "-t"); break;
		case 'K': kills = (int)number(optarg, "--kill"); break;
		case 'S': stops = (int)number(optarg, "--stop"); break;
		case 'F': stop_for = number(optarg, "--for"); break;
		case 0: break;
		default: return 2;
		}
	stores = argv + optind;
	store_count = argc - optind;
	if (store_count < 1 || processes < 1 || transactions < 1) {
		fprintf(stderr, "usage: contend [-p N] [-k N] [-t MS] [--kill N] [--stop N] [--for "
				"MS] [--look] [--plain] STORE...\n");
		return 2;
	}
	size_t size = (size_t)processes * (size_t)transactions * sizeof(*outcomes);
	int go[2];
	outcomes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	barrier = mmap(
		NULL, sizeof(*barrier), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pids = calloc((size_t)processes, sizeof(*pids));
	if (outcomes == MAP_FAILED || barrier == MAP_FAILED || !pids || pipe2(go, O_CLOEXEC) != 0) {
		perror("contend");
		return 2;
	}
	pid_t *lookers = calloc((size_t)store_count, sizeof(*lookers));
	for (int s = 0; look && lookers && s < store_count; s++)
		if ((lookers[s] = fork()) == 0)
			look_on(stores[s]);
	srandom((unsigned)(clock_utc() ^ getpid()));
	*barrier = barrier_at(0, kills + stops);
	for (int p = 0; p < processes; p++)
		start(p, go[0]);
	double began = milliseconds_now();
	if (write(go[1], "", 1) != 1)
		return 2;
	supervise();
	double took = milliseconds_now() - began;
	for (int s = 0; lookers && s < store_count; s++)
		if (lookers[s] > 0) {
			kill(lookers[s], SIGKILL);
			waitpid(lookers[s], NULL, 0);
		}
	int code = report(took);
	free(lookers);
	free(pids);
	munmap(outcomes, size);
	munmap((void *)barrier, sizeof(*barrier));
	return code;
}
