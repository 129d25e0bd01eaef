/* SPDX-License-Identifier: MIT */
#include "ckpt/framework.h"

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
#include "ckpt/gone.h"
#include "ckpt/native.h"
#include "ckpt/parallel.h"

/* There may be more threads than processors: they mostly wait for a shared filesystem. */
#define THREADS_MAX 8
#define FEW	    4	      /* up to this number of checkpoints, more threads are not worth it */
#define LARGE	    (1 << 20) /* from this size on, a file may be a checkpoint */
#define TRACKER_MAX ((size_t)64 << 20)

void list_stay(struct checkpoint *checkpoint, const char *what, const char *why)
{
	if (!*checkpoint->stays)
		snprintf(checkpoint->stays, sizeof(checkpoint->stays), "%.80s%.70s", what, why);
}

bool list_has_mark(const struct list *list, uint64_t step, enum ckpt_beside kind, int64_t since)
{
	for (size_t i = 0; i < list->mark_count; i++)
		if (list->marks[i].step == step && list->marks[i].kind == kind &&
			list->marks[i].time >= since)
			return true;
	return false;
}

enum status list_walk(int root, tree_visitor *visitor, void *context, struct error *err)
{
	struct error why;
	enum status status = tree_walk(root, "", visitor, context, &why);
	return status == STATUS_OK ? status
				   : error_set(err, status == STATUS_NO ? STATUS_TEMPORARY : status,
					     "%s", why.text);
}

/* ---- The tracker ---- */

