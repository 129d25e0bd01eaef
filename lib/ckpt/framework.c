/* SPDX-License-Identifier: MIT */
#include "ckpt/framework.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/xalloc.h"
#include "ckpt/formats.h"
#include "ckpt/native.h"
#include "ckpt/rules.h"
#include "ckpt/tree.h"

#define TRIES 8 /* how often a checkpoint may be replaced while it is inspected */

/* Names that say, in any framework's checkpoint, that it is not finished. */
#define UNFINISHED                                                                                 \
	"**.incomplete **-unfinished **.orbax-checkpoint-tmp* **.orbax-checkpoint-tmp*/**"

/* ---- The files of one entry ---- */

/* What is below an entry, and when any of it changed last. */
struct files {
	struct rules_item in;
	int64_t changed;
};

static void files_release(struct files *files, int directory)
{
	for (size_t i = 0; i < files->in.directory_count; i++)
		free(files->in.directories[i]);
	free(files->in.directories);
	manifest_release(&files->in.files);
	json_object_put(files->in.document);
	if (files->in.root >= 0 && files->in.root != directory)
		close(files->in.root);
}

/* Add an entry of the directory files->in.root (tree_visitor). A link to a file is a file; one to
 * nothing, or to a directory, is none. STATUS_TEMPORARY: it vanished meanwhile. */
static enum status visit(
	void *context, const char *path, int directory, const struct stat *st, struct error *err)
{
	struct files *files = context;
	struct stat target;
	(void)directory;
	if (!st)
		return error_set(
			err, STATUS_TEMPORARY, "%s vanished while its directory was read", path);
	if (S_ISLNK(st->st_mode)) {
		if (fstatat(files->in.root, path, &target, 0) < 0)
			return errno == ENOENT
				       ? STATUS_OK
				       : error_errno(err, errno, "follow the link %s", path);
		if (S_ISDIR(target.st_mode))
			return STATUS_OK;
		st = &target;
	}
	if (S_ISREG(st->st_mode)) {
		manifest_add(&files->in.files, path, (uint64_t)st->st_size);
	} else if (!S_ISDIR(st->st_mode)) {
		return STATUS_OK;
	} else if (strcmp(path, ".") != 0) {
		files->in.directories = xrealloc(files->in.directories,
			files->in.directory_count + 1, sizeof(*files->in.directories));
		files->in.directories[files->in.directory_count++] = xstrdup(path);
	}
	files->changed = clock_later(files->changed, file_changed(st));
	return STATUS_OK;
}

