/* SPDX-License-Identifier: MIT */
/*
 * A directory with checkpoints of a training framework. The first line of an input is the name of a
 * layout, or a pattern with {step}; then come files with their paths:
 *
 *	hf
 *	--- checkpoint-500/trainer_state.json
 *	{"global_step": 500}
 *	--- checkpoint-500/model.safetensors
 *	...
 */
#include "ckpt/layouts.h"

#include <stdlib.h>
#include <string.h>

#include "ckpt/list.h"
#include "support/fuzz.h"

/* The next line that begins with "--- "; NULL: no more. */
static const uint8_t *find_file(const uint8_t *at, const uint8_t *end)
{
	at = memmem(at, (size_t)(end - at), "\n--- ", 5);
	return at;
}

/* Write the files of the input. */
static void make_files(const uint8_t *at, const uint8_t *end)
{
	for (int count = 0; at && count < 60; count++) {
		at += 5;
		const uint8_t *line = memchr(at, '\n', (size_t)(end - at));
		char *name = fuzz_text(at, (size_t)((line ? line : end) - at));
		at = line ? find_file(line, end) : NULL;
		const uint8_t *content = line ? line + 1 : end, *stop = at ? at : end;
		(void)fuzz_write(name, content, stop > content ? (size_t)(stop - content) : 0);
		free(name);
	}
}

static void check_list(struct list *list)
{
	struct text notes = {0};
	struct error err;
	uint64_t last = 0;
	for (size_t i = 0; i < list->count; i++) {
		const struct checkpoint *one = &list->items[i].checkpoint;
		FUZZ_HOLDS(one->step <= CKPT_NUMBER_MAX && *one->name && one->inode);
		FUZZ_HOLDS(one->step >= last && list->items[i].count > 0);
		FUZZ_HOLDS((one->state == CHECKPOINT_COMPLETE) == !*one->why);
		FUZZ_HOLDS(*checkpoint_state_name(one->state));
		FUZZ_HOLDS(one->metrics.count <= METRICS_ROOM);
		last = one->step;
	}
	FUZZ_HOLDS(!list->tracker.named || (list->tracker.found && !*list->tracker.broken));
	FUZZ_HOLDS(!list->tracker.found || list->tracker.named || *list->tracker.broken);
	list_note(list, &notes);
	FUZZ_HOLDS(list_protect(list, &err) == STATUS_OK);
	for (size_t i = 0; i < list->count; i++)
		FUZZ_HOLDS(list_follow(list, &list->items[i], true, &err) == STATUS_OK);
	(void)list_confirm_none(list, &err);
	text_release(&notes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *end = data + size, *at = find_file(data, end), *line = data;
	size_t rest = at ? (size_t)(at - data) + 1 : size;
	char *word = fuzz_next(&line, &rest, '\n');
	struct layout layout;
	struct layout_words words = {0};
	struct error err;
	if (!word)
		return 0;
	*(strstr(word, "{step}") ? &words.pattern : &words.layout) = word;
	make_files(at, end);
	if (layout_choose(fuzz_path(), &words, &layout, &err) == STATUS_OK &&
		!layout_is_native(&layout)) {
		const struct list_request request = {.directory = fuzz_path(), .layout = &layout};
		struct list list;
		if (list_read(&request, &list, &err) == STATUS_OK)
			check_list(&list);
		list_release(&list);
	}
	(void)layout_detect(fuzz_path(), NULL, &layout, &err);
	fuzz_clear();
	free(word);
	return 0;
}
