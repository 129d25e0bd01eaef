/* SPDX-License-Identifier: MIT */
/*
 * The smallest training in C that saves and stops together with the other tasks, and resumes from
 * there:
 *
 *   cc -o loop examples/loop.c $(pkg-config --cflags --libs preempt)
 *   preempt-run --run loop -n 2 -- ./loop ckpt 1000
 */
#include <inttypes.h>
#include <preempt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *ckpt;
static uint64_t total, every = 100, state;

static void train(uint64_t s)
{
	state = (state * 31 + s) % 1000003;
	usleep(10000);
}

static bool write_state(const char *directory)
{
	char path[4200];
	snprintf(path, sizeof path, "%s/state", directory);
	FILE *file = fopen(path, "w");
	bool written = file && fprintf(file, "%" PRIu64 "\n", state) > 0;
	return file && fclose(file) == 0 && written;
}

static bool read_state(const char *directory)
{
	char path[4200];
	snprintf(path, sizeof path, "%s/state", directory);
	FILE *file = fopen(path, "r");
	bool read = file && fscanf(file, "%" SCNu64, &state) == 1;
	return file && fclose(file) == 0 && read;
}

static uint64_t saved = UINT64_MAX; /* the step of the newest checkpoint; UINT64_MAX: none */
static char answer[4096];

/* The first line that ckpt-rotate prints. If it fails, this process leaves with its code. */
static char *rotate(const char *command, const char *words)
{
	snprintf(answer, sizeof answer, "ckpt-rotate %s '%s' %s", command, ckpt, words);
	FILE *pipe = popen(answer, "r");
	if (pipe && !fgets(answer, sizeof answer, pipe))
		*answer = '\0';
	int status = pipe ? pclose(pipe) : -1;
	if (status != 0)
		exit(WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILURE);
	answer[strcspn(answer, "\n")] = '\0';
	return answer;
}

static void save(uint64_t s) /* each task writes its own part of the checkpoint */
{
	char words[64];
	if (s == saved)
		return;
	snprintf(words, sizeof words, "%" PRIu64 " --sharded", s);
	if (!write_state(rotate("begin", words)))
		exit(EXIT_FAILURE);
	rotate("commit", words);
	saved = s;
}

static void run(void)
{
	uint64_t start = 0;
	if (*rotate("latest", "--step --or ''")) {
		start = saved = strtoull(answer, NULL, 10);
		strcat(strcat(rotate("latest", ""), "/task-"), getenv("PREEMPT_TASK"));
		if (!read_state(answer))
			exit(EXIT_FAILURE);
	}
	for (uint64_t s = start; s < total; s++) { /* s steps are finished */
		if (preempt_step(s) || (s > start && s % every == 0)) {
			save(s);
			int code = preempt_saved(s);
			if (code)
				exit(code);
		}
		train(s);
	}
}

int main(int argc, char **argv)
{
	if (argc != 3) {
		fprintf(stderr, "usage: %s CHECKPOINTS STEPS\n", argv[0]);
		return 2;
	}
	ckpt = argv[1];
	total = strtoull(argv[2], NULL, 10);
	run();
	printf("task %s: %" PRIu64 "\n", getenv("PREEMPT_TASK"), state);
	return 0;
}
