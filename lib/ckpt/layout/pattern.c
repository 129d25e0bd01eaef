/* SPDX-License-Identifier: MIT */
/* What no framework prescribes: --pattern 'model-{step}.pt', a file or a directory each. */
#include <string.h>

#include "ckpt/layout/layout.h"
#include "ckpt/layout/structure.h"

#define STEP "{step}"

/*
 * Whether all of text is what all of pattern says. '*' takes as little as it can: where the rest
 * does not match, only the last '*' takes one more byte, since no earlier one could do better.
 */
static bool matches(const char *pattern, const char *text, uint64_t *step)
{
	const char *behind_star = NULL, *taken = NULL;
	while (*pattern || *text) {
		size_t length = *pattern != '\0' && *pattern == *text;
		bool is_step = strncmp(pattern, STEP, strlen(STEP)) == 0;
		if (is_step)
			length = layout_number(text, step);
		if (*pattern == '*') {
			behind_star = ++pattern;
			taken = text;
		} else if (length) {
			pattern += is_step ? strlen(STEP) : 1;
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

static bool read_name(
	const struct layout_choice *choice, const char *entry, struct layout_name *name)
{
	*name = (struct layout_name){.length = strlen(entry)};
	/* As a shell's globs do. */
	if (*entry == '.' && *choice->pattern != '.')
		return false;
	return matches(choice->pattern, entry, &name->step);
}

static enum status judge(
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
	.read = read_name,
	.judge = judge,
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
	/* A run of digits before or behind would be divided by chance. */
	const char *after = step + strlen(STEP);
	if ((step > pattern && ((step[-1] >= '0' && step[-1] <= '9') || step[-1] == '*')) ||
		(*after >= '0' && *after <= '9') || *after == '*')
		return error_set(err, STATUS_USAGE,
			"--pattern \"%s\": what stands beside {step} must tell where the number "
			"begins and ends",
			pattern);
	*choice = (struct layout_choice){&layout_pattern, pattern};
	return STATUS_OK;
}
