/* SPDX-License-Identifier: MIT */
#include "run/trace.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/message.h"
#include "base/parse.h"
#include "platform/platform.h"
#include "store/url.h"

#define URL_MOST 8192 /* bytes */

struct trace {
	bool found; /* this is a job, and has a home */
	struct text path, url;
	uint64_t guesses;
};

/* Find this job's trace, make: with its directory; and read it, if it is there. */
static struct trace open_trace(bool make)
{
	struct trace trace = {0};
	char job[129], *end;
	const char *scheduler;
	trace.found =
		platform_job(&signs_environment, job, sizeof(job), &scheduler, NULL) == STATUS_OK &&
		store_default_url(job, make, &trace.path, NULL) == STATUS_OK;
	text_add(&trace.path, ".trace");
	if (!trace.found ||
		file_read_whole(text_string(&trace.path), URL_MOST, &trace.url, NULL) != STATUS_OK)
		text_release(&trace.url);
	end = trace.url.data ? strchr(trace.url.data, '\n') : NULL;
	if (end) {
		(void)parse_decimal(end + 1, &trace.guesses);
		*end = '\0';
	}
	return trace;
}

static void close_trace(struct trace *trace)
{
	text_release(&trace->path);
	text_release(&trace->url);
}

static bool write_trace(const struct trace *trace, const char *url, uint64_t guesses)
{
	struct text text = {0};
	struct error err;
	text_addf(&text, guesses ? "%s\n%llu" : "%s", url, (unsigned long long)guesses);
	bool written =
		trace->found && file_write_whole(text_string(&trace->path), text_string(&text),
					text.length, 0600, false, &err) == STATUS_OK;
	if (trace->found && !written)
		message_info("this job leaves no trace of its store: %s", err.text);
	text_release(&text);
	return written;
}

enum status job_open_store(
	struct store **store, const char *url, int64_t deadline, struct error *err)
{
	struct trace trace = open_trace(false);
	unsigned flags = strcmp(text_string(&trace.url), url) ? STORE_CREATE : 0;
	enum status status = store_open(store, url, flags, deadline, err);
	if (status == STATUS_NO)
		status = error_set(err, STATUS_TEMPORARY,
			"store %s is missing, but an earlier start of this job had it (%s): is its "
			"filesystem mounted? To start without it, remove that file",
			url, text_string(&trace.path));
	close_trace(&trace);
	return status;
}

void job_leave_trace(const char *url)
{
	struct trace trace = open_trace(true);
	(void)write_trace(&trace, url, trace.guesses);
	close_trace(&trace);
}

uint64_t job_count_guess(enum job_guess what, uint64_t otherwise)
{
	struct trace trace = open_trace(what != GUESS_ASK);
	bool counted = what == GUESS_ASK || write_trace(&trace, text_string(&trace.url),
						    what == GUESS_FORGET ? 0 : trace.guesses + 1);
	close_trace(&trace);
	return counted ? trace.guesses : otherwise;
}

void job_remove_trace(void)
{
	struct trace trace = open_trace(false);
	if (trace.found)
		(void)unlink(text_string(&trace.path));
	close_trace(&trace);
}
