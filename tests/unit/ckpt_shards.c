/* SPDX-License-Identifier: MIT */
/*
 * Whether the files of a checkpoint's ranks are all there: what names, siblings and trackers show.
 */
#include <string.h>

#include "ckpt/layout/shards.h"
#include "unit.h"

/* One set: files seen, extents of two dimensions, bytes. */
struct set {
	uint64_t seen, extent[2], bytes;
};

enum { NONE, WHOLE, BROKEN };
#define OLDER true
#define NEWER false

static const struct {
	const char *name;
	struct set own;
	bool confirmed;
	struct {
		struct set set;
		int kind; /* of the sibling; NONE: there is none */
		bool older;
	} siblings[4];
	enum shards_answer answer;
} cases[] = {
	/* By itself. */
	{"nothing to compare with", {4, {4, 1}, 0}, false, {}, SHARDS_UNKNOWN},
	{"the tracker names it", {4, {4, 1}, 0}, true, {}, SHARDS_ALL},
	{"none is there", {0, {0, 0}, 0}, false, {}, SHARDS_UNKNOWN},
	{"none is there, and the tracker names it", {0, {0, 0}, 0}, true, {}, SHARDS_ALL},
	{"a gap", {3, {4, 1}, 0}, false, {}, SHARDS_MISSING},
	{"a gap in a grid", {7, {4, 2}, 0}, false, {}, SHARDS_MISSING},
	{"a gap, whatever siblings have", {3, {4, 1}, 0}, true, {{{3, {4, 1}, 0}, WHOLE, OLDER}},
		SHARDS_MISSING},
	{"more files than numbers", {5, {4, 1}, 0}, true, {{{5, {4, 1}, 0}, WHOLE, OLDER}},
		SHARDS_UNKNOWN},
	/* One has as many. */
	{"a whole older one has as many", {4, {4, 1}, 0}, false, {{{4, {4, 1}, 0}, WHOLE, OLDER}},
		SHARDS_ALL},
	{"a whole newer one has as many", {4, {4, 1}, 0}, false, {{{4, {4, 1}, 0}, WHOLE, NEWER}},
		SHARDS_ALL},
	{"a broken one shows nothing", {4, {4, 1}, 0}, false, {{{4, {4, 1}, 0}, BROKEN, OLDER}},
		SHARDS_UNKNOWN},
	{"only smaller ones", {4, {4, 1}, 0}, false, {{{2, {2, 1}, 0}, WHOLE, OLDER}},
		SHARDS_UNKNOWN},
	{"as many in one dimension", {4, {2, 2}, 0}, false, {{{2, {2, 1}, 0}, WHOLE, OLDER}},
		SHARDS_UNKNOWN},
	{"no sibling has any", {0, {0, 0}, 0}, false, {{{0, {0, 0}, 0}, WHOLE, OLDER}}, SHARDS_ALL},
	/* One has more. */
	{"an older one has more", {2, {2, 1}, 0}, false, {{{4, {4, 1}, 0}, WHOLE, OLDER}},
		SHARDS_FEWER},
	{"an older one has more, and the tracker names this one", {2, {2, 1}, 0}, true,
		{{{4, {4, 1}, 0}, WHOLE, OLDER}}, SHARDS_FEWER},
	{"an older one has some", {0, {0, 0}, 0}, true, {{{2, {2, 1}, 0}, WHOLE, OLDER}},
		SHARDS_FEWER},
	{"a broken older one has more", {2, {2, 1}, 0}, true, {{{3, {4, 1}, 0}, BROKEN, OLDER}},
		SHARDS_FEWER},
	{"a newer one has more", {2, {2, 1}, 0}, false, {{{4, {4, 1}, 0}, WHOLE, NEWER}},
		SHARDS_FEWER},
	{"a newer one has more, and the tracker names this one", {2, {2, 1}, 0}, true,
		{{{4, {4, 1}, 0}, WHOLE, NEWER}}, SHARDS_ALL},
	{"as many before, and a newer one has more", {2, {2, 1}, 0}, false,
		{{{2, {2, 1}, 0}, WHOLE, OLDER}, {{4, {4, 1}, 0}, WHOLE, NEWER}}, SHARDS_ALL},
	{"an older one has more, another one as many", {2, {2, 1}, 0}, true,
		{{{4, {4, 1}, 0}, WHOLE, OLDER}, {{2, {2, 1}, 0}, WHOLE, NEWER}}, SHARDS_FEWER},
	{"an older one has more, two others as many", {2, {2, 1}, 0}, false,
		{{{4, {4, 1}, 0}, WHOLE, OLDER}, {{2, {2, 1}, 0}, WHOLE, NEWER},
			{{2, {2, 1}, 0}, WHOLE, NEWER}},
		SHARDS_ALL},
	{"an older one has more, two others as many, one of them broken", {2, {2, 1}, 0}, false,
		{{{4, {4, 1}, 0}, WHOLE, OLDER}, {{2, {2, 1}, 0}, WHOLE, NEWER},
			{{2, {2, 1}, 0}, BROKEN, NEWER}},
		SHARDS_FEWER},
	/* Bytes. */
	{"an older one has as many bytes in more files", {2, {2, 1}, 900}, true,
		{{{4, {4, 1}, 1000}, WHOLE, OLDER}}, SHARDS_ALL},
	{"an older one has more files and bytes", {2, {2, 1}, 500}, true,
		{{{4, {4, 1}, 1000}, WHOLE, OLDER}}, SHARDS_FEWER},
	{"one of many files less", {31, {31, 1}, 969}, true, {{{32, {32, 1}, 1000}, WHOLE, OLDER}},
		SHARDS_FEWER},
	{"as many bytes in one of many files less", {31, {31, 1}, 1000}, true,
		{{{32, {32, 1}, 1000}, WHOLE, OLDER}}, SHARDS_ALL},
};

