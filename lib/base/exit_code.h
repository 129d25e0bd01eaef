/* SPDX-License-Identifier: MIT */
/*
 * The exit codes of all programs: the table of preempt(7). 10, 42, 43, 44 and 93 are also values of
 * the protocol: in records, on a board (the line "leave 42"), and as exit codes for a launcher.
 */
#ifndef BASE_EXIT_CODE_H
#define BASE_EXIT_CODE_H

enum exit_code {
	CODE_OK = 0,	     /* yes, done */
	CODE_NO = 1,	     /* a definite no */
	CODE_USAGE = 2,	     /* wrong usage */
	CODE_SAVE = 10,	     /* save a checkpoint now */
	CODE_SAVED = 42,     /* saved: run me again */
	CODE_PREEMPTED = 43, /* preempted without a new complete checkpoint: run me again */
	CODE_BROKEN = 44,    /* a peer failed: run me again */
	CODE_DAMAGED = 65,   /* damaged, or of a newer format */
	CODE_TEMPORARY = 75, /* the answer could not be found out: try again */
	CODE_PERMISSION = 77,
	CODE_DECIDED = 93, /* decided: do not run me again */
	CODE_TIMEOUT = 124,
	CODE_CANNOT_RUN = 126,
	CODE_NOT_FOUND = 127,
};

#endif
