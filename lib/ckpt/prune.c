/* SPDX-License-Identifier: MIT */
#include "ckpt/prune.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/xalloc.h"
#include "ckpt/directory.h"
#include "ckpt/gone.h"
#include "ckpt/list.h"
#include "ckpt/names.h"
#include "ckpt/native.h"

/* A prune of a DIR. */
struct pruning {
	const struct prune_request *request;
	struct prune_report *report;
	struct list *list; /* of the report */
	struct keep_moment moment;
	const struct checkpoint *newest; /* the newest one that counts; NULL: there is none */
	char (*gone)[CKPT_GONE_SIZE];	 /* the name of each entry of list now; "": its own */
	struct error first;		 /* the first failure of the removal; STATUS_OK: none */
};

void prune_report_release(struct prune_report *report)
{
	list_release(&report->list);
	free(report->decisions);
	free(report->statuses);
}

const char *prune_action(const struct prune_report *report, size_t i, bool dry_run)
{
	return report->decisions[i].keep		     ? "kept"
	       : dry_run || report->statuses[i] == STATUS_OK ? "removed"
	       : report->statuses[i] == STATUS_NO	     ? "gone"
							     : "FAILED";
}

/* Read the clock that dates files in DIR (of a server, for example), by setting its time to now. */
static enum status read_clock(int directory, const char *path, int64_t *now, struct error *err)
{
	struct stat st;
	if (futimens(directory, NULL) < 0 || fstat(directory, &st) < 0)
		return error_errno(err, errno, "measure the clock of %s", path);
	*now = file_changed(&st);
	return STATUS_OK;
}

/* Decide. What is kept needs what its links lead to, which may have links, too. */
static enum status decide(struct pruning *pruning, bool *met, struct error *err)
{
	struct list *list = pruning->list;
	const struct keep_policy *policy = &pruning->request->policy;
	struct keep_decision *decisions = pruning->report->decisions;
	const struct checkpoint **items = xcalloc(list->count + 1, sizeof(*items));
	bool *followed = xcalloc(list->count + 1, sizeof(*followed)), again = true;
	const struct list_item *newest = list_newest(list);
	for (size_t i = 0; i < list->count; i++) {
		items[i] = &list->items[i].checkpoint;
		if (keep_counts(items[i], &pruning->moment))
			pruning->newest = items[i];
	}
	enum status status = keep_check_metric(policy, items, list->count, err);
	while (status == STATUS_OK && again) {
		*met = keep_decide(policy, &pruning->moment, items, list->count, decisions);
		again = false;
		for (size_t i = 0; i < list->count && status == STATUS_OK; i++) {
			const struct list_item *item = &list->items[i];
			bool first = item == newest || items[i] == pruning->newest;
			/* Ours have no links, unless somebody has put them there. */
			if (!decisions[i].keep || followed[i] ||
				(!first && layout_is_native(list->request.layout)))
				continue;
			status = list_follow(list, item, first, err);
			again = followed[i] = true;
		}
	}
	free(followed);
	free(items);
	return status;
}

/* Read DIR and decide. *met: what is kept is no larger than --max-bytes. */
static enum status read_and_decide(struct pruning *pruning, bool *met, struct error *err)
{
	struct list *list = pruning->list;
	struct prune_report *report = pruning->report;
	const struct list_request about = list->request;
	enum status status = list_read(&about, list, err);
	if (status == STATUS_NO)
		status =
			error_set(err, STATUS_TEMPORARY, "%s vanished; try again", about.directory);
	if (status == STATUS_OK && *list->tracker.broken)
		status = error_set(err, STATUS_DAMAGED,
			"%s/%s: cannot parse the tracker file: %s; nothing was removed; if no "
			"training is running, correct or remove the file",
			about.directory, about.layout->tracker, list->tracker.broken);
	if (status == STATUS_OK)
		status = list_protect(list, err);
	report->decisions = xcalloc(list->count + 1, sizeof(*report->decisions));
	report->statuses = xcalloc(list->count + 1, sizeof(*report->statuses));
	if (status == STATUS_OK)
		status = decide(pruning, met, err);
	report->count = status == STATUS_OK ? list->count : 0;
	return status;
}

