/* SPDX-License-Identifier: MIT */
/*
 * Whole programs, with faults at their calls: the rows of files like store.rows.
 *
 *	# Comments. What comes before the first row is shell text for all of them: functions.
 *
 *	== NAME: FAULT...
 *	setup   shell text, run once, in an empty directory
 *	run     the command: words, not shell text; $NAME is replaced
 *	exits   its exit code (0), and those that it may have when it is repeated
 *	holds   shell text, run after each fault, before anything is repeated
 *	after   shell text, run after the command was repeated without a fault (as "holds")
 *	least   so many points at least; otherwise the row has tested nothing, and fails
 *	says    what stderr must say after at least one of the faults
 *
 * A text may go on in lines that begin with a tab. It must end with 0, with no command that fails
 * before (sh -eu). It finds the exit code of the command in $CODE, what it printed in the files
 * $ANSWER and $ERRORS, and "$CRASH --inject" (inject.h). A file "stdin" is the command's stdin. In
 * the environment are PREEMPT_STORE=$PWD/s.db, XDG_RUNTIME_DIR=$PWD/run, and PID, a process that
 * lives.
 *
 * After each fault the exit code must be the usual one; or 75 or 77, with the true cause in stderr;
 * or that of the signal.
 */
#ifndef CRASH_COMMANDS_H
#define CRASH_COMMANDS_H

#include "library.h"

struct row {
	char *name;
	unsigned faults;
	char *functions; /* of its file */
	char *setup, *run, *exits, *holds, *after, *says;
	size_t least;
};

struct rows {
	struct row *list;
	size_t count;
};

/* Exits with 2 and says so where the file is not right. */
void rows_read(struct rows *rows, const char *path);
void rows_release(struct rows *rows);

void commands_begin(void);
struct result commands_run(const struct row *row, unsigned faults, size_t most, uint64_t *seed);
void commands_end(void);

#endif
