/* SPDX-License-Identifier: MIT */
/* Programs with calls.so before libc, so that a plan is carried out in them. */
#ifndef CRASH_INJECT_H
#define CRASH_INJECT_H

#include "calls.h"

/* A plan in memory that a program we start can open; exits where that fails. */
struct plan *inject_plan(void);

/*
 * Fork; in the child, with the plan in its environment: run prepare(argument), then the command.
 * The child's number. Without a plan: the command as it is.
 */
pid_t inject_start(const struct plan *plan, char *const *argv, void (*prepare)(void *argument),
	void *argument);

/* The exit code of a wait status, as a shell says it. */
int inject_code(int status);

/*
 * crash --inject DIRECTORY [CALL[:FILE]] AT ACT [ERRNO|SIGNAL] -- COMMAND [ARG...]
 * The words behind "--inject".
 */
int inject_main(int count, char **words);

#endif
