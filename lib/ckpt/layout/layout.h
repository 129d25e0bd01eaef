/* SPDX-License-Identifier: MIT */
/*
 * How the checkpoints of training frameworks lie in a directory DIR, as data: which names are
 * checkpoints and of which step, when one is complete by the framework's own rule, and which file
 * says where the framework resumes. One const struct for each, in a file of its own; layout.c lists
 * them. What is done with them, alike for all, is in ckpt/scan.h.
 *
 * A name that a layout does not read exactly is nothing of its, and is never touched. Our own
 * layout, "native" (ckpt/ckpt.h), is one of them; only it knows writers, marks and checksums.
 */
#ifndef CKPT_LAYOUT_H
#define CKPT_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "ckpt/content/manifest.h"
#include "ckpt/content/metrics.h"
#include "ckpt/layout/shards.h"

#define LAYOUT_NAME_SIZE 256 /* any name in a directory */

struct layout;
struct checkpoint;

/* How one DIR is read. */
struct layout_choice {
	const struct layout *layout;
	const char *pattern; /* of the layout "pattern": "model-{step}.pt" */
};

/* What a name in DIR says. */
struct layout_name {
	uint64_t step;	  /* at most CKPT_NUMBER_MAX */
	uint64_t version; /* of several with one step, rising; else 0 */
	unsigned group;	  /* those of 0 come before all others, and only they are offered */
	size_t length;	  /* the checkpoint's name is this long: other entries may begin with it */
};

/* One checkpoint, as it was found. */
struct layout_item {
	const char *name;
	uint64_t step;
	int root;		      /* names of files are relative to it: its directory, or DIR */
	bool directory;		      /* else one file, or several whose names begin with name */
	const struct manifest *files; /* sorted, without checksums */
	bool tracked;		      /* the tracker names this step or a later one */
};

/* What a layout reads of one beside whether it is complete. Zeroed before. */
struct layout_found {
	struct shards shards; /* of many ranks: whether those are all is decided by the caller */
	struct metrics metrics;
};

/* Where the framework says that it resumes. */
struct layout_tracker {
	bool found;		       /* the file is there */
	bool named;		       /* and names a checkpoint: */
	char name[LAYOUT_NAME_SIZE];   /* empty: only by its step */
	uint64_t step;		       /* what is newer is protected, too */
	char broken[LAYOUT_NAME_SIZE]; /* it is there, but names none: why */
};

enum layout_shape { LAYOUT_DIRECTORY = 1, LAYOUT_FILE = 2, LAYOUT_EITHER = 3 };

struct layout {
	const char *name;  /* of --layout */
	const char *title; /* in messages */
	enum layout_shape shape;

	/* What its checkpoints are called, as "checkpoint-{step}", NULL-terminated; NULL: read says
	 * it (or --pattern). */
	const char *const *names;
	bool (*read)(const char *entry, struct layout_name *name);

	/* Files of which one at least shows that a directory of such a name is the framework's,
	 * NULL-terminated. NULL: the name shows it. */
	const char *const *marks;

	/* What a name must hold to show by itself that the layout is at home; NULL: nothing. */
	const char *sign;
	/* What the name of a directory in one holds while it is not finished; NULL: nothing. */
	const char *unfinished;
	/* Others write such files in directories of such names, too: it is at home only where the
	 * name fits no other layout. */
	bool general;

	/*
	 * Of a layout that knows more than names and files: inspect one. STATUS_NO: it is gone.
	 * Every other finding is in found->state. NULL: check does it.
	 */
	enum status (*inspect)(const char *directory, const char *entry, bool contents,
		struct checkpoint *found, struct error *err);

	/*
	 * STATUS_OK: complete, if all shards found are there. STATUS_NO: it is not, why says so.
	 * Others: could not be asked. Called only where a mark is there.
	 */
	enum status (*check)(
		const struct layout_item *item, struct layout_found *found, struct error *why);

	const char *tracker; /* its tracker's name in DIR; NULL: has none */
	/* Read it from the open DIR. tracker is zeroed. */
	enum status (*track)(int directory, struct layout_tracker *tracker, struct error *err);
	/* The tracker is a checkpoint itself, where it is a file and its step can be read. */
	bool tracker_is_checkpoint;
	/* The framework writes the tracker when it has saved: what is newer is not finished. */
	bool tracker_commits;

	/* The name of another checkpoint that this one's framework will come back to, such as the
	 * best so far; empty: none. May be NULL. */
	enum status (*depends)(
		const struct layout_item *item, char name[LAYOUT_NAME_SIZE], struct error *err);
};

/* Unchanged for so long: no longer being written. Milliseconds. */
#define LAYOUT_SETTLED (15 * 60 * 1000)

extern const struct layout layout_native, layout_hf, layout_lightning, layout_deepspeed,
	layout_megatron, layout_tensorflow, layout_orbax, layout_dcp, layout_pattern;

/* Our own: "native". */
extern const struct layout_choice layout_ours;
bool layout_is_native(const struct layout_choice *choice);

/* What --layout and --pattern say (NULL: not given) of one DIR. */
enum status layout_choose(const char *directory, const char *layout, const char *pattern,
	struct layout_choice *choice, struct error *err);
/*
 * "DIR" or "DIR:LAYOUT". After the last colon stands a layout, or part of DIR's name:
 * where it holds a slash ("a:b/"), or is no layout and a DIR of that name is there. STATUS_USAGE:
 * it is neither. Then as layout_choose.
 */
enum status layout_read_location(
	const char *text, char directory[4096], struct layout_choice *choice, struct error *err);

/* "native", "hf" ... into a choice; STATUS_USAGE: there is no such layout, err lists them. */
enum status layout_named(const char *name, struct layout_choice *choice, struct error *err);
/* A pattern with {step} once; '*' is anything but '/' and control characters. */
enum status layout_of_pattern(const char *pattern, struct layout_choice *choice, struct error *err);

/*
 * Look which layout DIR has. Nothing, or none that is known, or no DIR: native. STATUS_USAGE: two
 * (err names both).
 */
enum status layout_detect(const char *directory, struct layout_choice *choice, struct error *err);

/* Whether DIR may hold checkpoints of ours: some are there, or none of any layout. Else
 * STATUS_USAGE. */
enum status layout_check_native(const char *directory, struct error *err);

/* Whether a name in DIR is (a part of) a checkpoint. None with a control character is: paths are
 * printed, one a line, and read by scripts. */
bool layout_reads(const struct layout_choice *choice, const char *entry, struct layout_name *name);

/* What people call it: "hf"; "native". */
const char *layout_name(const struct layout_choice *choice);

/* The number at text, of one to 18 digits; their count, 0: none. */
size_t layout_number(const char *text, uint64_t *number);
/*
 * Whether all of text is as pattern says, in which {0}, {1}, {2} and {step} are such numbers and
 * '*' is anything. Only numbers that stand in the pattern are set.
 */
enum { LAYOUT_STEP = 3, LAYOUT_NUMBERS };
bool layout_matches(const char *pattern, const char *text, uint64_t numbers[LAYOUT_NUMBERS]);

/*
 * Read a tracker of one line, in which pattern finds the step: found, and either broken or named
 * with the line as its name.
 */
enum status layout_tracker_line(int directory, const char *file, const char *pattern,
	struct layout_tracker *tracker, struct error *err);

/* DeepSpeed's rule for the files below prefix ("" or ending in '/'), which others contain. */
enum status layout_deepspeed_check(const struct layout_item *item, const char *prefix,
	struct shards *shards, struct error *why);

#endif
