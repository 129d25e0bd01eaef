/* SPDX-License-Identifier: MIT */
/* Real commands in slots: how they start, how they are told to end, and what is left of them. */
#include "queue/slot.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/process/process.h"
#include "queue/output.h"
#include "scratch_queue.h"
#include "unit.h"

#define PATIENCE 60000 /* ms; what takes longer has failed */

static struct reaper reaper;
static struct queue_worker worker = {.name = "w-1", .index = 4, .process.host = "here"};
static char *resources;
static struct slot_context place = {.queue = &queue,
	.worker = &worker,
	.reaper = &reaper,
	.resources = &resources,
	.kill_after = PATIENCE};
static struct slot slot = {.place = &place};

/* ---- Commands ---- */

static char **copy_words(const char *const *words)
{
	size_t count = 0;
	while (words[count])
		count++;
	char **copy = calloc(count + 1, sizeof(*copy));
	for (size_t i = 0; i < count; i++)
		copy[i] = strdup(words[i]);
	return copy;
}
#define WORDS(...) copy_words((const char *const[]){__VA_ARGS__, NULL})

/* A command that was just taken; each has an id of its own. */
static struct queue_view taken_of(char **words)
{
	static uint64_t id = 98;
	struct queue_view taken = {.item = {.id = ++id, .argv = words, .max_transient = 3},
		.history = {.starts = 1},
		.token = "0123456789abcdef"};
	return taken;
}
static struct queue_view shell(const char *text)
{
	struct queue_view taken = taken_of(WORDS(text));
	taken.item.shell = true;
	return taken;
}

static void start(struct queue_view taken)
{
	slot_start(&slot, &taken);
	CHECK(taken.item.argv == NULL);
}

/* As a worker's loop does; false: it took too long. */
static bool collect(void)
{
	int64_t deadline = clock_after(PATIENCE);
	while (slot.state != SLOT_ENDED && clock_now() < deadline) {
		int64_t due = slot_due(&slot);
		struct pollfd ended = {.fd = slot.child.end.descriptor, .events = POLLIN};
		(void)poll(&ended, 1, clock_poll_timeout(due < deadline ? due : deadline));
		slot_tick(&slot, clock_now());
	}
	if (slot.state != SLOT_ENDED)
		return false;
	slot_keep(&slot, NULL);
	return true;
}
static void clear(bool accepted)
{
	bool succeeded = slot.result.ending.kind == ENDING_EXITED && !slot.result.ending.code;
	slot_clear(&slot, accepted, succeeded ? QUEUE_SUCCEEDED : QUEUE_FAILED);
}

/* What it has written to its stdout. */
static const char *said(void)
{
	static char bytes[4096];
	ssize_t n = pread(slot.out, bytes, sizeof(bytes) - 1, 0);
	bytes[n > 0 ? n : 0] = '\0';
	return bytes;
}

/* Start it, wait for its end, collect it; to be cleared. */
static bool run(struct queue_view taken)
{
	start(taken);
	return CHECK(collect());
}

/* Until it has written something. */
static bool wait_for_output(void)
{
	int64_t deadline = clock_after(PATIENCE);
	struct stat st;
	while (fstat(slot.out, &st) == 0 && st.st_size == 0 && clock_now() < deadline)
		clock_sleep_until(clock_after(2));
	return st.st_size > 0;
}
static pid_t written_pid(void)
{
	char text[32] = "";
	(void)!pread(slot.out, text, sizeof(text) - 1, 0);
	return atoi(text);
}
/* Whether this process goes away (a zombie has). */
static bool goes(const struct process_identity *process)
{
	int64_t deadline = clock_after(PATIENCE);
	while (process_check(process) != PROCESS_GONE && clock_now() < deadline)
		clock_sleep_until(clock_after(2));
	return process_check(process) == PROCESS_GONE;
}

