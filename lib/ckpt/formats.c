/* SPDX-License-Identifier: MIT */
#include "ckpt/formats.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <json-c/json_tokener.h>
#include <json-c/linkhash.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/xalloc.h"
#include "ckpt/format_file.h"

#define JSON_LIMIT   ((size_t)64 << 20)
#define HEADER_LIMIT 100000000 /* of safetensors, by its specification */
#define PICKLE_LIMIT ((uint64_t)16 << 20)
#define STEPS_LIMIT  ((uint64_t)1 << 25) /* values of a file that are walked through */
#define COUNT_LIMIT  10000		 /* of storages */
#define ATTEMPTS     400000		 /* to find their widths */
/* Endings of names that promise any content, and one that does not begin with zeros. */
#define TORCH	   " .pt .pth .ckpt .bin .tar "
#define ANY	   " .distcp .pkl "
#define READ_BYTES ((uint64_t)16 << 10) /* at least */

/* ---- A file that is looked at here and there ---- */

void file_wrong(struct file *file, const char *format, ...)
{
	char text[128];
	va_list arguments;
	if (file->status != STATUS_OK)
		return;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	file->status = error_set(file->why, STATUS_NO, "%s %s", file->name, text);
}

enum status file_open(int root, const char *name, struct file *file, struct error *why)
{
	struct stat st;
	const char *slash = strrchr(name, '/'), *base = slash ? slash + 1 : name;
	const char *ending = strrchr(base, '.');
	int descriptor = openat(root, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	*file = (struct file){.root = root, .name = name, .descriptor = descriptor, .why = why};
	snprintf(file->ending, sizeof(file->ending), " %s%s ", ending == base ? "/" : "",
		ending ? ending : "");
	if (descriptor < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP))
		file_wrong(file, "is missing");
	else if (descriptor < 0 && errno != ENXIO)
		file->status = error_errno(why, errno, "open %s", name);
	else if (descriptor >= 0 && file_fstat(descriptor, &st) < 0)
		file->status = error_errno(why, errno, "look at %s", name);
	else if (descriptor < 0 || !S_ISREG(st.st_mode))
		file_wrong(file, "is not a file");
	else
		file->bytes = (uint64_t)st.st_size;
	if (file->status != STATUS_OK && descriptor >= 0)
		close(descriptor);
	return file->status;
}

enum status file_close(struct file *file)
{
	close(file->descriptor);
	free(file->part);
	return file->status;
}

const unsigned char *file_bytes(struct file *file, uint64_t offset, uint64_t length)
{
	if (offset > file->bytes || length > file->bytes - offset)
		file_wrong(file, "is cut short");
	if (file->status != STATUS_OK)
		return NULL;
	uint64_t skip = offset - file->start, size = length > READ_BYTES ? length : READ_BYTES;
	if (offset >= file->start && skip <= file->filled && length <= file->filled - skip)
		return file->part + skip;
	if (size > file->bytes - offset)
		size = file->bytes - offset;
	file->part = xrealloc(file->part, size + 1, 1);
	file->start = offset;
	for (file->filled = 0; file->filled < length;) {
		ssize_t n = pread(file->descriptor, file->part + file->filled, size - file->filled,
			(off_t)(offset + file->filled));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			file->status = error_errno(file->why, errno, "read %s", file->name);
		if (n == 0)
			file_wrong(file, "is cut short");
		if (n <= 0)
			return NULL;
		file->filled += (uint64_t)n;
	}
	return file->part;
}

static uint64_t little_endian(const unsigned char *bytes, size_t count)
{
	uint64_t value = 0;
	while (count-- > 0)
		value = value << 8 | bytes[count];
	return value;
}

uint64_t file_number(struct file *file, uint64_t offset, size_t width)
{
	const unsigned char *bytes = file_bytes(file, offset, width);
	return bytes ? little_endian(bytes, width) : 0;
}

bool file_has(struct file *file, uint64_t offset, const void *bytes, size_t length)
{
	bool fits = offset <= file->bytes && length <= file->bytes - offset;
	const unsigned char *there = fits ? file_bytes(file, offset, length) : NULL;
	return there && memcmp(there, bytes, length) == 0;
}

/* ---- One function for each format ---- */

/*
 * A zip archive: at the end is the record with the number of entries, the size and the offset of
 * the directory, and perhaps a comment. Before the record there may be one with longer numbers (76
 * bytes, with what points to it). A .distcp is several archives one after another, each of which
 * counts from its own beginning.
 */
