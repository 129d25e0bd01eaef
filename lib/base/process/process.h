/* SPDX-License-Identifier: MIT */
/* Processes: who one is, beyond its number. Commands of ours: base/process/subprocess.h. */
#ifndef BASE_PROCESS_PROCESS_H
#define BASE_PROCESS_PROCESS_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

/*
 * One incarnation of a process, on one boot of one machine. Two processes are the same only if all
 * fields are equal: containers share host name and boot id, and numbers are used again.
 */
struct process_identity {
	char host[65];
	char boot[37];		/* /proc/sys/kernel/random/boot_id */
	uint64_t pid_namespace; /* inode of /proc/self/ns/pid */
	pid_t pid;
	uint64_t start;		 /* clock ticks after boot, /proc/PID/stat field 22 */
	uint64_t time_namespace; /* inode of /proc/self/ns/time, to which start belongs; 0: ours */
};

/* Who process pid (of our own namespace; 0: we) is. STATUS_NO: there is no such process. */
enum status process_identify(pid_t pid, struct process_identity *identity, struct error *err);

enum process_state {
	PROCESS_ALIVE,
	PROCESS_GONE,
	PROCESS_ELSEWHERE, /* another machine, boot or namespace, or not known: cannot be told */
};
enum process_state process_check(const struct process_identity *identity);

/*
 * Block these signals, and read them from a signalfd from now on: *descriptor, which does not
 * block. Those that are ignored are left alone, as nohup must stay nohup; CHLD is read in any case.
 */
enum status process_open_signals(
	const int *numbers, size_t count, int *descriptor, struct error *err);

/* What this process, forked from ours, is called from now on: in ps, and for pkill -f. */
void process_rename(const char *name);

#endif
