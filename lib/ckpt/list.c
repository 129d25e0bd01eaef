/* SPDX-License-Identifier: MIT */
#include "ckpt/list.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/xalloc.h"
#include "ckpt/directory.h"
#include "ckpt/formats.h"
#include "ckpt/measured.h"
#include "ckpt/native.h"
#include "ckpt/parallel.h"
#include "ckpt/rules.h"
#include "ckpt/tree.h"

/* There may be more threads than processors: they mostly wait for a shared filesystem. */
#define THREADS_MAX 8
#define FEW	    4	      /* up to this number of checkpoints, more threads are not worth it */
#define TRIES	    8	      /* how often a checkpoint may be replaced while it is inspected */
#define LARGE	    (1 << 20) /* from this size on, a file of half the size is doubtful */
#define TRACKER_MAX ((size_t)64 << 20)

/* Names that say, in any framework's checkpoint, that it is not finished. */
#define UNFINISHED                                                                                 \
	"**.incomplete **-unfinished **.orbax-checkpoint-tmp* **.orbax-checkpoint-tmp*/**"

/* ---- The files of one entry ---- */

/* What is below an entry. Names are relative to root. */
struct files {
	int root;
	struct manifest list;
	char **directories; /* then NULL */
	size_t directory_count;
	int64_t changed;
};

static void files_release(struct files *files, int directory)
{
	for (size_t i = 0; i < files->directory_count; i++)
		free(files->directories[i]);
	free(files->directories);
	manifest_release(&files->list);
	if (files->root >= 0 && files->root != directory)
		close(files->root);
}

static void note_change(int64_t *changed, const struct stat *st)
{
	*changed = clock_later(*changed, file_changed(st));
}

static void add_file(struct files *files, const char *name, const struct stat *st)
{
	manifest_add(&files->list, name, (uint64_t)st->st_size);
	note_change(&files->changed, st);
}

/* Add an entry of the directory files->root (tree_visitor). A link to a file is a file; one to
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
		if (fstatat(files->root, path, &target, 0) == 0) {
			if (S_ISREG(target.st_mode))
				add_file(files, path, &target);
		} else if (errno != ENOENT) {
			return error_errno(err, errno, "follow the link %s", path);
		}
	} else if (S_ISREG(st->st_mode)) {
		add_file(files, path, st);
	} else if (S_ISDIR(st->st_mode)) {
		note_change(&files->changed, st);
		if (strcmp(path, ".") == 0)
			return STATUS_OK;
		files->directories = xrealloc(files->directories, files->directory_count + 2,
			sizeof(*files->directories));
		files->directories[files->directory_count++] = xstrdup(path);
	}
	return STATUS_OK;
}

/* Visit all that is below root. What is too deep was not seen, which is not "no". */
static enum status walk(int root, tree_visitor *visitor, void *context, struct error *err)
{
	struct error why;
	enum status status = tree_walk(root, "", visitor, context, &why);
	return status == STATUS_OK ? status
				   : error_set(err, status == STATUS_NO ? STATUS_TEMPORARY : status,
					     "%s", why.text);
}

