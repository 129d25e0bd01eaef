/* SPDX-License-Identifier: MIT */
#include "doctor/exchange.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/xalloc.h"
#include "store/failure.h"

/* All in milliseconds. */
#define ANSWER_WITHIN 8000 /* patience, in addition to what the step takes */
#define APPEARS_IN    3000 /* a network filesystem may cache for this time that a name is missing */
#define BUSY_FOR      200  /* look with tiny pauses at first, so that all sides go on together */
#define SOON_FOR      2000

static void pause_since(int64_t began)
{
	int64_t waited = clock_now() - began;
	usleep(waited < BUSY_FOR ? 200 : waited < SOON_FOR ? 20000 : 100000);
}

static void record_path(
	const struct doctor_exchange *exchange, unsigned step, size_t k, char path[PATH_MAX])
{
	snprintf(path, PATH_MAX, "%s/%u.%zu", exchange->scratch, step, k);
}

static enum status write_record(const struct doctor_exchange *exchange, struct error *err)
{
	char path[PATH_MAX];
	struct doctor_side *self = &exchange->sides[exchange->index];
	self->utc = clock_utc();
	record_path(exchange, exchange->step, exchange->index, path);
	return file_write_whole(path, self, sizeof(*self), 0600, false, err);
}

/*
 * Whether the scratch directory is gone. Make a file in it to find out, because a filesystem may
 * answer other requests from its cache.
 */
static bool is_gone(const struct doctor_exchange *exchange)
{
	char path[PATH_MAX];
	snprintf(path, sizeof(path), "%s/gone.%zu", exchange->scratch, exchange->index);
	return mkdir(path, 0700) < 0 && errno == ENOENT;
}

/* Returns 0; ENOENT: the directory is gone; EAGAIN: the record is not there yet. */
static int read_record(const struct doctor_exchange *exchange, unsigned step, size_t k)
{
	char path[PATH_MAX];
	struct text text = {0};
	struct doctor_side *side = &exchange->sides[k];
	uint64_t all = exchange->sides[exchange->index].all;
	int number = file_ask_for_names(AT_FDCWD, exchange->scratch) == ENOENT ? ENOENT : EAGAIN;
	record_path(exchange, step, k, path);
	/* A record of another version may have another size: read only terms, with the version. */
	if (file_read_whole(path, 2 * sizeof(*side), &text, NULL) == STATUS_OK &&
		text.length >= sizeof(side->terms)) {
		size_t length = text.length < sizeof(*side) ? text.length : sizeof(*side);
		memcpy(side, text.data, length);
		doctor_side_tidy(side);
		number = step == 0 || all == 0 || side->all == all ? 0 : EAGAIN;
	}
	text_release(&text);
	return number;
}

/* Wait for the record of side k in this step. */
static enum status await_record(
	struct doctor_exchange *exchange, size_t k, int64_t deadline, struct error *err)
{
	const char *host = *exchange->sides[k].host ? exchange->sides[k].host : "another process";
	int number;
	for (int64_t began = clock_now(); (number = read_record(exchange, exchange->step, k));
		pause_since(began)) {
		bool ended = number == ENOENT;
		exchange->lost = ended || clock_now() >= deadline;
		if (exchange->lost)
			return error_set(err, STATUS_TEMPORARY, "%s %s", host,
				ended ? "ended before it was done"
				      : "did not answer in time: it ended, or its filesystem hangs");
	}
	return STATUS_OK;
}

enum status doctor_exchange(
	struct doctor_exchange *exchange, enum status outcome, int64_t takes, struct error *err)
{
	struct error unwritten;
	struct doctor_side *sides = exchange->sides, *self = &sides[exchange->index];
	int64_t deadline = clock_earlier(clock_after(takes + ANSWER_WITHIN), exchange->deadline);
	self->trouble = outcome;
	if (outcome != STATUS_OK)
		snprintf(self->why, sizeof(self->why), "%s", err->text);
	enum status status = write_record(exchange, &unwritten);
	exchange->lost = status != STATUS_OK;
	/* If the directory is gone, that is also why our own step failed. */
	if (exchange->lost && is_gone(exchange))
		status = error_set(err, STATUS_TEMPORARY,
			"another process of the doctor ended before it was done");
	else if (exchange->lost && outcome != STATUS_OK)
		status = outcome;
	else if (exchange->lost)
		error_set(err, status, "%s", unwritten.text);
	for (size_t k = 0; k < exchange->count && status == STATUS_OK; k++)
		if (k != exchange->index)
			status = await_record(exchange, k, deadline, err);
	for (size_t k = 0; k < exchange->count && status == STATUS_OK; k++)
		if (sides[k].trouble != STATUS_OK)
			status = error_set(err, sides[k].trouble, "%s", sides[k].why);
	exchange->step++;
	return status;
}

