/* SPDX-License-Identifier: MIT */
#include "agent/announce.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/json.h"

static const struct {
	const char *word;
	enum message_level level;
} events[] = {
	[ANNOUNCE_JOINED] = {"joined", MESSAGE_VERBOSE},
	[ANNOUNCE_REJOINED] = {"joined", MESSAGE_NORMAL},
	[ANNOUNCE_NOTICE] = {"notice", MESSAGE_NORMAL},
	[ANNOUNCE_CLAIM] = {"claim", MESSAGE_NORMAL},
	[ANNOUNCE_AGREED] = {"agreed", MESSAGE_NORMAL},
	[ANNOUNCE_WAITING] = {"waiting", MESSAGE_NORMAL},
	[ANNOUNCE_SAVED] = {"saved", MESSAGE_NORMAL},
	[ANNOUNCE_ALL_SAVED] = {"all-saved", MESSAGE_NORMAL},
	[ANNOUNCE_ALONE] = {"alone", MESSAGE_QUIET},
	[ANNOUNCE_BROKEN] = {"broken", MESSAGE_QUIET},
	[ANNOUNCE_DEAD] = {"dead", MESSAGE_QUIET},
	[ANNOUNCE_HANGS] = {"hangs", MESSAGE_QUIET},
	[ANNOUNCE_CUT_OFF] = {"cut-off", MESSAGE_QUIET},
	[ANNOUNCE_AGAIN] = {"again", MESSAGE_NORMAL},
	[ANNOUNCE_STOPPED] = {"end", MESSAGE_QUIET},
	[ANNOUNCE_END] = {"end", MESSAGE_NORMAL},
};

void announce(struct on_event *on_event, enum announce_event event, enum announce_by by,
	struct json_object *fields, const char *format, ...)
{
	char said[1024];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(said, sizeof(said), format, arguments);
	va_end(arguments);
	struct message_event what = {
		.level = by == ANNOUNCE_OTHERS ? MESSAGE_VERBOSE : events[event].level,
		.word = events[event].word,
		.fields = fields};
	message_event(&what, said);
	if (on_event && by == ANNOUNCE_GROUP)
		on_event_add(on_event, &what, said);
	json_object_put(fields);
}

/* Whether the task is dead, or the others have decided without its report. */
static bool is_missed(const struct view *view, uint64_t task)
{
	return view->agreement.peers[task].dead || view->members[task].unreported;
}

uint64_t announce_speaker(const struct view *view, bool completed)
{
	for (uint64_t i = 0; view->members && i < view->attempt.tasks; i++)
		if (view_has_joined(view, i) && !is_missed(view, i) &&
			(completed || view->agreement.peers[i].left != REASON_COMPLETED))
			return i;
	return 0;
}

enum announce_by announce_by(
	const struct view *view, const struct identity *identity, bool completed)
{
	return identity_has_task(identity, announce_speaker(view, completed)) ? ANNOUNCE_GROUP
									      : ANNOUNCE_OTHERS;
}

void announce_name_tasks(uint64_t first, uint64_t count, char name[64])
{
	if (count == 1)
		snprintf(name, 64, "%llu", (unsigned long long)first);
	else
		snprintf(name, 64, "%llu-%llu", (unsigned long long)first,
			(unsigned long long)(first + count - 1));
}
