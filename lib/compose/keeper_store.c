/* SPDX-License-Identifier: MIT */
#include "compose/keeper_store.h"

#include "base/clock.h"
#include "base/xalloc.h"
#include "live/outage.h"
#include "proto/view.h"
#include "run/attempt.h"

#define PATIENCE      5000  /* ms for one try of several */
#define PATIENCE_ONCE 30000 /* ms for the only try */

enum status keeper_find(const struct keeper_options *options, struct attempt *attempt, char **where,
	struct error *err)
{
	struct store *store;
	int64_t patience = outage_is_joined() ? PATIENCE : PATIENCE_ONCE;
	enum status status = outage_open_joined(&store, options->store, clock_after(patience), err);
	if (status != STATUS_OK)
		return status;
	store_set_patience(store, patience);
	status = attempt_find(store, options->run, options->attempt, attempt, err);
	if (status == STATUS_OK)
		status = attempt_check_task(attempt, options->task, err);
	if (status == STATUS_OK)
		*where = xstrdup(store_where(store));
	store_close(store);
	return status;
}

void keeper_declare_dead(const struct keeper_options *options, const struct attempt *attempt,
	const struct death *death)
{
	struct store *store;
	struct view view;
	struct error err;
	enum status status = store_open_patient(&store, options->store, 0, PATIENCE, &err);
	if (status != STATUS_OK)
		return;
	view_init(&view, attempt);
	status = view_refresh(&view, store, &err);
	if (status == STATUS_OK && !view.agreement.peers[options->task].dead)
		(void)write_deaths(store, &view, options->task, death, 1, &err);
	view_release(&view);
	store_close(store);
}
