/* SPDX-License-Identifier: MIT */
/* Identify a process by more than its number. To start one: base/process/subprocess.h. */
#ifndef BASE_PROCESS_PROCESS_H
#define BASE_PROCESS_PROCESS_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

/*
 * One incarnation of a process, on one boot of one machine. Two processes are the same only if all
 * fields are equal: containers share host name and boot id, and numbers are reused.
 */
struct process_identity {
	char host[65];
	char boot[37];		/* /proc/sys/kernel/random/boot_id */
	uint64_t pid_namespace; /* inode of /proc/self/ns/pid */
	pid_t pid;
	uint64_t start;		 /* clock ticks after boot, /proc/PID/stat field 22 */
	uint64_t time_namespace; /* inode of /proc/self/ns/time, for start; 0: ours */
};

/* Identify process pid of our own namespace; 0: ourselves. STATUS_NO: there is no such process. */
enum status process_identify(pid_t pid, struct process_identity *identity, struct error *err);

enum process_state {
	PROCESS_ALIVE,
	PROCESS_GONE,
	PROCESS_ELSEWHERE, /* on another machine, boot or namespace, or not known */
};
enum process_state process_check(const struct process_identity *identity);

/* The parent of a process. 0: it has none, or /proc does not show it. */
pid_t process_parent(pid_t pid);
/* The first ancestor of process `of` (its parent, or the parent of its parent, and so on) for which
 * is_it is true. 0: there is none, or /proc does not show it. */
pid_t process_find_ancestor(
	pid_t of, bool (*is_it)(pid_t pid, const void *context), const void *context);
/* Whether pid is an ancestor of process `of`; or /proc does not tell. */
bool process_is_ancestor(pid_t pid, pid_t of);

/*
 * Whether a process has this "NAME=VALUE" in the environment that its program was started with.
 * STATUS_NO: it has not, or is gone, or we are not allowed to read it. STATUS_TEMPORARY: it is just
 * changing its program (execve), and has no environment for a moment: ask again.
 */
enum status process_has_variable(pid_t pid, const char *variable);

/*
 * Block these signals and make a non-blocking signalfd, *descriptor, to read them. Signals that are
 * ignored are left out, so that nohup works; CHLD is not left out.
 */
enum status process_open_signals(
	const int *numbers, size_t count, int *descriptor, struct error *err);

/* Rename this process, as ps shows it and pkill -f finds it. */
void process_rename(const char *name);

#endif
