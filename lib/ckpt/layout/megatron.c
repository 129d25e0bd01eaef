/* SPDX-License-Identifier: MIT */
/*
 * Megatron-LM: iter_0000500/, and beside it latest_checkpointed_iteration.txt ("500", or
 * "release"), which is written when all ranks have saved: save_checkpoint of checkpointing.py has
 * its barrier before that.
 *
 * A checkpoint has one of two forms. Either there is a directory for each model-parallel rank,
 * mp_rank_TT[_PPP][_EEE]; they form a full grid, and each has the same kinds of files. Siblings and
 * the tracker tell which rank is the last (ckpt/layout/shards.h). Or it has PyTorch's distributed
 * format, in which .metadata names the .distcp files: --ckpt-format torch_dist writes common.pt
 * first and metadata.json last; torch_dcp and fsdp_dtensor write neither of these two.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ckpt/layout/layout.h"
#include "ckpt/layout/structure.h"

#define METADATA "metadata.json"
#define TRACKER	 "latest_checkpointed_iteration.txt"

static bool read_name(const char *entry, struct layout_name *name)
{
	char again[LAYOUT_NAME_SIZE];
	uint64_t numbers[LAYOUT_NUMBERS];
	if (!layout_matches("iter_{step}", entry, numbers))
		return false;
	*name = (struct layout_name){.step = numbers[LAYOUT_STEP], .length = strlen(entry)};
	snprintf(again, sizeof(again), "iter_%07" PRIu64, name->step);
	return strcmp(again, entry) == 0;
}

static const char *const model_files[] = {"model_optim_rng.pt", "model_rng.pt", NULL};
static const char *const optimizer_files[] = {"distrib_optim.pt", "optim.pt", NULL};

/* The first of names that exists in directory. */
static const struct manifest_file *find(
	const struct layout_item *item, const char *directory, const char *const *names)
{
	const struct manifest_file *file = NULL;
	char path[2 * LAYOUT_NAME_SIZE];
	for (; *names && !file; names++) {
		snprintf(path, sizeof(path), "%s/%s", directory, *names);
		file = structure_find(item->files, path);
	}
	return file;
}

enum { RANKS, OPTIMIZERS, LAYER_WISE };

/* How many numbers the name of a rank's directory has; 0: it is no such name. */
static int read_rank(const char *name, uint64_t numbers[LAYOUT_NUMBERS])
{
	static const char *const names[] = {
		"mp_rank_{0}", "mp_rank_{0}_{1}", "mp_rank_{0}_{1}_{2}"};
	for (int i = 0; i < 3; i++)
		if (layout_matches(names[i], name, numbers))
			return i + 1;
	return 0;
}

static enum status check_ranks(
	const struct layout_item *item, struct shards *shards, struct error *why)
{
	struct shard_set *ranks = &shards->sets[RANKS], *optimizers = &shards->sets[OPTIMIZERS];
	struct shard_set *layer_wise = &shards->sets[LAYER_WISE];
	char last[LAYOUT_NAME_SIZE] = "";
	int numbers = 0;
	bool optimizer = false;
	for (size_t i = 0; i < item->files->count; i++) {
		const struct manifest_file *file = &item->files->files[i];
		const char *slash = strchr(file->name, '/');
		char directory[LAYOUT_NAME_SIZE];
		uint64_t number[LAYOUT_NUMBERS] = {0}, other[LAYOUT_NUMBERS];
		snprintf(directory, sizeof(directory), "%.*s",
			slash ? (int)(slash - file->name) : 0, file->name);
		int count = read_rank(directory, number);
		if (count == 0)
			continue;
		/* Each data-parallel rank that has something to optimize writes such a file. */
		if (layout_matches("layer_wise_optimizer_{0}.pt", slash + 1, other))
			shards_count(layer_wise, file->bytes, layer_wise->seen, 0, 0);
		if (strcmp(directory, last) == 0) {
			ranks->bytes += file->bytes;
			optimizers->bytes += optimizer ? file->bytes : 0;
			continue;
		}
		memcpy(last, directory, sizeof(last));
		if (numbers && count != numbers)
			return error_set(
				why, STATUS_NO, "%s is named unlike the other ranks", directory);
		numbers = count;
		if (!find(item, directory, model_files))
			return error_set(
				why, STATUS_NO, "%s/%s is missing", directory, model_files[0]);
		shards_count(ranks, file->bytes, number[0], number[1], number[2]);
		optimizer = find(item, directory, optimizer_files) != NULL;
		if (optimizer)
			shards_count(optimizers, file->bytes, number[0], number[1], number[2]);
	}
	if (ranks->seen == 0)
		return error_set(why, STATUS_NO, "it holds no rank's files");
	if (optimizers->seen && optimizers->seen != ranks->seen)
		return error_set(why, STATUS_NO,
			"%" PRIu64 " of %" PRIu64 " ranks have no optimizer state",
			ranks->seen - optimizers->seen, ranks->seen);
	/* A save need not have optimizer files: if there are none, siblings show whether they are
	 * missing. If there are some, they are of one kind (per rank, or layer-wise), not both. */
	bool neither = !optimizers->seen && !layer_wise->seen;
	ranks->what = "ranks";
	optimizers->what = neither ? "optimizer states" : NULL;
	layer_wise->what = neither || layer_wise->seen ? "layer-wise optimizer states" : NULL;
	return structure_check_all(item->root, item->files, "", why);
}

static enum status check(
	const struct layout_item *item, struct layout_found *found, struct error *why)
{
	enum status status = STATUS_OK;
	bool distributed = structure_find(item->files, ".metadata") != NULL;
	for (size_t i = 0; i < item->files->count; i++)
		distributed |= structure_ends(item->files->files[i].name, ".distcp");
	found->shards.confirmed = item->tracked;
	if (!distributed)
		return check_ranks(item, &found->shards, why);
	if (structure_find(item->files, "common.pt") || structure_find(item->files, METADATA))
		json_object_put(structure_read_json(item->root, METADATA, &status, why));
	if (status == STATUS_OK)
		status = structure_check_shards(item->root, item->files, why);
	if (status == STATUS_OK)
		status = structure_check_all(item->root, item->files, "", why);
	return status;
}

static enum status track(int directory, struct layout_tracker *tracker, struct error *err)
{
	enum status status = layout_tracker_line(directory, TRACKER, "{step}", tracker, err);
	if (tracker->named)
		snprintf(tracker->name, sizeof(tracker->name), "iter_%07" PRIu64, tracker->step);
	return status;
}

const struct layout layout_megatron = {
	.name = "megatron",
	.title = "Megatron-LM",
	.shape = LAYOUT_DIRECTORY,
	.read = read_name,
	.check = check,
	.tracker = TRACKER,
	.track = track,
	.tracker_commits = true,
};