static void check_zip(struct file *file)
{
	enum { END = 22, LONGER = 76, ENTRY = 46 };
	uint64_t most = file->bytes < END + UINT16_MAX ? file->bytes : END + UINT16_MAX;
	uint64_t rest = END;
	const unsigned char *tail = file_bytes(file, file->bytes - most, most);
	while (tail && rest <= most &&
		(memcmp(tail + most - rest, "PK\5\6", 4) != 0 ||
			little_endian(tail + most - rest + 20, 2) != rest - END))
		rest++;
	if (rest > most) {
		file_wrong(file, "is cut short: the archive has no directory at its end");
		return;
	}
	uint64_t end = file->bytes - rest, count = file_number(file, end + 10, 2);
	uint64_t size = file_number(file, end + 12, 4), offset = file_number(file, end + 16, 4);
	if (end >= LONGER && file_has(file, end - LONGER, "PK\6\6", 4)) {
		end -= LONGER;
		count = file_number(file, end + 32, 8);
		size = file_number(file, end + 40, 8);
		offset = file_number(file, end + 48, 8);
	}
	if (size > end || offset > end - size ||
		(offset < end - size && strcmp(file->ending, " .distcp ") != 0))
		file_wrong(file, "is cut short, or the archive's directory is damaged");
	uint64_t at = end - size;
	for (; at < end && count > 0 && file_has(file, at, "PK\1\2", 4); count--)
		at += ENTRY + file_number(file, at + 28, 2) + file_number(file, at + 30, 2) +
		      file_number(file, at + 32, 2);
	if (at != end || count > 0)
		file_wrong(file, "has a damaged directory of the archive");
}

/*
 * HDF5: the first block says where the file ends, and how wide such numbers are. A writer that
 * closes the file cuts it to this length.
 */
static void check_hdf5(struct file *file)
{
	uint64_t version = file_number(file, 8, 1);
	uint64_t width = file_number(file, version < 2 ? 13 : 9, 1);
	uint64_t first = version == 0 ? 24 : version == 1 ? 28 : 12;
	uint64_t end = width <= 8 ? file_number(file, first + 2 * width, width) : 0;
	if (version > 3)
		return;
	if (width != 2 && width != 4 && width != 8)
		file_wrong(file, "has an impossible header");
	else if (version == 3 && file_number(file, 11, 1) & 1)
		file_wrong(file, "was not closed by its writer");
	else if (end != file->bytes)
		file_wrong(
			file, end > file->bytes ? "is cut short" : "was not closed by its writer");
}

static void check_safetensors(struct file *file)
{
	uint64_t length = file_number(file, 0, 8), end = 0;
	const unsigned char *text = length <= HEADER_LIMIT ? file_bytes(file, 8, length) : NULL;
	struct json_object *header =
		text ? json_parse_limited((const char *)text, length, HEADER_LIMIT) : NULL;
	if (!json_object_is_type(header, json_type_object)) {
		file_wrong(file, "has an impossible header");
		json_object_put(header);
		return;
	}
	json_object_object_foreach(header, name, tensor)
	{
		struct json_object *offsets = json_member(tensor, "data_offsets", json_type_array);
		(void)name;
		if (!offsets || json_object_array_length(offsets) != 2)
			continue;
		uint64_t last = json_object_get_uint64(json_object_array_get_idx(offsets, 1));
		end = last > end ? last : end;
	}
	json_object_put(header);
	if (file->bytes - 8 - length != end)
		file_wrong(file, "has %" PRIu64 " bytes of data instead of %" PRIu64,
			file->bytes - 8 - length, end);
}

/*
 * Skip a pickle, and count its strings. False: it is cut short, or no pickle; or it cannot be read
 * further, with nothing wrong: joblib puts arrays between opcodes.
 */
