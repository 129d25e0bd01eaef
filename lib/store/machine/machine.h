/* SPDX-License-Identifier: MIT */
/*
 * What the processes of this user on this machine share about one store: a queue, so that only one
 * of them asks for the shared lock at a time; and the requests of those in it, which that one
 * carries out with its own (posts.h). A little memory, the file
 * /dev/shm/preempt-UID/DEVICE-INODE-page5, named after the lock file and the version of what is in
 * it, with the nonce of the lock file in it, so that a store whose tools were replaced has its
 * queue at once (its directory is 0700 and ours, else it is not used).
 *
 * Nothing here is needed for being right, only for being fast: where the memory cannot be had,
 * machine_open answers false, and every call on such a machine does nothing and succeeds. The file
 * may be deleted at any time. A thread leaves the queue where it entered.
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
 * 0; or ETIMEDOUT, and then who is in the way, for messages: a process and since when, or 0.
 *
 * post (may be NULL): a request that another may carry out while we wait. EALREADY: we are not in
 * the queue, and post->fate is FATE_ANSWERED or FATE_UNKNOWN. With 0 it is FATE_OURS or FATE_CHECK.
 */
int machine_enter(struct machine *machine, struct post *post, int64_t deadline, pid_t *holder,
	int64_t *since);
void machine_leave(struct machine *machine);

/*
 * Where those who are behind us in the queue post their requests, and their tickets: first to
 * before end. NULL: we are in no queue.
 */
struct posts *machine_posts(struct machine *machine, uint64_t *first, uint64_t *end);

/*
 * What the one whose turn it is has seen of a holder elsewhere: it adds up over many short-lived
 * processes. NULL where there is no page.
 */
struct staleness *machine_staleness(struct machine *machine);
/* For how long this machine has had the lock without a pause. NULL where there is no page. */
struct handoff *machine_handoff(struct machine *machine);

#endif
