/* SPDX-License-Identifier: MIT */
/*
 * Metrics: read strictly, written exactly, read back; and bytes and instants as options give them.
 */
#include <inttypes.h>
#include <json-c/json_tokener.h>
#include <math.h>
#include <string.h>

#include "base/parse.h"
#include "ckpt/metrics.h"
#include "unit.h"

static void check_exact(void)
{
	static const double values[] = {0, -0.0, 1, 0.1, 1.0 / 3, 1e308, -1e-308, 5e-324,
		123456789012345678.0, 9007199254740993.0, 3.14159265358979};
	TEST("what is written is read back exactly")
	{
		for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
			struct metrics metrics = {
				.items = {{"a \"b\" \xc3\xa9", values[i]}, {"n", NAN}}, .count = 2};
			struct metrics again = {0};
			struct text text = {0};
			double value;
			metrics_write(&metrics, &text);
			struct json_object *object = json_tokener_parse(text_string(&text));
			CHECK(object && metrics_parse(object, &again) && again.count == 2);
			CHECK(metrics_get(&again, "a \"b\" \xc3\xa9", &value) && value == values[i],
				"%s", text_string(&text));
			CHECK(!metrics_get(&again, "n", &value) &&
				!metrics_get(&again, "x", &value));
			json_object_put(object);
			text_release(&text);
		}
	}
}

static void check_documents(void)
{
	static const char *const wrong[] = {"[]", "1", "\"a\"", "{\"a\": \"1\"}", "{\"a\": true}",
		"{\"a\": {}}", "{\"\": 1}", "{\"a=b\": 1}"};
	struct metrics metrics = {.count = 7};
	TEST("what is no such object is refused, and nothing is changed")
	{
		for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
			struct json_object *object = json_tokener_parse(wrong[i]);
			CHECK(object && !metrics_parse(object, &metrics) && metrics.count == 7,
				"%s", wrong[i]);
			json_object_put(object);
		}
		CHECK(metrics_parse(NULL, &metrics) && metrics.count == 0);
	}
	TEST("no more than there is room for")
	{
		char text[32];
		for (int i = 0; i < METRICS_MAX; i++) {
			snprintf(text, sizeof(text), "m%d=%d", i, i);
			CHECK_EQ(metrics_read(text, &metrics, NULL), STATUS_OK);
		}
		CHECK_EQ(metrics_read("one=1", &metrics, NULL), STATUS_USAGE);
		struct metrics some = {.items = {{"m3", -3}, {"new", 1}}, .count = 2};
		metrics_merge(&some, &metrics);
		CHECK_EQ(some.count, METRICS_MAX);
		CHECK(some.items[0].value == -3 && strcmp(some.items[2].name, "m0") == 0);
	}
}

static void check_parsing(void)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} right[] = {{"1", 1}, {"4096", 4096}, {"10K", 10240}, {"10k", 10240}, {"10KiB", 10240},
		{"10KB", 10000}, {"2G", UINT64_C(2) << 30}, {"3TB", 3000000000000},
		{"15E", UINT64_C(15) << 60}, {"18446744073709551615", UINT64_MAX}};
	static const char *const wrong[] = {"", "0", "0G", "-1", "+1", " 1", "1 ", "1.5G", "G",
		"1GG", "1Gi", "1b", "16E", "18446744073709551616", "1X", "10%", "0x10"};
	uint64_t bytes = 0;
	int64_t utc = 0;
	TEST("numbers of bytes")
	{
		for (size_t i = 0; i < sizeof(right) / sizeof(right[0]); i++)
			CHECK(parse_bytes(right[i].text, &bytes, "x", NULL) == STATUS_OK &&
					bytes == right[i].bytes,
				"%s is %" PRIu64, right[i].text, bytes);
		for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
			CHECK(parse_bytes(wrong[i], &bytes, "x", NULL) == STATUS_USAGE, "\"%s\"",
				wrong[i]);
	}
	TEST("instants")
	{
		CHECK(parse_instant("@1700000000", &utc, "x", NULL) == STATUS_OK &&
			utc == 1700000000000);
		static const char *const no[] = {
			"", "@", "1700000000", "@0", "@-1", "@1.5", "@ 1", "@253402300800"};
		for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++)
			CHECK(parse_instant(no[i], &utc, "x", NULL) == STATUS_USAGE, "\"%s\"",
				no[i]);
	}
}

int main(void)
{
	check_exact();
	check_documents();
	check_parsing();
	return unit_end();
}
