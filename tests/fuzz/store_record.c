/* SPDX-License-Identifier: MIT */
/*
 * The small records of a store. The first byte of an input says what the rest is: 'l' the lock
 * file, 'b' a beat, 'n' the name of a token, 'u' the URL of a store, 'j' the journal
 * of its database, which says itself how large its pages are and how many it holds.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "store/beats/beat_record.h"
#include "store/lock/lockfile.h"
#include "store/sqlite/journal.h"
#include "store/sqlite/options.h"
#include "store/url.h"
#include "support/fuzz.h"

static void check_lockfile(const uint8_t *data, size_t size)
{
	static int descriptor = -1;
	struct lock lock = {.path = (char *)"lock"};
	if (descriptor < 0)
		descriptor = memfd_create("lock", MFD_CLOEXEC);
	lock.descriptor = descriptor;
	FUZZ_HOLDS(ftruncate(descriptor, 0) == 0);
	FUZZ_HOLDS(pwrite(descriptor, data, size, 0) == (ssize_t)size);
	if (lockfile_read(&lock, NULL) != STATUS_OK)
		return;
	FUZZ_HOLDS(lockfile_note_made(&lock, NULL) == STATUS_OK);
	FUZZ_HOLDS(lockfile_read(&lock, NULL) == STATUS_OK);
}

/* A record of the input, and a beat of its bytes. */
static void check_beat(const uint8_t *data, size_t size)
{
	char record[BEAT_RECORD + 1] = "", again[BEAT_RECORD + 1];
	uint64_t numbers[3] = {0};
	memcpy(numbers, data, size < sizeof(numbers) ? size : sizeof(numbers));
	struct store_beat beat,
		made = {.token = numbers[0], .sequence = numbers[1], .step = numbers[2]};
	beat_record_write(&made, record);
	FUZZ_HOLDS(strlen(record) == BEAT_RECORD && beat_record_read(record, &beat));
	FUZZ_HOLDS(beat.token == made.token && beat.sequence == made.sequence &&
		   beat.step == made.step);
	memset(record, 0, sizeof(record));
	memcpy(record, data, size < BEAT_RECORD ? size : BEAT_RECORD);
	if (!beat_record_read(record, &beat))
		return;
	beat_record_write(&beat, again);
	FUZZ_HOLDS(memcmp(record, again, BEAT_RECORD) == 0);
}

static void check_journal(const uint8_t *data, size_t size)
{
	static const char nonce[] = "0123456789abcdef0123456789abcdef";
	char path[4096], database[1024] = "SQLite format 3";
	struct error err = {0};
	/* The first page, whose size is 512, and the nonce in the second. */
	database[16] = 2;
	memcpy(database + 600, nonce, 32);
	FUZZ_HOLDS(fuzz_write("store.db", (const uint8_t *)database, sizeof(database)));
	FUZZ_HOLDS(fuzz_write("store.db-journal", data, size));
	snprintf(path, sizeof(path), "%s/store.db", fuzz_path());
	enum status status = journal_check(CACHE_OURS, path, &err);
	FUZZ_HOLDS(status == STATUS_OK || status == STATUS_DAMAGED);
	/* Refused only for a page that is there, and lacks the nonce. */
	FUZZ_HOLDS(status == STATUS_OK || (*err.text && size >= 32 + 4 + 512));
	fuzz_clear();
}

static void check_token(const char *name)
{
	struct token token;
	if (!token_read(name, &token))
		return;
	FUZZ_HOLDS(strlen(name) == TOKEN_NAME - 1 && strlen(token.file) == TOKEN_FILE - 1);
	FUZZ_HOLDS(strlen(token.host) == sizeof(token.host) - 1 && !strchr(token.host, '/'));
}

static void check_url(const char *text)
{
	struct store_url url;
	struct parameters parameters;
	struct error err;
	struct text path = {0};
	if (url_parse(text, &url, NULL) == STATUS_OK) {
		FUZZ_HOLDS(*url.path && !strchr(url.path, '?'));
		(void)parameters_read(&url, &parameters, &err);
		url_release(&url);
	}
	(void)store_default_path("r", text, "/home/u", &path, NULL);
	(void)store_default_path(text, NULL, "/home/u", &path, NULL);
	text_release(&path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	char *text = fuzz_text(data + 1, size - 1);
	switch (*data) {
	case 'l': check_lockfile(data + 1, size - 1); break;
	case 'b': check_beat(data + 1, size - 1); break;
	case 'j': check_journal(data + 1, size - 1); break;
	case 'n': check_token(text); break;
	case 'u': check_url(text); break;
	}
	free(text);
	return 0;
}
