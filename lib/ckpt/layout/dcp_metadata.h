/* SPDX-License-Identifier: MIT */
/*
 * .metadata of torch.distributed.checkpoint: a pickle that says for each item in which file it is
 * saved, at which offset, and how many bytes long. Nothing of it is executed. Pure.
 */
#ifndef CKPT_DCP_METADATA_H
#define CKPT_DCP_METADATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Called for each item; name is not terminated, end is its offset plus its length. false: stop. */
typedef bool dcp_metadata_see(void *context, const char *name, size_t length, uint64_t end);

/*
 * Read the pickle's items in their order. An opcode that is not known, or memory that cannot be
 * had, ends it early: the other items are not seen.
 */
void dcp_metadata_items(const char *pickle, size_t length, dcp_metadata_see *see, void *context);

#endif
