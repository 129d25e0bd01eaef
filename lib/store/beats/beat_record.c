/* SPDX-License-Identifier: MIT */
#include "store/beats/beat_record.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

void beat_record_write(const struct store_beat *beat, char record[BEAT_RECORD + 1])
{
	int used =
		snprintf(record, BEAT_RECORD + 1, "%016" PRIx64 " %016" PRIx64 " %016" PRIx64 " ",
			beat->token, beat->sequence, beat->step);
	snprintf(record + used, (size_t)(BEAT_RECORD + 1 - used), "%016" PRIx64 "\n",
		(uint64_t)XXH64(record, (size_t)used, 0));
}

bool beat_record_read(const char record[BEAT_RECORD + 1], struct store_beat *beat)
{
	char again[BEAT_RECORD + 1];
	struct store_beat seen;
	if (sscanf(record, "%16" SCNx64 " %16" SCNx64 " %16" SCNx64, &seen.token, &seen.sequence,
		    &seen.step) != 3)
		return false;
	beat_record_write(&seen, again);
	if (memcmp(record, again, BEAT_RECORD) != 0)
		return false;
	*beat = seen;
	return true;
}
