/* SPDX-License-Identifier: MIT */
#include "run/scheduler.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/capture.h"
#include "base/clock.h"
#include "base/parse.h"

#define CALL_LIMIT  30000 /* ms that one call of scontrol may take */
#define RETRY_PAUSE 2000  /* ms between two calls */

/* Innermost first; the last row is for where there is none. */
static const struct scheduler schedulers[] = {
	{.name = "Flux", .job = "FLUX_JOB_ID", .prefix = "flux"},
	{.name = "Slurm",
		.word = "slurm",
		.job = "SLURM_JOB_ID",
		.prefix = "slurm",
		.index = "SLURM_ARRAY_TASK_ID",
		.array_job = "SLURM_ARRAY_JOB_ID",
		.restarts = "SLURM_RESTART_COUNT",
		.scontrol = true,
		.note = "submit with --requeue"},
	{.name = "PBS", .job = "PBS_JOBID", .prefix = "pbs"},
	{.name = "LSF",
		.word = "lsf",
		.job = "LSB_JOBID",
		.prefix = "lsf",
		.index = "LSB_JOBINDEX",
		.no_index = "0",
		.again = 42,
		.note = "submit with -Q \"42\", or have 42 in REQUEUE_EXIT_VALUES"},
	{.name = "Grid Engine",
		.word = "sge",
		.job = "JOB_ID",
		.also = "SGE_ROOT",
		.prefix = "sge",
		.index = "SGE_TASK_ID",
		.no_index = "undefined",
		.restarts = "RESTARTED",
		.again = 99,
		.note = "submit with -r y; the queue must not forbid rerun"},
	{.name = "HTCondor",
		.word = "condor",
		.job = "_CONDOR_JOB_AD",
		.again = 85,
		.note = "put checkpoint_exit_code = 85 into the submit file"},
	{.name = "Kubernetes",
		.word = "k8s",
		.job = "KUBERNETES_SERVICE_HOST",
		.again = 42,
		.note = "let podFailurePolicy ignore exit code 42 and fail the Job on 93 (the example in "
			"the documentation of Kubernetes fails it on 42)"},
	{.word = "none"},
};
#define SCHEDULERS (sizeof(schedulers) / sizeof(schedulers[0]))

/* ---- The name of a job ---- */

/* An indexed pod's host name is its Job's name and its index. */
static bool kubernetes_job(const struct identity_environment *environment, char *job, size_t size)
{
	const char *index = environment_value(environment, "JOB_COMPLETION_INDEX");
	const char *host = environment_value(environment, "HOSTNAME");
	if (!index || !host)
		return false;
	size_t tail = strlen(index) + 1, length = strlen(host);
	if (length <= tail || host[length - tail] != '-' ||
		strcmp(host + length - tail + 1, index) != 0)
		return false;
	snprintf(job, size, "k8s-%.*s", (int)(length - tail), host);
	return parse_name(job, "", NULL) == STATUS_OK;
}

enum status scheduler_job(const struct identity_environment *environment, char *job, size_t size,
	const char **scheduler, struct error *err)
{
	for (const struct scheduler *s = schedulers; s->job; s++) {
		const char *id = environment_value(environment, s->job);
		if (!id || !s->prefix || (s->also && !environment_value(environment, s->also)))
			continue;
		const char *index = s->index ? environment_value(environment, s->index) : NULL;
		if (index && s->no_index && !strcmp(index, s->no_index))
			index = NULL;
		const char *array =
			index && s->array_job ? environment_value(environment, s->array_job) : NULL;
		int length = snprintf(job, size, "%s-%s%s%s", s->prefix, array ? array : id,
			index ? "_" : "", index ? index : "");
		/* "123[4].server" and the like */
		for (char *c = job; *c; c++)
			if (!strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				    "0123456789._:@+-",
				    *c))
				*c = '_';
		if (length < 0 || (size_t)length >= size)
			return error_set(err, STATUS_USAGE,
				"$%s: \"%.40s...\" is too long for a job's id", s->job, id);
		*scheduler = s->name;
		return STATUS_OK;
	}
	if (!kubernetes_job(environment, job, size))
		return STATUS_NO;
	*scheduler = "Kubernetes";
	return STATUS_OK;
}

/* ---- Which scheduler is to run it again ---- */

const struct scheduler *scheduler_find(const char *word)
{
	for (size_t i = 0; i < SCHEDULERS; i++)
		if (schedulers[i].word && !strcmp(schedulers[i].word, word))
			return &schedulers[i];
	return NULL;
}

static bool is_set(const char *variable)
{
	const char *value = getenv(variable);
	return value && *value;
}

const struct scheduler *scheduler_here(void)
{
	const struct scheduler *s = schedulers;
	while (s->job && !(s->word && is_set(s->job) && (!s->also || is_set(s->also))))
		s++;
	return s;
}

void scheduler_names(char *names, size_t size)
{
	*names = '\0';
	for (size_t i = 0; i < SCHEDULERS; i++) {
		size_t used = strlen(names);
		if (schedulers[i].word)
			snprintf(names + used, size - used, "%s%s", used ? ", " : "",
				schedulers[i].word);
	}
}

/* ---- Slurm ---- */

static bool number_of(const char *variable, uint64_t *number)
{
	const char *value = getenv(variable);
	return value && parse_unsigned(value, 0, UINT32_MAX, number, variable, NULL) == STATUS_OK;
}

