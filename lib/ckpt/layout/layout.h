/* SPDX-License-Identifier: MIT */
/*
 * The layouts: how a training framework arranges its checkpoints in a directory DIR. A layout says
 * which names are checkpoints and of which step, when a checkpoint is complete by the framework's
 * own rule, and which file says where the framework resumes. Each is a constant struct in a file of
 * its own; layout.c lists them; ckpt/scan.h works with all of them alike.
 *
 * A name that a layout cannot read exactly is not one of its checkpoints, and is never touched. Our
 * own layout, "native" (ckpt/ckpt.h), is one of them; only it has writers, marks and checksums.
 */
#ifndef CKPT_LAYOUT_H
#define CKPT_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "ckpt/layout/shards.h"
#include "ckpt/manifest.h"
#include "ckpt/metrics.h"

#define LAYOUT_NAME_SIZE 256 /* enough for any name in a directory */

struct layout;
struct checkpoint;

/* How to read a DIR. */
struct layout_choice {
	const struct layout *layout;
	const char *pattern; /* for the layout "pattern": "model-{step}.pt" */
};

/* What a name in DIR means. */
struct layout_name {
	uint64_t step;	  /* at most CKPT_NUMBER_MAX */
	uint64_t version; /* tells checkpoints of one step apart; a later one has a higher number */
	unsigned group;	  /* group 0 is listed first, and only its checkpoints are used to resume */
	size_t length; /* length of the checkpoint's name; all its entries begin with that name */
};

/* A checkpoint to check. */
struct layout_item {
	const char *name;
	uint64_t step;
	int root;	/* its directory, or DIR; names of files are relative to it */
	bool directory; /* false: it is a file, or files whose names begin with name */
	const struct manifest *files; /* sorted, without checksums */
	bool tracked;		      /* the tracker names this or a later step */
};

/* What else a check finds out. The caller zeroes it. */
struct layout_found {
	struct shards shards; /* files of many ranks; the caller decides whether all are there */
	struct metrics metrics;
};

/* The framework's own note of the checkpoint from which it will resume. */
struct layout_tracker {
	bool found;		       /* the file exists */
	bool named;		       /* it names a checkpoint, by name and step: */
	char name[LAYOUT_NAME_SIZE];   /* empty: only by step */
	uint64_t step;		       /* newer checkpoints are protected, too */
	char broken[LAYOUT_NAME_SIZE]; /* why the file names no checkpoint */
};

enum layout_shape { LAYOUT_DIRECTORY = 1, LAYOUT_FILE = 2, LAYOUT_EITHER = 3 };

struct layout {
	const char *name;  /* for --layout */
	const char *title; /* in messages */
	enum layout_shape shape;

	/* Patterns of its checkpoints' names, such as "checkpoint-{step}", then NULL. NULL: use
	 * read (or --pattern). */
	const char *const *names;
	bool (*read)(const char *entry, struct layout_name *name);

	/* A directory with such a name belongs to the framework if it has one of these files; then
	 * NULL. NULL: the name is enough. */
	const char *const *marks;

	/* To detect the layout, a name must also have this in it; NULL: any of its names does. */
	const char *sign;
	/* A directory in a checkpoint with this in its name shows an unfinished save. Or NULL. */
	const char *unfinished;
	/* Other frameworks also write such files in directories with such names: an entry that
	 * shows another layout does not count for this one. */
	bool general;

	/*
	 * Inspect a checkpoint, for a layout that knows more than names and files (NULL: check is
	 * called). STATUS_NO: it is gone. All other findings are in found->state.
	 */
	enum status (*inspect)(const char *directory, const char *entry, bool contents,
		struct checkpoint *found, struct error *err);

	/*
	 * Check a checkpoint that has one of `marks`. STATUS_OK: it is complete if its shards are.
	 * STATUS_NO: it is not complete; see why. Others: it could not be asked.
	 */
	enum status (*check)(
		const struct layout_item *item, struct layout_found *found, struct error *why);