static struct shards make(const struct set *set, bool confirmed)
{
	bool any = set->seen > 0;
	return (struct shards){
		.sets = {{0}, {.what = "states",
				      .seen = set->seen,
				      .bytes = set->bytes,
				      .extent = {set->extent[0], set->extent[1], any}}},
		.confirmed = confirmed};
}

int main(void)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct shards own = make(&cases[i].own, cases[i].confirmed), others[4];
		struct shards_sibling siblings[4];
		struct error why = {0};
		size_t count = 0;
		for (; count < 4 && cases[i].siblings[count].kind != NONE; count++) {
			others[count] = make(&cases[i].siblings[count].set, false);
			siblings[count] = (struct shards_sibling){.name = "other",
				.shards = &others[count],
				.whole = cases[i].siblings[count].kind == WHOLE,
				.older = cases[i].siblings[count].older};
		}
		enum shards_answer answer = shards_decide(&own, siblings, count, &why);
		CHECK(answer == cases[i].answer && (answer == SHARDS_ALL || *why.text), "%s: %d %s",
			cases[i].name, answer, why.text);
	}
	TEST("what is missing in one set outweighs what is not known of another")
	{
		struct shards own = {.sets = {{.what = "a", .seen = 1, .extent = {1, 1, 1}},
					     {.what = "b", .seen = 1, .extent = {2, 1, 1}}}};
		struct error why;
		CHECK_EQ(shards_decide(&own, NULL, 0, &why), SHARDS_MISSING);
		CHECK(strstr(why.text, "1 of 2 b are missing") != NULL);
		CHECK_EQ(shards_decide(&(struct shards){0}, NULL, 0, NULL), SHARDS_ALL);
	}
	TEST("a number in the files decides against trackers and siblings, but not against a gap")
	{
		struct shards own = {
			.sets = {{.what = "a", .seen = 2, .extent = {2, 1, 1}}}, .confirmed = true};
		const struct shards_sibling same = {"other", &own, .whole = true};
		struct shards more = own;
		const struct shards_sibling older = {"more", &more, .whole = true, .older = true};
		struct error why;
		more.sets[0].seen = more.sets[0].extent[0] = 4;
		own.sets[0].told = 4;
		CHECK_EQ(shards_decide(&own, &same, 1, &why), SHARDS_UNKNOWN);
		own.sets[0].told = 2;
		CHECK_EQ(shards_decide(&own, &older, 1, &why), SHARDS_ALL);
		own.sets[0].seen = 1;
		CHECK_EQ(shards_decide(&own, NULL, 0, &why), SHARDS_MISSING);
	}
	TEST("numbers that were seen make the extents")
	{
		struct shard_set set = {0};
		shards_count(&set, 10, 0, 3, 0);
		shards_count(&set, 20, 2, 1, 0);
		CHECK(set.seen == 2 && set.bytes == 30);
		CHECK(set.extent[0] == 3 && set.extent[1] == 4 && set.extent[2] == 1);
	}
	return unit_end();
}
