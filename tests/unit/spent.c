/* SPDX-License-Identifier: MIT */
/* What a grace period was used for. */
#include "group/spent.h"

#include "unit.h"

static void says(const struct spent *spent, const char *wanted)
{
	struct text text = {0};
	CHECK(spent_say(spent, &text));
	CHECK_TEXT(text_string(&text), wanted);
	text_release(&text);
}

int main(void)
{
	TEST("training, saving and what is left add up to the grace")
	{
		struct spent spent = {0};
		spent_turn(&spent, SPENT_SAVING, 30000, 10000);
		spent_turn(&spent, SPENT_SAVING, 30000, 11000);
		spent_turn(&spent, SPENT_TRAINING, 30000, 12000);
		spent_turn(&spent, SPENT_SAVING, 30000, 24500);
		spent_turn(&spent, SPENT_NOT, 30000, 27000);
		says(&spent,
			"20.0 s of grace: 12.5 s of training, 4.5 s to agree and save, 3.0 s left");
	}
	TEST("a deadline that moved counts; a save beyond it was too long")
	{
		struct spent spent = {0};
		spent_turn(&spent, SPENT_SAVING, 90000, 10000);
		spent_turn(&spent, SPENT_SAVING, 15000, 11000);
		spent_turn(&spent, SPENT_NOT, 15000, 16500);
		says(&spent,
			"5.0 s of grace: 0.0 s of training, 6.5 s to agree and save, 1.5 s too long");
	}
	TEST("without a grace period nothing is said")
	{
		struct spent spent = {0};
		struct text text = {0};
		CHECK(!spent_say(&spent, &text));
	}
	return unit_end();
}
