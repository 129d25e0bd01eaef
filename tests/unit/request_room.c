/* SPDX-License-Identifier: MIT */
/* How requests and answers are written into a room, and how a request that was posted ends. */
#include "store/machine/request_room.h"

#include <stdlib.h>
#include <string.h>

#include "store/backend.h"
#include "unit.h"

#define SEED 7

static uint64_t chance = 88172645463325252;

static uint64_t draw(void)
{
	chance ^= chance << 13;
	chance ^= chance >> 7;
	chance ^= chance << 17;
	return chance;
}

static void states(void)
{
	static const struct {
		enum request_state state;
		bool my_turn, changes;
		enum request_fate fate;
	} rows[] = {
		{REQUEST_NONE, true, true, FATE_OURS},
		{REQUEST_NONE, false, true, FATE_OURS},
		{REQUEST_WAITING, true, true, FATE_OURS},
		{REQUEST_WAITING, false, true, FATE_OURS},
		{REQUEST_TAKEN, true, true, FATE_OURS},
		{REQUEST_TAKEN, false, true, FATE_UNKNOWN},
		{REQUEST_TAKEN, false, false, FATE_OURS},
		{REQUEST_COMMITTING, true, true, FATE_CHECK},
		{REQUEST_COMMITTING, false, true, FATE_UNKNOWN},
		{REQUEST_COMMITTING, true, false, FATE_OURS},
		{REQUEST_ANSWERED, true, true, FATE_ANSWERED},
		{REQUEST_ANSWERED, false, true, FATE_ANSWERED},
		{REQUEST_ANSWERED, false, false, FATE_ANSWERED},
	};
	TEST("what the owner of a request does in each state, in its turn and at its deadline")
	{
		for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
			CHECK_EQ(request_fate(request_word(448, rows[i].state), 448,
					 rows[i].my_turn, rows[i].changes),
				rows[i].fate);
	}
	TEST("a word of another ticket, or of no state, is not counted: a change is not run twice")
	{
		CHECK_EQ(request_fate(request_word(896, REQUEST_ANSWERED), 448, true, true),
			FATE_UNKNOWN);
		CHECK_EQ(request_fate(request_word(448, 7), 448, true, true), FATE_UNKNOWN);
		CHECK_EQ(request_fate(request_word(448, 7), 448, true, false), FATE_OURS);
		CHECK(!request_is_of(request_word(896, REQUEST_WAITING), 448));
	}
}

static bool same_ops(const struct store_op *a, size_t count, const struct store_op *b, size_t other)
{
	bool same = count == other;
	for (size_t i = 0; same && i < count; i++)
		same = a[i].kind == b[i].kind && !strcmp(a[i].key, b[i].key) &&
		       (a[i].kind != STORE_PUT ||
			       (a[i].length == b[i].length &&
				       !memcmp(a[i].value, b[i].value, a[i].length)));
	return same;
}

static bool same_request(const struct store_request *a, const struct store_request *b)
{
	bool same = a->compare_count == b->compare_count &&
		    same_ops(a->then, a->then_count, b->then, b->then_count) &&
		    same_ops(a->otherwise, a->otherwise_count, b->otherwise, b->otherwise_count);
	for (size_t i = 0; same && i < a->compare_count; i++)
		same = !strcmp(a->compares[i].key, b->compares[i].key) &&
		       a->compares[i].revision == b->compares[i].revision;
	return same;
}

static struct request_room room;
static struct posted_request got;

