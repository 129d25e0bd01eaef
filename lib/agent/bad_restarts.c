/* SPDX-License-Identifier: MIT */
#include "agent/bad_restarts.h"

#include "base/message.h"
#include "run/budget.h"
#include "run/history.h"

/* One checkpoint after the other, until one has not failed too often. */
static enum status find(const struct history *history, const struct agent_options *options,
	struct agent_checkpoint *found, struct error *err)
{
	for (uint64_t last = UINT64_MAX;; last = found->step) {
		enum status status = options->find_checkpoint(found, err);
		if (status == STATUS_OK && *found->note)
			message_error("%s%s", found->note,
				found->unproven ? "; the tasks resume from it, because no "
						  "checkpoint is known to be complete"
						: "");
		if (status != STATUS_OK || options->max_bad_restarts == 0)
			return status;
		/* Another task of the attempt may just have marked it: then it is not found. */
		if (found->step == last)
			return error_set(err, STATUS_TEMPORARY,
				"%s was marked as bad, and is still offered", found->path);
		uint64_t failed = budget_failed_from(
			history->past, history->count, found->step, outcome_from(found->path));
		if (failed < options->max_bad_restarts)
			return STATUS_OK;
		status = options->give_up_checkpoint(found->step, failed, err);
		if (status == STATUS_NO) {
			message_error("%s: %llu restarts from it have failed, but %s", found->path,
				(unsigned long long)failed, err->text);
			return STATUS_OK;
		}
		if (status != STATUS_OK)
			return status;
		message_error("%s: %llu restarts from it have failed; it is marked as bad",
			found->path, (unsigned long long)failed);
	}
}

enum status bad_restarts_find(struct store *store, const struct attempt *attempt,
	const struct agent_options *options, struct agent_checkpoint *found, struct error *err)
{
	struct history history = {0};
	enum status status = STATUS_OK;
	if (options->max_bad_restarts && attempt->number > 1)
		status = history_read(store, attempt->run, attempt->number - 1, &history, err);
	if (status == STATUS_OK)
		status = find(&history, options, found, err);
	history_release(&history);
	return status;
}
