// SPDX-License-Identifier: MIT
/*
 * train: how a training program stops together with the others and starts again.
 *
 * N processes train one small language model on the licence texts that every Debian has. All hold
 * the same weights. In each step each computes the gradient of its share of the batch, a ring
 * all-reduce adds up these gradients, and all make the same update: this is the synchronous
 * data-parallel training of large models, made small (examples/training/ has model and ring).
 *
 * What preempt-tools asks of a training program is in the loop in main(): two calls per step. At a
 * step that all tasks agreed on, task 0 saves; then all leave, and are run again later. As the
 * arithmetic is reproducible, a training that was stopped and resumed ends with the same bytes as
 * a training that ran without a stop.
 */
#include "client/preempt.h"
#include "training/training.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

#define NONE UINT64_MAX

static struct {
	const char *dir, *done_model, *address;
	uint64_t steps, save_every, step_ms;
	uint64_t slow_task[2]; // task, milliseconds
	uint64_t crash_at[2];  // step, task
	double save_seconds, start_seconds;
	bool no_board;
} option = {
	.address = "127.0.0.1",
	.steps = 400,
	.slow_task = {NONE},
	.crash_at = {0, NONE},
	.start_seconds = 60,
};

static char attempt[256];     // this start of the job, different from any other
static uint64_t saved = NONE; // the step of the newest checkpoint

// ------------------------------------------------------------------------------------- the command

enum kind { FLAG, TEXT, NUMBER, SECONDS, PAIR };

// PAIR: two numbers; least and most are for the second.
static const struct row {
	const char *name, *value;
	enum kind kind;
	void *target;
	uint64_t least, most;
	const char *help;
} row[] = {
	{"--dir", "DIR", TEXT, &option.dir, 0, 0,
		"existing directory for checkpoints, seen by all"},
	{"--steps", "N", NUMBER, &option.steps, 1, UINT32_MAX, "steps to train (400)"},
	{"--batch", "B", NUMBER, &state.batch, 1, 1 << 20, "samples per step, of all tasks (256)"},
	{"--hidden", "H", NUMBER, &state.hidden, 8, MOST_HIDDEN, "size of the hidden layer (128)"},
	{"--seed", "S", NUMBER, &state.seed, 0, UINT64_MAX, "start of all random numbers (1)"},
	{"--save-every", "K", NUMBER, &option.save_every, 1, UINT32_MAX,
		"save every K steps and at the end"},
	{"--done-model", "FILE", TEXT, &option.done_model, 0, 0,
		"write the model to FILE at the end"},
	{"--step-ms", "MS", NUMBER, &option.step_ms, 0, 3600000, "a step takes at least MS"},
	{"--slow-task", "I:MS", PAIR, &option.slow_task, 0, 3600000,
		"task I takes MS longer per step"},
	{"--save-seconds", "X", SECONDS, &option.save_seconds, 0, 0, "a save takes X longer"},
	{"--crash-at", "STEP:I", PAIR, &option.crash_at, 0, MOST_TASKS - 1, "task I fails at STEP"},
	{"--address", "HOST", TEXT, &option.address, 0, 0,
		"this machine as the others reach it (127.0.0.1)"},
	{"--start-seconds", "X", SECONDS, &option.start_seconds, 0, 0,
		"how long to wait for all tasks (60)"},
	{"--no-board", NULL, FLAG, &option.no_board, 0, 0, "never ask whether to stop"},
};
static const size_t rows = sizeof row / sizeof *row;

static _Noreturn void refuse(const char *format, ...) LIKE_PRINTF(1);
static _Noreturn void refuse(const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	fputs("train: ", stderr);
	vfprintf(stderr, format, arguments);
	fputs("; see train --help\n", stderr);
	va_end(arguments);
	exit(2);
}

