/* SPDX-License-Identifier: MIT */
#include "run/scheduler.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/message.h"
#include "base/parse.h"
#include "store/url.h"

#define URL_MOST 8192 /* bytes */

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
	for (const struct platform *s = platforms; s->name; s++) {
		const char *id = s->prefix ? environment_value(environment, s->variable) : NULL;
		if (!id || (s->also && !environment_value(environment, s->also)))
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
				"$%s: \"%.40s...\" is too long for a job's id", s->variable, id);
		*scheduler = s->title;
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

static const struct platform no_scheduler = {.name = "none"};

static bool runs_again(const struct platform *platform)
{
	return platform->variable && (platform->exit_code || platform->scontrol || platform->rerun);
}

const struct platform *scheduler_find(const char *name, struct text *names)
{
	for (const struct platform *s = platforms; s->name; s++) {
		if (!runs_again(s))
			continue;
		if (!strcmp(s->name, name))
			return s;
		text_addf(names, "%s, ", s->name);
	}
	text_add(names, no_scheduler.name);
	return strcmp(name, no_scheduler.name) ? NULL : &no_scheduler;
}

const struct platform *scheduler_here(void)
{
	struct platform_signs signs;
	platform_inspect(&signs);
	for (const struct platform *s = platforms; s->name; s++)
		if (runs_again(s) && platform_is_here(s, &signs))
			return s;
	return &no_scheduler;
}
