/* SPDX-License-Identifier: MIT */
/* Threads beside the main loop of a program: they receive no signals, and cannot delay its end. */
#ifndef BASE_PROCESS_THREAD_H
#define BASE_PROCESS_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* Start a thread with all signals blocked. Returns 0 or an errno. */
int thread_start(pthread_t *thread, void *(*work)(void *), void *context);

/*
 * Wait for the end of the thread, at most patience ms, rounded down to seconds. False: it still
 * runs; its context is then kept until the process ends, and the caller must not free it.
 */
bool thread_join(pthread_t thread, const void *context, int64_t patience);

#endif
