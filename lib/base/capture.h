/* SPDX-License-Identifier: MIT */
/*
 * Run a small command, and keep what it says: for asking other systems' programs, which may be
 * missing, refuse, or hang.
 */
#ifndef BASE_CAPTURE_H
#define BASE_CAPTURE_H

#include <stdint.h>

#include "base/error.h"
#include "base/text.h"

#define CAPTURE_LIMIT ((size_t)64 << 10) /* bytes; the rest is thrown away */

/*
 * Run argv, stdin empty, until deadline (base/clock.h); then it is killed with its process group.
 * STATUS_OK: *code is its exit code as a shell says it, output what it wrote to stdout and stderr.
 * STATUS_NOT_FOUND, STATUS_CANNOT_RUN; STATUS_TIMEOUT; STATUS_TEMPORARY. May be called with all
 * signals blocked; they are not in the command.
 */
enum status capture_run(
	char *const *argv, int64_t deadline, struct text *output, int *code, struct error *err);

#endif
