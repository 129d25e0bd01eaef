/* SPDX-License-Identifier: MIT */
#include "platform/slurm.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"

/* ---- What the environment says ---- */

#define STEP_MAX 0xfffffff0ull /* Slurm's special steps have numbers above the real ones */
static const struct {
	const char *step;
	uint64_t number;
	const char *text;
} shells[] = {{"batch", 0xfffffffb, "the batch shell"},
	{"interactive", 0xfffffffa, "the interactive shell"},
	{"extern", 0xfffffffc, "a login shell"}};
enum { SHELLS = sizeof(shells) / sizeof(shells[0]) };

/*
 * What shell of a Slurm job this is; NULL: SLURM_STEP_ID is a real step.
 *
 * Measured with Slurm 22.05: the batch shell has SLURM_PROCID=0 and no SLURM_STEP_ID; the shell of
 * salloc on the login node has neither; the interactive step has 4294967290. A job that was
 * submitted from inside a step keeps that step's SLURM_STEP_* in its batch shell: signs->slurm_step
 * shows that, and so does a step with more machines than the job.
 */
static const char *find_shell(const struct signs *signs)
{
	uint64_t step, of_step = 0, of_job = 0;
	const char *above = strchr(signs->slurm_step, '.');
	for (size_t i = 0; above && i < SHELLS; i++)
		if (!strcmp(above + 1, shells[i].step))
			return shells[i].text;
	enum status status =
		signs_number(signs, "SLURM_STEP_ID", STEP_MAX, UINT32_MAX, &step, NULL);
	if (status == STATUS_NO)
		return signs_value(signs, "SLURM_PROCID") ? shells[0].text : "the salloc shell";
	for (size_t i = 0; status == STATUS_OK && i < SHELLS; i++)
		if (step == shells[i].number)
			return shells[i].text;
	(void)signs_number(signs, "SLURM_STEP_NUM_NODES", 1, UINT32_MAX, &of_step, NULL);
	(void)signs_number(signs, "SLURM_JOB_NUM_NODES", 1, UINT32_MAX, &of_job, NULL);
	return status == STATUS_OK || (of_job && of_step > of_job) ? shells[0].text : NULL;
}

bool slurm_is_task(const struct signs *signs)
{
	return signs_value(signs, "SLURM_JOB_ID") && !find_shell(signs);
}

enum status slurm_shell_find(
	const struct signs *signs, struct slurm_shell *shell, struct error *err)
{
	struct slurm_shell found = {.machines = 1};
	enum status status = signs_number(signs, "SLURM_JOB_ID", 1, UINT32_MAX, &found.job, err);
	if (status == STATUS_OK)
		found.kind = find_shell(signs);
	if (status != STATUS_OK || !found.kind)
		return status == STATUS_OK ? STATUS_NO : status;
	found.batch = found.kind == shells[0].text;
	status = signs_number(signs, "SLURM_JOB_NUM_NODES", 1, UINT32_MAX, &found.machines, err);
	found.tasks = found.machines; /* srun starts one task on each machine by default */
	if (!status_is_error(status))
		status = signs_number(signs, "SLURM_NTASKS", 1, UINT32_MAX, &found.tasks, err);
	if (status_is_error(status))
		return status;
	*shell = found;
	return STATUS_OK;
}

enum status slurm_launch(const struct signs *signs, char launch[32], struct error *err)
{
	uint64_t job = 0, restarts = 0, step;
	unsigned long long launched = 0;
	const char *given = signs_value(signs, "PREEMPT_LAUNCH");
	*launch = '\0';
	enum status status = signs_number(signs, "SLURM_JOB_ID", 1, UINT32_MAX, &job, err);
	if (status == STATUS_OK)
		status = signs_number(signs, "SLURM_RESTART_COUNT", 0, UINT32_MAX, &restarts, err);
	if (job && !status_is_error(status))
		status = signs_number(signs, "SLURM_STEP_ID", 0, UINT32_MAX, &step, err);
	if (status_is_error(status))
		return status;
	if (!job)
		return STATUS_OK;
	/* sbatch passes on all variables: a job that a task submits has those of that task. */
	if (given && sscanf(given, "slurm:%20llu:", &launched) == 1 && launched && launched != job)
		return error_set(err, STATUS_USAGE,
			"the PREEMPT_ variables are left over from Slurm job %llu, and this is job "
			"%llu: put `unset ${!PREEMPT_@}` at the top of the batch script",
			launched, (unsigned long long)job);
	snprintf(launch, 32, "slurm:%llu:%llu", (unsigned long long)job,
		(unsigned long long)restarts);
	return STATUS_OK;
}

