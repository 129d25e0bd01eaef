/* SPDX-License-Identifier: MIT */
/* What a simulated training process is at. */
#ifndef SIM_TRAINING_H
#define SIM_TRAINING_H

enum training_state {
	STARTING,
	COMPUTING,
	IN_COLLECTIVE, /* waits for the others in a synchronous step */
	RELEASED,      /* from it */
	LOOKING,       /* has written step, will look at hold */
	PARKED,
	SAVING,
	SAVED_LOOKING, /* has reported saved, will look at hold */
	STAYING,
	GONE,
};

#endif
