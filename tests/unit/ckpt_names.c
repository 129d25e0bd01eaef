/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <string.h>

#include "ckpt/names.h"
#include "unit.h"

static const uint64_t numbers[] = {0, 1, 120, 99999999, 100000000, CKPT_NUMBER_MAX};

/* Each name that is made is read as what it is, and under its hidden name, too. */
static void check_made(void)
{
	char name[CKPT_NAME_SIZE], gone[CKPT_GONE_SIZE], again[CKPT_GONE_SIZE];
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		for (int kind = CKPT_NAME_STEP; kind <= CKPT_NAME_COPY; kind++)
			for (int k = 0; k < 2; k++) {
				struct ckpt_name made = {
					.kind = (enum ckpt_name_kind)kind, .step = numbers[i]};
				if (kind == CKPT_NAME_STAGING || kind == CKPT_NAME_SCRATCH) {
					made.attempt = numbers[5 - i];
					strcpy(made.life, k ? "0123456789abfedcba987654" : "");
				}
				if (kind == CKPT_NAME_SCRATCH)
					made.task = numbers[i];
				ckpt_name_make(name, &made);
				struct ckpt_name read = ckpt_name_read(name);
				CHECK(memcmp(&read, &made, sizeof(read)) == 0, "%s is read again",
					name);
				CHECK(ckpt_name_gone(gone, name) && ckpt_name_gone(again, name) &&
						strcmp(gone, again) != 0 &&
						!strcmp(ckpt_name_read_gone(gone), name) &&
						ckpt_name_read(gone).kind == CKPT_NAME_FOREIGN &&
						!ckpt_name_is_condemned(gone),
					"%s is to be deleted", gone);
				ckpt_name_condemn(gone);
				ckpt_name_condemn(gone);
				CHECK(ckpt_name_is_condemned(gone) &&
						!strcmp(ckpt_name_read_gone(gone), name),
					"%s is being deleted", gone);
			}
}

static void check_records(void)
{
	char name[CKPT_NAME_SIZE];
	uint64_t task, tasks;
	const uint64_t last = CKPT_TASKS_MAX - 1;
	for (uint64_t i = 0; i <= last; i += last) {
		ckpt_name_record(name, CKPT_SHARD, i, CKPT_TASKS_MAX);
		CHECK(ckpt_name_read_record(name, CKPT_SHARD, &task, &tasks) && task == i &&
				tasks == CKPT_TASKS_MAX &&
				!ckpt_name_read_record(name, CKPT_WRITER, &task, &tasks) &&
				ckpt_name_is_transient(name),
			"%s", name);
		ckpt_name_record(name, CKPT_WRITER, i, CKPT_TASKS_MAX);
		CHECK(ckpt_name_read_record(name, CKPT_WRITER, &task, &tasks) && task == i &&
				tasks == CKPT_TASKS_MAX &&
				!ckpt_name_read_record(name, CKPT_SHARD, &task, &tasks) &&
				ckpt_name_is_transient(name),
			"%s", name);
	}
	ckpt_name_record(name, CKPT_WRITER, 0, 0);
	CHECK(ckpt_name_read_record(name, CKPT_WRITER, &task, &tasks) && tasks == 0, "%s", name);
	static const char *const none[] = {".ckpt-shard.json", ".ckpt-shard-0.json",
		".ckpt-shard-2-of-2.json", ".ckpt-shard-02-of-3.json",
		".ckpt-shard-1-of-1000001.json", ".ckpt-shard-1-of-2.json.aB3xyz",
		".ckpt-shard-1-of-.json", ".ckpt-shard-1-of-2", ".ckpt-shard-x-of-2.json"};
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		CHECK(!ckpt_name_read_record(none[i], CKPT_SHARD, &task, &tasks) &&
				ckpt_name_is_transient(none[i]),
			"%s is no shard's", none[i]);
}

int main(void)
{
	check_made();
	check_records();
	static const char *const foreign[] = {"", "latest", "step-", "step-120", "step-0000012",
		"step-000000120", "step-00000120.tmp", "step--0000120", "step-0000012x",
		"step-1000000000000000000", "step-00000120/", " step-00000120", "Step-00000120",
		".tmp-step-120-attempt-0", ".tmp-step-00000120", ".tmp-step-00000120-attempt-",
		".tmp-step-00000120-attempt-03", ".tmp-step-00000120-attempt--1",
		".tmp-step-00000120-attempt-1-attempt-1", ".tmp-step-00000120-copy-copy",
		".tmp-step-00000120-attempt-1-copy", ".tmp-step-00000120-attempt-1-workertemp_",
		".tmp-step-00000120-workertemp_1", ".tmp-step-00000120-attempt-1-workertemp_01",
		".tmp-step-00000120-attempt-1-workertemp_1-workertemp_1",
		".tmp-step-00000120-attempt-1-life-", ".tmp-step-00000120-attempt-1-life-a",
		".tmp-step-00000120-attempt-1-life-0123456789abfedcba98765",
		".tmp-step-00000120-attempt-1-life-0123456789abfedcba9876543",
		".tmp-step-00000120-attempt-1-life-0123456789ABFEDCBA987654",
		".tmp-step-00000120-attempt-1-workertemp_1-life-0123456789abfedcba987654",
		"checkpoint-500"};
	for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++)
		CHECK(ckpt_name_read(foreign[i]).kind == CKPT_NAME_FOREIGN, "\"%s\" is not ours",
			foreign[i]);
	static const char *const kept[] = {".gone-step-00000120",
		".gone-0123456789abcde-step-00000120", ".gone-0123456789ABCDEF-step-00000120",
		".gone-0123456789abcdef-", ".gone-0123456789abcdef"};
	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		CHECK(!ckpt_name_read_gone(kept[i]), "\"%s\" is not being deleted", kept[i]);
	CHECK(!ckpt_name_is_transient(CKPT_MANIFEST) && !ckpt_name_is_transient(CKPT_BAD) &&
			!ckpt_name_is_transient(CKPT_PIN) && ckpt_name_is_reserved(CKPT_MANIFEST) &&
			ckpt_name_is_reserved(CKPT_BAD) && ckpt_name_is_reserved(CKPT_PIN),
		"the manifest and marks stay when a checkpoint is published");
	static const char *const free_names[] = {".ckpt-manifest", ".ckpt-notes", "manifest.json",
		"ckpt-shard-1-of-2.json", "model"};
	for (size_t i = 0; i < sizeof(free_names) / sizeof(free_names[0]); i++)
		CHECK(!ckpt_name_is_reserved(free_names[i]), "%s is the user's", free_names[i]);
	return unit_end();
}
