/* SPDX-License-Identifier: MIT */
#include "ckpt/prune.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/xalloc.h"
#include "ckpt/names.h"
#include "ckpt/prune_remove.h"
#include "ckpt/scan.h"

/* A prune of a DIR. */
struct pruning {
	struct scan scan;
	/* The checkpoints that the newest complete one, and a newer unproven one, depend on; empty:
	 * none. */
	char best[2][LAYOUT_NAME_SIZE];
	struct prune_report *report;
	/*
	 * What the rules and the limits decide about: items[k] is that of report->items[places[k]]
	 */
	const struct checkpoint **items;
	struct keep_decision *decisions;
	size_t *places, judged;
	uint64_t apart; /* bytes of the other checkpoints that are kept */
	/* What symbolic links in DIR lead to, and the directories that this is in. */
	struct place {
		dev_t device;
		ino_t inode;
	} * linked;
	size_t linked_count;
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

/* Whether a tracker protects the item, and why. */
static bool is_tracked(const struct layout *layout, const struct layout_tracker *tracker,
	const struct checkpoint *item, char why[LAYOUT_NAME_SIZE])
{
	bool named = item->step == tracker->step || strcmp(item->name, tracker->name) == 0;
	if (!tracker->named || (!named && item->step < tracker->step))
		return false;
	snprintf(why, LAYOUT_NAME_SIZE, "%s%.64s names%s", named ? "" : "newer than what ",
		layout->tracker, named ? " it" : "");
	return true;
}

/* Note what a link leads to, and the directories above, but none from DIR on. */
static enum status follow_link(struct pruning *pruning, const char *name, struct error *err)
{
	struct stat top, st;
	char *link = xprintf("%s/%s", pruning->scan.directory, name), *path = realpath(link, NULL);
	bool nowhere = !path && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP);
	enum status status = nowhere ? STATUS_OK
			     : !path || fstat(pruning->scan.descriptor, &top) < 0
				     ? error_errno(err, errno, "follow the link %s", link)
				     : STATUS_OK;
	while (status == STATUS_OK && path && *path && stat(path, &st) == 0 &&
		(st.st_dev != top.st_dev || st.st_ino != top.st_ino)) {
		pruning->linked = xrealloc(
			pruning->linked, pruning->linked_count + 1, sizeof(*pruning->linked));
		pruning->linked[pruning->linked_count++] = (struct place){st.st_dev, st.st_ino};
		*strrchr(path, '/') = '\0';
	}
	free(path);
	free(link);
	return status;
}