void doctor_exchange_end(struct doctor_exchange *exchange)
{
	int64_t deadline = clock_after(ANSWER_WITHIN);
	if (exchange->step == 0 || exchange->lost)
		return;
	if (exchange->index > 0)
		(void)write_record(exchange, NULL);
	for (size_t k = 1; exchange->index == 0 && k < exchange->count && !exchange->lost; k++)
		(void)await_record(exchange, k, deadline, NULL);
}

/* ---- The first two steps ---- */

/* Whether the scratch directory is there, and no other user can write to it. */
static bool find_scratch(const struct doctor_exchange *exchange)
{
	struct stat st;
	return file_ask_for_names(AT_FDCWD, exchange->scratch) == 0 &&
	       lstat(exchange->scratch, &st) == 0 && S_ISDIR(st.st_mode) &&
	       st.st_uid == geteuid() && !(st.st_mode & (S_IWGRP | S_IWOTH));
}

/* Whether the records of all sides are there, and side 0 has confirmed those that we see. */
static bool has_met(struct doctor_exchange *exchange, struct text *came, size_t *count)
{
	uint64_t numbers[DOCTOR_SIDES_MAX];
	struct doctor_side *sides = exchange->sides;
	*count = 0;
	text_release(came);
	for (size_t k = 0; k < exchange->count; k++) {
		if (k != exchange->index && read_record(exchange, 0, k) != 0)
			continue;
		text_addf(came, "%s%s", *count ? ", " : "", sides[k].host);
		numbers[(*count)++] = sides[k].number;
	}
	if (*count < exchange->count)
		return false;
	uint64_t all = XXH64(numbers, *count * sizeof(*numbers), 0);
	if (exchange->index > 0 && (read_record(exchange, 1, 0) != 0 || sides[0].all != all))
		return false;
	sides[exchange->index].all = all;
	return true;
}

/* Make our directory. It may exist: an NFS client may send the request twice. */
static enum status make_own(const char *path, struct error *err)
{
	if (mkdir(path, 0700) == 0 || errno == EEXIST)
		return STATUS_OK;
	return error_cured(err, errno, store_cure(errno), "make %s", path);
}

/*
 * Confirm that all have met, and go on in the subdirectory of this launch, which side 0 makes
 * before it confirms.
 */
static enum status confirm(struct doctor_exchange *exchange, struct error *err)
{
	char *own =
		xprintf("%s/%016" PRIx64, exchange->scratch, exchange->sides[exchange->index].all);
	enum status status = exchange->index == 0 ? make_own(own, err) : STATUS_OK;
	exchange->step = 1;
	status = doctor_exchange(exchange, status, 0, err);
	free(exchange->scratch);
	exchange->scratch = own;
	return status;
}

enum status doctor_meet(struct doctor_exchange *exchange, struct error *err)
{
	char record[PATH_MAX];
	struct text came = {0};
	size_t count = 0;
	bool met = false, written = false;
	enum status status = STATUS_OK;
	record_path(exchange, 0, exchange->index, record);
	for (int64_t began = clock_now(); !met && status == STATUS_OK; pause_since(began)) {
		bool found = find_scratch(exchange);
		/* Write the record again if side 0 has replaced an earlier launch's directory. */
		if (found && (!written || access(record, F_OK) < 0)) {
			written = write_record(exchange, err) == STATUS_OK;
			if (!written && find_scratch(exchange))
				status = err->status;
		}
		met = written && has_met(exchange, &came, &count);
		if (met || status != STATUS_OK)
			break;
		int64_t now = clock_now(), made = exchange->made ? *exchange->made : 0;
		if (made && !found && now - made > APPEARS_IN)
			status = STATUS_NO;
		else if (now >= exchange->deadline)
			status = error_set(err, STATUS_TEMPORARY,
				"of %zu nodes that were to meet at %s, %zu came in time: %.300s; start the same "
				"command on each, on this same directory",
				exchange->count, exchange->sides[exchange->index].path, count,
				text_string(&came));
	}
	text_release(&came);
	return status == STATUS_OK ? confirm(exchange, err) : status;
}
