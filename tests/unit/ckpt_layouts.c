/* SPDX-License-Identifier: MIT */
/* Which names in a directory are checkpoints, and of which step; and each kind of rule. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/xalloc.h"
#include "ckpt/layouts.h"
#include "ckpt/rules.h"
#include "scratch.h"
#include "unit.h"

#define NOT    UINT64_MAX
#define INSIDE (UINT64_MAX - 1) /* the step is in the content */

static const struct {
	const char *layout;
	const char *entry;
	uint64_t step;
} names[] = {
	{"hf", "checkpoint-0", 0},
	{"hf", "checkpoint-999999999999999999", 999999999999999999},
	{"hf", "checkpoint-1000000000000000000", NOT},
	{"hf", "checkpoint-", NOT},
	{"hf", "checkpoint-500\n", NOT},
	{"hf", "checkpoint--5", NOT},
	{"hf", "checkpoint-0x5", NOT},
	{"hf", "checkpoint-500.bak", NOT},
	{"hf", "tmp-checkpoint-500", NOT},
	{"hf", ".gone-0123456789abcdef-checkpoint-500", NOT},
	{"accelerate", "step_500", 500},
	{"lightning", "epoch=1-step=500-v12.ckpt", 500},
	{"lightning", "run-val_loss=-0.50-step=7-lr=1e-05.ckpt", 7},
	{"lightning", "epoch=1-step=500", NOT},
	{"lightning", "epoch=1-val_loss=0.5.ckpt", INSIDE},
	{"lightning", "last.ckpt", INSIDE},
	{"lightning", ".step=5.ckpt", NOT},
	{"lightning", "step=5.ckpt.tmp", NOT},
	{"lightning", "a\n-step=5.ckpt", NOT},
	{"nemo", "gpt--val_loss=1.50-step=499-consumed_samples=4000.0-last", 499},
	{"verl", "global_step_500", 500},
	{"deepspeed", "global_step500", 500},
	{"deepspeed", "global_step_500", NOT},
	{"megatron", "iter_0000500", 500},
	{"megatron", "release", NOT},
	{"tensorflow", "ckpt-12.index", 12},
	{"tensorflow", "model.ckpt-500.data-00002-of-00003", 500},
	{"tensorflow", "cp-0010.ckpt.index", 10},
	{"tensorflow", "ckpt-12.data-00000-of-00001.tempstate1", NOT},
	{"tensorflow", "checkpoint", NOT},
	{"keras", "weights.05-0.23.hdf5", 5},
	{"orbax", "00000500", 500},
	{"orbax", "500.orbax-checkpoint-tmp-17", NOT},
	{"composer", "ep1-ba500-rank0.pt", 500},
	{"composer", "latest-rank0.pt", NOT},
	{"dcp", "iteration-0000500", 500},
	{"dcp", "optimizer_0", NOT},
	{"dcp", "step-500.tmp", NOT},
	{"model-{step}.pt", "model-007.pt", 7},
	{"model-{step}.pt", "model-7Xpt", NOT},
	{"*-{step}", "a-b-7", 7},
	{"*-{step}", ".a-7", NOT},
	{"{step}_*_x", "7_a_x_x", 7},
	{"{step}_*_x", "7_x", NOT},
};

