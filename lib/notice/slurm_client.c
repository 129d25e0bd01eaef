/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/parse.h"
#include "base/process/subprocess.h"
#include "notice/slurm.h"

#define CALL_LIMIT  30000 /* ms that one call of squeue or scontrol may take */
#define RETRY_PAUSE 2000  /* ms between two calls */

enum status slurm_job_name(char name[64], struct error *err)
{
	const char *leader = getenv("SLURM_HET_JOB_ID");
	uint64_t number;
	const char *job = getenv("SLURM_JOB_ID");
	if (!job || !*job)
		return STATUS_NO;
	if (!slurm_job_id(name))
		return error_set(err, STATUS_USAGE, "$SLURM_JOB_ID is not a number");
	/* Of a heterogeneous job, only the leader can be requeued. */
	if (leader && parse_decimal(leader, &number) && !strchr(name, '_'))
		snprintf(name, 64, "%s", leader);
	return STATUS_OK;
}

/* Run argv; *code is its exit code. Not STATUS_OK: it gave no answer. name is for messages. */
static enum status call(const char *name, char *const *argv, int64_t deadline, struct text *output,
	int *code, struct error *err)
{
	struct subprocess_options how = {.argv = argv,
		.standard = {SUBPROCESS_NOTHING, SUBPROCESS_KEEP, SUBPROCESS_JOINED},
		.limit = clock_earlier(clock_after(CALL_LIMIT), deadline)};
	struct subprocess child;
	enum status status = subprocess_run(&child, &how, err);
	*output = child.output;
	*code = child.code;
	if (status == STATUS_OK && *code != STATUS_NOT_FOUND) /* 127: no such command */
		return STATUS_OK;
	if (status == STATUS_OK || status == STATUS_NOT_FOUND || status == STATUS_CANNOT_RUN)
		return error_set(err, STATUS_NOT_FOUND, "cannot run %s: is it in PATH?", name);
	return error_set(err, STATUS_TEMPORARY, "%s has not answered in time", name);
}

/* Report the first line of a failed command's output. */
static enum status say_failed(
	const char *name, const struct text *output, enum status status, struct error *err)
{
	const char *said = text_string(output);
	if (!*said || *said == '\n')
		said = "failed with no output";
	return error_set(err, status, "%s: %.*s", name, (int)strcspn(said, "\n"), said);
}

enum status slurm_ask(const char *name, int64_t deadline, struct slurm_job *job, struct error *err)
{
	char *argv[SLURM_QUESTION];
	struct text output = {0};
	int code;
	slurm_question(name, argv);
	enum status status = call("squeue", argv, deadline, &output, &code, err);
	/* Slurm has no exit code for this: every failure ends with 1. */
	bool unknown = status == STATUS_OK && strstr(text_string(&output), "Invalid job id");
	bool found = status == STATUS_OK && code == 0 && slurm_read_job(text_string(&output), job);
	if (status == STATUS_OK && !found)
		status = say_failed("squeue", &output, unknown ? STATUS_NO : STATUS_TEMPORARY, err);
	text_release(&output);
	return status;
}

static bool is_one_of(const char *state, const char *const *states)
{
	while (*states && strcmp(*states, state) != 0)
		states++;
	return *states != NULL;
}

static enum slurm_answer try_requeue(const char *name, int64_t deadline, struct error *err)
{
	/* A job in another state is ending or over. */
	static const char *const running[] = {
		"RUNNING", "SUSPENDED", "STOPPED", "SIGNALING", "STAGE_OUT", NULL};
	static const char *const again[] = {
		"PENDING", "REQUEUED", "REQUEUE_HOLD", "SPECIAL_EXIT", "CONFIGURING", NULL};
	char *argv[] = {(char[]){"scontrol"}, (char[]){"requeue"}, strdupa(name), NULL};
	struct slurm_job job;
	struct text output = {0};
	int code;
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
	status = call("scontrol requeue", argv, deadline, &output, &code, err);
	if (status == STATUS_OK && code != 0)
		say_failed("scontrol requeue", &output, STATUS_NO, err);
	text_release(&output);
	return status != STATUS_OK ? SLURM_UNREACHABLE : code ? SLURM_REFUSED : SLURM_REQUEUED;
}

enum slurm_answer slurm_requeue(const char *name, int64_t deadline, struct error *err)
{
	for (int refused = 0;;) {
		*err = (struct error){0};
		enum slurm_answer answer = try_requeue(name, deadline, err);
		/* A controller that is out of reach fails in the same way: ask twice. */
		refused = answer == SLURM_REFUSED ? refused + 1 : 0;
		if (refused == 1)
			answer = SLURM_UNREACHABLE;
		if (answer != SLURM_UNREACHABLE || err->status == STATUS_NOT_FOUND)
			return answer;
		int64_t next = clock_after(RETRY_PAUSE);
		if (next >= deadline)
			return answer;
		clock_sleep_until(next);
	}
}
