/* SPDX-License-Identifier: MIT */
/*
 * How the processes of this user on this machine tell each other that a file on a shared filesystem
 * has changed: one of them polls a counter in that file, and notifies the others. They share the
 * memory /dev/shm/preempt-UID/DEVICE-INODE-bell2, named after the file on the shared filesystem.
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

/*
 * The last counter that a process has told, and when a process last polled (clock_now). The
 * doorbell is open.
 */
uint32_t doorbell_counter(const struct doorbell *doorbell);
int64_t doorbell_polled(const struct doorbell *doorbell);
/* Tell the others a counter; a new one wakes them. polled: we have just read it from the file. */
void doorbell_tell(struct doorbell *doorbell, uint32_t counter, bool polled);

#endif
