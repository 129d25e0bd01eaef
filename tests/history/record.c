/* SPDX-License-Identifier: MIT */
#include "record.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "mix.h"
#include "store/lock/token.h"
#include "store/store.h"

/* Milliseconds. */
#define LAST_WAIT 120000
#define STOP	  1500

/* Shared by all processes of the recording. */
struct board {
	_Atomic int64_t begun;	 /* operations of all processes */
	_Atomic int64_t barrier; /* no operation begins while so many have begun */
	_Atomic int64_t unknown, refused;
	struct {
		_Atomic int begun;   /* operations that no later life does again */
		_Atomic bool doomed; /* it is to be killed behind its next transaction */
		pid_t pid;	     /* 0: ended */
		unsigned life;
		bool failed;
	} workers[];
};

struct worker {
	const struct recording *recording;
	struct board *board;
	unsigned process, life;
	const char *url;
	struct store *store;
	int log;
	unsigned number;	    /* of the next operation */
	const _Atomic bool *doomed; /* NULL: never */
	struct mix mix;
};

int64_t record_instant(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* ---- The log ---- */

/* One line in one write: it is there whole when the process is killed behind it. */
static void log_line(struct worker *worker, struct text *line)
{
	text_add(line, "\n");
	if (line->too_long ||
		write(worker->log, line->data, line->length) != (ssize_t)line->length) {
		perror("store_history: cannot write the log");
		_exit(3);
	}
	text_release(line);
}

static void log_open(struct worker *worker, store_revision base)
{
	char path[4096];
	struct text line = {0};
	snprintf(path, sizeof(path), "%s/%u.%u.log", worker->recording->directory, worker->process,
		worker->life);
	worker->log = open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
	if (worker->log < 0) {
		fprintf(stderr, "store_history: cannot make %s: %s\n", path, strerror(errno));
		_exit(3);
	}
	text_addf(&line, "history 1 %u %u %" PRId64, worker->process, worker->life, base);
	log_line(worker, &line);
}

static void log_call(struct worker *worker, const struct question *question)
{
	static const char *const kinds[] = {"txn", "list", "wait"};
	char name[MIX_KEY_LONGEST];
	struct text line = {0};
	text_addf(&line, "call %u %" PRId64 " %s", worker->number, record_instant(),
		kinds[question->kind]);
	for (size_t i = 0; i < question->compare_count; i++) {
		mix_key(name, question->compares[i].key);
		text_addf(&line, " ?%s=%" PRId64, name, question->compares[i].revision);
	}
	for (size_t i = 0; i < question->part_count; i++) {
		mix_key(name, question->parts[i].key);
		text_addf(&line, " %c%c%s", question->parts[i].otherwise ? '-' : '+',
			"pdg"[question->parts[i].kind], name);
	}
	if (question->kind != TRANSACTION) {
		mix_prefix(name, question->group);
		text_addf(&line, " %s %" PRId64, name, question->since);
	}
	if (question->kind == WAIT)
		text_addf(&line, " %" PRId64, question->limit);
	log_line(worker, &line);
}

/* What an entry holds; what no operation can have put becomes "?". */
static void add_entry(struct text *line, const struct store_entry *entry)
{
	text_addf(line, " %s=%" PRId64, entry->key, entry->revision);
	if (entry->revision == 0)
		return;
	bool ours = entry->length && strspn(entry->value, "0123456789.") == entry->length;
	text_addf(line, ":%s", ours ? entry->value : "?");
}

static void log_back(struct worker *worker, const char *what, store_revision revision,
	const struct store_answer *answer)
{
	struct text line = {0};
	text_addf(&line, "back %u %" PRId64 " %s %" PRId64, worker->number, record_instant(), what,
		revision);
	for (size_t i = 0; answer && i < answer->count; i++)
		add_entry(&line, &answer->entries[i]);
	log_line(worker, &line);
}

static void log_error(struct worker *worker, bool known, const struct error *err)
{
	struct text line = {0};
	_Atomic int64_t *counter = known ? &worker->board->refused : &worker->board->unknown;
	text_addf(&line, "back %u %" PRId64 " %s ", worker->number, record_instant(),
		known ? "refused" : "unknown");
	char shown[400];
	text_escape(shown, sizeof(shown), err->text, strlen(err->text));
	text_add(&line, shown);
	log_line(worker, &line);
	++*counter;
}

/* ---- One operation ---- */

static void saw_entries(struct worker *worker, const struct store_answer *answer)
{
	for (size_t i = 0; i < answer->count; i++) {
		int key = mix_key_number(answer->entries[i].key);
		if (key >= 0)
			worker->mix.seen[key] = answer->entries[i].revision;
	}
	worker->mix.newest = answer->revision;
}

static enum status ask_transaction(struct worker *worker, const struct question *question)
{
	char keys[MIX_COMPARES + MIX_PARTS][MIX_KEY_LONGEST], value[40];
	struct store_compare compares[MIX_COMPARES];
	struct store_op branches[2][MIX_PARTS];
	size_t counts[2] = {0}, used = 0;
	int length = snprintf(
		value, sizeof(value), "%u.%u.%u", worker->process, worker->life, worker->number);
	for (size_t i = 0; i < question->compare_count; i++) {
		mix_key(keys[used], question->compares[i].key);
		compares[i] = (struct store_compare){keys[used++], question->compares[i].revision};
	}
	for (size_t i = 0; i < question->part_count; i++) {
		const struct key_operation *part = &question->parts[i];
		bool puts = part->kind == STORE_PUT;
		mix_key(keys[used], part->key);
		branches[part->otherwise][counts[part->otherwise]++] = (struct store_op){
			part->kind, keys[used++], puts ? value : NULL, puts ? (size_t)length : 0};
	}
	struct store_request request = {.compares = compares,
		.compare_count = question->compare_count,
		.then = branches[0],
		.then_count = counts[0],
		.otherwise = branches[1],
		.otherwise_count = counts[1]};
	struct store_answer answer = {0};
	struct error err = {0};
	enum status status = store_txn(worker->store, &request, &answer, &err);
	if (status != STATUS_OK) {
		log_error(worker, answer.known, &err);
		return status;
	}
	/* The transaction is done, and the log does not say so. */
	if (worker->doomed && *worker->doomed)
		kill(getpid(), SIGKILL);
	log_back(worker, answer.held ? "held" : "not", answer.revision, &answer);
	saw_entries(worker, &answer);
	for (size_t i = 0; i < question->part_count; i++) {
		const struct key_operation *part = &question->parts[i];
		if (part->otherwise != answer.held && part->kind != STORE_GET)
			worker->mix.seen[part->key] = part->kind == STORE_PUT ? answer.revision : 0;
	}
	store_answer_release(&answer);
	return STATUS_OK;
}

static enum status ask_list(struct worker *worker, const struct question *question)
{
	char prefix[MIX_KEY_LONGEST];
	struct store_answer answer = {0};
	struct error err = {0};
	mix_prefix(prefix, question->group);
	struct store_range range = {.prefix = prefix, .since = question->since};
	enum status status = store_list(worker->store, &range, &answer, &err);
	if (status != STATUS_OK) {
		log_error(worker, true, &err);
		return status;
	}
	log_back(worker, "list", answer.revision, &answer);
	saw_entries(worker, &answer);
	store_answer_release(&answer);
	return STATUS_OK;
}

static enum status ask_wait(struct worker *worker, const struct question *question)
{
	char prefix[MIX_KEY_LONGEST];
	store_revision revision = question->since;
	struct error err = {0};
	mix_prefix(prefix, question->group);
	enum status status = store_wait(
		worker->store, prefix, &revision, clock_after(question->limit), -1, &err);
	if (status == STATUS_OK) {
		log_back(worker, "changed", revision, NULL);
	} else if (status == STATUS_TIMEOUT) {
		struct text line = {0};
		text_addf(&line, "back %u %" PRId64 " quiet %" PRId64 " %" PRId64, worker->number,
			record_instant(), revision,
			store_unchanged(worker->store, revision) * 1000000);
		log_line(worker, &line);
	} else {
		log_error(worker, true, &err);
		return status;
	}
	worker->mix.newest = revision;
	return STATUS_OK;
}

static enum status ask(struct worker *worker, const struct question *question)
{
	enum status status;
	log_call(worker, question);
	if (question->kind == TRANSACTION)
		status = ask_transaction(worker, question);
	else if (question->kind == LIST)
		status = ask_list(worker, question);
	else
		status = ask_wait(worker, question);
	worker->number++;
	return status;
}

/* ---- One process ---- */

static struct store *open_store(const struct recording *recording, const char *url, unsigned flags)
{
	struct store *store = NULL;
	struct error err = {0};
	if (store_open(&store, url, flags, clock_after(recording->patience), &err) != STATUS_OK) {
		fprintf(stderr, "store_history: %s: %s\n", url, err.text);
		return NULL;
	}
	store_set_patience(store, recording->patience);
	return store;
}

/* A store that is found damaged is given up: all that follows would fail, too. */
static void work(struct worker *worker)
{
	const struct recording *recording = worker->recording;
	struct board *board = worker->board;
	_Atomic int *begun = &board->workers[worker->process - (unsigned)recording->first].begun;
	uint64_t seed = recording->seed * 1000003 + worker->process * 1009 + worker->life;
	mix_start(&worker->mix, seed);
	worker->store = open_store(recording, worker->url, STORE_CREATE);
	if (!worker->store)
		_exit(3);
	while (*begun < recording->operations) {
		while (board->begun >= board->barrier && !*worker->doomed)
			clock_sleep_until(clock_after(1));
		++*begun;
		++board->begun;
		struct question question = mix_next(&worker->mix);
		if (ask(worker, &question) == STATUS_DAMAGED)
			_exit(4);
	}
	store_close(worker->store);
	_exit(0);
}

/* In a child. */
static void die_with(pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(3);
}

static void start(
	const struct recording *recording, struct board *board, int n, store_revision base)
{
	struct worker worker = {
		.recording = recording,
		.board = board,
		.process = (unsigned)(recording->first + n),
		.life = board->workers[n].life++,
		.url = recording->urls[n % recording->url_count],
		.doomed = &board->workers[n].doomed,
	};
	board->workers[n].doomed = false;
	log_open(&worker, base);
	pid_t parent = getpid();
	pid_t pid = fork();
	if (pid == 0) {
		die_with(parent);
		work(&worker);
	}
	close(worker.log);
	if (pid < 0) {
		perror("store_history: fork");
		exit(2);
	}
	board->workers[n].pid = pid;
}

/* ---- All of them ---- */

/* Takes away those that have ended; returns how many live, and in *n the number of the nth. */
static int living(const struct recording *recording, struct board *board, int nth, int *n)
{
	int count = 0;
	for (int i = 0; i < recording->processes; i++) {
		int status;
		pid_t pid = board->workers[i].pid;
		if (pid > 0 && waitpid(pid, &status, WNOHANG) == pid) {
			board->workers[i].pid = 0;
			board->workers[i].failed = status != 0;
		}
		if (board->workers[i].pid > 0 && count++ == nth)
			*n = i;
	}
	return count;
}

/* After how many operations disturbance number i comes. */
static int64_t due(const struct recording *recording, int i)
{
	return (int64_t)recording->processes * recording->operations * (i + 1) /
	       (recording->kills + recording->stops + 1);
}

/* The stops are spread over the kills. */
static bool is_stop(const struct recording *recording, int i)
{
	int all = recording->kills + recording->stops;
	return i * recording->stops / all != (i + 1) * recording->stops / all;
}

/*
 * Kill a process, at any moment or between a transaction and its line in the log. False: it had
 * ended.
 */
static bool kill_one(struct board *board, int n, bool behind)
{
	pid_t pid = board->workers[n].pid;
	int status;
	if (pid == 0)
		return false;
	if (behind)
		board->workers[n].doomed = true;
	else
		kill(pid, SIGKILL);
	board->workers[n].pid = 0;
	if (waitpid(pid, &status, 0) == pid && WIFSIGNALED(status))
		return true;
	board->workers[n].failed = status != 0;
	return false;
}

/* The process that has the token of the store; n: none of ours has it. */
static int find_holder(const struct recording *recording, const struct board *board, int n)
{
	char path[4096];
	struct token token;
	snprintf(path, sizeof(path), "%.*s.lock", (int)strcspn(recording->urls[0], "?"),
		recording->urls[0]);
	for (int tries = 0; tries < 500; tries++) {
		DIR *entries = opendir(path);
		if (!entries)
			return n;
		int found = -1;
		for (struct dirent *entry; (entry = readdir(entries));)
			for (int i = 0; token_read(entry->d_name, &token) && token.state != 'f' &&
					i < recording->processes;
				i++)
				if (board->workers[i].pid == atoi(token.pid))
					found = i;
		closedir(entries);
		if (found >= 0)
			return found;
	}
	return n;
}

/* Stop a process for a while; the others go on, if it does not hold the lock. */
static bool stop_one(struct board *board, int n)
{
	pid_t pid = board->workers[n].pid;
	if (pid == 0)
		return false;
	kill(pid, SIGSTOP);
	clock_sleep_until(clock_after(STOP));
	kill(pid, SIGCONT);
	return true;
}

/*
 * Wait for all. Returns the number of disturbances, which are spread over the work; all processes
 * pause for one that is due.
 */
static int supervise(const struct recording *recording, struct board *board, store_revision base)
{
	struct mix mix;
	int done = 0, all = recording->kills + recording->stops, n = 0, count;
	mix_start(&mix, recording->seed);
	for (;;) {
		int64_t ahead = 4 * (int64_t)recording->processes;
		board->barrier = done < all ? due(recording, done) + ahead : INT64_MAX;
		if ((count = living(recording, board, -1, &n)) == 0)
			return done;
		if (done == all || board->begun < due(recording, done)) {
			clock_sleep_until(clock_after(1));
			continue;
		}
		/* At any moment of an operation. */
		struct timespec moment = {.tv_nsec = (long)mix_random(&mix, 10000000)};
		nanosleep(&moment, NULL);
		living(recording, board, (int)mix_random(&mix, (unsigned)count), &n);
		if (is_stop(recording, done)) {
			board->barrier = due(recording, done + 1) + ahead;
			n = find_holder(recording, board, n);
			done += stop_one(board, n);
		} else if (kill_one(board, n, done % 2)) {
			done++;
			start(recording, board, n, base);
		}
	}
}

/* ---- Who looks without the lock ---- */

/* Read the files of a store, so that the caches of this machine hold what is old. Does not return.
 */
static _Noreturn void look_on(const char *url, pid_t parent)
{
	static const char *const suffixes[] = {"", "-journal", ".lock"};
	char path[4096], bytes[4096];
	die_with(parent);
	url += strncmp(url, "sqlite:", 7) ? 0 : 7;
	for (size_t i = 0;; i++) {
		snprintf(
			path, sizeof(path), "%.*s%s", (int)strcspn(url, "?"), url, suffixes[i % 3]);
		/* With this GlusterFS's client forgets the name, so that it reads the file. */
		(void)setxattr(path, "inode-invalidate", "1", 1, 0);
		int descriptor = open(path, O_RDONLY | O_CLOEXEC);
		if (descriptor >= 0 && read(descriptor, bytes, sizeof(bytes)) >= 0)
			close(descriptor);
		clock_sleep_until(clock_after(2));
	}
}

static void start_lookers(const struct recording *recording, pid_t *pids)
{
	pid_t parent = getpid();
	for (int u = 0; u < recording->url_count; u++)
		if ((pids[u] = fork()) == 0)
			look_on(recording->urls[u], parent);
}

static void end_lookers(const struct recording *recording, const pid_t *pids)
{
	for (int u = 0; u < recording->url_count; u++)
		if (pids[u] > 0) {
			kill(pids[u], SIGKILL);
			waitpid(pids[u], NULL, 0);
		}
}

/*
 * Ask, and ask again where that was refused or its outcome is unknown: another machine may have
 * taken the lock over because this one stood still. False: three times there was no answer.
 */
static bool is_answered(struct worker *worker, const struct question *question)
{
	enum status status = STATUS_TEMPORARY;
	for (int i = 0; i < 3 && status != STATUS_OK && status != STATUS_DAMAGED; i++)
		status = ask(worker, question);
	return status == STATUS_OK;
}

/*
 * At last, through each URL: one waits for what another then puts through the next URL, so that a
 * wait that misses a change is seen; and a list shows what has remained.
 */
static bool last_look(
	const struct recording *recording, struct board *board, int u, store_revision base)
{
	struct worker waits = {
		.recording = recording,
		.board = board,
		.process = (unsigned)(recording->first + recording->processes + 2 * u),
		.url = recording->urls[u],
	};
	struct worker puts = waits;
	struct question list = {.kind = LIST, .group = -1};
	struct question put = {.parts = {{STORE_PUT, 0, false}}, .part_count = 1};
	puts.process++;
	puts.url = recording->urls[(u + 1) % recording->url_count];
	log_open(&waits, base);
	log_open(&puts, base);
	mix_start(&waits.mix, 0);
	mix_start(&puts.mix, 0);
	puts.store = open_store(recording, puts.url, 0);
	bool done = puts.store && is_answered(&puts, &list);
	pid_t parent = getpid(), pid = fork();
	if (pid == 0) {
		die_with(parent);
		struct question wait = {
			.kind = WAIT, .group = -1, .since = puts.mix.newest, .limit = LAST_WAIT};
		waits.store = open_store(recording, waits.url, 0);
		bool answered =
			waits.store && is_answered(&waits, &wait) && is_answered(&waits, &list);
		_exit(answered ? 0 : 3);
	}
	/* Most often it waits by now; the answer must be right either way. */
	clock_sleep_until(clock_after(100));
	done = done && is_answered(&puts, &put);
	int status = 1;
	if (pid > 0 && !done)
		kill(pid, SIGKILL);
	done = pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
	store_close(puts.store);
	close(puts.log);
	close(waits.log);
	return done;
}

/* The store's revision before all; -1: it cannot be used. */
static store_revision find_base(const struct recording *recording)
{
	struct store_answer answer = {0};
	struct store_range range = {.prefix = MIX_ROOT};
	struct error err = {0};
	struct store *store = open_store(recording, recording->urls[0], STORE_CREATE);
	store_revision base = -1;
	if (!store)
		return -1;
	if (store_list(store, &range, &answer, &err) != STATUS_OK)
		fprintf(stderr, "store_history: %s\n", err.text);
	else if (answer.count && !recording->joins)
		fprintf(stderr,
			"store_history: %s has keys under " MIX_ROOT
			" already: use a new store, or --join "
			"where another recording is under way\n",
			recording->urls[0]);
	else
		base = answer.revision;
	store_answer_release(&answer);
	store_close(store);
	return base;
}

int record(const struct recording *recording)
{
	size_t size = sizeof(struct board) +
		      (size_t)recording->processes * sizeof(((struct board *)NULL)->workers[0]);
	struct board *board =
		mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (board == MAP_FAILED) {
		perror("store_history");
		return 2;
	}
	store_revision base = find_base(recording);
	if (base < 0)
		return 2;
	int64_t began = record_instant();
	pid_t *lookers = calloc((size_t)recording->url_count, sizeof(*lookers));
	if (recording->looks && lookers)
		start_lookers(recording, lookers);
	board->barrier = 0;
	for (int n = 0; n < recording->processes; n++)
		start(recording, board, n, base);
	int disturbed = supervise(recording, board, base), stops = 0, failed = 0;
	for (int i = 0; i < disturbed; i++)
		stops += is_stop(recording, i);
	double seconds = (double)(record_instant() - began) / 1e9;
	for (int n = 0; n < recording->processes; n++)
		failed += board->workers[n].failed;
	for (int u = 0; u < recording->url_count; u++)
		failed += !last_look(recording, board, u, base);
	if (lookers)
		end_lookers(recording, lookers);
	free(lookers);
	printf("operations %" PRId64 " refused %" PRId64 " unknown %" PRId64
	       " kills %d stops %d failed %d seconds %.1f per_second %.0f\n",
		board->begun, board->refused, board->unknown, disturbed - stops, stops, failed,
		seconds, (double)board->begun / seconds);
	munmap(board, size);
	return failed ? 1 : 0;
}
