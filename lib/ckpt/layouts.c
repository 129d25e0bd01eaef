/* SPDX-License-Identifier: MIT */
#include "ckpt/layouts.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/parse.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "ckpt/directory.h"
#include "ckpt/formats.h"
#include "ckpt/names.h"

/* ---- The rows. Facts of each framework are in the manual: ckpt-layouts(7). ---- */

/* clang-format off */

/* What PyTorch's distributed format writes: .metadata is written last, and names all shards;
 * Megatron's form of it has common.pt, and then metadata.json last. */
#define SHARDS \
	"beside *.distcp : .metadata\n" \
	"listed .metadata *.distcp\n" \
	"listed **/.metadata *.distcp\n" \
	"beside common.pt : metadata.json\n"
/* Files of a set that say in their names how many there are, and documents that list files. */
#define SETS \
	"all **-{i}-of-{n}.*\n" \
	"listed **.index.json weight_map\n" \
	"beside adapter_model.* : adapter_config.json\n"
/*
 * DeepSpeed's files below a prefix. The model states say how many ranks there are, and the stage of
 * ZeRO: with 1 and more each rank has optimizer states, with 3 a part of the model states, too.
 * (Layers of a pipeline may be left out, if they have no parameters.)
 */
#define DEEPSPEED_PROVED \
	"**zero_pp_rank_*_states.pt mp_rank_*_model_states.pt **/mp_rank_*_model_states.pt"
#define DEEPSPEED_OF(at, states) \
	"world " at states " dp_world_size*mp_world_size " at "*zero_pp_rank_*optim_states.pt mics_shard_size\n" \
	"world " at states " dp_world_size*mp_world_size " at "zero_pp_rank_*_model_states.pt mics_shard_size\n" \
	"number " at states " stage : " at "*optim_states.pt\n"
#define DEEPSPEED(at) \
	"world " at "mp_rank_*_model_states.pt mp_world_size " at "mp_rank_*_model_states.pt\n" \
	DEEPSPEED_OF(at, "mp_rank_*_model_states.pt") \
	DEEPSPEED_OF(at, "zero_pp_rank_*_model_states.pt") \
	"if " at "*optim_states.pt : " at "mp_rank_*_model_states.pt " at "zero_pp_rank_*_model_states.pt\n" \
	"all " at "mp_rank_{i}_model_states.pt\n" \
	"all " at "*zero_pp_rank_{i}_mp_rank_{j}*optim_states.pt\n" \
	"all " at "zero_pp_rank_{i}_mp_rank_{j}_model_states.pt\n" \
	"all " at "layer_{i}_expert_{j}_mp_rank_*_model_states.pt\n"
/* Hugging Face's Accelerate: each rank writes random_states_R.pkl last. */
#define ACCELERATE \
	"when random_states_*.pkl optimizer.bin optimizer_*.bin scheduler.bin\n" \
	"any random_states_*.pkl\n" \
	"all random_states_{i}.pkl\n" \
	"known *.safetensors pytorch_model*.bin pytorch_model*/** */*.safetensors */*.bin *.msgpack\n" \
	"known optimizer*.bin optimizer*/** pytorch_model/**\n" \
	"each unet unet_ema controlnet transformer text_encoder : *.safetensors *.bin\n" \
	"if */*-of-*.safetensors : */*.index.json\n" \
	"if pytorch_model/** : latest\n" \
	"listed latest\n" SETS SHARDS DEEPSPEED("pytorch_model/")
/* What Hugging Face's Trainer writes; training_args.bin says that it was the Trainer itself.
 * trainer_state.json is written after model, optimizer and scheduler. */
#define TRAINER \
	"any trainer_state.json\n" \
	"json trainer_state.json global_step=STEP\n" SETS \
	"known *model*.safetensors *model*.bin */adapter_model.* *.h5 *.msgpack pytorch_model_fsdp*/* global_step*/*\n" \
	"if scheduler.pt rng_state*.pth : optimizer.* optimizer_*/* global_step*/*\n" \
	"if model-*-of-*.safetensors : model.safetensors.index.json\n" \
	"if pytorch_model-*-of-*.bin : pytorch_model.bin.index.json\n" \
	"if optimizer_0/** : pytorch_model_fsdp_0/**\n" \
	"all rng_state_{i}.pth\n" \
	"if global_step* : latest\n" \
	"listed latest\n" DEEPSPEED("global_step*/") SHARDS
