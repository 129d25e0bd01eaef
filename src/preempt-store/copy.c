/* SPDX-License-Identifier: MIT */
#include "copy.h"

#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/message.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "proto/runs.h"
#include "run/options.h"
#include "store/copy.h"

const struct args_option copy_options[] = {
	GROUP_TIMEOUT_ROW("how long a store may take to answer (default 30s)"),
	GROUP_JSON_ROW("answer in JSON"),
	{0},
};

/* ---- No task and no worker may run ---- */

static enum status check_runs(struct store *from, struct error *err)
{
	struct run_summary run = {0};
	enum status status;
	while ((status = runs_next(from, *run.name ? run.name : NULL, &run, err)) == STATUS_OK)
		if (!run.closed)
			return error_set(err, STATUS_NO,
				"run %s is open: end its tasks; if they are gone, run "
				"\"preempt-store close --store %s --run %s\"",
				run.name, store_where(from), run.name);
	return status == STATUS_NO ? STATUS_OK : status;
}

/* True for the key of a worker: "queue/QUEUE/worker/TOKEN". */
static bool is_worker(const char *key)
{
	const char *slash = strchr(key + strlen("queue/"), '/');
	return slash && !strncmp(slash, "/worker/", strlen("/worker/"));
}

static enum status check_workers(struct store *from, struct error *err)
{
	struct store_answer page = {0};
	char after[STORE_KEY_MAX + 1];
	struct store_range range = {.prefix = "queue/", .limit = 1000};
	enum status status = STATUS_OK;
	do {
		store_answer_release(&page);
		status = store_list(from, &range, &page, err);
		for (size_t i = 0; status == STATUS_OK && i < page.count; i++)
			if (is_worker(page.entries[i].key))
				status = error_set(err, STATUS_NO,
					"a worker is registered (%s): end it; one that is dead is removed by "
					"the next \"preempt-queue work\" of its queue",
					page.entries[i].key);
		if (status == STATUS_OK && page.more) {
			strcpy(after, page.entries[page.count - 1].key);
			range.after = after;
		}
	} while (status == STATUS_OK && page.more);
	store_answer_release(&page);
	return status;
}

/* ---- The files of queues, which are outside of a store ---- */

static struct {
	const char *from, *to;
	char *missing; /* a file that `to` lacks, or has with another size */
} files;

static int compare_file(const char *path, const struct stat *st, int kind, struct FTW *where)
{
	struct stat there;
	(void)where;
	if (kind != FTW_F)
		return 0;
	char *copy = xprintf("%s%s", files.to ? files.to : "", path + strlen(files.from));
	if (!files.to || lstat(copy, &there) < 0 || there.st_size != st->st_size)
		files.missing = xstrdup(path);
	free(copy);
	return files.missing != NULL;
}

static enum status check_files(struct store *from, struct store *to, struct error *err)
{
	files.from = store_files(from);
	files.to = store_files(to);
	if (!files.from || access(files.from, F_OK) < 0)
		return STATUS_OK;
	if (nftw(files.from, compare_file, 16 /* descriptors */, FTW_PHYS) < 0)
		return error_set(err, STATUS_TEMPORARY, "cannot read %s", files.from);
	if (!files.missing)
		return STATUS_OK;
	if (files.to)
		error_set(err, STATUS_NO,
			"%s is not in %s: copy the files of queues first: cp -a %s/. %s",
			files.missing, files.to, files.from, files.to);
	else
		error_set(err, STATUS_NO,
			"store %s has no place for the files of queues (%s): add files=%s to its URL, or a "
			"copy of this directory",
			store_where(to), files.missing, files.from);
	free(files.missing);
	return STATUS_NO;
}

/* ---- The command ---- */

static void show_progress(uint64_t written, uint64_t all)
{
	fprintf(stderr, "\r\033[K%" PRIu64 " of %" PRIu64 " keys", written, all);
}

static void print_result(const struct store_copied *copied, const struct store *to)
{
	if (group_options.json)
		printf("{\"keys\":%" PRIu64 ",\"copied\":%" PRIu64 "}\n", copied->keys,
			copied->copied);
	else
		message_info("store %s has all %" PRIu64 " keys; %" PRIu64 " were copied",
			store_where(to), copied->keys, copied->copied);
}

int copy_command(const struct args_rest *rest)
{
	struct error err;
	struct store *from = NULL, *to = NULL;
	struct store_copied copied = {0};
	bool shows = !message_is_quiet() && isatty(STDERR_FILENO);
	enum status status = open_store_url(&from, rest->words[0], STORE_READ_ONLY, &err);
	if (status == STATUS_OK)
		status = open_store_url(&to, rest->words[1], STORE_CREATE, &err);
	if (status == STATUS_OK)
		status = check_runs(from, &err);
	if (status == STATUS_OK)
		status = check_workers(from, &err);
	if (status == STATUS_OK)
		status = check_files(from, to, &err);
	if (status == STATUS_OK)
		status = store_copy(from, to, shows ? show_progress : NULL, &copied, &err);
	if (shows)
		fputs("\r\033[K", stderr);
	if (status == STATUS_OK)
		print_result(&copied, to);
	store_close(from);
	store_close(to);
	if (status == STATUS_NO)
		message_error("%s", err.text);
	return status == STATUS_OK || status == STATUS_NO ? (int)status : message_fail(&err);
}
