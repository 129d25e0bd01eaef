/* SPDX-License-Identifier: MIT */
#ifndef BASE_DESCRIPTOR_H
#define BASE_DESCRIPTOR_H

#include <stdbool.h>

/* Whether a read would not block, or the process of a pidfd has ended. -1: never. */
bool descriptor_is_ready(int descriptor);

#endif