static _Noreturn void help(void)
{
	puts("usage: train --dir DIR [OPTION...]\n"
	     "Trains a small language model, as one task of several: PREEMPT_TASK of PREEMPT_TASKS,\n"
	     "or as a Slurm step says, or alone. Each start of several needs a new PREEMPT_ATTEMPT.\n");
	for (size_t i = 0; i < rows; i++)
		printf("  %-15s %-7s %s\n", row[i].name, row[i].value ? row[i].value : "",
			row[i].help);
	puts("\nExit codes: 0 trained to the end, 1 error, 2 wrong usage; otherwise what\n"
	     "preempt_saved returns (42: saved, run me again).");
	exit(0);
}

// Reads the decimal number that is all of the text, up to the given end.
static bool parse(const char *text, char end, uint64_t *value)
{
	char *rest;
	errno = 0;
	*value = strtoull(text, &rest, 10);
	return *text >= '0' && *text <= '9' && *rest == end && !errno;
}

static uint64_t number(const char *name, const char *text, char end, uint64_t least, uint64_t most)
{
	uint64_t value;
	if (!parse(text, end, &value) || value < least || value > most)
		refuse("%s: %s is not a number from %" PRIu64 " to %" PRIu64, name, text, least,
			most);
	return value;
}

static void set(const struct row *r, const char *value)
{
	uint64_t *numbers = r->target;
	const char *colon = strchr(value, ':');
	char *rest;
	if (!*value)
		refuse("%s is empty", r->name);
	switch (r->kind) {
	case FLAG: *(bool *)r->target = true; break;
	case TEXT: *(const char **)r->target = value; break;
	case NUMBER: numbers[0] = number(r->name, value, '\0', r->least, r->most); break;
	case PAIR:
		if (!colon)
			refuse("%s: %s is not %s", r->name, value, r->value);
		numbers[0] = number(r->name, value, ':', 0, UINT32_MAX);
		numbers[1] = number(r->name, colon + 1, '\0', r->least, r->most);
		break;
	case SECONDS:
		*(double *)r->target = strtod(value, &rest);
		if (*rest || value[strspn(value, "0123456789.")] || strlen(value) > 8)
			refuse("%s: %s is not a number of seconds", r->name, value);
		break;
	}
}

static void read_options(char **word)
{
	while (*++word) {
		if (!strcmp(*word, "--help"))
			help();
		size_t i = 0, length = strcspn(*word, "=");
		while (i < rows &&
			(strlen(row[i].name) != length || strncmp(row[i].name, *word, length)))
			i++;
		if (i == rows)
			refuse("unknown option %s", *word);
		const char *value = (*word)[length] ? *word + length + 1 : NULL;
		if (row[i].kind == FLAG && value)
			refuse("%s takes no value", row[i].name);
		if (row[i].kind != FLAG && !value && !(value = *++word))
			refuse("%s needs a value", row[i].name);
		set(&row[i], value ? value : "yes");
	}
	if (!option.dir)
		refuse("--dir is missing");
	if (state.hidden % 8)
		refuse("--hidden: %" PRIu64 " is not a multiple of 8", state.hidden);
}

static void find_task(const char *task_name, const char *tasks_name)
{
	const char *i = getenv(task_name), *n = getenv(tasks_name);
	if (!i || !n)
		refuse("of %s and %s only one is set", task_name, tasks_name);
	tasks = (uint32_t)number(tasks_name, n, '\0', 1, MOST_TASKS);
	task = (uint32_t)number(task_name, i, '\0', 0, tasks - 1);
}