static const char *path_in_files(const char *format, ...)
{
	static char path[256];
	va_list list;
	int length = snprintf(path, sizeof(path), "%s/", queue.files);
	va_start(list, format);
	vsnprintf(path + length, sizeof(path) - (size_t)length, format, list);
	va_end(list);
	return path;
}
static bool is_there(const char *path)
{
	struct stat st;
	return lstat(path, &st) == 0;
}

/* How many descriptors we have. */
static int count_descriptors(void)
{
	int count = 0;
	for (int i = 0; i < 256; i++)
		count += fcntl(i, F_GETFD) >= 0;
	return count;
}

/* ---- What it sees ---- */

static void surroundings(void)
{
	TEST("a pipe without a writer is an empty stdin, and holds up no worker")
	{
		struct queue_view taken = shell("cat; echo end");
		char path[128];
		snprintf(path, sizeof(path), "%s/pipe", scratch);
		CHECK_EQ(mkfifo(path, 0600), 0);
		taken.item.input = strdup(path);
		run(taken);
		CHECK_TEXT(said(), "end\n");
		clear(true);
	}
	TEST("what is ignored here is ignored in it, and nothing else; none is blocked")
	{
		sigset_t blocked, old;
		char ours[256] = "", line[128];
		sigemptyset(&blocked);
		sigaddset(&blocked, SIGTERM);
		sigprocmask(SIG_BLOCK, &blocked, &old);
		signal(SIGHUP, SIG_IGN);
		FILE *status = fopen("/proc/self/status", "r");
		while (status && fgets(line, sizeof(line), status))
			if (!strncmp(line, "SigIgn:", 7))
				snprintf(ours, sizeof(ours), "SigBlk:\t%016x\n%s", 0, line);
		if (status)
			fclose(status);
		run(taken_of(WORDS("grep", "^Sig[BI]", "/proc/self/status")));
		signal(SIGHUP, SIG_DFL);
		sigprocmask(SIG_SETMASK, &old, NULL);
		CHECK(strlen(ours) > 40 && ours[strlen(ours) - 2] & 1);
		CHECK_TEXT(said(), ours);
		clear(true);
	}
}

/* ---- What cannot be started ---- */

static void unstarted(void)
{
	unit_begin(NULL);
	char plain[128], interpreted[128];
	static char big[200000]; /* more than the kernel takes in one word */
	memset(big, 'x', sizeof(big) - 1);
	snprintf(plain, sizeof(plain), "%s/plain", scratch);
	snprintf(interpreted, sizeof(interpreted), "%s/interpreted", scratch);
	(void)file_write_whole(plain, "true\n", 5, 0600, false, NULL);
	(void)file_write_whole(interpreted, "#!/no/such\n", 11, 0700, false, NULL);
	const struct {
		const char *word, *directory, *input;
		int code;
		const char *says;
		enum queue_ending_kind kind;
	} cases[] = {
		{"no-such-command", NULL, NULL, 127, "no-such-command", ENDING_CANNOT},
		{"/no/such/command", NULL, NULL, 127, "/no/such/command", ENDING_CANNOT},
		{plain, NULL, NULL, 126, "Permission denied", ENDING_CANNOT},
		{scratch, NULL, NULL, 126, "Permission denied", ENDING_CANNOT},
		{interpreted, NULL, NULL, 126, "interpreter", ENDING_CANNOT},
		{big, NULL, NULL, 126, "Argument list too long", ENDING_CANNOT},
		{"true", "/no/such/place", NULL, 1, "in /no/such/place: No such file",
			ENDING_CANNOT},
		{"true", plain, NULL, 1, "Not a directory", ENDING_CANNOT},
		{"true", NULL, "/no/such/input", 1, "/no/such/input as stdin: No such file",
			ENDING_CANNOT},
		{"true", NULL, "/usr", 1, "Is a directory", ENDING_CANNOT},
		{"{per-worker:}", NULL, NULL, 1, "nothing to choose", ENDING_EXITED},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct queue_view taken = taken_of(
			cases[i].word == big ? WORDS("true", big) : WORDS(cases[i].word, "x"));
		int before = count_descriptors();
		if (cases[i].directory)
			taken.item.directory = strdup(cases[i].directory);
		if (cases[i].input)
			taken.item.input = strdup(cases[i].input);
		taken.item.max_attempts = 5;
		start(taken);
		CHECK(slot.state == SLOT_ENDED && collect() &&
				slot.result.ending.kind == cases[i].kind &&
				slot.result.ending.code == cases[i].code &&
				strstr(slot.result.ending.text, cases[i].says) && !slot.result.out,
			"cannot start, %d: %s", cases[i].code, slot.result.ending.text);
		clear(true);
		CHECK(count_descriptors() == before, "and nothing stays open");
	}
}