	const char *tracker; /* the tracker's name in DIR; NULL: there is none */
	/* Read the tracker from the open DIR. tracker is zeroed. */
	enum status (*track)(int directory, struct layout_tracker *tracker, struct error *err);
	/* The tracker itself is a checkpoint, unless it is a link or its step cannot be read. */
	bool tracker_is_checkpoint;
	/* The framework writes the tracker after a save, so newer checkpoints are not finished. */
	bool tracker_commits;

	/* Find another checkpoint that the framework will need after resuming from this one, such
	 * as the best so far; empty: none. May be NULL. */
	enum status (*depends)(
		const struct layout_item *item, char name[LAYOUT_NAME_SIZE], struct error *err);
};

/* Milliseconds; a checkpoint that has not changed for this time is not being written. */
#define LAYOUT_SETTLED (15 * 60 * 1000)

extern const struct layout layout_native, layout_hf, layout_lightning, layout_deepspeed,
	layout_megatron, layout_tensorflow, layout_orbax, layout_dcp, layout_pattern;

/* Our own layout, "native". */
extern const struct layout_choice layout_ours;
bool layout_is_native(const struct layout_choice *choice);

/* Choose by --layout and --pattern (NULL: not given), or by looking into DIR. */
enum status layout_choose(const char *directory, const char *layout, const char *pattern,
	struct layout_choice *choice, struct error *err);
/*
 * Read "DIR" or "DIR:LAYOUT", then choose as layout_choose. The part after the last colon is a
 * layout if it is the name of one. Otherwise it is a part of DIR if it has a slash ("a:b/"), or if
 * a directory with the whole name exists. STATUS_USAGE: it is neither.
 */
enum status layout_read_location(
	const char *text, char directory[4096], struct layout_choice *choice, struct error *err);

/* Choose by a name, "native", "hf" ... STATUS_USAGE: there is no such layout; err lists them. */
enum status layout_named(const char *name, struct layout_choice *choice, struct error *err);
/* Choose by a pattern with one {step}; '*' is anything except '/' and control characters. */
enum status layout_of_pattern(const char *pattern, struct layout_choice *choice, struct error *err);

/*
 * Choose by the names in DIR. If they fit no layout, or DIR is missing: native. STATUS_USAGE: they
 * fit two (err names both).
 */
enum status layout_detect(const char *directory, struct layout_choice *choice, struct error *err);

/* STATUS_OK: DIR has checkpoints of ours, or of no layout. STATUS_USAGE: of another layout. */
enum status layout_check_native(const char *directory, struct error *err);

/* Whether a name in DIR is a checkpoint, or a part of one. A name with a control character is not,
 * because scripts read paths line by line. */
bool layout_reads(const struct layout_choice *choice, const char *entry, struct layout_name *name);

/* The layout's name for users: "hf", "native". */
const char *layout_name(const struct layout_choice *choice);

/* Read a number of one to 18 digits at text. Returns how many digits it has; 0: there is none. */
size_t layout_number(const char *text, uint64_t *number);
/*
 * Whether text matches pattern, in which {0}, {1}, {2} and {step} are numbers (layout_number) and
 * '*' is anything. Sets only the numbers that are in the pattern.
 */
enum { LAYOUT_STEP = 3, LAYOUT_NUMBERS };
bool layout_matches(const char *pattern, const char *text, uint64_t numbers[LAYOUT_NUMBERS]);

/*
 * Read a tracker of one line, in which pattern finds the step. Sets found, and broken or named; the
 * line is the name.
 */
enum status layout_tracker_line(int directory, const char *file, const char *pattern,
	struct layout_tracker *tracker, struct error *err);

/*
 * DeepSpeed's rule for its files below prefix ("" or ending in '/'), also in other layouts. named:
 * "latest" names this save, so rank 0 has written its files.
 */
enum status layout_deepspeed_check(const struct layout_item *item, const char *prefix, bool named,
	struct shards *shards, struct error *why);

#endif
