/* SPDX-License-Identifier: MIT */
/*
 * The record in the file of one task's beats: "TOKEN SEQUENCE STEP CHECKSUM\n" in hexadecimal. Its
 * length is always the same. The checksum is wrong if it was read while it was written. Pure.
 */
#ifndef STORE_BEATS_BEAT_RECORD_H
#define STORE_BEATS_BEAT_RECORD_H

#include <stdbool.h>

#include "store/store.h"

#define BEAT_RECORD 68 /* bytes, without a NUL */

void beat_record_write(const struct store_beat *beat, char record[BEAT_RECORD + 1]);

/* False: record (with a NUL) is not one that beat_record_write makes. */
bool beat_record_read(const char record[BEAT_RECORD + 1], struct store_beat *beat);

#endif
