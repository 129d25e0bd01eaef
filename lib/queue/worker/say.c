/* SPDX-License-Identifier: MIT */
/* The name of a worker, its joblog, its watchdog. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/message.h"
#include "base/parse.h"
#include "queue/output/joblog.h"
#include "queue/worker/loop.h"

#define SHOWN 100 /* bytes of a command that the watchdog shows */

/* ---- Its name ---- */

void work_name(const struct work_options *options, struct queue_worker *worker)
{
	static const char *const variables[] = {
		"PREEMPT_TASK", "SLURM_ARRAY_TASK_ID", "JOB_COMPLETION_INDEX"};
	const char *index = NULL;
	*worker = (struct queue_worker){.index = options->index,
		.slots = options->slots,
		.period = options->period,
		.limit = options->limit};
	for (size_t i = 0; i < sizeof(variables) / sizeof(*variables) && !index; i++) {
		const char *value = getenv(variables[i]);
		uint64_t number;
		if (value && parse_decimal(value, &number))
			index = value;
	}
	if (options->worker) {
		snprintf(worker->name, sizeof(worker->name), "%s", options->worker);
	} else if (index) {
		snprintf(worker->name, sizeof(worker->name), "%s", index);
	} else {
		char host[65] = "";
		gethostname(host, sizeof(host) - 1);
		snprintf(worker->name, sizeof(worker->name), "%s-%ld", *host ? host : "host",
			(long)getpid());
	}
	/* A name that is a number is also the index. */
	if (worker->index == UINT64_MAX && !parse_decimal(worker->name, &worker->index) && index)
		(void)parse_decimal(index, &worker->index);
}

/* ---- Its joblog ---- */

enum status work_open_joblog(const char *path, int *descriptor, struct error *err)
{
	struct stat st;
	int opened = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0666);
	if (opened < 0)
		return error_set(err, error_status_of_errno(errno), "cannot open joblog %s: %s",
			path, strerror(errno));
	/* If several workers begin at the same time, only one writes the heading (without locks,
	 * each may). */
	(void)flock(opened, LOCK_EX);
	int result = fstat(opened, &st);
	if (result == 0 && st.st_size == 0)
		result = file_write_all(opened, JOBLOG_HEADING, strlen(JOBLOG_HEADING));
	int number = errno;
	(void)flock(opened, LOCK_UN);
	if (result == 0) {
		*descriptor = opened;
		return STATUS_OK;
	}
	close(opened);
	return error_set(err, error_status_of_errno(number), "cannot write joblog %s: %s", path,
		strerror(number));
}

void work_write_joblog(struct work *work, const struct queue_run *run)
{
	struct text line = {0};
	if (work->joblog < 0)
		return;
	joblog_row(&line, &run->item, &run->result);
	if (file_write_all(work->joblog, line.data, line.length) < 0)
		message_error("command %llu is not in joblog %s: %s",
			(unsigned long long)run->item.id, work->options->joblog, strerror(errno));
	text_release(&line);
}

/* ---- Its watchdog ---- */

int64_t work_watchdog_due(const struct work *work)
{
	int64_t since = work->quiet_since > work->said_quiet ? work->quiet_since : work->said_quiet;
	if (work->options->watchdog <= 0 || work->leaving || work_is_idle(work))
		return CLOCK_NEVER;
	return since + work->options->watchdog;
}

void work_watchdog(struct work *work, int64_t now)
{
	int64_t utc = clock_utc();
	if (now < work_watchdog_due(work))
		return;
	work->said_quiet = now;
	message_info("watchdog: nothing has ended for %lld s",
		(long long)(now - work->quiet_since) / 1000);
	for (size_t i = 0; i < work->slot_count; i++) {
		const struct slot *slot = &work->slots[i];
		struct text command = {.limit = 4096};
		if (!slot->busy)
			continue;
		joblog_command(&command, &slot->run.item);
		message_info("watchdog: command %llu has run for %lld s: %.*s",
			(unsigned long long)slot->run.item.id,
			(long long)(utc - slot->started) / 1000, SHOWN, text_string(&command));
		text_release(&command);
	}
}
