/* SPDX-License-Identifier: MIT */
/*
 * The rules of a layout: when a checkpoint is complete. Pure, except that files are read. Names are
 * relative to the checkpoint's directory, or to DIR if it is files.
 *
 *   when P ...        the rules up to the next "when" hold for checkpoints that have one of these;
 *                     a checkpoint for which no "when" holds has an unknown form
 *   known P ...       it has one of these; else the form is unknown
 *   any P ...         it has one of these
 *   if P : Q ...      if it has P, it has one of Q; here and in "when" P may be a directory
 *   filled P ...      if it has such files, not all of them are empty
 *   each D : Q ...    each directory D has one of Q
 *   same D : Q ...    each directory D has one of Q, or none has
 *   beside P : Q ...  each directory with a P has one of Q
 *   all P             the files P, of each name without {i}, {j} and {n}, are all: {i} of {n},
 *                     from 0 or 1; or {i}, and perhaps {j}, from 0 to the highest
 *   json P            the files P are JSON documents
 *   json P KEY        and, if they have KEY, it is not null
 *   json P KEY=STEP   and their KEY is the step
 *   listed P          the first line of each file P names what is there, beside it
 *   listed P KEY      the JSON documents P name, under KEY, what is there, and at least one file
 *   listed P *END     the pickles P end, and name files that end in END and are there
 *   world P KEY[*KEY] Q [KEY2]
 *                     the product of the numbers in one pickle P is how many files Q there are;
 *                     nothing, if there is no P, no Q or no number, or if P has KEY2, and that is
 *                     not the number of the first KEY
 *   number P KEY : Q ...
 *                     if one pickle P says that KEY is 1 or more, it has one of Q
 */
#ifndef CKPT_RULES_H
#define CKPT_RULES_H

#include <json-c/json_object.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "ckpt/ckpt.h"
#include "ckpt/manifest.h"

/* What is in the checkpoint. */
struct rules_item {
	uint64_t step;
	int root;	       /* the open directory to which names are relative */
	struct manifest files; /* sorted by name */
	char **directories;    /* all directories in it, also empty ones */
	size_t directory_count;
	bool told; /* set to true if a rule "world" has found out how many files there must be */
	struct json_object *document; /* the last one that rules_read_json has read, or NULL */
	const char *document_name;
};

/* Evaluate the rules, then check the formats of all files. why: what is missing or damaged, or
 * could not be read. */
enum checkpoint_state rules_check(const char *rules, struct rules_item *item, struct error *why);
/* A file, or, with directories, a directory that fits the patterns; NULL: there is none. What is in
 * .cache/ does not count. */
const char *rules_find(const struct rules_item *item, const char *patterns, bool directories);
/*
 * Read a JSON document in it. It is read once, whoever asks: it stays in item->document until
 * another is read, and the owner of item puts the last one. name stays valid as long as item.
 * STATUS_NO: it is missing, or is no JSON document.
 */
enum status rules_read_json(struct rules_item *item, const char *name,
	struct json_object **document, struct error *why);

#endif
