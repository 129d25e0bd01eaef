/* SPDX-License-Identifier: MIT */
/*
 * A training loop for tests, with the C client: every step adds 1 to a counter, a checkpoint is the
 * counter of each task, and everything it does stands in a log. So a test can see which steps were
 * begun, which saves were made, and that no step was lost or done twice.
 *
 * DIR/ckpt/STEP/TASK   the counter at STEP; complete when every task's is there
 * DIR/log/ATTEMPT.TASK "start N" "begin N" "ask N" "save N" "leave CODE" "end N"
 * DIR/end/TASK         the counter at the end
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "client/preempt.h"

#define TASKS_MAX 1024

static unsigned long steps = 100, stride = 1, fail_step;
static long step_ms, save_ms, slow_ms;
static long task, tasks = 1, slow_task = -1, fail_task = -1, save_fails = -1;
static int fail_code, child;
static const char *attempt = "1";
static bool synchronous, asynchronous;
static volatile unsigned long *ring;
static unsigned long counter;
static int log_file = -1;

static void die(const char *what)
{
	fprintf(stderr, "count: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void note(const char *word, unsigned long number)
{
	char line[64];
	int length = snprintf(line, sizeof(line), "%s %lu\n", word, number);
	if (write(log_file, line, (size_t)length) != length)
		die("log");
}

static void pause_ms(long ms)
{
	struct timespec left = {ms / 1000, ms % 1000 * 1000000};
	while (ms > 0 && nanosleep(&left, &left) < 0 && errno == EINTR)
		;
}

static void make_directory(const char *path)
{
	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		die(path);
}

static void save(unsigned long step, unsigned long count)
{
	char path[128], temporary[128];
	FILE *file;
	note("save", step);
	pause_ms(save_ms);
	if (save_fails == task || save_fails == -2) {
		fprintf(stderr, "count: task %ld: cannot save step %lu, as --save-fails says\n",
			task, step);
		exit(1);
	}
	snprintf(path, sizeof(path), "ckpt/%lu", step);
	make_directory(path);
	snprintf(temporary, sizeof(temporary), "ckpt/.%ld", task);
	snprintf(path, sizeof(path), "ckpt/%lu/%ld", step, task);
	if (!(file = fopen(temporary, "w")) || fprintf(file, "%lu\n", count) < 0 ||
		fclose(file) != 0 || rename(temporary, path) < 0)
		die(path);
	note("saved", step);
}

/* Report the save of step; the code to leave with, 0: run on. */
static int report(unsigned long step)
{
	int code = preempt_saved(step);
	if (code)
		note("leave", (unsigned long)code);
	return code;
}

/*
 * --async: one save at a time beside the training, of the state at the step. The training leaves
 * when it asks the next time, or at its end.
 */
static pthread_t saver;
static bool saver_started;
static unsigned long saver_step, saver_count;
static int saver_code;

static void *save_beside(void *unused)
{
	(void)unused;
	save(saver_step, saver_count);
	saver_code = report(saver_step);
	return NULL;
}

static void await_saver(void)
{
	if (saver_started)
		pthread_join(saver, NULL);
	saver_started = false;
	if (saver_code)
		exit(saver_code);
}

static void start_saver(unsigned long step)
{
	await_saver();
	saver_step = step;
	saver_count = counter;
	if (pthread_create(&saver, NULL, save_beside, NULL) != 0)
		die("thread");
	saver_started = true;
}

static bool complete(unsigned long step)
{
	char path[128];
	for (long i = 0; i < tasks; i++) {
		snprintf(path, sizeof(path), "ckpt/%lu/%ld", step, i);
		if (access(path, F_OK) != 0)
			return false;
	}
	return true;
}

static unsigned long resume(void)
{
	char path[128];
	unsigned long newest = 0;
	FILE *file;
	DIR *directory = opendir("ckpt");
	if (!directory)
		die("ckpt");
	for (struct dirent *entry; (entry = readdir(directory));) {
		char *end;
		unsigned long step = strtoul(entry->d_name, &end, 10);
		if (*end == '\0' && *entry->d_name != '.' && step > newest && complete(step))
			newest = step;
	}
	closedir(directory);
	if (newest) {
		snprintf(path, sizeof(path), "ckpt/%lu/%ld", newest, task);
		if (!(file = fopen(path, "r")) || fscanf(file, "%lu", &counter) != 1)
			die(path);
		fclose(file);
	}
	return newest;
}

/* The others must have come as far as we: a collective, which hangs when one is missing. */
static void meet(unsigned long step)
{
	for (long i = 0; i < tasks; i++)
		while (ring[i] < step)
			pause_ms(1);
}

