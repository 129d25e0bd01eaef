/* SPDX-License-Identifier: MIT */
/* Inspecting a checkpoint of a framework: by itself, and compared with an older one. */
#ifndef CKPT_FRAMEWORK_H
#define CKPT_FRAMEWORK_H

#include "ckpt/list.h"
#include "ckpt/tree.h"

/* Inspect it by itself (framework.c). STATUS_NO: it is gone. */
enum status framework_inspect(const struct list *list, struct list_item *item, struct error *err);
/* Read the step that is in the content of an entry. STATUS_NO: it is no checkpoint. One that is
 * damaged, or not finished, is one of step 0. */
enum status framework_read_step(
	const struct list *list, struct list_entry *entry, struct error *err);
/* Whether a directory has a file in it, at any depth, or may have one. */
bool framework_has_files(int directory, const char *name);

/* Keep names and sizes of its files for a comparison (doubt.c). inside: they are in a directory;
 * proved: patterns of files whose number is known. */
void framework_keep_names(
	struct list_item *item, const struct manifest *files, bool inside, const char *proved);
/* Conclude that item i is doubtful, if it is; what it is compared with stays. */
void framework_doubt(struct list *list, size_t i);

/* Visit all that is below root. What is too deep was not seen, which is not "no". */
enum status list_walk(int root, tree_visitor *visitor, void *context, struct error *err);
/* Whether there is such a file beside the checkpoint of this step, as old as `since`. */
bool list_has_mark(const struct list *list, uint64_t step, enum ckpt_beside kind, int64_t since);
/* Note that a checkpoint is never removed: "WHAT WHY". */
void list_stay(struct checkpoint *checkpoint, const char *what, const char *why);

#endif
