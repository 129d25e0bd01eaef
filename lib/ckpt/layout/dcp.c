/* SPDX-License-Identifier: MIT */
/*
 * torch.distributed.checkpoint by itself: a directory for each step, whose name PyTorch leaves to
 * the user: step-500, checkpoint_500, 500 and the like. In it each rank writes files __R_I.distcp;
 * when all have, the coordinator writes .metadata, which names all of them, by renaming a temporary
 * file (FileSystemWriter.finish). So the checkpoint itself says how many there are.
 */
#include "ckpt/layout/layout.h"
#include "ckpt/layout/structure.h"

/* Only words that count steps: "optimizer_0" is a part of a checkpoint. */
#define WORD(word) word "{step}", word "-{step}", word "_{step}", word "={step}"
static const char *const names[] = {"{step}", WORD("step"), WORD("global_step"), WORD("iter"),
	WORD("iteration"), WORD("epoch"), WORD("ckpt"), WORD("checkpoint"), NULL};

static const char *const marks[] = {".metadata", "__0_0.distcp", NULL};

static enum status check(
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
	.names = names,
	.marks = marks,
	.check = check,
	.general = true,
};
