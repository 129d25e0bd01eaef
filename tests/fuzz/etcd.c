/* SPDX-License-Identifier: MIT */
/* What a server of etcd answers: 'j', and the JSON of a list of keys. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "store/etcd/session.h"
#include "support/fuzz.h"

static void check_keys(const char *bytes, size_t size)
{
	struct etcd_store store = {
		.options.prefix = (char *)"p", .base.where = (char *)"etcd://h/p"};
	struct json_object *answer = json_parse_limited(bytes, size, size + 1);
	for (size_t i = 0; i < wire_count(answer, "kvs"); i++) {
		struct store_entry entry = {0};
		struct error err = {0};
		if (etcd_entry(&store, wire_element(answer, "kvs", i), &entry, &err) == STATUS_OK) {
			FUZZ_HOLDS(entry.key && entry.value && !entry.value[entry.length]);
			free(entry.key);
			free(entry.value);
		} else {
			FUZZ_HOLDS(*err.text);
		}
	}
	json_object_put(answer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	char *rest = fuzz_text(data + 1, size - 1);
	if (*data == 'j')
		check_keys(rest, size - 1);
	free(rest);
	return 0;
}
