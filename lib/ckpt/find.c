/* SPDX-License-Identifier: MIT */
/* Finding the newest checkpoint, in any layout; marking one, and giving one up. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "ckpt/ckpt.h"
#include "ckpt/directory.h"
#include "ckpt/list.h"

/* We give up when listed checkpoints have vanished this number of times. */
#define TRIES	   100
#define REASON_MAX 180 /* bytes; a cut character becomes another one of 3 bytes */

/* A mark as bad holds for all copies: the same step, attempt and time of commit. */
static enum status look_at_copies(
	const struct checkpoint_search *search, struct checkpoint *one, struct error *err)
{
	for (size_t i = 0; i < search->place_count && one->state == CHECKPOINT_COMPLETE; i++) {
		struct checkpoint copy;
		const char *place = search->places[i];
		if (place == search->directory)
			continue;
		enum status status = checkpoint_inspect(place, one->step, false, &copy, err);
		if (status_is_error(status))
			return status;
		if (status == STATUS_OK && copy.bad && copy.attempt == one->attempt &&
			copy.utc == one->utc) {
			one->state = CHECKPOINT_BAD;
			snprintf(one->why, sizeof(one->why), "marked in %.200s", place);
		}
	}
	return STATUS_OK;
}

/* Choose the newest one to resume from. STATUS_NO: there is none among those that were read. */
static enum status choose(const struct checkpoint_search *search, struct list *list,
	struct checkpoint *found, struct text *skipped, struct error *err)
{
	bool ours = layout_is_native(search->layout), unused;
	bool *doubtful = search->doubted ? search->doubted : &unused;
	/* Of ours, each is inspected by itself, the newest first, until one is complete. */
	const struct list_request request = {.directory = search->directory,
		.layout = search->layout,
		.contents = search->contents,
		.names_only = ours,
		.saved = search->saved};
	enum status status = list_read(&request, list, err);
	if (status != STATUS_OK)
		return status;
	list_note(list, skipped);
	*doubtful = false;
	for (size_t i = list->count; i-- > 0;) {
		struct checkpoint *one = &list->items[i].checkpoint;
		if (ours && ckpt_name_read(one->name).kind != CKPT_NAME_STEP)
			continue;
		status = ours ? list_inspect(list, &list->items[i], err) : STATUS_OK;
		if (status == STATUS_NO) {
			list->vanished = true;
			continue;
		}
		if (status == STATUS_OK && ours)
			status = look_at_copies(search, one, err);
		if (status != STATUS_OK)
			return status;
		if (one->state == CHECKPOINT_UNREADABLE)
			return error_set(err, one->status, "%s/%s: %s", search->directory,
				one->name, one->why);
		bool complete = one->state == CHECKPOINT_COMPLETE;
		if (complete || (one->state == CHECKPOINT_DOUBTFUL && !*doubtful))
			*found = *one;
		if (complete)
			return STATUS_OK;
		*doubtful |= one->state == CHECKPOINT_DOUBTFUL;
		text_addf(skipped, "%s/%s is %s%s and was skipped: %s\n", search->directory,
			one->name, one->state == CHECKPOINT_UNKNOWN_FORM ? "of an " : "",
			checkpoint_state_name(one->state), one->why);
	}
	return *doubtful ? STATUS_OK : list_confirm_none(list, err);
}

enum status checkpoint_latest(const struct checkpoint_search *search, struct checkpoint *found,
	struct text *skipped, struct error *err)
{
	struct list list = {.descriptor = -1};
	struct text lines = {0};
	enum status status;
	int tries = 0;
	/* While another process commits and prunes, a listed checkpoint may be gone when it is
	 * inspected. Never answer "none" from such a list. */
	do {
		list_release(&list);
		text_release(&lines);
		status = choose(search, &list, found, &lines, err);
	} while (list.vanished && !status_is_error(status) && ++tries < TRIES);
	if (status == STATUS_NO && list.vanished)
		status = error_set(err, STATUS_TEMPORARY,
			"the checkpoints in %s kept changing while they were read; try again",
			search->directory);
	if (status == STATUS_NO) {
		enum status same = ckpt_directory_confirm(search->directory, list.descriptor, err);
		status = same == STATUS_OK ? STATUS_NO : same;
	}
	if (skipped)
		text_add(skipped, text_string(&lines));
	text_release(&lines);
	list_release(&list);
	return status;
}

enum status checkpoint_find_resume(const char *text, const char *before, const uint64_t *saved,
	struct checkpoint_resume *resume, struct error *notes)
{
	struct checkpoint found;
	struct layout layout;
	struct text skipped = {0};
	char directory[4096];
	const struct checkpoint_search search = {
		.directory = directory, .layout = &layout, .saved = saved};
	enum status status = layout_read_location(text, before, directory, &layout, notes);
	if (status == STATUS_OK)
		status = checkpoint_latest(&search, &found, &skipped, notes);
	if (status == STATUS_OK && snprintf(resume->path, sizeof(resume->path), "%s/%s", directory,
					   found.name) >= (int)sizeof(resume->path))
		status = error_set(notes, STATUS_USAGE, "the name %.100s... is too long", text);
	if (status == STATUS_OK) {
		resume->step = found.step;
		resume->doubtful = found.state == CHECKPOINT_DOUBTFUL;
		snprintf(resume->layout, sizeof(resume->layout), "%s", layout.name);
		if (resume->doubtful)
			error_set(notes, STATUS_OK, "%s may be incomplete: %s", resume->path,
				found.why);
		else
			error_set(notes, STATUS_OK, "%.*s",
				(int)strcspn(text_string(&skipped), "\n"), text_string(&skipped));
	}
	text_release(&skipped);
	return status;
}

