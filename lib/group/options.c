/* SPDX-License-Identifier: MIT */
#include "group/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/file.h"
#include "base/process.h"
#include "base/text.h"
#include "group/life.h"
#include "store/url.h"

struct group_options group_options;

/* clang-format off */
/* Who and where: what every program has. */
#define IDENTITY_ROWS \
	{0, "store", "URL", "where the keys are: sqlite:PATH or PATH", ARGS_TEXT, \
		&group_options.store, "PREEMPT_STORE", 0, 0, NULL}, \
	{0, "run", "NAME", "the job across restarts (default: the scheduler's job)", ARGS_NAME, \
		&group_options.run, "PREEMPT_RUN", 0, 0, NULL}, \
	{0, "attempt", "K", "which start of the run (default: the newest)", ARGS_UNSIGNED, \
		&group_options.attempt, "PREEMPT_ATTEMPT", 1, 999999999, \
		&group_options.attempt_given}, \
	{0, "task", "I", "which task this is, from 0 (default: $PREEMPT_TASK, the launcher's)", \
		ARGS_UNSIGNED, &group_options.task, NULL, 0, IDENTITY_TASKS_MAX - 1, \
		&group_options.task_given}, \
	{0, "tasks", "N", "how many tasks there are (default: the launcher's)", ARGS_UNSIGNED, \
		&group_options.tasks, "PREEMPT_TASKS", 1, IDENTITY_TASKS_MAX, \
		&group_options.tasks_given}

const struct args_option group_identity_table[] = {
	IDENTITY_ROWS,
	{0},
};

const struct args_option group_option_table[] = {
	IDENTITY_ROWS,
	{0, "timeout", "D", "give up after this long: 90, 90s, 2m, 250ms", ARGS_DURATION,
		&group_options.timeout, NULL, 0, 0, &group_options.timeout_given},
	{0, "json", NULL, "answer in JSON", ARGS_FLAG, &group_options.json, NULL, 0, 0, NULL},
	{0},
};
/* clang-format on */

static const char *lookup_own(void *context, const char *name)
{
	(void)context;
	return getenv(name);
}

/* One small file of /proc/PID, NULs as spaces. */
static bool read_proc(pid_t pid, const char *name, char *to, size_t size)
{
	char path[64];
	struct text text = {.limit = size - 1};
	snprintf(path, sizeof(path), "/proc/%ld/%s", (long)pid, name);
	bool read = file_read_whole(path, size - 1, &text, NULL) == STATUS_OK && text.length;
	if (read) {
		memcpy(to, text.data, text.length);
		to[text.length] = '\0';
		for (size_t i = 0; i < text.length; i++)
			if (to[i] == '\0' || to[i] == '\n')
				to[i] = ' ';
	}
	text_release(&text);
	return read;
}

/*
 * What the slurmstepd above us says of itself: its command line is "slurmstepd: [9.batch]". The
 * environment alone cannot tell, because sbatch passes SLURM_STEP_ID on to the jobs it submits.
 */
static bool find_slurm_step(char *step, size_t size)
{
	pid_t pid = getppid();
	for (int depth = 0; depth < 100 && pid > 1; depth++) {
		char text[4096];
		long parent;
		if (read_proc(pid, "comm", text, sizeof(text)) && !strcmp(text, "slurmstepd ")) {
			char format[32];
			snprintf(format, sizeof(format), "slurmstepd: [%%%zu[^] ]", size - 1);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
			return read_proc(pid, "cmdline", text, sizeof(text)) &&
			       sscanf(text, format, step) == 1;
#pragma GCC diagnostic pop
		}
		if (!read_proc(pid, "stat", text, sizeof(text)))
			return false;
		const char *name_end = strrchr(text, ')');
		if (!name_end || sscanf(name_end, ") %*c %ld", &parent) != 1)
			return false;
		pid = (pid_t)parent;
	}
	return false;
}

/* "HOST-PID-HASH": the hash is of all that makes this process one of its kind. */
static bool make_nonce(char *nonce, size_t size)
{
	struct process_identity self = {0};
	char key[160], host[33];
	if (process_identify(0, &self, NULL) != STATUS_OK)
		return false;
	snprintf(key, sizeof(key), "%s %llu %ld %llu", self.boot,
		(unsigned long long)self.pid_namespace, (long)self.pid,
		(unsigned long long)self.start);
	snprintf(host, sizeof(host), "%.*s", (int)strcspn(self.host, "."), self.host);
	for (char *c = host; *c; c++)
		if (!strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-", *c))
			*c = '_';
	snprintf(nonce, size, "%s-%ld-%016llx", host, (long)self.pid,
		(unsigned long long)XXH64(key, strlen(key), 0));
	return true;
}

enum status group_identify(
	enum identity_need need, uint64_t local, struct identity *identity, struct error *err)
{
	char step[64], nonce[96];
	struct identity_environment environment = {.lookup = lookup_own};
	struct identity_request request = {
		.need = need,
		.run = group_options.run,
		.task_given = group_options.task_given,
		.task = group_options.task,
		.tasks_given = group_options.tasks_given,
		.tasks = group_options.tasks,
		.local = local,
	};
	if (getenv("SLURM_JOB_ID") && find_slurm_step(step, sizeof(step)))
		environment.slurm_step = step;
	if (need == IDENTITY_START && make_nonce(nonce, sizeof(nonce)))
		environment.nonce = nonce;
	return identity_find(&environment, &request, identity, err);
}

enum status group_own_task(uint64_t *task, struct error *err)
{
	return identity_own_task(
		&(struct identity_environment){.lookup = lookup_own}, task, NULL, err);
}

enum status group_life(const char *word, char life[LIFE_SIZE], struct error *err)
{
	char step[64];
	struct identity_environment environment = {.lookup = lookup_own};
	if (getenv("SLURM_JOB_ID") && find_slurm_step(step, sizeof(step)))
		environment.slurm_step = step;
	return life_find(&environment, word, life, err);
}

enum status group_store_url(const char *run, bool create, char *url, size_t size, struct error *err)
{
	const struct identity_environment environment = {.lookup = lookup_own};
	if (group_options.store && *group_options.store) {
		int length = snprintf(url, size, "%s", group_options.store);
		return length >= 0 && (size_t)length < size
			       ? STATUS_OK
			       : error_set(err, STATUS_USAGE, "--store: too long");
	}
	enum status status = identity_default_store(run, &environment, url, size, err);
	return status == STATUS_OK && create ? store_make_default(url, err) : status;
}