static enum status read_links(struct pruning *pruning, struct error *err)
{
	const struct scan *scan = &pruning->scan;
	struct file_names names = {0};
	struct stat st;
	pruning->linked_count = 0;
	enum status status = file_read_names(scan->descriptor, scan->directory, &names, err);
	for (size_t i = 0; i < names.count && status == STATUS_OK; i++) {
		const char *name = names.names[i];
		bool ours = layout_is_native(scan->choice) && strcmp(name, CKPT_LATEST) == 0;
		if (!ours && fstatat(scan->descriptor, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
			S_ISLNK(st.st_mode))
			status = follow_link(pruning, name, err);
	}
	file_names_release(&names);
	return status;
}

/* Whether a link in DIR leads to the item or into it, and why that protects it. */
static bool is_linked(
	const struct pruning *pruning, const struct scan_item *found, char why[LAYOUT_NAME_SIZE])
{
	struct stat st;
	for (size_t k = 0; k < found->count && pruning->linked_count; k++) {
		const char *entry = pruning->scan.parts[found->first + k].entry;
		if (fstatat(pruning->scan.descriptor, entry, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		for (size_t i = 0; i < pruning->linked_count; i++)
			if (pruning->linked[i].device == st.st_dev &&
				pruning->linked[i].inode == st.st_ino) {
				snprintf(why, LAYOUT_NAME_SIZE, "a symbolic link leads to it");
				return true;
			}
	}
	return false;
}

/*
 * Measure the clock that gives times to files in DIR (of a server, for example) by setting the time
 * of a file to now. If none can be made (a quota, or another prune has made it), DIR itself serves.
 */
static enum status measure_ahead(struct scan *scan, struct error *err)
{
	const char *name = ".ckpt-clock";
	enum status status = STATUS_OK;
	struct stat st;
	int file = openat(
		scan->descriptor, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	int dated = file >= 0 ? file : scan->descriptor;
	if (futimens(dated, NULL) == 0 && fstat(dated, &st) == 0)
		scan->ahead = (int64_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000 -
			      clock_utc();
	else
		status = error_errno(err, errno, "measure the clock of %s", scan->directory);
	if (file >= 0)
		close(file);
	(void)unlinkat(scan->descriptor, name, 0); /* a killed prune may have left it */
	return status;
}

/* Whether something other than a rule protects the item, and why. */
static bool is_protected(
	const struct pruning *pruning, const struct scan_item *found, char why[LAYOUT_NAME_SIZE])
{
	char name[LAYOUT_NAME_SIZE];
	if (is_tracked(pruning->scan.choice->layout, &pruning->scan.tracker, &found->checkpoint,
		    why) ||
		is_linked(pruning, found, why))
		return true;
	if (strcmp(found->checkpoint.name, pruning->best[0]) == 0 ||
		strcmp(found->checkpoint.name, pruning->best[1]) == 0) {
		snprintf(why, LAYOUT_NAME_SIZE, "the newest one calls it the best");
		return true;
	}
	if (found->witness) {
		snprintf(why, LAYOUT_NAME_SIZE, "shows of how many ranks the newest one is");
		return true;
	}
	/* Our own layout records the writer instead. */
	if (!pruning->scan.choice->layout->inspect &&
		scan_quiet(&pruning->scan, found) < pruning->scan.settled) {
		struct text age = {0};
		text_add_age(&age, scan_quiet(&pruning->scan, found));
		snprintf(why, LAYOUT_NAME_SIZE, "perhaps still being written: changed %s ago",
			text_string(&age));
		text_release(&age);
		return true;
	}
	for (size_t k = 0; k < found->count; k++)
		if (!ckpt_name_removed(name, pruning->scan.parts[found->first + k].entry, 0)) {
			snprintf(why, LAYOUT_NAME_SIZE, "its name is too long to be renamed away");
			return true;
		}
	return false;
}

/* Whether the framework itself has noted that the save has ended. */
static bool is_finished(const struct pruning *pruning, const struct scan_item *found)
{
	const struct layout_tracker *tracker = &pruning->scan.tracker;
	return pruning->scan.choice->layout->tracker_commits && tracker->named &&
	       found->checkpoint.step <= tracker->step && found->shards.confirmed;
}

/* The newest attempt in a line of lives (base/process/life.h) that has saved, or has at least begun
 * to; 0: none. */
static uint64_t newest_attempt(const struct scan *scan, const char *life, bool begun)
{
	uint64_t newest = 0;
	for (size_t i = 0; i < scan->count; i++) {
		const struct checkpoint *item = &scan->items[i].checkpoint;
		bool saved = item->state == CHECKPOINT_COMPLETE || item->state == CHECKPOINT_BAD;
		if ((saved || begun) && item->attempt > newest && life_same_line(item->life, life))
			newest = item->attempt;
	}
	return newest;
}

/*
 * Whether the item is left out of the rules; if so, decide about it here. A framework's checkpoint
 * that looks complete, but changed just now, is kept and not counted, unless a tracker says that it
 * is finished: older ones are removed only if enough settled ones are newer.
 */
static bool is_apart(const struct pruning *pruning, const struct scan_item *found,
	const struct checkpoint *newest, struct prune_item *item)
{
	char why[LAYOUT_NAME_SIZE] = "perhaps still being written";
	const struct scan *scan = &pruning->scan;
	const struct layout *layout = scan->choice->layout;
	if (layout->tracker && strcmp(item->checkpoint.name, layout->tracker) == 0) {
		prune_decide(item, true, "the trainer's own");
	} else if (scan->parts[found->first].read.group) {
		keep_decide_incomplete(&item->checkpoint,
			newest_attempt(scan, item->checkpoint.life, false),
			newest_attempt(scan, item->checkpoint.life, true), newest, &item->decision);
		item->status = item->decision.keep ? STATUS_OK : STATUS_TEMPORARY;
	} else if (item->checkpoint.state == CHECKPOINT_INCOMPLETE) {
		prune_decide(item, true, item->checkpoint.why);
	} else if (!layout->inspect && item->checkpoint.state == CHECKPOINT_COMPLETE &&
		   scan_quiet(scan, found) < scan->settled && !is_finished(pruning, found)) {
		(void)is_protected(pruning, found, why);
		prune_decide(item, true, why);
	} else {
		return false;
	}
	return true;
}

/* Measure the free space of DIR's filesystem. */
static enum status measure_free(const struct scan *scan, uint64_t *free_bytes, struct error *err)
{
	struct statvfs about;
	if (fstatvfs(scan->descriptor, &about) < 0)
		return error_errno(err, errno, "ask for the free space of %s", scan->directory);
	*free_bytes = (uint64_t)about.f_bavail * about.f_frsize;
	return STATUS_OK;
}

/* Set the report: all checkpoints, with what the rules decide. */
static enum status decide(
	struct pruning *pruning, const struct prune_request *request, struct error *err)
{
	const struct scan *scan = &pruning->scan;
	const size_t count = scan->count;
	const struct checkpoint *newest = NULL; /* complete */
	const struct checkpoint **items = xcalloc(count + 1, sizeof(*items));
	struct prune_report *report = pruning->report;
	report->items = xcalloc(count + 1, sizeof(*report->items));
	pruning->items = items;
	pruning->decisions = xcalloc(count + 1, sizeof(*pruning->decisions));
	pruning->places = xcalloc(count + 1, sizeof(*pruning->places));
	for (size_t i = 0; i < count; i++) {
		report->items[i].checkpoint = scan->items[i].checkpoint;
		items[i] = &report->items[i].checkpoint;
		if (items[i]->state == CHECKPOINT_COMPLETE)
			newest = items[i];
	}
	enum status status = keep_check_metric(&request->policy, items, count, err);
	if (status != STATUS_OK)
		return status;
	for (size_t i = 0; i < count; i++) {
		const struct scan_item *found = &scan->items[i];
		struct prune_item *item = &report->items[i];
		char why[LAYOUT_NAME_SIZE];
		if (is_apart(pruning, found, newest, item)) {
			if (!item->decision.keep && is_linked(pruning, found, why))
				prune_decide(item, true, why);
			if (item->checkpoint.state != CHECKPOINT_INCOMPLETE)
				pruning->apart += item->checkpoint.bytes;
			continue;
		}
		bool stays = is_protected(pruning, found, why);
		if (stays)
			prune_decide(item, true, why);
		pruning->places[pruning->judged] = i;
		/* The rules then keep it in any case. */
		item->checkpoint.pinned |= stays;
		items[pruning->judged++] = &item->checkpoint;
	}
	keep_decide(&request->policy, request->now, items, pruning->judged, pruning->decisions);
	report->count = count;
	for (size_t k = 0; k < pruning->judged; k++) {
		const size_t i = pruning->places[k];
		struct prune_item *item = &report->items[i];
		item->checkpoint.pinned = scan->items[i].checkpoint.pinned;
		if (item->decision.keep) { /* protected */
			item->decision.must = pruning->decisions[k].must;
			continue;
		}
		item->decision = pruning->decisions[k];
		item->status = item->decision.keep ? STATUS_OK : STATUS_TEMPORARY;
	}
	return STATUS_OK;
}

/* Add what the limits decide. removed: what the rules decided was carried out already. */
static enum status limit(struct pruning *pruning, const struct prune_request *request, bool removed,
	bool *met, struct error *err)
{
	struct keep_space space = {.apart = pruning->apart, .removed = removed};
	if (request->policy.min_free) {
		enum status status = measure_free(&pruning->scan, &space.free, err);
		if (status != STATUS_OK)
			return status;
	}
	/* Some have become protected while others were removed. */
	for (size_t k = 0; k < pruning->judged; k++) {
		const struct prune_item *item = &pruning->report->items[pruning->places[k]];
		if (item->decision.keep && !pruning->decisions[k].keep)
			pruning->decisions[k] = (struct keep_decision){.keep = true, .must = true};
	}
	*met = keep_limit(
		&request->policy, &space, pruning->items, pruning->judged, pruning->decisions);
	for (size_t k = 0; k < pruning->judged; k++) {
		struct prune_item *item = &pruning->report->items[pruning->places[k]];
		if (item->decision.keep && !pruning->decisions[k].keep)
			prune_decide(item, false, pruning->decisions[k].why);
	}
	return STATUS_OK;
}

/* Read which checkpoint the framework will need after resuming from this one. */
static enum status read_depends(const struct pruning *pruning, const char *name,
	char best[LAYOUT_NAME_SIZE], struct error *err)
{
	struct error why;
	struct layout_item item = {.name = name,
		.root = openat(pruning->scan.descriptor, name,
			O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)};
	enum status status = item.root < 0
				     ? error_set(&why, STATUS_TEMPORARY, "%s", strerror(errno))
				     : pruning->scan.choice->layout->depends(&item, best, &why);
	if (item.root >= 0)
		close(item.root);
	if (status != STATUS_OK)
		return error_set(err, status == STATUS_NO ? STATUS_TEMPORARY : status, "%s/%s: %s",
			pruning->scan.directory, name, why.text);
	return STATUS_OK;
}

/* Set pruning->best: what the newest complete one, and a newer unproven one, depend on. */
static enum status read_best(struct pruning *pruning, struct error *err)
{
	enum status status = STATUS_OK;
	bool unproven = false;
	if (!pruning->scan.choice->layout->depends)
		return STATUS_OK;
	for (size_t i = pruning->scan.count; i-- > 0 && status == STATUS_OK;) {
		const struct checkpoint *item = &pruning->scan.items[i].checkpoint;
		bool complete = item->state == CHECKPOINT_COMPLETE;
		if (!complete && (unproven || item->state != CHECKPOINT_UNPROVEN))
			continue;
		unproven = true;
		status = read_depends(pruning, item->name, pruning->best[complete], err);
		if (complete)
			break;
	}
	return status;
}

/*
 * Mark siblings that show how many files the newest complete one must have: as few as are needed of
 * those that have files with the same numbers.
 */
static void find_witnesses(struct pruning *pruning)
{
	const struct scan *scan = &pruning->scan;
	const struct scan_item *newest = NULL;
	size_t count = 0;
	for (size_t i = 0; i < scan->count; i++)
		if (scan->items[i].checkpoint.state == CHECKPOINT_COMPLETE)
			newest = &scan->items[i];
	if (!newest || !shards_any(&newest->shards))
		return;
	struct shards_sibling *siblings = xcalloc(scan->count + 1, sizeof(*siblings));
	for (size_t i = 0; i < scan->count; i++)
		if (&scan->items[i] != newest &&
			!shards_same(&scan->items[i].shards, &newest->shards))
			siblings[count++] = scan_sibling(&scan->items[i], newest);
	for (size_t i = scan->count; i-- > 0;) {
		struct scan_item *item = &scan->items[i];
		if (shards_decide(&newest->shards, siblings, count, NULL) == SHARDS_ALL)
			break;
		if (item == newest || !item->whole || !shards_same(&item->shards, &newest->shards))
			continue;
		item->witness = true;
		siblings[count++] = scan_sibling(item, newest);
	}
	free(siblings);
}

/* Check that the newest complete checkpoint still is, so that one is left. */
static enum status confirm_newest(void *context, struct error *err)
{
	const struct scan *scan = context;
	for (size_t i = scan->count; i-- > 0;) {
		struct scan_item look = scan->items[i];
		if (look.checkpoint.state != CHECKPOINT_COMPLETE)
			continue;
		struct error why;
		enum status status = scan_inspect(scan, &look, &why);
		if (status == STATUS_NO ||
			(status == STATUS_OK && look.checkpoint.state != CHECKPOINT_COMPLETE))
			return error_set(err, STATUS_TEMPORARY,
				"%s/%s is no longer complete, so no checkpoint is removed; try "
				"again",
				scan->directory, look.checkpoint.name);
		return status == STATUS_OK ? status : error_set(err, status, "%s", why.text);
	}
	return STATUS_OK;
}

/*
 * Check what the decision depends on: the newest complete one must still be there, and the tracker
 * readable. Also keep the checkpoints that the tracker and links protect now.
 */
static enum status confirm(struct pruning *pruning, struct error *err)
{
	struct layout_tracker now;
	enum status status = scan_track(&pruning->scan, &now, err);
	if (status == STATUS_OK)
		status = read_links(pruning, err);
	if (status != STATUS_OK)
		return status;
	if (*now.broken || now.found < pruning->scan.tracker.found)
		return error_set(err, STATUS_TEMPORARY,
			"%s/%s changed while it was examined; nothing was removed, try again",
			pruning->scan.directory, pruning->scan.choice->layout->tracker);
	for (size_t i = 0; i < pruning->report->count; i++) {
		struct prune_item *item = &pruning->report->items[i];
		char why[LAYOUT_NAME_SIZE];
		if (!item->decision.keep &&
			(is_tracked(pruning->scan.choice->layout, &now, &item->checkpoint, why) ||
				is_linked(pruning, &pruning->scan.items[i], why)))
			prune_decide(item, true, why);
	}
	return confirm_newest(&pruning->scan, err);
}

static enum status confirm_removals(struct pruning *pruning, struct error *err)
{
	for (size_t i = 0; i < pruning->report->count; i++)
		if (prune_is_due(&pruning->report->items[i]))
			return confirm(pruning, err);
	return STATUS_OK;
}

static enum status say_unmet(
	const char *directory, const struct keep_policy *policy, struct error *err)
{
	const char *limit = policy->max_bytes && policy->min_free ? "--max-bytes and --min-free"
			    : policy->max_bytes			  ? "--max-bytes"
								  : "--min-free";
	return error_set(err, STATUS_NO,
		"%s: %s cannot be met: what is left must be kept (see the reasons)", directory,
		limit);
}

static enum status prune(
	struct pruning *pruning, const struct prune_request *request, struct error *err)
{
	const struct layout_tracker *tracker = &pruning->scan.tracker;
	/* What is removed without the limits makes space, too: remove it before measuring. */
	const bool early = request->policy.min_free && !request->dry_run;
	/* While they were renamed away, the newest may have been marked as bad. */
	const struct prune_check check = {.last = confirm_newest, .context = &pruning->scan};
	enum status first = STATUS_OK;
	struct error one;
	bool met = true;
	enum status status = scan_read(&pruning->scan, err);
	if (status == STATUS_OK && *tracker->broken)
		status = error_set(err, STATUS_DAMAGED,
			"%s/%s: cannot parse the tracker file: %s; nothing was removed; if no "
			"training is running, correct or remove the file",
			pruning->scan.directory, pruning->scan.choice->layout->tracker,
			tracker->broken);
	if (status == STATUS_OK)
		status = read_best(pruning, err);
	if (status == STATUS_OK)
		status = read_links(pruning, err);
	if (status == STATUS_OK) {
		find_witnesses(pruning);
		status = decide(pruning, request, err);
	}
	if (status == STATUS_OK && early)
		status = confirm_removals(pruning, err);
	if (status != STATUS_OK)
		return status;
	if (early)
		first = prune_remove(&pruning->scan, &check, pruning->report, err);
	status = limit(pruning, request, early, &met, &one);
	if (request->dry_run)
		pruning->report->leftovers = pruning->scan.removed;
	else if (status == STATUS_OK)
		status = confirm_removals(pruning, &one);
	if (status == STATUS_OK && !request->dry_run && !pruning->report->stranded)
		status = prune_remove(&pruning->scan, &check, pruning->report, &one);
	if (status != STATUS_OK && first == STATUS_OK)
		first = error_set(err, status, "%s", one.text);
	return first == STATUS_OK && !met
		       ? say_unmet(pruning->scan.directory, &request->policy, err)
		       : first;
}

enum status checkpoint_prune(const char *directory, const struct layout_choice *choice,
	const struct prune_request *request, struct prune_report *report, struct error *err)
{
	struct pruning pruning = {
		.scan = {.directory = directory, .choice = choice, .settled = request->settled},
		.report = report};
	*report = (struct prune_report){0};
	enum status status = prune_begin(&pruning.scan, request, err);
	report->absent = status == STATUS_NO;
	if (status == STATUS_OK) {
		/* measure_ahead makes a file in DIR, and our own layout does not need it. */
		if (!request->dry_run && !choice->layout->inspect)
			status = measure_ahead(&pruning.scan, err);
		if (status == STATUS_OK)
			status = prune(&pruning, request, err);
	}
	scan_close(&pruning.scan);
	free(pruning.items);
	free(pruning.linked);
	free(pruning.decisions);
	free(pruning.places);
	return report->absent ? STATUS_OK : status;
}
