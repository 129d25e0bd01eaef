/* SPDX-License-Identifier: MIT */
/*
 * What a file shows of its own completeness, where there are no checksums: the formats in which
 * frameworks save say inside how long they should be. Nothing of the content is executed, links are
 * not followed.
 *
 * Answers: STATUS_OK; STATUS_NO, why says which file lacks what; others: could not be read.
 */
#ifndef CKPT_STRUCTURE_H
#define CKPT_STRUCTURE_H

#include <stdbool.h>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "ckpt/content/manifest.h"

/* The file of that name; NULL: none. files are sorted. */
const struct manifest_file *structure_find(const struct manifest *files, const char *name);
/* The last part of a name. */
const char *structure_base(const char *name);
bool structure_ends(const char *name, const char *end);

/*
 * One file, by its name: .safetensors (its header says the length), .pt .pth .bin .ckpt .distcp (a
 * zip archive has its directory at the end; other formats only have to hold something), .index of
 * TensorFlow (a table with its footer). Others are fine.
 */
enum status structure_check(int root, const struct manifest_file *file, struct error *why);
/* All whose names begin with prefix. */
enum status structure_check_all(
	int root, const struct manifest *files, const char *prefix, struct error *why);
/*
 * PyTorch's distributed checkpoints: wherever there is a .distcp file there is .metadata beside it,
 * and whatever that names is there, too.
 */
enum status structure_check_shards(int root, const struct manifest *files, struct error *why);

/* A whole small file. STATUS_NO: not there, too large, or no file. */
enum status structure_read(
	int root, const char *name, size_t limit, struct text *text, struct error *why);
/*
 * The one line of a small file, without blanks at its end. STATUS_NO: there is no such file.
 * STATUS_DAMAGED: it is something else, or empty; why says what.
 */
enum status structure_read_line(int root, const char *name, char line[256], struct error *why);
/* The same as JSON; NULL with STATUS_NO in *status: it is none. */
struct json_object *structure_read_json(
	int root, const char *name, enum status *status, struct error *why);

/*
 * Files of which each names how many there are, as model-00002-of-00003.safetensors: all are there.
 */
enum status structure_check_numbered(const struct manifest *files, struct error *why);

/*
 * The step that PyTorch Lightning wrote into a .ckpt file. STATUS_NO: it cannot be found.
 */
enum status structure_lightning_step(int root, const char *name, uint64_t *step, struct error *why);

#endif
