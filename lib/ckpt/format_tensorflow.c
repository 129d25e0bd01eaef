/* SPDX-License-Identifier: MIT */
/*
 * A checkpoint of TensorFlow ("bundle"): the index is a table of LevelDB's format, of which each
 * value is a message of protobuf that says where a tensor is in the data files.
 */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "ckpt/format_file.h"

#define BLOCK_LIMIT  ((uint64_t)64 << 20)
#define SHARDS_LIMIT 100000
#define FOOTER	     48 /* two pairs of numbers, zeros, and a mark */

/* What the index of TensorFlow says of one data file. */
struct shard {
	bool used;
	uint64_t end;		    /* of its last tensor */
	uint64_t offset, size, crc; /* of its smallest tensor; size is 0: there is none */
};
struct bundle {
	uint64_t count;
	struct shard *shards;
	uint64_t read;	 /* blocks are in order, and were read up to here */
	bool compressed; /* a block is, and cannot be read */
};

/* The checksum of bytes as LevelDB and TensorFlow store it: CRC-32C, turned, and a constant. */
static uint64_t masked_crc(struct file *file, uint64_t offset, uint64_t length)
{
	uint32_t crc = UINT32_MAX;
	const unsigned char *bytes = file_bytes(file, offset, length);
	for (uint64_t i = 0; bytes && i < length; i++) {
		crc ^= bytes[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
	}
	return (uint32_t)((~crc >> 15 | ~crc << 17) + 0xa282ead8);
}

/* Read a number of seven bits a byte, and move *at behind it. */
static uint64_t varint(struct file *file, uint64_t *at, uint64_t end)
{
	uint64_t value = 0;
	for (int shift = 0; shift < 64 && *at < end; shift += 7) {
		uint64_t byte = file_number(file, (*at)++, 1);
		value |= (byte & 0x7f) << shift;
		if (byte < 0x80)
			return value;
	}
	file_wrong(file, "is damaged");
	return 0;
}

/* Read the fields 1 to 7 of a message of protobuf that are numbers. */
static void read_fields(struct file *file, uint64_t at, uint64_t end, uint64_t fields[8])
{
	while (at < end && file->status == STATUS_OK) {
		uint64_t tag = varint(file, &at, end), kind = tag & 7, skip = 0, value = 0;
		if (kind == 0)
			value = varint(file, &at, end);
		else if (kind == 2)
			skip = varint(file, &at, end);
		else if (kind == 1 || kind == 5)
			value = file_number(file, at, skip = kind == 1 ? 8 : 4);
		else
			file_wrong(file, "is damaged");
		if (skip > end - at)
			file_wrong(file, "is damaged");
		at += skip;
		if (tag >> 3 < 8)
			fields[tag >> 3] = value;
	}
}

/* The first value, with an empty key, is a header; then each is a tensor. */
static void read_tensor(
	struct file *file, bool header, uint64_t at, uint64_t end, struct bundle *bundle)
{
	enum { TYPE = 1, SHARDS = 1, SHARD = 3, OFFSET = 4, SIZE = 5, CRC = 6 };
	enum { STRING = 7, VARIANT = 21 }; /* types whose checksum is not that of their bytes */
	uint64_t fields[8] = {0}, last;
	read_fields(file, at, end, fields);
	if (header && !bundle->shards && fields[SHARDS] > 0 && fields[SHARDS] <= SHARDS_LIMIT) {
		bundle->count = fields[SHARDS];
		bundle->shards = xcalloc(bundle->count, sizeof(*bundle->shards));
		return;
	}
	if (header || fields[SHARD] >= bundle->count ||
		__builtin_add_overflow(fields[OFFSET], fields[SIZE], &last)) {
		file_wrong(file, "is damaged");
		return;
	}
	struct shard *shard = &bundle->shards[fields[SHARD]];
	bool smaller = fields[SIZE] > 0 && (shard->size == 0 || fields[SIZE] < shard->size);
	shard->used = true;
	shard->end = last > shard->end ? last : shard->end;
	if (smaller && fields[TYPE] != STRING && fields[TYPE] != VARIANT) {
		shard->offset = fields[OFFSET];
		shard->size = fields[SIZE];
		shard->crc = fields[CRC];
	}
}

/*
 * Read the block at which a pair of numbers, offset and size, points: entries of keys, of which
 * only whether they are empty is of interest, and values; offsets of entries, and their count; a
 * byte for the compression, and a checksum. The values of the index are such pairs of numbers.
 */
static void read_block(
	struct file *file, bool index, uint64_t at, uint64_t end, struct bundle *bundle)
{
	uint64_t offset = varint(file, &at, end), size = varint(file, &at, end);
	if (size < 4 || size > BLOCK_LIMIT || offset < bundle->read || offset > file->bytes ||
		size + 5 > file->bytes - offset ||
		masked_crc(file, offset, size + 1) != file_number(file, offset + size + 1, 4))
		file_wrong(file, "is damaged");
	bundle->compressed |= file_number(file, offset + size, 1) != 0;
	uint64_t restarts = file_number(file, offset + size - 4, 4);
	if (!bundle->compressed && restarts > (size - 4) / 4)
		file_wrong(file, "is damaged");
	if (bundle->compressed || file->status != STATUS_OK)
		return;
	end = offset + size - 4 - 4 * restarts;
	bundle->read = index ? 0 : end;
	while (offset < end && file->status == STATUS_OK) {
		uint64_t shared = varint(file, &offset, end), own = varint(file, &offset, end);
		uint64_t value = varint(file, &offset, end);
		if (own > end - offset || value > end - offset - own) {
			file_wrong(file, "is damaged");
			return;
		}
		offset += own + value;
		if (index)
			read_block(file, false, offset - value, offset, bundle);
		else
			read_tensor(file, !shared && !own, offset - value, offset, bundle);
	}
}

/* Compare data file i with what the index says of it. */
static enum status check_shard(const struct file *index, const struct bundle *bundle, uint64_t i)
{
	const struct shard *shard = &bundle->shards[i];
	struct file file;
	int prefix = (int)(strrchr(index->name, '.') - index->name);
	char name[PATH_MAX];
	snprintf(name, sizeof(name), "%.*s.data-%05" PRIu64 "-of-%05" PRIu64, prefix, index->name,
		i, bundle->count);
	enum status status = file_open(index->root, name, &file, index->why);
	if (status != STATUS_OK)
		return status;
	if (file.bytes != shard->end)
		file_wrong(&file, "has %" PRIu64 " bytes instead of the %" PRIu64 " of its index",
			file.bytes, shard->end);
	else if (shard->size > 0 && shard->size <= BLOCK_LIMIT &&
		 masked_crc(&file, shard->offset, shard->size) != shard->crc)
		file_wrong(&file, "has other contents than its index says");
	return file_close(&file);
}

void format_check_tensorflow(struct file *file)
{
	struct bundle bundle = {0};
	if (file->bytes < FOOTER ||
		!file_has(file, file->bytes - 8, "\x57\xfb\x80\x8b\x24\x75\x47\xdb", 8)) {
		file_wrong(file, "is cut short, or is no table");
		return;
	}
	uint64_t at = file->bytes - FOOTER, end = file->bytes - 8;
	varint(file, &at, end);
	varint(file, &at, end); /* an index of other things */
	read_block(file, true, at, end, &bundle);
	if (!bundle.shards && !bundle.compressed)
		file_wrong(file, "is damaged");
	for (uint64_t i = 0; i < bundle.count && !bundle.compressed; i++)
		if (bundle.shards[i].used && file->status == STATUS_OK)
			file->status = check_shard(file, &bundle, i);
	free(bundle.shards);
}
