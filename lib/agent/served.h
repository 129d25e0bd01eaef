/* SPDX-License-Identifier: MIT */
/*
 * The process that a small program serves: the script that stands for the task, as preempt-store
 * join exports it (PREEMPT_AGENT). What serves one ends when it is gone.
 */
#ifndef AGENT_SERVED_H
#define AGENT_SERVED_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

/*
 * What PREEMPT_AGENT names; *pid is 0 where it is not set, is this very process, or is the mark of
 * preempt-run (REAPER_MARK).
 */
enum status served_agent(pid_t *pid, struct error *err);

/*
 * *descriptor becomes a pidfd of pid, readable when that process is gone; -1 where pid is 0. The
 * caller closes it. STATUS_NO: there is no such process.
 */
enum status served_open(pid_t pid, int *descriptor, struct error *err);
/* The same of what PREEMPT_AGENT names. */
enum status served_open_agent(int *descriptor, struct error *err);
bool served_is_gone(int descriptor);
/*
 * For a program that does without the process where it does not exist, and says so: *descriptor is
 * -1 then. *board is that of the task, PREEMPT_DIR; NULL where PREEMPT_AGENT names no process.
 */
enum status served_open_task(int *descriptor, const char **board, struct error *err);
/* Whether the process or the board is gone. */
bool served_is_over(int descriptor, const char *board);

/*
 * From now on TERM, USR1, USR2 and the signals that PREEMPT_SIGNALS names do not end this process:
 * a scheduler that sends a notice to every process of a job sends it to those that pass it on, too.
 */
void served_ignore_notices(void);

/* Block the same signals, for a program that takes them later; or unblock them. */
void served_block_notices(bool block);

/* Whether signal number is one of them. */
bool served_is_notice(int number);

#endif
