/* SPDX-License-Identifier: MIT */
/* What a grace period was used for. */
#include "agent/task/grace_account.h"

#include "unit.h"

static void says(const struct grace_account *account, const char *wanted)
{
	struct text text = {0};
	CHECK(grace_account_describe(account, &text));
	CHECK_TEXT(text_string(&text), wanted);
	text_release(&text);
}

int main(void)
{
	TEST("training, saving and what is left add up to the grace")
	{
		struct grace_account account = {0};
		grace_account_switch(&account, GRACE_SAVING, 30000, 10000);
		grace_account_switch(&account, GRACE_SAVING, 30000, 11000);
		grace_account_switch(&account, GRACE_TRAINING, 30000, 12000);
		grace_account_switch(&account, GRACE_SAVING, 30000, 24500);
		grace_account_switch(&account, GRACE_NOT_USED, 30000, 27000);
		says(&account,
			"20.0 s of grace: 12.5 s of training, 4.5 s to agree and save, 3.0 s left");
	}
	TEST("a deadline that moved counts; a save may end past it")
	{
		struct grace_account account = {0};
		grace_account_switch(&account, GRACE_SAVING, 90000, 10000);
		grace_account_switch(&account, GRACE_SAVING, 15000, 11000);
		grace_account_switch(&account, GRACE_NOT_USED, 15000, 16500);
		says(&account,
			"5.0 s of grace: 0.0 s of training, 6.5 s to agree and save, 1.5 s past the deadline");
	}
	TEST("without a grace period nothing is said")
	{
		struct grace_account account = {0};
		struct text text = {0};
		CHECK(!grace_account_describe(&account, &text));
	}
	return unit_end();
}
