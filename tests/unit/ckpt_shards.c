/* SPDX-License-Identifier: MIT */
/* Whether the files of a checkpoint's ranks are all there: what the files say, what siblings show.
 */
#include <string.h>

#include "ckpt/layout/shards.h"
#include "unit.h"

/* One set: files seen, extents and what the own files say, of two dimensions. */
struct set {
	uint64_t seen, extent[2], said[2];
};

enum { NONE, WHOLE, BROKEN };
#define ALONE                                                                                      \
	{                                                                                          \
		{                                                                                  \
			{0, {0, 0}, {0, 0}}, NONE, false                                           \
		}                                                                                  \
	}

static const struct {
	const char *name;
	struct set own;
	bool witnessed;
	struct {
		struct set set;
		int kind; /* of the sibling; NONE: there is none */
		bool older;
	} siblings[3];
	enum shards_answer answer;
} cases[] = {
	/* By itself. */
	{"all that it says", {4, {4, 1}, {4, 1}}, false, ALONE, SHARDS_ALL},
	{"the highest are missing", {2, {2, 1}, {4, 1}}, false, ALONE, SHARDS_MISSING},
	{"the highest of the second dimension are missing", {4, {4, 1}, {4, 2}}, false, ALONE,
		SHARDS_MISSING},
	{"none is there", {0, {0, 0}, {4, 1}}, false, ALONE, SHARDS_MISSING},
	{"a gap", {3, {4, 1}, {0, 0}}, false, ALONE, SHARDS_MISSING},
	{"a gap in a grid", {7, {4, 2}, {4, 2}}, false, ALONE, SHARDS_MISSING},
	{"a gap, whatever siblings have", {3, {4, 1}, {0, 0}}, true,
		{{{3, {4, 1}, {0, 0}}, WHOLE, true}}, SHARDS_MISSING},
	{"more than it says", {4, {4, 1}, {2, 1}}, false, ALONE, SHARDS_UNKNOWN},
	{"more than it says, as a sibling has", {4, {4, 1}, {2, 1}}, false,
		{{{4, {4, 1}, {4, 1}}, WHOLE, true}}, SHARDS_UNKNOWN},
	{"more files than numbers", {5, {4, 1}, {4, 1}}, false, ALONE, SHARDS_UNKNOWN},
	{"what it says outweighs older siblings that have more", {2, {2, 1}, {2, 1}}, false,
		{{{8, {8, 1}, {8, 1}}, WHOLE, true}}, SHARDS_ALL},
	{"what it says outweighs siblings that have as few", {2, {2, 1}, {4, 1}}, false,
		{{{2, {2, 1}, {2, 1}}, WHOLE, true}}, SHARDS_MISSING},
	/* It names no number of shards. */
	{"nothing to compare with", {4, {4, 1}, {0, 1}}, false, ALONE, SHARDS_UNKNOWN},
	{"a whole sibling has as many", {4, {4, 1}, {0, 1}}, false,
		{{{4, {4, 1}, {0, 1}}, WHOLE, true}}, SHARDS_ALL},
	{"a newer whole one, too", {4, {4, 1}, {0, 1}}, false,
		{{{4, {4, 1}, {0, 1}}, WHOLE, false}}, SHARDS_ALL},
	{"a broken sibling shows nothing", {4, {4, 1}, {0, 1}}, false,
		{{{4, {4, 1}, {0, 1}}, BROKEN, true}}, SHARDS_UNKNOWN},
	{"an older one has more", {2, {2, 1}, {0, 1}}, false, {{{4, {4, 1}, {0, 1}}, WHOLE, true}},
		SHARDS_FEWER},
	{"a newer one has more", {2, {2, 1}, {0, 1}}, false, {{{4, {4, 1}, {0, 1}}, WHOLE, false}},
		SHARDS_FEWER},
	{"a broken one has more", {2, {2, 1}, {0, 1}}, false, {{{3, {4, 1}, {0, 1}}, BROKEN, true}},
		SHARDS_FEWER},
	{"one says that there are more", {2, {2, 1}, {0, 1}}, false,
		{{{2, {2, 1}, {4, 1}}, BROKEN, true}}, SHARDS_FEWER},
	{"another size before, and as many beside it", {2, {2, 1}, {0, 1}}, false,
		{{{4, {4, 1}, {0, 1}}, WHOLE, true}, {{2, {2, 1}, {0, 1}}, WHOLE, false}},
		SHARDS_FEWER},
	{"as many before, and the job grew", {2, {2, 1}, {0, 1}}, false,
		{{{2, {2, 1}, {0, 1}}, WHOLE, true}, {{4, {4, 1}, {0, 1}}, WHOLE, false}},
		SHARDS_ALL},
	{"only smaller ones", {4, {4, 1}, {0, 1}}, false, {{{2, {2, 1}, {0, 1}}, WHOLE, true}},
		SHARDS_UNKNOWN},
	{"as many in one dimension", {4, {2, 2}, {0, 0}}, false,
		{{{2, {2, 1}, {0, 0}}, WHOLE, true}}, SHARDS_UNKNOWN},
	{"more in the one that it says", {2, {1, 2}, {1, 0}}, false,
		{{{2, {1, 2}, {1, 0}}, WHOLE, true}, {{4, {2, 2}, {2, 0}}, WHOLE, true}},
		SHARDS_ALL},
	{"no sibling has any", {0, {0, 0}, {0, 1}}, false, {{{0, {0, 0}, {0, 1}}, WHOLE, true}},
		SHARDS_ALL},
	{"a sibling has some", {0, {0, 0}, {0, 1}}, false, {{{2, {2, 1}, {0, 1}}, WHOLE, true}},
		SHARDS_FEWER},
	/* Others show that all were written. */
	{"witnessed, and nothing to compare with", {3, {3, 1}, {0, 0}}, true, ALONE, SHARDS_ALL},
	{"witnessed, but a sibling has more", {3, {3, 1}, {0, 0}}, true,
		{{{5, {5, 1}, {0, 0}}, WHOLE, false}}, SHARDS_FEWER},
};

static struct shards make(const struct set *set, bool witnessed)
{
	bool any = set->seen > 0;
	return (struct shards){
		.sets = {{0}, {.what = "states",
				      .seen = set->seen,
				      .extent = {set->extent[0], set->extent[1], any},
				      .said = {set->said[0], set->said[1], 1},
				      .witnessed = witnessed}}};
}

int main(void)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct shards own = make(&cases[i].own, cases[i].witnessed), others[3];
		struct shards_sibling siblings[3];
		struct error why = {0};
		size_t count = 0;
		for (; count < 3 && cases[i].siblings[count].kind != NONE; count++) {
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
		struct shards own = {
			.sets = {{.what = "a", .seen = 1, .extent = {1, 1, 1}},
				{.what = "b", .seen = 1, .extent = {1, 1, 1}, .said = {2, 1, 1}}}};
		struct error why;
		CHECK_EQ(shards_decide(&own, NULL, 0, &why), SHARDS_MISSING);
		CHECK(strstr(why.text, "1 of 2 b are missing") != NULL);
		CHECK_EQ(shards_decide(&(struct shards){0}, NULL, 0, NULL), SHARDS_ALL);
	}
	TEST("numbers that were seen make the extents")
	{
		struct shard_set set = {0};
		shards_see(&set, 0, 3, 0);
		shards_see(&set, 2, 1, 0);
		CHECK_EQ(set.seen, 2);
		CHECK(set.extent[0] == 3 && set.extent[1] == 4 && set.extent[2] == 1);
	}
	return unit_end();
}
