/* SPDX-License-Identifier: MIT */
/*
 * Checking files without checksums: a file in a framework's format shows whether it is cut short.
 * Content is never executed, and links are not followed.
 *
 * Answers: STATUS_OK. STATUS_NO: `why` names the file and what is wrong. Others: a file could not
 * be read.
 */
#ifndef CKPT_STRUCTURE_H
#define CKPT_STRUCTURE_H

#include <stdbool.h>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "ckpt/manifest.h"

/* The file of this name; NULL: none. files are sorted. */
const struct manifest_file *structure_find(const struct manifest *files, const char *name);
/* The last part of a name. */
const char *structure_base(const char *name);
bool structure_ends(const char *name, const char *end);

/*
 * Check a file by the ending of its name: .safetensors (the header has the length), .pt .pth .bin
 * .ckpt .distcp (a zip archive has its directory at the end; in another format, only an empty file
 * is refused), .index of TensorFlow (a table with a footer). Others are not checked.
 */
enum status structure_check(int root, const struct manifest_file *file, struct error *why);
/* Check all files whose names begin with prefix. */
enum status structure_check_all(
	int root, const struct manifest *files, const char *prefix, struct error *why);
/*
 * Check PyTorch's distributed checkpoints: beside .distcp files there must be .metadata, and the
 * files that it names.
 */
enum status structure_check_shards(int root, const struct manifest *files, struct error *why);

/* Read a small file. STATUS_NO: it is missing, too large, or not a file. */
enum status structure_read(
	int root, const char *name, size_t limit, struct text *text, struct error *why);
/*
 * Read the only line of a file, and leave out blanks at its end. STATUS_NO: there is no such file.
 * STATUS_DAMAGED: it does not hold exactly one line; see `why`.
 */
enum status structure_read_line(int root, const char *name, char line[256], struct error *why);
/* Read a JSON file. NULL: see *status; STATUS_NO: it is missing, or not JSON. */
struct json_object *structure_read_json(
	int root, const char *name, enum status *status, struct error *why);

/*
 * Check that no file is missing where names say how many there are, such as
 * model-00002-of-00003.safetensors.
 */
enum status structure_check_numbered(const struct manifest *files, struct error *why);

/*
 * Read a number that torch.save wrote under this key of a dictionary. STATUS_NO: it cannot be found
 * in the first 16 MiB.
 */
enum status structure_read_number(
	int root, const char *name, const char *key, uint64_t *number, struct error *why);

#endif