enum status slurm_job_name(const struct signs *signs, bool whole, char name[64], struct error *err)
{
	uint64_t job, array, index, leader;
	enum status status = signs_number(signs, "SLURM_JOB_ID", 0, UINT32_MAX, &job, err);
	if (status != STATUS_OK)
		return status;
	if (signs_number(signs, "SLURM_ARRAY_JOB_ID", 0, UINT32_MAX, &array, NULL) == STATUS_OK &&
		signs_number(signs, "SLURM_ARRAY_TASK_ID", 0, UINT32_MAX, &index, NULL) ==
			STATUS_OK)
		snprintf(name, 64, "%llu_%llu", (unsigned long long)array,
			(unsigned long long)index);
	else if (whole &&
		 signs_number(signs, "SLURM_HET_JOB_ID", 0, UINT32_MAX, &leader, NULL) == STATUS_OK)
		snprintf(name, 64, "%llu", (unsigned long long)leader);
	else
		snprintf(name, 64, "%llu", (unsigned long long)job);
	return STATUS_OK;
}

/* ---- Its answers ---- */

/* Read seconds since 1970, or a word for none: then *utc is 0. False: it is neither. */
static bool read_time(const char *text, int64_t *utc)
{
	uint64_t seconds;
	*utc = 0;
	if (parse_decimal(text, &seconds) && seconds < (uint64_t)1 << 40)
		*utc = (int64_t)seconds * 1000;
	return *utc || !strcmp(text, "NONE") || !strcmp(text, "N/A") || !strcmp(text, "Unknown");
}

static bool read_line(const char *line, struct slurm_job *job)
{
	struct slurm_job read = {0};
	char end[32], start[32] = "N/A";
	int length = 0, whole = 0;
	if (sscanf(line, "%31[A-Z_] %31s%n %31s%n", read.state, end, &length, start, &whole) < 2 ||
		line[whole ? whole : length] || !read_time(end, &read.end) ||
		!read_time(start, &read.start))
		return false;
	*job = read;
	return true;
}

bool slurm_read_job(const char *answer, struct slurm_job *job)
{
	bool found = false;
	while (!found && *answer) {
		char line[128];
		int length = (int)strcspn(answer, "\n");
		snprintf(line, sizeof(line), "%.*s", length, answer);
		found = read_line(line, job);
		answer += length + (answer[length] == '\n');
	}
	return found;
}

/* ---- The time left ---- */

int64_t slurm_utc(int64_t utc, int64_t start, int64_t running)
{
	return start && utc < start + running ? start + running : utc;
}

struct slurm_estimate slurm_estimate_left(
	const struct slurm_job *job, int signal, int64_t known_end, int64_t lead, int64_t utc)
{
	static const struct {
		const char *state, *why;
	} over[] = {
		{"CANCELLED", "the job is cancelled"},
		{"COMPLETING", "the job is ending"},
		{"TIMEOUT", "the job has reached its time limit"},
		{"DEADLINE", "the job has reached its deadline"},
		{"NODE_FAIL", "a node of the job has failed"},
		{"FAILED", "the job has failed"},
		{"OUT_OF_MEMORY", "the job is out of memory"},
	};
	for (size_t i = 0; i < sizeof(over) / sizeof(over[0]); i++)
		if (!strcmp(job->state, over[i].state))
			return (struct slurm_estimate){-1, over[i].why, false};
	bool preempted = !strcmp(job->state, "PREEMPTED");
	if (job->end == 0)
		return (struct slurm_estimate){-1,
			preempted ? "the job is preempted"
				  : "Slurm gives no end for a job without a time limit",
			false};
	int64_t left = job->end > utc ? job->end - utc : 0;
	/* Slurm gives ends in whole seconds. */
	if (preempted || (known_end && job->end < known_end - 1000))
		return (struct slurm_estimate){left ? left : -1, "the job is preempted", left == 0};
	if (left == 0) /* KILL follows after KillWait, which is not known */
		return (struct slurm_estimate){-1, "the job has reached its time limit", false};
	if (left <= lead || signal != SIGTERM)
		return (struct slurm_estimate){left, "the job is near its time limit", false};
	return (struct slurm_estimate){-1, "the job's end was not moved", false};
}