/* Read which step the tracker names. A file that names none is broken. */
static enum status read_tracker(struct list *list, struct error *err)
{
	const struct layout *layout = list->request.layout;
	struct pattern_number numbers[PATTERN_NUMBERS];
	struct text text = {0};
	struct error why = {.text = "no line has the form of a checkpoint's name"};
	struct stat st;
	char *state = NULL;
	if (!layout->tracker)
		return STATUS_OK;
	if (fstatat(list->descriptor, layout->tracker, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? STATUS_OK
				       : error_errno(err, errno, "look at %s/%s",
						 list->request.directory, layout->tracker);
	enum status status =
		format_read(list->descriptor, layout->tracker, TRACKER_MAX, &text, &why);
	if (status != STATUS_OK && status != STATUS_NO)
		return error_set(err, status, "%s: %s", list->request.directory, why.text);
	list->tracker.found = true;
	bool lines = text.length && strlen(text.data) == text.length;
	char *line = lines ? strtok_r(text.data, "\r\n", &state) : NULL;
	for (; line && !list->tracker.named; line = strtok_r(NULL, "\r\n", &state)) {
		for (size_t end = strlen(line); end > 0 && strchr(" \t", line[end - 1]);)
			line[--end] = '\0';
		snprintf(list->tracker.line, sizeof(list->tracker.line), "%.255s", line);
		list->tracker.named = pattern_any(layout->tracker_forms, line, numbers);
		if (list->tracker.named)
			list->tracker.step = numbers[PATTERN_STEP].value;
	}
	if (!list->tracker.named)
		snprintf(list->tracker.broken, sizeof(list->tracker.broken), "%.255s", why.text);
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
			list_stay(one, tracker, " names it");
		else if (list->tracker.named && one->step > list->tracker.step && newer < 2)
			list_stay(one, "newer than what is named by ", tracker);
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

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/*
 * Whether a name says something about the checkpoint of a step: it is a pin or mark of ours, or
 * says that the checkpoint is finished, or not, as the layout says, or as NAME-unfinished and so
 * on.
 */
static bool reads_mark(const struct layout *layout, const char *name, struct list_mark *mark)
{
	struct pattern_number numbers[PATTERN_NUMBERS] = {{0}};
	char of[256];
	bool inside;
	if (ckpt_name_read_beside(name, &mark->kind, &mark->step))
		return true;
	mark->kind = CKPT_BESIDE_UNDONE;
	if (pattern_any("*-unfinished *.unfinished *.incomplete", name, numbers)) {
		snprintf(of, sizeof(of), "%.*s", (int)(strlen(name) - strlen("-unfinished")), name);
		if (layout_reads(layout, of, &mark->step, &inside) && !inside)
			return true;
	}
	if (!pattern_any(layout->undone, name, numbers)) {
		mark->kind = CKPT_BESIDE_DONE;
		if (!pattern_any(layout->done, name, numbers))
			return false;
	}
	mark->step = numbers[PATTERN_STEP].value;
	return numbers[PATTERN_STEP].length > 0;
}

static enum status add_mark(
	struct list *list, const char *name, struct list_mark *mark, struct error *err)
{
	struct stat st;
	if (fstatat(list->descriptor, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? STATUS_OK : error_errno(err, errno, "look at %s", name);
	mark->time = file_changed(&st);
	snprintf(mark->name, sizeof(mark->name), "%.255s", name);
	list->mark_count++;
	return STATUS_OK;
}

/* Add a name in DIR to the entries or others, or count it. What is gone by now is found to be gone
 * when it is inspected. */
static enum status add_entry(struct list *list, const char *name, struct error *err)
{
	const struct layout *layout = list->request.layout;
	const char *gone = ckpt_name_read_gone(name);
	struct stat st;
	bool ours = layout_is_native(layout), inside;
	if (gone) { /* perhaps one of many that are just being removed */
		list->leftovers += gone_is_known(layout, gone);
		return STATUS_OK;
	}
	struct list_entry entry = {.name = xstrdup(name)};
	if (!layout_reads(layout, name, &entry.step, &inside)) {
		list->others[list->other_count++] = entry.name;
		return STATUS_OK;
	}
	entry.unfinished = ours && *name == '.';
	if (!ours && fstatat(list->descriptor, name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		entry.link = S_ISLNK(st.st_mode);
		if (!entry.link || fstatat(list->descriptor, name, &st, 0) == 0)
			entry.directory = S_ISDIR(st.st_mode);
	}
	entry.own = inside && (!strpbrk(name, "0123456789") || strncmp(name, "last", 4) == 0);
	/* A link without a step of its own is another name of what it leads to. */
	enum status status = !inside	  ? STATUS_OK
			     : entry.link ? STATUS_NO
					  : framework_read_step(list, &entry, err);
	if (status == STATUS_OK)
		list->entries[list->entry_count++] = entry;
	else
		list->others[list->other_count++] = entry.name;
	return status == STATUS_NO ? STATUS_OK : status;
}

static enum status read_names(struct list *list, struct error *err)
{
	struct file_names names = {0};
	enum status status =
		file_read_names(list->descriptor, list->request.directory, &names, err);
	list->entries = xcalloc(names.count + 1, sizeof(*list->entries));
	list->others = xcalloc(names.count + 1, sizeof(*list->others));
	list->marks = xcalloc(names.count + 1, sizeof(*list->marks));
	bool ours = layout_is_native(list->request.layout); /* their marks are inside */
	for (size_t i = 0; i < names.count && status == STATUS_OK; i++) {
		struct error why;
		const char *name = names.names[i];
		struct list_mark *mark = &list->marks[list->mark_count];
		status = !ours && reads_mark(list->request.layout, name, mark)
				 ? add_mark(list, name, mark, &why)
				 : add_entry(list, name, &why);
		if (status != STATUS_OK)
			error_set(err, status, "%s/%s", list->request.directory, why.text);
	}
	file_names_release(&names);
	if (list->entry_count)
		qsort(list->entries, list->entry_count, sizeof(*list->entries), by_step);
	if (list->other_count) /* messages name the first three */
		qsort(list->others, list->other_count, sizeof(*list->others), by_text);
	return status;
}

/* Make an item of each step, of frameworks, or of each entry. */
static void make_items(struct list *list)
{
	bool ours = layout_is_native(list->request.layout);
	list->items = xcalloc(list->entry_count + 1, sizeof(*list->items));
	for (size_t i = 0; i < list->entry_count; i++) {
		const struct list_entry *entry = &list->entries[i], *before = entry - 1;
		if (i > 0 && !ours && !entry->own && !before->own && entry->step == before->step) {
			list->items[list->count - 1].count++;
			continue;
		}
		struct list_item *item = &list->items[list->count++];
		item->first = i;
		item->count = 1;
		item->checkpoint.step = entry->step;
		snprintf(item->checkpoint.name, sizeof(item->checkpoint.name), "%.255s",
			entry->name);
	}
}

enum status list_inspect(const struct list *list, struct list_item *item, struct error *err)
{
	const struct list_request *request = &list->request;
	return layout_is_native(request->layout)
		       ? native_inspect(request->directory, list->entries[item->first].name,
				 request->contents, &item->checkpoint, err)
		       : framework_inspect(list, item, err);
}

static enum status read_one(void *context, size_t i, struct error *err)
{
	struct list *list = context;
	enum status status = list_inspect(list, &list->items[i], err);
	if (status == STATUS_NO) { /* it was in the list, and is gone now */
		list->items[i].count = 0;
		list_item_release(&list->items[i]);
	}
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
	if (status != STATUS_OK)
		return status;
	make_items(list);
	const size_t count = list->count;
	if (!request->names_only)
		status = parallel(count, count > FEW ? THREADS_MAX : 1, read_one, list, err);
	list->count = 0;
	for (size_t i = 0; i < count; i++)
		if (list->items[i].count && i == list->count)
			list->count++;
		else if (list->items[i].count)
			list->items[list->count++] = list->items[i];
	list->vanished = list->count < count;
	for (size_t i = 0; i < list->count && !layout_is_native(request->layout); i++)
		framework_doubt(list, i);
	protect_tracked(list);
	return status;
}

void list_item_release(struct list_item *item)
{
	if (item->files)
		manifest_release(item->files);
	free(item->files);
	item->files = NULL;
}

void list_release(struct list *list)
{
	for (size_t i = 0; i < list->entry_count; i++)
		free(list->entries[i].name);
	for (size_t i = 0; i < list->other_count; i++)
		free(list->others[i]);
	for (size_t i = 0; i < list->count; i++)
		list_item_release(&list->items[i]);
	free(list->entries);
	free(list->others);
	free(list->marks);
	free(list->items);
	if (list->descriptor >= 0)
		close(list->descriptor);
	*list = (struct list){.descriptor = -1};
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
static enum status follow(const struct following *from, const char *name, struct error *err)
{
	struct list *list = from->list;
	char at[PATH_MAX];
	struct stat st;
	char *link = xprintf("%s/%s", from->directory, name);
	bool leads = realpath(link, at); /* if not nowhere, or in a circle */
	enum status status = leads || errno == ENOENT || errno == ELOOP || errno == ENOTDIR
				     ? STATUS_OK
				     : error_errno(err, errno, "follow the link %s", link);
	for (char *end = leads ? at + strlen(at) : at; end && end > at; end = strrchr(at, '/')) {
		*end = '\0';
		if (!*at || stat(at, &st) < 0)
			continue;
		for (size_t i = 0; i < list->count; i++)
			for (size_t k = 0; k < list->items[i].count; k++) {
				const struct list_entry *entry =
					&list->entries[list->items[i].first + k];
				if (entry->device == st.st_dev && entry->inode == st.st_ino &&
					!entry->link)
					list_stay(&list->items[i].checkpoint, name,
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

/* Whether another name in DIR may be a link of the user's: not "latest", which is ours. */
static bool may_be_link(const struct list *list, const char *name)
{
	return !layout_is_native(list->request.layout) || strcmp(name, CKPT_LATEST) != 0;
}

enum status list_protect(struct list *list, struct error *err)
{
	const struct following from = {list, list->request.directory};
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
			if (entry->link)
				list_stay(&list->items[i].checkpoint, "it is a symbolic link", "");
			if (entry->link)
				status = follow(&from, entry->name, err);
		}
	for (size_t i = 0; i < list->other_count && status == STATUS_OK; i++)
		if (may_be_link(list, list->others[i]) &&
			fstatat(list->descriptor, list->others[i], &st, AT_SYMLINK_NOFOLLOW) == 0 &&
			S_ISLNK(st.st_mode))
			status = follow(&from, list->others[i], err);
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
			status = list_walk(root, follow_inside, &from, err);
			close(root);
		} else if (errno != ENOENT && errno != ENOTDIR) {
			status = error_errno(err, errno, "open %s", path);
		}
		free(path);
	}
	for (size_t i = 0; newest && *item->best && i < list->count; i++)
		if (strcmp(list->items[i].checkpoint.name, item->best) == 0)
			list_stay(
				&list->items[i].checkpoint, "the newest one calls it the best", "");
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
		const char *name = list->others[i], *at = target;
		ssize_t got = readlinkat(list->descriptor, name, target, sizeof(target) - 1);
		if (got < 0 || !may_be_link(list, name))
			continue;
		target[got] = '\0';
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

/* Names, of which the first three are listed. */
struct some {
	struct text text;
	size_t count;
};

static void add_some(struct some *some, const char *name)
{
	if (some->count++ < 3)
		text_addf(&some->text, "%s%s", some->count > 1 ? ", " : "", name);
}

/* Whether a name in DIR that no layout reads looks like that of a checkpoint. */
static bool looks_like_one(const struct list *list, const char *name)
{
	static const char logs[] =
		".* core.* *tfevents* *.log *.out *.err *.txt *.json *.jsonl *.csv *.yaml *.yml "
		"*.html *.png *.py *.sh *.lock";
	struct stat st;
	return strpbrk(name, "0123456789") && !pattern_any(logs, name, NULL) &&
	       fstatat(list->descriptor, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       (S_ISDIR(st.st_mode) ? framework_has_files(list->descriptor, name)
				    : S_ISREG(st.st_mode) && st.st_size > LARGE);
}

enum status list_confirm_none(const struct list *list, struct error *err)
{
	const char *directory = list->request.directory;
	struct some strange = {0}, other = {0};
	enum status status;
	for (size_t i = 0; i < list->count; i++)
		if (list->items[i].checkpoint.state == CHECKPOINT_UNKNOWN_FORM)
			add_some(&strange, list->items[i].checkpoint.name);
	for (size_t i = 0; i < list->other_count; i++)
		if (looks_like_one(list, list->others[i]))
			add_some(&strange, list->others[i]);
		else if (*list->others[i] != '.')
			add_some(&other, list->others[i]);
	if (*list->tracker.broken)
		status = error_set(err, STATUS_TEMPORARY,
			"%s has no complete checkpoint, and the tracker file %s names one that no "
			"layout reads: %s",
			directory, list->request.layout->tracker, list->tracker.line);
	else if (strange.count)
		status = error_set(err, STATUS_TEMPORARY,
			"%s: no layout reads %s%s, which may be checkpoints: say how with "
			"--pattern or --layout, or move them away",
			directory, text_string(&strange.text), strange.count > 3 ? " ..." : "");
	else
		status = error_set(err, STATUS_NO, "there is no complete checkpoint in %s%s%s%s",
			directory, other.count ? " (it has other entries: " : "",
			text_string(&other.text),
			other.count > 3	  ? " ...)"
			: other.count > 0 ? ")"
					  : "");
	text_release(&strange.text);
	text_release(&other.text);
	return status;
}