static bool skip_pickle(struct file *file, uint64_t *at, uint64_t *strings)
{
	/* What follows an opcode: bytes, bytes behind their number, or lines. */
	static const struct {
		const char *opcodes;
		unsigned char fixed, counted, lines;
	} rows[] = {
		{"]ael)t\x85\x86\x87}dsu\x8f\x90\x91\x30\x32(1N\x88\x89\x97\x98\x94\x93Rbo\x81\x92Q",
			0, 0, 0},
		{"Khq\x80\x82", 1, 0, 0},
		{"M\x83", 2, 0, 0},
		{"Jjr\x84", 4, 0, 0},
		{"G\x95", 8, 0, 0},
		{"UC\x8c\x8a", 0, 1, 0},
		{"TBX\x8b", 0, 4, 0},
		{"\x8d\x8e\x96", 0, 8, 0},
		{"ILSVFgpP", 0, 0, 1},
		{"ci", 0, 0, 2},
	};
	*strings = 0;
	for (uint64_t steps = 0; steps < STEPS_LIMIT && file->status == STATUS_OK; steps++) {
		char opcode = (char)file_number(file, (*at)++, 1);
		size_t row = 0, count = sizeof(rows) / sizeof(rows[0]);
		if (opcode == '.')
			return file->status == STATUS_OK;
		while (row < count && (!opcode || !strchr(rows[row].opcodes, opcode)))
			row++;
		if (row == count) {
			file_wrong(file, "is a damaged pickle");
			return false;
		}
		uint64_t length = rows[row].counted ? file_number(file, *at, rows[row].counted)
						    : rows[row].fixed;
		*at += rows[row].counted;
		*strings += opcode == 'X' || opcode == '\x8c';
		if (file_has(file, *at, "joblib.", 7))
			return false;
		int lines = rows[row].lines;
		for (; lines > 0 && steps < STEPS_LIMIT && file->status == STATUS_OK; steps++)
			lines -= file_number(file, (*at)++, 1) == '\n';
		if (file->status == STATUS_OK && length > file->bytes - *at)
			file_wrong(file, "is cut short");
		*at += length;
	}
	return false;
}

/*
 * Whether this number of storages, from here on, fills the file: each is the number of its items in
 * eight bytes, and the items, whose width is not said there. One of five has to fit. After many
 * attempts, it does.
 */
static bool storages_fit(struct file *file, uint64_t at, uint64_t count, int *attempts)
{
	static const unsigned char widths[] = {4, 2, 8, 1, 16};
	uint64_t rest = file->bytes - at, items = count && rest >= 8 ? file_number(file, at, 8) : 0;
	if (count == 0 || rest < 8)
		return count == 0 && rest == 0;
	for (size_t i = 0; i < (items ? sizeof(widths) : 1); i++)
		if (--*attempts <= 0 || (items <= (rest - 8) / widths[i] &&
						storages_fit(file, at + 8 + items * widths[i],
							count - 1, attempts)))
			return true;
	return false;
}

/*
 * Pickles, one after another. Before it wrote zip archives, PyTorch wrote five of them (a number of
 * its own, its version, facts of the machine, the object, the names of the storages), then
 * storages.
 */
static void check_pickle(struct file *file)
{
	static const char mark[] = "\x8a\nl\xfc\x9c\x46\xf9 j\xa8P\x19.";
	size_t length = file->bytes < 32 ? (size_t)file->bytes : 32;
	const unsigned char *head = file_bytes(file, 0, length);
	bool torch = head && memmem(head, length, mark, strlen(mark)), read = true;
	uint64_t at = 0, strings = 0;
	int attempts = ATTEMPTS;
	for (int i = 0; read && (torch ? i < 5 : i == 0 || file_has(file, at, "\x80", 1)); i++)
		read = skip_pickle(file, &at, &strings);
	if (torch ? read && strings <= COUNT_LIMIT && !storages_fit(file, at, strings, &attempts)
		  : !file_has(file, file->bytes - 1, ".", 1))
		file_wrong(file, "is cut short");
}

/* JSON of any depth that a program writes. */
static void check_json(struct file *file)
{
	size_t length = file->bytes <= JSON_LIMIT ? (size_t)file->bytes : 0;
	const unsigned char *text = file_bytes(file, 0, length);
	struct json_tokener *tokener = length && text ? json_tokener_new_ex(200) : NULL;
	if (!tokener)
		return;
	json_tokener_set_flags(tokener, JSON_TOKENER_STRICT);
	json_object_put(json_tokener_parse_ex(tokener, (const char *)text, (int)length));
	if (json_tokener_get_error(tokener) == json_tokener_continue) /* a number at the end */
		json_object_put(json_tokener_parse_ex(tokener, "", 1));
	if (json_tokener_get_error(tokener) != json_tokener_success)
		file_wrong(file, "is no whole JSON document");
	json_tokener_free(tokener);
}

/* A manifest of OCDBT, in which Orbax writes arrays: its length is in it. */
static void check_ocdbt(struct file *file)
{
	if (file_number(file, 4, 8) != file->bytes)
		file_wrong(file, "is cut short");
}

/* ---- What a file is, and what it must be ---- */

