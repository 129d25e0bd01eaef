/* SPDX-License-Identifier: MIT */
/*
 * The journal beside a database: an input is such a file, and says itself how large its pages are
 * and how many it holds. The nonce of the store is "0123456789abcdef0123456789abcdef".
 */
#include "store/sqlite/journal.h"

#include <stdio.h>

#include "support/fuzz.h"

#define NONCE "0123456789abcdef0123456789abcdef"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char path[4096];
	struct error err = {0};
	if (!fuzz_write("store.db-journal", data, size))
		return 0;
	snprintf(path, sizeof(path), "%s/store.db-journal", fuzz_path());
	enum status status = journal_check(CACHE_OURS, path, NONCE, &err);
	FUZZ_HOLDS(status == STATUS_OK || status == STATUS_DAMAGED);
	/* Refused only for a page that is there, and lacks the nonce. */
	FUZZ_HOLDS(status == STATUS_OK || (*err.text && size >= 32 + 4 + 512));
	FUZZ_HOLDS(journal_check(CACHE_OURS, path, "", NULL) == STATUS_OK);
	fuzz_clear();
	return 0;
}
