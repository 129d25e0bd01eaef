/* SPDX-License-Identifier: MIT */
#include "notice/notice.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/json_fields.h"
#include "base/parse.h"
#include "base/xalloc.h"

/* The longest duration that parse_duration accepts: with a longer one the deadline is unknown. */
#define LONGEST (INT64_C(100) * 366 * 86400000)

struct notice_time notice_time(void)
{
	return (struct notice_time){.now = clock_now(), .utc = clock_utc()};
}

void notice_set(struct notice *notice, const char *source, const char *reason,
	struct notice_time received, int64_t grace)
{
	struct notice set = {.received_utc = received.utc, .received = received.now};
	bool known = grace >= 0 && grace <= LONGEST;
	set.deadline = known ? received.now + grace : CLOCK_NEVER;
	text_escape(set.source, sizeof(set.source), source, strlen(source));
	text_escape(set.reason, sizeof(set.reason), reason, strlen(reason));
	*notice = set;
}

int64_t notice_deadline(const struct notice *notice)
{
	return notice->deadline > notice->received ? notice->deadline : CLOCK_NEVER;
}

/* The time left when the notice was received, ms; negative: not known. */
static int64_t left_at_receipt(const struct notice *notice)
{
	int64_t deadline = notice_deadline(notice);
	bool known = deadline != CLOCK_NEVER && deadline - notice->received <= LONGEST;
	return known ? deadline - notice->received : -1;
}

void notice_write_text(const struct notice *notice, struct text *line)
{
	char utc[32];
	int64_t left = left_at_receipt(notice);
	clock_format_utc(notice->received_utc, utc);
	text_addf(line, "%s ", utc);
	for (const char *s = notice->source; *s; s++) {
		if (*s == ' ' || *s == '\\')
			text_addf(line, "\\x%02x", (unsigned char)*s);
		else
			text_add_bytes(line, s, 1);
	}
	if (left < 0)
		text_add(line, " left=unknown");
	else if (left % 1000)
		text_addf(line, " left=%lldms", (long long)left);
	else
		text_addf(line, " left=%llds", (long long)(left / 1000));
	if (*notice->reason)
		text_addf(line, " %s", notice->reason);
}

/* A notice in JSON. source has room for one byte too many, so that accept can refuse that. */
struct json_notice {
	char utc[32], source[65], reason[512];
	bool has_left;
	int64_t left;
	struct notice_claim claim;
};
#define MEMBER(name) JSON_MEMBER(struct json_notice, name)
static const struct json_field notice_fields[] = {
	{"utc", JSON_TEXT, JSON_REQUIRED, MEMBER(utc)},
	{"source", JSON_TEXT, JSON_REQUIRED, MEMBER(source)},
	{"reason", JSON_TEXT, JSON_ALWAYS, MEMBER(reason)},
	{"left_ms", JSON_SIGNED, 0, MEMBER(left), .most = LONGEST,
		JSON_PRESENT(struct json_notice, has_left)},
	{"run", JSON_TEXT, 0, MEMBER(claim.run)},
	{"attempt", JSON_UNSIGNED, 0, MEMBER(claim.attempt)},
	{"task", JSON_UNSIGNED, 0, MEMBER(claim.task),
		JSON_PRESENT(struct json_notice, claim.by_task)},
	{"then", JSON_TEXT, 0, MEMBER(claim.then)},
	{0},
};

void notice_write_json(const struct notice *notice, struct text *line)
{
	struct json_notice record = {
		.left = left_at_receipt(notice), .has_left = left_at_receipt(notice) >= 0};
	clock_format_utc(notice->received_utc, record.utc);
	strcpy(record.source, notice->source);
	strcpy(record.reason, notice->reason);
	if (*notice->claim.run)
		record.claim = notice->claim;
	struct json_object *object = json_write_record(notice_fields, &record);
	json_add_line(object, line);
	json_object_put(object);
}