static const struct content {
	const char *what;
	void (*check)(struct file *file); /* NULL: nothing is known of its end */
	const char *endings;		  /* of names that promise this content */
	uint64_t at;			  /* where its signature is */
	size_t length;			  /* 0: it has none */
	const char *signature;
} contents[] = {
	{"a zip archive", check_zip, " .npz .keras ", 0, 4, "PK\3\4"},
	{"an empty zip archive", check_zip, "", 0, 4, "PK\5\6"},
	{"HDF5", check_hdf5, " .h5 .hdf5 ", 0, 8, "\x89HDF\r\n\x1a\n"},
	{"an array of NumPy", NULL, " .npy ", 0, 6, "\x93NUMPY"},
	{"OCDBT", check_ocdbt, " .ocdbt ", 0, 4, "\x0c\xdb\x3a\x2a"},
	{"safetensors", check_safetensors, " .safetensors ", 4, 6, "\0\0\0\0{\""},
	{"a tar archive", NULL, "", 257, 5, "ustar"},
	{"JSON", check_json, " .json ", 0, 0, ""},
	{"a table", format_check_tensorflow, " .index ", 0, 0, ""},
	{"MessagePack", NULL, " .msgpack ", 0, 0, ""},
	{"an archive or a pickle", NULL, TORCH, 0, 0, ""},
	/* accelerate writes archives with .pkl, and joblib compressed pickles. */
	{"a checkpoint", NULL, ANY, 0, 0, ""},
};
static const struct content pickle = {"a pickle", check_pickle, "", 0, 0, ""};
#define CONTENTS (sizeof(contents) / sizeof(contents[0]))

/*
 * What the first bytes say; NULL: nothing. Many files may begin with the byte of a pickle: also its
 * version and one of the opcodes that are usual then have to follow.
 */
static const struct content *content_of(struct file *file)
{
	static const char opcodes[] = "}](c)KMJGXUNI\x8a\x8c\x95\x88\x89";
	for (size_t i = 0; i < CONTENTS; i++)
		if (contents[i].length &&
			file_has(file, contents[i].at, contents[i].signature, contents[i].length))
			return &contents[i];
	uint64_t length = file->bytes < 3 ? file->bytes : 3;
	const unsigned char *head = file_bytes(file, 0, length);
	return head && head[0] == 0x80 && (length < 2 || (head[1] >= 2 && head[1] <= 5)) &&
			       (length < 3 || (head[2] && strchr(opcodes, head[2])))
		       ? &pickle
		       : NULL;
}

/* Look at up to 64 blocks. A part of an array of zarr, 0.0 or c/0/0, may be only zeros. */
static bool only_zeros(struct file *file)
{
	const char *slash = strrchr(file->name, '/'), *base = slash ? slash + 1 : file->name;
	uint64_t block = file->bytes < 4096 ? file->bytes : 4096, last = file->bytes - block;
	bool zeros = file->bytes >= 8 && base[strspn(base, "0123456789.")];
	for (uint64_t i = 0; i < 64 && zeros; i++) {
		const unsigned char *bytes = file_bytes(file, i < 63 ? last / 63 * i : last, block);
		zeros = bytes && !bytes[0] && memcmp(bytes, bytes + 1, block - 1) == 0;
	}
	return zeros;
}

/* Whether it is a word in a line, too short for any format: then it says nothing. */
static bool is_word(struct file *file)
{
	const unsigned char *bytes = file->bytes < 8 ? file_bytes(file, 0, file->bytes) : NULL;
	bool word = bytes && bytes[file->bytes - 1] == '\n';
	for (uint64_t i = 0; word && i + 1 < file->bytes; i++)
		word = bytes[i] >= ' ' && bytes[i] < 127;
	return word;
}

/* Find what a failed download, or one without its contents, leaves in place of a file. */
static void check_text(struct file *file)
{
	static const char texts[] = " .html .htm .xml .svg .md .txt .jinja ";
	static const char *const pages[] = {
		"<!doctype", "<!--", "<html", "<head", "<?xml", "<error"};
	static const char pointer[] = "version https://git-lfs";
	char head[257] = "";
	size_t length = file->bytes < 256 ? (size_t)file->bytes : 256;
	const unsigned char *bytes = file_bytes(file, 0, length);
	if (!bytes || strstr(texts, file->ending))
		return;
	memcpy(head, bytes, length);
	if (strncmp(head, pointer, strlen(pointer)) == 0)
		file_wrong(file, "is a pointer of Git LFS in place of the file");
	for (size_t i = 0; i < sizeof(pages) / sizeof(pages[0]); i++)
		if (strncasecmp(head + strspn(head, " \t\r\n"), pages[i], strlen(pages[i])) == 0)
			file_wrong(file, "is an HTML or XML page in place of the file");
}

