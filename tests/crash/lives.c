/* SPDX-License-Identifier: MIT */
/*
 * lives [--schedules N] [--one-in N] [--seed S] [--nameless]
 *
 * Two lives of one job overlap: the first did not end when the second began, and both save step 10
 * into one directory, each with two tasks, as attempt 1. In each schedule (begin and commit of the
 * four tasks, in an order taken by chance under the seed) kill -9 hits each call that changes the
 * filesystem, one after the other, one in N of them. Then either the whole life is dead, or the
 * task runs the command again; the others go on.
 *
 * After each command: what is complete holds the shards of one life, unchanged, and stays so. In
 * the end: a life that was not killed has saved, unless the other had published before; prune
 * removes nothing that either may still write.
 *
 * --nameless: both lives have no name, as in version 0.1.0: then the sweep must fail. Prints a line
 * of TAP for each schedule.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "calls.h"
#include "ckpt/ckpt.h"
#include "ckpt/layouts.h"
#include "ckpt/prune.h"

#define STEP	 10
#define LIVES	 2
#define TASKS	 2
#define COMMANDS (LIVES * TASKS * 2)

/* One command of a schedule: the begin or the commit of a task of a life. */
struct command {
	int life, task;
	bool commits;
};

/* What the child of a life that runs one command says of it, in memory that all share. */
static struct report {
	enum status status;
	bool complete;
	char why[768];
} * report;

/* A life is a process: the records of the writers name it. */
struct life {
	pid_t pid; /* 0: dead */
	int to, from;
};

static struct plan *plan;
static char root[256], directory[272];
static bool nameless;
static uint64_t chance = 1;
static unsigned long kills, wrong, one_in = 1;
static struct life lives[LIVES];
static char published; /* whose checkpoint it was when it was seen first; 0: none yet */

static _Noreturn void give_up(const char *what)
{
	printf("Bail out! %s: %s\n", what, strerror(errno));
	exit(99);
}

/* By a generator of our own, so that a seed means the same everywhere. */
static uint64_t draw(uint64_t below)
{
	chance ^= chance << 13;
	chance ^= chance >> 7;
	chance ^= chance << 17;
	return chance % below;
}

/* ---- One command, in a child of its life ---- */

static void write_shard(const char *path, const struct command *command)
{
	char name[256], text[32];
	snprintf(name, sizeof(name), "%s/part", path);
	int length = snprintf(text, sizeof(text), "%c%d\n", 'A' + command->life, command->task);
	int descriptor = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (descriptor < 0 || write(descriptor, text, (size_t)length) != length)
		report->status = STATUS_TEMPORARY;
	close(descriptor);
}

static void run_command(const struct command *command)
{
	static const char *const names[LIVES] = {
		"0123456789ab00000000000a", "ba987654321000000000000b"};
	struct checkpoint_target target = {.directory = directory,
		.step = STEP,
		.attempt = 1,
		.sharded = true,
		.task = (uint64_t)command->task,
		.tasks = TASKS};
	struct checkpoint_commit answer = {0};
	struct text path = {0};
	struct error err = {0};
	if (!nameless)
		memcpy(target.life, names[command->life], sizeof(target.life));
	*report = (struct report){0};
	calls_arm(plan);
	enum status status = command->commits ? checkpoint_commit(&target, &answer, &err)
					      : checkpoint_begin(&target, &path, &err);
	calls_arm(NULL);
	report->status = status;
	report->complete = answer.complete;
	snprintf(report->why, sizeof(report->why), "%s", status == STATUS_OK ? "" : err.text);
	if (!command->commits && status == STATUS_OK)
		write_shard(text_string(&path), command);
	text_release(&path);
	text_release(&answer.absent);
}

/* The process of a life: runs each command that it is sent in a child, and says how that ended. */
static _Noreturn void live(int from, int to)
{
	struct command command;
	while (read(from, &command, sizeof(command)) == (ssize_t)sizeof(command)) {
		int status = 0;
		pid_t pid = fork();
		if (pid == 0) {
			run_command(&command);
			_exit(0);
		}
		if (pid < 0 || waitpid(pid, &status, 0) != pid ||
			write(to, &status, sizeof(status)) != (ssize_t)sizeof(status))
			break;
	}
	_exit(0);
}

static void give_birth(struct life *life)
{
	int there[2], back[2];
	if (pipe2(there, O_CLOEXEC) < 0 || pipe2(back, O_CLOEXEC) < 0 || (life->pid = fork()) < 0)
		give_up("fork");
	if (life->pid == 0) {
		close(there[1]);
		close(back[0]);
		live(there[0], back[1]);
	}
	close(there[0]);
	close(back[1]);
	life->to = there[1];
	life->from = back[0];
}

