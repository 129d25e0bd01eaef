/* SPDX-License-Identifier: MIT */
/*
 * torch.distributed.checkpoint without a framework: a directory for each step, with a name that the
 * user chooses, such as step-500, checkpoint_500 or 500. Each rank writes files __R_I.distcp in it.
 * When all have, the coordinator writes .metadata, which names all files, and renames it into place
 * (FileSystemWriter.finish). So the checkpoint itself says how many files there are.
 */
#include "ckpt/layout/layout.h"
#include "ckpt/layout/structure.h"

/* Only words that mean a step: "optimizer_0" is a part of a checkpoint. */
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