/* Whether the content is none of what the name promises. */
static bool is_other(struct file *file, const struct content *promise, const struct content *found)
{
	if (strcmp(promise->endings, TORCH) == 0)
		return !found;
	if (strcmp(promise->endings, ANY) == 0)
		return file->bytes < 8 ? !found : file_has(file, 0, "\0\0\0\0\0\0\0", 8);
	return promise->length && !promise->at && (!found || found->check != promise->check);
}

static void check(struct file *file)
{
	const struct content *promise = contents, *end = contents + CONTENTS;
	while (promise < end && !strstr(promise->endings, file->ending))
		promise++;
	promise = promise < end ? promise : NULL;
	if (file->bytes == 0 && promise)
		file_wrong(file, "is empty");
	if (file->bytes == 0 || is_word(file))
		return;
	if (only_zeros(file))
		file_wrong(file, "has only zeros");
	check_text(file);
	const struct content *found = content_of(file);
	if (promise && is_other(file, promise, found))
		file_wrong(file, "is not %s", promise->what);
	if (promise && promise->check && (!promise->length || promise->at))
		found = promise; /* whatever the first bytes are */
	if (file->status == STATUS_OK && found && found->check)
		found->check(file);
}

enum status format_check(int root, const char *name, uint64_t bytes, struct error *why)
{
	struct file file;
	enum status status = file_open(root, name, &file, why);
	if (status != STATUS_OK)
		return status;
	file.bytes = bytes;
	check(&file);
	return file_close(&file);
}

enum status format_read(
	int root, const char *name, size_t limit, struct text *text, struct error *why)
{
	struct file file;
	enum status status = file_open(root, name, &file, why);
	if (status != STATUS_OK)
		return status;
	text->limit = limit + 1;
	file.status = file_read_descriptor(file.descriptor, name, limit, text, why);
	if (file.status == STATUS_DAMAGED)
		file.status = error_set(why, STATUS_NO, "%s is too large", name);
	return file_close(&file);
}

enum status format_read_json(
	int root, const char *name, struct json_object **object, struct error *why)
{
	struct text text = {0};
	enum status status = format_read(root, name, JSON_LIMIT, &text, why);
	struct json_object *read = json_parse_limited(text_string(&text), text.length, JSON_LIMIT);
	text_release(&text);
	if (status == STATUS_OK && !read)
		return error_set(why, STATUS_NO, "%s is no whole JSON document", name);
	if (status == STATUS_OK)
		*object = read;
	else
		json_object_put(read);
	return status;
}

/*
 * Find key as a whole string, perhaps an opcode that stores it, and a number. Numbers of four
 * bytes, and of as many as they say, have a sign.
 */
static bool find_number(
	const unsigned char *bytes, size_t length, const char *key, uint64_t *number)
{
	const unsigned char *at = bytes, *end = bytes + length;
	size_t size = strlen(key);
	for (; at < end && (at = memmem(at, (size_t)(end - at), key, size)); at++) {
		unsigned char next[16] = {0};
		size_t before = (size_t)(at - bytes), rest = (size_t)(end - at) - size;
		if ((before < 5 || at[-5] != 'X' || little_endian(at - 4, 4) != size) &&
			(before < 2 || at[-2] != 0x8c || at[-1] != size))
			continue;
		memcpy(next, at + size, rest < sizeof(next) ? rest : sizeof(next));
		size_t skip = *next == 'q' ? 2 : *next == 'r' ? 5 : *next == 0x94 ? 1 : 0;
		unsigned char opcode = next[skip++];
		size_t width = opcode == 'K' ? 1 : opcode == 'M' ? 2 : opcode == 'J' ? 4 : 0;
		if (opcode == 0x8a)
			width = next[skip++];
		bool sign = width > 0 && width <= 8 && next[skip + width - 1] >= 0x80;
		if (width == 0 || width > 8 || skip + width > rest ||
			(sign && (opcode == 'J' || opcode == 0x8a)))
			continue;
		*number = little_endian(next + skip, width);
		return true;
	}
	return false;
}

enum status format_read_number(
	int root, const char *name, const char *key, uint64_t *number, struct error *why)
{
	struct file file;
	enum status status = file_open(root, name, &file, why);
	if (status != STATUS_OK)
		return status;
	bool found = false;
	uint64_t length = 0;
	for (uint64_t size = 65536; !found && length < file.bytes && size <= PICKLE_LIMIT;
		size *= 16) {
		length = file.bytes < size ? file.bytes : size;
		const unsigned char *bytes = file_bytes(&file, 0, length);
		found = bytes && find_number(bytes, length, key, number);
	}
	if (!found && file.status == STATUS_OK)
		file.status = error_set(why, STATUS_NO, "no %s can be read in %s", key, name);
	return file_close(&file);
}
