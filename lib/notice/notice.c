/* SPDX-License-Identifier: MIT */
#include "notice/notice.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/parse.h"

/* Longer than any duration that parse_duration accepts: treat such a deadline as unknown. */
static const int64_t longest = (int64_t)100 * 366 * 86400000;

struct notice_time notice_time(void)
{
	return (struct notice_time){.now = clock_now(), .utc = clock_utc()};
}

/*
 * Copy, control characters escaped, without half a character of UTF-8 where it was cut. Where there
 * is room left, nothing was cut, and half a character came so.
 */
static void copy_clean(char *to, size_t size, const char *from)
{
	text_escape(to, size, from, strlen(from));
	size_t length = strlen(to), tail = 0;
	if (length + 1 < size)
		return;
	while (tail < length && tail < 4 && ((unsigned char)to[length - 1 - tail] & 0xc0) == 0x80)
		tail++;
	if (tail == length)
		return;
	unsigned char lead = (unsigned char)to[length - 1 - tail];
	size_t needs = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : lead >= 0xc0 ? 1 : 0;
	if (tail < needs)
		to[length - 1 - tail] = '\0';
}

/* Bytes that are not UTF-8 become '?': in JSON each would become longer. */
static void make_utf8(char *text)
{
	while (*text) {
		size_t left = strlen(text), length = 1;
		while (length < 4 && length < left && !text_is_utf8(text, length))
			length++;
		if (!text_is_utf8(text, length)) {
			*text = '?';
			length = 1;
		}
		text += length;
	}
}

void notice_set(struct notice *notice, const char *source, const char *reason,
	struct notice_time received, int64_t grace)
{
	struct notice set = {.received_utc = received.utc, .received = received.now};
	bool known = grace >= 0 && grace <= longest;
	set.deadline = known ? received.now + grace : CLOCK_NEVER;
	copy_clean(set.source, sizeof(set.source), source);
	copy_clean(set.reason, sizeof(set.reason), reason);
	make_utf8(set.source);
	make_utf8(set.reason);
	*notice = set;
}

int64_t notice_deadline(const struct notice *notice)
{
	return notice->deadline > notice->received ? notice->deadline : CLOCK_NEVER;
}

/* What was left when it was received; negative: not known. */
static int64_t left_at_receipt(const struct notice *notice)
{
	if (notice->deadline == CLOCK_NEVER || notice->deadline - notice->received > longest)
		return -1;
	int64_t left = notice->deadline - notice->received;
	return left < 0 ? 0 : left;
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

static void write_claim(const struct notice_claim *claim, struct text *line)
{
	text_add(line, ",\"run\":");
	text_add_json_string(line, claim->run);
	text_addf(line, ",\"attempt\":%llu", (unsigned long long)claim->attempt);
	if (claim->by_task)
		text_addf(line, ",\"task\":%llu", (unsigned long long)claim->task);
	text_addf(line, ",\"then\":\"%s\"", claim->then);
}

void notice_write_json(const struct notice *notice, struct text *line)
{
	char utc[32];
	int64_t left = left_at_receipt(notice);
	clock_format_utc(notice->received_utc, utc);
	text_addf(line, "{\"utc\":\"%s\",\"source\":", utc);
	text_add_json_string(line, notice->source);
	text_add(line, ",\"reason\":");
	text_add_json_string(line, notice->reason);
	if (left < 0)
		text_add(line, ",\"left_ms\":null");
	else
		text_addf(line, ",\"left_ms\":%lld", (long long)left);
	if (*notice->claim.run)
		write_claim(&notice->claim, line);
	text_add(line, "}");
}

/* "2026-01-31T12:00:00.123Z" exactly, and a date that exists. */
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
	if (strcmp(again, text) != 0) /* 31 February, 25 o'clock */
		return false;
	*utc = value;
	return true;
}

/* What both forms come down to. */
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
	struct json_object *object = json_parse(line, strlen(line));
	struct json_object *member;
	const char *utc, *source, *run, *reason = "";
	uint64_t left_ms = 0;
	int64_t left = -1;
	enum status status = STATUS_USAGE;
	if (!object) {
		error_set(err, STATUS_USAGE, "not a notice: not JSON");
		goto out;
	}
	if (!json_get_text(object, "utc", &utc) || !json_get_text(object, "source", &source)) {
		error_set(err, STATUS_USAGE, "not a notice: utc or source is missing");
		goto out;
	}
	if (json_object_object_get_ex(object, "reason", &member) &&
		!json_get_text(object, "reason", &reason)) {
		error_set(err, STATUS_USAGE, "not a notice: reason is not text");
		goto out;
	}
	if (json_object_object_get_ex(object, "left_ms", &member) && member) {
		if (!json_get_unsigned(object, "left_ms", &left_ms) ||
			left_ms > (uint64_t)longest) {
			error_set(err, STATUS_USAGE,
				"not a notice: left_ms is not a number of milliseconds");
			goto out;
		}
		left = (int64_t)left_ms;
	}
	status = accept(notice, utc, source, reason, left, err);
	if (status == STATUS_OK && json_get_text(object, "run", &run))
		snprintf(notice->claim.run, sizeof(notice->claim.run), "%s", run);
out:
	json_object_put(object);
	return status;
}

enum status notice_read(const char *line, struct notice *notice, struct error *err)
{
	char *copy = strdup(line);
	if (!copy)
		return error_set(err, STATUS_TEMPORARY, "out of memory");
	size_t length = strlen(copy);
	if (length && copy[length - 1] == '\n')
		copy[length - 1] = '\0';
	enum status status =
		*copy == '{' ? read_json(copy, notice, err) : read_text(copy, notice, err);
	free(copy);
	return status;
}
