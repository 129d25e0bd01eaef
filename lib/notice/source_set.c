/* SPDX-License-Identifier: MIT */
#include "notice/source_set.h"

#include "base/clock.h"
#include "base/message.h"
#include "base/process/descriptor.h"

/* The number of failures in a row after which a source is reported as lost. */
static const unsigned patience = 3;

enum status source_set_add(struct source_set *set, struct source *source, struct error *err)
{
	if (set->count == SOURCE_SET_SOURCES) {
		source_close(source);
		return error_set(
			err, STATUS_USAGE, "more than %d sources of notices", SOURCE_SET_SOURCES);
	}
	set->sources[set->count].source = source;
	set->sources[set->count].answer = SOURCE_PENDING;
	set->count++;
	return STATUS_OK;
}

void source_set_release(struct source_set *set)
{
	for (size_t i = 0; i < set->count; i++)
		source_close(set->sources[i].source);
	*set = (struct source_set){0};
}

void source_set_watch(const struct source_set *set, struct loop *loop)
{
	for (size_t i = 0; i < set->count; i++) {
		loop_watch(loop, source_descriptor(set->sources[i].source));
		loop_wake_at(loop, source_due(set->sources[i].source));
	}
}

int64_t source_set_expects(const struct source_set *set)
{
	int64_t at = CLOCK_NEVER;
	for (size_t i = 0; i < set->count; i++)
		at = clock_earlier(at, source_expects(set->sources[i].source));
	return at;
}

enum source_set_event source_set_next(
	struct source_set *set, size_t *which, struct notice *notice, struct error *err)
{
	while (set->next < set->count) {
		size_t i = set->next++;
		struct source *source = set->sources[i].source;
		int64_t now = clock_now();
		if (!set->all && !descriptor_is_ready(source_descriptor(source)) &&
			source_due(source) > now)
			continue;
		enum source_answer answer = source_check(source, now, notice, err);
		if (answer == SOURCE_PENDING)
			continue;
		*which = i;
		if (answer == SOURCE_WARNING)
			return SOURCE_SET_WARNING;
		set->sources[i].answer = answer;
		bool lost = set->sources[i].failures == patience;
		if (answer == SOURCE_CANNOT_ASK) {
			if (lost)
				continue; /* reported already */
			return ++set->sources[i].failures == patience ? SOURCE_SET_LOST
								      : SOURCE_SET_DOUBT;
		}
		set->sources[i].failures = 0;
		if (answer == SOURCE_NOTICE)
			return SOURCE_SET_NOTICE;
		if (lost)
			return SOURCE_SET_BACK;
	}
	set->next = 0;
	set->all = false;
	return SOURCE_SET_END;
}

void source_set_say(enum source_set_event event, const char *name, const struct error *err)
{
	switch (event) {
	case SOURCE_SET_DOUBT: message_detail("cannot ask %s: %s", name, err->text); break;
	case SOURCE_SET_LOST:
		message_error("%s could not be asked three times in a row: %s; retrying", name,
			err->text);
		break;
	case SOURCE_SET_BACK: message_info("%s answers again", name); break;
	case SOURCE_SET_WARNING: message_error("%s", err->text); break;
	case SOURCE_SET_NOTICE:
	case SOURCE_SET_END: break;
	}
}

bool source_set_take(struct source_set *set, struct notice *notice)
{
	struct error err;
	enum source_set_event event;
	size_t which;
	while ((event = source_set_next(set, &which, notice, &err)) != SOURCE_SET_END) {
		if (event == SOURCE_SET_NOTICE)
			return true;
		source_set_say(event, source_name(set->sources[which].source), &err);
	}
	return false;
}

bool source_set_take_held(struct source_set *set, struct notice *notice)
{
	for (size_t i = 0; i < set->count; i++)
		if (source_take_held(set->sources[i].source, notice))
			return true;
	return false;
}