/* Find the files of `count` entries: of one directory, or files in DIR. */
static enum status find_files(const struct list *list, const struct list_entry *entries,
	size_t count, struct files *files, struct error *err)
{
	enum status status = STATUS_OK;
	struct stat st;
	*files = (struct files){.in = {.root = list->descriptor, .step = entries->step}};
	if (entries->directory) {
		files->in.root =
			openat(list->descriptor, entries->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		status = files->in.root < 0 ? error_errno(err, errno, "open %s", entries->name)
					    : list_walk(files->in.root, visit, files, err);
	}
	for (size_t i = 0; i < count && !entries->directory; i++)
		if (fstatat(list->descriptor, entries[i].name, &st, 0) == 0)
			(void)visit(files, entries[i].name, -1, &st, err);
		else if (errno != ENOENT)
			status = error_errno(err, errno, "look at %s", entries[i].name);
	manifest_sort(&files->in.files);
	return status;
}

bool framework_has_files(int directory, const char *name)
{
	int root = openat(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct files files = {.in = {.root = root}};
	struct error unused;
	bool has = root < 0 ? errno != ENOENT
			    : list_walk(root, visit, &files, &unused) != STATUS_OK ||
				      files.in.files.count > 0;
	files_release(&files, directory);
	return has;
}

enum status framework_read_step(
	const struct list *list, struct list_entry *entry, struct error *err)
{
	const struct layout *layout = list->request.layout;
	struct files files;
	enum status status = find_files(list, entry, 1, &files, err), read = STATUS_NO;
	const struct manifest_file *all = files.in.files.files;
	if (status == STATUS_OK && (entry->directory ? !rules_find(&files.in, layout->marks, false)
						     : !files.in.files.count))
		status = STATUS_NO;
	for (size_t i = 0; i < files.in.files.count && status == STATUS_OK && read == STATUS_NO;
		i++)
		if (!entry->directory || pattern_any(layout->inside_files, all[i].name, NULL))
			read = format_read_number(
				files.in.root, all[i].name, "global_step", &entry->step, err);
	if (status == STATUS_OK && read == STATUS_NO && !entry->directory) {
		/* A whole file without a step is no checkpoint. */
		read = format_check(files.in.root, all->name, all->bytes, err);
		status = read == STATUS_OK ? STATUS_NO : read == STATUS_NO ? STATUS_OK : read;
	} else if (status == STATUS_OK && read != STATUS_NO) {
		status = read;
	}
	files_release(&files, list->descriptor);
	return status;
}

/* ---- What the framework has written about it ---- */

/*
 * "log_history" has an entry for each time the Trainer logged. Begin with the last one of this
 * step, usually of an evaluation: an evaluation may be repeated, and the first of equal names
 * counts.
 */
static void read_trainer(struct json_object *state, uint64_t step, struct list_item *item)
{
	struct json_object *history = json_member(state, "log_history", json_type_array);
	char best[PATH_MAX], *slash;
	uint64_t logged;
	for (size_t i = history ? json_object_array_length(history) : 0; i-- > 0;) {
		struct json_object *entry = json_object_array_get_idx(history, i);
		if (json_object_is_type(entry, json_type_object) &&
			json_get_unsigned(entry, "step", &logged) && logged == step)
			metrics_collect(entry, &item->checkpoint.metrics);
	}
	if (!json_copy_text(state, "best_model_checkpoint", best, sizeof(best)))
		return;
	while ((slash = strrchr(best, '/')) && !slash[1])
		*slash = '\0';
	snprintf(item->best, sizeof(item->best), "%.255s", slash ? slash + 1 : best);
}

/* Read NAME=NUMBER from a name. '-' separates its parts, and is also the sign of a number. */
static void read_name(const char *entry, struct metrics *metrics)
{
	char name[METRIC_NAME_SIZE];
	for (const char *equals = strchr(entry, '='); equals; equals = strchr(equals + 1, '=')) {
		const char *part = equals;
		char *end;
		while (part > entry && part[-1] != '-')
			part--;
		double value = strtod(equals + 1, &end);
		/* strtod also reads "inf", and the dot before the ending. */
		if (end > equals + 2 && end[-1] == '.')
			end--;
		int written = snprintf(name, sizeof(name), "%.*s", (int)(equals - part), part);
		if (end > equals + 1 && written < (int)sizeof(name) &&
			(!*end || *end == '-' || *end == '.'))
			metrics_add(metrics, name, value);
	}
}

/* Read what was measured, and which other checkpoint is its best, which the Trainer needs when it
 * resumes. What cannot be read adds nothing. */
static void read_values(struct files *files, const struct list_entry *entry, struct list_item *item)
{
	struct json_object *document = NULL;
	if (rules_find(&files->in, "trainer_state.json", false) &&
		rules_read_json(&files->in, "trainer_state.json", &document, NULL) == STATUS_OK)
		read_trainer(document, entry->step, item);
	else if (rules_find(&files->in, "metrics/metrics", false) && /* Orbax */
		 rules_read_json(&files->in, "metrics/metrics", &document, NULL) == STATUS_OK)
		metrics_collect(document, &item->checkpoint.metrics);
	read_name(entry->name, &item->checkpoint.metrics);
}

/* ---- Its state by itself ---- */

/* Whether its form, and the framework's own word, allow that it is complete. */
static enum checkpoint_state check_form(const struct list *list, const struct list_entry *entry,
	const struct files *files, struct error *why)
{
	const struct layout *layout = list->request.layout;
	bool directory = entry->directory;
	if (!(directory ? layout->directories : layout->files)) {
		error_set(why, STATUS_NO, "it is a %s", directory ? "directory" : "file");
		return CHECKPOINT_UNKNOWN_FORM;
	}
	if (directory && files->in.files.count && layout->marks &&
		!rules_find(&files->in, layout->marks, false)) {
		error_set(why, STATUS_NO, "it holds nothing of %s", layout->name);
		return CHECKPOINT_UNKNOWN_FORM;
	}
	const char *found = rules_find(&files->in, UNFINISHED, true);
	if (!found)
		found = rules_find(&files->in, layout->undone, true);
	if (!found && list_has_mark(list, entry->step, CKPT_BESIDE_UNDONE, 0))
		found = "a file beside it";
	if (found)
		error_set(why, STATUS_NO, "%s says that it is not finished", found);
	else if (layout->done && !rules_find(&files->in, layout->done, true) &&
		 !list_has_mark(list, entry->step, CKPT_BESIDE_DONE, 0))
		error_set(why, STATUS_NO, "%s, which says that it is finished, is missing",
			layout->done);
	else
		return CHECKPOINT_COMPLETE;
	return CHECKPOINT_INCOMPLETE;
}

/* Check entries that are one directory, or files in DIR, by the rules and formats. */
static enum checkpoint_state check_entries(const struct list *list,
	const struct list_entry *entries, size_t count, struct list_item *item, struct error *why)
{
	const struct layout *layout = list->request.layout;
	struct checkpoint *found = &item->checkpoint;
	struct files files;
	enum checkpoint_state answer = CHECKPOINT_UNREADABLE;
	if (find_files(list, entries, count, &files, why) == STATUS_OK) {
		read_values(&files, entries, item);
		answer = check_form(list, entries, &files, why);
	}
	files.in.told = !strstr(layout->rules, "world "); /* otherwise, a rule has to read it */
	if (answer == CHECKPOINT_COMPLETE)
		answer = rules_check(layout->rules, &files.in, why);
	framework_keep_names(
		item, &files.in.files, entries->directory, files.in.told ? layout->proved : NULL);
	found->files += files.in.files.count;
	found->bytes += manifest_bytes(&files.in.files);
	found->changed = files.changed > found->changed ? files.changed : found->changed;
	files_release(&files, list->descriptor);
	return answer;
}

/* Of two saves of a step that are both whole, prefer the one without a word at its end, then the
 * later version: "-v2". */
static int rank_of(const char *name)
{
	const char *version = strstr(name, "-v");
	if (strstr(name, "-last"))
		return 0;
	return version && isdigit((unsigned char)version[2]) ? 2 + atoi(version + 2) : 1;
}

/* The name of the whole: of a directory or file; of TensorFlow's files, what is before ".index". */
static void name_item(
	const struct list *list, const struct list_entry *entry, struct list_item *item)
{
	const char *end = strcmp(list->request.layout->name, "tensorflow") == 0
				  ? strrchr(entry->name, '.')
				  : NULL;
	snprintf(item->checkpoint.name, sizeof(item->checkpoint.name), "%.*s",
		end ? (int)(end - entry->name) : (int)strlen(entry->name), entry->name);
	item->checkpoint.inode = entry->inode;
}

/*
 * A directory is checked alone, and files of a step together. But in some layouts each entry is a
 * save of its own, of which one has to be whole, with its partner: NeMo's averages, NAME-EMA,
 * belong to NAME.
 */
static void inspect_once(const struct list *list, struct list_item *item)
{
	const struct list_entry *entries = &list->entries[item->first];
	const bool alternatives = list->request.layout->alternatives;
	struct checkpoint *found = &item->checkpoint;
	enum checkpoint_state answer = CHECKPOINT_COMPLETE, partner = CHECKPOINT_COMPLETE;
	struct error why = {0}, one = {0};
	int best = -1;
	list_item_release(item);
	item->files = xcalloc(1, sizeof(*item->files));
	*found = (struct checkpoint){.step = entries->step, .own = entries->own};
	name_item(list, entries, item);
	for (size_t i = 0, count; i < item->count; i += count) {
		bool alone = entries[i].directory || alternatives;
		for (count = 1; !alone && i + count < item->count && !entries[i + count].directory;)
			count++;
		enum checkpoint_state part = check_entries(list, &entries[i], count, item, &one);
		bool average = alternatives && strstr(entries[i].name, "-EMA");
		int rank = alternatives && part == CHECKPOINT_COMPLETE && !average
				   ? rank_of(entries[i].name)
				   : -1;
		if (rank > best) {
			best = rank;
			name_item(list, &entries[i], item);
		}
		if (average && part == CHECKPOINT_COMPLETE && answer == CHECKPOINT_COMPLETE &&
			best < 0) {
			part = CHECKPOINT_INCOMPLETE;
			error_set(
				&one, STATUS_NO, "%s is there without its model", entries[i].name);
		} else if (average) {
			partner = part;
		}
		if (part != CHECKPOINT_COMPLETE &&
			(answer == CHECKPOINT_COMPLETE || part > answer)) {
			answer = part;
			why = one;
		}
	}
	checkpoint_conclude(found,
		best >= 0 && partner == CHECKPOINT_COMPLETE ? CHECKPOINT_COMPLETE : answer, &why);
	found->utc = found->changed ? found->changed : 1;
}

/* Look up what the entries are now. STATUS_NO: none is there. */
static enum status look_up(const struct list *list, const struct list_item *item, struct error *why)
{
	struct stat st;
	enum status status = STATUS_NO;
	for (size_t i = item->first; i < item->first + item->count; i++) {
		struct list_entry *entry = &list->entries[i];
		if (fstatat(list->descriptor, entry->name, &st, 0) == 0) {
			entry->device = st.st_dev;
			entry->inode = st.st_ino;
			entry->directory = S_ISDIR(st.st_mode);
			status = STATUS_OK;
		} else if (errno != ENOENT) {
			return error_errno(why, errno, "look at %s", entry->name);
		}
	}
	return status;
}

enum status framework_inspect(const struct list *list, struct list_item *item, struct error *err)
{
	const struct list_entry *first = &list->entries[item->first];
	struct checkpoint *found = &item->checkpoint;
	struct error why;
	struct stat st;
	bool again = true;
	for (int tries = 0; again && tries < TRIES; tries++) {
		enum status status = look_up(list, item, &why);
		if (status == STATUS_NO)
			return error_set(err, STATUS_NO, "%s/%s is gone", list->request.directory,
				first->name);
		if (status != STATUS_OK) {
			name_item(list, first, item);
			checkpoint_conclude(found, CHECKPOINT_UNREADABLE, &why);
			return STATUS_OK;
		}
		inspect_once(list, item);
		/* It may only seem damaged because it is being replaced or removed. */
		again = found->state != CHECKPOINT_COMPLETE &&
			(found->status == STATUS_TEMPORARY ||
				fstatat(list->descriptor, first->name, &st, 0) < 0 ||
				st.st_ino != first->inode);
	}
	if (found->own)
		return STATUS_OK;
	/* As bad it counts while no file is newer. */
	found->pinned = list_has_mark(list, found->step, CKPT_BESIDE_PIN, 0);
	found->bad = list_has_mark(list, found->step, CKPT_BESIDE_BAD, found->changed);
	error_set(&why, STATUS_NO, "marked");
	if (found->bad && found->state == CHECKPOINT_COMPLETE)
		checkpoint_conclude(found, CHECKPOINT_BAD, &why);
	return STATUS_OK;
}
