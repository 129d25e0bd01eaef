/* SPDX-License-Identifier: MIT */
/*
 * The checkpoints in DIR, in any layout, read once: names, states, what must not be removed. A step
 * is one checkpoint, however many files or directories have its number.
 *
 * States, doubt, and what protects a checkpoint are in the manual, ckpt-layouts(7). Symbolic links
 * to files in a checkpoint of a framework are read as files.
 *
 * Answers as in ckpt.h.
 */
#ifndef CKPT_LIST_H
#define CKPT_LIST_H

#include "ckpt/ckpt.h"
#include "ckpt/layouts.h"
#include "ckpt/manifest.h"

struct list_entry {
	char *name; /* in DIR */
	uint64_t step;
	uint64_t device, inode;
	bool own;  /* the trainer's own, such as last.ckpt: its step is in its content */
	bool link; /* a symbolic link */
	bool directory;
	bool unfinished; /* ours: .tmp-... */
};

/* One checkpoint: entries[first] to entries[first + count - 1]. */
struct list_item {
	size_t first, count;
	struct checkpoint checkpoint;
	struct manifest *files; /* frameworks: names with {n} and so on in place of numbers */
	char best[256];		/* the name of another that it calls its best; "": none */
};

/* A file beside a framework's checkpoint that says something about it. */
struct list_mark {
	enum ckpt_beside kind;
	char name[256];
	uint64_t step;
	int64_t time; /* when it was made, by the filesystem's clock */
};

struct list_request {
	const char *directory;
	const struct layout *layout;
	bool contents;	 /* ours: compare the checksums, too */
	bool names_only; /* ours: inspect none; see list_inspect */
	const uint64_t
		*saved; /* the step that the run's store says was saved complete; NULL: none */
};

/* Zeroed, with descriptor -1: empty. */
struct list {
	struct list_request request;
	int descriptor; /* of DIR */
	struct list_entry *entries;
	size_t entry_count;
	struct list_item *items; /* by rising step; of ours, unfinished ones after the others */
	size_t count;
	struct {
		bool found; /* there is such a file */
		bool named; /* it names a step: */
		uint64_t step;
		char line[256];
		char broken[256]; /* why it names none; "": it is not broken */
	} tracker;
	char **others; /* names in DIR that the layout does not read */
	size_t other_count;
	size_t leftovers; /* how many names, ours or of the layout, are those of hidden ones
			     (gone.h) */
	struct list_mark *marks;
	size_t mark_count;
	bool vanished; /* an entry was gone when it was inspected */
};

/* Read all. STATUS_NO: there surely is no DIR (directory.h). Release list in any case. */
enum status list_read(const struct list_request *request, struct list *list, struct error *err);
void list_release(struct list *list);

/* Inspect one again, or, with names_only, for the first time, without a comparison with others.
 * STATUS_NO: it is gone. Its files belong to the item, and have to be released if it is a copy. */
enum status list_inspect(const struct list *list, struct list_item *item, struct error *err);
void list_item_release(struct list_item *item);

/*
 * Set stays of each checkpoint that is a link, or that a link in DIR resolves to or into, by device
 * and inode. A link to DIR or to a directory above it protects nothing.
 */
enum status list_protect(struct list *list, struct error *err);
/* The same for links in this checkpoint, which is kept; if it is the newest, for what it calls its
 * best, too. */
enum status list_follow(
	struct list *list, const struct list_item *item, bool newest, struct error *err);
/* Whether a link in DIR names this entry, which is not there under its name any more. */
enum status list_is_wanted(
	const struct list *list, const char *entry, bool *wanted, struct error *err);

/* The newest complete checkpoint; NULL: there is none. */
const struct list_item *list_newest(const struct list *list);

/* Add to notes what a user should know: a broken tracker, one that names nothing that is there. */
void list_note(const struct list *list, struct text *notes);
/*
 * If no checkpoint was found that is complete or doubtful: whether there is surely none.
 * STATUS_TEMPORARY: there are entries that look like checkpoints, and that no rule or no layout
 * reads; err names three of them. Otherwise STATUS_NO; err names other entries, too.
 */
enum status list_confirm_none(const struct list *list, struct error *err);

#endif
