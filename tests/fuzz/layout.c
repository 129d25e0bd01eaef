/* SPDX-License-Identifier: MIT */
/*
 * A checkpoint of a training framework. The first line of an input is the name of a layout, a
 * blank and the name of the checkpoint; then come its files:
 *
 *	hf checkpoint-500
 *	--- trainer_state.json
 *	{"global_step": 500}
 *	--+ model.safetensors
 *	...
 *
 * "--+": the file is one byte longer in the list of files than it is. "--?": it is only in the
 * list. The files lie in one directory, which is the checkpoint and DIR, too: trackers are found
 * beside the rest.
 */
#include "ckpt/layout/layout.h"

#include <stdlib.h>
#include <string.h>

#include "ckpt/layout/structure.h"
#include "ckpt/names.h"
#include "support/fuzz.h"

static const struct layout *const layouts[] = {&layout_hf, &layout_lightning, &layout_deepspeed,
	&layout_megatron, &layout_tensorflow, &layout_orbax, &layout_dcp, &layout_pattern};
#define LAYOUTS (sizeof(layouts) / sizeof(layouts[0]))

/* The next "\n--" followed by one of three characters and a blank; NULL: no more. */
static const uint8_t *find_file(const uint8_t *at, const uint8_t *end)
{
	while ((at = memmem(at, (size_t)(end - at), "\n--", 3))) {
		if (end - at > 5 && strchr("-+?", at[3]) && at[3] && at[4] == ' ')
			return at;
		at++;
	}
	return NULL;
}

/* Write the files of the input and list them. */
static void make_files(const uint8_t *at, const uint8_t *end, struct manifest *files)
{
	while (at) {
		char kind = (char)at[3];
		at += 5;
		const uint8_t *line = memchr(at, '\n', (size_t)(end - at));
		const uint8_t *stop = line ? line : end;
		char *name = fuzz_text(at, (size_t)(stop - at));
		at = line ? find_file(line, end) : NULL;
		const uint8_t *content = line ? line + 1 : end;
		size_t length = at && at > content ? (size_t)(at - content)
				: at		   ? 0
						   : (size_t)(end - content);
		bool there = !structure_find(files, name) && files->count < 60 && *name != '/' &&
			     (kind == '?' || fuzz_write(name, content, length));
		if (there)
			FUZZ_HOLDS(manifest_add(files, name, length + (kind == '+')));
		if (there)
			manifest_sort(files);
		free(name);
	}
}

static void check_name(const struct layout_choice *choice, const char *entry)
{
	struct layout_name name = {0};
	if (!layout_reads(choice, entry, &name))
		return;
	FUZZ_HOLDS(name.step <= CKPT_NUMBER_MAX);
	FUZZ_HOLDS(name.length > 0 && name.length <= strlen(entry));
}

static void check_tracker(const struct layout_choice *choice)
{
	struct layout_tracker tracker = {0};
	if (!choice->layout->track ||
		choice->layout->track(fuzz_directory(), &tracker, NULL) != STATUS_OK)
		return;
	FUZZ_HOLDS(memchr(tracker.name, '\0', sizeof(tracker.name)));
	FUZZ_HOLDS(memchr(tracker.broken, '\0', sizeof(tracker.broken)));
	FUZZ_HOLDS(!tracker.named || (tracker.found && !*tracker.broken));
	FUZZ_HOLDS(!tracker.named || tracker.step <= CKPT_NUMBER_MAX);
	FUZZ_HOLDS(!tracker.found || tracker.named || *tracker.broken);
}

static void check_checkpoint(const struct layout_choice *choice, const char *entry,
	const struct layout_name *name, const struct manifest *files)
{
	struct layout_found found = {0};
	struct error why = {0};
	char *cut = fuzz_text(entry, name->length), best[LAYOUT_NAME_SIZE];
	struct layout_item item = {.name = cut,
		.step = name->step,
		.root = fuzz_directory(),
		.directory = choice->layout->shape != LAYOUT_FILE,
		.files = files};
	/* The files of one that is no directory begin with its name. */
	bool fits = true;
	for (size_t i = 0; i < files->count && !item.directory; i++)
		fits &= strncmp(files->files[i].name, cut, strlen(cut)) == 0;
	enum status status = fits ? choice->layout->check(&item, &found, &why) : STATUS_OK;
	FUZZ_HOLDS(status == STATUS_OK || *why.text);
	FUZZ_HOLDS(found.metrics.count <= METRICS_ROOM);
	if (status == STATUS_OK && shards_any(&found.shards))
		(void)shards_decide(&found.shards, NULL, 0, &why);
	if (choice->layout->depends && choice->layout->depends(&item, best, NULL) == STATUS_OK)
		FUZZ_HOLDS(memchr(best, '\0', sizeof(best)));
	free(cut);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct manifest files = {0};
	struct layout_choice choice = {.pattern = "model-{step}.pt"};
	struct layout_name name = {0};
	struct error err;
	const uint8_t *end = data + size, *at = find_file(data, end);
	size_t rest = at ? (size_t)(at - data) : size;
	const uint8_t *line = data;
	char *word = fuzz_next(&line, &rest, ' '), *entry = fuzz_next(&line, &rest, '\n');
	for (size_t i = 0; i < LAYOUTS && word; i++)
		if (strcmp(layouts[i]->name, word) == 0)
			choice.layout = layouts[i];
	make_files(at, end, &files);
	if (choice.layout) {
		check_tracker(&choice);
		for (size_t i = 0; i < files.count; i++)
			check_name(&choice, files.files[i].name);
	}
	if (choice.layout && entry && layout_reads(&choice, entry, &name))
		check_checkpoint(&choice, entry, &name, &files);
	(void)layout_detect(fuzz_path(), &choice, &err);
	manifest_release(&files);
	fuzz_clear();
	free(word);
	free(entry);
	return 0;
}
