/* SPDX-License-Identifier: MIT */
/* The format: https://www.sqlite.org/fileformat2.html, section 3. */
#include "store/sqlite/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/xalloc.h"
#include "store/sqlite/session.h"

#define META_PAGE    2 /* the page of meta, the first table that is made */
#define LARGEST_PAGE 65536

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

enum status journal_check(enum cache cache, const char *path, const char *nonce, struct error *err)
{
	unsigned char head[28];
	int descriptor = cache_open(cache, path);
	/* There may be no journal. If it cannot be read, SQLite reports that. */
	if (descriptor < 0)
		return STATUS_OK;
	bool foreign = pread(descriptor, head, sizeof(head), 0) == sizeof(head) &&
		       !memcmp(head, magic, sizeof(magic)) && is_foreign(descriptor, head, nonce);
	close(descriptor);
	if (!foreign)
		return STATUS_OK;
	return error_set(err, STATUS_DAMAGED,
		"%s is the journal of another database: not used; put back the one that belongs to "
		"the store, or move it away if there was none",
		path);
}