/* The names that the entries of item i have now; "": their own. */
static char (*gone_names(const struct pruning *pruning, size_t i))[CKPT_GONE_SIZE]
{
	return &pruning->gone[pruning->list->items[i].first];
}

/* Whether item i, with all its entries, is renamed away. */
static bool is_away(const struct pruning *pruning, size_t i)
{
	return *gone_names(pruning, i)[0] != '\0';
}

static void note_failure(struct pruning *pruning, size_t i, const struct error *err)
{
	struct prune_report *report = pruning->report;
	report->statuses[i] = err->status;
	snprintf(report->decisions[i].why, sizeof(report->decisions[i].why), "%.255s", err->text);
	if (pruning->first.status == STATUS_OK)
		pruning->first = *err;
}

/*
 * Item i is not removed: give its entries their names back. err: why it could not be; STATUS_NO:
 * another process has changed or removed it; STATUS_OK: why it is kept after all.
 */
static void bring_back(struct pruning *pruning, size_t i, const struct error *err)
{
	const struct list *list = pruning->list;
	struct keep_decision *decision = &pruning->report->decisions[i];
	struct error why;
	if (err->status == STATUS_OK) {
		*decision = (struct keep_decision){.keep = true, .must = true};
		snprintf(decision->why, sizeof(decision->why), "%.255s", err->text);
	} else if (err->status == STATUS_NO) {
		pruning->report->statuses[i] = STATUS_NO;
	} else {
		note_failure(pruning, i, err);
	}
	for (size_t k = 0; k < list->items[i].count; k++) {
		char *gone = gone_names(pruning, i)[k];
		if (*gone && gone_give_back(list->descriptor, list->request.directory, gone,
				     &why) != STATUS_OK)
			note_failure(pruning, i, &why);
		*gone = '\0';
	}
}

/* Whether item i is as it was when DIR was read. STATUS_NO: it is gone, or a process writes it. */
static enum status is_unchanged(const struct pruning *pruning, size_t i, struct error *err)
{
	struct list_item now = pruning->list->items[i];
	const struct checkpoint *then = &pruning->list->items[i].checkpoint;
	if (then->changed == 0) /* it has a manifest, so nobody writes it */
		return STATUS_OK;
	now.files = NULL;
	enum status status = list_inspect(pruning->list, &now, err);
	if (status == STATUS_OK &&
		(now.checkpoint.changed != then->changed || now.checkpoint.inode != then->inode))
		status = error_set(err, STATUS_NO, "it has changed");
	list_item_release(&now);
	return status;
}

/* Rename all entries of each item that is to go. False: none is renamed away. */
static bool rename_all(struct pruning *pruning)
{
	const struct list *list = pruning->list;
	bool any = false;
	for (size_t i = 0; i < list->count; i++) {
		struct error err = {.status = STATUS_OK};
		if (pruning->report->decisions[i].keep)
			continue;
		enum status status = is_unchanged(pruning, i, &err);
		for (size_t k = 0; k < list->items[i].count && status == STATUS_OK; k++) {
			const struct list_entry *entry = &list->entries[list->items[i].first + k];
			char *gone = gone_names(pruning, i)[k];
			/* Of ours, that which was inspected: it may have been replaced since. */
			uint64_t inode = layout_is_native(list->request.layout)
						 ? list->items[i].checkpoint.inode
						 : entry->inode;
			status = gone_rename(list->descriptor, list->request.directory, entry->name,
				inode, gone, &err);
			if (status != STATUS_OK)
				*gone = '\0';
		}
		any |= status == STATUS_OK;
		err.status = status;
		if (status != STATUS_OK)
			bring_back(pruning, i, &err);
	}
	return any;
}

