/* SPDX-License-Identifier: MIT */
#include "agent/task/grace_account.h"

void grace_account_switch(
	struct grace_account *account, enum grace_use use, int64_t deadline, int64_t now)
{
	if (!account->begun)
		*account = (struct grace_account){.begun = true, .start = now, .since = now};
	account->time[account->use] += now - account->since;
	account->use = use;
	account->since = now;
	account->deadline = deadline;
}

bool grace_account_describe(const struct grace_account *account, struct text *text)
{
	if (!account->begun)
		return false;
	int64_t grace = account->deadline - account->start;
	int64_t left = grace - account->time[GRACE_TRAINING] - account->time[GRACE_SAVING];
	text_addf(text, "%.1f s of grace: %.1f s of training, %.1f s to agree and save, ",
		(double)grace / 1000, (double)account->time[GRACE_TRAINING] / 1000,
		(double)account->time[GRACE_SAVING] / 1000);
	text_addf(text, left >= 0 ? "%.1f s left" : "%.1f s past the deadline",
		(double)(left >= 0 ? left : -left) / 1000);
	return true;
}
