/* SPDX-License-Identifier: MIT */
/* The format: https://www.sqlite.org/fileformat2.html, section 3. */
#include "store/sqlite/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/xalloc.h"
#include "store/sqlite/session.h"

#define META_PAGE    2 /* the page of meta, the first table that is made */
#define LARGEST_PAGE 65536
#define NONCE	     (STORE_NONCE - 1) /* hexadecimal digits */

static const unsigned char magic[8] = {0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7};

/* Whether the journal's first part contains the page of meta with another nonce. */
static bool is_foreign(int descriptor, const unsigned char head[28], const char *nonce)
{
	uint32_t records = big_endian(head + 8), sector = big_endian(head + 20);
	uint32_t size = big_endian(head + 24);
	unsigned char number[4], *page = NULL;
	bool foreign = false;
	if (sector < 32 || sector > LARGEST_PAGE || size < 512 || size > LARGEST_PAGE)
		return false;
	for (uint32_t i = 0; i < records; i++) {
		off_t at = (off_t)sector + (off_t)i * ((off_t)size + 8);
		if (pread(descriptor, number, 4, at) != 4)
			break;
		if (big_endian(number) != META_PAGE)
			continue;
		page = xmalloc(size);
		foreign = pread(descriptor, page, size, at + 4) == (ssize_t)size &&
			  !memmem(page, size, nonce, strlen(nonce));
		break;
	}
	free(page);
	return foreign;
}

/* Read the nonce of the store from the page of meta. False: it was not found. */
static bool read_nonce(enum cache cache, const char *database, char nonce[STORE_NONCE])
{
	unsigned char head[100];
	char page[LARGEST_PAGE];
	int descriptor = cache_open(cache, database);
	bool found = false;
	if (descriptor >= 0 && pread(descriptor, head, sizeof(head), 0) == sizeof(head)) {
		size_t size = (size_t)head[16] << 8 | head[17];
		ssize_t n = pread(descriptor, page, size, (off_t)size);
		for (ssize_t at = 0, run = 0; at < n && !found; at++) {
			run = page[at] && strchr("0123456789abcdef", page[at]) ? run + 1 : 0;
			found = run == NONCE;
			if (found)
				snprintf(nonce, STORE_NONCE, "%.*s", NONCE, page + at - NONCE + 1);
		}
	}
	if (descriptor >= 0)
		close(descriptor);
	return found;
}

enum status journal_check(enum cache cache, const char *database, struct error *err)
{
	unsigned char head[28];
	char nonce[STORE_NONCE];
	char *path = xprintf("%s-journal", database);
	int descriptor = cache_open(cache, path);
	bool foreign = descriptor >= 0 &&
		       pread(descriptor, head, sizeof(head), 0) == sizeof(head) &&
		       !memcmp(head, magic, sizeof(magic)) && read_nonce(cache, database, nonce) &&
		       is_foreign(descriptor, head, nonce);
	if (descriptor >= 0)
		close(descriptor);
	/* There may be no journal. If it cannot be read, SQLite reports that. */
	enum status status = STATUS_OK;
	if (foreign)
		status = error_set(err, STATUS_DAMAGED,
			"%s is the journal of another database: not used; put back the one that belongs "
			"to the store, or move it away if there was none",
			path);
	free(path);
	return status;
}
