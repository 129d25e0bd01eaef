/* SPDX-License-Identifier: MIT */
#ifndef BASE_PROCESS_DESCRIPTOR_H
#define BASE_PROCESS_DESCRIPTOR_H

#include <stdbool.h>
#include <stdint.h>

/* Wait until a read would not block, or the process of a pidfd has ended. False: `until` came
 * first, or a signal. */
bool descriptor_wait(int descriptor, int64_t until);
/* The same without waiting. False for descriptor -1. */
bool descriptor_is_ready(int descriptor);

#endif
