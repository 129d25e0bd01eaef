/* SPDX-License-Identifier: MIT */
/*
 * The rules of a layout: when a checkpoint is complete. Pure, except that some rules read a file of
 * the checkpoint. Names are relative to the checkpoint's directory, or to DIR if it is files.
 *
 *   when P ...        the rules up to the next "when" hold for checkpoints that have one of these;
 *                     a checkpoint for which no "when" holds has an unknown form
 *   known P ...       it has one of these; else the form is unknown
 *   any P ...         it has one of these
 *   none P ...        it has no file or directory like this; here and in "when" and "if" P may be
 *                     a directory
 *   if P : Q ...      if it has P, it has one of Q
 *   filled P ...      if it has such files, not all of them are empty
 *   each D : Q ...    each directory D has one of Q; ../Q is a file beside D
 *   same D : Q ...    each directory D has one of Q, or none has
 *   beside P : Q ...  each directory with a file P has one of Q
 *   numbered P        the files P with {i} and {n} are all of n, from 0 or 1
 *   grid P            the files P with {i}, and perhaps {j}, are all from 0 to the highest
 *   json P            the files P are JSON documents
 *   json P KEY        and, if they have KEY, it is not null
 *   json P KEY=V      and their KEY is V
 *   path F            the line of the file F is a directory in it, if there is an F
 *   table P           the data files of the TensorFlow indexes P are as long as these say
 *   listed P KEY      the documents P name, under KEY, files that are there, and at least one
 *   pickled F *END    the pickles F end, and name files that end in END and are there
 *   world P KEY[*KEY] Q [KEY2]
 *                     the product of the numbers in one pickle P is how many files Q there are
 *                     (different {i} and {j}, if Q has them); nothing, if there is no P, no Q or
 *                     no number, or if P has KEY2, and that is not the number of the first KEY
 *   number P KEY : Q ...
 *                     if one pickle P says that KEY is 1 or more, it has one of Q
 *
 * STEP in a rule is the step.
 */
#ifndef CKPT_RULES_H
#define CKPT_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "ckpt/manifest.h"

struct rules_item {
	uint64_t step;
	int root;		      /* the open directory to which names are relative */
	const struct manifest *files; /* sorted by name */
	char *const *directories;     /* all directories in it, also empty ones; then NULL */
	bool *told; /* set to true if a rule "world" has found out how many files there must be */
};

enum rules_answer { RULES_HOLD, RULES_BROKEN, RULES_DAMAGED, RULES_UNKNOWN_FORM, RULES_UNREADABLE };

/* Evaluate. why: what is missing or damaged, or could not be read. */
enum rules_answer rules_check(const char *rules, const struct rules_item *item, struct error *why);

#endif
