/* SPDX-License-Identifier: MIT */
/*
 * What a framework has written about a checkpoint: measured values, and which other checkpoint is
 * its best, which the framework may need when it resumes.
 */
#ifndef CKPT_MEASURED_H
#define CKPT_MEASURED_H

#include "ckpt/list.h"

/*
 * Add the metrics of this entry, in DIR or open as root, to the item, and set its best:
 *   hf         log_history of trainer_state.json at its step, and best_model_checkpoint
 *   orbax      the numbers in metrics/metrics
 *   lightning, nemo, keras   NAME=NUMBER in the name
 * What cannot be read adds nothing.
 */
void measured_read(const struct layout *layout, int root, const char *entry, uint64_t step,
	struct list_item *item);

#endif
