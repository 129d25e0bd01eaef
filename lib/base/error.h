/* SPDX-License-Identifier: MIT */
/*
 * What a library function answers. Every fallible function returns a status: 0 is success, and the
 * others are the exit codes of preempt(7), so that a program can return them as they are.
 * A function that answers neither STATUS_OK nor STATUS_NO has filled its struct error with one
 * sentence: what, where, why, what to do. Out-parameters are written only on success.
 */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

enum status {
	STATUS_OK = 0,
	STATUS_NO = 1,	       /* asked, and the definite answer is no */
	STATUS_USAGE = 2,      /* the caller asked for something impossible */
	STATUS_SAVE = 10,      /* save a checkpoint now */
	STATUS_SAVED = 42,     /* saved, run me again */
	STATUS_PREEMPTED = 43, /* preempted without a new complete checkpoint, run me again */
	STATUS_BROKEN = 44,    /* a peer failed, run me again */
	STATUS_DAMAGED = 65,   /* damaged, or of a newer format: nothing was changed */
	STATUS_TEMPORARY = 75, /* could not ask: not a "no" */
	STATUS_PERMISSION = 77,
	STATUS_DECIDED = 93,  /* decided, do not run again */
	STATUS_TIMEOUT = 124, /* the deadline passed */
	STATUS_CANNOT_RUN = 126,
	STATUS_NOT_FOUND = 127,
};

struct error {
	enum status status;
	char text[768];
};

/* Fill err (which may be NULL) and return status. Control characters are escaped. */
enum status error_set(struct error *err, enum status status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/*
 * The same for an errno: "cannot FORMAT: why", and what to do if that is known ("; free space
 * there"). The status is error_status_of_errno's.
 */
enum status error_errno(struct error *err, int number, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Put "TEXT: " before what err, which is not NULL, says already. Returns err's status. */
enum status error_prefix(struct error *err, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * The status of an errno: permission for EACCES, EPERM, EROFS; usage for ENAMETOOLONG; temporary
 * for everything else that can pass (no space, quota, stale handles, I/O errors, timeouts).
 */
enum status error_status_of_errno(int number);

#endif