// Which task this is, and of which start of the job: from preempt-run, else from Slurm.
static void find_place(void)
{
	const char *run = getenv("PREEMPT_RUN"), *start = getenv("PREEMPT_ATTEMPT");
	const char *job = getenv("SLURM_JOB_ID"), *step = getenv("SLURM_STEP_ID");
	const char *restarts = getenv("SLURM_RESTART_COUNT");
	bool in_slurm_step = job && step && strlen(step) < 10; // the batch shell is not a task

	if (getenv("PREEMPT_TASK") || getenv("PREEMPT_TASKS"))
		find_task("PREEMPT_TASK", "PREEMPT_TASKS");
	else if (in_slurm_step)
		find_task("SLURM_PROCID", "SLURM_STEP_NUM_TASKS");

	if (start)
		snprintf(attempt, sizeof attempt, "%.200s-%.20s", run ? run : "run", start);
	else if (in_slurm_step)
		snprintf(attempt, sizeof attempt, "%.20s.%.20s-%.20s", job, step,
			restarts ? restarts : "0");
	else if (tasks > 1)
		refuse("%" PRIu32 " tasks need a PREEMPT_ATTEMPT, another one at each start; "
		       "preempt-run sets it",
			tasks);
	if (*attempt == '.' || strchr(attempt, '/'))
		refuse("%s cannot be a file name; change PREEMPT_RUN", attempt);
	if (state.batch < tasks)
		refuse("--batch: fewer samples than tasks");
}

// --------------------------------------------------------------------------------- checkpoints

// Runs ckpt-rotate VERB DIR/ckpt [MORE] [--or OTHERWISE] and takes the line it prints.
static void ckpt_rotate(
	char answer[PATH_SIZE], const char *verb, const char *more, const char *otherwise)
{
	char directory[PATH_SIZE];
	path_of(directory, "%s/ckpt", option.dir);
	const char *argument[] = {
		"ckpt-rotate", verb, directory, more, otherwise ? "--or" : NULL, otherwise, NULL};
	posix_spawn_file_actions_t actions;
	int channel[2], status = 0, error;
	pid_t child;
	if (pipe2(channel, O_CLOEXEC) || posix_spawn_file_actions_init(&actions) ||
		posix_spawn_file_actions_adddup2(&actions, channel[1], STDOUT_FILENO))
		fail("cannot prepare to run ckpt-rotate: %s", strerror(errno));
	error = posix_spawnp(&child, argument[0], &actions, NULL, (char **)argument, environ);
	if (error)
		fail("cannot run ckpt-rotate: %s; is it in PATH?", strerror(error));
	posix_spawn_file_actions_destroy(&actions);
	close(channel[1]);

	FILE *output = fdopen(channel[0], "r");
	size_t size = output ? fread(answer, 1, PATH_SIZE - 1, output) : 0;
	answer[size] = '\0';
	answer[strcspn(answer, "\n")] = '\0';
	if (output)
		fclose(output);
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			fail("cannot wait for ckpt-rotate: %s", strerror(errno));
	if (WIFSIGNALED(status))
		fail("ckpt-rotate %s died of signal %d", verb, WTERMSIG(status));
	if (WEXITSTATUS(status))
		fail("ckpt-rotate %s failed with exit code %d", verb, WEXITSTATUS(status));
}

static void save(void)
{
	char directory[PATH_SIZE], path[PATH_SIZE], answer[PATH_SIZE], step[24];
	snprintf(step, sizeof step, "%" PRIu64, state.step);
	ckpt_rotate(directory, "begin", step, NULL);
	write_model(path_of(path, "%s/model.bin", directory));
	sleep_for(option.save_seconds);
	ckpt_rotate(answer, "commit", step, NULL);
	printf("saved step %s\n", step);
}

// Back to the newest complete checkpoint, if there is one.
static void resume(void)
{
	char path[PATH_SIZE], answer[PATH_SIZE];
	ckpt_rotate(answer, "latest", "--step", "none");
	if (!strcmp(answer, "none"))
		return;
	uint64_t step;
	if (!parse(answer, '\0', &step))
		fail("ckpt-rotate says that the latest step is \"%s\"", answer);
	ckpt_rotate(answer, "latest", NULL, NULL);
	read_model(path_of(path, "%s/model.bin", answer), step);
	saved = step;
	printf("resumed at step %" PRIu64 " from %s\n", step, answer);
	if (step > option.steps)
		fail("step %" PRIu64 " is after the last, --steps %" PRIu64, step, option.steps);
}

