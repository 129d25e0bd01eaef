/* SPDX-License-Identifier: MIT */
#include "ckpt/formats.h"

#include <ctype.h>
#include <inttypes.h>
#include <json-c/json_tokener.h>
#include <json-c/linkhash.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/file.h"
#include "base/json.h"
#include "base/xalloc.h"
#include "ckpt/format_file.h"

#define JSON_LIMIT   ((size_t)64 << 20)
#define HEADER_LIMIT 100000000 /* of safetensors, by its specification */
#define PICKLE_LIMIT ((uint64_t)16 << 20)
#define STEPS_LIMIT  ((uint64_t)1 << 25) /* values of a file that are walked through */
#define COUNT_LIMIT  100000		 /* of storages */

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

static bool skip_pickle(struct file *file, uint64_t *at, uint64_t *strings);

/* Arrays of NumPy, one after another. The header is a dictionary as Python writes it. */
static void check_npy(struct file *file)
{
	char header[4096], kind = 0;
	for (uint64_t at = 0; at < file->bytes && file->status == STATUS_OK;) {
		if (!file_has(file, at, "\x93NUMPY", 6))
			file_wrong(file, "has more bytes than its header says");
		size_t wide = file_number(file, at + 6, 1) == 1 ? 2 : 4;
		uint64_t length = file_number(file, at + 8, wide), need = 1, width = 0, strings;
		bool fits = length < sizeof(header);
		at += 8 + wide;
		const unsigned char *text =
			file_bytes(file, fits ? at : at + length, fits ? length : 0);
		if (!text || !fits)
			return;
		snprintf(header, sizeof(header), "%.*s", (int)length, (const char *)text);
		at += length;
		const char *type = strstr(header, "'descr'"), *shape = strchr(header, '(');
		int read = type && shape
				   ? sscanf(type, "'descr': '%*[<>|=]%c%9" SCNu64, &kind, &width)
				   : 0;
		if (read < 2 && (read < 1 || kind != 'O'))
			return; /* of several fields */
		char *next = header + (shape - header) + 1;
		while (isdigit((unsigned char)*next)) {
			if (__builtin_mul_overflow(need, strtoull(next, &next, 10), &need))
				return;
			next += strspn(next, ", L");
		}
		if (kind == 'O')
			(void)skip_pickle(file, &at, &strings);
		else if (!strchr("biufcSUVmM", kind) ||
			 __builtin_mul_overflow(need, kind == 'U' ? 4 * width : width, &need))
			return;
		else if (need > file->bytes - at)
			file_wrong(file, "is cut short");
		else
			at += need;
	}
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
 * Whether storages fill the rest of the file: each is the number of its items in eight bytes, and
 * the items, whose width is not said there. One of five has to fit; after many attempts, it does.
 */
static bool storages_fit(struct file *file, uint64_t at, uint64_t count)
{
	static const unsigned char widths[] = {4, 2, 8, 1, 16};
	struct {
		uint64_t at;
		size_t next;
	} *tried = xcalloc(count + 1, sizeof(*tried));
	uint64_t done = 0;
	bool fits = false, fails = false;
	tried[0].at = at;
	for (int steps = 0; !fits && !fails && steps < COUNT_LIMIT * 4; steps++) {
		uint64_t rest = file->bytes - tried[done].at;
		if (done < count && rest >= 8 && tried[done].next < sizeof(widths)) {
			unsigned char width = widths[tried[done].next++];
			uint64_t items = file_number(file, tried[done].at, 8);
			if (items == 0) /* then all widths are the same */
				tried[done].next = sizeof(widths);
			if (items > (rest - 8) / width)
				continue;
			tried[done + 1].at = tried[done].at + 8 + items * width;
			tried[++done].next = 0;
		} else if (!(fits = done == count && rest == 0) && !(fails = done == 0))
			done--;
	}
	free(tried);
	return !fails;
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
	for (int i = 0; read && (torch ? i < 5 : i == 0 || file_has(file, at, "\x80", 1)); i++)
		read = skip_pickle(file, &at, &strings);
	if (torch ? read && strings <= COUNT_LIMIT && !storages_fit(file, at, strings)
		  : !file_has(file, file->bytes - 1, ".", 1))
		file_wrong(file, "is cut short");
}

/* MessagePack: values, each a byte and perhaps a number of bytes, or of values that follow. */
static void check_msgpack(struct file *file)
{
	/* Of the bytes 0xc0 to 0xdf: what follows, and the width of a number before that. */
	static const unsigned char fixed[32] = {
		[7] = 1, 1, 1, 4, 8, 1, 2, 4, 8, 1, 2, 4, 8, 2, 3, 5, 9, 17};
	static const unsigned char widths[32] = {
		[4] = 1, 2, 4, 1, 2, 4, [25] = 1, 2, 4, 2, 4, 2, 4};
	uint64_t at = 0, values = 1;
	for (uint64_t steps = 0; values > 0 && steps < STEPS_LIMIT; values--, steps++) {
		if (at > file->bytes || values > file->bytes - at)
			file_wrong(file, "is cut short");
		uint64_t code = file_number(file, at++, 1), length = 0;
		if (file->status != STATUS_OK)
			return;
		if (code == 0xc1)
			file_wrong(file, "is damaged");
		if (code >= 0xc0 && code < 0xe0) {
			for (int i = widths[code - 0xc0]; i > 0; i--)
				length = length << 8 | file_number(file, at++, 1);
			at += fixed[code - 0xc0] + (code < 0xdc ? length : 0);
			values += code < 0xdc ? 0 : code < 0xde ? length : length * 2;
		} else if (code >= 0x80 && code < 0xa0)
			values += code < 0x90 ? (code & 15) * 2 : code & 15;
		else if (code >= 0xa0 && code < 0xc0)
			at += code & 31;
	}
	if (values == 0 && at != file->bytes)
		file_wrong(file, at > file->bytes ? "is cut short" : "has bytes after its end");
}

/* JSON of any depth that a program writes. */
static void check_json(struct file *file)
{
	size_t length = file->bytes <= JSON_LIMIT ? (size_t)file->bytes : 0;
	const unsigned char *text = file_bytes(file, 0, length);
	struct json_tokener *tokener = length && text ? json_tokener_new_ex(1000) : NULL;
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

/* A tar archive: each file has a block before it with its size, and two of zeros are at the end. */
static void check_tar(struct file *file)
{
	static const char zeros[512];
	uint64_t at = 0;
	for (uint64_t steps = 0; steps < COUNT_LIMIT && file->status == STATUS_OK; steps++) {
		const unsigned char *block = file_bytes(file, at, 512);
		if (!block || memcmp(block, zeros, 512) == 0)
			break;
		uint64_t size = 0;
		for (int i = 124; i < 136 && !(block[124] & 0x80); i++)
			size = block[i] >= '0' && block[i] <= '7' ? size * 8 + (block[i] - '0')
								  : size;
		if (block[124] & 0x80)
			for (int i = 128; i < 136; i++)
				size = size << 8 | block[i];
		if (size > file->bytes) {
			file_wrong(file, "is cut short");
			return;
		}
		at += 512 + (size + 511) / 512 * 512;
	}
}

/* A manifest of OCDBT, in which Orbax writes arrays: its length is in it. */
static void check_ocdbt(struct file *file)
{
	if (file_number(file, 4, 8) != file->bytes)
		file_wrong(file, "is cut short");
}

enum content {
	UNKNOWN,
	ZIP,
	NO_ZIP,
	HDF5,
	NPY,
	PICKLE,
	SAFETENSORS,
	MSGPACK,
	JSON,
	TABLE,
	TORCH,
	OCDBT,
	TAR
};
static const struct {
	const char *what;
	void (*check)(struct file *file); /* NULL: nothing is known of its end */
	const char *endings;		  /* of names that promise this content */
	size_t length; /* of the signature; 0: it is not told by its first bytes */
	char signature[9];
} contents[] = {
	/* accelerate writes archives with .pkl, and joblib compressed pickles. */
	[UNKNOWN] = {"a checkpoint", NULL, " .distcp .pkl ", 0, ""},
	[TORCH] = {"an archive or a pickle", NULL, " .pt .pth .ckpt .bin .tar ", 0, ""},
	[ZIP] = {"a zip archive", check_zip, " .npz .keras ", 4, "PK\3\4"},
	[NO_ZIP] = {"an empty zip archive", check_zip, "", 4, "PK\5\6"},
	[HDF5] = {"HDF5", check_hdf5, " .h5 .hdf5 ", 8, "\x89HDF\r\n\x1a\n"},
	[NPY] = {"an array of NumPy", check_npy, " .npy ", 6, "\x93NUMPY"},
	[PICKLE] = {"a pickle", check_pickle, "", 1, "\x80"},
	[SAFETENSORS] = {"safetensors", check_safetensors, " .safetensors ", 0, ""},
	[MSGPACK] = {"MessagePack", check_msgpack, " .msgpack ", 0, ""},
	[JSON] = {"JSON", check_json, " .json ", 0, ""},
	[TABLE] = {"a table", format_check_table, " .index ", 0, ""},
	[OCDBT] = {"OCDBT", check_ocdbt, " .ocdbt ", 4, "\x0c\xdb\x3a\x2a"},
	[TAR] = {"a tar archive", check_tar, "", 0, ""},
};
#define CONTENTS (sizeof(contents) / sizeof(contents[0]))

/*
 * What the first bytes say. Many files may begin with the byte of a pickle: also its version and
 * one of the opcodes that are usual then have to follow.
 */
static enum content content_of(struct file *file)
{
	static const char opcodes[] = "}](c)KMJGXUNI\x8a\x8c\x95\x88\x89";
	size_t length = file->bytes < 10 ? (size_t)file->bytes : 10;
	unsigned char head[10] = {0};
	const unsigned char *bytes = file_bytes(file, 0, length);
	if (bytes)
		memcpy(head, bytes, length);
	for (enum content i = 0; i < CONTENTS; i++)
		if (i != PICKLE && contents[i].length && contents[i].length <= length &&
			memcmp(head, contents[i].signature, contents[i].length) == 0)
			return i;
	bool opcode = length < 3 || (head[2] && strchr(opcodes, head[2]));
	if (head[0] == 0x80 && (length < 2 || (head[1] >= 2 && head[1] <= 5)) && opcode)
		return PICKLE;
	if (memcmp(head + 8, "{\"", 2) == 0 && little_endian(head, 8) <= HEADER_LIMIT)
		return SAFETENSORS;
	return file_has(file, 257, "ustar", 5) ? TAR : UNKNOWN;
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

static void check(struct file *file)
{
	enum content named = 0;
	while (named < CONTENTS && !strstr(contents[named].endings, file->ending))
		named++;
	bool promise = named < CONTENTS, begins = false;
	if (file->bytes == 0 && promise)
		file_wrong(file, "is empty");
	if (file->bytes == 0 || is_word(file))
		return;
	if (only_zeros(file))
		file_wrong(file, "has only zeros");
	check_text(file);
	enum content found = content_of(file);
	for (size_t i = 0; i < CONTENTS; i++)
		begins |= file->bytes < contents[i].length &&
			  file_has(file, 0, contents[i].signature, (size_t)file->bytes);
	if (promise && contents[named].check && !contents[named].length)
		found = named; /* whatever the first bytes are */
	else if (promise && file->bytes < 8 && found == UNKNOWN && begins)
		file_wrong(file, "is cut short");
	else if (file->bytes >= 8 && promise &&
		 ((named == UNKNOWN && file_has(file, 0, "\0\0\0\0\0\0\0", 8)) ||
			 (named == TORCH && found == UNKNOWN) ||
			 (contents[named].length && found != named && found != NO_ZIP)))
		file_wrong(file, "is not %s", contents[named].what);
	if (file->status == STATUS_OK && contents[found].check)
		contents[found].check(file);
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
	struct json_object *read = NULL;
	enum status status = format_read(root, name, JSON_LIMIT, &text, why);
	if (status == STATUS_OK)
		read = json_parse_limited(text_string(&text), text.length, JSON_LIMIT);
	if (status == STATUS_OK && !read)
		status = error_set(why, STATUS_NO, "%s is no whole JSON document", name);
	if (read)
		*object = read;
	text_release(&text);
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
