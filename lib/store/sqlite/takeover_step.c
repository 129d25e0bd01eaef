/* SPDX-License-Identifier: MIT */
#include "store/sqlite/takeover_step.h"

/* How often the files are copied again. An overtaken process stops soon: it checks the lock before
 * each write. */
#define ROUNDS 20

enum takeover_action takeover_next(struct takeover_step *step, enum takeover_answer answer)
{
	bool gives_up =
		answer == TAKEOVER_NO || (answer == TAKEOVER_CHANGED && ++step->rounds > ROUNDS);
	if (step->action == TAKEOVER_UNMAKE) {
		step->action = step->failed ? TAKEOVER_FAILED : TAKEOVER_DONE;
	} else if (gives_up || answer == TAKEOVER_NOTHING) {
		step->failed = gives_up;
		step->action = TAKEOVER_UNMAKE;
	} else if (answer == TAKEOVER_CHANGED) {
		step->action = TAKEOVER_COPY_JOURNAL;
	} else {
		step->action++;
	}
	return step->action;
}