/* Read a time of exactly the form "2026-01-31T12:00:00.123Z". False: it is none. */
static bool read_utc(const char *text, int64_t *utc)
{
	const char *form = "dddd-dd-ddTdd:dd:dd.dddZ";
	int field[7] = {0};
	size_t at = 0;
	if (strlen(text) != strlen(form))
		return false;
	for (size_t i = 0; form[i]; i++) {
		bool digit = text[i] >= '0' && text[i] <= '9';
		if (form[i] == 'd' ? !digit : text[i] != form[i])
			return false;
		if (digit)
			field[at] = field[at] * 10 + (text[i] - '0');
		else
			at++;
	}
	struct tm broken = {.tm_year = field[0] - 1900,
		.tm_mon = field[1] - 1,
		.tm_mday = field[2],
		.tm_hour = field[3],
		.tm_min = field[4],
		.tm_sec = field[5]};
	if (field[0] < 1970)
		return false;
	int64_t value = (int64_t)timegm(&broken) * 1000 + field[6];
	char again[32];
	clock_format_utc(value, again);
	if (strcmp(again, text) != 0) /* 31 February or 25:00 */
		return false;
	*utc = value;
	return true;
}

/* Fill a notice from the fields of a line, text or JSON. */
static enum status accept(struct notice *notice, const char *utc, const char *source,
	const char *reason, int64_t left, struct error *err)
{
	struct notice_time received = notice_time();
	int64_t then;
	if (!read_utc(utc, &then))
		return error_set(err, STATUS_USAGE,
			"not a notice: \"%.40s\" is not a time like 2026-01-31T12:00:00.123Z", utc);
	if (!*source || strlen(source) >= sizeof(notice->source))
		return error_set(err, STATUS_USAGE,
			"not a notice: its source is empty or longer than %zu bytes",
			sizeof(notice->source) - 1);
	if (then < received.utc)
		received.now -= received.utc - then;
	received.utc = then;
	notice_set(notice, source, reason, received, left);
	return STATUS_OK;
}

static bool read_source(char *word)
{
	char *to = word;
	for (const char *s = word; *s; s++, to++) {
		if (*s != '\\') {
			*to = *s;
			continue;
		}
		if (strncmp(s, "\\x20", 4) != 0 && strncmp(s, "\\x5c", 4) != 0)
			return false;
		*to = s[2] == '2' ? ' ' : '\\';
		s += 3;
	}
	*to = '\0';
	return true;
}

static enum status read_text(char *line, struct notice *notice, struct error *err)
{
	char *utc = strsep(&line, " ");
	char *source = strsep(&line, " ");
	char *left_word = strsep(&line, " ");
	const char *form = "not a notice: write UTC SOURCE left=DURATION [REASON], or JSON";
	int64_t left = -1;
	if (!source || !left_word || strncmp(left_word, "left=", 5) != 0 || !read_source(source))
		return error_set(err, STATUS_USAGE, "%s", form);
	if (strcmp(left_word + 5, "unknown") != 0 &&
		parse_duration(left_word + 5, &left, "left", err) != STATUS_OK)
		return error_prefix(err, "not a notice");
	return accept(notice, utc, source, line ? line : "", left, err);
}

static enum status read_json(const char *line, struct notice *notice, struct error *err)
{
	struct json_notice record = {.claim = {.attempt = 0}};
	const char *wrong;
	if (json_read_record(notice_fields, line, strlen(line), &record, &wrong) != JSON_WELL)
		return error_set(err, STATUS_USAGE, "not a notice: %s%s",
			*wrong ? wrong : "not a JSON object",
			*wrong ? " is missing, or is not what it should be" : "");
	enum status status = accept(notice, record.utc, record.source, record.reason,
		record.has_left ? record.left : -1, err);
	if (status == STATUS_OK)
		notice->claim = record.claim;
	return status;
}

enum status notice_read(const char *line, struct notice *notice, struct error *err)
{
	char *copy = xstrdup(line);
	size_t length = strlen(copy);
	if (length && copy[length - 1] == '\n')
		copy[length - 1] = '\0';
	enum status status =
		*copy == '{' ? read_json(copy, notice, err) : read_text(copy, notice, err);
	free(copy);
	return status;
}