static void requests(void)
{
	char key[STORE_KEY_MAX + 1];
	memset(key, 'k', STORE_KEY_MAX);
	key[STORE_KEY_MAX] = '\0';
	struct store_compare compares[] = {{"run/r/000001/key", 0}, {"b", 1}, {"c", 2}};
	TEST("a request is read as it was written")
	{
		struct store_op then[] = {{STORE_PUT, "a", "x\0y", 3}, {STORE_GET, key, NULL, 0},
			{STORE_DELETE, "b", NULL, 0}, {STORE_PUT, "empty", "", 0}};
		struct store_op otherwise[] = {{STORE_GET, "a", NULL, 0}};
		struct store_request request = {compares, 3, then, 4, otherwise, 1, "run/000001",
					     true, {"run/r/", "run/s/"}},
				     none = {0};
		CHECK(request_room_write(&room, &request, 41));
		CHECK(request_room_read(&room, &got));
		CHECK(same_request(&request, &got.request));
		CHECK_EQ(got.newest, 41);
		CHECK_TEXT(got.request.group, "run/000001");
		CHECK(got.request.news);
		CHECK_TEXT(got.request.count[0], "run/r/");
		CHECK_TEXT(got.request.count[1], "run/s/");
		CHECK(store_request_changes(&got.request));
		CHECK(request_room_write(&room, &none, 0));
		CHECK(request_room_read(&room, &got));
		CHECK(same_request(&none, &got.request));
		CHECK(!got.request.group && !got.request.news && !got.request.count[0]);
		none.group = "../elsewhere";
		CHECK(request_room_write(&room, &none, 0));
		CHECK(!request_room_read(&room, &got));
		none.group = NULL;
		CHECK(request_room_write(&room, &none, 0));
		CHECK(request_room_read(&room, &got));
		CHECK(!store_request_changes(&got.request));
	}
	TEST("a room that was written for another ticket or store, or is torn, is not copied")
	{
		struct request_room copy;
		struct store_op put = {STORE_PUT, "key", "value", 5};
		struct store_request request = {.then = &put, .then_count = 1};
		CHECK(request_room_write(&room, &request, 1));
		request_room_seal(&room, SEED, 500);
		CHECK(request_room_copy(&copy, &room, SEED, 500));
		CHECK(request_room_read(&copy, &got));
		CHECK(!request_room_copy(&copy, &room, SEED, 500 + 448));
		CHECK(!request_room_copy(&copy, &room, SEED + 1, 500));
		CHECK(request_room_seed("nonce", "/a") != request_room_seed("nonce", "/b"));
		for (uint32_t i = 0; i < room.length; i++) {
			room.bytes[i] ^= 1;
			CHECK(!request_room_copy(&copy, &room, SEED, 500));
			room.bytes[i] ^= 1;
		}
		room.length = UINT32_MAX;
		CHECK(!request_room_copy(&copy, &room, SEED, 500));
	}
}

static bool is_sound_text(const char *key)
{
	size_t length = strnlen(key, STORE_KEY_MAX + 1);
	return length >= 1 && length <= STORE_KEY_MAX;
}

/* All of it lies in the room, and is within the limits of store.h. */
static bool is_sound(const struct store_op *ops, size_t count)
{
	bool sound = count <= REQUEST_OPS;
	for (size_t i = 0; sound && i < count; i++) {
		const char *end = (const char *)room.bytes + REQUEST_ROOM_BYTES;
		sound = is_sound_text(ops[i].key) && ops[i].kind <= STORE_GET;
		if (sound && ops[i].kind == STORE_PUT)
			sound = (const char *)ops[i].value + ops[i].length <= end;
	}
	return sound;
}

