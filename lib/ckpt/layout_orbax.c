/* SPDX-License-Identifier: MIT */
/*
 * Orbax: 500/ (or 00000500/), written as 500.orbax-checkpoint-tmp-NNN and renamed. Where renaming
 * is no promise, commit_success.txt is written last. _CHECKPOINT_METADATA has the time of the
 * commit.
 */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "ckpt/layout.h"
#include "ckpt/structure.h"

static bool read_name(
	const struct layout_choice *choice, const char *entry, struct layout_name *name)
{
	(void)choice;
	return layout_prefixed(entry, "", name);
}

static const char *const marks[] = {"_CHECKPOINT_METADATA", "commit_success.txt",
	"orbax.checkpoint", "_METADATA", "manifest.ocdbt", "default/_METADATA", "state/_METADATA",
	"params/_METADATA", "default/commit_success.txt", "state/commit_success.txt",
	"default/manifest.ocdbt", "state/manifest.ocdbt", NULL};

/* Arrays lie in "d", and the manifest beside that says where. */
static enum status check_arrays(const struct layout_item *item, struct error *why)
{
	for (size_t i = 0; i < item->files->count; i++) {
		const char *name = item->files->files[i].name;
		size_t directory = (size_t)(structure_base(name) - name);
		char manifest[4096];
		if (strstr(name, ".orbax-checkpoint-tmp"))
			return error_set(why, STATUS_NO, "%s is not finished", name);
		if (directory < 2 || strncmp(name + directory - 2, "d/", 2) != 0 ||
			(directory > 2 && name[directory - 3] != '/'))
			continue;
		snprintf(
			manifest, sizeof(manifest), "%.*smanifest.ocdbt", (int)directory - 2, name);
		if (!structure_find(item->files, manifest))
			return error_set(why, STATUS_NO, "%s is missing", manifest);
	}
	return STATUS_OK;
}

static enum status judge(const struct layout_item *item, struct error *why)
{
	static const char metadata[] = "_CHECKPOINT_METADATA";
	enum status status = check_arrays(item, why);
	if (status == STATUS_OK && manifest_bytes(item->files) == 0)
		status = error_set(why, STATUS_NO, "it is empty");
	if (status != STATUS_OK || structure_find(item->files, "commit_success.txt") ||
		!structure_find(item->files, metadata))
		return status;
	struct json_object *member;
	struct json_object *object = structure_read_json(item->root, metadata, &status, why);
	if (status == STATUS_OK &&
		json_object_object_get_ex(object, "commit_timestamp_nsecs", &member) && !member)
		status = error_set(why, STATUS_NO, "%s has no time of a commit", metadata);
	json_object_put(object);
	return status;
}

const struct layout layout_orbax = {
	.name = "orbax",
	.title = "Orbax",
	.shape = LAYOUT_DIRECTORY,
	.read = read_name,
	.marks = marks,
	.judge = judge,
};
