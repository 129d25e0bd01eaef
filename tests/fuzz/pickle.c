/* SPDX-License-Identifier: MIT */
/* .metadata of torch.distributed.checkpoint, a pickle. */
#include <stdlib.h>
#include <string.h>

#include "ckpt/layout/dcp_metadata.h"
#include "support/fuzz.h"

struct seen {
	const char *begin, *end;
	size_t items;
};

static bool see(void *context, const char *name, size_t length, uint64_t end)
{
	struct seen *seen = context;
	(void)end;
	/* The name lies in the pickle. */
	FUZZ_HOLDS(name >= seen->begin && name <= seen->end);
	FUZZ_HOLDS(length <= (size_t)(seen->end - name));
	return ++seen->items < 1000;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* (A copy of this very size: a byte read behind it is seen.) */
	char *copy = malloc(size ? size : 1);
	FUZZ_HOLDS(copy);
	memcpy(copy, data, size);
	struct seen seen = {copy, copy + size, 0};
	dcp_metadata_items(copy, size, see, &seen);
	free(copy);
	return 0;
}
