/* SPDX-License-Identifier: MIT */
#include "run/scheduler.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/message.h"
#include "base/parse.h"
#include "base/process/subprocess.h"
#include "store/url.h"

#define CALL_LIMIT  30000 /* ms that one call of scontrol may take */
#define RETRY_PAUSE 2000  /* ms between two calls */
#define URL_MOST    8192  /* bytes */

/* Innermost first; the last row means that there is none. */
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
	{.name = "PBS",
		.word = "pbs",
		.job = "PBS_JOBID",
		.prefix = "pbs",
		.rerun = "qrerun \"$PBS_JOBID\"",
		.note = "submit with -r y"},
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

/* The host name of an indexed pod is "JOB-INDEX". */
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
		/* replace characters that a name must not have: "123[4].server" of PBS */
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

/* ---- The trace of a job ---- */

static const char *lookup(void *context, const char *name)
{
	(void)context;
	return getenv(name);
}

/* The path of this job's trace. make: with its directory. False: this is no job, or has no home. */
static bool find_trace(struct text *path, bool make)
{
	const struct identity_environment environment = {.lookup = lookup};
	char job[129];
	const char *scheduler;
	if (scheduler_job(&environment, job, sizeof(job), &scheduler, NULL) != STATUS_OK ||
		store_default_url(job, make, path, NULL) != STATUS_OK)
		return false;
	text_add(path, ".trace");
	return true;
}

/* The URL in the trace, which may be "", and how often the job was run again by guess. */
static uint64_t read_trace(const struct text *path, struct text *url)
{
	uint64_t guesses = 0;
	if (file_read_whole(text_string(path), URL_MOST, url, NULL) != STATUS_OK)
		text_release(url);
	char *end = url->data ? strchr(url->data, '\n') : NULL;
	if (end) {
		(void)parse_decimal(end + 1, &guesses);
		*end = '\0';
	}
	return guesses;
}

static bool write_trace(const char *url, uint64_t guesses)
{
	struct text path = {0}, text = {0};
	struct error err;
	bool found = find_trace(&path, true);
	text_addf(&text, guesses ? "%s\n%llu" : "%s", url, (unsigned long long)guesses);
	bool written = found && file_write_whole(text_string(&path), text_string(&text),
					text.length, 0600, false, &err) == STATUS_OK;
	if (found && !written)
		message_info("this job leaves no trace of its store: %s", err.text);
	text_release(&path);
	text_release(&text);
	return written;
}

enum status job_open_store(
	struct store **store, const char *url, int64_t deadline, struct error *err)
{
	struct text path = {0}, left = {0};
	if (find_trace(&path, false))
		(void)read_trace(&path, &left);
	unsigned flags = strcmp(text_string(&left), url) ? STORE_CREATE : 0;
	enum status status = store_open(store, url, flags, deadline, err);
	if (status == STATUS_NO)
		status = error_set(err, STATUS_TEMPORARY,
			"store %s is missing, but an earlier start of this job had it (%s): is its "
			"filesystem mounted? To start without it, remove that file",
			url, text_string(&path));
	text_release(&path);
	text_release(&left);
	return status;
}

void job_leave_trace(const char *url)
{
	struct text path = {0}, left = {0};
	uint64_t guesses = find_trace(&path, false) ? read_trace(&path, &left) : 0;
	(void)write_trace(url, guesses);
	text_release(&path);
	text_release(&left);
}

uint64_t job_count_guess(enum job_guess what, uint64_t otherwise)
{
	struct text path = {0}, left = {0};
	uint64_t guesses = find_trace(&path, false) ? read_trace(&path, &left) : 0;
	bool counted = what == GUESS_ASK ||
		       write_trace(text_string(&left), what == GUESS_FORGET ? 0 : guesses + 1);
	text_release(&path);
	text_release(&left);
	return counted ? guesses : otherwise;
}

void job_remove_trace(void)
{
	struct text path = {0};
	if (find_trace(&path, false))
		(void)unlink(text_string(&path));
	text_release(&path);
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

enum status slurm_job_name(char name[64], struct error *err)
{
	const char *leader = getenv("SLURM_HET_JOB_ID");
	uint64_t number;
	if (!is_set("SLURM_JOB_ID"))
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
	bool found = false;
	/* The leader of a heterogeneous job comes first of several lines. */
	for (const char *next = text_string(&output);
		status == STATUS_OK && code == 0 && !found && *next;) {
		char line[128];
		int length = (int)strcspn(next, "\n");
		snprintf(line, sizeof(line), "%.*s", length, next);
		found = slurm_read_job(line, job);
		next += next[length] ? length + 1 : length;
	}
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
