/* SPDX-License-Identifier: MIT */
/*
 * The token: the lock of a store on a filesystem whose byte-range locks do not reach the other
 * machines, or outlive a machine that died for long. DATABASE.lock is a directory that holds one
 * file, and the name of that file is everything:
 *
 *	STATE-NONCE-MACHINE-PID-FILE-HOST
 *
 * STATE is f (free), h (held) or m (held while the database is copied to a new file). NONCE is new
 * with each rename. FILE names the database: zeros for DATABASE itself, which is so until the first
 * takeover, else DATABASE.FILE; n's for one that was not made yet. All names have one length.
 *
 * token_step.h says how it is taken, given back and taken over. It is never opened to find out
 * whether it is there, since clients of network filesystems remember what was missing: the
 * directory is listed. A holder renames it each second, and another machine takes it over when its
 * name has not changed for token_patience, in which our own writes went through. No clocks are
 * compared: a holder that is taken over while it lives only loses what was not
 * acknowledged yet.
 */
#ifndef STORE_LOCK_TOKEN_H
#define STORE_LOCK_TOKEN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct lock;

#define TOKEN_NAME 97 /* bytes of a name, with its NUL */
#define TOKEN_FILE 17 /* of FILE, with its NUL */
#define TOKEN_BASE "0000000000000000"
#define TOKEN_NEW  "nnnnnnnnnnnnnnnn"

/* ms without a change of its name; a holder renews it five times as often. Tests may shorten it. */
extern _Atomic int64_t token_patience;

struct token {
	char state, nonce[17], machine[17], pid[11], file[TOKEN_FILE], host[33];
};

/* False: this is not the name of a token. */
bool token_read(const char *name, struct token *token);

/*
 * Make DATABASE.lock with a token that names file. For TOKEN_NEW it is a free one; for another, of
 * a database whose token is lost, it is that of a dead machine, so that it is taken over. Returns
 * 0, or an errno; 0 also if there is one already.
 */
int token_make(struct lock *lock, const char *file);

/* Returns 0, EAGAIN (another has it), ENOENT (there is no token), or another errno. */
int token_take(struct lock *lock);
/* The other three: 0, or what is the matter: EAGAIN (it is another's), or another errno. */
int token_settle(struct lock *lock, const char *file);
int token_keep(struct lock *lock);
int token_give(struct lock *lock);

/* The present token. Returns 0, ENOENT (there is none), ENOTUNIQ (several), or another errno. */
int token_find(const struct lock *lock, char name[TOKEN_NAME]);
/* A new nonce, or name of a file. */
void token_draw(char nonce[17]);

#endif
