/* SPDX-License-Identifier: MIT */
/*
 * DeepSpeed: global_step500/ with a file for each rank, and beside it "latest", which rank 0 writes
 * when it has saved. The other ranks may not have finished then, because save_checkpoint of
 * engine.py has its barrier after that.
 *
 * The ranks must form a grid: model states from mp_rank_00 to the last without a gap (with ZeRO-3
 * zero_pp_rank_D_mp_rank_MM for all D and M), and optimizer states for all D and M, or none. How
 * many ranks there are is in the model states: dp_world_size and mp_world_size. (With MiCS fewer
 * ranks save, so other numbers prove nothing.) Where they are missing, and for the files of layers
 * (pipelines) and experts, siblings tell (ckpt/layout/shards.h). A rank writes its optimizer states
 * last.
 */
#include <inttypes.h>
#include <string.h>

#include "ckpt/layout/layout.h"
#include "ckpt/layout/structure.h"

static const char *const names[] = {"global_step{step}", NULL};

enum { MODELS, PARTS, OPTIMIZERS, OTHERS };

/* {0} is the data-parallel rank, {1} the model-parallel rank. The first pattern that matches is
 * used. */
static const struct {
	int set;
	const char *name;
} kinds[] = {
	{MODELS, "mp_rank_{1}_model_states.pt"},
	{PARTS, "zero_pp_rank_{0}_mp_rank_{1}_model_states.pt"},
	{PARTS, "bf16_zero_pp_rank_{0}_mp_rank_{1}_model_states.pt"},
	{PARTS, "fp16_zero_pp_rank_{0}_mp_rank_{1}_model_states.pt"},
	{OPTIMIZERS, "zero_pp_rank_{0}_mp_rank_{1}_optim_states.pt"},
	{OPTIMIZERS, "zero_pp_rank_{0}_mp_rank_{1}optim_states.pt"},
	{OPTIMIZERS, "bf16_zero_pp_rank_{0}_mp_rank_{1}_optim_states.pt"},
	{OPTIMIZERS, "bf16_zero_pp_rank_{0}_mp_rank_{1}optim_states.pt"},
	{OPTIMIZERS, "fp16_zero_pp_rank_{0}_mp_rank_{1}_optim_states.pt"},
	{OPTIMIZERS, "fp16_zero_pp_rank_{0}_mp_rank_{1}optim_states.pt"},
	{OTHERS, "*_states.pt"},
};

/* Count a file. Returns its set. */
static int see(struct shard_set *sets, const char *name, uint64_t bytes)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		uint64_t numbers[LAYOUT_NUMBERS] = {0};
		struct shard_set *set = &sets[kinds[i].set];
		if (!layout_matches(kinds[i].name, name, numbers))
			continue;
		shards_count(
			set, bytes, kinds[i].set == OTHERS ? set->seen : numbers[0], numbers[1], 0);
		return kinds[i].set;
	}
	return OTHERS;
}

/* Read from the model states of a rank how many files there are. */
static enum status read_world(
	int root, const char *states, bool named, struct shards *shards, struct error *why)
{
	struct shard_set *sets = shards->sets;
	uint64_t data, model;
	enum status status = structure_read_number(root, states, "dp_world_size", &data, why);
	if (status == STATUS_OK)
		status = structure_read_number(root, states, "mp_world_size", &model, why);
	if (status != STATUS_OK)
		return status == STATUS_NO ? STATUS_OK : status;
	const uint64_t all[] = {
		[MODELS] = model, [PARTS] = data * model, [OPTIMIZERS] = data * model};
	for (int i = MODELS; i <= OPTIMIZERS; i++)
		sets[i].told = sets[i].seen ? all[i] : 0;
	if (sets[OPTIMIZERS].seen || named)
		shards->confirmed = true;
	return STATUS_OK;
}

enum status layout_deepspeed_check(const struct layout_item *item, const char *prefix, bool named,
	struct shards *shards, struct error *why)
{
	const char *states = NULL; /* the model states of a rank */
	struct shard_set *sets = shards->sets;
	sets[MODELS].what = "model states";
	sets[PARTS].what = "parts of the model states";
	sets[OPTIMIZERS].what = "optimizer states";
	sets[OTHERS].what = "files of layers and experts";
	for (size_t i = 0; i < item->files->count; i++) {
		const struct manifest_file *file = &item->files->files[i];
		const char *base = file->name + strlen(prefix);
		if (strncmp(file->name, prefix, strlen(prefix)) == 0 && !strchr(base, '/'))
			if (see(sets, base, file->bytes) <= PARTS)
				states = file->name;
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
	/* The model states have one form, the other, or both. If the optimizer's files are of the
	 * same ranks, only they are compared: a rank's part of the model may be nearly empty. */
	if (!parted || sets[PARTS].seen == optimizer->seen)
		sets[PARTS].what = NULL;
	if (!sets[MODELS].seen || (optimizer->seen && sets[MODELS].seen == optimizer->extent[1]))
		sets[MODELS].what = NULL;
	enum status status = structure_check_all(item->root, item->files, prefix, why);
	return status == STATUS_OK ? read_world(item->root, states, named, shards, why) : status;
}

static enum status check(
	const struct layout_item *item, struct layout_found *found, struct error *why)
{
	return layout_deepspeed_check(item, "", item->tracked, &found->shards, why);
}

static enum status track(int directory, struct layout_tracker *tracker, struct error *err)
{
	return layout_tracker_line(directory, "latest", names[0], tracker, err);
}

const struct layout layout_deepspeed = {
	.name = "deepspeed",
	.title = "DeepSpeed",
	.shape = LAYOUT_DIRECTORY,
	.names = names,
	.check = check,
	.tracker = "latest",
	.track = track,
	.tracker_commits = true,
};
