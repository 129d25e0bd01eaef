/* SPDX-License-Identifier: MIT */
#include "notice/slurm.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"

bool slurm_read_time(const char *text, int64_t *utc)
{
	uint64_t seconds;
	*utc = 0;
	if (parse_decimal(text, &seconds) && seconds < (uint64_t)1 << 40)
		*utc = (int64_t)seconds * 1000;
	return *utc || !strcmp(text, "NONE") || !strcmp(text, "N/A") || !strcmp(text, "Unknown");
}

bool slurm_job_id(char id[64])
{
	const char *job = getenv("SLURM_JOB_ID");
	const char *array = getenv("SLURM_ARRAY_JOB_ID"), *index = getenv("SLURM_ARRAY_TASK_ID");
	uint64_t number;
	if (!job || !parse_decimal(job, &number))
		return false;
	if (array && parse_decimal(array, &number) && index && parse_decimal(index, &number))
		snprintf(id, 64, "%s_%s", array, index);
	else
		snprintf(id, 64, "%s", job);
	return true;
}

void slurm_question(const char *job, char *argv[SLURM_QUESTION])
{
	const char *const words[SLURM_QUESTION] = {"env", "SLURM_TIME_FORMAT=%s", "squeue", "-h",
		"-j", job, "--states=all", "-o", "%T %e %S", NULL};
	memcpy(argv, words, sizeof(words));
}

static bool read_line(const char *line, struct slurm_job *job)
{
	struct slurm_job read = {0};
	char end[32], start[32] = "N/A";
	int length = 0, whole = 0;
	if (sscanf(line, "%31[A-Z_] %31s%n %31s%n", read.state, end, &length, start, &whole) < 2 ||
		line[whole ? whole : length] || !slurm_read_time(end, &read.end) ||
		!slurm_read_time(start, &read.start))
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