// ------------------------------------------------------------------------------------ the training

static void make_directory(const char *path, mode_t mode)
{
	if (mkdir(path, mode) && errno != EEXIST)
		fail("cannot make %s: %s", path, strerror(errno));
}

// Reads the text, meets the other tasks, and begins where the newest checkpoint is.
static void start(void)
{
	char meeting_point[PATH_SIZE], path[PATH_SIZE];
	if (access(option.dir, W_OK))
		fail("cannot write to the directory %s: %s", option.dir, strerror(errno));
	make_model();
	if (tasks > 1) {
		make_directory(path_of(path, "%s/rendezvous", option.dir), 0700);
		path_of(meeting_point, "%s/%s", path, attempt);
		make_directory(meeting_point, 0700);
	}
	uint64_t settings = hash(HASH_START, &state, sizeof state);
	settings = hash(settings, &option.steps, sizeof option.steps);
	connect_ring(meeting_point, option.address, option.start_seconds, settings);
	if (task == 0) {
		make_directory(path_of(path, "%s/ckpt", option.dir), 0777);
		resume();
	}
	share_model();
	broadcast(&saved, sizeof saved);
}

static void train(float *gradient)
{
	double begin = now();
	compute_gradient(gradient);
	if (option.slow_task[0] == task)
		sleep_for((double)option.slow_task[1] / 1000);
	all_reduce(gradient, gradient_size);
	update_model(gradient);
	sleep_for(begin + (double)option.step_ms / 1000 - now());
	if (task == 0 && (state.step % 20 == 0 || state.step == option.steps))
		printf("step %" PRIu64 " loss %.4f\n", state.step, (double)state.loss);
}

static void report(void)
{
	if (option.done_model) {
		char temporary[PATH_SIZE];
		write_model(path_of(temporary, "%s.new", option.done_model));
		if (rename(temporary, option.done_model))
			fail("cannot write %s: %s", option.done_model, strerror(errno));
	}
	uint32_t bits;
	memcpy(&bits, &state.loss, sizeof bits);
	printf("loss %.4f on unseen text\n", loss_on_unseen_text());
	printf("done step %" PRIu64 " loss %.4f (%08" PRIx32 ")\n", state.step, (double)state.loss,
		bits);
	if (state.counter != tasks * option.steps)
		fail("counter %" PRIu64 " is not %" PRIu32 " x %" PRIu64
		     ": steps were lost or done twice",
			state.counter, tasks, option.steps);
	printf("counter %" PRIu64 " = %" PRIu32 " x %" PRIu64 "\n", state.counter, tasks,
		option.steps);
}

int main(int count, char **arguments)
{
	(void)count;
	read_options(arguments);
	find_place();
	setvbuf(stdout, NULL, _IOLBF, 0);
	start();

	float *gradient = allocate(gradient_size, sizeof *gradient);
	int code = 0;
	for (;;) {
		bool end = state.step == option.steps;
		bool due = option.save_every && state.step && state.step != saved &&
			   (end || state.step % option.save_every == 0);
		if (option.crash_at[1] == task && option.crash_at[0] == state.step)
			fail("crashed at step %" PRIu64 ", as --crash-at says", state.step);

		// When asked to save, all tasks are at this same step and hold the same weights:
		// task 0 saves for all. Then preempt_saved says whether to leave, and when.
		bool asked = !option.no_board && !end && preempt_step(state.step) == PREEMPT_SAVE;
		if (asked || due) {
			if (task == 0 && state.step != saved)
				save();
			saved = state.step;
			code = option.no_board ? 0 : preempt_saved(state.step);
		}
		if (code || end)
			break;
		train(gradient);
	}
	if (task == 0 && !code)
		report();
	free(gradient);
	free_model();
	if (fflush(stdout) || ferror(stdout))
		fail("cannot write to standard output: %s", strerror(errno));
	return code;
}
