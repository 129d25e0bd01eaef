/* SPDX-License-Identifier: MIT */
/*
 * Matching names with patterns; and the layout "pattern" for --pattern 'model-{step}.pt', in which
 * each checkpoint is a file or a directory.
 */
#include <string.h>

#include "ckpt/layout/layout.h"
#include "ckpt/layout/structure.h"

#define STEP "{step}"

/* Which number ({0}, {step}) is at the beginning of pattern. *length: how many bytes it takes
 * there; 0: there is none. */
static int numbered_place(const char *pattern, size_t *length)
{
	*length = 0;
	if (strncmp(pattern, STEP, strlen(STEP)) == 0) {
		*length = strlen(STEP);
		return LAYOUT_STEP;
	}
	if (pattern[0] != '{' || pattern[1] < '0' || pattern[1] > '2' || pattern[2] != '}')
		return 0;
	*length = 3;
	return pattern[1] - '0';
}

/*
 * Each '*' first matches as little as possible. If the rest then does not match, let the last '*'
 * match one more byte. To let an earlier one match more would not help.
 */
bool layout_matches(const char *pattern, const char *text, uint64_t numbers[LAYOUT_NUMBERS])
{
	const char *behind_star = NULL, *taken = NULL;
	while (*pattern || *text) {
		size_t place, length = *pattern != '\0' && *pattern == *text;
		int number = numbered_place(pattern, &place);
		if (place)
			length = layout_number(text, &numbers[number]);
		if (*pattern == '*') {
			behind_star = ++pattern;
			taken = text;
		} else if (length) {
			pattern += place ? place : 1;
			text += length;
		} else if (behind_star && *taken) {
			pattern = behind_star;
			text = ++taken;
		} else {
			return false;
		}
	}
	return true;
}

static enum status check(
	const struct layout_item *item, struct layout_found *found, struct error *why)
{
	enum status status = STATUS_OK;
	(void)found;
	if (manifest_bytes(item->files) == 0)
		status = error_set(why, STATUS_NO, "it is empty");
	if (status == STATUS_OK)
		status = structure_check_all(item->root, item->files, "", why);
	if (status == STATUS_OK)
		status = structure_check_shards(item->root, item->files, why);
	if (status == STATUS_OK)
		status = structure_check_numbered(item->files, why);
	return status;
}

const struct layout layout_pattern = {
	.name = "pattern",
	.title = "the pattern",
	.shape = LAYOUT_EITHER,
	.check = check,
};

enum status layout_of_pattern(const char *pattern, struct layout_choice *choice, struct error *err)
{
	const char *step = strstr(pattern, STEP);
	if (!step || strstr(step + 1, STEP))
		return error_set(err, STATUS_USAGE,
			"--pattern \"%s\": it must hold {step} once, as in 'model-{step}.pt'",
			pattern);
	if (strchr(pattern, '/'))
		return error_set(err, STATUS_USAGE,
			"--pattern \"%s\": it is a name in DIR, without a slash", pattern);
	/* With digits or '*' beside {step}, it would not be clear which digits are the step. */
	const char *after = step + strlen(STEP);
	if ((step > pattern && ((step[-1] >= '0' && step[-1] <= '9') || step[-1] == '*')) ||
		(*after >= '0' && *after <= '9') || *after == '*')
		return error_set(err, STATUS_USAGE,
			"--pattern \"%s\": it must be clear from the characters beside {step} where "
			"the number begins and ends",
			pattern);
	*choice = (struct layout_choice){&layout_pattern, pattern};
	return STATUS_OK;
}
