/* SPDX-License-Identifier: MIT */
/*
 * How the processes of this user on this machine tell each other that a file on a shared filesystem
 * has changed: one of them polls a counter in that file, and notifies the others. They share the
 * memory /dev/shm/preempt-UID/DEVICE-INODE-bell3, named after the file on the shared filesystem.
 *
 * This only saves requests to the filesystem: without the shared memory, each process polls the
 * counter itself. The file in /dev/shm may be deleted at any time.
 */
#ifndef STORE_MACHINE_DOORBELL_H
#define STORE_MACHINE_DOORBELL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct doorbell_page;

/* Zeroed: not open; may be closed. */
struct doorbell {
	struct doorbell_page *page; /* NULL: not open, or unusable */
	int descriptor;		    /* valid if page is not NULL */
	char path[128];		    /* for inotify: this file changes when the counter does */
	bool polling;		    /* we are the process that polls */
};

bool doorbell_open(struct doorbell *doorbell, dev_t device, ino_t inode);
void doorbell_close(struct doorbell *doorbell);

/* Become the process that polls, if there is none. The doorbell is open. */
bool doorbell_try_poll(struct doorbell *doorbell);
/* Stop polling, and wake the others, so that one of them takes over. */
void doorbell_stop_poll(struct doorbell *doorbell);

struct doorbell_news {
	uint32_t counter; /* which the processes of this machine know */
	int64_t polled; /* when the last poll began (clock_now), up to 64 ms earlier; 0: none yet */
};
/* Zeroed if the doorbell is not open. */
struct doorbell_news doorbell_look(const struct doorbell *doorbell);
/*
 * Tell the others a counter that we have seen under the lock. A newer one wakes them; an older one
 * is ignored, because this process may have been stopped since.
 */
void doorbell_tell(struct doorbell *doorbell, uint32_t counter);
/*
 * The same for a process that polls: it has read this counter after the time `began`. After a later
 * poll than the last one the counter may also go back: a commit was rolled back, or an older copy
 * of the file was put back.
 */
void doorbell_tell_polled(struct doorbell *doorbell, uint32_t counter, int64_t began);

#endif
