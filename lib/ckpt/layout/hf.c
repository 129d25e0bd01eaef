/* SPDX-License-Identifier: MIT */
/*
 * Hugging Face's Trainer: checkpoint-500/, in which the model may have any format.
 * trainer_state.json is written after model, optimizer and scheduler, and has the step and the
 * metrics. A sharded model has an index that names its files. With DeepSpeed there is a
 * global_step500/ inside, with its own "latest". The Trainer has no tracker: it resumes from the
 * highest number, and fails if the checkpoint that trainer_state.json names as the best is gone.
 */
#include <json-c/linkhash.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "ckpt/layout/layout.h"
#include "ckpt/layout/structure.h"

static const char *const names[] = {"checkpoint-{step}", NULL};

static const char *const marks[] = {"trainer_state.json", "training_args.bin", "config.json",
	"adapter_config.json", "optimizer.pt", "scheduler.pt", "model.safetensors",
	"model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json",
	"adapter_model.safetensors", "adapter_model.bin", NULL};

/* Check that all files are there that "weight_map" names. */
static enum status check_index(const struct layout_item *item, const char *index, struct error *why)
{
	enum status status;
	struct json_object *object = structure_read_json(item->root, index, &status, why);
	if (status != STATUS_OK)
		return status;
	struct json_object *map = json_member(object, "weight_map", json_type_object);
	if (!map || json_object_object_length(map) == 0) {
		json_object_put(object);
		return error_set(why, STATUS_NO, "%s names no files", index);
	}
	json_object_object_foreach(map, tensor, file)
	{
		const char *name = json_object_is_type(file, json_type_string)
					   ? json_object_get_string(file)
					   : "";
		(void)tensor;
		if (!structure_find(item->files, name)) {
			status = error_set(
				why, STATUS_NO, "%s is missing, which %s names", name, index);
			break;
		}
	}
	json_object_put(object);
	return status;
}

/* Whether a file at the top is a model, by its name. Other files of the Trainer and of Accelerate
 * have the endings of models, too. */
static bool is_model(const char *name)
{
	static const char *const ends[] = {".safetensors", ".h5", ".msgpack", ".bin", NULL};
	static const char *const others[] = {"training_args", "optimizer", "scheduler", "scaler",
		"sampler", "dl_state_dict", "rng_state", "random_states", "custom_checkpoint",
		NULL};
	bool found = false;
	for (const char *const *end = ends; *end; end++)
		found |= structure_ends(name, *end);
	for (const char *const *other = others; *other; other++)
		found &= strncmp(name, *other, strlen(*other)) != 0;
	return found;
}

/*
 * Whether the file is DIRECTORY/adapter_model.*: PEFT saves an adapter in a directory of its name.
 */
static bool is_adapter(const char *name)
{
	static const char adapter[] = "/adapter_model.";
	const char *slash = strchr(name, '/');
	return strncmp(slash, adapter, strlen(adapter)) == 0 &&
	       (structure_ends(slash, ".safetensors") || structure_ends(slash, ".bin"));
}

/* Whether there is a model in any form. deepspeed: the name of DeepSpeed's directory with '/'. */
static bool has_model(const struct layout_item *item, char deepspeed[LAYOUT_NAME_SIZE])
{
	bool found = false;
	*deepspeed = '\0';
	for (size_t i = 0; i < item->files->count; i++) {
		const char *name = item->files->files[i].name, *slash = strchr(name, '/');
		char top[LAYOUT_NAME_SIZE];
		uint64_t numbers[LAYOUT_NUMBERS];
		snprintf(top, sizeof(top), "%.*s", slash ? (int)(slash - name) : 0, name);
		if (slash && layout_matches("global_step{step}", top, numbers)) {
			snprintf(deepspeed, LAYOUT_NAME_SIZE, "%.254s/", top);
			found = true;
		} else if (slash) {
			found |= strncmp(top, "pytorch_model_fsdp", 18) == 0 || is_adapter(name);
		} else {
			found |= is_model(name);
		}
	}
	return found;
}

/*
 * Read the metrics that the Trainer logged at this step. "log_history" has an entry for each time
 * it logged. Begin with the last one, usually of an evaluation. Of equal names the last is used,
 * because an evaluation may be repeated.
 */
static void read_metrics(struct json_object *state, uint64_t step, struct metrics *metrics)
{
	static const char *const except[] = {"epoch", "step", NULL};
	struct json_object *history = json_member(state, "log_history", json_type_array);
	uint64_t logged;
	for (size_t i = history ? json_object_array_length(history) : 0; i-- > 0;) {
		struct json_object *entry = json_object_array_get_idx(history, i);
		if (json_object_is_type(entry, json_type_object) &&
			json_get_unsigned(entry, "step", &logged) && logged == step)
			metrics_collect(entry, except, metrics);
	}
}

static enum status check(
	const struct layout_item *item, struct layout_found *found, struct error *why)
{
	static const char state[] = "trainer_state.json";
	char deepspeed[LAYOUT_NAME_SIZE];
	uint64_t step = 0;
	enum status status;
	struct json_object *object = structure_read_json(item->root, state, &status, why);
	if (status == STATUS_OK &&
		(!json_get_unsigned(object, "global_step", &step) || step != item->step))
		status = error_set(why, STATUS_NO, "%s is not of this step", state);
	if (status == STATUS_OK)
		read_metrics(object, step, &found->metrics);
	json_object_put(object);
	if (status != STATUS_OK)
		return status;
	for (size_t i = 0; i < item->files->count && status == STATUS_OK; i++)
		if (structure_ends(item->files->files[i].name, ".index.json") &&
			!strchr(item->files->files[i].name, '/'))
			status = check_index(item, item->files->files[i].name, why);
	/* Without an index, the names of the files say how many there are. */
	if (status == STATUS_OK)
		status = structure_check_numbered(item->files, why);
	if (status == STATUS_OK && !has_model(item, deepspeed))
		status = error_set(why, STATUS_NO, "it holds no model");
	/* trainer_state.json is written after DeepSpeed's barrier, so all ranks have saved. */
	found->shards.confirmed = true;
	if (status == STATUS_OK && *deepspeed)
		status =
			structure_find(item->files, "latest")
				? layout_deepspeed_check(item, deepspeed, true, &found->shards, why)
				: error_set(why, STATUS_NO,
					  "latest is missing, which DeepSpeed writes after its own files");
	if (status == STATUS_OK)
		status = structure_check_all(item->root, item->files, "", why);
	if (status == STATUS_OK)
		status = structure_check_shards(item->root, item->files, why);
	return status;
}

static enum status depends(
	const struct layout_item *item, char name[LAYOUT_NAME_SIZE], struct error *err)
{
	const char *best;
	enum status status;
	struct json_object *object =
		structure_read_json(item->root, "trainer_state.json", &status, err);
	*name = '\0';
	if (status == STATUS_OK && json_get_text(object, "best_model_checkpoint", &best))
		snprintf(name, LAYOUT_NAME_SIZE, "%.255s", structure_base(best));
	json_object_put(object);
	return status;
}

const struct layout layout_hf = {
	.name = "hf",
	.title = "Hugging Face",
	.shape = LAYOUT_DIRECTORY,
	.names = names,
	.marks = marks,
	.check = check,
	.depends = depends,
};
