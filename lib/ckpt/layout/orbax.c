/* SPDX-License-Identifier: MIT */
/*
 * Orbax: 500/ (or 00000500/), which is written as 500.orbax-checkpoint-tmp[-NNN] and then renamed.
 * The items in it are written in the same way: if such a temporary directory is left, empty or not,
 * that item is not finished. On a filesystem where a rename is not atomic, commit_success.txt is
 * written last. _CHECKPOINT_METADATA has the time of the commit; metrics/metrics has the metrics
 * that were given to CheckpointManager.save.
 */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "ckpt/layout/layout.h"
#include "ckpt/layout/structure.h"

#define METRICS	 "metrics/metrics"
#define METADATA "_CHECKPOINT_METADATA"
#define SUCCESS	 "commit_success.txt"

static const char *const names[] = {"{step}", NULL};

static const char *const marks[] = {METADATA, SUCCESS, "orbax.checkpoint", "_METADATA",
	"manifest.ocdbt", "default/_METADATA", "state/_METADATA", "params/_METADATA",
	"default/commit_success.txt", "state/commit_success.txt", "default/manifest.ocdbt",
	"state/manifest.ocdbt", NULL};

/* Arrays are in "d", and the manifest beside it lists them. None of these files may be empty. */
static enum status check_arrays(const struct layout_item *item, struct error *why)
{
	for (size_t i = 0; i < item->files->count; i++) {
		const char *name = item->files->files[i].name;
		size_t directory = (size_t)(structure_base(name) - name);
		char manifest[4096];
		if (strcmp(name + directory, "manifest.ocdbt") == 0 &&
			item->files->files[i].bytes == 0)
			return error_set(why, STATUS_NO, "%s is empty", name);
		if (directory < 2 || strncmp(name + directory - 2, "d/", 2) != 0 ||
			(directory > 2 && name[directory - 3] != '/'))
			continue;
		snprintf(
			manifest, sizeof(manifest), "%.*smanifest.ocdbt", (int)directory - 2, name);
		if (!structure_find(item->files, manifest))
			return error_set(why, STATUS_NO, "%s is missing", manifest);
		if (item->files->files[i].bytes == 0)
			return error_set(why, STATUS_NO, "%s is empty", name);
	}
	return STATUS_OK;
}

/* Read the metrics. A file that is not an object of numbers has none. */
static enum status read_metrics(
	const struct layout_item *item, struct layout_found *found, struct error *why)
{
	enum status status;
	if (!structure_find(item->files, METRICS))
		return STATUS_OK;
	struct json_object *object = structure_read_json(item->root, METRICS, &status, why);
	if (status == STATUS_OK)
		metrics_collect(object, NULL, &found->metrics);
	json_object_put(object);
	return status == STATUS_NO ? STATUS_OK : status;
}

/* Whether it has any files other than those that mark the end of the save. */
static bool has_items(const struct layout_item *item)
{
	for (size_t i = 0; i < item->files->count; i++) {
		const char *name = item->files->files[i].name;
		if (strcmp(name, METADATA) != 0 && strcmp(name, SUCCESS) != 0)
			return true;
	}
	return false;
}

static enum status check(
	const struct layout_item *item, struct layout_found *found, struct error *why)
{
	enum status status = check_arrays(item, why);
	if (status == STATUS_OK)
		status = read_metrics(item, found, why);
	if (status == STATUS_OK && manifest_bytes(item->files) == 0)
		status = error_set(why, STATUS_NO, "it is empty");
	if (status == STATUS_OK && !has_items(item))
		status = error_set(why, STATUS_NO, "it holds no items");
	if (status != STATUS_OK || structure_find(item->files, SUCCESS) ||
		!structure_find(item->files, METADATA))
		return status;
	struct json_object *member;
	struct json_object *object = structure_read_json(item->root, METADATA, &status, why);
	if (status == STATUS_OK &&
		json_object_object_get_ex(object, "commit_timestamp_nsecs", &member) && !member)
		status = error_set(why, STATUS_NO, "%s has no time of a commit", METADATA);
	json_object_put(object);
	return status;
}

const struct layout layout_orbax = {
	.name = "orbax",
	.title = "Orbax",
	.shape = LAYOUT_DIRECTORY,
	.names = names,
	.marks = marks,
	.unfinished = ".orbax-checkpoint-tmp",
	.check = check,
};
