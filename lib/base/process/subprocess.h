/* SPDX-License-Identifier: MIT */
/*
 * Commands that we start, and their ends.
 *
 *	struct subprocess child;
 *	struct subprocess_options how = {.shell = text, .limit = clock_after(30000)};
 *	subprocess_start(&child, &how, &err);
 *	... poll(2) for child.end.descriptor, until child.end.due ...
 *	switch (subprocess_check(&child, clock_now())) {
 *	case SUBPROCESS_ENDED: ... child.code ... subprocess_reap(&child, false);
 *
 * A command leads a process group of its own and dies with us, however we die: the kernel sends
 * KILL to it when the thread that started it ends, and to its group when this process ends. A
 * reaper (base/process/reaper.h), where there is one, ends also what has left the group.
 *
 * Until subprocess_reap its number, and that of its group, is surely its own: KILL to the group
 * hits no other process. So look first, then reap. A program that reaps processes it did not start
 * calls subprocess_reap_others, never waitpid(-1).
 *
 * A zeroed struct subprocess is one that was never started. One thread calls all of these.
 */
#ifndef BASE_PROCESS_SUBPROCESS_H
#define BASE_PROCESS_SUBPROCESS_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/text.h"

struct reaper;

/* Instead of a descriptor for one of the three standard ones. 0 is ours, as it is. */
enum {
	SUBPROCESS_NOTHING = -1, /* /dev/null */
	SUBPROCESS_KEEP = -2,	 /* a pipe, read into output or errors; not for stdin */
	SUBPROCESS_JOINED = -3,	 /* of stderr: where stdout goes */
};

/* How a command is started. Zeroed: a plain command with our environment, directory and files. */
struct subprocess_options {
	char *const *argv;
	const char *shell;	  /* instead of argv: this text, by /bin/sh -c */
	char *const *environment; /* NULL: ours; its PATH is where the command is looked for */
	const char *directory;	  /* where it runs; NULL: where we are */
	int standard[3];	  /* become its descriptors 0, 1 and 2 */
	const char *input;	  /* instead of standard[0]: these bytes, at most 4096 */
	const char *input_path;	 /* or this file: opened by the child, a pipe is never waited for */
	const char *output_path; /* instead of standard[1]: emptied by the child, in directory */
	size_t keep; /* bytes of SUBPROCESS_KEEP, each; the rest is dropped; 0: 64 KiB */
	const sigset_t *ignored; /* ignored from its start; NULL: as we were started */
	bool in_our_group;	 /* it gets what is sent to our process group */
	int terminal;  /* its group gets the foreground of it; 0: stays in the background */
	int64_t limit; /* the instant of KILL; 0: none */
	int epoll;     /* gets the descriptors of its end and its output while it runs; 0: none */
	const struct reaper *reaper; /* NULL: none */
};

struct subprocess {
	pid_t pid; /* also its process group; 0: not running */
	struct {
		int descriptor; /* a pidfd, readable when it has ended */
		int64_t due;	/* call subprocess_check then in any case */
	} end;
	int from[2]; /* pipes of stdout and stderr that are kept; -1: nothing more */
	struct text output, errors;
	bool late;	     /* it got KILL at its limit */
	bool ended;	     /* the rest is filled */
	int code;	     /* as a shell says it: the exit code, or 128 + signal; -1: not known */
	siginfo_t how;	     /* of waitid */
	struct rusage usage; /* once it is reaped */

	const struct reaper *reaper;
	int64_t limit; /* the instant of the next KILL */
	size_t keep;
	int epoll;
	bool is_watched_only, in_our_group;
};

/*
 * STATUS_NOT_FOUND (127) and STATUS_CANNOT_RUN (126) as a shell would say; STATUS_NO, with an
 * error: its directory, its input or output file is not there, or not for us; STATUS_TEMPORARY:
 * what can pass (no process, no descriptor, a filesystem that does not answer). It starts with no
 * signal blocked.
 */
enum status subprocess_start(
	struct subprocess *child, const struct subprocess_options *options, struct error *err);
/* One that is not ours: its end is seen, it can be signalled, and is not reaped. STATUS_NO: gone.
 */
enum status subprocess_watch(struct subprocess *child, pid_t pid, struct error *err);

enum subprocess_state {
	SUBPROCESS_NONE,
	SUBPROCESS_RUNS,
	SUBPROCESS_LATE,  /* its limit has passed, and it got KILL: said once */
	SUBPROCESS_ENDED, /* until subprocess_reap */
};
/* Read what it has written; send KILL at its limit. Never blocks. */
enum subprocess_state subprocess_check(struct subprocess *child, int64_t now);

/* To its group, and to itself where it has left that. One that has ended gets nothing. */
void subprocess_signal(const struct subprocess *child, int number);
/*
 * One that has ended. KILL to what is left of its group, unless spare; then its number is free, and
 * pid is 0. Its code, output and usage stay, until subprocess_release.
 */
void subprocess_reap(struct subprocess *child, bool spare);
/* KILL and reap it, if it runs. One that the kernel holds for a second is left to the reaper. */
void subprocess_kill(struct subprocess *child);
/*
 * subprocess_check, and subprocess_reap of one that has ended: SUBPROCESS_ENDED is answered once,
 * and not after SUBPROCESS_LATE.
 */
enum subprocess_state subprocess_finish(struct subprocess *child, int64_t now);
/* subprocess_kill, and frees its output. Legal for one that was never started. */
void subprocess_release(struct subprocess *child);

/*
 * Start it, wait for its end until options->limit (which must be there), reap it. STATUS_OK: *child
 * has code and output; STATUS_TIMEOUT: it was ended. Signals are not looked at. Release it.
 */
enum status subprocess_run(
	struct subprocess *child, const struct subprocess_options *options, struct error *err);

/*
 * Reap all that has ended and lost its parent below us; what runs by subprocess_start and the
 * process of reaper (NULL: none) are left to their own calls.
 */
void subprocess_reap_others(const struct reaper *reaper);

#endif
