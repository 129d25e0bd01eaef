/* SPDX-License-Identifier: MIT */
#include "store/lock/token_step.h"

#define ROUNDS 3 /* how many times a rename is tried again while the old name is there */

void token_begin(struct token_step *step, enum token_action action)
{
	*step = (struct token_step){
		.action = (unsigned char)action, .rename = (unsigned char)action};
}

static enum token_action to_rename(struct token_step *step, enum token_action rename)
{
	step->rename = (unsigned char)rename;
	return rename;
}

static enum token_action listed(struct token_step *step, enum token_answer answer)
{
	switch (answer) {
	case TOKEN_IS_FREE: return to_rename(step, TOKEN_TAKE);
	case TOKEN_IS_SILENT: return to_rename(step, TOKEN_MOVE);
	case TOKEN_IS_ALIVE: return TOKEN_BUSY;
	case TOKEN_IS_MISSING: return TOKEN_ABSENT;
	default: return TOKEN_FAILED;
	}
}

static enum token_action looked(struct token_step *step, enum token_answer answer)
{
	enum token_action rename = (enum token_action)step->rename;
	if (answer == TOKEN_YES)
		return TOKEN_SYNC;
	if ((answer == TOKEN_IS_OLD || answer == TOKEN_ERROR) && ++step->rounds <= ROUNDS)
		return answer == TOKEN_IS_OLD ? rename : TOKEN_LOOK;
	if (rename != TOKEN_TAKE && rename != TOKEN_MOVE)
		return TOKEN_LOST;
	return answer == TOKEN_IS_OTHER ? TOKEN_BUSY : TOKEN_FAILED;
}

static enum token_action synced(const struct token_step *step, enum token_answer answer)
{
	/* A later sync makes a token durable that was given back: nothing depends on it before. */
	if (answer == TOKEN_YES || step->rename == TOKEN_GIVE)
		return TOKEN_DONE;
	return step->rename == TOKEN_TAKE || step->rename == TOKEN_MOVE ? TOKEN_FAILED : TOKEN_LOST;
}

enum token_action token_next(struct token_step *step, enum token_answer answer)
{
	enum token_action next = (enum token_action)step->action;
	switch (next) {
	case TOKEN_LIST: next = listed(step, answer); break;
	case TOKEN_TAKE:
	case TOKEN_MOVE:
	case TOKEN_SETTLE:
	case TOKEN_KEEP:
	case TOKEN_GIVE: next = answer == TOKEN_YES ? TOKEN_SYNC : TOKEN_LOOK; break;
	case TOKEN_LOOK: next = looked(step, answer); break;
	case TOKEN_SYNC: next = synced(step, answer); break;
	default: break;
	}
	step->action = (unsigned char)next;
	return next;
}
