/* SPDX-License-Identifier: MIT */
/*
 * deadline:+2h or deadline:TIME. A duration is measured by the monotonic clock. A TIME is measured
 * by the wall clock, which is read twice a minute because it may be set.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/parse.h"
#include "base/xalloc.h"
#include "notice/source.h"

#define CHECK_EVERY 30000 /* ms between two readings of the wall clock */

struct deadline_source {
	struct source source;
	int64_t end_utc; /* 0: a duration was given */
	int64_t end;	 /* on the monotonic clock */
	int64_t lead;
	bool over;	/* TIME had passed by our clock at the opening: the time left is unknown */
	int64_t looked; /* the last check; 0: none yet */
	bool given;
};

static void deadline_close(struct source *source)
{
	free(source);
}

/* Read "@1767225600", "2026-01-31T12:00:00Z", or local time: "2026-01-31T12:00". */
static bool read_time(const char *text, int64_t *utc)
{
	static const char *const forms[] = {
		"%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%dT%H:%MZ", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M"};
	struct error err;
	uint64_t seconds;
	if (*text == '@') {
		if (parse_unsigned(text + 1, 1, 1ull << 40, &seconds, "", &err) != STATUS_OK)
			return false;
		*utc = (int64_t)seconds * 1000;
		return true;
	}
	/* strptime is lenient about blanks and signs. */
	for (const char *s = text; *s; s++)
		if (!isdigit((unsigned char)*s) && !strchr("-:TZ", *s))
			return false;
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		struct tm broken = {.tm_isdst = -1};
		const char *end = strptime(text, forms[i], &broken);
		if (!end || *end || broken.tm_year < 70)
			continue;
		bool is_utc = text[strlen(text) - 1] == 'Z';
		struct tm normal = broken;
		*utc = (int64_t)(is_utc ? timegm(&normal) : mktime(&normal)) * 1000;
		return normal.tm_mday == broken.tm_mday; /* not 31 February */
	}
	return false;
}

static enum status deadline_open(struct source **source, const char *rest,
	const struct source_options *options, struct error *err)
{
	int64_t duration, utc = 0;
	struct notice_time now = notice_time();
	int64_t since = now.now;
	if (*rest == '+') {
		enum status status = parse_duration(rest + 1, &duration, "source deadline", err);
		if (status != STATUS_OK)
			return status;
		if (options->since)
			since = options->since;
	} else if (read_time(rest, &utc)) {
		duration = utc > now.utc ? utc - now.utc : 0;
	} else {
		return error_set(err, STATUS_USAGE,
			"source deadline: \"%s\" is no time; write +2h, 2026-01-31T12:00:00Z, "
			"2026-01-31T12:00 (local time) or @SECONDS since 1970",
			rest);
	}
	struct deadline_source *self = xcalloc(1, sizeof(*self));
	self->end_utc = utc;
	self->over = utc && utc <= now.utc;
	self->end = duration < CLOCK_NEVER - since ? since + duration : CLOCK_NEVER;
	self->lead = notice_lead(options->grace, duration);
	*source = &self->source;
	return STATUS_OK;
}

static int deadline_descriptor(const struct source *source)
{
	(void)source;
	return -1;
}

static int64_t deadline_due(const struct source *source)
{
	const struct deadline_source *self = (const struct deadline_source *)source;
	if (!self->looked)
		return 0;
	if (self->given)
		return CLOCK_NEVER;
	int64_t due = self->end - self->lead, look = self->looked + CHECK_EVERY;
	return self->end_utc && look < due ? look : due;
}

static enum source_answer deadline_check(
	struct source *source, int64_t now, struct notice *notice, struct error *err)
{
	struct deadline_source *self = (struct deadline_source *)source;
	struct notice_time time = notice_time();
	char reason[160], utc[32], now_utc[32];
	(void)err;
	self->looked = now;
	if (self->end_utc)
		self->end = time.now + (self->end_utc - time.utc);
	int64_t left = self->end > time.now ? self->end - time.now : 0;
	if (self->given || left > self->lead)
		return SOURCE_NONE;
	self->given = true;
	clock_format_utc(self->end_utc ? self->end_utc : time.utc + left, utc);
	clock_format_utc(time.utc, now_utc);
	snprintf(reason, sizeof(reason), "the time is up at %s", utc);
	if (self->over)
		snprintf(reason, sizeof(reason),
			"the deadline was %s, but this machine's clock says %s: the time left "
			"is not known",
			utc, now_utc);
	notice_set(notice, self->source.name, reason, time, self->over ? -1 : left);
	return SOURCE_NOTICE;
}

static int64_t deadline_expects(const struct source *source)
{
	const struct deadline_source *self = (const struct deadline_source *)source;
	return self->over || self->given ? CLOCK_NEVER : self->end - self->lead;
}

const struct source_kind source_deadline = {.name = "deadline",
	.example = "deadline:+2h|TIME",
	.open = deadline_open,
	.close = deadline_close,
	.descriptor = deadline_descriptor,
	.due = deadline_due,
	.check = deadline_check,
	.expects = deadline_expects};
