/* SPDX-License-Identifier: MIT */
#include "ckpt/formats.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <json-c/linkhash.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/xalloc.h"

#define JSON_LIMIT   ((size_t)64 << 20)
#define HEADER_LIMIT 100000000 /* of safetensors, by its specification */
#define PICKLE_LIMIT ((uint64_t)16 << 20)
#define BLOCK_LIMIT  ((uint64_t)64 << 20) /* of an index of TensorFlow */
#define STEPS_LIMIT  ((uint64_t)1 << 25)  /* values in a file; what has more says nothing */
#define COUNT_LIMIT  100000		  /* shards, storages, and attempts to fit them */
#define READ_BYTES   ((uint64_t)16 << 10)

/* The bytes of a file, of which a window is in memory. */
struct file {
	const char *name;
	uint64_t bytes;
	int descriptor;
	unsigned char *window;
	uint64_t start, filled; /* what the window has */
	enum status status;	/* of the first thing that was wrong */
	struct error *why;
};

/* Remember that the file is wrong, if nothing was before. */
static enum status wrong(struct file *file, const char *what)
{
	if (file->status == STATUS_OK)
		file->status = error_set(file->why, STATUS_NO, "%s %s", file->name, what);
	return file->status;
}

/* STATUS_NO: it is missing, or not a file. */
static enum status open_file(int root, const char *name, struct file *file, struct error *why)
{
	struct stat st;
	int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
	*file = (struct file){.name = name, .why = why, .descriptor = openat(root, name, flags)};
	if (file->descriptor < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP))
		return wrong(file, "is missing");
	if (file->descriptor < 0 && errno == ENXIO)
		return wrong(file, "is not a file");
	if (file->descriptor < 0)
		return error_errno(why, errno, "open %s", name);
	if (file_fstat(file->descriptor, &st) < 0)
		file->status = error_errno(why, errno, "look at %s", name);
	else if (!S_ISREG(st.st_mode))
		wrong(file, "is not a file");
	else
		file->bytes = (uint64_t)st.st_size;
	if (file->status != STATUS_OK)
		close(file->descriptor);
	return file->status;
}

static enum status close_file(struct file *file)
{
	close(file->descriptor);
	free(file->window);
	return file->status;
}

/* The bytes at an offset, until the next call. NULL: the file ends before, or cannot be read. */
static const unsigned char *bytes_at(struct file *file, uint64_t offset, uint64_t length)
{
	if (offset > file->bytes || length > file->bytes - offset)
		wrong(file, "is cut short");
	if (file->status != STATUS_OK)
		return NULL;
	if (offset >= file->start && offset - file->start <= file->filled &&
		length <= file->filled - (offset - file->start))
		return file->window + (offset - file->start);
	uint64_t size = length > READ_BYTES ? length : READ_BYTES;
	if (size > file->bytes - offset)
		size = file->bytes - offset;
	file->window = xrealloc(file->window, size + 1, 1);
	file->start = offset;
	for (file->filled = 0; file->filled < length;) {
		ssize_t n = pread(file->descriptor, file->window + file->filled,
			size - file->filled, (off_t)(offset + file->filled));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			file->status = error_errno(file->why, errno, "read %s", file->name);
		if (n == 0)
			wrong(file, "is cut short");
		if (n <= 0)
			return NULL;
		file->filled += (uint64_t)n;
	}
	return file->window;
}

static uint64_t little_endian(const unsigned char *bytes, size_t count)
{
	uint64_t value = 0;
	while (count-- > 0)
		value = value << 8 | bytes[count];
	return value;
}

/* The number of this many bytes at an offset. 0 and the file's status: there is none. */
static uint64_t number_at(struct file *file, uint64_t offset, size_t width)
{
	const unsigned char *bytes = bytes_at(file, offset, width);
	return bytes ? little_endian(bytes, width) : 0;
}

static bool has_at(struct file *file, uint64_t offset, const char *text, size_t length)
{
	return offset <= file->bytes && length <= file->bytes - offset &&
	       bytes_at(file, offset, length) &&
	       memcmp(bytes_at(file, offset, length), text, length) == 0;
}

