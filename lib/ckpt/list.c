/* SPDX-License-Identifier: MIT */
/* Finding: all checkpoints of a directory, and the newest complete one. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mounts.h"
#include "base/xalloc.h"
#include "ckpt/ckpt.h"
#include "ckpt/directory.h"
#include "ckpt/layout/native.h"

#define TRIES 100

void checkpoint_list_release(struct checkpoint_list *list)
{
	free(list->items);
	*list = (struct checkpoint_list){0};
}

enum status checkpoint_list(const char *directory, struct checkpoint_list *list, struct error *err)
{
	struct checkpoint_list made = {0};
	struct ckpt_directory_entries entries = {0};
	int descriptor;
	enum status status = ckpt_directory_open(directory, &descriptor, err);
	if (status != STATUS_OK)
		return status;
	status = ckpt_directory_list(directory, descriptor, &entries, err);
	made.items = xcalloc(entries.count + 1, sizeof(*made.items));
	made.removed = entries.removed;
	for (size_t i = 0; i < entries.count && status == STATUS_OK; i++) {
		const struct ckpt_directory_entry *entry = &entries.items[i];
		struct checkpoint *item = &made.items[made.count];
		status = entry->read.kind == CKPT_NAME_STEP
				 ? inspect_step(directory, entry->read.step, false, item, NULL, err)
				 : inspect_staging(directory, entry, item, err);
		if (status == STATUS_OK)
			made.count++;
		else if (status == STATUS_NO) /* gone since it was listed */
			status = STATUS_OK;
	}
	if (status == STATUS_OK && made.count == 0)
		status = ckpt_directory_confirm(directory, descriptor, err);
	close(descriptor);
	free(entries.items);
	if (status == STATUS_OK)
		*list = made;
	else
		checkpoint_list_release(&made);
	return status;
}

/* The newest complete one of entries. STATUS_NO: none. *changed: one of them went meanwhile. */
static enum status choose(const char *directory, const struct ckpt_directory_entries *entries,
	uint64_t below, bool contents, struct checkpoint *found, struct text *skipped,
	bool *changed, struct error *err)
{
	for (size_t i = entries->count; i-- > 0;) {
		const struct ckpt_directory_entry *entry = &entries->items[i];
		struct checkpoint look;
		if (entry->read.kind != CKPT_NAME_STEP || entry->read.step >= below)
			continue;
		enum status status =
			inspect_step(directory, entry->read.step, contents, &look, NULL, err);
		if (status == STATUS_NO) {
			*changed = true;
			continue;
		}
		if (status != STATUS_OK)
			return status;
		switch (look.state) {
		case CHECKPOINT_COMPLETE: *found = look; return STATUS_OK;
		case CHECKPOINT_UNKNOWN:
			return error_set(
				err, look.status, "%s/%s: %s", directory, look.name, look.why);
		default:
			if (skipped)
				text_addf(skipped, "%s/%s is %s and was skipped: %s\n", directory,
					look.name, checkpoint_state_name(look.state), look.why);
		}
	}
	return STATUS_NO;
}

enum status checkpoint_latest(const char *directory, bool contents, struct checkpoint *found,
	struct text *skipped, struct error *err)
{
	return checkpoint_latest_below(
		directory, CKPT_NUMBER_MAX + 1, contents, found, skipped, err);
}

enum status checkpoint_latest_below(const char *directory, uint64_t below, bool contents,
	struct checkpoint *found, struct text *skipped, struct error *err)
{
	int descriptor;
	bool changed = true;
	enum status status = ckpt_directory_open(directory, &descriptor, err);
	if (status == STATUS_NO) {
		enum status confirmed = ckpt_directory_confirm(directory, -1, err);
		if (confirmed != STATUS_OK)
			return confirmed;
		bool refused = mounts_allow_new(directory, NULL) != STATUS_OK;
		return error_set(err, STATUS_NO, "there is no directory %s%s", directory,
			refused ? "; this is a restart, in which \"ckpt-rotate begin\" does not "
				  "make it: if it is meant to be new, mkdir it now"
				: "");
	}
	if (status != STATUS_OK)
		return status;
	/* While another process commits and prunes, a listed checkpoint may be gone when it is
	 * examined. Repeat until nothing listed disappeared. Never answer "none" from an
	 * unstable listing; a checkpoint that was found is answered after some tries. */
	status = STATUS_NO;
	for (int tries = 0; changed && tries < TRIES; tries++) {
		struct ckpt_directory_entries entries = {0};
		struct text passed = {0};
		changed = false;
		status = ckpt_directory_list(directory, descriptor, &entries, err);
		if (status == STATUS_OK)
			status = choose(directory, &entries, below, contents, found, &passed,
				&changed, err);
		if (skipped && (!changed || tries + 1 == TRIES))
			text_add(skipped, text_string(&passed));
		text_release(&passed);
		free(entries.items);
		if (status != STATUS_OK && status != STATUS_NO)
			break;
	}
	if (status == STATUS_NO && changed)
		status = error_set(err, STATUS_TEMPORARY,
			"the checkpoints in %s kept changing while they were read; try again",
			directory);
	if (status == STATUS_NO) {
		status = ckpt_directory_confirm(directory, descriptor, err);
		if (status == STATUS_OK)
			status = error_set(
				err, STATUS_NO, "there is no complete checkpoint in %s", directory);
	}
	close(descriptor);
	return status;
}
