/* SPDX-License-Identifier: MIT */
#include "agent/children/error_line.h"

#include <stdio.h>
#include <string.h>

#define BURST 60000 /* ms: what follows an exception within this time has the same cause */

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
static const char digits_and_dots[] = "0123456789_.";

static bool is_letter(char c)
{
	return (unsigned char)c >= 0x80 || (c && strchr(letters, c));
}

static bool has_letter(const char *line)
{
	while (*line && !is_letter(*line))
		line++;
	return *line;
}

/* The text behind "[rank1]: " or "[default0]:", which torchrun and PyTorch put before lines. */
static const char *behind_prefix(const char *line)
{
	const char *end = *line == '[' ? strstr(line, "]:") : NULL;
	if (!end || strcspn(line, " ") < (size_t)(end - line))
		return line;
	return end[2] == ' ' ? end + 3 : end + 2;
}

/* Whether the line names an exception: "ValueError: x", "KeyboardInterrupt". */
static bool is_exception(const char *line)
{
	const char *end = line;
	while (is_letter(*end) || (*end && strchr(digits_and_dots, *end)))
		end++;
	return is_letter(*line) && (*end == ':' || !*end);
}

/* torchrun's own exception is no cause: it follows the failure of a worker. */
static bool is_of_torchrun(const char *line)
{
	return !strncmp(line, "torch.distributed.elastic.", 26);
}

/* What our own programs say that explains no failure: the program, and words that follow. */
static const char *const harmless[][2] = {
	{"ckpt-rotate: ", "; the answer is \""},
	{"preempt-run: ", "); "}, /* the last line of an agent below this one */
	{"preempt-run: ", "notice: "},
	{"preempt-run: ", "waiting for "},
};

static bool is_harmless(const char *line)
{
	for (size_t i = 0; i < sizeof(harmless) / sizeof(harmless[0]); i++) {
		const char *from = strstr(line, harmless[i][0]);
		if (from && strstr(from, harmless[i][1]))
			return true;
	}
	return false;
}

void error_line_take(struct error_line *lines, const char *line, int64_t now)
{
	const char *text = behind_prefix(line);
	if (!has_letter(line) || is_harmless(line))
		return;
	snprintf(lines->last, sizeof(lines->last), "%s", line);
	if (!strncmp(text, "Traceback (most recent call last):", 34)) {
		lines->in_traceback = true;
	} else if (lines->in_traceback && is_exception(text)) {
		lines->in_traceback = false;
		if (!is_of_torchrun(text) &&
			(!*lines->exception || now - lines->exception_at > BURST)) {
			snprintf(lines->exception, sizeof(lines->exception), "%s", line);
			lines->exception_at = now;
		}
	}
}

const char *error_line_best(const struct error_line *lines, int64_t now)
{
	bool caused = *lines->exception && now - lines->exception_at <= BURST;
	return caused ? lines->exception : lines->last;
}
