/* SPDX-License-Identifier: MIT */
/*
 * What a library function answers. Every fallible function returns a status: an answer (ok, no,
 * broken) or an error. A function that answers neither STATUS_OK nor STATUS_NO has filled its
 * struct error with one sentence: what, where, why, what to do. Out-parameters are written only on
 * success.
 *
 * The numbers are those of the exit codes in preempt(7) (base/exit_code.h), so that a program can
 * return a status as it is. What a task leaves with (10, 42, 43, 93) is no status: functions that
 * decide it return an int of enum exit_code.
 */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

#include <stdbool.h>

#include "base/exit_code.h"

enum status {
	/* Answers. */
	STATUS_OK = CODE_OK,
	STATUS_NO = CODE_NO,	     /* asked, and the definite answer is no */
	STATUS_BROKEN = CODE_BROKEN, /* asked: the run, or what a queue ran, has failed */
	/* Errors. */
	STATUS_USAGE = CODE_USAGE,	   /* the caller asked for something impossible */
	STATUS_DAMAGED = CODE_DAMAGED,	   /* damaged, or of a newer format: nothing was changed */
	STATUS_TEMPORARY = CODE_TEMPORARY, /* could not ask: not a "no" */
	STATUS_PERMISSION = CODE_PERMISSION,
	STATUS_TIMEOUT = CODE_TIMEOUT,	     /* the deadline passed */
	STATUS_CANNOT_RUN = CODE_CANNOT_RUN, /* of a command, as a shell says it */
	STATUS_NOT_FOUND = CODE_NOT_FOUND,   /* the same; or a library that is not installed */
};

struct error {
	enum status status;
	char text[768];
};

/* Whether the question had no answer. Statuses are never compared by order. */
static inline bool status_is_error(enum status status)
{
	return status != STATUS_OK && status != STATUS_NO && status != STATUS_BROKEN;
}

/* Fill err (which may be NULL) and return status. Control characters are escaped. */
enum status error_set(struct error *err, enum status status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/*
 * The same for an errno: "cannot FORMAT: why", and what to do if that is known ("; free space
 * there"). The status is error_status_of_errno's.
 */
enum status error_errno(struct error *err, int number, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* The same with another text of what to do: "; ..." or "". */
enum status error_cured(struct error *err, int number, const char *cure, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* What error_errno says of what to do. */
const char *error_cure(int number);

/* Put "TEXT: " before what err, which is not NULL, says already. Returns err's status. */
enum status error_prefix(struct error *err, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * The status of an errno: permission for EACCES, EPERM, EROFS; usage for ENAMETOOLONG; temporary
 * for everything else that can pass (no space, quota, stale handles, I/O errors, timeouts).
 */
enum status error_status_of_errno(int number);

#endif