#define KERAS(end) \
	"{step}-*" end " *-{step}-*" end " *_{step}_*" end " *.{step}-*" end " *.{step}" end " *-{step}" end " *_{step}" end " "
#define WORD(word) word "{step} " word "-{step} " word "_{step} " word "={step} "

/* The general ones are last: the first that an entry shows is its layout. */
static const struct layout layouts[] = {
	{
		.name = "native", .directories = true,
	}, {
		.name = "hf", .directories = true,
		.names = "checkpoint-{step}",
		.marks = "*.json *.safetensors *.bin *.pt *.pth random_states_*.pkl */*.safetensors */*.bin */*.json "
			"pytorch_model*/* global_step*/*",
		.proved = DEEPSPEED_PROVED,
		.rules = "when training_args.bin\n"
			"if optimizer.* optimizer_*/* : scheduler.pt\n"
			"if optimizer.* optimizer_*/* global_step*/* : rng_state*.pth\n" TRAINER
			"when trainer_state.json optimizer.pt scheduler.pt rng_state*.pth\n" TRAINER ACCELERATE,
	}, {
		.name = "accelerate", .directories = true,
		.names = "checkpoint_{step} step_{step} epoch_{step}",
		.marks = "random_states_*.pkl optimizer.bin scheduler.bin",
		.proved = DEEPSPEED_PROVED,
		.rules = ACCELERATE,
	}, {
		/* With some strategies the checkpoint is a directory, and meta.pt or latest, which
		 * name nothing, are written last. */
		.name = "lightning", .files = true, .directories = true, .alternatives = true,
		.names = "*step={step}*.ckpt",
		.marks = "meta.pt *.distcp .metadata latest checkpoint/*",
		.proved = DEEPSPEED_PROVED,
		.rules = "any **\n"
			"filled **\n"
			"if *.distcp : meta.pt\n"
			"if meta.pt : *.distcp\n"
			"if checkpoint/*_states.pt : latest\n"
			"listed latest\n"
			"if latest zero_to_fp32.py : checkpoint/*_states.pt\n" SHARDS DEEPSPEED("checkpoint/"),
		.undone = "*step={step}*-unfinished",
		.inside = "*.ckpt",
		.inside_files = "meta.pt checkpoint/mp_rank_00_model_states.pt "
			"checkpoint/zero_pp_rank_0_mp_rank_00_model_states.pt",
	}, {
		.name = "nemo", .directories = true, .alternatives = true,
		.names = "*step={step}*",
		.marks = "weights/* context/* metadata.json common.pt .metadata model_weights/*",
		.rules = "any **.distcp model_weights/** **/mp_rank_*/**\n"
			"if context/** : weights/**\n"
			"if weights/** : context/**\n"
			"beside common.pt : .metadata\n" SHARDS,
		.undone = "*step={step}*-unfinished",
	}, {
		.name = "verl", .directories = true,
		.names = "global_step_{step}",
		.marks = "actor/* critic/* data.pt model_world_size_*",
		.proved = "**world_size_*_rank_*",
		.rules = "any actor/** model_world_size_*\n"
			"any data.pt\n"
			"beside metadata.json : .metadata\n"
			"each actor critic : model_world_size_* dist_ckpt/*.distcp huggingface/*.safetensors\n"
			"all **model_world_size_{n}_rank_{i}.pt\n"
			"all **optim_world_size_{n}_rank_{i}.pt\n"
			"all **extra_state_world_size_{n}_rank_{i}.pt\n"
			"same actor : optim_world_size_*.pt\n"
			"if **optim_world_size_* : **model_world_size_*\n" SETS SHARDS,
		.tracker = "latest_checkpointed_iteration.txt",
		.tracker_forms = "{step}",
	}, {
		.name = "megatron", .directories = true,
		.names = "iter_{step}",
		.proved = "mp_rank_*/model*rng.pt mp_rank_*/*optim.pt",
		.rules = "known mp_rank_*/model*rng.pt **.distcp\n"
			"if common.pt : metadata.json\n"
			"if metadata.json : .metadata\n"
			"each mp_rank_* : model_optim_rng.pt model_rng.pt\n"
			"same mp_rank_* : distrib_optim.pt optim.pt\n"
			"same mp_rank_* : layer_wise_optimizer_*.pt\n"
			"world mp_rank_*/model*rng.pt "
			"tensor_model_parallel_size*pipeline_model_parallel_size*expert_model_parallel_size "
			"mp_rank_*/model*rng.pt expert_tensor_parallel_size\n" SHARDS,
		.tracker = "latest_checkpointed_iteration.txt",
		.tracker_forms = "{step}",
	}, {
		/* The index is written after the data, and holds the size of each tensor. */
		.name = "tensorflow", .files = true,
		.names = "*-{step}.index *-{step}.data-{i}-of-{n} *-{step}.meta "
			"*-{step}.ckpt.index *-{step}.ckpt.data-{i}-of-{n}",
		.rules = "any *.index\n"
			"any *.data-*\n"
			"all *.data-{i}-of-{n}\n"
			"filled *.data-*\n",
		.tracker = "checkpoint",
		.tracker_forms = "model_checkpoint_path:*\"**-{step}\" model_checkpoint_path:*\"**-{step}.ckpt\"",
	}, {
		.name = "keras", .files = true,
		.names = KERAS(".hdf5") KERAS(".h5") KERAS(".keras") "*{step}.weights.h5",
		.rules = "any **\n",
	}, {
		.name = "orbax", .directories = true,
		.names = "{step}",
		.marks = "_CHECKPOINT_METADATA commit_success.txt _METADATA manifest.ocdbt */_METADATA "
			"*/manifest.ocdbt */commit_success.txt",
		.rules = "any */** manifest.ocdbt\n"
			"each d **/d : *\n"
			"beside d/* : manifest.ocdbt\n"
			"each **ocdbt.process_* : manifest.ocdbt\n"
			"beside _METADATA _sharding : manifest.ocdbt */.zarray checkpoint\n"
			"if manifest.ocdbt : d/*\n"
			"if */manifest.ocdbt : */d/*\n"
			"json _CHECKPOINT_METADATA commit_timestamp_nsecs\n"
			"json **_METADATA\n"
			"json **_sharding\n",
	}, {
		.name = "composer", .files = true, .directories = true,
		.names = "ep{i}-ba{step}-rank{j}.pt ep{i}-ba{step}",
		.marks = "*.distcp .metadata *.pt",
		.rules = "any **\n"
			"all *-rank{i}.pt\n" SHARDS,
	}, {
		.name = "deepspeed", .directories = true, .general = true,
		.names = "global_step{step}",
		.proved = DEEPSPEED_PROVED,
		.rules = "any mp_rank_*_model_states.pt zero_pp_rank_*_model_states.pt\n" DEEPSPEED(""),
		.tracker = "latest",
		.tracker_forms = "global_step{step}",
	}, {
		/* Only words that mean a step: "optimizer_0" is a part of a checkpoint. */
		.name = "dcp", .directories = true, .general = true,
		.names = "{step} " WORD("step") WORD("global_step") WORD("iter") WORD("iteration") WORD("epoch")
			WORD("ckpt") WORD("checkpoint"),
		.marks = ".metadata *.distcp model.safetensors.index.json",
		.undone = ".metadata.tmp",
		.rules = "any *.distcp model.safetensors.index.json\n" SETS SHARDS,
	},
};
/* clang-format on */
#define LAYOUTS (sizeof(layouts) / sizeof(layouts[0]))