/* ---- How it ends ---- */

static void endings(void)
{
	TEST("an exit code, and the last line of stderr")
	{
		run(shell("echo one >&2; printf 'two\\033\\n \\n' >&2; exit 3"));
		CHECK_EQ(slot.result.ending.kind, ENDING_EXITED);
		CHECK_EQ(slot.result.ending.code, 3);
		CHECK_TEXT(slot.result.ending.text, "two\\x1b");
		CHECK_TEXT(slot.run.token, "0123456789abcdef");
		CHECK_TEXT(slot.result.worker, "w-1");
		CHECK_TEXT(slot.result.host, "here");
		CHECK(slot.result.started > 0 && slot.result.ended >= slot.result.started);
		clear(true);
	}
	TEST("what it used is measured")
	{
		run(shell("dd if=/dev/zero of=/dev/null bs=32M count=20"));
		CHECK(slot.result.memory > 32 << 20 && slot.result.memory < 1 << 30);
		CHECK(slot.result.user + slot.result.system > 0);
		clear(true);
	}
	TEST("what it started in the background stays after 0, and goes after a failure or when told to end")
	{
		for (int i = 0; i < 3; i++) {
			bool told = i == 2, stays = i == 0;
			struct process_identity left = {0};
			char text[128];
			snprintf(text, sizeof(text),
				"trap 'exit 0' TERM; (trap '' TERM; exec sleep 1000) & echo $!; %s",
				told	? "while :; do sleep 0.01; done"
				: stays ? "exit 0"
					: "exit 1");
			start(shell(text));
			CHECK(wait_for_output());
			bool found = process_identify(written_pid(), &left, &err) == STATUS_OK;
			if (told)
				slot_tell(&slot, ENDING_PREEMPTED, SIGTERM, clock_after(PATIENCE));
			CHECK(collect());
			if (stays) {
				CHECK(found && process_check(&left) == PROCESS_ALIVE);
				kill(left.pid, SIGKILL);
			} else {
				CHECK((found || !told) && (!found || goes(&left)));
			}
			CHECK_EQ(slot.result.ending.code, i == 1);
			clear(true);
		}
	}
}

