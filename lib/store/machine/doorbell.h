/* SPDX-License-Identifier: MIT */
/*
 * How the processes of this user on this machine tell each other that a file on a shared filesystem
 * has changed: one of them reads a counter in the file now and then, and rings the others. They
 * share the file /dev/shm/preempt-UID/DEVICE-INODE-bell2, named after the file on the shared
 * filesystem.
 *
 * It only saves requests to the filesystem: where the memory is not available, each process reads
 * the counter itself. The file may be deleted at any time.
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

/* Only of an open doorbell: become the process that polls, if there is none. */
bool doorbell_try_poll(struct doorbell *doorbell);
/* Stop polling. The others are woken, so that one of them takes over. */
void doorbell_stop_poll(struct doorbell *doorbell);

/*
 * Only of an open doorbell: the counter last told, and when a process last read the file
 * (clock_now).
 */
uint32_t doorbell_counter(const struct doorbell *doorbell);
int64_t doorbell_polled(const struct doorbell *doorbell);
/* Tell the others a counter just seen. If it has changed, they are woken by a write to path. */
void doorbell_tell(struct doorbell *doorbell, uint32_t counter, bool polled);

#endif
