/* SPDX-License-Identifier: MIT */
/*
 * The result of a library function. Every function that can fail returns a status: an answer (ok,
 * no, broken) or an error. A function that returns neither STATUS_OK nor STATUS_NO has filled its
 * struct error with one sentence: what, where, why, what to do. Out-parameters are written only on
 * success.
 *
 * The numbers are those of the exit codes in preempt(7) (base/exit_code.h), so that a program can
 * return a status as it is. The codes that a task exits with (10, 42, 43, 93) are not statuses:
 * functions that choose one return an int, of enum exit_code.
 */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

#include <stdbool.h>

#include "base/exit_code.h"

enum status {
	/* Answers. */
	STATUS_OK = CODE_OK,
	STATUS_NO = CODE_NO,	     /* the answer is definitely no */
	STATUS_BROKEN = CODE_BROKEN, /* the answer: the run, or a command of a queue, has failed */
	/* Errors. */
	STATUS_USAGE = CODE_USAGE,	   /* the caller asked for something impossible */
	STATUS_DAMAGED = CODE_DAMAGED,	   /* damaged, or of a newer format: nothing was changed */
	STATUS_TEMPORARY = CODE_TEMPORARY, /* the answer could not be found out */
	STATUS_PERMISSION = CODE_PERMISSION,
	STATUS_TIMEOUT = CODE_TIMEOUT,	     /* the deadline passed */
	STATUS_CANNOT_RUN = CODE_CANNOT_RUN, /* a command cannot be executed, as in a shell */
	STATUS_NOT_FOUND = CODE_NOT_FOUND,   /* a command or a library does not exist */
};

struct error {
	enum status status;
	char text[768];
};

/* Whether status is an error, not an answer. Statuses are never compared by order. */
static inline bool status_is_error(enum status status)
{
	return status != STATUS_OK && status != STATUS_NO && status != STATUS_BROKEN;
}

/* Fill err (which may be NULL) and return status. Control characters are escaped. */
enum status error_set(struct error *err, enum status status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/*
 * The same for an errno: the text is "cannot FORMAT: ", the text of the errno, and error_cure; the
 * status is that of error_status_of_errno.
 */
enum status error_errno(struct error *err, int number, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* The same with cure, "; ..." or "", in place of error_cure. */
enum status error_cured(struct error *err, int number, const char *cure, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* What to do about this errno, for instance "; free space there"; "": not known. */
const char *error_cure(int number);

/* Put "TEXT: " before the text of err, which must not be NULL. Returns its status. */
enum status error_prefix(struct error *err, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * The status of an errno: STATUS_PERMISSION for EACCES, EPERM, EROFS; STATUS_USAGE for
 * ENAMETOOLONG; STATUS_TEMPORARY for all others, which may pass (no space, I/O errors, timeouts).
 */
enum status error_status_of_errno(int number);

#endif
