/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "support/backends/memory.h"
#include "support/fuzz.h"

struct store *fuzz_store(const uint8_t *data, size_t size)
{
	static bool known;
	struct store *store;
	if (!known)
		store_register(&store_memory);
	known = true;
	memory_forget();
	FUZZ_HOLDS(store_open(&store, "memory:fuzz", STORE_CREATE, CLOCK_NEVER, NULL) == STATUS_OK);
	for (char *line; (line = fuzz_next(&data, &size, '\n')); free(line)) {
		char *value = strchr(line, ' ');
		if (value)
			*value++ = '\0';
		/* One that is no key of a store is left out. */
		(void)store_put(store, line, value ? value : "", NULL, NULL);
	}
	return store;
}
