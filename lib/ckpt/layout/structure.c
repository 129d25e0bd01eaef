/* SPDX-License-Identifier: MIT */
#include "ckpt/layout/structure.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <json-c/linkhash.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/xalloc.h"

#define JSON_LIMIT     ((size_t)256 << 20)
#define METADATA_LIMIT ((size_t)512 << 20)
#define PICKLE_LIMIT   ((size_t)16 << 20)

/* Bytes of the record at the end of a zip archive, without and with the longest comment. */
#define ZIP_END	      22
#define ZIP_END_LIMIT (ZIP_END + 65535)
/* The end of a table of LevelDB's format, which TensorFlow uses. */
#define TABLE_FOOTER 48
static const unsigned char table_magic[8] = {0x57, 0xfb, 0x80, 0x8b, 0x24, 0x75, 0x47, 0xdb};

static int by_name(const void *key, const void *element)
{
	return strcmp(key, ((const struct manifest_file *)element)->name);
}

const struct manifest_file *structure_find(const struct manifest *files, const char *name)
{
	return files->count
		       ? bsearch(name, files->files, files->count, sizeof(*files->files), by_name)
		       : NULL;
}

const char *structure_base(const char *name)
{
	const char *slash = strrchr(name, '/');
	return slash ? slash + 1 : name;
}

bool structure_ends(const char *name, const char *end)
{
	size_t length = strlen(name), tail = strlen(end);
	return length >= tail && strcmp(name + length - tail, end) == 0;
}

