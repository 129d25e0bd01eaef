/* SPDX-License-Identifier: MIT */
/*
 * What the processes of this user on this machine share about one store: a queue, so that only the
 * process at its head asks for the store's lock; and their requests, which that process carries out
 * with its own (posts.h). They are in the file /dev/shm/preempt-UID/DEVICE-INODE-page6, named after
 * the lock file and the version of the format, with the nonce of the lock file.
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
 * Wait until we are at the head of the queue. Returns 0; or ETIMEDOUT, and *holder is the process
 * at the head (0: not known), *since the time at which it came there (clock_now).
 *
 * post (may be NULL): a request that another process may carry out while we wait. If that ended the
 * wait, this returns EALREADY, we are not in the queue, and post->fate is FATE_ANSWERED or
 * FATE_UNKNOWN. With 0, post->fate is FATE_OURS or FATE_CHECK.
 */
int machine_enter(struct machine *machine, struct post *post, int64_t deadline, pid_t *holder,
	int64_t *since);
void machine_leave(struct machine *machine);

/*
 * The requests that are posted behind us in the queue; their tickets are *first to *end - 1. NULL:
 * we are not in the queue.
 */
struct posts *machine_posts(struct machine *machine, uint64_t *first, uint64_t *end);

/*
 * For how long the processes at the head have seen a holder on another machine do nothing: the page
 * adds this up over many short-lived processes. NULL: there is no page.
 */
struct staleness *machine_staleness(struct machine *machine);
/* The turn of this machine. NULL: there is no page. */
struct handoff *machine_handoff(struct machine *machine);

#endif