/* ---- Patterns ---- */

/*
 * Match what is left of both. What failed after a star need not be tried with more for an earlier
 * star, too: only a "**" can take more than a "*" that met a slash.
 */
enum match { MATCH, NO_MATCH, NOT_FOR_STAR, NEVER };

static enum match match(const char *at, const char *end, const char *text, const char *name,
	struct pattern_number *numbers)
{
	static const char *const places[PATTERN_NUMBERS] = {"{i}", "{j}", "{n}", "{step}"};
	const char *begin = at;
	while (at < end) {
		if (*at == '*') {
			bool deep = at + 1 < end && at[1] == '*';
			for (at += deep ? 2 : 1;; text++) {
				enum match rest = match(at, end, text, name, numbers);
				if (rest != NO_MATCH && (!deep || rest != NOT_FOR_STAR))
					return rest;
				if (!*text)
					return NEVER;
				if (!deep && *text == '/')
					return NOT_FOR_STAR;
			}
		}
		int place = PATTERN_NUMBERS;
		for (int i = 0; i < PATTERN_NUMBERS && *at == '{'; i++)
			if (strncmp(at, places[i], strlen(places[i])) == 0)
				place = i;
		if (place < PATTERN_NUMBERS) {
			size_t length = strspn(text, "0123456789");
			/* After a star, "0.93" is a value and "93" no step. */
			bool fraction = place == PATTERN_STEP && text - name > 1 &&
					text[-1] == '.' && isdigit((unsigned char)text[-2]) &&
					at - begin < 2;
			if (length == 0 || length > 18 || fraction)
				return *text ? NO_MATCH : NEVER;
			numbers[place] = (struct pattern_number){
				strtoull(text, NULL, 10), (size_t)(text - name), length};
			text += length;
			at += strlen(places[place]);
		} else if (!*text) {
			return NEVER;
		} else if (*at++ != *text++) {
			return NO_MATCH;
		}
	}
	return *text ? NO_MATCH : MATCH;
}

