/* SPDX-License-Identifier: MIT */
/*
 * How the processes of this user on this machine tell each other that a file on a shared filesystem
 * has changed: one of them looks at it now and then, and rings the others. What tells a change is a
 * counter in the file. A little memory, the file /dev/shm/preempt-UID/DEVICE-INODE-bell2, named
 * after that file (its directory is 0700 and ours, else it is not used).
 *
 * Nothing here is needed for being right, only for asking the filesystem less often: where the
 * memory cannot be had, every call does nothing. The file may be deleted at any time.
 */
#ifndef STORE_MACHINE_DOORBELL_H
#define STORE_MACHINE_DOORBELL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct doorbell_page;

/* One that is zeroed is not open, and may be closed. */
struct doorbell {
	struct doorbell_page *page; /* NULL: not open, or unusable */
	int descriptor;		    /* where page is not NULL */
	char path[128];		    /* what changes when the counter does: for inotify */
	bool polling;		    /* we are the one that looks */
};

bool doorbell_open(struct doorbell *doorbell, dev_t device, ino_t inode);
void doorbell_close(struct doorbell *doorbell);

/* Become the one that looks, if nobody is. */
bool doorbell_try_poll(struct doorbell *doorbell);
/* Stop being it; the others are woken, so that one of them takes over. */
void doorbell_stop_poll(struct doorbell *doorbell);

/* The counter last told, and when somebody last looked at the file (clock_now). */
uint32_t doorbell_counter(const struct doorbell *doorbell);
int64_t doorbell_polled(const struct doorbell *doorbell);
/* Tell a counter just seen. Wakes the others (a write to path) if it is news. */
void doorbell_tell(struct doorbell *doorbell, uint32_t counter, bool polled);

#endif