/* Why item i must be kept, now that DIR was read again; NULL: it may go. */
static const char *wanted_now(const struct pruning *pruning, const struct list *now, size_t i)
{
	const struct list_item *item = &pruning->list->items[i];
	bool pinned = false, wanted = false;
	struct error why;
	enum status status = STATUS_OK;
	if (now->tracker.named && now->tracker.step == item->checkpoint.step)
		return "the tracker names it now";
	for (size_t k = 0; k < now->mark_count; k++)
		pinned |= now->marks[k].kind == CKPT_BESIDE_PIN &&
			  now->marks[k].step == item->checkpoint.step;
	if (layout_is_native(now->request.layout))
		status = marks_read_pinned(
			now->descriptor, gone_names(pruning, i)[0], &pinned, &why);
	for (size_t k = 0; k < item->count && status == STATUS_OK && !wanted; k++)
		status = list_is_wanted(
			now, pruning->list->entries[item->first + k].name, &wanted, &why);
	return status != STATUS_OK ? "it cannot be read whether it is pinned or a link leads to it"
	       : pinned		   ? "pinned since it was listed"
	       : wanted		   ? "a link leads to it now"
				   : NULL;
}

/*
 * Look at DIR once more, and bring back what is wanted now. STATUS_NO: the newest one is doubtful
 * without those that were renamed away. STATUS_TEMPORARY: what was decided is no longer right.
 */
static enum status look_again(struct pruning *pruning, struct error *err)
{
	const struct checkpoint *newest = pruning->newest, *one;
	const struct list_request about = pruning->list->request;
	enum checkpoint_state state = newest ? CHECKPOINT_INCOMPLETE : CHECKPOINT_COMPLETE;
	struct list now;
	enum status status = list_read(&about, &now, err);
	bool broken = *now.tracker.broken || pruning->list->tracker.found > now.tracker.found;
	for (size_t i = 0; i < now.count && newest && status == STATUS_OK; i++) {
		one = &now.items[i].checkpoint;
		if (strcmp(one->name, newest->name) != 0)
			continue;
		if (one->state == CHECKPOINT_UNREADABLE)
			status = error_set(err, one->status, "%s/%s: %s", about.directory,
				one->name, one->why);
		if (one->inode == newest->inode)
			state = one->state;
	}
	if (status == STATUS_OK && broken)
		status = error_set(err, STATUS_TEMPORARY,
			"%s/%s changed while it was examined; nothing was removed, try again",
			about.directory, about.layout->tracker);
	else if (status == STATUS_NO || (status == STATUS_OK && state != CHECKPOINT_COMPLETE &&
						state != CHECKPOINT_DOUBTFUL))
		status = error_set(err, STATUS_TEMPORARY,
			"%s/%s is no longer complete, so no checkpoint is removed; try again",
			about.directory, newest ? newest->name : "");
	for (size_t i = 0; i < pruning->list->count && status == STATUS_OK; i++) {
		const char *wanted = is_away(pruning, i) ? wanted_now(pruning, &now, i) : NULL;
		struct error why;
		if (!wanted)
			continue;
		error_set(&why, STATUS_OK, "%s", wanted);
		bring_back(pruning, i, &why);
	}
	list_release(&now);
	return status == STATUS_OK && state == CHECKPOINT_DOUBTFUL ? STATUS_NO : status;
}

/* Look again, and bring back what must be. */
static void confirm(struct pruning *pruning)
{
	struct error err = {0}, why;
	enum status status = look_again(pruning, &err);
	/* The comparison with an older one may have shown that the newest one is complete. */
	error_set(&why, STATUS_OK, "without it, the newest one is doubtful");
	for (size_t i = pruning->list->count; i-- > 0 && status == STATUS_NO;)
		if (is_away(pruning, i) &&
			pruning->list->items[i].checkpoint.state == CHECKPOINT_COMPLETE) {
			bring_back(pruning, i, &why);
			status = look_again(pruning, &err);
		}
	if (status == STATUS_NO)
		error_set(&err, STATUS_TEMPORARY,
			"the checkpoints in %s changed while they were examined; try again",
			pruning->list->request.directory);
	for (size_t i = 0; i < pruning->list->count && status != STATUS_OK; i++)
		if (is_away(pruning, i))
			bring_back(pruning, i, &err);
}

