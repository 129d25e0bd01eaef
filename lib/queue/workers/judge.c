/* SPDX-License-Identifier: MIT */
#include "queue/workers/judge.h"

#define RECENT 3 /* periods */

static enum judge_verdict take_change(struct judged *judged, const struct judge_reading *reading)
{
	/* A change since a look of long ago says that it lived then, not that it does. */
	judged->proved = judged->known && reading->now - judged->at <= RECENT * reading->period;
	judged->known = true;
	judged->seen_token = reading->token;
	judged->seen_sequence = reading->sequence;
	judged->silent = 0;
	judged->own = reading->written;
	judged->at = judged->changed = reading->now;
	return JUDGE_ALIVE;
}

static enum judge_verdict take_silence(struct judged *judged, const struct judge_reading *reading)
{
	if (reading->paused) {
		/* Whoever was stopped together with us has a whole period to show itself. */
		judged->at = reading->now;
		judged->own = reading->written;
	} else if (reading->written > judged->own && reading->now - judged->at >= reading->period) {
		judged->silent++;
		judged->at = reading->now;
		judged->own = reading->written;
	}
	if (judged->silent >= reading->limit)
		return JUDGE_DEAD;
	return judged->silent ? JUDGE_LATE : JUDGE_ALIVE;
}

enum judge_verdict judge_observe(struct judged *judged, const struct judge_reading *reading)
{
	bool nothing = reading->seen == JUDGE_NOTHING;
	uint64_t token = nothing ? 0 : reading->token, sequence = nothing ? 0 : reading->sequence;
	if (reading->gone || reading->fenced)
		return judged->verdict = JUDGE_DEAD;
	/* What was concluded before has to be seen again before anybody acts. */
	if (reading->seen == JUDGE_ERROR)
		return judged->verdict == JUDGE_DEAD ? JUDGE_LATE : judged->verdict;
	/* By change only: what a beat says may be of one who had this number before. */
	if (!judged->known || token != judged->seen_token || sequence != judged->seen_sequence) {
		struct judge_reading changed = *reading;
		changed.token = token;
		changed.sequence = sequence;
		return judged->verdict = take_change(judged, &changed);
	}
	/* What took that long may have been true only long ago. */
	if (reading->took > reading->period)
		return judged->verdict == JUDGE_DEAD ? JUDGE_LATE : judged->verdict;
	return judged->verdict = take_silence(judged, reading);
}

bool judge_may_fence(const struct judged *judged, const struct judge_reading *reading, bool monitor)
{
	return monitor || reading->gone || judged->silent >= reading->limit + JUDGE_DEPUTY;
}
