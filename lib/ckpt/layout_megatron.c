/* SPDX-License-Identifier: MIT */
/*
 * Megatron-LM: iter_0000500/, and beside it latest_checkpointed_iteration.txt, which is written
 * when all ranks have saved ("500", or "release").
 *
 * Inside either a directory for each model-parallel rank, mp_rank_TT[_PPP[_EEE]], which make a full
 * grid, each with the same kinds of files; or PyTorch's distributed format: .metadata names the
 * .distcp files, metadata.json is written last.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ckpt/layout.h"
#include "ckpt/structure.h"

#define TRACKER "latest_checkpointed_iteration.txt"

static bool read_name(
	const struct layout_choice *choice, const char *entry, struct layout_name *name)
{
	char again[LAYOUT_NAME_SIZE];
	(void)choice;
	if (!layout_prefixed(entry, "iter_", name))
		return false;
	snprintf(again, sizeof(again), "iter_%07" PRIu64, name->step);
	return strcmp(again, entry) == 0;
}

static const char *const model_files[] = {"model_optim_rng.pt", "model_rng.pt", NULL};
static const char *const optimizer_files[] = {"distrib_optim.pt", "optim.pt", NULL};

static bool holds(const struct layout_item *item, const char *directory, const char *const *names)
{
	char path[2 * LAYOUT_NAME_SIZE];
	for (; *names; names++) {
		snprintf(path, sizeof(path), "%s/%s", directory, *names);
		if (structure_find(item->files, path))
			return true;
	}
	return false;
}

/* The numbers of "mp_rank_01_002_003"; how many, 0: it is no such name. */
static int read_rank(const char *name, uint64_t number[3])
{
	static const char prefix[] = "mp_rank";
	int count = 0;
	if (strncmp(name, prefix, strlen(prefix)) != 0)
		return 0;
	for (name += strlen(prefix); count < 3 && *name == '_'; count++) {
		size_t digits = layout_number(name + 1, &number[count]);
		if (digits == 0 || number[count] > 1000000)
			return 0;
		name += 1 + digits;
	}
	return *name ? 0 : count;
}

static enum status judge_ranks(const struct layout_item *item, struct error *why)
{
	uint64_t high[3] = {0, 0, 0}, seen = 0, optimizers = 0;
	char last[LAYOUT_NAME_SIZE] = "";
	int numbers = 0;
	for (size_t i = 0; i < item->files->count; i++) {
		const char *name = item->files->files[i].name, *slash = strchr(name, '/');
		char directory[LAYOUT_NAME_SIZE];
		uint64_t number[3] = {0, 0, 0};
		snprintf(directory, sizeof(directory), "%.*s", slash ? (int)(slash - name) : 0,
			name);
		int count = read_rank(directory, number);
		if (count == 0 || strcmp(directory, last) == 0)
			continue;
		memcpy(last, directory, sizeof(last));
		if (numbers && count != numbers)
			return error_set(
				why, STATUS_NO, "%s does not fit to the other ranks", directory);
		numbers = count;
		if (!holds(item, directory, model_files))
			return error_set(
				why, STATUS_NO, "%s/%s is missing", directory, model_files[0]);
		optimizers += holds(item, directory, optimizer_files);
		seen++;
		for (int k = 0; k < 3; k++)
			if (number[k] + 1 > high[k])
				high[k] = number[k] + 1;
	}
	uint64_t all = high[0] * high[1] * high[2];
	if (seen == 0)
		return error_set(why, STATUS_NO, "it holds no rank's files");
	if (seen != all)
		return error_set(why, STATUS_NO, "%" PRIu64 " of %" PRIu64 " ranks are missing",
			all - seen, all);
	if (optimizers && optimizers != seen)
		return error_set(why, STATUS_NO,
			"%" PRIu64 " of %" PRIu64 " ranks have no optimizer state",
			seen - optimizers, seen);
	return structure_check_all(item->root, item->files, "", why);
}

static enum status judge(const struct layout_item *item, struct error *why)
{
	enum status status;
	bool distributed = structure_find(item->files, ".metadata") != NULL;
	for (size_t i = 0; i < item->files->count; i++)
		distributed |= structure_ends(item->files->files[i].name, ".distcp");
	if (!distributed)
		return judge_ranks(item, why);
	struct json_object *object = structure_read_json(item->root, "metadata.json", &status, why);
	json_object_put(object);
	if (status == STATUS_OK)
		status = structure_check_shards(item->root, item->files, why);
	if (status == STATUS_OK)
		status = structure_check_all(item->root, item->files, "", why);
	return status;
}

static enum status track(const struct layout_choice *choice, int directory,
	struct layout_tracker *tracker, struct error *err)
{
	(void)choice;
	enum status status = layout_tracker_line(directory, TRACKER, tracker, err);
	if (status != STATUS_OK || !tracker->named)
		return status;
	size_t digits = layout_number(tracker->name, &tracker->step);
	tracker->named = digits > 0 && !tracker->name[digits];
	if (tracker->named)
		snprintf(tracker->name, sizeof(tracker->name), "iter_%07" PRIu64, tracker->step);
	else
		snprintf(tracker->broken, sizeof(tracker->broken),
			strcmp(tracker->name, "release") == 0
				? "it names a release, which is none of these"
				: "it holds no number");
	return STATUS_OK;
}

const struct layout layout_megatron = {
	.name = "megatron",
	.title = "Megatron-LM",
	.shape = LAYOUT_DIRECTORY,
	.read = read_name,
	.judge = judge,
	.tracker = TRACKER,
	.track = track,
	.tracker_commits = true,
};