static bool ends_with(const char *name, const char *end)
{
	size_t length = strlen(name), tail = strlen(end);
	return length >= tail && strcmp(name + length - tail, end) == 0;
}

static const char *base_of(const char *name)
{
	const char *slash = strrchr(name, '/');
	return slash ? slash + 1 : name;
}

/*
 * A zip archive: at its end the record with the number of entries, the size and the offset of its
 * directory, which may be followed by a comment. Before this record there may be one with longer
 * numbers, 76 bytes with its own pointer. A .distcp may be several archives one after another,
 * each of which counts offsets from its own beginning.
 */
static enum status check_zip(struct file *file)
{
	enum { END = 22, LONGER = 76, ENTRY = 46 };
	uint64_t most = file->bytes < END + UINT16_MAX ? file->bytes : END + UINT16_MAX;
	uint64_t end = file->bytes;
	const unsigned char *tail = bytes_at(file, file->bytes - most, most);
	for (uint64_t rest = END; tail && rest <= most && end == file->bytes; rest++)
		if (memcmp(tail + most - rest, "PK\5\6", 4) == 0 &&
			little_endian(tail + most - rest + 20, 2) == rest - END)
			end = file->bytes - rest;
	if (end == file->bytes)
		return wrong(file, "is cut short: the archive has no directory at its end");
	uint64_t count = number_at(file, end + 10, 2), size = number_at(file, end + 12, 4);
	uint64_t offset = number_at(file, end + 16, 4);
	if (end >= LONGER && has_at(file, end - LONGER, "PK\6\6", 4) &&
		has_at(file, end - 20, "PK\6\7", 4)) {
		end -= LONGER;
		count = number_at(file, end + 32, 8);
		size = number_at(file, end + 40, 8);
		offset = number_at(file, end + 48, 8);
	}
	bool fits = size <= end && offset <= end - size;
	if (!fits || (offset != end - size && !ends_with(file->name, ".distcp")))
		return wrong(file, "is cut short, or its directory is damaged");
	uint64_t at = end - size;
	for (; at < end && count > 0 && has_at(file, at, "PK\1\2", 4); count--)
		at += ENTRY + number_at(file, at + 28, 2) + number_at(file, at + 30, 2) +
		      number_at(file, at + 32, 2);
	return at != end || count > 0 ? wrong(file, "has a damaged directory") : file->status;
}

/* HDF5: the first block says where the file ends, in numbers whose width it also says. */
static enum status check_hdf5(struct file *file)
{
	uint64_t version = number_at(file, 8, 1);
	if (version > 3)
		return file->status;
	uint64_t width = number_at(file, version < 2 ? 13 : 9, 1);
	if (width != 2 && width != 4 && width != 8)
		return wrong(file, "has a damaged beginning");
	uint64_t first = version == 0 ? 24 : version == 1 ? 28 : 12;
	uint64_t end = number_at(file, first + 2 * width, (size_t)width);
	if (version == 3 && number_at(file, 11, 1) & 1)
		return wrong(file, "was not closed by its writer");
	if (end < first + 4 * width)
		return wrong(file, "has a damaged beginning");
	return end > file->bytes ? wrong(file, "is cut short") : file->status;
}

/* An array of NumPy. The header is a dictionary as Python writes it. */
static enum status check_npy(struct file *file)
{
	size_t wide = number_at(file, 6, 1) == 1 ? 2 : 4;
	uint64_t length = number_at(file, 8, wide), data = 8 + wide + length, width, need = 1;
	const unsigned char *bytes = length <= UINT16_MAX ? bytes_at(file, 8 + wide, length) : NULL;
	if (!bytes)
		return file->status;
	char *header = xstrndup((const char *)bytes, length), kind;
	const char *type = strstr(header, "'descr'"), *shape = strstr(header, "'shape'");
	bool known = type && shape && (shape = strchr(shape, '(')) &&
		     sscanf(type, "'descr': '%*[<>|=]%c%9" SCNu64, &kind, &width) == 2 &&
		     strchr("biufcSUVmM", kind);
	for (char *next; known && *shape && *shape != ')'; shape = next) {
		uint64_t items = strtoull(shape + strspn(shape, "(, L"), &next, 10);
		known = !__builtin_mul_overflow(need, items, &need);
		next += strspn(next, ", L");
	}
	if (known && !__builtin_mul_overflow(need, kind == 'U' ? width * 4 : width, &need)) {
		if (need > file->bytes - data)
			wrong(file, "is cut short");
		/* More arrays may follow. */
		else if (need < file->bytes - data && !has_at(file, data + need, "\x93NUMPY", 6))
			wrong(file, "has more bytes than its header says");
	}
	free(header);
	return file->status;
}