/* Set or remove the mark in this file of DIR, durably. It is written in its place: a half-written
 * one is a mark, too, and one that was set stays set. */
static enum status put_mark(
	const char *directory, const char *name, bool set, const char *reason, struct error *err)
{
	enum status status = STATUS_OK;
	struct text line = {0};
	char *path = ckpt_directory_path(directory, name), *parent = file_directory_of(path);
	bool again = faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
	int descriptor =
		set ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
			      0666)
		    : -1;
	if (set && descriptor < 0)
		status = error_errno(err, errno, "create %s", path);
	else if (!set && unlink(path) < 0 && errno != ENOENT)
		status = error_errno(err, errno, "remove %s", path);
	text_add(&line, "{\"reason\": ");
	text_add_json_bytes(&line, reason, reason ? strnlen(reason, REASON_MAX) : 0);
	text_add(&line, "}\n");
	if (descriptor >= 0 &&
		(file_write_all(descriptor, line.data, line.length) < 0 || fsync(descriptor) < 0)) {
		status = error_errno(err, errno, "write %s", path);
		if (!again)
			(void)unlink(path);
	}
	if (descriptor >= 0)
		close(descriptor);
	if (status == STATUS_OK)
		status = file_sync_directory(parent, err);
	text_release(&line);
	free(path);
	free(parent);
	return status;
}

enum status checkpoint_mark(const char *directory, const struct layout *layout, uint64_t step,
	enum checkpoint_mark mark, const char *reason, struct error *err)
{
	const struct list_request request = {.directory = directory, .layout = layout};
	char name[2 * CKPT_GONE_SIZE], other[CKPT_NAME_SIZE];
	struct list list;
	const struct checkpoint *found = NULL;
	bool ours = layout_is_native(layout), bad = mark == CKPT_MARK_BAD;
	bool pin = mark == CKPT_MARK_PINNED || mark == CKPT_MARK_UNPINNED;
	enum status status = list_read(&request, &list, err);
	for (size_t i = 0; i < list.count; i++) {
		const struct checkpoint *one = &list.items[i].checkpoint;
		if (one->step == step && !one->own && !one->unfinished)
			found = one;
	}
	if (status == STATUS_OK && !found)
		status = error_set(err, STATUS_NO,
			"there is no checkpoint of step %" PRIu64 " in %s", step, directory);
	else if (status == STATUS_OK && ours && found->state == CHECKPOINT_UNKNOWN_FORM)
		status = error_set(err, STATUS_NO, "%s/%s: %s", directory, found->name, found->why);
	if (ours)
		snprintf(name, sizeof(name), "%s/%s", found ? found->name : "",
			pin ? CKPT_PIN : CKPT_BAD);
	else
		ckpt_name_beside(name, pin ? CKPT_BESIDE_PIN : CKPT_BESIDE_BAD, step);
	if (status == STATUS_OK)
		status = put_mark(directory, name, bad || mark == CKPT_MARK_PINNED, reason, err);
	/* A framework's that is doubtful becomes complete by a mark of its own. */
	bool good = mark == CKPT_MARK_GOOD && found && found->state == CHECKPOINT_DOUBTFUL;
	ckpt_name_beside(other, CKPT_BESIDE_GOOD, step);
	if (status == STATUS_OK && (good || (bad && !ours)))
		status = put_mark(directory, other, good, NULL, err);
	list_release(&list);
	return status;
}

/* STATUS_OK: a checkpoint of another step is complete. STATUS_NO: there is none. */
static enum status find_other(
	const char *directory, const struct layout *layout, uint64_t step, struct error *err)
{
	const struct list_request request = {.directory = directory, .layout = layout};
	struct list list;
	bool found = false;
	enum status status = list_read(&request, &list, err);
	for (size_t i = 0; i < list.count; i++)
		found |= list.items[i].checkpoint.state == CHECKPOINT_COMPLETE &&
			 list.items[i].checkpoint.step != step;
	list_release(&list);
	return status != STATUS_OK || found
		       ? status
		       : error_set(err, STATUS_NO, "there is no other complete checkpoint");
}

enum status checkpoint_give_up(
	const char *place, const char *before, uint64_t step, uint64_t failures, struct error *err)
{
	char reason[80], directory[4096];
	struct layout layout;
	enum status status = layout_read_location(place, before, directory, &layout, err);
	if (status == STATUS_OK)
		status = find_other(directory, &layout, step, err);
	if (status != STATUS_OK)
		return status;
	snprintf(reason, sizeof(reason), "%llu restarts from it failed",
		(unsigned long long)failures);
	/* If another process has marked or pruned it already, that is as good. */
	status = checkpoint_mark(directory, &layout, step, CKPT_MARK_BAD, reason, err);
	if (status != STATUS_OK)
		return status == STATUS_NO ? STATUS_OK : status;
	/* A prune that did not see the mark may have renamed the others away by now. */
	struct error why;
	status = find_other(directory, &layout, step, err);
	if (status == STATUS_OK || !status_is_error(checkpoint_mark(
					   directory, &layout, step, CKPT_MARK_GOOD, NULL, &why)))
		return status;
	return error_set(err, why.status, "%s", why.text);
}
