/* SPDX-License-Identifier: MIT */
#include "proto/agreement/tally.h"

#include "base/clock.h"
#include "proto/agreement/agreement.h"
#include "proto/agreement/grace.h"

static void add(struct agreement_tally *tally, const struct agreement_view *view, uint64_t task)
{
	const struct agreement_peer *peer = &view->peers[task];
	bool counts = agreement_counts(view, task);
	tally->reports += peer->reported;
	tally->awaited += counts && !peer->reported;
	tally->unsaved += counts && peer->member && !peer->saved;
	if (!peer->reported || peer->none)
		return;
	uint64_t stride = agreement_stride(peer);
	if (peer->step < tally->least)
		tally->least = peer->step;
	if (peer->step > tally->most)
		tally->most = peer->step;
	if (stride < tally->stride)
		tally->stride = stride;
	tally->longest = clock_later(tally->longest, peer->step_time);
}

struct agreement_tally agreement_tally(const struct agreement_view *view)
{
	struct agreement_tally tally = {.known = true, .least = UINT64_MAX, .stride = UINT64_MAX};
	if (view->tally && view->tally->known)
		return *view->tally;
	for (uint64_t i = 0; i < view->tasks; i++)
		add(&tally, view, i);
	if (view->tally)
		*view->tally = tally;
	return tally;
}

struct agreement_saves agreement_count_saves(const struct agreement_view *view)
{
	struct agreement_saves saves = {.low = UINT64_MAX};
	for (uint64_t i = 0; i < view->tasks; i++) {
		const struct agreement_peer *peer = &view->peers[i];
		saves.members += peer->member;
		if (!peer->member || !peer->saved)
			continue;
		saves.saved++;
		saves.low = peer->saved_step < saves.low ? peer->saved_step : saves.low;
		saves.high = peer->saved_step > saves.high ? peer->saved_step : saves.high;
	}
	return saves;
}
