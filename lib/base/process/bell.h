/* SPDX-License-Identifier: MIT */
/* An eventfd by which one thread tells another, which polls it, that there is something. */
#ifndef BASE_PROCESS_BELL_H
#define BASE_PROCESS_BELL_H

/* The descriptor; -1 with errno: there is none left. Close it with close(2). */
int bell_open(void);
/* Readable until it is hushed, however often it was rung. */
void bell_ring(int descriptor);
void bell_hush(int descriptor);

#endif
