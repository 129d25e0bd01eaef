/* SPDX-License-Identifier: MIT */
/*
 * A peer: the one at the other end, to whom requests go and from whom answers come, one at a time.
 * Two ways: a child process, by pipes; or a process on another machine, by files in a directory
 * that both see. There every message is a file of a new name, made whole by rename, and whoever
 * waits for one opens the directory anew each time: what the filesystem under test remembers of old
 * names and contents does not matter.
 *
 * Waiting ends early when the peer is seen to be gone (on this machine), or when doctor_stop is
 * set.
 */
#ifndef STORE_DOCTOR_PEER_H
#define STORE_DOCTOR_PEER_H

#include <json-c/json_object.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/process.h"
#include "base/text.h"

struct doctor_peer {
	char name[96]; /* for messages */
	/* By pipes. */
	pid_t pid; /* of the child; 0: by files */
	int to, from;
	struct text unread;
	/* By files. */
	const char *box;   /* the directory */
	char mine, theirs; /* letters: who writes */
	uint64_t number;   /* of the peer among all */
	uint64_t sent, received;
	struct process_identity identity; /* of the peer; pid 0: not known */
	int64_t asked; /* clock_now and clock_utc of the last request, for clocks */
	int64_t asked_utc;
};

/* Set to the number of a signal: all waiting ends, STATUS_TEMPORARY. SIGALRM: the time is up. */
extern volatile sig_atomic_t doctor_stop;
/* What that means, for messages. */
const char *doctor_stop_why(void);

/*
 * A child that does what it is asked in directory; it is killed when we die, and ignores the
 * signals of the terminal.
 */
enum status doctor_peer_start(struct doctor_peer *peer, const char *directory, struct error *err);
/* The other end by files: leads: we ask and it answers. box stays the caller's. */
void doctor_peer_meet(
	struct doctor_peer *peer, const char *box, uint64_t number, bool leads, const char *name);
/* A child is killed and waited for (a moment: it may hang in the filesystem). */
void doctor_peer_end(struct doctor_peer *peer);

enum status doctor_peer_send(
	struct doctor_peer *peer, struct json_object *message, struct error *err);
/* *message is the caller's. STATUS_TEMPORARY: not in time, gone, or we shall stop. */
enum status doctor_peer_receive(struct doctor_peer *peer, int64_t deadline,
	struct json_object **message, struct error *err);

#endif
