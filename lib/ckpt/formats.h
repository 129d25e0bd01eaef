/* SPDX-License-Identifier: MIT */
/*
 * The formats of files: whether a file shows that it is cut short or impossible, and what may be
 * read in it without running it. A file of a framework has no checksum, so its own structure has to
 * say that it is whole.
 *
 * The first bytes decide what a file is, not the ending of its name. The name only says what must
 * be there: nothing but a zip archive or a pickle is written under .pt, for instance.
 *
 * Answers: STATUS_OK: nothing is wrong, as far as the format tells. STATUS_NO: the file is shown to
 * be damaged; why names the file and says what is wrong. Others: it could not be read, which says
 * nothing about the file.
 */
#ifndef CKPT_FORMATS_H
#define CKPT_FORMATS_H

#include <json-c/json_object.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"

/*
 * Check the file root/name, which has this number of bytes. A symbolic link is followed. Of an
 * index of TensorFlow, PREFIX.index, also the data files PREFIX.data-IIIII-of-NNNNN: each ends
 * where its last tensor ends, and a small tensor of it has its checksum.
 */
enum status format_check(int root, const char *name, uint64_t bytes, struct error *why);

/* Read a small file. STATUS_NO: it is missing, too large, or not a file. */
enum status format_read(
	int root, const char *name, size_t limit, struct text *text, struct error *why);
/* Read a JSON document. STATUS_NO: it is missing, or is no JSON document. The caller puts *object.
 */
enum status format_read_json(
	int root, const char *name, struct json_object **object, struct error *why);
/*
 * Read the whole number that a pickled dictionary has under key, in a file of torch.save (a zip
 * archive, or a bare pickle) or in a bare pickle. STATUS_NO: it cannot be found in the first 16
 * MiB.
 */
enum status format_read_number(
	int root, const char *name, const char *key, uint64_t *number, struct error *why);

#endif