static void open_ring(unsigned long step)
{
	char path[64];
	snprintf(path, sizeof(path), "ring.%s", attempt);
	int descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (descriptor < 0 || ftruncate(descriptor, TASKS_MAX * sizeof(*ring)) < 0)
		die(path);
	ring = mmap(
		NULL, TASKS_MAX * sizeof(*ring), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
	if (ring == MAP_FAILED)
		die(path);
	close(descriptor);
	ring[task] = step;
}

static void train(unsigned long step)
{
	note("begin", step);
	if (synchronous)
		meet(step);
	if (fail_task == task && fail_step == step) {
		fprintf(stderr, "count: task %ld: the loss is not a number at step %lu\n", task,
			step);
		exit(fail_code);
	}
	pause_ms(slow_task == task ? slow_ms : step_ms);
	counter++;
	if (synchronous)
		ring[task] = step + 1;
}

/* A grandchild for which no task waits: 1 in our group, 2 in a session of its own. */
static void start_child(void)
{
	char text[32];
	pid_t pid = fork();
	if (pid == 0) {
		if (child == 2)
			setsid();
		for (;;)
			pause();
	}
	snprintf(text, sizeof(text), "child.%ld", task);
	FILE *file = fopen(text, "w");
	if (!file || fprintf(file, "%d\n", (int)pid) < 0 || fclose(file) != 0)
		die(text);
}

static long number_of(const char *name, long otherwise)
{
	const char *text = getenv(name);
	return text ? atol(text) : otherwise;
}

static void read_options(int argc, char **argv)
{
	static const struct option options[] = {{"dir", 1, 0, 'd'}, {"steps", 1, 0, 'n'},
		{"step-ms", 1, 0, 'm'}, {"save-ms", 1, 0, 's'}, {"slow", 1, 0, 'w'},
		{"sync", 0, 0, 'y'}, {"async", 0, 0, 'a'}, {"fail", 1, 0, 'f'},
		{"save-fails", 1, 0, 'x'}, {"stride", 1, 0, 'r'}, {"child", 1, 0, 'c'}, {0}};
	for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
		bool right = true;
		switch (option) {
		case 'd': right = chdir(optarg) == 0; break;
		case 'n': steps = strtoul(optarg, NULL, 10); break;
		case 'm': step_ms = atol(optarg); break;
		case 's': save_ms = atol(optarg); break;
		case 'w': right = sscanf(optarg, "%ld:%ld", &slow_task, &slow_ms) == 2; break;
		case 'y': synchronous = true; break;
		case 'a': asynchronous = true; break;
		case 'f':
			right = sscanf(optarg, "%ld:%lu:%d", &fail_task, &fail_step, &fail_code) ==
				3;
			break;
		case 'x': save_fails = strcmp(optarg, "all") ? atol(optarg) : -2; break;
		case 'r': stride = strtoul(optarg, NULL, 10); break;
		case 'c': child = atoi(optarg); break;
		default: right = false;
		}
		if (!right)
			die("options");
	}
}

int main(int argc, char **argv)
{
	char path[128];
	long rank = getenv("PREEMPT_RANKS") ? number_of("LOCAL_RANK", 0) : 0;
	read_options(argc, argv);
	task = number_of("PREEMPT_TASK", 0) + rank;
	tasks = number_of("PREEMPT_TASKS", 1);
	attempt = getenv("PREEMPT_ATTEMPT") ? getenv("PREEMPT_ATTEMPT") : "0";
	make_directory("log");
	make_directory("ckpt");
	make_directory("end");
	snprintf(path, sizeof(path), "log/%s.%ld", attempt, task);
	log_file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (log_file < 0)
		die(path);
	if (child)
		start_child();
	unsigned long step = resume();
	note("start", step);
	if (synchronous)
		open_ring(step);
	while (step < steps) {
		note("ask", step);
		/* Ask again after a save, or beside it: after the final one no step may begin. */
		while (preempt_step_next(step, step + stride) == PREEMPT_SAVE) {
			if (asynchronous) {
				start_saver(step);
				continue;
			}
			save(step, counter);
			int code = report(step);
			if (code)
				exit(code);
		}
		for (unsigned long i = 0; i < stride && step < steps; i++)
			train(step++);
	}
	await_saver();
	snprintf(path, sizeof(path), "end/%ld", task);
	FILE *file = fopen(path, "w");
	if (!file || fprintf(file, "%lu\n", counter) < 0 || fclose(file) != 0)
		die(path);
	note("end", step);
	return 0;
}