/* A command that gets a signal, and what it does then. */
static void told(void)
{
	static const struct {
		const char *shows, *text;
		enum queue_ending_kind why;
		int signal;
		bool stop; /* it is stopped before */
		enum queue_ending_kind kind;
		int code, number;
	} cases[] = {
		{"a notice, and it ends with 0: it has succeeded",
			"trap 'exit 0' USR1; echo .; while :; do sleep 0.01; done",
			ENDING_PREEMPTED, SIGUSR1, false, ENDING_EXITED, 0, 0},
		{"a notice, and it ends with 42: it goes back",
			"trap 'exit 42' TERM; echo .; while :; do sleep 0.01; done",
			ENDING_PREEMPTED, SIGTERM, false, ENDING_PREEMPTED, 42, 0},
		{"a notice, and it ends with 93: that is its own decision",
			"trap 'exit 93' TERM; echo .; while :; do sleep 0.01; done",
			ENDING_PREEMPTED, SIGTERM, false, ENDING_EXITED, 93, 0},
		{"a notice of which it dies", "echo .; exec sleep 1000", ENDING_PREEMPTED, SIGTERM,
			false, ENDING_PREEMPTED, 0, SIGTERM},
		{"a notice that it ignores: it gets KILL", "trap '' TERM; echo .; exec sleep 1000",
			ENDING_PREEMPTED, SIGTERM, false, ENDING_PREEMPTED, 0, SIGKILL},
		{"one that was stopped hears it, too",
			"trap 'exit 5' TERM; echo .; while :; do sleep 0.01; done",
			ENDING_CANCELLED, SIGTERM, true, ENDING_CANCELLED, 5, 0},
		{"one that was stopped and ignores it gets KILL",
			"trap '' TERM; echo .; exec sleep 1000", ENDING_CANCELLED, SIGTERM, true,
			ENDING_CANCELLED, 0, SIGKILL},
		{"one that has left its process group hears it, too",
			"exec perl -e '$| = 1; setpgrp(0, getpgrp(getppid())); print \".\"; sleep 1000'",
			ENDING_CANCELLED, SIGTERM, false, ENDING_CANCELLED, 0, SIGTERM},
		{"cancelled is cancelled, also with 0",
			"trap 'exit 0' TERM; echo .; while :; do sleep 0.01; done",
			ENDING_CANCELLED, SIGTERM, false, ENDING_CANCELLED, 0, 0},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		TEST(cases[i].shows)
		{
			start(shell(cases[i].text));
			CHECK(wait_for_output());
			if (cases[i].stop)
				kill(-slot.child.pid, SIGSTOP);
			/* Those that end by themselves shall not need the KILL. */
			bool kills = cases[i].number == SIGKILL;
			slot_tell(&slot, cases[i].why, cases[i].signal,
				clock_after(kills ? 30 : 10 * PATIENCE));
			/* Too late to be something else. */
			slot_tell(&slot, ENDING_TIMED_OUT, SIGURG, CLOCK_NEVER);
			CHECK(collect());
			CHECK_EQ(slot.result.ending.kind, cases[i].kind);
			CHECK_EQ(slot.result.ending.code, cases[i].code);
			CHECK_EQ(slot.result.ending.number, cases[i].number);
			clear(true);
		}
	TEST("one that had ended when it was told ended by itself")
	{
		start(shell("exit 3"));
		struct pollfd ended = {.fd = slot.child.end.descriptor, .events = POLLIN};
		CHECK_EQ(poll(&ended, 1, PATIENCE), 1);
		slot_tell(&slot, ENDING_PREEMPTED, SIGTERM, clock_now());
		CHECK(collect());
		CHECK_EQ(slot.result.ending.kind, ENDING_EXITED);
		clear(true);
	}
}

/* ---- What is kept ---- */

static int mode_of(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 ? (int)(st.st_mode & 07777) : -1;
}

/* Where an output of the command in the slot is. */
static const char *output_of(const char *end)
{
	return path_in_files("%d.0123456789abcdef.%s", (int)slot.run.item.id, end);
}

static void places(void)
{
	char *files = queue.files, own[128], missing[128];
	snprintf(own, sizeof(own), "%s/own", scratch);
	snprintf(missing, sizeof(missing), "%s/mount/point/q", scratch);
	TEST("where the place for the queue's files is missing, it is not made, and the command goes back")
	{
		queue.files = missing;
		run(shell("echo something"));
		CHECK_EQ(slot.result.ending.kind, ENDING_MACHINE);
		CHECK(strstr(slot.result.ending.text, "No such file"));
		clear(true);
	}
	TEST("files that are made are our own, whatever the umask")
	{
		queue.files = own;
		CHECK_EQ(mkdir(own, 0700), 0);
		mode_t old = umask(0);
		run(shell("echo something"));
		umask(old);
		CHECK_EQ(slot.result.ending.code, 0);
		CHECK_EQ(mode_of(path_in_files("item")), 0700);
		CHECK_EQ(mode_of(output_of("out")), 0600);
		clear(true);
	}
	queue.files = files;
	TEST("an output is kept if it has something, and its result was accepted")
	{
		for (int i = 0; i < 3; i++) {
			char path[256];
			run(shell(i == 2 ? "exit 3" : "echo something"));
			snprintf(path, sizeof(path), "%s", output_of("out"));
			CHECK(is_there(path));
			clear(i > 0);
			CHECK_EQ(is_there(path), i == 1);
		}
	}
	TEST("without room for more it may not be whole, and the machine is to blame, whatever its end")
	{
		struct error full;
		error_errno(&full, ENOSPC, "write there");
		for (int i = 0; i < 2; i++) {
			start(shell(i ? "exit 3" : "echo something"));
			CHECK(collect());
			slot_keep(&slot, &full);
			CHECK_EQ(slot.result.ending.kind, ENDING_MACHINE);
			CHECK(strstr(slot.result.ending.text, "No space left"));
			clear(false);
		}
	}
}

/* ---- When the worker is gone ---- */

/* Start it in the background of a command of a worker, kill the worker, and see that it goes. */
static void kill_worker_of(const char *command)
{
	struct process_identity inner = {0};
	struct text pid = {0};
	char path[128], started[128], text[512];
	snprintf(path, sizeof(path), "%s/pid", scratch);
	snprintf(started, sizeof(started), "%s/started", scratch);
	snprintf(text, sizeof(text), "%s & echo $! >%s.new && mv %s.new %s; wait", command, path,
		path, path);
	struct queue_view taken = shell(text);
	fflush(stdout);
	pid_t child = fork();
	if (child == 0) {
		if (reaper_start(&reaper, &err) != STATUS_OK)
			_exit(1);
		slot_start(&slot, &taken);
		(void)file_write_whole(started, "", 0, 0600, false, NULL);
		pause();
		_exit(1);
	}
	int64_t deadline = clock_after(PATIENCE);
	/* Before slot_start has returned, only the mark is known. */
	while (!(is_there(path) && is_there(started)) && clock_now() < deadline)
		clock_sleep_until(clock_after(2));
	CHECK_EQ(file_read_whole(path, 32, &pid, &err), STATUS_OK);
	CHECK_EQ(process_identify(atoi(text_string(&pid)), &inner, &err), STATUS_OK);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	queue_item_release(&taken.item);
	CHECK(goes(&inner));
	text_release(&pid);
	unlink(path);
	unlink(started);
}

static void worker_killed(void)
{
	static const char again[] = "#!/bin/sh\nexec \"$0\"\n";
	static const struct {
		const char *shows, *command;
		int rounds;
	} cases[] = {
		{"a worker that is killed takes with it what has left the group",
			"setsid sleep 1000", 1},
		{"a worker that is killed takes with it what has no environment",
			"env -i sleep 1000", 1},
		{"a worker that is killed takes with it what is changing its program",
			"setsid \"$TMPDIR/again\"", 5},
	};
	char path[128];
	snprintf(path, sizeof(path), "%s/again", scratch);
	(void)file_write_whole(path, again, strlen(again), 0700, false, NULL);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		TEST(cases[i].shows)
		{
			for (int round = 0; round < cases[i].rounds; round++)
				kill_worker_of(cases[i].command);
		}
}

int main(void)
{
	scratch_make();
	setenv("TMPDIR", scratch, 1);
	/* One of a PATH that may not be read makes of "not found" a "permission denied". */
	setenv("PATH", "/usr/bin:/bin", 1);
	unsetenv("PREEMPT_AGENT");
	reopen("q.db");
	worker_killed();
	if (reaper_start(&reaper, &err) != STATUS_OK)
		return 99;
	surroundings();
	unstarted();
	endings();
	told();
	places();
	close_all();
	reaper_stop(&reaper);
	scratch_remove();
	return unit_end();
}
