/* SPDX-License-Identifier: MIT */
#include "agent/bad_restarts.h"

#include <string.h>

#include "base/message.h"
#include "run/attempt.h"

static bool has_failed(const struct view *view)
{
	return (view->error.present && !view->agreement.claimed) ||
	       strcmp(view->closed, "failed") == 0;
}

enum status bad_restarts_count(struct store *store, const struct attempt *attempt, const char *path,
	uint64_t step, uint64_t most, uint64_t *count, struct error *err)
{
	uint64_t failed = 0;
	for (uint64_t number = attempt->number; number-- > 1 && failed < most;) {
		struct view view = {0};
		enum status status = attempt_view(store, attempt->run, number, &view, err);
		bool same = status == STATUS_OK && view.resume_known && view.resume_step == step &&
			    strcmp(view.resume, path) == 0;
		failed += same && has_failed(&view);
		if (status == STATUS_OK)
			view_release(&view);
		/* Forgotten ones say nothing. */
		if (status != STATUS_OK && status != STATUS_NO)
			return status;
		if (!same)
			break;
	}
	*count = failed;
	return STATUS_OK;
}

enum status bad_restarts_find(struct store *store, const struct attempt *attempt,
	const struct agent_options *options, char path[4096], uint64_t *step, struct error *err)
{
	for (uint64_t last = UINT64_MAX;; last = *step) {
		uint64_t failed;
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
		status = bad_restarts_count(
			store, attempt, path, *step, options->max_bad_restarts, &failed, err);
		if (status != STATUS_OK || failed < options->max_bad_restarts)
			return status;
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