/* STATUS_NO: it is missing, or not a file. */
static enum status open_file(int root, const char *name, int *descriptor, struct error *why)
{
	*descriptor = openat(root, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (*descriptor >= 0)
		return STATUS_OK;
	if (errno == ENOENT || errno == ENOTDIR)
		return error_set(why, STATUS_NO, "%s is missing", name);
	if (errno == ELOOP || errno == ENXIO)
		return error_set(why, STATUS_NO, "%s is not a file", name);
	return error_errno(why, errno, "read %s", name);
}

/* Read length bytes at an offset. STATUS_NO: the file has fewer. */
static enum status read_at(int descriptor, const char *name, void *bytes, size_t length,
	uint64_t offset, struct error *why)
{
	for (size_t done = 0; done < length;) {
		ssize_t n = pread(
			descriptor, (char *)bytes + done, length - done, (off_t)(offset + done));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return error_errno(why, errno, "read %s", name);
		if (n == 0)
			return error_set(why, STATUS_NO, "%s is cut short", name);
		done += (size_t)n;
	}
	return STATUS_OK;
}

static uint64_t little_endian(const unsigned char *bytes, int count)
{
	uint64_t value = 0;
	for (int i = count; i-- > 0;)
		value = value << 8 | bytes[i];
	return value;
}

static enum status check_safetensors(
	int descriptor, const struct manifest_file *file, struct error *why)
{
	unsigned char head[8];
	uint64_t end = 0;
	enum status status = file->bytes < sizeof(head)
				     ? error_set(why, STATUS_NO, "%s is cut short", file->name)
				     : read_at(descriptor, file->name, head, sizeof(head), 0, why);
	if (status != STATUS_OK)
		return status;
	uint64_t length = little_endian(head, 8);
	if (length > file->bytes - sizeof(head))
		return error_set(why, STATUS_NO, "%s is cut short in its header", file->name);
	if (length > JSON_LIMIT)
		return error_set(why, STATUS_NO, "the header of %s is too long", file->name);
	char *text = xmalloc(length + 1);
	status = read_at(descriptor, file->name, text, length, sizeof(head), why);
	struct json_object *header =
		status == STATUS_OK ? json_parse_limited(text, length, JSON_LIMIT) : NULL;
	free(text);
	if (status != STATUS_OK)
		return status;
	if (!json_object_is_type(header, json_type_object)) {
		json_object_put(header);
		return error_set(why, STATUS_NO, "the header of %s is no JSON object", file->name);
	}
	json_object_object_foreach(header, name, tensor)
	{
		struct json_object *offsets = json_member(tensor, "data_offsets", json_type_array);
		(void)name;
		if (!offsets || json_object_array_length(offsets) != 2)
			continue;
		uint64_t last = json_object_get_uint64(json_object_array_get_idx(offsets, 1));
		if (last > end)
			end = last;
	}
	json_object_put(header);
	if (file->bytes - sizeof(head) - length != end)
		return error_set(why, STATUS_NO,
			"%s has %" PRIu64 " bytes of data instead of the %" PRIu64 " it names",
			file->name, file->bytes - (uint64_t)sizeof(head) - length, end);
	return STATUS_OK;
}

/* Find the end record of an archive, after which there may be a comment. NULL: there is none. */
static const unsigned char *zip_end(const unsigned char *bytes, size_t length)
{
	for (size_t at = length - ZIP_END + 1; at-- > 0;)
		if (memcmp(bytes + at, "PK\5\6", 4) == 0 &&
			little_endian(bytes + at + 20, 2) == length - at - ZIP_END)
			return bytes + at;
	return NULL;
}

/* A zip archive has its directory at the end. Other formats (old pickles) cannot be checked. */
static enum status check_archive(
	int descriptor, const struct manifest_file *file, struct error *why)
{
	unsigned char head[4] = "";
	if (file->bytes == 0)
		return error_set(why, STATUS_NO, "%s is empty", file->name);
	size_t length = file->bytes < sizeof(head) ? (size_t)file->bytes : sizeof(head);
	enum status status = read_at(descriptor, file->name, head, length, 0, why);
	if (status != STATUS_OK || length < sizeof(head) || memcmp(head, "PK\3\4", 4) != 0)
		return status;
	length = file->bytes < ZIP_END_LIMIT ? (size_t)file->bytes : ZIP_END_LIMIT;
	unsigned char *tail = length >= ZIP_END ? xmalloc(length) : NULL;
	if (tail)
		status = read_at(
			descriptor, file->name, tail, length, file->bytes - (uint64_t)length, why);
	const unsigned char *end = tail && status == STATUS_OK ? zip_end(tail, length) : NULL;
	if (status == STATUS_OK && !end)
		status = error_set(why, STATUS_NO,
			"%s is cut short: the archive has no directory at its end", file->name);
	if (end) {
		uint64_t size = little_endian(end + 12, 4), offset = little_endian(end + 16, 4);
		uint64_t before = file->bytes - (uint64_t)(tail + length - end);
		/* All ones mean that the numbers are in a larger record before this one. */
		if (size != UINT32_MAX && offset != UINT32_MAX && offset + size > before)
			status =
				error_set(why, STATUS_NO, "%s is cut short or damaged", file->name);
	}
	free(tail);
	return status;
}

static enum status check_table(int descriptor, const struct manifest_file *file, struct error *why)
{
	unsigned char footer[TABLE_FOOTER];
	if (file->bytes < sizeof(footer))
		return error_set(why, STATUS_NO, "%s is cut short", file->name);
	enum status status = read_at(
		descriptor, file->name, footer, sizeof(footer), file->bytes - sizeof(footer), why);
	if (status == STATUS_OK && memcmp(footer + TABLE_FOOTER - sizeof(table_magic), table_magic,
					   sizeof(table_magic)) != 0)
		status =
			error_set(why, STATUS_NO, "%s is cut short, or is not a table", file->name);
	return status;
}

enum status structure_check(int root, const struct manifest_file *file, struct error *why)
{
	static const struct {
		const char *end;
		enum status (*check)(
			int descriptor, const struct manifest_file *file, struct error *why);
	} kinds[] = {
		{".safetensors", check_safetensors},
		{".pt", check_archive},
		{".pth", check_archive},
		{".bin", check_archive},
		{".ckpt", check_archive},
		{".distcp", check_archive},
		{".index", check_table},
	};
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		int descriptor;
		if (!structure_ends(file->name, kinds[i].end))
			continue;
		enum status status = open_file(root, file->name, &descriptor, why);
		if (status != STATUS_OK)
			return status;
		status = kinds[i].check(descriptor, file, why);
		close(descriptor);
		return status;
	}
	return STATUS_OK;
}

