/* SPDX-License-Identifier: MIT */
/*
 * The process that a small program serves: the script that stands for the task, as preempt-store
 * join exports it (PREEMPT_AGENT). The program ends when that process is gone.
 */
#ifndef AGENT_SERVED_H
#define AGENT_SERVED_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

/*
 * The process that PREEMPT_AGENT names. *pid is 0 if the variable is not set, names this process,
 * or has the mark of preempt-run (REAPER_MARK).
 */
enum status served_agent(pid_t *pid, struct error *err);

/*
 * *descriptor becomes a pidfd of pid, readable when that process is gone; -1 if pid is 0. The
 * caller closes it. STATUS_NO: there is no such process.
 */
enum status served_open(pid_t pid, int *descriptor, struct error *err);
/* The same for the process that PREEMPT_AGENT names. */
enum status served_open_agent(int *descriptor, struct error *err);
bool served_is_gone(int descriptor);
/*
 * Like served_open_agent, for a program that can do without the process: if the process does not
 * exist, that is reported, and *descriptor is -1. *board becomes PREEMPT_DIR; NULL if PREEMPT_AGENT
 * names no process.
 */
enum status served_open_task(int *descriptor, const char **board, struct error *err);
/* Whether the process or the board is gone. */
bool served_is_over(int descriptor, const char *board);

/*
 * From now on NOTICE_SIGNALS and those that PREEMPT_SIGNALS names do not end this process:
 * a scheduler that sends a notice to every process of a job sends it to this program, too.
 */
void served_ignore_notices(void);

/* Block the same signals, for a program that takes them later; or unblock them. */
void served_block_notices(bool block);

/* Whether signal `number` is one of these notices. */
bool served_is_notice(int number);

#endif
