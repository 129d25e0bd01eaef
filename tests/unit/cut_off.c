/* SPDX-License-Identifier: MIT */
/* For how long a task is cut off, and by when the others have given it up. */
#include "live/cut_off.h"

#include "unit.h"

static void lasted(void)
{
	struct cut_off c = {0};
	TEST("only time without an answer counts, from the first look on")
	{
		cut_off_update(&c, false, 1000000);
		CHECK_EQ(c.lasted, 0);
		cut_off_update(&c, false, 1001000);
		cut_off_update(&c, false, 1002500);
		CHECK_EQ(c.lasted, 2500);
		cut_off_update(&c, true, 1003000);
		CHECK_EQ(c.lasted, 0);
		cut_off_update(&c, false, 1004000);
		CHECK_EQ(c.lasted, 1000);
	}
	TEST("a machine that is suspended for an hour was not cut off for an hour")
	{
		cut_off_update(&c, true, 2000000);
		cut_off_update(&c, false, 2001000);
		cut_off_update(&c, false, 2001000 + 3600000);
		CHECK(c.lasted <= 5000, "%lld ms", (long long)c.lasted);
	}
}

static void defaults(void)
{
	struct heartbeat_rules usual = {.period = HEARTBEAT_PERIOD, .limit = HEARTBEAT_LIMIT};
	struct heartbeat_rules slow = {.period = 300000, .limit = 5};
	TEST("by default longer than a server takes to come back, and than the others take")
	{
		CHECK_EQ(cut_off_given_up(&usual), 30000);
		CHECK_EQ(cut_off_default(&usual), CUT_OFF_LEAST);
		CHECK_EQ(cut_off_default(&slow), cut_off_given_up(&slow));
		CHECK_EQ(cut_off_given_up(&slow), 2400000);
	}
}

int main(void)
{
	lasted();
	defaults();
	return unit_end();
}
