/* SPDX-License-Identifier: MIT */
/* NAME FILE...: gives a target the files, one after the other, where libFuzzer has no part in it.
 */
#include <stdio.h>
#include <stdlib.h>

#include "support/fuzz.h"

int main(int count, char *files[])
{
	enum { MOST = 1 << 20 };
	uint8_t *input = malloc(MOST);
	FUZZ_HOLDS(input);
	for (int i = 1; i < count; i++) {
		FILE *file = fopen(files[i], "r");
		FUZZ_HOLDS(file);
		size_t size = fread(input, 1, MOST, file);
		fclose(file);
		/* In memory of exactly this size: what is read behind its end is noticed. */
		uint8_t *exact = malloc(size ? size : 1);
		FUZZ_HOLDS(exact);
		for (size_t k = 0; k < size; k++)
			exact[k] = input[k];
		fprintf(stderr, "%s\n", files[i]);
		(void)LLVMFuzzerTestOneInput(exact, size);
		free(exact);
	}
	free(input);
	return 0;
}
