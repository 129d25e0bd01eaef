/* SPDX-License-Identifier: MIT */
#include "store/lock/link_step.h"

/* Tries in a row. Two processes may hinder each other: then both wait for a random time. */
#define ROUNDS 6

enum link_action link_begin(struct link_step *step, bool made)
{
	*step = (struct link_step){.action = made ? LINK_TAKE : LINK_MAKE};
	return step->action;
}

enum link_action link_begin_renewal(struct link_step *step)
{
	*step = (struct link_step){.action = LINK_RENEW};
	return step->action;
}

static enum link_action again(struct link_step *step, enum link_action action)
{
	return ++step->rounds > ROUNDS ? LINK_BUSY : action;
}

/* HELD does not contain our name, or that could not be asked. */
static enum link_action not_there(struct link_step *step, enum link_answer answer)
{
	/* Another process removed our directory while we waited: begin with a new one. */
	if (step->cause == LINK_MISSING && answer == LINK_MISSING)
		return again(step, LINK_MAKE);
	return LINK_UNMAKE;
}

static enum link_action after(struct link_step *step, enum link_answer answer)
{
	switch (step->action) {
	case LINK_MAKE:
		if (answer == LINK_MISSING)
			return again(step, LINK_MAKE);
		return answer == LINK_YES ? LINK_TAKE : LINK_UNMAKE;
	case LINK_TAKE:
		if (answer == LINK_YES)
			return LINK_HELD;
		if (answer == LINK_OCCUPIED)
			return LINK_LIST_HELD;
		/* A request that is repeated after a success gets "no such file", too. */
		step->cause = answer;
		return LINK_CHECK;
	case LINK_CHECK:
		/* Perhaps an earlier request put it there long ago, and other processes count its
		 * silence: renew it. */
		return answer == LINK_YES ? LINK_RENEW : not_there(step, answer);
	case LINK_LIST_HELD:
		switch (answer) {
		case LINK_OURSELVES:
			return LINK_RENEW; /* for the same reason */
		/* The holder has left, or this filesystem does not replace an empty directory. */
		case LINK_NOBODY: return LINK_CLEAR;
		case LINK_DEAD: return LINK_BREAK;
		case LINK_ALIVE: return LINK_BUSY;
		default: return LINK_UNMAKE;
		}
	case LINK_BREAK:
		/* Another process broke the dead name, or its holder was alive and has left. */
		if (answer == LINK_MISSING)
			return again(step, LINK_TAKE);
		step->overtook = true;
		return answer == LINK_YES ? LINK_HELD : LINK_CHECK_NEXT;
	case LINK_CLEAR: return again(step, LINK_TAKE);
	case LINK_UNMAKE: return LINK_FAILED;
	case LINK_RENEW: return answer == LINK_YES ? LINK_HELD : LINK_CHECK_NEXT;
	case LINK_CHECK_NEXT:
		if (answer == LINK_YES)
			return LINK_HELD;
		return step->overtook ? LINK_UNMAKE : LINK_LOST;
	default: return step->action;
	}
}

enum link_action link_next(struct link_step *step, enum link_answer answer)
{
	step->action = after(step, answer);
	return step->action;
}
