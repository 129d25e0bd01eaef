/* SPDX-License-Identifier: MIT */
/* Threads beside the main loop of a program: they receive no signals, and cannot delay its end. */
#ifndef BASE_PROCESS_THREAD_H
#define BASE_PROCESS_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* All signals are blocked in it. Returns 0 or an errno. */
int thread_start(pthread_t *thread, void *(*work)(void *), void *context);

/*
 * Wait at most patience ms (in whole seconds) for its end. False: it still runs; its context, which
 * the caller must not free then, is kept until the process ends.
 */
bool thread_join(pthread_t thread, const void *context, int64_t patience);

#endif