enum status slurm_job_name(char name[64], struct error *err)
{
	uint64_t job, array, index;
	if (!is_set("SLURM_JOB_ID"))
		return STATUS_NO;
	if (!number_of("SLURM_JOB_ID", &job))
		return error_set(err, STATUS_USAGE, "$SLURM_JOB_ID is not a number");
	if (number_of("SLURM_ARRAY_JOB_ID", &array) && number_of("SLURM_ARRAY_TASK_ID", &index))
		snprintf(name, 64, "%llu_%llu", (unsigned long long)array,
			(unsigned long long)index);
	else if (number_of("SLURM_HET_JOB_ID", &array)) /* only its leader can be requeued */
		snprintf(name, 64, "%llu", (unsigned long long)array);
	else
		snprintf(name, 64, "%llu", (unsigned long long)job);
	return STATUS_OK;
}

static bool says(const struct text *output, const char *words)
{
	return strcasestr(text_string(output), words) != NULL;
}

/* The first line of what it said, for people. */
static void first_line(const struct text *output, char *line, size_t size)
{
	const char *said = text_string(output);
	snprintf(line, size, "%.*s", (int)strcspn(said, "\n"), said);
}

/* Exit code 0 is STATUS_OK; STATUS_NO: it says no; STATUS_TEMPORARY: could not ask. */
static enum status call(char *const *argv, int64_t deadline, struct text *output, struct error *err)
{
	int64_t limit = clock_after(CALL_LIMIT);
	char line[256];
	int code;
	enum status status =
		capture_run(argv, limit < deadline ? limit : deadline, output, &code, err);
	if (status != STATUS_OK) {
		if (status == STATUS_NOT_FOUND || status == STATUS_CANNOT_RUN)
			return status;
		return error_set(
			err, STATUS_TEMPORARY, "%s %s has not answered in time", argv[0], argv[1]);
	}
	if (code == 0)
		return STATUS_OK;
	first_line(output, line, sizeof(line));
	bool away = says(output, "Unable to contact") || says(output, "timed out") ||
		    says(output, "Connection") || says(output, "Communication") ||
		    says(output, "try again") || says(output, "credential");
	return error_set(err, away ? STATUS_TEMPORARY : STATUS_NO, "%s %s: %s", argv[0], argv[1],
		*line ? line : "failed with no output");
}

/* "KEY=VALUE " behind the job's own name, which may be anything. */
static bool field(const char *text, const char *key, char *value, size_t size)
{
	const char *from = strstr(text, " UserId=");
	from = strstr(from ? from : text, key);
	if (!from)
		return false;
	from += strlen(key);
	snprintf(value, size, "%.*s", (int)strcspn(from, " \n"), from);
	return *value != '\0';
}

enum status slurm_ask(const char *name, int64_t deadline, struct slurm_job *job, struct error *err)
{
	char *argv[] = {(char[]){"scontrol"}, (char[]){"show"}, (char[]){"job"}, (char[]){"-o"},
		strdupa(name), NULL};
	struct text output = {0};
	struct slurm_job found = {.end_left = -1};
	char end[32];
	struct tm broken = {.tm_isdst = -1};
	enum status status = call(argv, deadline, &output, err);
	if (status == STATUS_OK &&
		!field(text_string(&output), "JobState=", found.state, sizeof(found.state)))
		status = error_set(err, STATUS_TEMPORARY,
			"scontrol show job %s: the answer has no JobState", name);
	/* In the time zone of whoever asks. */
	if (status == STATUS_OK && field(text_string(&output), "EndTime=", end, sizeof(end)) &&
		strptime(end, "%Y-%m-%dT%H:%M:%S", &broken)) {
		int64_t left = (int64_t)mktime(&broken) * 1000 - clock_utc();
		found.end_left = left > 0 ? left : 0;
	}
	if (status == STATUS_OK)
		*job = found;
	text_release(&output);
	return status;
}

/* States that can be requeued; states that mean it is requeued already. All other states: the
 * job is ending or over. */
static bool is_one_of(const char *state, const char *const *states)
{
	while (*states && strcmp(*states, state) != 0)
		states++;
	return *states != NULL;
}

static enum slurm_answer try_requeue(const char *name, int64_t deadline, struct error *err)
{
	static const char *const running[] = {
		"RUNNING", "SUSPENDED", "STOPPED", "SIGNALING", "STAGE_OUT", NULL};
	static const char *const again[] = {
		"PENDING", "REQUEUED", "REQUEUE_HOLD", "SPECIAL_EXIT", "CONFIGURING", NULL};
	char *argv[] = {(char[]){"scontrol"}, (char[]){"requeue"}, strdupa(name), NULL};
	struct slurm_job job;
	struct text output = {0};
	enum status status = slurm_ask(name, deadline, &job, err);
	if (status == STATUS_NO)
		return SLURM_ENDING;
	if (status != STATUS_OK)
		return SLURM_UNREACHABLE;
	if (is_one_of(job.state, again))
		return SLURM_REQUEUED;
	if (!is_one_of(job.state, running)) {
		error_set(err, STATUS_NO, "it is %s", job.state);
		return SLURM_ENDING;
	}
	status = call(argv, deadline, &output, err);
	text_release(&output);
	return status == STATUS_OK   ? SLURM_REQUEUED
	       : status == STATUS_NO ? SLURM_REFUSED
				     : SLURM_UNREACHABLE;
}

enum slurm_answer slurm_requeue(const char *name, int64_t deadline, struct error *err)
{
	for (;;) {
		*err = (struct error){0};
		enum slurm_answer answer = try_requeue(name, deadline, err);
		bool missing = err->status == STATUS_NOT_FOUND || err->status == STATUS_CANNOT_RUN;
		if (answer != SLURM_UNREACHABLE || missing)
			return answer;
		int64_t next = clock_after(RETRY_PAUSE);
		if (next >= deadline)
			return answer;
		clock_sleep_until(next);
	}
}
