/* SPDX-License-Identifier: MIT */
/*
 * Layouts: how a training framework arranges its checkpoints in a directory DIR. A layout is a row
 * of data (layouts.c); rules.h evaluates its rules, list.h groups the names in DIR by step. Our own
 * layout, "native", has names and no rules: its checkpoints have manifests (native.h).
 *
 * Patterns, here and in rules: '*' is anything in one name, '**' anything, {step} the step, {i},
 * {j} and {n} a whole number; all else is itself. Several patterns are separated by blanks.
 */
#ifndef CKPT_LAYOUTS_H
#define CKPT_LAYOUTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct layout {
	const char *name;  /* for --layout */
	const char *names; /* patterns of the entries of DIR that are its checkpoints */
	/*
	 * Patterns of files: an entry that is a directory belongs to the framework if it has one of
	 * them. NULL: the name is enough.
	 */
	const char *marks;
	const char *rules; /* when a checkpoint is complete, one rule in a line (rules.h) */
	/* Patterns of names that say, in the checkpoint's directory or, with {step}, beside it in
	 * DIR, that it is finished (one must be there), or that it is not. NULL: none. */
	const char *done, *undone;
	/* Patterns of files of which a rule, or their names, say how many there must be, besides
	 * sets "-I-of-N" and .distcp; NULL: no others. */
	const char *proved;
	/* The file in DIR that names the checkpoint to resume from, and patterns of its line. NULL:
	 * there is none. */
	const char *tracker, *tracker_forms;
	/* Patterns of entries that are the trainer's own, whose step is in their content: the
	 * number global_step in the entry or in one of the files `inside_files` in it. */
	const char *inside, *inside_files;
	bool files;	   /* a checkpoint may be files */
	bool directories;  /* a checkpoint may be a directory */
	bool alternatives; /* two entries of one step are two saves, not two parts of one */
	/* Its files are also written by others: an entry counts only if no other layout knows it,
	 * and DIR has this layout only if it has no other one. */
	bool general;
};

/* What a user gives to say which layout; NULL: not given. */
struct layout_words {
	const char *layout, *pattern, *done, *undone, *tracker;
};

/* Our own layout. */
const struct layout *layout_ours(void);
bool layout_is_native(const struct layout *layout);

/*
 * Choose by the words, or, without --layout and --pattern, by what is in DIR. A row is found by its
 * name and pointers in it stay valid; the row of a pattern is made, and lives as long as the
 * program. STATUS_USAGE: the words are wrong, or DIR has checkpoints of two layouts: err names
 * both.
 */
enum status layout_choose(const char *directory, const struct layout_words *words,
	struct layout *layout, struct error *err);
/* Choose by what is in DIR; native if it is missing or nothing is known. Of two layouts, take the
 * one of this name (NULL: none), which was chosen before. */
enum status layout_detect(
	const char *directory, const char *before, struct layout *layout, struct error *err);
/*
 * Read "DIR", "DIR:LAYOUT" or "DIR:PATTERN", then choose. The part after the last colon is a layout
 * if it is the name of one, a pattern if it has {step}; otherwise it is a part of DIR if it has a
 * slash ("a:b/"), or if a directory with the whole name exists. STATUS_USAGE: it is neither.
 */
enum status layout_read_location(const char *text, const char *before, char directory[4096],
	struct layout *layout, struct error *err);
/* STATUS_USAGE: it cannot be read. Does not look into DIR. */
enum status layout_check_location(const char *text, struct error *err);

/* Whether a name in DIR is a checkpoint of this layout, or a part of one, by its name. *inside: its
 * step is in its content. A name with a control character is not: scripts read paths by lines. */
bool layout_reads(const struct layout *layout, const char *entry, uint64_t *step, bool *inside);

/* A number in a name that matches: its value and where its digits are. */
struct pattern_number {
	uint64_t value;
	size_t at, length;
};
enum { PATTERN_I, PATTERN_J, PATTERN_N, PATTERN_STEP, PATTERN_NUMBERS };
/* Whether text matches one of the patterns (NULL: there are none). Sets the numbers in the pattern
 * (NULL: they are not asked for). */
bool pattern_any(
	const char *patterns, const char *text, struct pattern_number numbers[PATTERN_NUMBERS]);

#endif
