/* SPDX-License-Identifier: MIT */
/*
 * DeepSpeed: global_step500/, a file for each rank in it, and beside it "latest", which rank 0
 * writes when it has saved: the others may still be at it (save_checkpoint of engine.py has its
 * barrier behind that).
 *
 * The ranks must make a grid: model states mp_rank_00 to the last without a gap (or, with ZeRO-3,
 * zero_pp_rank_D_mp_rank_MM for all D and all M), and optimizer states for all D and all M or for
 * none. Which rank is the last is told by siblings and by "latest" (ckpt/layout/shards.h), as for
 * the files of layers (pipelines) and experts.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ckpt/layout/layout.h"
#include "ckpt/layout/structure.h"

static bool read_name(
	const struct layout_choice *choice, const char *entry, struct layout_name *name)
{
	(void)choice;
	return layout_prefixed(entry, "global_step", name);
}

enum { MODELS, PARTS, OPTIMIZERS, OTHERS };

#define RANK_MAX 1000000

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

/* The two numbers of "zero_pp_rank_3_mp_rank_01"; *at moves behind them. */
static bool take_ranks(const char **at, uint64_t *data, uint64_t *model)
{
	if (strncmp(*at, "bf16_", 5) == 0 || strncmp(*at, "fp16_", 5) == 0)
		*at += 5;
	return take(at, "zero_pp_rank_", data) && take(at, "_mp_rank_", model);
}

/* Count a file of prefix. */
static void see(struct shard_set *sets, const char *base, uint64_t bytes)
{
	uint64_t data, model;
	const char *at = base;
	if (take(&at, "mp_rank_", &model) && strcmp(at, "_model_states.pt") == 0) {
		shards_see(&sets[MODELS], bytes, 0, model, 0);
		return;
	}
	at = base;
	bool ranks = take_ranks(&at, &data, &model);
	if (ranks && strcmp(at, "_model_states.pt") == 0)
		shards_see(&sets[PARTS], bytes, data, model, 0);
	else if (ranks &&
		 (strcmp(at, "_optim_states.pt") == 0 || strcmp(at, "optim_states.pt") == 0))
		shards_see(&sets[OPTIMIZERS], bytes, data, model, 0);
	else if (structure_ends(base, "_states.pt"))
		shards_see(&sets[OTHERS], bytes, sets[OTHERS].seen, 0, 0);
}

enum status layout_deepspeed_judge(const struct layout_item *item, const char *prefix,
	struct shards *shards, struct error *why)
{
	struct shard_set *sets = shards->sets;
	sets[MODELS].what = "model states";
	sets[PARTS].what = "parts of the model states";
	sets[OPTIMIZERS].what = "optimizer states";
	sets[OTHERS].what = "files of layers and experts";
	for (size_t i = 0; i < item->files->count; i++) {
		const struct manifest_file *file = &item->files->files[i];
		const char *base = file->name + strlen(prefix);
		if (strncmp(file->name, prefix, strlen(prefix)) == 0 && !strchr(base, '/'))
			see(sets, base, file->bytes);
	}
	bool parted = sets[PARTS].seen != 0;
	if (!parted && !sets[MODELS].seen)
		return error_set(
			why, STATUS_NO, "%s holds no model states", *prefix ? prefix : "it");
	const struct shard_set *model = &sets[parted ? PARTS : MODELS];
	const struct shard_set *optimizer = &sets[OPTIMIZERS];
	if (optimizer->seen && optimizer->extent[1] != model->extent[1])
		return error_set(why, STATUS_NO,
			"the model is of %" PRIu64 " ranks, the optimizer of %" PRIu64,
			model->extent[1], optimizer->extent[1]);
	if (parted && optimizer->seen && model->extent[0] != optimizer->extent[0])
		return error_set(why, STATUS_NO,
			"the model is in %" PRIu64 " parts, the optimizer in %" PRIu64,
			model->extent[0], optimizer->extent[0]);
	/* The model is in one form, or in the other, or in both. Where the optimizer's files have
	 * the same numbers, these decide: a rank's part of the model may be next to nothing. */
	if (!parted || sets[PARTS].seen == optimizer->seen)
		sets[PARTS].what = NULL;
	if (!sets[MODELS].seen || (optimizer->seen && sets[MODELS].seen == optimizer->extent[1]))
		sets[MODELS].what = NULL;
	return structure_check_all(item->root, item->files, prefix, why);
}

static enum status judge(
	const struct layout_item *item, struct layout_found *found, struct error *why)
{
	found->shards.confirmed = item->tracked;
	return layout_deepspeed_judge(item, "", &found->shards, why);
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
