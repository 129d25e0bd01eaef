/* SPDX-License-Identifier: MIT */
/*
 * The lock among the processes of this user on this machine, for a store on a filesystem that other
 * machines see: a file in /dev/shm/preempt-UID, named after the device and inode of the store's
 * lock. So one process of a machine at a time asks the filesystem.
 *
 * The file also holds what these processes know together: a random number, which with the boot id
 * names the machine in a token (token.h); for how long another machine's token was seen unchanged;
 * and the turn of this machine. Containers with a /dev/shm of their own are other machines. The
 * file may be deleted at any time: who makes it again is another machine to those who have it open.
 * Where there is none, each struct machine is a machine of its own: that is slower, and as safe.
 */
#ifndef STORE_LOCK_MACHINE_H
#define STORE_LOCK_MACHINE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define MACHINE_RETRY 64 /* ms: the longest pause between two looks of a machine that waits */

/* What the processes of a machine know together. */
struct machine_known {
	uint64_t random; /* 0: not drawn yet */
	pid_t holder;
	int64_t since; /* clock_now when it got the lock of the machine */
	bool has;      /* it has the lock of the store, too */
	/* The token that another machine has had for too long: */
	uint64_t what;	/* a hash of its name */
	int64_t looked; /* clock_now of the last look that counted */
	int64_t looks;
	/* The turn: other machines look for the lock at most every MACHINE_RETRY ms, and would not
	 * find it free while processes of this machine pass it on. */
	int64_t began, gave;
};

struct machine {
	int descriptor; /* -1: not open */
	char name[17];	/* of this machine, in tokens */
	struct machine_known known;
};

void machine_init(struct machine *machine);
/* Without a file: be a machine of our own. */
void machine_name_anew(struct machine *machine);
void machine_open(struct machine *machine, dev_t device, ino_t inode);
void machine_close(struct machine *machine);

/* Returns 0, or EAGAIN: another process has it; then known.holder and known.since say who. */
int machine_take(struct machine *machine, int64_t deadline);
void machine_give(struct machine *machine);

/* The rest is called by the process that has the lock. */

/* For how many milliseconds to leave the store's lock free for other machines; mostly 0. */
int64_t machine_pause(const struct machine *machine);
/* The store's lock was taken (waited: another machine had it before), or is about to be given. */
void machine_taken(struct machine *machine, bool waited);
void machine_giving(struct machine *machine);

#define MACHINE_LOOKS 16 /* of others that are counted, before a token counts as abandoned */
/* Whether a look at this token counts now: MACHINE_LOOKS of them take `limit` ms. */
bool machine_look_is_due(const struct machine *machine, uint64_t what, int64_t limit);
/* Count it. Returns whether there were enough. */
bool machine_looked(struct machine *machine, uint64_t what);

#endif