static void kill_life(struct life *life)
{
	if (!life->pid)
		return;
	kill(life->pid, SIGKILL);
	waitpid(life->pid, NULL, 0);
	close(life->to);
	close(life->from);
	life->pid = 0;
}

/* Run a command to its end. True: it was killed. */
static bool play(const struct command *command, enum call_act act, unsigned at)
{
	struct life *life = &lives[command->life];
	int status;
	plan->count = plan->hits = 0;
	plan->act = act;
	plan->at = at;
	plan->number = SIGKILL;
	if (write(life->to, command, sizeof(*command)) != (ssize_t)sizeof(*command) ||
		read(life->from, &status, sizeof(status)) != (ssize_t)sizeof(status))
		give_up("a life does not answer");
	return WIFSIGNALED(status);
}

/* ---- What must be true ---- */

static const char *now_doing; /* for complaints */

static void complain(const char *what, const char *why)
{
	wrong++;
	if (wrong <= 20)
		printf("# %s: %s: %s\n", now_doing, what, why);
}

/* The letter in a task's shard of the published checkpoint; 0: it cannot be read. */
static char read_shard(int task)
{
	char path[512], expected[32];
	struct text text = {0};
	char letter = 0;
	snprintf(path, sizeof(path), "%s/step-%08d/task-%d/part", directory, STEP, task);
	if (file_read_whole(path, 64, &text, NULL) == STATUS_OK && text.length) {
		letter = text_string(&text)[0];
		snprintf(expected, sizeof(expected), "%c%d\n", letter, task);
		if (strcmp(text_string(&text), expected) != 0)
			letter = 0;
	}
	text_release(&text);
	return letter;
}

/* After each command: nothing, or one life's shards, and the same ones from then on. */
static void judge(void)
{
	struct checkpoint found;
	struct error err = {0};
	const struct checkpoint_search search = {
		.directory = directory, .layout = layout_ours(), .contents = true};
	enum status status = checkpoint_latest(&search, &found, NULL, &err);
	if (status == STATUS_NO) {
		if (published)
			complain("what was complete is no longer", err.text);
		return;
	}
	if (status != STATUS_OK) {
		complain("cannot be asked", err.text);
		return;
	}
	char first = read_shard(0);
	for (int task = 0; task < TASKS; task++)
		if (!first || read_shard(task) != first)
			complain("complete and verified",
				"but its shards are not those of one life");
	if (published && published != first)
		complain("complete", "but of another life than before");
	published = first;
}

/* What a command that was not killed answered. */
static void judge_answer(const struct command *command)
{
	bool ours = published == 'A' + command->life;
	if (report->complete && !ours)
		complain("commit says \"complete\"", "but this life's checkpoint is not there");
	if (report->status == STATUS_OK || (report->status == STATUS_NO && published && !ours))
		return;
	complain(command->commits ? "commit" : "begin", report->why);
}

/* How many directories that are being written there are. */
static int count_left(void)
{
	int count = 0;
	DIR *entries = opendir(directory);
	for (struct dirent *entry; entries && (entry = readdir(entries));)
		count += strncmp(entry->d_name, ".tmp-", 5) == 0;
	if (entries)
		closedir(entries);
	return count;
}

/* A prune: what is being written, or was a moment ago, stays. */
static void judge_prune(void)
{
	struct prune_request request = {.policy = {.last = 1}, .now = clock_utc(), .wait = 60000};
	struct prune_report pruned = {0};
	struct error err = {0};
	int before = count_left();
	enum status status = checkpoint_prune(directory, layout_ours(), &request, &pruned, &err);
	prune_report_release(&pruned);
	if (status != STATUS_OK)
		complain("prune", err.text);
	if (count_left() != before)
		complain("prune", "what may still be written is gone");
	judge();
}

/* ---- All of them ---- */

/* An order in which each task begins before it commits. */
static void draw_schedule(struct command schedule[COMMANDS])
{
	int done[LIVES][TASKS] = {0};
	for (int i = 0; i < COMMANDS;) {
		int life = (int)draw(LIVES), task = (int)draw(TASKS);
		if (done[life][task] == 2)
			continue;
		schedule[i++] = (struct command){life, task, done[life][task]++ == 1};
	}
}

static void prepare(void)
{
	published = 0;
	if (file_remove_tree(directory, NULL) != STATUS_OK)
		give_up(directory);
	for (int i = 0; i < LIVES; i++) {
		kill_life(&lives[i]);
		give_birth(&lives[i]);
	}
}

