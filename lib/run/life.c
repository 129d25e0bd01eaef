/* SPDX-License-Identifier: MIT */
#include "run/life.h"

#include <stdio.h>
#include <string.h>

#include "run/launchers.h"

#define WORD_MAX 128
#define PART_MAX 512

/* Write the text for the line of the life (life_derive): all restarts of a job have the same. */
static void write_line(const struct identity_environment *environment,
	const struct slurm_start *job, char line[PART_MAX])
{
	const char *cluster = environment_value(environment, "SLURM_CLUSTER_NAME");
	snprintf(line, PART_MAX, "slurm:%.100s:%llu", cluster ? cluster : "",
		(unsigned long long)job->job);
}

/* Write the start of the job. Its time is needed: a controller without its state reuses numbers. */
static void write_job(const struct identity_environment *environment, const struct slurm_start *job,
	char part[PART_MAX])
{
	const char *start = environment_value(environment, "SLURM_JOB_START_TIME");
	write_line(environment, job, part);
	size_t length = strlen(part);
	snprintf(part + length, PART_MAX - length, ":%.32s:%llu", start ? start : "",
		(unsigned long long)job->restarts);
}

/*
 * Add to part which start of torchrun's workers this is. Each machine's torchrun counts only the
 * failures that it saw itself. So on several machines no number is the same in all workers and
 * differs between their starts: refuse, unless torchrun never restarts them.
 */
static enum status add_torchrun(
	const struct identity_environment *environment, char part[PART_MAX], struct error *err)
{
	char launch[128];
	uint64_t port = 0, machines = 1, restarts = 1;
	size_t length = strlen(part);
	if (!environment_value(environment, launcher_torchrun.marker))
		return STATUS_OK;
	(void)environment_number(
		environment, "GROUP_WORLD_SIZE", 1, IDENTITY_TASKS_MAX, &machines, NULL);
	(void)environment_number(
		environment, "TORCHELASTIC_MAX_RESTARTS", 0, UINT32_MAX, &restarts, NULL);
	if (machines > 1 && restarts > 0)
		return error_set(err, STATUS_USAGE,
			"--sharded: torchrun on several machines may restart its workers "
			"without a trace in their environment: use --max-restarts 0 (and "
			"preempt-run --restarts), or let rank 0 generate a word at each start "
			"and send it to all ranks: --life WORD");
	enum status status =
		launcher_launch(&launcher_torchrun, environment, launch, sizeof(launch), err);
	/* When machines join or leave, torchrun counts no restart: only the port differs. */
	if (status == STATUS_OK || status == STATUS_NO)
		status = environment_number(environment, "MASTER_PORT", 1, 65535, &port, err);
	if (status == STATUS_OK || status == STATUS_NO)
		snprintf(part + length, PART_MAX - length, "%s%s:%llu", length ? "+" : "", launch,
			(unsigned long long)port);
	return status == STATUS_NO ? STATUS_OK : status;
}

/* Find the life by a word: an agent's PREEMPT_LIFE, or any other word. */
static enum status find_by_word(const struct identity_environment *environment, const char *word,
	const struct slurm_start *job, char life[LIFE_SIZE], struct error *err)
{
	char part[PART_MAX] = "", whole[PART_MAX + WORD_MAX + 2];
	bool drawn = life_is_valid(word);
	if (strlen(word) > WORD_MAX)
		return error_set(
			err, STATUS_USAGE, "--life (PREEMPT_LIFE): at most %d bytes", WORD_MAX);
	/* A word exported before sbatch is the same in all restarts: add the start of the job. */
	if (job->job && !(job->launched == job->job && drawn))
		write_job(environment, job, part);
	if (drawn && slurm_start_check(job, err) != STATUS_OK)
		return STATUS_USAGE;
	/* A word inherited from the environment is the same after each torchrun restart: add
	 * torchrun's start to it. A word passed with --life belongs to this start already. */
	const char *inherited = environment_value(environment, "PREEMPT_LIFE");
	enum status status = inherited && strcmp(inherited, word) == 0
				     ? add_torchrun(environment, part, err)
				     : STATUS_OK;
	if (status != STATUS_OK)
		return status;
	if (drawn && !*part) {
		memcpy(life, word, LIFE_SIZE);
	} else if (drawn) {
		life_derive_part(word, part, life);
	} else {
		snprintf(whole, sizeof(whole), "%s %s", word, part);
		life_derive(word, whole, life);
	}
	return STATUS_OK;
}

/*
 * TORCHELASTIC_ERROR_FILE is DIRECTORY/attempt_N/RANK/error.json, and torchrun makes another
 * DIRECTORY (mkdtemp) for each of its own starts. Its run id cannot be used: by default it is
 * "none".
 */
static bool find_torchrun_directory(
	const struct identity_environment *environment, char directory[PART_MAX])
{
	uint64_t machines = 0;
	const char *file = environment_value(environment, "TORCHELASTIC_ERROR_FILE");
	const char *attempt = file ? strstr(file, "/attempt_") : NULL;
	for (const char *next = attempt; next; next = strstr(next + 1, "/attempt_"))
		attempt = next;
	if (!attempt || attempt == file || attempt - file >= PART_MAX / 2 ||
		environment_number(environment, "GROUP_WORLD_SIZE", 1, IDENTITY_TASKS_MAX,
			&machines, NULL) != STATUS_OK ||
		machines != 1)
		return false;
	snprintf(directory, PART_MAX, "%.*s", (int)(attempt - file), file);
	return true;
}

enum status life_find(const struct identity_environment *environment, const char *word,
	char life[LIFE_SIZE], struct error *err)
{
	struct slurm_start job;
	char part[PART_MAX] = "", line[PART_MAX];
	uint64_t step = 0;
	enum status status = slurm_start_read(environment, &job, err);
	if (status != STATUS_OK)
		return status;
	if (word && *word)
		return find_by_word(environment, word, &job, life, err);
	if (job.job && launcher_slurm.present(environment) &&
		environment_number(environment, "SLURM_STEP_ID", 0, UINT32_MAX, &step, NULL) ==
			STATUS_OK) {
		write_line(environment, &job, line);
		write_job(environment, &job, part);
		size_t length = strlen(part);
		snprintf(part + length, PART_MAX - length, "+step:%llu", (unsigned long long)step);
	} else if (find_torchrun_directory(environment, part)) {
		memcpy(line, part, sizeof(line));
	} else {
		return error_set(err, STATUS_USAGE,
			"--sharded: this start of the job cannot be told from earlier starts, "
			"and shards of two starts must not be mixed: use preempt-run, or "
			"`export PREEMPT_LIFE=$(uuidgen)` before each start of all tasks");
	}
	status = add_torchrun(environment, part, err);
	if (status == STATUS_OK)
		life_derive(line, part, life);
	return status;
}
