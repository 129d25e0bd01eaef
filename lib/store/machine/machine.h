/* SPDX-License-Identifier: MIT */
/*
 * What the processes of this user on this machine share about one store: a queue, so that only one
 * of them asks for the shared lock at a time; and their requests, which that one carries out with
 * its own (posts.h). It is the file /dev/shm/preempt-UID/DEVICE-INODE-page6, named after the lock
 * file and the version of the contents. The nonce of the lock file is in it.
 *
 * It only makes the store faster: where the memory is not available, machine_open answers false,
 * and every call does nothing and succeeds. The file may be deleted at any time. A thread leaves
 * the queue in which it entered.
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
	struct machine_page *page; /* NULL: unusable */
	int descriptor;
	char path[128];
	struct queue_ticket ticket;
};

/* nonce: the one of the lock file that has this device and inode. */
bool machine_open(struct machine *machine, dev_t device, ino_t inode, const char *nonce);
void machine_close(struct machine *machine);

/*
 * 0, or ETIMEDOUT: then *holder is the process in the way (0: not known), and *since its entry.
 *
 * post (may be NULL): a request that another process may carry out while we wait. EALREADY: we are
 * not in the queue, and post->fate is FATE_ANSWERED or FATE_UNKNOWN. With 0 it is FATE_OURS or
 * FATE_CHECK.
 */
int machine_enter(struct machine *machine, struct post *post, int64_t deadline, pid_t *holder,
	int64_t *since);
void machine_leave(struct machine *machine);

/*
 * The posts of the requests behind us in the queue, and their tickets: first to before end. NULL:
 * we are in no queue.
 */
struct posts *machine_posts(struct machine *machine, uint64_t *first, uint64_t *end);

/*
 * What the process at the head has seen of a holder on another machine: it adds up over many
 * short-lived processes. NULL without a page.
 */
struct staleness *machine_staleness(struct machine *machine);
/* The turn of this machine. NULL without a page. */
struct handoff *machine_handoff(struct machine *machine);

#endif