/* The schedule with one kill, at a call of its command number hit; -1: none. */
static void run_schedule(const struct command schedule[COMMANDS], int hit, enum call_act act,
	unsigned at, bool again)
{
	char doing[200];
	bool killed = false;
	prepare();
	now_doing = doing;
	for (int i = 0; i < COMMANDS; i++) {
		const struct command *command = &schedule[i];
		snprintf(doing, sizeof(doing), "%c%d %s, command %d (kill: %s call %u of %d, %s)",
			'A' + command->life, command->task, command->commits ? "commit" : "begin",
			i, act == ACT_BEFORE ? "before" : "after", at, hit,
			again ? "run again" : "the life is dead");
		if (!lives[command->life].pid)
			continue;
		killed = play(command, i == hit ? act : ACT_COUNT, i == hit ? at : 0);
		judge();
		if (killed && again) {
			killed = play(command, ACT_COUNT, 0);
			judge();
		}
		if (killed)
			kill_life(&lives[command->life]);
		else
			judge_answer(command);
	}
	kills += hit >= 0;
	if (!published)
		complain("in the end", "no process has saved, although a life was never killed");
	judge_prune();
	for (int i = 0; i < LIVES; i++)
		kill_life(&lives[i]);
}

/* The calls of a command at which a kill makes a difference. */
static unsigned find_stages(
	const struct command schedule[COMMANDS], int which, unsigned stages[CALLS_LOGGED])
{
	unsigned count = 0;
	prepare();
	for (int i = 0; i <= which; i++)
		(void)play(&schedule[i], ACT_COUNT, 0);
	unsigned calls = plan->count < CALLS_LOGGED ? plan->count : CALLS_LOGGED;
	for (unsigned at = 1; at <= calls; at++)
		if (plan->log[at - 1].writes)
			stages[count++] = at;
	return count;
}

static void sweep(unsigned number)
{
	static unsigned stages[CALLS_LOGGED];
	struct command schedule[COMMANDS];
	char order[COMMANDS * 4 + 1] = "";
	unsigned long before = wrong, kills_before = kills;
	draw_schedule(schedule);
	for (int i = 0; i < COMMANDS; i++)
		sprintf(order + strlen(order), " %c%c%d", schedule[i].commits ? 'c' : 'b',
			'A' + schedule[i].life, schedule[i].task);
	run_schedule(schedule, -1, ACT_COUNT, 0, false);
	for (int hit = 0; hit < COMMANDS; hit++) {
		unsigned count = find_stages(schedule, hit, stages);
		for (unsigned i = 0; i < count; i++) {
			if (draw(one_in) == 0)
				run_schedule(schedule, hit, ACT_BEFORE, stages[i], draw(2));
			/* After the last change, before the answer. */
			if (i + 1 == count)
				run_schedule(schedule, hit, ACT_AFTER, stages[i], draw(2));
		}
	}
	printf("%sok %u -%s: %lu kills\n", wrong == before ? "" : "not ", number, order,
		kills - kills_before);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	unsigned long schedules = 10;
	const char *parent = getenv("TMPDIR");
	chance = (uint64_t)clock_utc();
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--schedules") && i + 1 < argc)
			schedules = strtoul(argv[++i], NULL, 10);
		else if (!strcmp(argv[i], "--one-in") && i + 1 < argc)
			one_in = strtoul(argv[++i], NULL, 10);
		else if (!strcmp(argv[i], "--seed") && i + 1 < argc)
			chance = strtoull(argv[++i], NULL, 10);
		else if (!strcmp(argv[i], "--nameless"))
			nameless = true;
		else {
			fprintf(stderr, "lives: what is \"%s\"?\n", argv[i]);
			return 2;
		}
	}
	if (!schedules || !one_in)
		return 2;
	chance += !chance;
	printf("# --seed %llu\n", (unsigned long long)chance);
	signal(SIGPIPE, SIG_IGN);
	if (snprintf(root, sizeof(root), "%s/lives-XXXXXX", parent ? parent : "/tmp") >=
			(int)sizeof(root) ||
		!mkdtemp(root))
		give_up("mkdtemp");
	snprintf(directory, sizeof(directory), "%s/ck", root);
	plan = mmap(NULL, sizeof(*plan), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	report = mmap(
		NULL, sizeof(*report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (plan == MAP_FAILED || report == MAP_FAILED)
		give_up("mmap");
	snprintf(plan->directory, sizeof(plan->directory), "%s", root);
	for (unsigned i = 1; i <= schedules; i++)
		sweep(i);
	for (int i = 0; i < LIVES; i++)
		kill_life(&lives[i]);
	(void)file_remove_tree(root, NULL);
	printf("1..%lu\n# %lu kills, %lu wrong\n", schedules, kills, wrong);
	return wrong != 0;
}
