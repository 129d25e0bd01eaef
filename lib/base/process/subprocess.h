/* SPDX-License-Identifier: MIT */
/*
 * Start commands and see their end.
 *
 *	struct subprocess child;
 *	struct subprocess_options how = {.shell = text, .limit = clock_after(30000)};
 *	subprocess_start(&child, &how, &err);
 *	... wait for child.end.descriptor, until child.end.due ...
 *	switch (subprocess_check(&child, clock_now())) {
 *	case SUBPROCESS_ENDED: ... child.code ... subprocess_reap(&child, false);
 *
 * A command leads a process group of its own and dies with us, however we die: the kernel sends
 * KILL to it when the thread that started it ends, and to its group when this process ends. A
 * reaper (base/process/reaper.h), if there is one, also ends processes that have left the group.
 *
 * Until subprocess_reap, the numbers of the command and of its group are not reused, so KILL to the
 * group hits no other process: check first, then reap. A program that reaps processes that it did
 * not start calls subprocess_reap_others, never waitpid(-1).
 *
 * A zeroed struct subprocess was never started. Call all functions from one thread.
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

struct loop;
struct reaper;

/* In subprocess_options.standard, instead of a descriptor. 0: our own descriptor is inherited. */
enum {
	SUBPROCESS_NOTHING = -1, /* /dev/null */
	SUBPROCESS_KEEP = -2,	 /* a pipe, read into output or errors; not for stdin */
	SUBPROCESS_JOINED = -3,	 /* for stderr: the same as stdout */
};

/* How a command is started. Zeroed: a plain command with our environment, directory and files. */
struct subprocess_options {
	char *const *argv;
	const char *shell;	  /* instead of argv: this text, by /bin/sh -c */
	char *const *environment; /* NULL: ours; the command is searched for in its PATH */
	const char *directory;	  /* its current directory; NULL: ours */
	int standard[3];	  /* its descriptors 0, 1 and 2 */
	const char *input;	  /* instead of standard[0]: this text, at most 4096 bytes */
	const char *input_path;	  /* or this file; a FIFO is opened without waiting for a writer */
	const char *output_path;  /* instead of standard[1]: this file, emptied; in directory */
	size_t keep; /* most bytes of each SUBPROCESS_KEEP; the rest is dropped; 0: 64 KiB */
	const sigset_t *ignored;     /* it ignores these signals and those that we ignore */
	bool in_our_group;	     /* no group of its own, so that it gets signals to ours */
	int terminal;		     /* descriptor; its group gets the foreground; 0: none */
	int64_t limit;		     /* the instant at which it gets KILL; 0: none */
	struct loop *loop;	     /* watches its pidfd and its pipes while it runs; NULL: none */
	const struct reaper *reaper; /* NULL: none */
};

struct subprocess {
	pid_t pid; /* also its process group; 0: not running */
	struct {
		int descriptor; /* a pidfd, readable when it has ended */
		int64_t due;	/* call subprocess_check at this instant in any case */
	} end;
	int from[2]; /* pipes of stdout and stderr that are kept; -1: none, or ended */
	struct text output, errors;
	bool late;	     /* it got KILL at its limit */
	bool ended;	     /* code and how are set */
	int code;	     /* as in a shell: the exit code, or 128 + signal; -1: not known */
	siginfo_t how;	     /* of waitid */
	struct rusage usage; /* set when it is reaped */

	const struct reaper *reaper;
	int64_t limit; /* the instant of the first, or the next, KILL */
	size_t keep;
	struct loop *loop;
	bool is_watched_only, in_our_group;
};

/*
 * Start a command, with no signal blocked. STATUS_NOT_FOUND (127), STATUS_CANNOT_RUN (126): as in a
 * shell. STATUS_NO, with an error: its directory, input or output file is missing or not
 * accessible. STATUS_TEMPORARY: the failure may pass (no process or descriptor left, a filesystem
 * that does not answer).
 */
enum status subprocess_start(
	struct subprocess *child, const struct subprocess_options *options, struct error *err);
/* Watch a process that we did not start; it is never reaped. STATUS_NO: it is gone. */
enum status subprocess_watch(struct subprocess *child, pid_t pid, struct error *err);

enum subprocess_state {
	SUBPROCESS_NONE,
	SUBPROCESS_RUNS,
	SUBPROCESS_LATE,  /* its limit has passed, and it got KILL; returned once */
	SUBPROCESS_ENDED, /* returned until subprocess_reap */
};
/* Read its output; send KILL at its limit. Never blocks. */
enum subprocess_state subprocess_check(struct subprocess *child, int64_t now);

/* Signal its group, and the process itself if it has left the group. No effect after its end. */
void subprocess_signal(const struct subprocess *child, int number);
/*
 * End it: signal `number` (0: none) and CONT now, for one that is stopped, and KILL at kill_at, and
 * again each second, by subprocess_check. In a repeated call the earliest KILL counts.
 */
void subprocess_end(struct subprocess *child, int number, int64_t kill_at);
/*
 * Reap a command that has ended. Before that, KILL the rest of its group, unless spare. After it,
 * its number may be reused, and pid is 0. Its code, output and usage stay until subprocess_release.
 */
void subprocess_reap(struct subprocess *child, bool spare);
/* KILL and reap it, if it runs. If it has not ended after a second, it is left to the reaper. */
void subprocess_kill(struct subprocess *child);
/*
 * subprocess_check, then subprocess_reap if it has ended: returns SUBPROCESS_ENDED once, and never
 * after SUBPROCESS_LATE.
 */
enum subprocess_state subprocess_finish(struct subprocess *child, int64_t now);
/* subprocess_kill, then free its output. Legal for one that was never started. */
void subprocess_release(struct subprocess *child);

/*
 * Start a command, wait for its end, reap it. options->limit must be set. STATUS_OK: *child has
 * code and output. STATUS_TIMEOUT: it was killed. Signals do not end the wait. Release *child.
 */
enum status subprocess_run(
	struct subprocess *child, const struct subprocess_options *options, struct error *err);

/*
 * Reap the ended orphans that have become our children. It skips the commands of subprocess_start
 * and the process of reaper (NULL: none), for which there are other functions.
 */
void subprocess_reap_others(const struct reaper *reaper);

#endif
