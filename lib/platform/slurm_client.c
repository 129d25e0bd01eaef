/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "base/clock.h"
#include "platform/slurm.h"

#define CALL_LIMIT  30000 /* ms that one call of squeue or scontrol may take */
#define RETRY_PAUSE 2000  /* ms between two calls */

/* Run words, NULL-terminated, by env: with a loop start it, else wait for its end, too. */
static enum status call(struct subprocess *child, const char *const *words, int64_t limit,
	struct loop *loop, struct error *err)
{
	char *argv[10];
	memcpy(argv, words, sizeof(argv));
	struct subprocess_options how = {.argv = argv,
		.standard = {SUBPROCESS_NOTHING, SUBPROCESS_KEEP, SUBPROCESS_JOINED},
		.limit = limit,
		.loop = loop};
	if (loop)
		return subprocess_start(child, &how, err);
	how.limit = clock_earlier(clock_after(CALL_LIMIT), limit);
	enum status status = subprocess_run(child, &how, err);
	if (status == STATUS_TIMEOUT)
		status = error_set(err, STATUS_TEMPORARY, "%s has not answered in time", words[2]);
	return status;
}

/* What the exit code of a command says. */
static enum status judge(const struct subprocess *child, const char *name, struct error *err)
{
	const char *said = text_string(&child->output);
	if (child->code == 0)
		return STATUS_OK;
	/* 127: no such command; 126: it cannot be run. */
	if (child->code == STATUS_NOT_FOUND || child->code == STATUS_CANNOT_RUN)
		return error_set(err, STATUS_NOT_FOUND, "cannot run %s: is it in PATH?", name);
	if (!*said || *said == '\n')
		return error_set(err, STATUS_TEMPORARY, "%s ended with %d, and no output", name,
			child->code);
	/* Slurm has no exit code for this: every failure ends with 1. */
	return error_set(err, strstr(said, "Invalid job id") ? STATUS_NO : STATUS_TEMPORARY,
		"%s: %.*s", name, (int)strcspn(said, "\n"), said);
}

enum status slurm_ask_start(struct subprocess *squeue, const char *name, int64_t limit,
	struct loop *loop, struct error *err)
{
	const char *words[10] = {"env", "SLURM_TIME_FORMAT=%s", "squeue", "-h", "-j", name,
		"--states=all", "-o", "%T %e %S"};
	return call(squeue, words, limit, loop, err);
}

enum status slurm_ask_end(const struct subprocess *squeue, struct slurm_job *job, struct error *err)
{
	const char *said = text_string(&squeue->output);
	enum status status = judge(squeue, "squeue", err);
	if (status == STATUS_OK && !slurm_read_job(said, job))
		status = error_set(err, STATUS_TEMPORARY, "squeue said \"%.*s\"",
			(int)strcspn(said, "\n"), said);
	return status;
}

enum status slurm_ask(const char *name, int64_t deadline, struct slurm_job *job, struct error *err)
{
	struct subprocess squeue = {0};
	enum status status = slurm_ask_start(&squeue, name, deadline, NULL, err);
	if (status == STATUS_OK)
		status = slurm_ask_end(&squeue, job, err);
	subprocess_release(&squeue);
	return status;
}

/* Whether words, with a blank before and behind each, contain this state. */
static bool is_one_of(const char *state, const char *words)
{
	const char *at = strstr(words, state);
	return at && at[-1] == ' ' && at[strlen(state)] == ' ';
}

static enum slurm_answer try_requeue(const char *name, int64_t deadline, struct error *err)
{
	const char *words[10] = {"env", "SLURM_TIME_FORMAT=%s", "scontrol", "requeue", name};
	struct subprocess child = {0};
	struct slurm_job job;
	enum status status = slurm_ask(name, deadline, &job, err);
	if (status == STATUS_NO)
		return SLURM_ENDING;
	if (status != STATUS_OK)
		return SLURM_UNREACHABLE;
	if (is_one_of(job.state, " PENDING REQUEUED REQUEUE_HOLD SPECIAL_EXIT CONFIGURING "))
		return SLURM_REQUEUED;
	/* A job in another state is ending or over. */
	if (!is_one_of(job.state, " RUNNING SUSPENDED STOPPED SIGNALING STAGE_OUT ")) {
		error_set(err, STATUS_NO, "it is %s", job.state);
		return SLURM_ENDING;
	}
	enum slurm_answer answer = SLURM_UNREACHABLE;
	if (call(&child, words, deadline, NULL, err) == STATUS_OK) {
		status = judge(&child, "scontrol requeue", err);
		answer = status == STATUS_OK	      ? SLURM_REQUEUED
			 : status == STATUS_NOT_FOUND ? SLURM_UNREACHABLE
						      : SLURM_REFUSED;
	}
	subprocess_release(&child);
	return answer;
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