bool pattern_any(
	const char *patterns, const char *text, struct pattern_number numbers[PATTERN_NUMBERS])
{
	struct pattern_number unused[PATTERN_NUMBERS];
	for (const char *at = patterns; at && *at; at += *at == ' ') {
		const char *end = at + strcspn(at, " ");
		bool may = *at == *text || *at == '*' || *at == '{'; /* most may not */
		if (may && match(at, end, text, text, numbers ? numbers : unused) == MATCH)
			return true;
		at = end;
	}
	return false;
}

/* ---- Names ---- */

const struct layout *layout_ours(void)
{
	return &layouts[0];
}

bool layout_is_native(const struct layout *layout)
{
	return layout->name == layouts[0].name;
}

bool layout_reads(const struct layout *layout, const char *entry, uint64_t *step, bool *inside)
{
	struct pattern_number numbers[PATTERN_NUMBERS];
	for (const char *at = entry; *at; at++)
		if ((unsigned char)*at < ' ' || *at == 127)
			return false;
	*inside = false;
	if (layout_is_native(layout)) {
		struct ckpt_name name = ckpt_name_read(entry);
		*step = name.step;
		return name.kind != CKPT_NAME_FOREIGN;
	}
	/* As in a shell, a name with a dot at its beginning is hidden. */
	if (*entry == '.' && *layout->names != '.')
		return false;
	if (pattern_any(layout->names, entry, numbers)) {
		*step = numbers[PATTERN_STEP].value;
		return true;
	}
	*step = 0;
	*inside = pattern_any(layout->inside, entry, numbers);
	return *inside;
}

/* ---- What an entry shows ---- */

/* Look for a mark in a directory, whose names begin with prefix, and one level down, where the
 * deepest marks are: what else is there may be large, or not ours to read. */
