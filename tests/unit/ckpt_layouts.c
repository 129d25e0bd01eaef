/* SPDX-License-Identifier: MIT */
/* Which names in a directory are checkpoints, of which step, and which are not. */
#include <inttypes.h>
#include <string.h>

#include "base/text.h"
#include "ckpt/layout/layout.h"
#include "unit.h"

#define NOT UINT64_MAX

static const struct {
	const char *layout;
	const char *entry;
	uint64_t step;
	size_t length; /* of the checkpoint's name; 0: all of it */
} cases[] = {
	{"hf", "checkpoint-0", 0, 0},
	{"hf", "checkpoint-500", 500, 0},
	{"hf", "checkpoint-999999999999999999", 999999999999999999, 0},
	{"hf", "checkpoint-1000000000000000000", NOT, 0},
	{"hf", "checkpoint-", NOT, 0},
	{"hf", "checkpoint-500 ", NOT, 0},
	{"hf", "checkpoint-500\n", NOT, 0},
	{"hf", "checkpoint--5", NOT, 0},
	{"hf", "checkpoint-+5", NOT, 0},
	{"hf", "checkpoint-0x5", NOT, 0},
	{"hf", "checkpoint-5e2", NOT, 0},
	{"hf", "checkpoint-500.bak", NOT, 0},
	{"hf", "Checkpoint-500", NOT, 0},
	{"hf", "tmp-checkpoint-500", NOT, 0},
	{"hf", ".gone-0123456789abcdef-checkpoint-500", NOT, 0},
	{"lightning", "epoch=1-step=500.ckpt", 500, 0},
	{"lightning", "step=500.ckpt", 500, 0},
	{"lightning", "epoch=1-step=500-v12.ckpt", 500, 0},
	{"lightning", "run-val_loss=-0.50-step=7-lr=1e-05.ckpt", 7, 0},
	{"lightning", "epoch=1-step=500-v1x.ckpt", 500, 0},
	{"lightning", "epoch=1-step=500", NOT, 0},
	{"lightning", "epoch=1.ckpt", NOT, 0},
	{"lightning", "last.ckpt", NOT, 0},
	{"lightning", "last-v1.ckpt", NOT, 0},
	{"lightning", "step=.ckpt", NOT, 0},
	{"lightning", "step=5x.ckpt", NOT, 0},
	{"lightning", "step=5-step=6.ckpt", NOT, 0},
	{"lightning", "globalstep=5.ckpt", NOT, 0},
	{"lightning", "global_step=5.ckpt", NOT, 0},
	{"lightning", ".step=5.ckpt", NOT, 0},
	{"lightning", "step=5.ckpt.tmp", NOT, 0},
	{"lightning", "a\n-step=5.ckpt", NOT, 0},
	{"deepspeed", "global_step500", 500, 0},
	{"deepspeed", "global_step_500", NOT, 0},
	{"deepspeed", "global_step", NOT, 0},
	{"deepspeed", "epoch500", NOT, 0},
	{"megatron", "iter_0000500", 500, 0},
	{"megatron", "iter_12345678", 12345678, 0},
	{"megatron", "iter_500", NOT, 0},
	{"megatron", "iter_01234567", NOT, 0},
	{"megatron", "release", NOT, 0},
	{"tensorflow", "ckpt-12.index", 12, 7},
	{"tensorflow", "ckpt-12.meta", 12, 7},
	{"tensorflow", "ckpt-12.data-00000-of-00001", 12, 7},
	{"tensorflow", "model.ckpt-500.data-00002-of-00003", 500, 14},
	{"tensorflow", "ckpt-12.data-00003-of-00003", NOT, 0},
	{"tensorflow", "ckpt-12.data-0-of-1", NOT, 0},
	{"tensorflow", "ckpt-12.data-00000-of-00001.tempstate1", NOT, 0},
	{"tensorflow", "ckpt-12.index.tmp", NOT, 0},
	{"tensorflow", "ckpt-12", NOT, 0},
	{"tensorflow", "ckpt12.index", NOT, 0},
	{"tensorflow", "-12.index", NOT, 0},
	{"tensorflow", "12.index", NOT, 0},
	{"tensorflow", ".ckpt-12.index", NOT, 0},
	{"tensorflow", "checkpoint", NOT, 0},
	{"orbax", "500", 500, 0},
	{"orbax", "00000500", 500, 0},
	{"orbax", "500.orbax-checkpoint-tmp-17", NOT, 0},
	{"orbax", "-500", NOT, 0},
	{"orbax", "ckpt_500", NOT, 0},
	{"orbax", "", NOT, 0},
	{"dcp", "500", 500, 0},
	{"dcp", "step-500", 500, 0},
	{"dcp", "step=500", 500, 0},
	{"dcp", "checkpoint_500", 500, 0},
	{"dcp", "global_step500", 500, 0},
	{"dcp", "iteration-0000500", 500, 0},
	{"dcp", "optimizer_0", NOT, 0},
	{"dcp", "pytorch_model_fsdp_0", NOT, 0},
	{"dcp", "step--5", NOT, 0},
	{"dcp", "step", NOT, 0},
	{"dcp", "step-500.tmp", NOT, 0},
	{"dcp", ".step-500", NOT, 0},
	{"model-{step}.pt", "model-7.pt", 7, 0},
	{"model-{step}.pt", "model-007.pt", 7, 0},
	{"model-{step}.pt", "model-.pt", NOT, 0},
	{"model-{step}.pt", "model-7.ptx", NOT, 0},
	{"model-{step}.pt", "model-7Xpt", NOT, 0},
	{"model-{step}.pt", "xmodel-7.pt", NOT, 0},
	{"*-{step}", "a-b-7", 7, 0},
	{"*-{step}", "a-7-b", NOT, 0},
	{"*-{step}", ".a-7", NOT, 0},
	{"{step}_*_x", "7_a_x_x", 7, 0},
	{"{step}_*_x", "7_x", NOT, 0},
};

int main(void)
{
	struct layout_choice choice;
	struct layout_name name;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		enum status status = strchr(cases[i].layout, '{')
					     ? layout_of_pattern(cases[i].layout, &choice, NULL)
					     : layout_named(cases[i].layout, &choice, NULL);
		bool read = status == STATUS_OK && layout_reads(&choice, cases[i].entry, &name);
		size_t length = cases[i].length ? cases[i].length : strlen(cases[i].entry);
		char shown[LAYOUT_NAME_SIZE];
		text_escape(shown, sizeof(shown), cases[i].entry, strlen(cases[i].entry));
		CHECK(status == STATUS_OK &&
				(cases[i].step == NOT ? !read
						      : read && name.step == cases[i].step &&
								name.length == length),
			"%s: \"%s\"", cases[i].layout, shown);
	}
	static const char *const bad[] = {"", "x", "{step}{step}", "{step}-{step}", "a/{step}",
		"1{step}", "{step}1", "*{step}", "{step}*", "{Step}"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK(layout_of_pattern(bad[i], &choice, NULL) == STATUS_USAGE,
			"the pattern \"%s\" is refused", bad[i]);
	CHECK(layout_named("keras", &choice, NULL) == STATUS_USAGE, "no such layout");
	CHECK(layout_named("native", &choice, NULL) == STATUS_OK && layout_is_native(&choice),
		"native");
	return unit_end();
}
