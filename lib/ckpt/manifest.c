/* SPDX-License-Identifier: MIT */
#include "ckpt/manifest.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json_fields.h"
#include "base/xalloc.h"
#include "ckpt/names.h"

void manifest_release(struct manifest *manifest)
{
	for (size_t i = 0; i < manifest->count; i++)
		free(manifest->files[i].name);
	free(manifest->files);
	*manifest = (struct manifest){0};
}

uint64_t manifest_bytes(const struct manifest *manifest)
{
	uint64_t bytes = 0;
	for (size_t i = 0; i < manifest->count; i++)
		bytes += manifest->files[i].bytes;
	return bytes;
}

struct manifest_file *manifest_add(struct manifest *manifest, const char *name, uint64_t bytes)
{
	manifest->files = xgrow(
		manifest->files, manifest->count, &manifest->capacity, sizeof(*manifest->files));
	struct manifest_file *file = &manifest->files[manifest->count++];
	*file = (struct manifest_file){.name = xstrdup(name), .bytes = bytes};
	return file;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(
		((const struct manifest_file *)a)->name, ((const struct manifest_file *)b)->name);
}

void manifest_sort(struct manifest *manifest)
{
	if (manifest->count)
		qsort(manifest->files, manifest->count, sizeof(*manifest->files), by_name);
}