/* Find the files of entries first to first + count - 1: of one directory, or files in DIR. */
static enum status find_files(const struct list *list, const struct list_entry *entries,
	size_t count, struct files *files, struct error *err)
{
	enum status status = STATUS_OK;
	struct stat st;
	*files = (struct files){.root = list->descriptor};
	if (entries->directory) {
		files->root =
			openat(list->descriptor, entries->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (files->root < 0)
			status = error_errno(err, errno, "open %s", entries->name);
		else
			status = walk(files->root, visit, files, err);
	}
	for (size_t i = 0; i < count && !entries->directory; i++)
		if (fstatat(list->descriptor, entries[i].name, &st, 0) == 0)
			add_file(files, entries[i].name, &st);
		else if (errno != ENOENT)
			status = error_errno(err, errno, "look at %s", entries[i].name);
	if (!files->directories)
		files->directories = xcalloc(1, sizeof(*files->directories));
	files->directories[files->directory_count] = NULL;
	manifest_sort(&files->list);
	return status;
}

/* ---- Names without their numbers ---- */

/*
 * A name in which numbers are replaced, so that names of two checkpoints can be compared. In DIR
 * every number is, because epochs and values differ, too; in a directory a hash ('*'), and all
 * numbers of files that are proved by rules ('#'). Several files may then have the same name.
 */
static char *without_numbers(const char *patterns, const char *name, bool inside)
{
	struct text text = {0};
	struct pattern_number unused[PATTERN_NUMBERS];
	bool proved = inside && (pattern_any("**-*-of-* **.distcp", name, unused) ||
					pattern_any(patterns, name, unused));
	char *end;
	for (const char *at = name; *at;) {
		size_t digits = strspn(at, "0123456789"), hash = strspn(at, "0123456789abcdef");
		if (inside && hash >= 16 && (at == name || !isalnum((unsigned char)at[-1]))) {
			text_add(&text, "*");
			at += hash;
		} else if (digits && (!inside || proved)) {
			text_add(&text, proved ? "#" : "{step}");
			at += digits;
			digits = !inside && *at == '.' ? strspn(at + 1, "0123456789") : 0;
			at += digits ? digits + 1 : 0;
		} else if (!inside && *at == '=' && (strtod(at + 1, &end), end > at + 1)) {
			text_add(&text, "={step}"); /* a value: 1.5, -2, 1e-05, nan */
			at = end - (end[-1] == '.');
		} else {
			digits = digits ? digits : 1;
			text_addf(&text, "%.*s", (int)digits, at);
			at += digits;
		}
	}
	char *made = xstrdup(text_string(&text));
	text_release(&text);
	return made;
}

/* The same name with another step in it; malloc'd. */
static char *with_step(const char *name, uint64_t from, uint64_t to)
{
	struct text text = {0};
	while (*name) {
		size_t digits = strspn(name, "0123456789"), length = digits ? digits : 1;
		if (digits && digits <= 18 && strtoull(name, NULL, 10) == from)
			text_addf(&text, "%0*" PRIu64, (int)digits, to);
		else
			text_addf(&text, "%.*s", (int)length, name);
		name += length;
	}
	char *made = xstrdup(text_string(&text));
	text_release(&text);
	return made;
}

/* Keep the names for a comparison. proved: the files of ranks of the layout are. */
static void keep_names(const struct layout *layout, struct list_item *item,
	const struct files *files, bool inside, bool proved)
{
	for (size_t i = 0; i < files->list.count; i++) {
		const struct manifest_file *file = &files->list.files[i];
		char *name = without_numbers(proved ? layout->proved : NULL, file->name, inside);
		manifest_add(&item->files, name, file->bytes);
		free(name);
	}
	item->checkpoint.files += files->list.count;
	item->checkpoint.bytes += manifest_bytes(&files->list);
	if (files->changed > item->checkpoint.changed)
		item->checkpoint.changed = files->changed;
}

/* ---- The state of one checkpoint by itself ---- */

static void conclude(struct checkpoint *found, enum rules_answer answer, const struct error *why)
{
	static const enum checkpoint_state states[] = {
		[RULES_HOLD] = CHECKPOINT_COMPLETE,
		[RULES_BROKEN] = CHECKPOINT_INCOMPLETE,
		[RULES_DAMAGED] = CHECKPOINT_DAMAGED,
		[RULES_UNKNOWN_FORM] = CHECKPOINT_UNKNOWN_FORM,
		[RULES_UNREADABLE] = CHECKPOINT_UNREADABLE,
	};
	found->state = states[answer];
	found->status = answer == RULES_UNREADABLE ? why->status : STATUS_OK;
	snprintf(found->why, sizeof(found->why), "%.255s", answer == RULES_HOLD ? "" : why->text);
}

/* A file or directory in the checkpoint that fits the patterns; NULL: there is none. */
static const char *find_marker(const struct files *files, const char *patterns)
{
	struct pattern_number unused[PATTERN_NUMBERS];
	for (size_t i = 0; i < files->list.count; i++)
		if (strncmp(files->list.files[i].name, ".cache/", 7) != 0 &&
			pattern_any(patterns, files->list.files[i].name, unused))
			return files->list.files[i].name;
	for (size_t i = 0; i < files->directory_count; i++)
		if (pattern_any(patterns, files->directories[i], unused))
			return files->directories[i];
	return NULL;
}

/* Whether there is such a file beside the checkpoint of this step. */
static bool has_mark(const struct list *list, uint64_t step, enum ckpt_beside kind, int64_t since)
{
	for (size_t i = 0; i < list->mark_count; i++)
		if (list->marks[i].step == step && list->marks[i].kind == kind &&
			list->marks[i].time >= since)
			return true;
	return false;
}

static enum rules_answer check_markers(
	const struct list *list, uint64_t step, const struct files *files, struct error *why)
{
	const struct layout *layout = list->request.layout;
	const char *found = find_marker(files, UNFINISHED);
	if (!found)
		found = find_marker(files, layout->undone);
	if (!found && has_mark(list, step, CKPT_BESIDE_UNDONE, 0))
		found = "a file beside it";
	if (found)
		error_set(why, STATUS_NO, "%s says that it is not finished", found);
	else if (layout->done && !find_marker(files, layout->done) &&
		 !has_mark(list, step, CKPT_BESIDE_DONE, 0))
		error_set(why, STATUS_NO, "%s, which says that it is finished, is missing",
			layout->done);
	else
		return RULES_HOLD;
	return RULES_BROKEN;
}

static bool is_marked(const struct layout *layout, const struct files *files)
{
	struct pattern_number unused[PATTERN_NUMBERS];
	for (size_t i = 0; layout->marks && i < files->list.count; i++)
		if (pattern_any(layout->marks, files->list.files[i].name, unused))
			return true;
	return !layout->marks;
}

/* Check entries that are one directory, or files in DIR, by the rules and formats. */
static enum rules_answer check_entries(const struct list *list, const struct list_entry *entries,
	size_t count, struct list_item *item, struct error *why)
{
	const struct layout *layout = list->request.layout;
	struct files files;
	bool directory = entries->directory;
	enum rules_answer answer = RULES_UNREADABLE;
	enum status status = find_files(list, entries, count, &files, why);
	if (status == STATUS_OK) {
		measured_read(layout, files.root, entries->name, entries->step, item);
		if (!(directory ? layout->directories : layout->files)) {
			answer = RULES_UNKNOWN_FORM;
			error_set(why, STATUS_NO, "it is a %s", directory ? "directory" : "file");
		} else if (directory && files.list.count && !is_marked(layout, &files)) {
			answer = RULES_UNKNOWN_FORM;
			error_set(why, STATUS_NO, "it holds nothing of %s", layout->name);
		} else {
			answer = check_markers(list, entries->step, &files, why);
		}
	}
	bool told = layout->proved && !strstr(layout->rules, "world ");
	const struct rules_item look = {
		entries->step, files.root, &files.list, files.directories, &told};
	if (answer == RULES_HOLD)
		answer = rules_check(layout->rules, &look, why);
	for (size_t i = 0; i < files.list.count && answer == RULES_HOLD; i++) {
		status = format_check(
			files.root, files.list.files[i].name, files.list.files[i].bytes, why);
		answer = status == STATUS_OK   ? RULES_HOLD
			 : status == STATUS_NO ? RULES_DAMAGED
					       : RULES_UNREADABLE;
	}
	keep_names(layout, item, &files, directory, told);
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

static void inspect_once(const struct list *list, struct list_item *item)
{
	const struct list_entry *entries = &list->entries[item->first];
	struct checkpoint *found = &item->checkpoint;
	enum rules_answer answer = RULES_HOLD;
	struct error why = {0}, one = {0};
	int best = -1;
	manifest_release(&item->files);
	*found = (struct checkpoint){
		.step = entries->step, .own = entries->own, .pinned = found->pinned};
	name_item(list, entries, item);
	const bool alternatives = list->request.layout->alternatives;
	enum rules_answer partner = RULES_HOLD; /* NeMo's averages, NAME-EMA, belong to NAME */
	for (size_t i = 0, count; i < item->count; i += count) {
		bool alone = entries[i].directory || alternatives;
		for (count = 1; !alone && i + count < item->count && !entries[i + count].directory;)
			count++;
		enum rules_answer part = check_entries(list, &entries[i], count, item, &one);
		bool average = alternatives && strstr(entries[i].name, "-EMA");
		int rank = alternatives && part == RULES_HOLD && !average ? rank_of(entries[i].name)
									  : -1;
		if (rank > best) {
			best = rank;
			name_item(list, &entries[i], item);
		}
		if (average && part == RULES_HOLD && answer == RULES_HOLD && best < 0) {
			part = RULES_BROKEN;
			error_set(
				&one, STATUS_NO, "%s is there without its model", entries[i].name);
		} else if (average) {
			partner = part;
		}
		if (part != RULES_HOLD && (answer == RULES_HOLD || part > answer)) {
			answer = part;
			why = one;
		}
	}
	if (best >= 0 && partner == RULES_HOLD)
		answer = RULES_HOLD;
	conclude(found, answer, &why);
	manifest_sort(&item->files);
	found->utc = found->changed ? found->changed : 1;
}

/* Apply the marks beside it. As bad it counts while no file is newer. */
static void apply_marks(const struct list *list, struct checkpoint *found)
{
	if (found->own)
		return;
	found->pinned = has_mark(list, found->step, CKPT_BESIDE_PIN, 0);
	found->bad = has_mark(list, found->step, CKPT_BESIDE_BAD, found->changed);
	if (found->bad && found->state == CHECKPOINT_COMPLETE) {
		found->state = CHECKPOINT_BAD;
		snprintf(found->why, sizeof(found->why), "marked");
	}
}

/* Inspect a checkpoint of a framework by itself. STATUS_NO: it is gone. */
static enum status inspect_framework(
	const struct list *list, struct list_item *item, struct error *err)
{
	struct stat st;
	struct error why;
	for (int tries = 0; tries < TRIES; tries++) {
		size_t there = 0;
		for (size_t i = 0; i < item->count; i++) {
			struct list_entry *entry = &list->entries[item->first + i];
			if (fstatat(list->descriptor, entry->name, &st, 0) < 0) {
				if (errno == ENOENT)
					continue;
				error_errno(&why, errno, "look at %s", entry->name);
				name_item(list, &list->entries[item->first], item);
				conclude(&item->checkpoint, RULES_UNREADABLE, &why);
				return STATUS_OK;
			}
			there++;
			entry->device = st.st_dev;
			entry->inode = st.st_ino;
			entry->directory = S_ISDIR(st.st_mode);
		}
		if (!there)
			return error_set(err, STATUS_NO, "%s/%s is gone", list->request.directory,
				list->entries[item->first].name);
		inspect_once(list, item);
		/* It may only seem damaged because it is being replaced or removed: look again. */
		const struct list_entry *first = &list->entries[item->first];
		if (item->checkpoint.state == CHECKPOINT_COMPLETE ||
			(item->checkpoint.status != STATUS_TEMPORARY &&
				fstatat(list->descriptor, first->name, &st, 0) == 0 &&
				st.st_ino == first->inode))
			break;
	}
	return STATUS_OK;
}

static enum status inspect(const struct list *list, struct list_item *item, struct error *err)
{
	const char *entry = list->entries[item->first].name;
	if (layout_is_native(list->request.layout))
		return native_inspect(list->request.directory, entry, list->request.contents,
			&item->checkpoint, err);
	enum status status = inspect_framework(list, item, err);
	if (status == STATUS_OK)
		apply_marks(list, &item->checkpoint);
	return status;
}

static void stay(struct checkpoint *checkpoint, const char *what, const char *why)
{
	if (!*checkpoint->stays)
		snprintf(checkpoint->stays, sizeof(checkpoint->stays), "%.80s%.70s", what, why);
}

/* ---- Doubt: a comparison with the nearest older complete one ---- */

/* How many files have this name; and their bytes. */
static size_t count_files(const struct manifest *files, const char *name, uint64_t *bytes)
{
	size_t at = manifest_place(files, name), count = 0;
	*bytes = 0;
	for (; at < files->count && strcmp(files->files[at].name, name) == 0; at++, count++)
		*bytes += files->files[at].bytes;
	return count;
}

/* How many files item has under the name that a file of `of` has, perhaps with the step in it. */
static size_t count_same(
	const struct list_item *item, const char *name, const struct list_item *of, uint64_t *bytes)
{
	size_t count = count_files(&item->files, name, bytes);
	if (count)
		return count;
	char *own = with_step(name, of->checkpoint.step, item->checkpoint.step);
	count = count_files(&item->files, own, bytes);
	free(own);
	return count;
}

/*
 * Whether item has less than older: *names: fewer files; *sizes: a file that is much smaller. why
 * says what. alternatives: a step may have been saved several times; apart: and these are files,
 * each whole without the others, but for NeMo's averages.
 */
static void compare(const struct list_item *item, const struct list_item *older, bool alternatives,
	bool apart, bool *names, bool *sizes, struct error *why)
{
	uint64_t old, new;
	*names = *sizes = false;
	for (size_t i = 0, before; i < older->files.count && !*sizes; i += before) {
		const char *name = older->files.files[i].name;
		before = count_files(&older->files, name, &old);
		size_t count = count_same(item, name, older, &new);
		bool hash = strchr(name, '*') != NULL;
		bool fewer = count == 0 ? !apart || strstr(name, "-EMA")
					: count < before && !alternatives && !strchr(name, '#') &&
						  (!hash || new < old - old / 10);
		*sizes = (fewer && hash) ||
			 (count == 1 && before == 1 &&
				 ((old >= LARGE && new < old / 2) || (old && !new)));
		if (*sizes && !fewer)
			error_set(why, STATUS_NO, "%s is less than half as large as that of %s",
				name, older->checkpoint.name);
		else if (fewer && !*names && before > 1)
			error_set(why, STATUS_NO, "%s has %zu files %s, this one has %zu",
				older->checkpoint.name, before, name, count);
		else if (fewer && !*names)
			error_set(why, STATUS_NO, "%s has a file %s, this one has none",
				older->checkpoint.name, name);
		*names |= fewer;
	}
}

static bool has_same_names(const struct list_item *a, const struct list_item *b)
{
	uint64_t unused;
	bool same = a->files.count == b->files.count;
	for (size_t i = 0; i < a->files.count && same; i++)
		same = count_same(b, a->files.files[i].name, a, &unused) > 0;
	return same;
}

/* Conclude that item i is doubtful, if it is; what it is compared with stays. */
static void doubt(struct list *list, size_t i)
{
	struct list_item *item = &list->items[i], *older = NULL;
	const struct list_request *request = &list->request;
	const bool alternatives = request->layout->alternatives;
	const uint64_t step = item->checkpoint.step;
	bool names, sizes, vouched = false;
	struct error why;
	if (item->checkpoint.state != CHECKPOINT_COMPLETE || item->checkpoint.own)
		return;
	for (size_t k = i; k-- > 0 && !older;)
		if (list->items[k].checkpoint.state == CHECKPOINT_COMPLETE &&
			!list->items[k].checkpoint.own)
			older = &list->items[k];
	if (!older || has_mark(list, step, CKPT_BESIDE_GOOD, item->checkpoint.changed) ||
		(request->saved && *request->saved == step))
		return;
	bool apart = alternatives && !(list->entries[item->first].directory &&
					     list->entries[older->first].directory);
	compare(item, older, alternatives, apart, &names, &sizes, &why);
	if (!names && !sizes)
		return;
	for (size_t k = 0; k < list->count && !sizes && !vouched; k++) {
		enum checkpoint_state state = list->items[k].checkpoint.state;
		vouched = k != i && !list->items[k].checkpoint.own &&
			  (state == CHECKPOINT_COMPLETE || state == CHECKPOINT_DOUBTFUL) &&
			  has_same_names(&list->items[k], item);
	}
	/* Two saves that failed alike vouch for each other, too. */
	stay(&older->checkpoint, item->checkpoint.name, ", which has less, is compared with it");
	if (vouched)
		return;
	item->checkpoint.state = CHECKPOINT_DOUBTFUL;
	snprintf(item->checkpoint.why, sizeof(item->checkpoint.why), "%.255s", why.text);
}

/* ---- The tracker ---- */

/* Read which step the tracker names. A file that names none is broken. */
static enum status read_tracker(struct list *list, struct error *err)
{
	const struct layout *layout = list->request.layout;
	struct pattern_number numbers[PATTERN_NUMBERS];
	struct text text = {0};
	struct error why = {0};
	struct stat st;
	char *state = NULL, *line = NULL;
	if (!layout->tracker ||
		fstatat(list->descriptor, layout->tracker, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return STATUS_OK;
	enum status status =
		format_read(list->descriptor, layout->tracker, TRACKER_MAX, &text, &why);
	if (status != STATUS_OK && status != STATUS_NO)
		return error_set(err, status, "%s: %s", list->request.directory, why.text);
	list->tracker.found = true;
	if (text.length && strlen(text.data) == text.length)
		line = strtok_r(text.data, "\r\n", &state);
	for (; line && !list->tracker.named; line = strtok_r(NULL, "\r\n", &state)) {
		for (size_t end = strlen(line); end > 0 && strchr(" \t", line[end - 1]);)
			line[--end] = '\0';
		list->tracker.named = pattern_any(layout->tracker_forms, line, numbers);
		snprintf(list->tracker.line, sizeof(list->tracker.line), "%.255s", line);
	}
	list->tracker.step = list->tracker.named ? numbers[PATTERN_STEP].value : 0;
	if (!list->tracker.named)
		snprintf(list->tracker.broken, sizeof(list->tracker.broken), "%.255s",
			status == STATUS_NO ? why.text
			: text.length == 0  ? "it is empty"
					    : "no line has the form of a checkpoint's name");
	text_release(&text);
	return STATUS_OK;
}

/* What the tracker names stays; and what is newer, until two that are newer still are complete. */
static void protect_tracked(struct list *list)
{
	const char *tracker = list->request.layout->tracker;
	size_t newer = 0;
	for (size_t i = list->count; i-- > 0;) {
		struct checkpoint *one = &list->items[i].checkpoint;
		if (list->tracker.named && one->step == list->tracker.step)
			stay(one, tracker, " names it");
		else if (list->tracker.named && one->step > list->tracker.step && newer < 2)
			stay(one, "newer than what is named by ", tracker);
		newer += one->state == CHECKPOINT_COMPLETE && !one->own;
	}
}

/* ---- Reading DIR ---- */

static int by_step(const void *a, const void *b)
{
	const struct list_entry *x = a, *y = b;
	if (x->unfinished != y->unfinished)
		return x->unfinished ? 1 : -1;
	if (x->step != y->step)
		return x->step < y->step ? -1 : 1;
	if (x->own != y->own)
		return x->own ? -1 : 1;
	if (x->directory != y->directory)
		return x->directory ? -1 : 1;
	return strcmp(x->name, y->name);
}

/* Read the step that is in the content of an entry. STATUS_NO: it is no checkpoint. One that is
 * damaged, or not finished, is one of step 0. */
static enum status read_inside(const struct list *list, struct list_entry *entry, struct error *err)
{
	const struct layout *layout = list->request.layout;
	struct files files = {.root = -1};
	struct pattern_number unused[PATTERN_NUMBERS];
	struct stat st;
	if (!entry->directory) {
		enum status status = format_read_number(
			list->descriptor, entry->name, "global_step", &entry->step, err);
		if (status != STATUS_NO || fstatat(list->descriptor, entry->name, &st, 0) < 0)
			return status;
		status = format_check(list->descriptor, entry->name, (uint64_t)st.st_size, err);
		return status == STATUS_OK ? STATUS_NO : status == STATUS_NO ? STATUS_OK : status;
	}
	enum status status = find_files(list, entry, 1, &files, err);
	bool ours = status == STATUS_OK && is_marked(layout, &files);
	enum status read = STATUS_NO;
	for (size_t i = 0; i < files.list.count && ours && read == STATUS_NO; i++)
		if (pattern_any(layout->inside_files, files.list.files[i].name, unused))
			read = format_read_number(files.root, files.list.files[i].name,
				"global_step", &entry->step, err);
	files_release(&files, list->descriptor);
	if (status == STATUS_OK && read != STATUS_NO)
		status = read;
	return status == STATUS_OK && !ours ? STATUS_NO : status;
}

static enum status add_entry(struct list *list, const char *name, struct error *err)
{
	struct list_entry entry = {.name = xstrdup(name)};
	struct stat st;
	bool inside;
	enum status status = STATUS_OK;
	if (!layout_reads(list->request.layout, name, &entry.step, &inside)) {
		list->others[list->other_count++] = entry.name;
		return STATUS_OK;
	}
	if (layout_is_native(list->request.layout)) {
		entry.unfinished = *name == '.';
	} else {
		if (fstatat(list->descriptor, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			st.st_mode = 0;
		entry.link = S_ISLNK(st.st_mode);
		entry.directory = S_ISDIR(st.st_mode) ||
				  (entry.link && fstatat(list->descriptor, name, &st, 0) == 0 &&
					  S_ISDIR(st.st_mode));
	}
	entry.own = inside && (!strpbrk(name, "0123456789") || strncmp(name, "last", 4) == 0);
	/* A link without a step of its own is another name of what it leads to. */
	if (inside)
		status = entry.link ? STATUS_NO : read_inside(list, &entry, err);
	if (status == STATUS_OK)
		list->entries[list->entry_count++] = entry;
	else
		list->others[list->other_count++] = entry.name;
	return status == STATUS_NO ? STATUS_OK : status;
}

/*
 * Whether a name is a pin or mark of ours, or says that the checkpoint of a step is finished, or
 * not: as the layout says, or as NAME-unfinished and so on.
 */
static bool reads_mark(
	const struct list *list, const char *name, enum ckpt_beside *kind, uint64_t *step)
{
	static const char *const ends[] = {"-unfinished", ".unfinished", ".incomplete"};
	const struct layout *layout = list->request.layout;
	struct pattern_number numbers[PATTERN_NUMBERS] = {{0}};
	bool inside, read = false;
	if (layout_is_native(layout)) /* ours are inside */
		return false;
	if (ckpt_name_read_beside(name, kind, step))
		return true;
	*kind = CKPT_BESIDE_UNDONE;
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]) && !read; i++) {
		size_t length = strlen(name), end = strlen(ends[i]);
		char *of = xstrndup(name, length > end ? length - end : 0);
		read = length > end && strcmp(name + length - end, ends[i]) == 0 &&
		       layout_reads(layout, of, step, &inside) && !inside;
		free(of);
	}
	if (read)
		return true;
	if (!pattern_any(layout->undone, name, numbers)) {
		*kind = CKPT_BESIDE_DONE;
		if (!pattern_any(layout->done, name, numbers))
			return false;
	}
	*step = numbers[PATTERN_STEP].value;
	return numbers[PATTERN_STEP].length > 0;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static enum status read_names(struct list *list, struct error *err)
{
	struct file_names names = {0};
	struct stat st;
	enum status status =
		file_read_names(list->descriptor, list->request.directory, &names, err);
	list->entries = xcalloc(names.count + 1, sizeof(*list->entries));
	list->others = xcalloc(names.count + 1, sizeof(*list->others));
	list->gone = xcalloc(names.count + 1, sizeof(*list->gone));
	list->marks = xcalloc(names.count + 1, sizeof(*list->marks));
	for (size_t i = 0; i < names.count && status == STATUS_OK; i++) {
		const char *name = names.names[i];
		struct list_mark *mark = &list->marks[list->mark_count];
		if (ckpt_name_read_gone(name)) {
			list->gone[list->gone_count++] = xstrdup(name);
		} else if (reads_mark(list, name, &mark->kind, &mark->step)) {
			if (fstatat(list->descriptor, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
				if (errno != ENOENT)
					status = error_errno(err, errno, "look at %s", name);
				continue;
			}
			note_change(&mark->time, &st);
			snprintf(mark->name, sizeof(mark->name), "%.255s", name);
			list->mark_count++;
		} else {
			struct error why;
			status = add_entry(list, name, &why);
			if (status != STATUS_OK)
				error_set(err, status, "%s/%s", list->request.directory, why.text);
		}
	}
	file_names_release(&names);
	if (list->entry_count)
		qsort(list->entries, list->entry_count, sizeof(*list->entries), by_step);
	if (list->other_count) /* messages name the first three */
		qsort(list->others, list->other_count, sizeof(*list->others), by_text);
	return status;
}

/* Whether the entry belongs to the checkpoint of the one before it. */
static bool is_same(const struct list *list, size_t i)
{
	const struct list_entry *a = &list->entries[i - 1], *b = &list->entries[i];
	return !layout_is_native(list->request.layout) && !a->own && !b->own && a->step == b->step;
}

static enum status read_one(void *context, size_t i, struct error *err)
{
	struct list *list = context;
	enum status status = inspect(list, &list->items[i], err);
	if (status == STATUS_NO) /* it was in the list, and is gone now */
		list->items[i].count = 0;
	return status == STATUS_NO ? STATUS_OK : status;
}

/* STATUS_USAGE: DIR is a checkpoint of a framework, not a directory of checkpoints. */
static enum status refuse_inside(const struct list *list, struct error *err)
{
	static const char *const signs[] = {"trainer_state.json", ".metadata"};
	for (size_t i = 0; i < 2 && list->request.layout->general; i++)
		if (faccessat(list->descriptor, signs[i], F_OK, AT_SYMLINK_NOFOLLOW) == 0)
			return error_set(err, STATUS_USAGE,
				"%s is itself a checkpoint (it holds %s): name the directory above "
				"it",
				list->request.directory, signs[i]);
	return STATUS_OK;
}

enum status list_read(const struct list_request *request, struct list *list, struct error *err)
{
	*list = (struct list){.request = *request, .descriptor = -1};
	enum status status = ckpt_directory_open(request->directory, &list->descriptor, err);
	if (status != STATUS_OK) {
		list->descriptor = -1;
		return status;
	}
	/* Read the tracker before the names: with an older tracker, more checkpoints stay. */
	status = refuse_inside(list, err);
	if (status == STATUS_OK)
		status = read_tracker(list, err);
	if (status == STATUS_OK)
		status = read_names(list, err);
	list->items = xcalloc(list->entry_count + 1, sizeof(*list->items));
	size_t count = 0;
	for (size_t i = 0; i < list->entry_count && status == STATUS_OK; i++) {
		if (i > 0 && is_same(list, i)) {
			list->items[count - 1].count++;
			continue;
		}
		list->items[count].first = i;
		list->items[count].count = 1;
		list->items[count].checkpoint.step = list->entries[i].step;
		snprintf(list->items[count].checkpoint.name,
			sizeof(list->items[count].checkpoint.name), "%.255s",
			list->entries[i].name);
		count++;
	}
	list->count = count;
	if (status == STATUS_OK && !request->names_only)
		status = parallel(count, count > FEW ? THREADS_MAX : 1, read_one, list, err);
	list->count = 0;
	for (size_t i = 0; i < count; i++)
		if (list->items[i].count)
			list->items[list->count++] = list->items[i];
	list->vanished = list->count < count;
	for (size_t i = 0; i < list->count && !layout_is_native(request->layout); i++)
		doubt(list, i);
	protect_tracked(list);
	return status;
}

void list_release(struct list *list)
{
	for (size_t i = 0; i < list->entry_count; i++)
		free(list->entries[i].name);
	for (size_t i = 0; i < list->other_count; i++)
		free(list->others[i]);
	for (size_t i = 0; i < list->gone_count; i++)
		free(list->gone[i]);
	for (size_t i = 0; i < list->count; i++)
		manifest_release(&list->items[i].files);
	free(list->entries);
	free(list->others);
	free(list->gone);
	free(list->marks);
	free(list->items);
	if (list->descriptor >= 0)
		close(list->descriptor);
	*list = (struct list){.descriptor = -1};
}

enum status list_inspect(const struct list *list, struct list_item *item, struct error *err)
{
	return inspect(list, item, err);
}

const struct list_item *list_newest(const struct list *list)
{
	for (size_t i = list->count; i-- > 0;)
		if (list->items[i].checkpoint.state == CHECKPOINT_COMPLETE)
			return &list->items[i];
	return NULL;
}

/* ---- Links ---- */

/* What a link leads to. */
struct following {
	struct list *list;
	const char *directory; /* in which the link is */
};

/* Protect the checkpoint that has the file or directory, or one above it, to which a link leads. */
static enum status follow(struct following *from, const char *name, struct error *err)
{
	struct list *list = from->list;
	char at[PATH_MAX];
	struct stat st;
	char *link = xprintf("%s/%s", from->directory, name);
	enum status status = STATUS_OK;
	if (!realpath(link, at)) {
		/* It leads nowhere, or in a circle. */
		if (errno != ENOENT && errno != ELOOP && errno != ENOTDIR)
			status = error_errno(err, errno, "follow the link %s", link);
		*at = '\0';
	}
	for (char *end = at + strlen(at); end && end > at; end = strrchr(at, '/')) {
		*end = '\0';
		if (!*at || stat(at, &st) < 0)
			continue;
		for (size_t i = 0; i < list->count; i++)
			for (size_t k = 0; k < list->items[i].count; k++) {
				const struct list_entry *entry =
					&list->entries[list->items[i].first + k];
				if (entry->device == st.st_dev && entry->inode == st.st_ino &&
					!entry->link)
					stay(&list->items[i].checkpoint, name,
						", a link, leads to it");
			}
	}
	free(link);
	return status;
}

/* A tree_visitor. */
static enum status follow_inside(
	void *context, const char *path, int directory, const struct stat *st, struct error *err)
{
	(void)directory;
	return st && S_ISLNK(st->st_mode) ? follow(context, path, err) : STATUS_OK;
}

enum status list_protect(struct list *list, struct error *err)
{
	struct following from = {list, list->request.directory};
	struct stat st;
	enum status status = STATUS_OK;
	/* Of ours, only the links need to know them. */
	for (size_t i = 0; i < list->entry_count; i++) {
		struct list_entry *entry = &list->entries[i];
		if (fstatat(list->descriptor, entry->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		entry->device = st.st_dev;
		entry->inode = st.st_ino;
		entry->link = S_ISLNK(st.st_mode);
	}
	for (size_t i = 0; i < list->count; i++)
		for (size_t k = 0; k < list->items[i].count && status == STATUS_OK; k++) {
			const struct list_entry *entry = &list->entries[list->items[i].first + k];
			if (!entry->link)
				continue;
			stay(&list->items[i].checkpoint, "it is a symbolic link", "");
			status = follow(&from, entry->name, err);
		}
	for (size_t i = 0; i < list->other_count && status == STATUS_OK; i++) {
		const char *name = list->others[i];
		bool latest =
			layout_is_native(list->request.layout) && strcmp(name, CKPT_LATEST) == 0;
		if (!latest && fstatat(list->descriptor, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
			S_ISLNK(st.st_mode))
			status = follow(&from, name, err);
	}
	return status;
}

enum status list_follow(
	struct list *list, const struct list_item *item, bool newest, struct error *err)
{
	enum status status = STATUS_OK;
	for (size_t k = 0; k < item->count && status == STATUS_OK; k++) {
		const struct list_entry *entry = &list->entries[item->first + k];
		char *path = xprintf("%s/%s", list->request.directory, entry->name);
		struct following from = {list, path};
		int root = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (root >= 0) {
			status = walk(root, follow_inside, &from, err);
			close(root);
		} else if (errno != ENOENT && errno != ENOTDIR) {
			status = error_errno(err, errno, "open %s", path);
		}
		free(path);
	}
	for (size_t i = 0; newest && *item->best && i < list->count; i++)
		if (strcmp(list->items[i].checkpoint.name, item->best) == 0)
			stay(&list->items[i].checkpoint, "the newest one calls it the best", "");
	return status;
}

enum status list_is_wanted(
	const struct list *list, const char *entry, bool *wanted, struct error *err)
{
	char target[PATH_MAX], whole[PATH_MAX] = "";
	size_t length = strlen(entry);
	*wanted = false;
	if (!realpath(list->request.directory, whole))
		return error_errno(err, errno, "resolve %s", list->request.directory);
	for (size_t i = 0; i < list->other_count && !*wanted; i++) {
		ssize_t got =
			readlinkat(list->descriptor, list->others[i], target, sizeof(target) - 1);
		if (got < 0 || (layout_is_native(list->request.layout) &&
				       strcmp(list->others[i], CKPT_LATEST) == 0))
			continue;
		target[got] = '\0';
		const char *at = target;
		if (strncmp(at, whole, strlen(whole)) == 0 && at[strlen(whole)] == '/')
			at += strlen(whole) + 1;
		while (strncmp(at, "./", 2) == 0)
			at += 2;
		*wanted = strncmp(at, entry, length) == 0 && (!at[length] || at[length] == '/');
	}
	return STATUS_OK;
}

/* ---- What a user should know ---- */

void list_note(const struct list *list, struct text *notes)
{
	const char *directory = list->request.directory, *file = list->request.layout->tracker;
	bool there = !list->tracker.named;
	for (size_t i = 0; i < list->count && !there; i++)
		there = list->items[i].checkpoint.step == list->tracker.step;
	if (*list->tracker.broken)
		text_addf(notes, "%s/%s: cannot parse the tracker file: %s\n", directory, file,
			list->tracker.broken);
	else if (!there)
		text_addf(notes, "%s/%s names %s, which is not there\n", directory, file,
			list->tracker.line);
}

/* Whether a name looks like that of a log. */
static bool is_log(const char *name)
{
	static const char *const ends[] = {".log", ".out", ".err", ".txt", ".json", ".jsonl",
		".csv", ".yaml", ".yml", ".html", ".png", ".py", ".sh", ".lock", NULL};
	size_t length = strlen(name);
	for (const char *const *end = ends; *end; end++)
		if (length > strlen(*end) && strcmp(name + length - strlen(*end), *end) == 0)
			return true;
	return *name == '.' || strstr(name, "tfevents") || strncmp(name, "core.", 5) == 0;
}

/* Whether a directory has a file in it, at any depth, or may have one. */
static bool has_files(int directory, const char *name)
{
	struct files files = {
		.root = openat(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)};
	struct error unused;
	bool has = files.root < 0 ? errno != ENOENT
				  : walk(files.root, visit, &files, &unused) != STATUS_OK ||
					    files.list.count > 0;
	files_release(&files, directory);
	return has;
}

enum status list_confirm_none(const struct list *list, struct error *err)
{
	struct text strange = {0}, other = {0};
	size_t count = 0, others = 0;
	for (size_t i = 0; i < list->count; i++) {
		const struct checkpoint *one = &list->items[i].checkpoint;
		if (one->state == CHECKPOINT_UNKNOWN_FORM && count++ < 3)
			text_addf(&strange, "%s%s", count > 1 ? ", " : "", one->name);
	}
	for (size_t i = 0; i < list->other_count; i++) {
		struct stat st;
		const char *name = list->others[i];
		bool looks = strpbrk(name, "0123456789") && !is_log(name) &&
			     fstatat(list->descriptor, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
			     (S_ISDIR(st.st_mode) ? has_files(list->descriptor, name)
						  : S_ISREG(st.st_mode) && st.st_size > LARGE);
		if (looks && count++ < 3)
			text_addf(&strange, "%s%s", count > 1 ? ", " : "", name);
		if (!looks && *name != '.' && others++ < 3)
			text_addf(&other, "%s%s", others > 1 ? ", " : "", name);
	}
	enum status status =
		*list->tracker.broken
			? error_set(err, STATUS_TEMPORARY,
				  "%s has no complete checkpoint, and the tracker file %s names one "
				  "that no layout reads: %s",
				  list->request.directory, list->request.layout->tracker,
				  list->tracker.line)
		: count ? error_set(err, STATUS_TEMPORARY,
				  "%s: no layout reads %s%s, which may be checkpoints: say how with "
				  "--pattern or --layout, or move them away",
				  list->request.directory, text_string(&strange),
				  count > 3 ? " ..." : "")
			: error_set(err, STATUS_NO, "there is no complete checkpoint in %s%s%s%s",
				  list->request.directory, others ? " (it has other entries: " : "",
				  text_string(&other),
				  others > 3 ? " ...)"
				  : others   ? ")"
					     : "");
	text_release(&strange);
	text_release(&other);
	return status;
}
