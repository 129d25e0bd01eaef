/* SPDX-License-Identifier: MIT */
/* A record by a table of fields: what is read, what is refused, what is written. */
#include "base/json_fields.h"

#include <stdlib.h>

#include "unit.h"

enum colour { RED, GREEN };
static const char *const colours[] = {"red", "green", NULL};

struct inner {
	int64_t since;
	char host[8];
};
struct record {
	uint64_t id;
	unsigned small;
	int code;
	int64_t offset;
	bool done;
	bool has_left;
	int64_t left;
	char name[6];
	char *text;
	char **words;
	enum colour colour;
	struct inner inner, part;
};

#define INNER(member)  JSON_MEMBER(struct inner, member)
#define RECORD(member) JSON_MEMBER(struct record, member)
static const struct json_field inner_fields[] = {
	{"since", JSON_TIME, JSON_REQUIRED, INNER(since)},
	{"host", JSON_TEXT, 0, INNER(host)},
	{0},
};
static const struct json_field part_fields[] = {
	{"part_since", JSON_TIME, JSON_SECONDS, INNER(since)},
	{"part_host", JSON_TEXT, 0, INNER(host), .shown = ""},
	{0},
};
static const struct json_field fields[] = {
	{"id", JSON_UNSIGNED, JSON_REQUIRED, RECORD(id)},
	{"small", JSON_UNSIGNED, 0, RECORD(small)},
	{"code", JSON_SIGNED, JSON_ALWAYS, RECORD(code), .least = 0, .most = 255},
	{"offset", JSON_SIGNED, 0, RECORD(offset)},
	{"done", JSON_BOOL, JSON_SHOWN, RECORD(done), .shown = "finished"},
	{"left", JSON_TIME, JSON_INSTANT, RECORD(left), JSON_PRESENT(struct record, has_left)},
	{"name", JSON_TEXT, 0, RECORD(name)},
	{"text", JSON_STRING, 0, RECORD(text)},
	{"words", JSON_WORDS, 0, RECORD(words)},
	{"colour", JSON_WORD, 0, RECORD(colour), .more = colours},
	{"inner", JSON_OBJECT, 0, RECORD(inner), .more = inner_fields},
	{NULL, JSON_PART, 0, RECORD(part), .more = part_fields},
	{0},
};

static enum json_reading read_into(struct record *record, const char *text, const char **wrong)
{
	return json_read_record(fields, text, strlen(text), record, wrong);
}

/* Which answer this text gets, and for which field. */
static bool is_read_as(const char *text, enum json_reading expected, const char *field)
{
	struct record record = {0};
	const char *wrong = "?";
	enum json_reading reading = read_into(&record, text, &wrong);
	json_release_record(fields, &record);
	if (reading == expected && (expected == JSON_WELL || !strcmp(wrong, field)))
		return true;
	printf("# %s: %d, %s\n", text, reading, wrong);
	return false;
}

static bool writes(const struct record *record, const char *expected)
{
	struct json_object *object = json_write_record(fields, record);
	bool same = !strcmp(json_line(object), expected);
	if (!same)
		printf("# %s\n# %s\n", json_line(object), expected);
	json_object_put(object);
	return same;
}

static const char full[] =
	"{\"id\":18446744073709551615,\"small\":7,\"code\":9,\"offset\":-3,\"done\":true,"
	"\"left\":0,\"name\":\"abc\",\"text\":\"long\",\"words\":[\"a\",\"\"],"
	"\"colour\":\"green\",\"inner\":{\"since\":5,\"host\":\"n1\"},"
	"\"part_since\":6,\"part_host\":\"n2\"}";