static void garbage(void)
{
	static unsigned char whole[REQUEST_ROOM_BYTES];
	struct store_compare compare = {"compared", 3};
	struct store_op ops[] = {{STORE_PUT, "put", "value", 5}, {STORE_GET, "got", NULL, 0},
		{STORE_DELETE, "deleted", NULL, 0}};
	struct store_request request = {&compare, 1, ops, 3, ops, 2, "run/000001", true, {"run/"}};
	struct store_answer answer = {0};
	int accepted = 0;
	TEST("with any contents of a room, what is read from it is within the limits")
	{
		CHECK(request_room_write(&room, &request, 9));
		memcpy(whole, room.bytes, sizeof(whole));
		uint32_t length = room.length;
		for (int i = 0; i < 20000; i++) {
			memcpy(room.bytes, whole, length);
			room.length = length;
			for (uint64_t n = draw() % 4 + 1; n; n--)
				room.bytes[draw() % length] = (unsigned char)draw();
			if (draw() % 8 == 0)
				room.length = (uint32_t)(draw() % (REQUEST_ROOM_BYTES + 1));
			if (draw() % 64 == 0)
				room.length = (uint32_t)draw();
			if (!request_room_read(&room, &got))
				continue;
			accepted++;
			bool sound = got.request.compare_count <= REQUEST_COMPARES &&
				     is_sound(got.request.then, got.request.then_count) &&
				     is_sound(got.request.otherwise, got.request.otherwise_count) &&
				     (!got.request.group || is_sound_text(got.request.group));
			for (size_t n = 0; sound && n < got.request.compare_count; n++)
				sound = is_sound_text(got.compares[n].key);
			if (!CHECK(sound))
				break;
		}
		printf("# %d were requests\n", accepted);
		CHECK(accepted > 100);
	}
	TEST("the same of an answer: it is that of the request, or none")
	{
		struct store_entry entry = {.value = (char *)"value", .length = 5, .revision = 2};
		struct store_answer wrote = {
			.held = true, .revision = 3, .entries = &entry, .count = 1};
		CHECK(request_room_write_answer(&room, &wrote));
		memcpy(whole, room.bytes, sizeof(whole));
		uint32_t length = room.length;
		for (int i = 0; i < 20000; i++) {
			memcpy(room.bytes, whole, length);
			room.length = draw() % 8 ? length : (uint32_t)(draw() % REQUEST_ROOM_BYTES);
			room.bytes[draw() % length] = (unsigned char)draw();
			if (!request_room_read_answer(&room, &request, &answer)) {
				if (!CHECK(!answer.entries && !answer.count))
					break;
				continue;
			}
			if (!CHECK(answer.count == 1 && !strcmp(answer.entries[0].key, "got")))
				break;
			store_answer_release(&answer);
		}
	}
}

static void answers(void)
{
	struct commit_summary end = {.newest = 12,
				      .floor = 3,
				      .mark = 5,
				      .counter = 99,
				      .counted = true},
			      read;
	struct store_answer answer = {0};
	struct store_op gets[] = {{STORE_GET, "there", NULL, 0}, {STORE_PUT, "put", "v", 1},
		{STORE_GET, "absent", NULL, 0}};
	struct store_request request = {.then = gets, .then_count = 3};
	struct store_entry entries[] = {
		{.value = (char *)"a\0b", .length = 3, .revision = 5}, {.key = (char *)"absent"}};
	struct store_answer wrote = {.held = true, .revision = 11, .entries = entries, .count = 2};
	TEST("an answer is read as it was written, with the keys of the request")
	{
		CHECK(request_room_write_answer(&room, &wrote));
		request_room_write_summary(&room, &end);
		CHECK(request_room_read_answer(&room, &request, &answer));
		request_room_read_summary(&room, &read);
		CHECK_EQ(read.newest, 12);
		CHECK_EQ(read.mark, 5);
		CHECK_EQ(read.floor, 3);
		CHECK_EQ(read.counter, 99);
		CHECK(answer.held);
		CHECK_EQ(answer.revision, 11);
		CHECK_EQ(answer.count, 2);
		CHECK_TEXT(answer.entries[0].key, "there");
		CHECK(!memcmp(answer.entries[0].value, "a\0b", 4));
		CHECK_EQ(answer.entries[0].length, 3);
		CHECK_EQ(answer.entries[0].revision, 5);
		CHECK_TEXT(answer.entries[1].key, "absent");
		CHECK(!answer.entries[1].value);
		store_answer_release(&answer);
	}
	TEST("an answer to another request is none")
	{
		CHECK(request_room_write_answer(&room, &wrote));
		request.then_count = 1;
		CHECK(!request_room_read_answer(&room, &request, &answer));
		CHECK(!answer.entries);
	}
}

int main(void)
{
	states();
	requests();
	answers();
	garbage();
	return unit_end();
}
