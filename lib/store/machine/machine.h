/* SPDX-License-Identifier: MIT */
/*
 * Memory that the processes of this user on this machine share for one store. It has a queue: only
 * the process at its head asks for the store's lock, and that process may carry out the requests of
 * the others with its own (posts.h). The memory is a file, /dev/shm/preempt-UID/DEVICE-INODE-page6,
 * named after the lock file and the version of its own format; it holds the lock file's nonce.
 *
 * This only makes the store faster: without the shared memory, machine_open returns false, and
 * every other call does nothing and succeeds. The file may be deleted at any time. machine_leave
 * must be called in the thread that called machine_enter.
 */
#ifndef STORE_MACHINE_MACHINE_H
#define STORE_MACHINE_MACHINE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "store/machine/handoff.h"
#include "store/machine/posts.h"
#include "store/machine/staleness.h"
#include "store/machine/ticket_queue.h"

struct machine_page;

struct machine {
	struct machine_page *page; /* NULL: not available */
	int descriptor;
	char path[128];
	struct queue_ticket ticket;
};

/* device, inode, nonce: of the lock file. */
bool machine_open(struct machine *machine, dev_t device, ino_t inode, const char *nonce);
void machine_close(struct machine *machine);

/*
 * Wait until we are at the head of the queue. Returns 0 (also without shared memory) or ETIMEDOUT:
 * then *holder is the process at the head (0: not known), which got there at *since (clock_now).
 *
 * post (may be NULL): our request, which another process may carry out while we wait. EALREADY: it
 * has done so or may have; we are not in the queue, and post->fate is FATE_ANSWERED or
 * FATE_UNKNOWN. After a return of 0, post->fate is FATE_OURS or FATE_CHECK.
 */
int machine_enter(struct machine *machine, struct post *post, int64_t deadline, pid_t *holder,
	int64_t *since);
void machine_leave(struct machine *machine);

/* The posts; tickets *first to *end - 1 are behind us. NULL: we are not in the queue. */
struct posts *machine_posts(struct machine *machine, uint64_t *first, uint64_t *end);

/*
 * The staleness timer for a holder on another machine. It is in the page, because each process at
 * the head may end before the limit has passed. NULL: there is no page.
 */
struct staleness *machine_staleness(struct machine *machine);
/* The turn of this machine (handoff.h). NULL: there is no page. */
struct handoff *machine_handoff(struct machine *machine);

#endif