/* Remove the marks beside item i, unless another item has its step. */
static enum status remove_marks(const struct list *list, size_t i, struct error *err)
{
	enum status status = STATUS_OK;
	uint64_t step = list->items[i].checkpoint.step;
	for (size_t k = 0; k < list->count && list->mark_count; k++)
		if (k != i && list->items[k].checkpoint.step == step)
			return STATUS_OK;
	for (size_t k = 0; k < list->mark_count; k++) {
		const struct list_mark *mark = &list->marks[k];
		if (mark->step == step && mark->kind != CKPT_BESIDE_UNDONE &&
			unlinkat(list->descriptor, mark->name, 0) < 0 && errno != ENOENT)
			status = error_errno(
				err, errno, "remove %s/%s", list->request.directory, mark->name);
	}
	return status;
}

/* Delete all that are renamed away, then the marks beside them. */
static void delete_all(struct pruning *pruning)
{
	const struct list *list = pruning->list;
	enum status *statuses = xcalloc(list->entry_count + 1, sizeof(*statuses));
	struct error err = {0};
	(void)gone_delete(list->descriptor, list->request.directory, pruning->gone,
		list->entry_count, statuses, &err);
	for (size_t i = 0; i < list->count; i++) {
		enum status status = STATUS_OK;
		if (pruning->report->decisions[i].keep || pruning->report->statuses[i] != STATUS_OK)
			continue;
		for (size_t k = 0; k < list->items[i].count && status == STATUS_OK; k++)
			status = statuses[list->items[i].first + k];
		if (status == STATUS_OK)
			status = remove_marks(list, i, &err);
		if (status != STATUS_OK)
			bring_back(pruning, i, &err);
	}
	free(statuses);
}

/* Remove what is to go. Returns the first failure, after all was tried. */
static enum status remove_all(struct pruning *pruning, struct error *err)
{
	pruning->gone = xcalloc(pruning->list->entry_count + 1, sizeof(*pruning->gone));
	if (rename_all(pruning)) {
		confirm(pruning);
		delete_all(pruning);
	}
	free(pruning->gone);
	return pruning->first.status == STATUS_OK
		       ? STATUS_OK
		       : error_set(err, pruning->first.status, "%s", pruning->first.text);
}

enum status checkpoint_prune(const char *directory, const struct layout *layout,
	const struct prune_request *request, struct prune_report *report, struct error *err)
{
	*report = (struct prune_report){.list = {.descriptor = -1, .request = {directory, layout}}};
	struct pruning pruning = {.request = request,
		.report = report,
		.list = &report->list,
		.moment = {request->now, clock_utc(), request->settled}};
	bool met = true;
	int descriptor = -1;
	enum status status = ckpt_directory_open(directory, &descriptor, err);
	report->absent = status == STATUS_NO;
	if (status != STATUS_OK)
		return report->absent ? STATUS_OK : status;
	if (!request->dry_run)
		status = gone_lock(descriptor, directory, request->wait, err);
	if (status == STATUS_OK && !request->dry_run)
		status = read_clock(descriptor, directory, &pruning.moment.clock, err);
	if (status == STATUS_OK && !request->dry_run)
		status = gone_settle(descriptor, directory, layout, NULL, &report->leftovers, err);
	if (status == STATUS_OK)
		status = read_and_decide(&pruning, &met, err);
	if (request->dry_run)
		report->leftovers = report->list.leftovers;
	if (status == STATUS_OK && !request->dry_run)
		status = remove_all(&pruning, err);
	close(descriptor);
	if (status == STATUS_OK && !met)
		return error_set(err, STATUS_NO,
			"%s: --max-bytes cannot be met: what is left must be kept (see the "
			"reasons)",
			directory);
	return status;
}