static enum status find_mark(
	int directory, const char *prefix, const char *marks, bool *found, struct error *err)
{
	struct file_names names = {0};
	char path[600];
	enum status status = file_read_names(directory, *prefix ? prefix : ".", &names, err);
	for (size_t i = 0; i < names.count && status == STATUS_OK && !*found; i++) {
		const char *name = names.names[i];
		int length = snprintf(path, sizeof(path), "%s%s", prefix, name);
		*found = pattern_any(marks, path, NULL);
		if (*found || *prefix || !strchr(marks, '/'))
			continue;
		int below =
			openat(directory, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
		if (below < 0 && errno != ENOENT && errno != ENOTDIR && errno != ELOOP) {
			status = error_errno(err, errno, "open %s", name);
		} else if (below >= 0) {
			snprintf(path + length, sizeof(path) - (size_t)length, "/");
			status = find_mark(below, path, marks, found, err);
			close(below);
		}
	}
	file_names_release(&names);
	return status;
}

/* Whether an entry of the open DIR that has a name of this layout shows it. */
static enum status is_shown(int directory, const char *entry, const struct layout *layout,
	bool inside, bool *shown, struct error *err)
{
	struct stat st;
	uint64_t step;
	char path[512];
	*shown = false;
	if (fstatat(directory, entry, &st, 0) < 0)
		return errno == ENOENT || errno == ELOOP
			       ? STATUS_OK
			       : error_errno(err, errno, "look at %s", entry);
	if (!(S_ISDIR(st.st_mode) ? layout->directories : S_ISREG(st.st_mode) && layout->files))
		return STATUS_OK;
	if (layout_is_native(layout)) {
		snprintf(path, sizeof(path), "%s/" CKPT_MANIFEST, entry);
		*shown = *entry == '.' || faccessat(directory, path, F_OK, 0) == 0;
		return *shown || errno == ENOENT ? STATUS_OK
						 : error_errno(err, errno, "look at %s", path);
	}
	*shown = !inside && (!S_ISDIR(st.st_mode) || !layout->marks);
	if (*shown)
		return STATUS_OK;
	enum status status = STATUS_OK;
	/* A name without a number shows a layout only by its content. */
	if (S_ISREG(st.st_mode)) {
		status = format_read_number(directory, entry, "global_step", &step, err);
		*shown = status == STATUS_OK;
		return status == STATUS_NO ? STATUS_OK : status;
	}
	int root = openat(directory, entry, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return errno == ENOENT ? STATUS_OK : error_errno(err, errno, "open %s", entry);
	status = find_mark(root, "", layout->marks, shown, err);
	close(root);
	return status;
}

/* Note the first entry of the open DIR that shows each layout. One is enough: what else has a name
 * of that layout is not looked at. */
static enum status note_example(
	int directory, const char *entry, char examples[][64], struct error *err)
{
	const char *gone = ckpt_name_read_gone(entry);
	enum status status = STATUS_OK;
	bool shown = gone && ckpt_name_read(gone).kind != CKPT_NAME_FOREIGN, inside;
	uint64_t step;
	size_t i = 0;
	for (; !shown && !gone && i < LAYOUTS && status == STATUS_OK; i += !shown) {
		if (!layout_reads(&layouts[i], entry, &step, &inside))
			continue;
		if (*examples[i])
			return STATUS_OK;
		status = is_shown(directory, entry, &layouts[i], inside, &shown, err);
	}
	if (shown && !*examples[i])
		snprintf(examples[i], sizeof(examples[i]), "%.63s", entry);
	return status;
}

/* ---- Choosing ---- */

enum status layout_detect(
	const char *directory, const char *before, struct layout *layout, struct error *err)
{
	char examples[LAYOUTS][64] = {{0}};
	struct file_names names = {0};
	struct error why;
	int descriptor;
	const struct layout *found = NULL;
	*layout = layouts[0];
	enum status status = ckpt_directory_open(directory, &descriptor, err);
	if (status != STATUS_OK)
		return status == STATUS_NO ? STATUS_OK : status;
	status = file_read_names(descriptor, directory, &names, err);
	for (size_t i = 0; i < names.count && status == STATUS_OK; i++) {
		status = note_example(descriptor, names.names[i], examples, &why);
		if (status != STATUS_OK)
			error_set(err, status, "%s: %s", directory, why.text);
	}
	file_names_release(&names);
	close(descriptor);
	for (size_t i = 0; i < LAYOUTS && status == STATUS_OK; i++) {
		if (!*examples[i])
			continue;
		if (before && strcmp(before, layouts[i].name) == 0) {
			*layout = layouts[i];
			return STATUS_OK;
		}
		if (found && found->general == layouts[i].general)
			status = error_set(err, STATUS_USAGE,
				"%s holds checkpoints of two layouts, %s (%s) and %s (%s): say "
				"which with --layout",
				directory, found->name, examples[found - layouts], layouts[i].name,
				examples[i]);
		found = found ? found : &layouts[i];
	}
	if (found)
		*layout = *found;
	return status;
}

static enum status layout_named(const char *name, struct layout *layout, struct error *err)
{
	const char *words[LAYOUTS + 1] = {"auto"};
	struct text all = {0};
	for (size_t i = 0; i < LAYOUTS; i++) {
		words[i + 1] = layouts[i].name;
		text_addf(&all, "%s, ", layouts[i].name);
		if (strcmp(name, layouts[i].name) == 0) {
			*layout = layouts[i];
			text_release(&all);
			return STATUS_OK;
		}
	}
	const char *meant = parse_nearest(words, LAYOUTS + 1, name);
	error_set(err, STATUS_USAGE,
		"there is no layout \"%s\"%s%s%s; there are %sauto, and --pattern for the rest",
		name, meant ? "; did you mean \"" : "", meant ? meant : "", meant ? "\"?" : "",
		text_string(&all));
	text_release(&all);
	return STATUS_USAGE;
}

/* Make a layout of the words of --pattern. */
static enum status layout_of_pattern(
	const struct layout_words *words, struct layout *layout, struct error *err)
{
	const char *pattern = words->pattern, *step = strstr(pattern, "{step}");
	if (!step || strstr(step + 1, "{step}"))
		return error_set(err, STATUS_USAGE, "--pattern \"%s\" needs {step} once, as in %s",
			pattern, "\"model-{step}.pt\"");
	bool ambiguous = (step > pattern && strchr("*0123456789", step[-1])) ||
			 (step[6] && strchr("*0123456789", step[6]));
	if (ambiguous)
		return error_set(err, STATUS_USAGE,
			"--pattern \"%s\": where the step begins and ends is not clear; put another "
			"character between {step} and '*' or a digit",
			pattern);
	if (strpbrk(pattern, "/ ") || strcmp(pattern, ".") == 0)
		return error_set(err, STATUS_USAGE,
			"--pattern \"%s\" is the pattern of a name: without '/' and blanks",
			pattern);
	*layout = (struct layout){
		.name = "pattern",
		.names = pattern,
		.rules = "any **\nfilled **\n" SETS SHARDS,
		.done = words->done,
		.undone = words->undone,
		.tracker = words->tracker,
		.files = true,
		.directories = true,
	};
	if (words->tracker) /* lives as long as the program: its words do, too */
		layout->tracker_forms = xprintf("**%s** {step} **/{step}", pattern);
	return STATUS_OK;
}

enum status layout_choose(const char *directory, const struct layout_words *words,
	struct layout *layout, struct error *err)
{
	if (words->pattern && words->layout)
		return error_set(err, STATUS_USAGE, "give either --layout or --pattern");
	if (!words->pattern && (words->done || words->undone || words->tracker))
		return error_set(err, STATUS_USAGE,
			"--done, --undone and --tracker go with --pattern: a layout knows its own");
	if (words->pattern)
		return layout_of_pattern(words, layout, err);
	if (words->layout && strcmp(words->layout, "auto") != 0)
		return layout_named(words->layout, layout, err);
	return layout_detect(directory, NULL, layout, err);
}

/* Split a location into a directory and, *chosen, a layout; else what is in it decides. */
static enum status split_location(const char *text, char directory[4096], bool *chosen,
	struct layout *layout, struct error *err)
{
	const char *colon = strrchr(text, ':'), *word = colon ? colon + 1 : "";
	struct error why;
	struct stat st;
	bool pattern = strstr(word, "{step}"), automatic = strcmp(word, "auto") == 0;
	*chosen = pattern || (colon && !automatic && layout_named(word, layout, &why) == STATUS_OK);
	bool split = *chosen || automatic;
	/* If lstat fails in another way, there may be a directory of that name. */
	if (colon && !split && !strchr(colon, '/') && lstat(text, &st) < 0 && errno == ENOENT)
		return error_set(err, STATUS_USAGE,
			"%s: %s (a directory whose name has a colon is written with a slash at the "
			"end: %s/)",
			text, why.text, text);
	int length = split ? (int)(colon - text) : (int)strlen(text);
	if (snprintf(directory, 4096, "%.*s", length, text) >= 4096)
		return error_set(err, STATUS_USAGE, "the name %.100s... is too long", text);
	return pattern ? layout_of_pattern(&(struct layout_words){.pattern = word}, layout, err)
		       : STATUS_OK;
}

enum status layout_check_location(const char *text, struct error *err)
{
	char directory[4096];
	struct layout layout;
	bool chosen;
	return split_location(text, directory, &chosen, &layout, err);
}

enum status layout_read_location(const char *text, const char *before, char directory[4096],
	struct layout *layout, struct error *err)
{
	bool chosen;
	enum status status = split_location(text, directory, &chosen, layout, err);
	return status == STATUS_OK && !chosen ? layout_detect(directory, before, layout, err)
					      : status;
}
