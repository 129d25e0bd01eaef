/* SPDX-License-Identifier: MIT */
/* An eventfd with which one thread wakes another that polls it. */
#ifndef BASE_PROCESS_BELL_H
#define BASE_PROCESS_BELL_H

/* Return a new descriptor, to be closed by close(2); -1 and errno on failure. */
int bell_open(void);
/* Make the descriptor readable, until bell_hush. */
void bell_ring(int descriptor);
void bell_hush(int descriptor);

#endif