static enum status check_safetensors(struct file *file)
{
	uint64_t length = number_at(file, 0, 8), end = 0;
	if (file->status == STATUS_OK && length > HEADER_LIMIT)
		return wrong(file, "has an impossible header");
	const unsigned char *text = bytes_at(file, 8, length);
	struct json_object *header =
		text ? json_parse_limited((const char *)text, length, HEADER_LIMIT) : NULL;
	if (!json_object_is_type(header, json_type_object)) {
		json_object_put(header);
		return wrong(file, "has an impossible header");
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
	if (file->bytes - 8 - length != end)
		file->status = error_set(file->why, STATUS_NO,
			"%s has %" PRIu64 " bytes of data instead of %" PRIu64, file->name,
			file->bytes - 8 - length, end);
	return file->status;
}

/* What follows an opcode of a pickle: bytes, bytes with their number before them, or lines. */
static const struct {
	char opcodes[48];
	unsigned char fixed, counted, lines;
} arguments[] = {
	{"]ael)t\x85\x86\x87}dsu\x8f\x90\x91"
	 "02(1N\x88\x89\x97\x98\x94\x93Rbo\x81\x92Q",
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

/*
 * Skip a pickle, and count its strings. False: it does not end in the file, or is none; or, with a
 * status that is still STATUS_OK, it cannot be read further: joblib puts arrays between opcodes.
 */
static bool skip_pickle(struct file *file, uint64_t *at, uint64_t *strings)
{
	*strings = 0;
	for (uint64_t steps = 0; steps < STEPS_LIMIT && file->status == STATUS_OK; steps++) {
		char opcode = (char)number_at(file, (*at)++, 1);
		size_t row = 0, rows = sizeof(arguments) / sizeof(arguments[0]);
		if (opcode == '.' && file->status == STATUS_OK)
			return true;
		while (row < rows && (!opcode || !strchr(arguments[row].opcodes, opcode)))
			row++;
		if (row == rows)
			return wrong(file, "is a damaged pickle"), false;
		uint64_t length = arguments[row].fixed;
		if (arguments[row].counted) {
			length = number_at(file, *at, arguments[row].counted);
			*at += arguments[row].counted;
		}
		*strings += opcode == 'X' || opcode == '\x8c';
		if (has_at(file, *at, "joblib.", 7))
			return false;
		for (int lines = arguments[row].lines; lines > 0 && file->status == STATUS_OK;)
			lines -= number_at(file, (*at)++, 1) == '\n';
		if (file->status == STATUS_OK && length > file->bytes - *at)
			wrong(file, "is cut short");
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
			uint64_t items = number_at(file, tried[done].at, 8);
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
static enum status check_pickle(struct file *file)
{
	static const char mark[] = "\x8a\nl\xfc\x9c\x46\xf9 j\xa8P\x19.";
	size_t length = file->bytes < 32 ? (size_t)file->bytes : 32;
	const unsigned char *head = bytes_at(file, 0, length);
	bool torch = head && memmem(head, length, mark, strlen(mark)), read = true;
	uint64_t at = 0, strings = 0;
	for (int i = 0; read && (torch ? i < 5 : i == 0 || has_at(file, at, "\x80", 1)); i++)
		read = skip_pickle(file, &at, &strings);
	bool fits = torch ? !read || strings > COUNT_LIMIT || storages_fit(file, at, strings)
			  : has_at(file, file->bytes - 1, ".", 1);
	return fits ? file->status : wrong(file, "is cut short");
}

/* MessagePack: values, each a byte and perhaps a number of bytes, or of values that follow. */
static enum status check_msgpack(struct file *file)
{
	/* Of the bytes 0xc0 to 0xdf: what follows, and the width of a number before that. */
	static const unsigned char fixed[32] = {
		[7] = 1, 1, 1, 4, 8, 1, 2, 4, 8, 1, 2, 4, 8, 2, 3, 5, 9, 17};
	static const unsigned char widths[32] = {
		[4] = 1, 2, 4, 1, 2, 4, [25] = 1, 2, 4, 2, 4, 2, 4};
	uint64_t at = 0, values = 1;
	for (uint64_t steps = 0; values > 0 && steps < STEPS_LIMIT; values--, steps++) {
		if (at > file->bytes || values > file->bytes - at)
			return wrong(file, "is cut short");
		uint64_t code = number_at(file, at++, 1), length = 0;
		if (code == 0xc1)
			return wrong(file, "is damaged");
		if (code >= 0xc0 && code < 0xe0) {
			unsigned char width = widths[code - 0xc0];
			for (int i = 0; i < width; i++)
				length = length << 8 | number_at(file, at++, 1);
			at += fixed[code - 0xc0] + (code < 0xdc ? length : 0);
			values += code < 0xdc ? 0 : code < 0xde ? length : length * 2;
		} else if (code >= 0x80 && code < 0xa0)
			values += code < 0x90 ? (code & 15) * 2 : code & 15;
		else if (code >= 0xa0 && code < 0xc0)
			at += code & 31;
		if (file->status != STATUS_OK)
			return file->status;
	}
	if (values > 0)
		return STATUS_OK;
	return at > file->bytes	  ? wrong(file, "is cut short")
	       : at < file->bytes ? wrong(file, "has bytes after its end")
				  : STATUS_OK;
}

static enum status check_json(struct file *file)
{
	if (file->bytes > JSON_LIMIT)
		return STATUS_OK;
	const unsigned char *text = bytes_at(file, 0, file->bytes);
	struct json_object *object =
		text ? json_parse_limited((const char *)text, file->bytes, JSON_LIMIT) : NULL;
	bool null = has_at(file, 0, "null", 4); /* which json-c has no object for */
	json_object_put(object);
	return object || null ? file->status : wrong(file, "is no whole JSON document");
}

/* The footer of a table of LevelDB's format. */
static enum status check_table(struct file *file)
{
	return file->bytes >= 48 &&
			       has_at(file, file->bytes - 8, "\x57\xfb\x80\x8b\x24\x75\x47\xdb", 8)
		       ? file->status
		       : wrong(file, "is cut short, or is no table");
}

static enum status check_nothing(struct file *file)
{
	return file->status;
}

enum content { UNKNOWN, ZIP, EMPTY_ZIP, HDF5, NPY, PICKLE, SAFETENSORS, TAR, MSGPACK, JSON, TABLE };
static const struct {
	const char *what;
	enum status (*check)(struct file *file);
	size_t length; /* of the signature; 0: there is none */
	char signature[9];
} contents[] = {
	[UNKNOWN] = {"a zip archive or a pickle", check_nothing, 0, ""},
	[ZIP] = {"a zip archive", check_zip, 4, "PK\3\4"},
	[EMPTY_ZIP] = {"a zip archive", check_zip, 4, "PK\5\6"},
	[HDF5] = {"HDF5", check_hdf5, 8, "\x89HDF\r\n\x1a\n"},
	[NPY] = {"an array of NumPy", check_npy, 6, "\x93NUMPY"},
	[PICKLE] = {"a pickle", check_pickle, 1, "\x80"},
	[SAFETENSORS] = {"safetensors", check_safetensors, 0, ""},
	[TAR] = {"a tar archive", check_nothing, 0, ""},
	[MSGPACK] = {"MessagePack", check_msgpack, 0, ""},
	[JSON] = {"JSON", check_json, 0, ""},
	[TABLE] = {"a table", check_table, 0, ""},
};
#define CONTENTS (sizeof(contents) / sizeof(contents[0]))

/* What the ends of names promise. */
static const struct {
	const char *end;
	enum promise {
		NOTHING,
		SOMETHING, /* which may have several forms */
		TORCH,	   /* a zip archive or a pickle, or another format with a signature */
		EXACTLY,   /* the content, by its signature */
		ALWAYS,	   /* the content, which is checked whatever the first bytes are */
	} promise;
	enum content content;
} promises[] = {
	{".pt", TORCH, UNKNOWN},
	{".pth", TORCH, UNKNOWN},
	{".ckpt", TORCH, UNKNOWN},
	{".bin", TORCH, UNKNOWN},
	{".tar", TORCH, UNKNOWN},
	{".pkl", SOMETHING, UNKNOWN}, /* accelerate: zip archives; joblib: compressed ones */
	{".distcp", SOMETHING, UNKNOWN},
	{"/.metadata", EXACTLY, PICKLE},
	{".npz", EXACTLY, ZIP},
	{".keras", EXACTLY, ZIP},
	{".h5", EXACTLY, HDF5},
	{".hdf5", EXACTLY, HDF5},
	{".npy", EXACTLY, NPY},
	{".safetensors", ALWAYS, SAFETENSORS},
	{".msgpack", ALWAYS, MSGPACK},
	{".json", ALWAYS, JSON},
	{".index", ALWAYS, TABLE},
};
#define PROMISES (sizeof(promises) / sizeof(promises[0]))

/*
 * What the first bytes say. Those of a pickle are its version and what any of them begins with; a
 * file with other bytes should not look like one.
 */
static enum content content_of(struct file *file)
{
	size_t length = file->bytes < 10 ? (size_t)file->bytes : 10;
	const unsigned char *head = bytes_at(file, 0, length);
	if (!head)
		return UNKNOWN;
	for (size_t i = 0; i < CONTENTS; i++)
		if (i != PICKLE && contents[i].length && contents[i].length <= length &&
			memcmp(head, contents[i].signature, contents[i].length) == 0)
			return i == EMPTY_ZIP ? ZIP : (enum content)i;
	if (head[0] == 0x80 && (length < 2 || head[1] <= 5) &&
		(length < 3 || memchr("}](c)KMJGXUNI\x8a\x8c\x95\x88\x89", head[2], 18)))
		return PICKLE;
	if (length == 10 && memcmp(head + 8, "{\"", 2) == 0 &&
		little_endian(head, 8) <= HEADER_LIMIT)
		return SAFETENSORS;
	return has_at(file, 257, "ustar", 5) ? TAR : UNKNOWN;
}

/* Whether a short file is the beginning of something. */
static bool begins(struct file *file)
{
	for (size_t i = 0; i < CONTENTS; i++)
		if (file->bytes <= contents[i].length &&
			has_at(file, 0, contents[i].signature, file->bytes))
			return true;
	return false;
}

/* Look at up to 64 blocks. A chunk of an array of zarr, 0.0 or c/0/0, may have only zeros. */
static bool only_zeros(struct file *file)
{
	const char *base = base_of(file->name);
	uint64_t block = file->bytes < 4096 ? file->bytes : 4096;
	if (file->bytes < 8 || base[strspn(base, "0123456789.")] == '\0')
		return false;
	for (uint64_t i = 0; i < 64; i++) {
		uint64_t last = file->bytes - block;
		const unsigned char *bytes = bytes_at(file, i == 63 ? last : last / 63 * i, block);
		if (!bytes || bytes[0] || memcmp(bytes, bytes + 1, block - 1) != 0)
			return false;
	}
	return true;
}

/* What a failed download leaves in place of the file. NULL: it is something else. */
static const char *not_the_file(struct file *file)
{
	static const char *const texts[] = {
		".html", ".htm", ".xml", ".svg", ".md", ".txt", ".jinja"};
	static const char *const pages[] = {
		"<!doctype", "<!--", "<html", "<head", "<?xml", "<error"};
	static const char pointer[] = "version https://git-lfs";
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (ends_with(file->name, texts[i]))
			return NULL;
	if (has_at(file, 0, pointer, strlen(pointer)))
		return "is a pointer of Git LFS in place of the file";
	size_t length = file->bytes < 256 ? (size_t)file->bytes : 256, at = 0;
	const char *head = (const char *)bytes_at(file, 0, length);
	while (head && at < length && isspace((unsigned char)head[at]))
		at++;
	for (size_t i = 0; head && i < sizeof(pages) / sizeof(pages[0]); i++)
		if (length - at >= strlen(pages[i]) &&
			strncasecmp(head + at, pages[i], strlen(pages[i])) == 0)
			return "is an HTML or XML page in place of the file";
	return NULL;
}

static enum status check(struct file *file)
{
	static const char zeros[8];
	char path[PATH_MAX];
	size_t row = 0;
	snprintf(path, sizeof(path), "/%s", base_of(file->name));
	while (row < PROMISES && !ends_with(path, promises[row].end))
		row++;
	enum promise promise = row < PROMISES ? promises[row].promise : NOTHING;
	enum content named = row < PROMISES ? promises[row].content : UNKNOWN;
	if (file->bytes == 0)
		return promise == NOTHING ? STATUS_OK : wrong(file, "is empty");
	const char *other = only_zeros(file) ? "has only zeros" : not_the_file(file);
	if (other)
		return wrong(file, other);
	enum content found = promise == ALWAYS ? named : content_of(file);
	bool misses = (promise == SOMETHING && has_at(file, 0, zeros, sizeof(zeros))) ||
		      (promise == TORCH && found == UNKNOWN) ||
		      (promise == EXACTLY && found != named);
	if (file->status != STATUS_OK || !misses)
		return file->status == STATUS_OK ? contents[found].check(file) : file->status;
	if (file->bytes < 8)
		return begins(file) ? wrong(file, "is cut short") : STATUS_OK;
	return error_set(file->why, STATUS_NO, "%s is not %s", file->name, contents[named].what);
}

enum status format_check(int root, const char *name, uint64_t bytes, struct error *why)
{
	struct file file;
	enum status status = open_file(root, name, &file, why);
	if (status != STATUS_OK)
		return status;
	file.bytes = bytes;
	status = check(&file);
	close_file(&file);
	return status;
}

/* What the index of TensorFlow says of one data file. */
struct shard {
	bool used;
	uint64_t end;	       /* of the last tensor */
	uint64_t offset, size; /* of the smallest tensor; size is 0: there is none */
	uint64_t crc;
};
struct bundle {
	uint64_t count;
	struct shard *shards;
	uint64_t read;	 /* up to where blocks were read: they are in order */
	bool compressed; /* so not all of the index can be read */
};

/* The checksum of bytes as LevelDB and TensorFlow store it: CRC-32C, turned, and a constant. */
static uint64_t masked_crc(struct file *file, uint64_t offset, uint64_t length)
{
	uint32_t crc = UINT32_MAX;
	const unsigned char *bytes = bytes_at(file, offset, length);
	for (uint64_t i = 0; bytes && i < length; i++) {
		crc ^= bytes[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
	}
	crc = ~crc;
	return (uint32_t)((crc >> 15 | crc << 17) + 0xa282ead8);
}

/* Read a number of seven bits a byte, and move *at behind it. */
static uint64_t varint(struct file *file, uint64_t *at, uint64_t end)
{
	uint64_t value = 0;
	for (int shift = 0; shift < 64; shift += 7) {
		uint64_t byte = *at < end ? number_at(file, *at, 1) : 0x80;
		value |= (byte & 0x7f) << shift;
		(*at)++;
		if (byte < 0x80)
			return value;
	}
	wrong(file, "is damaged");
	return 0;
}

/* Read the fields 1 to 7 of a message of protobuf that are numbers. */
static void read_fields(struct file *file, uint64_t at, uint64_t end, uint64_t fields[8])
{
	while (at < end && file->status == STATUS_OK) {
		uint64_t tag = varint(file, &at, end), value = 0;
		size_t width = (tag & 7) == 1 ? 8 : (tag & 7) == 5 ? 4 : 0;
		if (width)
			value = number_at(file, at, width);
		else
			value = varint(file, &at, end);
		at += width;
		if ((tag & 7) == 2 && value <= end - at)
			at += value;
		else if ((tag & 7) == 2 || (tag & 7) > 5 || at > end)
			wrong(file, "is damaged");
		else if (tag >> 3 < 8)
			fields[tag >> 3] = value;
	}
}

/* The header has an empty key and comes first; then each entry is a tensor. */
static void read_tensor(
	struct file *file, bool header, uint64_t at, uint64_t end, struct bundle *bundle)
{
	enum { TYPE = 1, SHARDS = 1, SHARD = 3, OFFSET = 4, SIZE = 5, CRC = 6 };
	enum { STRING = 7, VARIANT = 21 }; /* types whose checksum is not that of their bytes */
	uint64_t fields[8] = {0}, end_of_tensor;
	read_fields(file, at, end, fields);
	if (header && !bundle->shards && fields[SHARDS] > 0 && fields[SHARDS] <= COUNT_LIMIT) {
		bundle->count = fields[SHARDS];
		bundle->shards = xcalloc(bundle->count, sizeof(*bundle->shards));
		return;
	}
	if (header || fields[SHARD] >= bundle->count ||
		__builtin_add_overflow(fields[OFFSET], fields[SIZE], &end_of_tensor)) {
		wrong(file, "is damaged");
		return;
	}
	struct shard *shard = &bundle->shards[fields[SHARD]];
	shard->used = true;
	if (end_of_tensor > shard->end)
		shard->end = end_of_tensor;
	if (fields[SIZE] > 0 && (shard->size == 0 || fields[SIZE] < shard->size) &&
		fields[TYPE] != STRING && fields[TYPE] != VARIANT) {
		shard->offset = fields[OFFSET];
		shard->size = fields[SIZE];
		shard->crc = fields[CRC];
	}
}

/*
 * Read a block, to which the two numbers at *at point: entries of keys, of which only the length is
 * of interest, and values; offsets of entries and their count; a byte for the compression, and a
 * checksum. The values of the index are such pairs of numbers.
 */
static void read_block(
	struct file *file, uint64_t *at, uint64_t end, bool index, struct bundle *bundle)
{
	uint64_t offset = varint(file, at, end), size = varint(file, at, end);
	if (size < 4 || size > BLOCK_LIMIT || (!index && offset < bundle->read) ||
		offset > file->bytes || size + 5 > file->bytes - offset ||
		masked_crc(file, offset, size + 1) != number_at(file, offset + size + 1, 4))
		wrong(file, "is damaged");
	bundle->compressed |= number_at(file, offset + size, 1) != 0;
	uint64_t restarts = number_at(file, offset + size - 4, 4);
	if (bundle->compressed || file->status != STATUS_OK)
		return;
	if (restarts > (size - 4) / 4)
		wrong(file, "is damaged");
	bundle->read = index ? 0 : offset + size;
	end = offset + size - 4 - 4 * restarts;
	while (offset < end && file->status == STATUS_OK) {
		uint64_t shared = varint(file, &offset, end), own = varint(file, &offset, end);
		uint64_t value = varint(file, &offset, end);
		if (offset > end || own > end - offset || value > end - offset - own) {
			wrong(file, "is damaged");
			return;
		}
		offset += own + value;
		uint64_t start = offset - value;
		if (index)
			read_block(file, &start, offset, false, bundle);
		else
			read_tensor(file, !shared && !own, start, offset, bundle);
	}
}

/* Compare a data file with what the index says of it. */
static enum status check_shard(
	int root, const char *name, const struct shard *shard, struct error *why)
{
	struct file file;
	enum status status = open_file(root, name, &file, why);
	if (status != STATUS_OK)
		return status;
	if (file.bytes != shard->end)
		file.status = error_set(why, STATUS_NO,
			"%s has %" PRIu64 " bytes instead of the %" PRIu64 " of its index", name,
			file.bytes, shard->end);
	else if (shard->size > 0 && shard->size <= BLOCK_LIMIT &&
		 masked_crc(&file, shard->offset, shard->size) != shard->crc)
		wrong(&file, "has other contents than its index says");
	return close_file(&file);
}

enum status format_check_tensorflow(int root, const char *name, struct error *why)
{
	struct file file;
	struct bundle bundle = {0};
	char data[PATH_MAX];
	enum status status = open_file(root, name, &file, why);
	if (status != STATUS_OK)
		return status;
	if (check_table(&file) == STATUS_OK) {
		uint64_t at = file.bytes - 48, end = file.bytes - 8;
		varint(&file, &at, end); /* another index, which is not used */
		varint(&file, &at, end);
		read_block(&file, &at, end, true, &bundle);
	}
	if (!bundle.shards && !bundle.compressed)
		wrong(&file, "is damaged");
	status = close_file(&file);
	size_t prefix = strlen(name) - (ends_with(name, ".index") ? strlen(".index") : 0);
	for (uint64_t i = 0; i < bundle.count && status == STATUS_OK && !bundle.compressed; i++)
		if (bundle.shards[i].used) {
			snprintf(data, sizeof(data), "%.*s.data-%05" PRIu64 "-of-%05" PRIu64,
				(int)prefix, name, i, bundle.count);
			status = check_shard(root, data, &bundle.shards[i], why);
		}
	free(bundle.shards);
	return status;
}

enum status format_read(
	int root, const char *name, size_t limit, struct text *text, struct error *why)
{
	struct file file;
	enum status status = open_file(root, name, &file, why);
	if (status != STATUS_OK)
		return status;
	text->limit = limit + 1;
	file.status = file_read_descriptor(file.descriptor, name, limit, text, why);
	if (file.status == STATUS_DAMAGED)
		file.status = error_set(why, STATUS_NO, "%s is too large", name);
	return close_file(&file);
}

enum status format_read_json(
	int root, const char *name, struct json_object **object, struct error *why)
{
	struct text text = {0};
	enum status status = format_read(root, name, JSON_LIMIT, &text, why);
	struct json_object *read = status == STATUS_OK ? json_parse_limited(text_string(&text),
								 text.length, JSON_LIMIT)
						       : NULL;
	text_release(&text);
	if (status == STATUS_OK && !read)
		return error_set(why, STATUS_NO, "%s is no whole JSON document", name);
	if (read)
		*object = read;
	return status;
}

/* Read the number that is pickled here, perhaps behind an opcode that stores the string before it.
 */
static bool read_number(const unsigned char *at, size_t rest, uint64_t *number)
{
	size_t skip = rest == 0 ? 0 : *at == 'q' ? 2 : *at == 'r' ? 5 : *at == 0x94 ? 1 : 0;
	if (rest < skip + 2)
		return false;
	at += skip;
	bool longer = *at == 0x8a;
	size_t width = *at == 'K' ? 1 : *at == 'M' ? 2 : *at == 'J' ? 4 : longer ? at[1] : 0;
	at += longer ? 2 : 1;
	/* The last two kinds have a sign. */
	if (width == 0 || width > 8 || rest < skip + 1 + longer + width ||
		((longer || width == 4) && at[width - 1] >= 0x80))
		return false;
	*number = little_endian(at, width);
	return true;
}

static bool find_number(
	const unsigned char *bytes, size_t length, const char *key, uint64_t *number)
{
	size_t size = strlen(key);
	const unsigned char *at = bytes, *end = bytes + length;
	while (at < end && (at = memmem(at, (size_t)(end - at), key, size))) {
		size_t before = (size_t)(at - bytes);
		bool whole = (before >= 5 && at[-5] == 'X' && little_endian(at - 4, 4) == size) ||
			     (before >= 2 && at[-2] == 0x8c && at[-1] == size);
		if (whole && read_number(at + size, (size_t)(end - at) - size, number))
			return true;
		at++;
	}
	return false;
}

enum status format_read_number(
	int root, const char *name, const char *key, uint64_t *number, struct error *why)
{
	struct file file;
	enum status status = open_file(root, name, &file, why);
	if (status != STATUS_OK)
		return status;
	bool found = false;
	uint64_t length = 0;
	for (uint64_t size = 65536; !found && length < file.bytes && size <= PICKLE_LIMIT;
		size *= 16) {
		length = file.bytes < size ? file.bytes : size;
		const unsigned char *bytes = bytes_at(&file, 0, length);
		found = bytes && find_number(bytes, length, key, number);
	}
	if (!found && file.status == STATUS_OK)
		file.status = error_set(why, STATUS_NO, "no %s can be read in %s", key, name);
	return close_file(&file);
}
