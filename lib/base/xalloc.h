/* SPDX-License-Identifier: MIT */
/*
 * Memory. If none is available, these functions print "out of memory" and end the program at once
 * with 75 (try again), as a kill would: the kernel releases its locks, a half-written file is
 * recognised by its name, and the reaper ends the commands that were started. So no function here
 * returns NULL, and no function of lib/ has to answer "out of memory". libpreempt (lib/client)
 * allocates nothing and does not use this: it must never end the training.
 *
 * Release what is returned with free(3).
 */
#ifndef BASE_XALLOC_H
#define BASE_XALLOC_H

#include <stdarg.h>
#include <stddef.h>

void *xmalloc(size_t size) __attribute__((malloc, alloc_size(1), returns_nonnull));
/* count elements of size bytes, zeroed; count may be 0. */
void *xcalloc(size_t count, size_t size) __attribute__((malloc, alloc_size(1, 2), returns_nonnull));
/* array (NULL: none) resized to count elements of size bytes; new ones are not set. */
void *xrealloc(void *array, size_t count, size_t size) __attribute__((returns_nonnull));
/* Make room for one more element after `used`. If *capacity (elements) is used up, double it. */
void *xgrow(void *array, size_t used, size_t *capacity, size_t size)
	__attribute__((returns_nonnull));
char *xstrdup(const char *text) __attribute__((malloc, returns_nonnull));
char *xstrndup(const char *text, size_t most) __attribute__((malloc, returns_nonnull));
/* The text that printf would print. */
char *xprintf(const char *format, ...)
	__attribute__((malloc, format(printf, 1, 2), returns_nonnull));
char *xvprintf(const char *format, va_list arguments)
	__attribute__((malloc, format(printf, 1, 0), returns_nonnull));

/* Return allocated, which another library allocated; end the program if it is NULL. */
void *xneeded(void *allocated) __attribute__((returns_nonnull));
_Noreturn void xalloc_failed(void);

#endif
