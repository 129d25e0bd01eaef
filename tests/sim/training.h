/* SPDX-License-Identifier: MIT */
/* The states of a simulated training process. */
#ifndef SIM_TRAINING_H
#define SIM_TRAINING_H

#include <sys/wait.h>

#include "base/process/subprocess.h"

enum training_state {
	STARTING,
	COMPUTING,
	IN_COLLECTIVE, /* waits for the others in a synchronous step */
	RELEASED,      /* may leave the synchronous step */
	LOOKING,       /* has written step, will look at hold */
	PARKED,
	SAVING,
	SAVED_LOOKING, /* has reported saved, will look at hold */
	STAYING,
	GONE,
};

/* What subprocess_check returns, and fills in, for a training that has ended with code. */
static inline enum subprocess_state training_ended(struct subprocess *child, int code)
{
	child->ended = true;
	child->code = code;
	child->how.si_code = code > 128 ? CLD_KILLED : CLD_EXITED;
	child->how.si_status = code > 128 ? code - 128 : code;
	return SUBPROCESS_ENDED;
}

#endif
