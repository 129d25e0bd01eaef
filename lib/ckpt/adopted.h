/* SPDX-License-Identifier: MIT */
/*
 * Checkpoints that a training framework wrote, in its own layout (ckpt/layout/layout.h): found,
 * judged, pruned. The framework knows nothing of us, so:
 *
 *   complete is what the framework's own rule calls complete, and what its tracker does not say to
 *   be unfinished; there are no checksums, only names, sizes and the structure of files;
 *   where the files of some ranks could be missing and nothing says so, it is
 *   CHECKPOINT_UNPROVEN: never offered before a complete one, never removed, never counted;
 *   who writes is not known: what changed within a time (settled) counts as being written, and is
 *   CHECKPOINT_INCOMPLETE when it is not complete; incomplete and quiet is CHECKPOINT_DAMAGED;
 *   a tracker is read, never written; what it names and whatever is newer is never touched;
 *   a name that the layout does not read exactly, a symbolic link, a directory that holds no
 *   file of the framework or a link or device: CHECKPOINT_FOREIGN, never touched.
 *
 * Answers as in ckpt/ckpt.h. With a choice that is native all of this is ckpt/ckpt.h itself.
 */
#ifndef CKPT_ADOPTED_H
#define CKPT_ADOPTED_H

#include "ckpt/ckpt.h"
#include "ckpt/layout/layout.h"
#include "ckpt/prune.h"

/* Unchanged for so long: nobody writes any more. Milliseconds. */
#define LAYOUT_SETTLED (15 * 60 * 1000)

/* What --layout and --pattern say (NULL: not given) of one DIR. */
enum status layout_choose(const char *directory, const char *layout, const char *pattern,
	struct layout_choice *choice, struct error *err);

/*
 * "DIR" or "DIR:LAYOUT". What stands behind the last colon is a layout, or part of DIR's name:
 * where it holds a slash ("a:b/"), or is no layout and a DIR of that name is there. STATUS_USAGE:
 * it is neither. Then as layout_choose.
 */
enum status layout_read_location(
	const char *text, char directory[4096], struct layout_choice *choice, struct error *err);

/*
 * All, by rising step; several may have the same. notes (may be NULL): a line on each thing that
 * people should know, such as a broken tracker.
 */
enum status adopted_list(const char *directory, const struct layout_choice *choice,
	struct checkpoint_list *list, struct text *notes, struct error *err);

/*
 * As checkpoint_latest. contents has a meaning only for native ones. found is CHECKPOINT_UNPROVEN
 * where there is one and none is known to be complete.
 */
enum status adopted_latest(const char *directory, const struct layout_choice *choice, bool contents,
	struct checkpoint *found, struct text *skipped, struct error *err);

/*
 * Where to resume from, of a place as layout_read_location reads it: path and step of
 * adopted_latest's. unproven: none is known to be complete. notes: with STATUS_OK empty, or why it
 * is unproven, or the first that was passed over, and why.
 */
enum status checkpoint_find_resume(
	const char *text, char path[4096], uint64_t *step, bool *unproven, struct error *notes);

/* As checkpoint_prune. settled: milliseconds. STATUS_DAMAGED: the tracker is broken. */
enum status adopted_prune(const char *directory, const struct layout_choice *choice,
	const struct prune_request *request, int64_t settled, struct prune_report *report,
	struct error *err);

/*
 * Mark the checkpoint of step in place ("DIR" or "DIR:LAYOUT") as bad, since so many restarts from
 * it failed. STATUS_NO: not the last complete one, on which all progress hangs, and not in a
 * framework's layout, where nothing can be marked.
 */
enum status checkpoint_give_up(
	const char *place, uint64_t step, uint64_t failures, struct error *err);

#endif
