/* SPDX-License-Identifier: MIT */
#include "store/machine/request_room.h"

#include <string.h>
#include <xxhash.h>

#include "base/xalloc.h"

_Static_assert(sizeof(struct request_room) == REQUEST_ROOM, "a room has no gaps");

/* ---- States ---- */

#define STATE_BITS 3

uint64_t request_word(uint64_t ticket, enum request_state state)
{
	return ticket << STATE_BITS | state;
}

bool request_is_of(uint64_t word, uint64_t ticket)
{
	return word >> STATE_BITS == ticket;
}

enum request_fate request_fate(uint64_t word, uint64_t ticket, bool my_turn, bool changes)
{
	enum request_state state = word & ((1 << STATE_BITS) - 1);
	bool scribbled = !request_is_of(word, ticket) || state > REQUEST_ANSWERED;
	if (scribbled)
		return changes ? FATE_UNKNOWN : FATE_OURS;
	switch (state) {
	case REQUEST_NONE:
	case REQUEST_WAITING: return FATE_OURS;
	case REQUEST_ANSWERED: return FATE_ANSWERED;
	/* With my_turn: the process that took it died before the commit, so it is rolled back. */
	case REQUEST_TAKEN: return my_turn || !changes ? FATE_OURS : FATE_UNKNOWN;
	case REQUEST_COMMITTING: break;
	}
	if (!changes)
		return FATE_OURS;
	return my_turn ? FATE_CHECK : FATE_UNKNOWN;
}

/* ---- Rooms ---- */

uint64_t request_room_seed(const char *nonce, const char *path)
{
	return XXH64(nonce, strlen(nonce), XXH64(path, strlen(path), 0));
}

static uint64_t checksum_of(const struct request_room *room, uint64_t seed, uint64_t ticket)
{
	return XXH64(
		room->bytes, room->length, seed ^ XXH64(&ticket, sizeof(ticket), room->length));
}

void request_room_seal(struct request_room *room, uint64_t seed, uint64_t ticket)
{
	room->checksum = checksum_of(room, seed, ticket);
}

bool request_room_copy(
	struct request_room *to, const struct request_room *from, uint64_t seed, uint64_t ticket)
{
	memcpy(to, from, offsetof(struct request_room, bytes));
	if (to->length > REQUEST_ROOM_BYTES)
		return false;
	memcpy(to->bytes, from->bytes, to->length);
	return to->checksum == checksum_of(to, seed, ticket);
}

/* ---- Writing and reading bytes. After one failure, all that follow fail. ---- */

struct writer {
	struct request_room *room;
	bool full;
};

static void write_bytes(struct writer *writer, const void *bytes, size_t length)
{
	struct request_room *room = writer->room;
	writer->full |= length > REQUEST_ROOM_BYTES - room->length;
	if (writer->full || !length)
		return;
	memcpy(room->bytes + room->length, bytes, length);
	room->length += (uint32_t)length;
}

static void write_number(struct writer *writer, int64_t number)
{
	write_bytes(writer, &number, sizeof(number));
}

/* Write text with its NUL. */
static void write_text(struct writer *writer, const char *text)
{
	size_t length = strlen(text);
	write_number(writer, (int64_t)length);
	write_bytes(writer, text, length + 1);
}

struct reader {
	const struct request_room *room;
	size_t at;
	bool bad;
};

static const void *read_bytes(struct reader *reader, size_t length)
{
	const unsigned char *bytes = reader->room->bytes + reader->at;
	reader->bad |= reader->room->length > REQUEST_ROOM_BYTES ||
		       length > reader->room->length - reader->at;
	if (reader->bad)
		return NULL;
	reader->at += length;
	return bytes;
}

/* Read a number from 0 to most. Sets bad and returns 0 if it is not in this range. */
static int64_t read_number(struct reader *reader, int64_t most)
{
	int64_t number = 0;
	const void *bytes = read_bytes(reader, sizeof(number));
	if (bytes)
		memcpy(&number, bytes, sizeof(number));
	reader->bad |= number < 0 || number > most;
	return reader->bad ? 0 : number;
}

static const char *read_text(struct reader *reader, size_t least, size_t most)
{
	size_t length = (size_t)read_number(reader, (int64_t)most);
	const char *text = read_bytes(reader, length + 1);
	reader->bad |= !text || length < least || strnlen(text, length + 1) != length;
	return reader->bad ? NULL : text;
}

/* Read a text; "" means NULL. */
static const char *read_optional(struct reader *reader)
{
	const char *text = read_text(reader, 0, STORE_KEY_MAX);
	return text && *text ? text : NULL;
}

/* ---- Requests ---- */

static void write_ops(struct writer *writer, const struct store_op *ops, size_t count)
{
	write_number(writer, (int64_t)count);
	writer->full |= count > REQUEST_OPS;
	for (size_t i = 0; i < count && !writer->full; i++) {
		write_number(writer, ops[i].kind);
		write_text(writer, ops[i].key);
		if (ops[i].kind != STORE_PUT)
			continue;
		write_number(writer, (int64_t)ops[i].length);
		write_bytes(writer, ops[i].value, ops[i].length);
	}
}

