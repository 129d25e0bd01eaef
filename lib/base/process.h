/* SPDX-License-Identifier: MIT */
/*
 * Processes: who one is, beyond its number, and how a command is started so that it cannot outlive
 * us.
 */
#ifndef BASE_PROCESS_H
#define BASE_PROCESS_H

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
	PROCESS_ELSEWHERE, /* another machine, boot or namespace: cannot be told from here */
};
enum process_state process_check(const struct process_identity *identity);

/* How a command is started. Zeroed is a plain fork and exec. */
struct process_command {
	char *const *argv;
	char *const *environment; /* NULL: ours; its PATH is where the command is looked for */
	const char *directory;	  /* where it runs; NULL: where we are */
	bool own_group;		  /* leads a process group of its own */
	/*
	 * KILL when the thread that started it ends, re-checked after fork. With own_group the
	 * kernel also sends KILL to that whole group when this process ends, however it does.
	 */
	bool die_with_parent;
	sigset_t ignored; /* ignored before exec; the others stay as they were at our start */
	int terminal; /* with own_group: gets the foreground of it; 0: stays in the background */
	/* Become its descriptors 0, 1 and 2; 0: ours. */
	int standard_input, standard_output, standard_error;
};

/*
 * Start a command. STATUS_NOT_FOUND (127) and STATUS_CANNOT_RUN (126) as a shell would say;
 * STATUS_NO, with an error: its directory is not there, or not for us; STATUS_TEMPORARY: what can
 * pass (no memory, no process, no descriptor, a filesystem that does not answer). The child starts
 * with no signal blocked.
 */
enum status process_start(const struct process_command *command, pid_t *pid, struct error *err);

/*
 * Add those of numbers that are not ignored: a signalfd would read the others, too, and nohup must
 * stay nohup.
 */
void process_add_heeded(sigset_t *set, const int *numbers, size_t count);

/* What this process, forked from ours, is called from now on: in ps, and for pkill -f. */
void process_rename(const char *name);

/* The exit code a shell gives for a wait status: the code, or 128 + signal. */
int process_exit_code(int wait_status);

#endif
