/* SPDX-License-Identifier: MIT */
/*
 * DeepSpeed: global_step500/, a file for each rank in it, and beside it "latest", which is written
 * when all ranks have saved.
 *
 * The ranks must make a rectangle: model states mp_rank_00 to the last without a gap (or, with
 * ZeRO-3, zero_pp_rank_D_mp_rank_MM for all D and all M), and optimizer states for all D and all M
 * or for none. Which rank would be the last is known to nobody but the tracker.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ckpt/layout.h"
#include "ckpt/structure.h"

static bool read_name(
	const struct layout_choice *choice, const char *entry, struct layout_name *name)
{
	(void)choice;
	return layout_prefixed(entry, "global_step", name);
}

/* A rectangle of ranks, of which some were seen. */
struct ranks {
	uint64_t data, model; /* the highest of each, plus one */
	uint64_t seen;
};

#define RANK_MAX 1000000

static void see(struct ranks *ranks, uint64_t data, uint64_t model)
{
	ranks->seen++;
	if (data >= ranks->data)
		ranks->data = data + 1;
	if (model >= ranks->model)
		ranks->model = model + 1;
}

/* Move past a number that follows word. */
static bool take(const char **at, const char *word, uint64_t *number)
{
	size_t length = strlen(word);
	if (strncmp(*at, word, length) != 0)
		return false;
	size_t digits = layout_number(*at + length, number);
	*at += length + digits;
	return digits > 0 && *number < RANK_MAX;
}

enum status layout_deepspeed_judge(
	const struct layout_item *item, const char *prefix, struct error *why)
{
	struct ranks models = {0}, parted = {0}, optimizers = {0};
	uint64_t other = 0;
	for (size_t i = 0; i < item->files->count; i++) {
		const char *at = item->files->files[i].name;
		uint64_t data, model;
		if (strncmp(at, prefix, strlen(prefix)) != 0)
			continue;
		at += strlen(prefix);
		if (strchr(at, '/'))
			continue;
		if (take(&at, "mp_rank_", &model) && strcmp(at, "_model_states.pt") == 0) {
			see(&models, 0, model);
			continue;
		}
		at = item->files->files[i].name + strlen(prefix);
		if (strncmp(at, "bf16_", 5) == 0 || strncmp(at, "fp16_", 5) == 0)
			at += 5;
		if (take(&at, "zero_pp_rank_", &data) && take(&at, "_mp_rank_", &model)) {
			if (strcmp(at, "_model_states.pt") == 0)
				see(&parted, data, model);
			else if (strcmp(at, "_optim_states.pt") == 0 ||
				 strcmp(at, "optim_states.pt") == 0)
				see(&optimizers, data, model);
			continue;
		}
		other += structure_ends(item->files->files[i].name, "_states.pt");
	}
	if (models.seen == 0 && parted.seen == 0)
		return error_set(
			why, STATUS_NO, "%s holds no model states", *prefix ? prefix : "it");
	if (models.seen != models.model)
		return error_set(why, STATUS_NO,
			"%" PRIu64 " of %" PRIu64 " model states are missing",
			models.model - models.seen, models.model);
	if (parted.seen != parted.data * parted.model)
		return error_set(why, STATUS_NO,
			"%" PRIu64 " of %" PRIu64 " parts of the model states are missing",
			parted.data * parted.model - parted.seen, parted.data * parted.model);
	if (optimizers.seen != optimizers.data * optimizers.model)
		return error_set(why, STATUS_NO,
			"%" PRIu64 " of %" PRIu64 " optimizer states are missing",
			optimizers.data * optimizers.model - optimizers.seen,
			optimizers.data * optimizers.model);
	uint64_t model = parted.seen ? parted.model : models.model;
	if (optimizers.seen && optimizers.model != model)
		return error_set(why, STATUS_NO,
			"the model is of %" PRIu64 " ranks, the optimizer of %" PRIu64, model,
			optimizers.model);
	if (parted.seen && optimizers.seen && parted.data != optimizers.data)
		return error_set(why, STATUS_NO,
			"the model is in %" PRIu64 " parts, the optimizer in %" PRIu64, parted.data,
			optimizers.data);
	return structure_check_all(item->root, item->files, prefix, why);
}

static enum status judge(const struct layout_item *item, struct error *why)
{
	return layout_deepspeed_judge(item, "", why);
}

static enum status track(const struct layout_choice *choice, int directory,
	struct layout_tracker *tracker, struct error *err)
{
	struct layout_name name;
	enum status status = layout_tracker_line(directory, "latest", tracker, err);
	if (status != STATUS_OK || !tracker->named)
		return status;
	tracker->named = read_name(choice, tracker->name, &name);
	if (tracker->named)
		tracker->step = name.step;
	else
		snprintf(tracker->broken, sizeof(tracker->broken), "it names no global_step");
	return STATUS_OK;
}

const struct layout layout_deepspeed = {
	.name = "deepspeed",
	.title = "DeepSpeed",
	.shape = LAYOUT_DIRECTORY,
	.read = read_name,
	.judge = judge,
	.tracker = "latest",
	.track = track,
	.tracker_commits = true,
};
