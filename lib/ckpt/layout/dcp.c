/* SPDX-License-Identifier: MIT */
/*
 * torch.distributed.checkpoint by itself: a directory for each step, whose name PyTorch leaves to
 * the user: step-500, checkpoint_500, 500 and the like. In it each rank writes files __R_I.distcp;
 * when all have, the coordinator writes .metadata, which names all of them, by renaming a temporary
 * file (FileSystemWriter.finish). So the checkpoint itself says how many there are.
 */
#include <string.h>

#include "ckpt/layout/layout.h"
#include "ckpt/layout/structure.h"

/* Only words that count steps: "optimizer_0" is a part of a checkpoint. */
static const char *const words[] = {
	"step", "global_step", "iter", "iteration", "epoch", "ckpt", "checkpoint", NULL};

static bool read_name(
	const struct layout_choice *choice, const char *entry, struct layout_name *name)
{
	(void)choice;
	if (layout_prefixed(entry, "", name))
		return true;
	for (const char *const *word = words; *word; word++) {
		size_t length = strlen(*word);
		if (strncmp(entry, *word, length) != 0)
			continue;
		length += entry[length] && strchr("-_=", entry[length]) ? 1 : 0;
		if (layout_prefixed(entry + length, "", name)) {
			name->length += length;
			return true;
		}
	}
	return false;
}

static const char *const marks[] = {".metadata", "__0_0.distcp", NULL};

static enum status judge(
	const struct layout_item *item, struct layout_found *found, struct error *why)
{
	(void)found;
	enum status status = structure_check_shards(item->root, item->files, why);
	if (status == STATUS_OK)
		status = structure_check_all(item->root, item->files, "", why);
	return status;
}

const struct layout layout_dcp = {
	.name = "dcp",
	.title = "torch.distributed.checkpoint",
	.shape = LAYOUT_DIRECTORY,
	.read = read_name,
	.marks = marks,
	.judge = judge,
	.general = true,
};