bool request_room_write(
	struct request_room *room, const struct store_request *request, store_revision newest)
{
	struct writer writer = {.room = room, .full = request->compare_count > REQUEST_COMPARES};
	room->length = room->unused = 0;
	write_number(&writer, newest);
	write_number(&writer, (int64_t)request->compare_count);
	for (size_t i = 0; i < request->compare_count && !writer.full; i++) {
		write_text(&writer, request->compares[i].key);
		write_number(&writer, request->compares[i].revision);
	}
	write_ops(&writer, request->then, request->then_count);
	write_ops(&writer, request->otherwise, request->otherwise_count);
	write_text(&writer, request->group ? request->group : "");
	write_number(&writer, request->news);
	for (size_t i = 0; i < STORE_COUNTS; i++)
		write_text(&writer, request->count[i] ? request->count[i] : "");
	return !writer.full;
}

static size_t read_ops(struct reader *reader, struct store_op *ops)
{
	size_t count = (size_t)read_number(reader, REQUEST_OPS);
	for (size_t i = 0; i < count && !reader->bad; i++) {
		ops[i] = (struct store_op){
			.kind = (enum store_op_kind)read_number(reader, STORE_GET)};
		ops[i].key = read_text(reader, 1, STORE_KEY_MAX);
		if (ops[i].kind != STORE_PUT)
			continue;
		ops[i].length = (size_t)read_number(reader, STORE_VALUE_MAX);
		ops[i].value = read_bytes(reader, ops[i].length);
	}
	return count;
}

bool request_room_read(const struct request_room *room, struct posted_request *request)
{
	struct reader reader = {.room = room};
	struct store_request *to = &request->request;
	request->newest = read_number(&reader, INT64_MAX);
	to->compare_count = (size_t)read_number(&reader, REQUEST_COMPARES);
	for (size_t i = 0; i < to->compare_count && !reader.bad; i++) {
		request->compares[i].key = read_text(&reader, 1, STORE_KEY_MAX);
		request->compares[i].revision = read_number(&reader, INT64_MAX);
	}
	to->then_count = read_ops(&reader, request->then);
	to->otherwise_count = read_ops(&reader, request->otherwise);
	to->group = read_optional(&reader);
	to->news = read_number(&reader, 1);
	for (size_t i = 0; i < STORE_COUNTS; i++)
		to->count[i] = read_optional(&reader);
	/* The group becomes a path below the store's directory: it must not lead out of it. */
	reader.bad |= to->group && (*to->group == '/' || strstr(to->group, ".."));
	to->compares = request->compares;
	to->then = request->then;
	to->otherwise = request->otherwise;
	return !reader.bad && reader.at == room->length;
}

/* ---- Answers: a struct commit_summary, then the fields of the answer ---- */

bool request_room_write_answer(struct request_room *room, const struct store_answer *answer)
{
	struct writer writer = {.room = room};
	struct commit_summary end = {0};
	room->length = 0;
	write_bytes(&writer, &end, sizeof(end));
	write_number(&writer, answer->held);
	write_number(&writer, answer->revision);
	write_number(&writer, answer->news);
	for (size_t i = 0; i < STORE_COUNTS; i++)
		write_number(&writer, (int64_t)answer->counted[i]);
	write_number(&writer, (int64_t)answer->count);
	/* No keys: the process that asked knows them. */
	for (size_t i = 0; i < answer->count; i++) {
		write_number(&writer, answer->entries[i].value != NULL);
		write_number(&writer, answer->entries[i].revision);
		write_number(&writer, (int64_t)answer->entries[i].length);
		write_bytes(&writer, answer->entries[i].value, answer->entries[i].length);
	}
	return !writer.full;
}

void request_room_write_summary(struct request_room *room, const struct commit_summary *end)
{
	memcpy(room->bytes, end, sizeof(*end));
}

void request_room_read_summary(const struct request_room *room, struct commit_summary *end)
{
	memcpy(end, room->bytes, sizeof(*end));
}

static void read_entry(struct reader *reader, const char *key, struct store_entry *entry)
{
	bool present = read_number(reader, 1);
	store_revision revision = read_number(reader, INT64_MAX);
	size_t length = (size_t)read_number(reader, STORE_VALUE_MAX);
	const char *value = read_bytes(reader, length);
	*entry = (struct store_entry){.revision = revision, .length = length};
	if (reader->bad)
		return;
	entry->key = xstrdup(key);
	if (!present)
		return;
	entry->value = xmalloc(length + 1);
	memcpy(entry->value, value, length);
	entry->value[length] = '\0';
}

/* One entry for each STORE_GET of the branch that ran. */
static void read_entries(struct reader *reader, const struct store_op *ops, size_t count,
	struct store_answer *answer)
{
	size_t entries = (size_t)read_number(reader, REQUEST_OPS);
	answer->entries = xcalloc(count, sizeof(*answer->entries));
	for (size_t i = 0; i < count && !reader->bad; i++)
		if (ops[i].kind == STORE_GET)
			read_entry(reader, ops[i].key, &answer->entries[answer->count++]);
	reader->bad |= answer->count != entries;
}

bool request_room_read_answer(const struct request_room *room, const struct store_request *request,
	struct store_answer *answer)
{
	struct reader reader = {.room = room};
	(void)read_bytes(&reader, sizeof(struct commit_summary));
	answer->held = read_number(&reader, 1);
	answer->revision = read_number(&reader, INT64_MAX);
	answer->news = (uint32_t)read_number(&reader, UINT32_MAX);
	for (size_t i = 0; i < STORE_COUNTS; i++)
		answer->counted[i] = (uint64_t)read_number(&reader, INT64_MAX);
	read_entries(&reader, answer->held ? request->then : request->otherwise,
		answer->held ? request->then_count : request->otherwise_count, answer);
	if (!reader.bad && reader.at == room->length)
		return true;
	store_answer_release(answer);
	return false;
}