enum status structure_check_all(
	int root, const struct manifest *files, const char *prefix, struct error *why)
{
	enum status status = STATUS_OK;
	for (size_t i = 0; i < files->count && status == STATUS_OK; i++)
		if (strncmp(files->files[i].name, prefix, strlen(prefix)) == 0)
			status = structure_check(root, &files->files[i], why);
	return status;
}

enum status structure_read(
	int root, const char *name, size_t limit, struct text *text, struct error *why)
{
	int descriptor;
	struct stat st;
	enum status status = open_file(root, name, &descriptor, why);
	if (status != STATUS_OK)
		return status;
	text->limit = limit + 1;
	if (fstat(descriptor, &st) == 0 && !S_ISREG(st.st_mode))
		status = error_set(why, STATUS_NO, "%s is not a file", name);
	else
		status = file_read_descriptor(descriptor, name, limit, text, why);
	if (status == STATUS_DAMAGED)
		status = error_set(why, STATUS_NO, "%s is too large", name);
	close(descriptor);
	return status;
}

enum status structure_read_line(int root, const char *name, char line[256], struct error *why)
{
	struct text text = {0};
	struct stat st;
	enum status status = structure_read(root, name, 4096, &text, why);
	if (status == STATUS_NO && fstatat(root, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		status = error_set(why, STATUS_DAMAGED, "it is too large, or not a regular file");
	if (status == STATUS_OK) {
		const char *at = text_string(&text);
		size_t length = strcspn(at, "\r\n");
		size_t rest = length + strspn(at + length, "\r\n \t");
		while (length > 0 && (at[length - 1] == ' ' || at[length - 1] == '\t'))
			length--;
		if (length == 0)
			status = error_set(why, STATUS_DAMAGED, "it is empty");
		else if (length > 255 || rest != text.length)
			status = error_set(why, STATUS_DAMAGED, "it is not one line");
		else
			snprintf(line, 256, "%.*s", (int)length, at);
	}
	text_release(&text);
	return status;
}

struct json_object *structure_read_json(
	int root, const char *name, enum status *status, struct error *why)
{
	struct text text = {0};
	struct json_object *object = NULL;
	*status = structure_read(root, name, JSON_LIMIT, &text, why);
	if (*status == STATUS_OK) {
		object = json_parse_limited(text_string(&text), text.length, JSON_LIMIT);
		if (!object)
			*status = error_set(why, STATUS_NO, "%s is not complete", name);
	}
	text_release(&text);
	return object;
}

/* "-of-" in a name of the form WORD-00002-of-00003.END; NULL: the name has another form. */
static const char *find_of(const char *name)
{
	const char *base = structure_base(name), *of = strstr(base, "-of-");
	bool fits = of && of - base > 6 && of[-6] == '-' && strspn(of - 5, "0123456789") == 5 &&
		    strspn(of + 4, "0123456789") == 5 && of[9] == '.';
	return fits ? of : NULL;
}

/* Whether the file with this number in its name is there; other: its name. */
static bool has_number(const struct manifest *files, const char *name, const char *of,
	unsigned long number, char other[PATH_MAX])
{
	return snprintf(other, PATH_MAX, "%.*s%05lu%s", (int)(of - 5 - name), name, number, of) >=
		       PATH_MAX ||
	       structure_find(files, other);
}

enum status structure_check_numbered(const struct manifest *files, struct error *why)
{
	char other[PATH_MAX];
	for (size_t i = 0; i < files->count; i++) {
		const char *name = files->files[i].name, *of = find_of(name);
		if (!of)
			continue;
		unsigned long number = strtoul(of - 5, NULL, 10), all = strtoul(of + 4, NULL, 10);
		unsigned long first = has_number(files, name, of, 0, other) ? 0 : 1;
		unsigned long last = first + all - 1;
		/* If each file has its neighbours, all are there. */
		if ((number > first && !has_number(files, name, of, number - 1, other)) ||
			(number < last && !has_number(files, name, of, number + 1, other)))
			return error_set(why, STATUS_NO, "%s is missing", other);
	}
	return STATUS_OK;
}

/* Check the files that metadata names. It is a pickle, which contains strings as they are. prefix:
 * its directory with '/'. */
static enum status check_named(const struct text *metadata, const char *prefix,
	const struct manifest *files, struct error *why)
{
	static const char end[] = ".distcp";
	const char *at = metadata->data, *last = metadata->data + metadata->length;
	char name[PATH_MAX];
	bool any = false;
	while (at && (at = memmem(at, (size_t)(last - at), end, strlen(end)))) {
		const char *start = at;
		while (start > metadata->data &&
			(isdigit((unsigned char)start[-1]) || start[-1] == '_'))
			start--;
		at += strlen(end);
		int length =
			snprintf(name, sizeof(name), "%s%.*s", prefix, (int)(at - start), start);
		if (length >= (int)sizeof(name) || at - start <= (ptrdiff_t)strlen(end))
			continue;
		any = true;
		if (!structure_find(files, name))
			return error_set(why, STATUS_NO, "%s is missing", name);
	}
	if (!any)
		return error_set(why, STATUS_NO, "%s.metadata names no shard", prefix);
	return STATUS_OK;
}

enum status structure_check_shards(int root, const struct manifest *files, struct error *why)
{
	char metadata[PATH_MAX] = "", name[PATH_MAX];
	enum status status = STATUS_OK;
	for (size_t i = 0; i < files->count && status == STATUS_OK; i++) {
		const char *base = structure_base(files->files[i].name);
		if (!structure_ends(base, ".distcp") && strcmp(base, ".metadata") != 0)
			continue;
		int prefix = (int)(base - files->files[i].name);
		if (prefix + 16 > (int)sizeof(name))
			return error_set(why, STATUS_NO, "a name is too long");
		if (files->files[i].bytes == 0)
			return error_set(why, STATUS_NO, "%s is empty", files->files[i].name);
		snprintf(name, sizeof(name), "%.*s.metadata", prefix, files->files[i].name);
		if (strcmp(name, metadata) == 0)
			continue; /* checked already */
		memcpy(metadata, name, sizeof(metadata));
		struct text text = {0};
		status = structure_read(root, metadata, METADATA_LIMIT, &text, why);
		name[prefix] = '\0';
		/* A pickle ends with the opcode STOP. */
		if (status == STATUS_OK && (text.length == 0 || text.data[text.length - 1] != '.'))
			status = error_set(why, STATUS_NO, "%s is cut short", metadata);
		if (status == STATUS_OK)
			status = check_named(&text, name, files, why);
		text_release(&text);
	}
	return status;
}

/*
 * Find key and its number: a string with its length, perhaps an opcode that stores the string ('q'
 * and a byte, 'r' and four bytes, or a byte 0x94), then an opcode ('K', 'M' or 'J') and a number of
 * one, two or four bytes.
 */
static bool find_number(
	const unsigned char *bytes, size_t length, const char *key, uint64_t *number)
{
	const unsigned char *at = memmem(bytes, length, key, strlen(key));
	if (!at || (size_t)(bytes + length - at) < strlen(key) + 10)
		return false;
	at += strlen(key);
	at += *at == 'q' ? 2 : *at == 'r' ? 5 : *at == 0x94 ? 1 : 0;
	int size = *at == 'K' ? 1 : *at == 'M' ? 2 : *at == 'J' ? 4 : 0;
	*number = little_endian(at + 1, size);
	return size && *number <= INT32_MAX;
}

/* The file is an uncompressed archive whose first member is a pickled dictionary. */
enum status structure_read_number(
	int root, const char *name, const char *key, uint64_t *number, struct error *why)
{
	unsigned char *bytes = NULL;
	int descriptor;
	bool found = false;
	ssize_t length = 0;
	enum status status = open_file(root, name, &descriptor, why);
	if (status != STATUS_OK)
		return status;
	for (size_t size = 65536; !found && length >= 0 && size <= PICKLE_LIMIT; size *= 16) {
		bytes = xrealloc(bytes, size, 1);
		length = pread(descriptor, bytes, size, 0);
		found = length > 0 && find_number(bytes, (size_t)length, key, number);
	}
	if (length < 0)
		status = error_errno(why, errno, "read %s", name);
	else if (!found)
		status = error_set(why, STATUS_NO, "no %s can be read in %s", key, name);
	close(descriptor);
	free(bytes);
	return status;
}
