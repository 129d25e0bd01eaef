/* SPDX-License-Identifier: MIT */
/* Threads that work beside a program's loop: they take no signals, and cannot keep it from ending.
 */
#ifndef BASE_PROCESS_THREAD_H
#define BASE_PROCESS_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* All signals are blocked in it. 0, or a number of errno. */
int thread_start(pthread_t *thread, void *(*work)(void *), void *context);

/*
 * Wait for its end for so long (ms, in whole seconds). False: it goes on, and its context, which
 * the caller must not free then, is kept until the process ends.
 */
bool thread_join(pthread_t thread, const void *context, int64_t patience);

#endif
