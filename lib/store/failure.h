/* SPDX-License-Identifier: MIT */
/* What a store says of an errno: what failed, why, and what to do. */
#ifndef STORE_FAILURE_H
#define STORE_FAILURE_H

#include "base/error.h"

/* "cannot FORMAT: why; what to do". Returns the status of the errno. */
enum status store_failure(struct error *err, int number, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* "; what to do" about an errno that a store can run into; "" where there is nothing to say. */
const char *store_cure(int number);

#endif
