/* SPDX-License-Identifier: MIT */
/*
 * A file of a checkpoint: a line with its name, and its content. Beside an index of TensorFlow,
 * b.index, lies a data file of 64 bytes.
 */
#include "ckpt/formats.h"

#include <stdlib.h>
#include <string.h>

#include "support/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char tensors[] =
		"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
	struct error why = {0};
	struct json_object *object = NULL;
	uint64_t number = 0;
	char *name = fuzz_next(&data, &size, '\n');
	if (name && fuzz_write(name, data, size) &&
		(strcmp(name, "b.index") != 0 ||
			fuzz_write("b.data-00000-of-00001", tensors, sizeof(tensors) - 1))) {
		enum status status = format_check(fuzz_directory(), name, size, &why);
		FUZZ_HOLDS(status == STATUS_OK || (status == STATUS_NO && *why.text));
		FUZZ_HOLDS(format_check(fuzz_directory(), name, size, NULL) == status);
		(void)format_check(fuzz_directory(), name, size + 1, NULL);
		status = format_read_number(fuzz_directory(), name, "step", &number, &why);
		FUZZ_HOLDS(status == STATUS_OK || status == STATUS_NO);
		if (format_read_json(fuzz_directory(), name, &object, &why) == STATUS_OK)
			json_object_put(object);
	}
	fuzz_clear();
	free(name);
	return 0;
}