size_t manifest_place(const struct manifest *manifest, const char *name)
{
	size_t low = 0, high = manifest->count;
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (strcmp(manifest->files[middle].name, name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Whether a file is the same, by all that is known of both. */
static bool is_same(const struct manifest_file *a, const struct manifest_file *b)
{
	return strcmp(a->name, b->name) == 0 && a->bytes == b->bytes &&
	       (!*a->checksum || !*b->checksum || strcmp(a->checksum, b->checksum) == 0) &&
	       (!a->inode || !b->inode ||
		       (a->inode == b->inode && a->modified.tv_sec == b->modified.tv_sec &&
			       a->modified.tv_nsec == b->modified.tv_nsec));
}

const char *manifest_difference(const struct manifest *a, const struct manifest *b)
{
	for (size_t i = 0; i < a->count || i < b->count; i++)
		if (i >= a->count || i >= b->count || !is_same(&a->files[i], &b->files[i]))
			return i < a->count ? a->files[i].name : b->files[i].name;
	return NULL;
}

static void write_name(const char *name, struct text *text)
{
	if (text_is_utf8(name, strlen(name))) {
		text_add(text, "\"name\": ");
		text_add_json_string(text, name);
		return;
	}
	text_add(text, "\"name_hex\": \"");
	for (const char *at = name; *at; at++)
		text_addf(text, "%02x", (unsigned char)*at);
	text_add(text, "\"");
}

void manifest_write(const struct manifest *manifest, struct text *text)
{
	char utc[32];
	clock_format_utc(manifest->utc, utc);
	text_addf(text,
		"{\"format\": %d, \"step\": %" PRIu64 ", \"attempt\": %" PRIu64
		", \"tasks\": %" PRIu64 ", \"sharded\": %s",
		MANIFEST_FORMAT, manifest->step, manifest->attempt, manifest->tasks,
		manifest->sharded ? "true" : "false");
	if (*manifest->life)
		text_addf(text, ", \"life\": \"%s\"", manifest->life);
	if (manifest->shard != MANIFEST_NO_SHARD)
		text_addf(text, ", \"shard\": %" PRIu64, manifest->shard);
	text_addf(text, ",\n \"utc\": \"%s\", \"utc_ms\": %" PRId64 ", \"host\": ", utc,
		manifest->utc);
	text_add_json_string(text, manifest->host);
	text_addf(text, ", \"uid\": %" PRIu64, manifest->uid);
	if (manifest->metrics.count) {
		text_add(text, ",\n \"metrics\": ");
		metrics_write(&manifest->metrics, text);
	}
	text_addf(text, ", \"bytes\": %" PRIu64 ",\n \"files\": [", manifest_bytes(manifest));
	for (size_t i = 0; i < manifest->count; i++) {
		const struct manifest_file *file = &manifest->files[i];
		text_add(text, i ? ",\n  {" : "\n  {");
		write_name(file->name, text);
		text_addf(text, ", \"bytes\": %" PRIu64 ", \"xxh3_128\": \"%s\"}", file->bytes,
			file->checksum);
	}
	text_add(text, "\n]}\n");
}

/* Whether the name is a relative path that cannot lead out of the checkpoint. */
static bool is_name_valid(const char *name)
{
	for (const char *part = name;; part++) {
		size_t length = strcspn(part, "/");
		if (length <= 2 && strspn(part, ".") == length)
			return false;
		part += length;
		if (!*part)
			return true;
	}
}

/* Read the bytes of a name as write_name wrote them; NULL: there are none. */
static char *read_hex(const struct json_object *object)
{
	const char *given;
	if (!json_get_text(object, "name_hex", &given) || strlen(given) % 2 ||
		strspn(given, "0123456789abcdef") != strlen(given))
		return NULL;
	char *name = xcalloc(1, strlen(given) / 2 + 1);
	for (size_t i = 0; given[2 * i]; i++)
		(void)sscanf(given + 2 * i, "%2hhx", (unsigned char *)&name[i]);
	return name;
}

static bool read_file(const struct json_object *object, struct manifest *manifest)
{
	const char *name = NULL, *checksum;
	uint64_t bytes;
	char *made = json_get_text(object, "name", &name) ? NULL : read_hex(object);
	name = made ? made : name;
	bool valid = name && is_name_valid(name) && json_get_unsigned(object, "bytes", &bytes) &&
		     json_get_text(object, "xxh3_128", &checksum) &&
		     strspn(checksum, "0123456789abcdef") == 32 && !checksum[32];
	if (valid)
		memcpy(manifest_add(manifest, name, bytes)->checksum, checksum, 33);
	free(made);
	return valid;
}

/* The document, without what is not simply a member. */
struct document {
	struct manifest manifest;
	uint64_t format, bytes;
	char life[LIFE_SIZE + 1]; /* room for one that is too long */
};

#define DOCUMENT(member) JSON_MEMBER(struct document, member)
#define NUMBER(member)	 DOCUMENT(member), 0, CKPT_NUMBER_MAX
static const struct json_field fields[] = {
	{"format", JSON_UNSIGNED, JSON_REQUIRED, DOCUMENT(format), 1, INT64_MAX},
	{"step", JSON_UNSIGNED, JSON_REQUIRED, NUMBER(manifest.step)},
	{"attempt", JSON_UNSIGNED, JSON_REQUIRED, NUMBER(manifest.attempt)},
	{"tasks", JSON_UNSIGNED, JSON_REQUIRED, NUMBER(manifest.tasks)},
	{"sharded", JSON_BOOL, JSON_REQUIRED, DOCUMENT(manifest.sharded)},
	{"life", JSON_TEXT, 0, DOCUMENT(life)},
	{"shard", JSON_UNSIGNED, 0, NUMBER(manifest.shard)},
	{"utc_ms", JSON_TIME, JSON_REQUIRED, DOCUMENT(manifest.utc)},
	{"host", JSON_TEXT, JSON_REQUIRED, DOCUMENT(manifest.host)},
	{"uid", JSON_UNSIGNED, 0, NUMBER(manifest.uid)},
	{"bytes", JSON_UNSIGNED, JSON_REQUIRED, DOCUMENT(bytes)},
	{0},
};

/* Read and check all members. */
static bool read_all(const struct json_object *object, struct document *read)
{
	struct json_object *metrics = NULL;
	struct manifest *manifest = &read->manifest;
	bool well = json_read_fields(fields, object, read, NULL) == JSON_WELL;
	struct json_object *files = json_member(object, "files", json_type_array);
	(void)json_object_object_get_ex(object, "metrics", &metrics);
	well = well && (!*read->life || life_is_valid(read->life)) &&
	       metrics_parse(metrics, &manifest->metrics);
	memcpy(manifest->life, read->life, sizeof(manifest->life));
	for (size_t i = 0; well && files && i < json_object_array_length(files); i++)
		well = read_file(json_object_array_get_idx(files, i), manifest) &&
		       (i == 0 || by_name(&manifest->files[i - 1], &manifest->files[i]) < 0);
	return well && manifest->count && manifest_bytes(manifest) == read->bytes;
}

enum status manifest_read(
	const char *text, size_t length, struct manifest *manifest, struct error *err)
{
	struct document read = {.manifest = {.shard = MANIFEST_NO_SHARD}};
	errno = 0;
	struct json_object *object = json_parse_limited(text, length, MANIFEST_SIZE_LIMIT);
	enum status status = STATUS_OK;
	bool well = read_all(object, &read);
	if (read.format > MANIFEST_FORMAT)
		status = error_set(err, STATUS_DAMAGED,
			"the manifest is of format %" PRIu64 ", newer than this program's %d; use "
			"a newer one",
			read.format, MANIFEST_FORMAT);
	else if (!well)
		status = error_set(err, STATUS_NO, "the manifest is not %s",
			read.format ? "complete" : "readable");
	/* If json-c had no memory, we know nothing about the manifest. */
	if (status == STATUS_NO && errno == ENOMEM)
		xalloc_failed();
	if (status == STATUS_OK)
		*manifest = read.manifest;
	else
		manifest_release(&read.manifest);
	json_object_put(object);
	return status;
}

enum status manifest_load(const char *path, struct manifest *manifest, struct error *err)
{
	struct text text = {.limit = MANIFEST_SIZE_LIMIT + 1};
	enum status status = file_read_whole(path, MANIFEST_SIZE_LIMIT, &text, err);
	if (status == STATUS_NO)
		error_set(err, STATUS_NO, "there is no manifest");
	else if (status == STATUS_DAMAGED)
		status = error_set(err, STATUS_NO, "the manifest is too large, or not a file");
	else if (status == STATUS_OK)
		status = manifest_read(text_string(&text), text.length, manifest, err);
	text_release(&text);
	return status;
}

enum status manifest_save(const char *path, const struct manifest *manifest, struct error *err)
{
	struct text text = {.limit = MANIFEST_SIZE_LIMIT};
	manifest_write(manifest, &text);
	enum status status =
		text.too_long ? error_set(err, STATUS_NO,
					"%s would be larger than %zu bytes: save fewer files", path,
					MANIFEST_SIZE_LIMIT)
			      : file_write_whole(
					path, text.data, text.length, file_new_mode(), true, err);
	text_release(&text);
	return status;
}
