/* SPDX-License-Identifier: MIT */
/*
 * The steps of a process that takes, keeps, moves or gives back the token (token.h), as a pure
 * function: from what the last step answered it decides the next one. token.c carries the steps out
 * on a directory; tests/unit/token_search.c on a model, in every order of processes that are
 * stopped, overtaken and killed anywhere, and of requests that fail, come late or come twice.
 *
 *	take	list the directory; rename a free token, or that of a dead process of this
 *		machine, to a held one of ours
 *	move	the same with a token that is not free and was not renamed for too long, to a
 *		moving one of ours: its holder may still write to the database, so that is copied
 *		to a new file before we use it
 *	settle	rename our moving token to a held one that names the new file
 *	keep	rename our token to a new name, so that others see that we live
 *	give	rename our token to a free one: this fails if another process has overtaken us
 *
 * Each rename is from a name that exists once to a name that never existed. So of all who try, one
 * succeeds, and a request that is late or was sent twice finds nothing to rename. After an error we
 * look for the new name. While we do not see it we have nothing: a token of ours that appears later
 * is that of a dead process.
 */
#ifndef STORE_LOCK_TOKEN_STEP_H
#define STORE_LOCK_TOKEN_STEP_H

enum token_action {
	TOKEN_LIST, /* which token is there? */
	/* Rename the token that is there: */
	TOKEN_TAKE,
	TOKEN_MOVE,
	/* Rename our token: */
	TOKEN_SETTLE,
	TOKEN_KEEP,
	TOKEN_GIVE,
	TOKEN_LOOK, /* the rename failed: is its new name there? */
	TOKEN_SYNC, /* sync the directory */

	TOKEN_DONE,   /* what was wanted is done, and seen */
	TOKEN_BUSY,   /* another process has it */
	TOKEN_ABSENT, /* there is no token */
	TOKEN_FAILED, /* the filesystem could not be asked; we have nothing */
	TOKEN_LOST,   /* our token: it is another's, or this is not known */
};

enum token_answer {
	TOKEN_YES,
	TOKEN_ERROR,
	/* LIST: */
	TOKEN_IS_FREE,	 /* it is free, or was held by a dead process of this machine */
	TOKEN_IS_SILENT, /* not free, and moving, or its holder was silent for too long */
	TOKEN_IS_ALIVE,
	TOKEN_IS_MISSING,
	/* LOOK: */
	TOKEN_IS_OLD,	/* the name that was to be renamed is there */
	TOKEN_IS_OTHER, /* neither name is there */
};

/* Small, because the search keeps many. */
struct token_step {
	unsigned char action; /* enum token_action */
	unsigned char rename; /* the rename under way */
	unsigned char rounds; /* how many times it was tried again */
};

/* Begin with TOKEN_LIST, or with a rename of our token. */
void token_begin(struct token_step *step, enum token_action action);
/* Returns the action to carry out; TOKEN_DONE and those after it are results. */
enum token_action token_next(struct token_step *step, enum token_answer answer);

#endif