/* Files, "NAME" or "NAME=CONTENT", with blanks between; and what the rules answer at step 5. */
static const struct {
	const char *rules;
	const char *files;
	enum checkpoint_state answer;
} checks[] = {
	{"any a b", "b", CHECKPOINT_COMPLETE},
	{"any a b", "c", CHECKPOINT_INCOMPLETE},
	{"known a*", "b", CHECKPOINT_UNKNOWN_FORM},
	{"if a : b c", "a c", CHECKPOINT_COMPLETE},
	{"if a : b c", "a", CHECKPOINT_INCOMPLETE},
	{"if a : b c", "d", CHECKPOINT_COMPLETE},
	{"filled *", "a b=1", CHECKPOINT_COMPLETE},
	{"filled *", "a b", CHECKPOINT_DAMAGED},
	{"each d* : x", "d1/x d2/x", CHECKPOINT_COMPLETE},
	{"each d* : x", "d1/x d2/y", CHECKPOINT_INCOMPLETE},
	{"beside d/* : m", "i/d/1 i/m", CHECKPOINT_COMPLETE},
	{"beside d/* : m", "i/d/1 j/m", CHECKPOINT_INCOMPLETE},
	{"same d* : x", "d1/y d2/y", CHECKPOINT_COMPLETE},
	{"same d* : x", "d1/x d2/y", CHECKPOINT_INCOMPLETE},
	{"beside *.s : m", "a/1.s a/m b/2.s b/m", CHECKPOINT_COMPLETE},
	{"beside *.s : m", "a/1.s a/m b/2.s", CHECKPOINT_INCOMPLETE},
	{"all *-{i}-of-{n}", "a-1-of-2 a-2-of-2 b-0-of-1", CHECKPOINT_COMPLETE},
	{"all *-{i}-of-{n}", "a-1-of-2", CHECKPOINT_INCOMPLETE},
	{"all *-{i}-of-{n}", "a-2-of-3 a-3-of-3 a-4-of-3", CHECKPOINT_INCOMPLETE},
	{"all *-{i}-of-{n}", "a-1-of-2 a-2-of-2 a-1-of-1", CHECKPOINT_INCOMPLETE},
	{"all r{i}_{j}", "r0_0 r0_1 r1_0 r1_1", CHECKPOINT_COMPLETE},
	{"all r{i}_{j}", "r0_0 r1_0 r1_1", CHECKPOINT_INCOMPLETE},
	{"all r{i}", "r0 r2", CHECKPOINT_INCOMPLETE},
	{"all *r{i}", "ar0 br0 br1", CHECKPOINT_COMPLETE},
	{"json j step=STEP", "j={\"step\":5}", CHECKPOINT_COMPLETE},
	{"json j step=STEP", "j={\"step\":6}", CHECKPOINT_INCOMPLETE},
	{"json j step=STEP", "j={}", CHECKPOINT_INCOMPLETE},
	{"json j step=STEP", "j={\"step\":5", CHECKPOINT_DAMAGED},
	{"json j end", "j={\"end\":null}", CHECKPOINT_INCOMPLETE},
	{"json j end", "j={}", CHECKPOINT_COMPLETE},
	{"listed *.idx map", "a/l.idx={\"map\":{\"w\":\"f\"}} a/f", CHECKPOINT_COMPLETE},
	{"listed *.idx map", "l.idx={\"map\":{\"w\":\"f\"}}", CHECKPOINT_INCOMPLETE},
	{"listed *.idx map", "l.idx={\"map\":{}}", CHECKPOINT_INCOMPLETE},
	{"listed l", "l=d d/x", CHECKPOINT_COMPLETE},
	{"listed l", "l=d e/x", CHECKPOINT_INCOMPLETE},
	{"listed l", "l", CHECKPOINT_INCOMPLETE},
	{"listed .m *.d", ".m=..__0_0.d..__1_0.d. __0_0.d __1_0.d", CHECKPOINT_COMPLETE},
	{"listed .m *.d", ".m=..__0_0.d..__1_0.d. __0_0.d", CHECKPOINT_INCOMPLETE},
	{"listed .m *.d", ".m=..__0_0.d..__1_0.d __0_0.d __1_0.d", CHECKPOINT_DAMAGED},
	{"when a\nany b\nwhen c\nany d", "a b", CHECKPOINT_COMPLETE},
	{"when a\nany b\nwhen c\nany d", "a d", CHECKPOINT_INCOMPLETE},
	{"when a\nany b\nwhen c\nany d", "c d", CHECKPOINT_COMPLETE},
	{"when a\nany b\nwhen c\nany d", "e", CHECKPOINT_UNKNOWN_FORM},
	{"nonsense a", "a", CHECKPOINT_UNREADABLE},
};

/* Make the files in a new directory, and evaluate the rules. */
static enum checkpoint_state evaluate(const char *rules, const char *files, struct error *why)
{
	char *directories[32] = {0}, *copy = xstrdup(files), *state = NULL;
	struct rules_item item = {.step = 5, .directories = directories};
	size_t count = 0;
	scratch_make();
	for (char *word = strtok_r(copy, " ", &state); word; word = strtok_r(NULL, " ", &state)) {
		char *content = strchr(word, '='), path[256];
		if (content)
			*content++ = '\0';
		for (char *slash = strchr(word, '/'); slash; slash = strchr(slash + 1, '/')) {
			directories[count] = xstrndup(word, (size_t)(slash - word));
			snprintf(path, sizeof(path), "%s/%s", scratch, directories[count++]);
			(void)mkdir(path, 0700);
		}
		snprintf(path, sizeof(path), "%s/%s", scratch, word);
		FILE *file = fopen(path, "w");
		fputs(content ? content : "", file);
		fclose(file);
		manifest_add(&item.files, word, content ? strlen(content) : 0);
	}
	manifest_sort(&item.files);
	item.root = open(scratch, O_RDONLY | O_DIRECTORY);
	item.directory_count = count;
	enum checkpoint_state answer = rules_check(rules, &item, why);
	close(item.root);
	while (count > 0)
		free(directories[--count]);
	manifest_release(&item.files);
	json_object_put(item.document);
	free(copy);
	scratch_remove();
	strcpy(scratch, "/tmp/unit-XXXXXX");
	return answer;
}

static enum status choose(const char *word, struct layout *layout)
{
	const struct layout_words pattern = {.pattern = word}, name = {.layout = word};
	return layout_choose(".", strchr(word, '{') ? &pattern : &name, layout, NULL);
}

int main(void)
{
	struct layout layout;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		uint64_t step = 0;
		bool inside = false, chosen = choose(names[i].layout, &layout) == STATUS_OK;
		bool read = chosen && layout_reads(&layout, names[i].entry, &step, &inside);
		char shown[256];
		text_escape(shown, sizeof(shown), names[i].entry, strlen(names[i].entry));
		CHECK(chosen && (!read		 ? NOT
					: inside ? INSIDE
						 : step) == names[i].step,
			"%s: \"%s\"", names[i].layout, shown);
	}
	for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
		struct error why = {0};
		enum checkpoint_state answer = evaluate(checks[i].rules, checks[i].files, &why);
		CHECK(answer == checks[i].answer && (answer == CHECKPOINT_COMPLETE || *why.text),
			"rule %zu: %s", i, checks[i].files);
	}
	static const char *const bad[] = {"{step}{step}", "{step}-{step}", "a/{step}", "{Step}",
		"a {step}", "1{step}", "{step}1", "*{step}", "{step}*"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK(choose(bad[i], &layout) == STATUS_USAGE, "the pattern \"%s\" is refused",
			bad[i]);
	CHECK(choose("kera", &layout) == STATUS_USAGE, "no such layout");
	CHECK(choose("native", &layout) == STATUS_OK && layout_is_native(&layout), "native");
	return unit_end();
}
