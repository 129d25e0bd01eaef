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
	struct prune_report *report; /* its items are those of list */
	struct list list;
	struct keep_moment moment;
	char (*gone)[CKPT_GONE_SIZE]; /* the name of each entry of list now; "": its own */
	struct error first;	      /* the first failure of the removal; STATUS_OK: none */
};

void prune_report_release(struct prune_report *report)
{
	free(report->items);
	*report = (struct prune_report){0};
}

const char *prune_action(const struct prune_item *item, bool dry_run)
{
	if (item->decision.keep)
		return "kept";
	return dry_run || item->status == STATUS_OK ? "removed"
	       : item->status == STATUS_NO	    ? "gone"
						    : "FAILED";
}

/*
 * Read the clock that dates files in DIR (of a server, for example) by setting the time of a file
 * to now. If none can be made (a quota, or another prune has made it), DIR itself serves.
 */
static enum status read_clock(int directory, const char *path, int64_t *now, struct error *err)
{
	const char *name = ".ckpt-clock";
	enum status status = STATUS_OK;
	struct stat st;
	int file =
		openat(directory, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	int dated = file >= 0 ? file : directory;
	if (futimens(dated, NULL) == 0 && fstat(dated, &st) == 0)
		*now = file_changed(&st);
	else
		status = error_errno(err, errno, "measure the clock of %s", path);
	if (file >= 0)
		close(file);
	(void)unlinkat(directory, name, 0); /* a killed prune may have left it */
	return status;
}

/* Whether an entry that was renamed away is one of this layout, or of ours. Counts it. */
static bool is_leftover(const void *context, const char *entry)
{
	const struct pruning *pruning = context;
	uint64_t step;
	bool inside, is = ckpt_name_read(entry).kind != CKPT_NAME_FOREIGN ||
			  layout_reads(pruning->list.request.layout, entry, &step, &inside);
	pruning->report->leftovers += is;
	return is;
}

/* The newest complete one that counts, because of which others go; NULL: there is none. */
static const struct list_item *find_newest(const struct pruning *pruning)
{
	const struct list_item *newest = NULL;
	for (size_t i = 0; i < pruning->list.count; i++)
		if (keep_counts(&pruning->list.items[i].checkpoint, &pruning->moment))
			newest = &pruning->list.items[i];
	return newest;
}

/* Read DIR and decide. *met: what is kept is no larger than --max-bytes. */
static enum status decide(struct pruning *pruning, bool *met, struct error *err)
{
	struct list *list = &pruning->list;
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
	if (status != STATUS_OK)
		return status;
	const size_t count = list->count;
	const struct checkpoint **items = xcalloc(count + 1, sizeof(*items));
	struct keep_decision *decisions = xcalloc(count + 1, sizeof(*decisions));
	for (size_t i = 0; i < count; i++)
		items[i] = &list->items[i].checkpoint;
	bool *followed = xcalloc(count + 1, sizeof(*followed)), again = true;
	status = keep_check_metric(&pruning->request->policy, items, count, err);
	/* What is kept needs what its links lead to, which may have links, too. */
	while (status == STATUS_OK && again) {
		*met = keep_decide(
			&pruning->request->policy, &pruning->moment, items, count, decisions);
		again = false;
		for (size_t i = 0; i < count && status == STATUS_OK; i++) {
			const struct list_item *item = &list->items[i];
			bool newest = item == list_newest(list) || item == find_newest(pruning);
			/* Ours have no links, unless somebody has put them there. */
			if (!decisions[i].keep || followed[i] ||
				(!newest && layout_is_native(about.layout)))
				continue;
			status = list_follow(list, item, newest, err);
			again = followed[i] = true;
		}
	}
	free(followed);
	if (status == STATUS_OK) {
		report->items = xcalloc(count + 1, sizeof(*report->items));
		report->count = count;
	}
	for (size_t i = 0; i < report->count; i++)
		report->items[i] = (struct prune_item){
			*items[i], decisions[i], decisions[i].keep ? STATUS_OK : STATUS_TEMPORARY};
	free(items);
	free(decisions);
	return status;
}

/* Note that item i could not be removed. STATUS_NO: another process has changed or removed it. */
static void fail(struct pruning *pruning, size_t i, enum status status, const struct error *err)
{
	struct prune_item *item = &pruning->report->items[i];
	item->status = status;
	if (status == STATUS_NO)
		return;
	snprintf(item->decision.why, sizeof(item->decision.why), "%.255s", err->text);
	if (pruning->first.status == STATUS_OK)
		pruning->first = *err;
}

/* The name that an entry of item i has now; "": its own. */
static char *gone_name(const struct pruning *pruning, size_t i, size_t k)
{
	return pruning->gone[pruning->list.items[i].first + k];
}

/* Whether item i, with all its entries, is renamed away. */
static bool is_away(const struct pruning *pruning, size_t i)
{
	return *gone_name(pruning, i, 0) != '\0';
}

/* Give the entries of item i their names back. */
static void give_back(struct pruning *pruning, size_t i)
{
	const struct list *list = &pruning->list;
	for (size_t k = 0; k < list->items[i].count; k++) {
		char *gone = gone_name(pruning, i, k);
		struct error err;
		if (*gone && gone_give_back(list->descriptor, list->request.directory, gone,
				     &err) != STATUS_OK)
			fail(pruning, i, err.status, &err);
		*gone = '\0';
	}
}

/* Give all that are renamed away their names back: they cannot be removed. */
static void give_up(struct pruning *pruning, const struct error *err)
{
	for (size_t i = 0; i < pruning->list.count; i++)
		if (is_away(pruning, i)) {
			fail(pruning, i, err->status, err);
			give_back(pruning, i);
		}
}

/* Give item i its names back, and keep it. */
static void keep_after_all(struct pruning *pruning, size_t i, const char *why)
{
	struct prune_item *item = &pruning->report->items[i];
	item->decision = (struct keep_decision){.keep = true, .must = true};
	item->status = STATUS_OK;
	snprintf(item->decision.why, sizeof(item->decision.why), "%s", why);
	give_back(pruning, i);
}

/* Whether item i is as it was when DIR was read. STATUS_NO: it is gone, or a process writes it. */
static enum status is_unchanged(const struct pruning *pruning, size_t i, struct error *err)
{
	struct list_item now = pruning->list.items[i];
	const struct checkpoint *then = &pruning->list.items[i].checkpoint;
	if (then->changed == 0) /* it has a manifest, so nobody writes it */
		return STATUS_OK;
	now.files = NULL;
	enum status status = list_inspect(&pruning->list, &now, err);
	if (status == STATUS_OK &&
		(now.checkpoint.changed != then->changed || now.checkpoint.inode != then->inode))
		status = STATUS_NO;
	list_item_release(&now);
	return status;
}

/* Rename all entries of each item that is to go. False: none is renamed away. */
static bool rename_all(struct pruning *pruning)
{
	struct error err;
	bool any = false;
	for (size_t i = 0; i < pruning->list.count; i++) {
		if (pruning->report->items[i].decision.keep)
			continue;
		enum status status = is_unchanged(pruning, i, &err);
		const struct list_item *item = &pruning->list.items[i];
		for (size_t k = 0; k < item->count && status == STATUS_OK; k++) {
			const struct list_entry *entry = &pruning->list.entries[item->first + k];
			char gone[CKPT_GONE_SIZE];
			status = gone_rename(pruning->list.descriptor,
				pruning->list.request.directory, entry->name, entry->inode, gone,
				&err);
			if (status == STATUS_OK)
				strcpy(gone_name(pruning, i, k), gone);
		}
		if (status != STATUS_OK) {
			fail(pruning, i, status, &err);
			give_back(pruning, i);
		}
		any |= status == STATUS_OK;
	}
	return any;
}

/* Why item i must be kept, now that DIR was read again; NULL: it may go. */
static const char *wanted_now(const struct pruning *pruning, const struct list *now, size_t i)
{
	const struct list_item *item = &pruning->list.items[i];
	bool wanted = false;
	struct error why;
	enum status status = STATUS_OK;
	if (now->tracker.named && now->tracker.step == item->checkpoint.step)
		return "the tracker names it now";
	for (size_t k = 0; k < now->mark_count; k++)
		if (now->marks[k].kind == CKPT_BESIDE_PIN &&
			now->marks[k].step == item->checkpoint.step)
			return "pinned since it was listed";
	if (layout_is_native(now->request.layout))
		status =
			marks_read_pinned(now->descriptor, gone_name(pruning, i, 0), &wanted, &why);
	if (wanted)
		return "pinned since it was listed";
	for (size_t k = 0; k < item->count && status == STATUS_OK && !wanted; k++)
		status = list_is_wanted(
			now, pruning->list.entries[item->first + k].name, &wanted, &why);
	if (status != STATUS_OK)
		return "it cannot be read whether it is pinned or a link leads to it";
	if (wanted)
		return "a link leads to it now";
	return NULL;
}

/*
 * Look at DIR once more. STATUS_NO: the newest one is doubtful without those that were renamed
 * away. STATUS_TEMPORARY: what was decided is no longer right.
 */
static enum status look_again(struct pruning *pruning, struct error *err)
{
	const struct list_item *newest = find_newest(pruning);
	struct list_request about = pruning->list.request;
	struct list now;
	about.names_only = layout_is_native(about.layout);
	enum status status = list_read(&about, &now, err);
	enum checkpoint_state state = newest ? CHECKPOINT_INCOMPLETE : CHECKPOINT_COMPLETE;
	for (size_t i = 0; i < now.count && newest && status == STATUS_OK; i++) {
		struct list_item *item = &now.items[i];
		if (strcmp(item->checkpoint.name, newest->checkpoint.name) != 0)
			continue;
		if (about.names_only)
			status = list_inspect(&now, item, err);
		if (status == STATUS_OK && item->checkpoint.state == CHECKPOINT_UNREADABLE)
			status = error_set(err, item->checkpoint.status, "%s/%s: %s",
				about.directory, item->checkpoint.name, item->checkpoint.why);
		if (item->checkpoint.inode == newest->checkpoint.inode)
			state = item->checkpoint.state;
	}
	if (status == STATUS_OK &&
		(*now.tracker.broken || pruning->list.tracker.found > now.tracker.found))
		status = error_set(err, STATUS_TEMPORARY,
			"%s/%s changed while it was examined; nothing was removed, try again",
			about.directory, about.layout->tracker);
	else if (status == STATUS_NO || (status == STATUS_OK && state != CHECKPOINT_COMPLETE &&
						state != CHECKPOINT_DOUBTFUL))
		status = error_set(err, STATUS_TEMPORARY,
			"%s/%s is no longer complete, so no checkpoint is removed; try again",
			about.directory, newest ? newest->checkpoint.name : "");
	for (size_t i = 0; i < pruning->list.count && status == STATUS_OK; i++) {
		const char *why = is_away(pruning, i) ? wanted_now(pruning, &now, i) : NULL;
		if (why)
			keep_after_all(pruning, i, why);
	}
	list_release(&now);
	return status == STATUS_OK && state == CHECKPOINT_DOUBTFUL ? STATUS_NO : status;
}

/* Look again, and give back what must be. */
static void confirm(struct pruning *pruning)
{
	struct error err = {0};
	enum status status = look_again(pruning, &err);
	/* The comparison with an older one may have shown that the newest one is complete. */
	for (size_t i = pruning->list.count; i-- > 0 && status == STATUS_NO;)
		if (is_away(pruning, i) &&
			pruning->list.items[i].checkpoint.state == CHECKPOINT_COMPLETE) {
			keep_after_all(pruning, i, "without it, the newest one is doubtful");
			status = look_again(pruning, &err);
		}
	if (status == STATUS_NO)
		error_set(&err, STATUS_TEMPORARY,
			"the checkpoints in %s changed while they were examined; try again",
			pruning->list.request.directory);
	if (status != STATUS_OK)
		give_up(pruning, &err);
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
	const struct list *list = &pruning->list;
	const char **gone = xcalloc(list->entry_count + 1, sizeof(*gone));
	enum status *statuses = xcalloc(list->entry_count + 1, sizeof(*statuses));
	size_t count = 0, at = 0;
	struct error err = {0};
	for (size_t i = 0; i < list->count; i++)
		for (size_t k = 0; k < list->items[i].count; k++)
			if (*gone_name(pruning, i, k))
				gone[count++] = gone_name(pruning, i, k);
	if (count)
		(void)gone_delete(
			list->descriptor, list->request.directory, gone, count, statuses, &err);
	for (size_t i = 0; i < list->count; i++) {
		enum status status = STATUS_OK;
		if (!is_away(pruning, i))
			continue;
		for (size_t k = 0; k < list->items[i].count; k++, at++)
			if (status == STATUS_OK)
				status = statuses[at];
		if (status == STATUS_OK)
			status = remove_marks(list, i, &err);
		pruning->report->items[i].status = status;
		if (status == STATUS_OK)
			continue;
		fail(pruning, i, status, &err);
		give_back(pruning, i);
	}
	free(gone);
	free(statuses);
}

/* Remove what is to go. Returns the first failure, after all was tried. */
static enum status remove_all(struct pruning *pruning, struct error *err)
{
	pruning->gone = xcalloc(pruning->list.entry_count + 1, sizeof(*pruning->gone));
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
	struct pruning pruning = {.request = request,
		.report = report,
		.moment = {request->now, clock_utc(), request->settled},
		.list = {.descriptor = -1, .request = {directory, layout}}};
	bool met = true;
	int descriptor = -1;
	*report = (struct prune_report){0};
	enum status status = ckpt_directory_open(directory, &descriptor, err);
	report->absent = status == STATUS_NO;
	if (status != STATUS_OK)
		return report->absent ? STATUS_OK : status;
	if (!request->dry_run) {
		status = gone_lock(descriptor, directory, request->wait, err);
		if (status == STATUS_OK)
			status = read_clock(descriptor, directory, &pruning.moment.clock, err);
		if (status == STATUS_OK)
			status = gone_settle(
				descriptor, directory, true, is_leftover, &pruning, err);
	}
	if (status == STATUS_OK)
		status = decide(&pruning, &met, err);
	if (status == STATUS_OK && request->dry_run)
		for (size_t i = 0; i < pruning.list.other_count; i++) {
			const char *gone = ckpt_name_read_gone(pruning.list.others[i]);
			(void)(gone && is_leftover(&pruning, gone));
		}
	else if (status == STATUS_OK)
		status = remove_all(&pruning, err);
	list_release(&pruning.list);
	close(descriptor);
	if (status == STATUS_OK && !met)
		return error_set(err, STATUS_NO,
			"%s: --max-bytes cannot be met: what is left must be kept (see the "
			"reasons)",
			directory);
	return status;
}
