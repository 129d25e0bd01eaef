/* SPDX-License-Identifier: MIT */
/*
 * One file of a checkpoint: the first line of an input is its name, which decides what it is
 * (ckpt/layout/structure.h), the rest is its content.
 */
#include "ckpt/layout/structure.h"

#include <stdlib.h>
#include <string.h>

#include "support/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct manifest files = {0};
	struct error why = {0};
	uint64_t step = 0;
	char line[256];
	char *name = fuzz_next(&data, &size, '\n');
	int root = fuzz_directory();
	if (!name || !fuzz_write(name, data, size)) {
		free(name);
		return 0;
	}
	FUZZ_HOLDS(manifest_add(&files, name, size));
	enum status status = structure_check(root, &files.files[0], &why);
	FUZZ_HOLDS(status == STATUS_OK || (status == STATUS_NO && *why.text));
	(void)structure_check_shards(root, &files, &why);
	(void)structure_check_numbered(&files, &why);
	if (structure_read_number(root, name, "global_step", &step, &why) == STATUS_OK)
		FUZZ_HOLDS(step <= INT32_MAX);
	if (structure_read_line(root, name, line, &why) == STATUS_OK)
		FUZZ_HOLDS(*line && !strpbrk(line, "\r\n"));
	/* What the list says may be wrong by the time that the file is read. */
	files.files[0].bytes++;
	(void)structure_check(root, &files.files[0], &why);
	manifest_release(&files);
	fuzz_clear();
	free(name);
	return 0;
}