static void check_reading(void)
{
	TEST("every kind is read")
	{
		struct record r = {0};
		CHECK_EQ(read_into(&r, full, NULL), JSON_WELL);
		CHECK(r.id == UINT64_MAX && r.small == 7 && r.code == 9 && r.offset == -3);
		CHECK(r.done && r.has_left && r.left == 0 && !strcmp(r.name, "abc"));
		CHECK(!strcmp(r.text, "long") && r.colour == GREEN);
		CHECK(!strcmp(r.words[0], "a") && !*r.words[1] && !r.words[2]);
		CHECK(r.inner.since == 5 && !strcmp(r.inner.host, "n1"));
		CHECK(r.part.since == 6 && !strcmp(r.part.host, "n2"));
		CHECK(writes(&r, full));
		json_release_record(fields, &r);
		CHECK(!r.text && !r.words);
	}
	TEST("what is absent, and what is null, keeps what was there")
	{
		struct record r = {.code = 3, .colour = GREEN, .has_left = true, .left = 8};
		CHECK_EQ(read_into(&r, "{\"id\":1,\"code\":null,\"new\":[1]}", NULL), JSON_WELL);
		CHECK(r.code == 3 && r.colour == GREEN && r.left == 8 && !r.has_left);
	}
	TEST("the rest is read although one field is wrong")
	{
		struct record r = {.code = 3};
		const char *wrong = NULL;
		CHECK_EQ(read_into(&r, "{\"code\":256,\"small\":2,\"id\":\"1\",\"done\":true}",
				 &wrong),
			JSON_UNUSABLE);
		CHECK(!strcmp(wrong, "id") && r.code == 3 && r.small == 2 && r.done);
	}
	TEST("text is cut to its size")
	{
		struct record r = {0};
		CHECK_EQ(read_into(&r, "{\"id\":1,\"name\":\"abcdefgh\"}", NULL), JSON_WELL);
		CHECK(!strcmp(r.name, "abcde"));
	}
}

static void check_wrong(void)
{
	CHECK(is_read_as("[]", JSON_UNUSABLE, "") && is_read_as("", JSON_UNUSABLE, ""),
		"no object is no record");
	CHECK(is_read_as("{}", JSON_UNUSABLE, "id") &&
			is_read_as("{\"id\":null}", JSON_UNUSABLE, "id") &&
			is_read_as("{\"id\":-1}", JSON_UNUSABLE, "id") &&
			is_read_as("{\"id\":1.5}", JSON_UNUSABLE, "id"),
		"a required field that is absent or wrong");
	static const char *const optional[][2] = {
		{"{\"id\":1,\"small\":4294967296}", "small"},
		{"{\"id\":1,\"code\":-1}", "code"},
		{"{\"id\":1,\"offset\":\"1\"}", "offset"},
		{"{\"id\":1,\"done\":1}", "done"},
		{"{\"id\":1,\"left\":-1}", "left"},
		{"{\"id\":1,\"name\":1}", "name"},
		{"{\"id\":1,\"text\":{}}", "text"},
		{"{\"id\":1,\"words\":[1]}", "words"},
		{"{\"id\":1,\"colour\":\"blue\"}", "colour"},
		{"{\"id\":1,\"inner\":1}", "inner"},
		{"{\"id\":1,\"inner\":{}}", "inner"},
		{"{\"id\":1,\"part_since\":true}", "part_since"},
	};
	for (size_t i = 0; i < sizeof(optional) / sizeof(optional[0]); i++)
		CHECK(is_read_as(optional[i][0], JSON_PARTLY, optional[i][1]),
			"%s is told apart from damage", optional[i][0]);
}

static void check_writing(void)
{
	struct record zero = {0};
	CHECK(writes(&zero, "{\"id\":0,\"code\":0,\"inner\":{\"since\":0}}"),
		"what is zero is left out, unless the table says otherwise");
	struct json_object *object = json_object_new_object();
	json_put_text(object, "name", "x");
	struct record shown = {
		.part = {.since = 4004, .host = "n"}, .left = 1500, .has_left = true};
	json_show_fields(fields, &shown, object);
	CHECK(!strcmp(json_line(object), "{\"name\":\"x\",\"id\":0,\"code\":0,\"finished\":false,"
					 "\"left\":\"1970-01-01T00:00:01.500Z\","
					 "\"inner\":{\"since\":0},\"part_since\":4.004}"),
		"under the names that people see: %s", json_line(object));
	json_object_put(object);
}

int main(void)
{
	check_wrong();
	check_writing();
	check_reading();
	return unit_end();
}
