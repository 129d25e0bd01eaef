/* SPDX-License-Identifier: MIT */
/*
 * What the fuzz targets share. A target is one file tests/fuzz/NAME.c with the function that
 * libFuzzer calls for each input; tests/fuzz/README.md says how to run them.
 */
#ifndef FUZZ_SUPPORT_FUZZ_H
#define FUZZ_SUPPORT_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What libFuzzer calls. Returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Aborts where the condition does not hold: libFuzzer keeps the input then. */
#define FUZZ_HOLDS(condition) ((condition) ? (void)0 : fuzz_fail(__FILE__, __LINE__, #condition))
_Noreturn void fuzz_fail(const char *file, int line, const char *condition);

/* A copy with a NUL behind it, in memory of exactly this size; to be freed. */
char *fuzz_text(const void *data, size_t size);

/* Takes the next part of *data, up to the byte stop, which is skipped; to be freed. NULL: no
 * more is there. */
char *fuzz_next(const uint8_t **data, size_t *size, char stop);

/* ---- Files ---- */

/* A directory in memory, empty for each input: its path, and a descriptor of it. */
const char *fuzz_path(void);
int fuzz_directory(void);
/* Write the file name in it. False: not such a name. */
bool fuzz_write(const char *name, const void *bytes, size_t length);
/* Remove it with what was written; the next input gets a new one. */
void fuzz_clear(void);

#endif
