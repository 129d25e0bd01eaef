/* SPDX-License-Identifier: MIT */
#ifndef BASE_PROCESS_DESCRIPTOR_H
#define BASE_PROCESS_DESCRIPTOR_H

#include <stdbool.h>
#include <stdint.h>

/* Wait until a read would not block, the process of a pidfd has ended (true), `until`, or a signal.
 */
bool descriptor_wait(int descriptor, int64_t until);
/* Whether a read would not block, or the process of a pidfd has ended. -1: never. */
bool descriptor_is_ready(int descriptor);

#endif
