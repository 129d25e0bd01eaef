/* SPDX-License-Identifier: MIT */
#include "ckpt/manifest.h"

#include <errno.h>
#include <inttypes.h>
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

static bool same_file(const struct manifest_file *a, const struct manifest_file *b)
{
	return strcmp(a->name, b->name) == 0 && a->bytes == b->bytes &&
	       strcmp(a->checksum, b->checksum) == 0;
}

bool manifest_same_below(
	const struct manifest *whole, const struct manifest *part, const char *prefix)
{
	size_t k = 0;
	for (size_t i = 0; i < whole->count; i++) {
		if (strncmp(whole->files[i].name, prefix, strlen(prefix)) != 0)
			continue;
		if (k == part->count || !same_file(&whole->files[i], &part->files[k]))
			return false;
		k++;
	}
	return k == part->count;
}

bool manifest_same_files(const struct manifest *a, const struct manifest *b)
{
	return manifest_same_below(a, b, "");
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
		if (length == 0 || (length == 1 && part[0] == '.') ||
			(length == 2 && part[0] == '.' && part[1] == '.'))
			return false;
		part += length;
		if (!*part)
			return true;
	}
}

/* Read the name of a file, to be freed; NULL: there is no valid name. */
static char *read_name(const struct json_object *object)
{
	const char *given;
	char *name;
	if (json_get_text(object, "name", &given)) {
		name = xstrdup(given);
	} else if (json_get_text(object, "name_hex", &given)) {
		static const char digits[] = "0123456789abcdef";
		size_t length = strlen(given);
		if (length % 2 || strspn(given, digits) != length)
			return NULL;
		name = xcalloc(1, length / 2 + 1);
		for (size_t i = 0; i < length; i += 2)
			name[i / 2] = (char)((strchr(digits, given[i]) - digits) * 16 +
					     (strchr(digits, given[i + 1]) - digits));
	} else {
		return NULL;
	}
	if (is_name_valid(name))
		return name;
	free(name);
	return NULL;
}

static bool read_file(const struct json_object *object, struct manifest *manifest)
{
	uint64_t bytes;
	const char *checksum;
	if (!json_get_unsigned(object, "bytes", &bytes) ||
		!json_get_text(object, "xxh3_128", &checksum) ||
		strspn(checksum, "0123456789abcdef") != 32 || checksum[32])
		return false;
	char *name = read_name(object);
	if (!name)
		return false;
	memcpy(manifest_add(manifest, name, bytes)->checksum, checksum, 33);
	free(name);
	return true;
}

#define MANIFEST(member) JSON_MEMBER(struct manifest, member)
#define NUMBER(member)	 MANIFEST(member), 0, CKPT_NUMBER_MAX
static const struct json_field head_fields[] = {
	{"step", JSON_UNSIGNED, JSON_REQUIRED, NUMBER(step)},
	{"attempt", JSON_UNSIGNED, JSON_REQUIRED, NUMBER(attempt)},
	{"tasks", JSON_UNSIGNED, JSON_REQUIRED, NUMBER(tasks)},
	{"sharded", JSON_BOOL, JSON_REQUIRED, MANIFEST(sharded)},
	{"shard", JSON_UNSIGNED, 0, NUMBER(shard)},
	{"utc_ms", JSON_TIME, JSON_REQUIRED, MANIFEST(utc)},
	{"host", JSON_TEXT, JSON_REQUIRED, MANIFEST(host)},
	{"uid", JSON_UNSIGNED, 0, MANIFEST(uid)},
	{0},
};

enum status manifest_read(
	const char *text, size_t length, struct manifest *manifest, struct error *err)
{
	struct manifest read = {.shard = MANIFEST_NO_SHARD};
	const char *life;
	struct json_object *files, *metrics = NULL;
	uint64_t format, bytes;
	enum status status = STATUS_NO;
	errno = 0;
	struct json_object *object = json_parse_limited(text, length, MANIFEST_SIZE_LIMIT);
	if (!json_get_unsigned(object, "format", &format) || format == 0) {
		error_set(err, STATUS_NO, "the manifest is not readable");
		goto out;
	}
	if (format > MANIFEST_FORMAT) {
		status = error_set(err, STATUS_DAMAGED,
			"the manifest is of format %" PRIu64 ", newer than this program's %d; use "
			"a newer one",
			format, MANIFEST_FORMAT);
		goto out;
	}
	error_set(err, STATUS_NO, "the manifest is not complete");
	/* Manifests of earlier versions have no uid, metrics and life. */
	if (json_read_fields(head_fields, object, &read, NULL) != JSON_WELL)
		goto out;
	if (json_object_object_get_ex(object, "life", NULL)) {
		if (!json_get_text(object, "life", &life) || !life_is_valid(life))
			goto out;
		memcpy(read.life, life, sizeof(read.life));
	}
	(void)json_object_object_get_ex(object, "metrics", &metrics);
	files = json_member(object, "files", json_type_array);
	if (!metrics_parse(metrics, &read.metrics) || !json_get_unsigned(object, "bytes", &bytes) ||
		!files)
		goto out;
	size_t count = json_object_array_length(files);
	for (size_t i = 0; i < count; i++)
		if (!read_file(json_object_array_get_idx(files, i), &read))
			goto out;
	for (size_t i = 1; i < count; i++)
		if (by_name(&read.files[i - 1], &read.files[i]) >= 0)
			goto out;
	if (count == 0 || manifest_bytes(&read) != bytes)
		goto out;
	*manifest = read;
	read = (struct manifest){0};
	status = STATUS_OK;
out:
	/* If json-c had no memory, we know nothing about the manifest. */
	if (status == STATUS_NO && errno == ENOMEM)
		xalloc_failed();
	manifest_release(&read);
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
