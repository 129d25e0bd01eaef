/* SPDX-License-Identifier: MIT */
#include "agent/bad_restarts.h"

#include "base/message.h"
#include "run/budget.h"
#include "run/history.h"

/* One checkpoint after the other, until one has not failed too often. */
static enum status find(const struct history *history, const struct agent_options *options,
	char path[4096], uint64_t *step, struct error *err)
{
	for (uint64_t last = UINT64_MAX;; last = *step) {
		bool unproven;
		enum status status = options->find_checkpoint(path, step, &unproven, err);
		if (status == STATUS_OK && *err->text)
			message_error("%s%s", err->text,
				unproven ? "; the tasks resume from it, because no checkpoint is "
					   "known to be complete"
					 : "");
		if (status != STATUS_OK || options->max_bad_restarts == 0)
			return status;
		/* Another task of the attempt may just have marked it: then it is not found. */
		if (*step == last)
			return error_set(err, STATUS_TEMPORARY,
				"%s was marked as bad, and is still offered", path);
		uint64_t failed = budget_failed_from(
			history->past, history->count, *step, outcome_from(path));
		if (failed < options->max_bad_restarts)
			return STATUS_OK;
		status = options->give_up_checkpoint(*step, failed, err);
		if (status == STATUS_NO) {
			message_error("%s: %llu restarts from it have failed, but %s", path,
				(unsigned long long)failed, err->text);
			return STATUS_OK;
		}
		if (status != STATUS_OK)
			return status;
		message_error("%s: %llu restarts from it have failed; it is marked as bad", path,
			(unsigned long long)failed);
	}
}

enum status bad_restarts_find(struct store *store, const struct attempt *attempt,
	const struct agent_options *options, char path[4096], uint64_t *step, struct error *err)
{
	struct history history = {0};
	enum status status = STATUS_OK;
	if (options->max_bad_restarts && attempt->number > 1)
		status = history_read(store, attempt->run, attempt->number - 1, &history, err);
	if (status == STATUS_OK)
		status = find(&history, options, path, step, err);
	history_release(&history);
	return status;
}
