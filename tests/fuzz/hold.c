/* SPDX-License-Identifier: MIT */
/* What the agent writes into hold, as a training process reads it. */
#include "client/board.h"

#include <stdio.h>
#include <string.h>

#include "support/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct board_hold hold = {.word = HOLD_NONE};
	char again[96] = "";
	size_t length = size < sizeof(hold.line) - 1 ? size : sizeof(hold.line) - 1;
	memcpy(hold.line, data, length);
	if (!preempt_board_hold(&hold))
		return 0;
	/* There is one spelling of each line, but that save and exit may go without a process. */
	unsigned long long number = hold.number;
	const char *word = hold.word == HOLD_SAVE ? "save" : "exit";
	switch (hold.word) {
	case HOLD_NONE: FUZZ_HOLDS(false);
	case HOLD_WAIT: snprintf(again, sizeof(again), "wait %d\n", (int)hold.watch); break;
	case HOLD_LEAVE: snprintf(again, sizeof(again), "leave %llu\n", number); break;
	case HOLD_SAVE:
	case HOLD_EXIT:
		if (hold.watch)
			snprintf(again, sizeof(again), "%s %llu %d\n", word, number,
				(int)hold.watch);
		else
			snprintf(again, sizeof(again), "%s %llu\n", word, number);
		break;
	}
	FUZZ_HOLDS(strcmp(again, hold.line) == 0);
	FUZZ_HOLDS(hold.word != HOLD_LEAVE || (hold.number >= 1 && hold.number <= 255));
	FUZZ_HOLDS(hold.number <= BOARD_STEP_MAX);
	return 0;
}
