/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <string.h>

#include "ckpt/names.h"
#include "unit.h"

int main(void)
{
	static const uint64_t numbers[] = {0, 1, 120, 99999999, 100000000, CKPT_NUMBER_MAX};
	char name[CKPT_NAME_SIZE], gone[CKPT_REMOVED_SIZE], checked[CKPT_REMOVED_SIZE];
	uint64_t task, inode;
	bool sharded;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		uint64_t n = numbers[i];
		ckpt_name_step(name, n);
		struct ckpt_name read = ckpt_name_read(name);
		CHECK(read.kind == CKPT_NAME_STEP && read.step == n, "%s is step %" PRIu64, name,
			n);
		CHECK(ckpt_name_removed(gone, name, n) &&
				!strcmp(ckpt_name_read_removed(gone, &inode), name) && inode == n,
			"%s is on its way", gone);
		ckpt_name_deleting(checked, gone);
		CHECK(strlen(checked) == strlen(gone) &&
				!strcmp(ckpt_name_read_removed(checked, &inode), name) &&
				inode == 0,
			"%s is being deleted", checked);
		for (int k = 0; k < 2; k++) {
			const char *life = k ? "0123456789abfedcba987654" : "";
			ckpt_name_staging(name, n, numbers[5 - i], life);
			read = ckpt_name_read(name);
			CHECK(read.kind == CKPT_NAME_STAGING && read.step == n &&
					read.attempt == numbers[5 - i] && !strcmp(read.life, life),
				"%s is being written", name);
			CHECK(ckpt_name_removed(gone, name, UINT64_MAX) &&
					!strcmp(ckpt_name_read_removed(gone, &inode), name),
				"%s is on its way", gone);
			ckpt_name_scratch(name, n, numbers[5 - i], life, n);
			read = ckpt_name_read(name);
			CHECK(read.kind == CKPT_NAME_SCRATCH && read.step == n &&
					read.attempt == numbers[5 - i] && read.task == n &&
					!strcmp(read.life, life),
				"%s cannot be read again", name);
			CHECK(ckpt_name_removed(gone, name, UINT64_MAX) &&
					ckpt_name_read(gone).kind == CKPT_NAME_FOREIGN &&
					!strcmp(ckpt_name_read_removed(gone, &inode), name),
				"%s is on its way", gone);
		}
		ckpt_name_task(name, n);
		snprintf(gone, sizeof(gone), "task-%" PRIu64, n);
		CHECK_TEXT(name, gone);
		ckpt_name_shard(name, n);
		CHECK(ckpt_name_is_shard(name, &task) && task == n && ckpt_name_is_transient(name),
			"%s", name);
		ckpt_name_writer(name, true, n);
		CHECK(ckpt_name_is_writer(name, &sharded, &task) && sharded && task == n, "%s",
			name);
	}
	ckpt_name_writer(name, false, 0);
	CHECK(ckpt_name_is_writer(name, &sharded, &task) && !sharded, "%s", name);

	static const char *const foreign[] = {"", "latest", "step-", "step-120", "step-0000012",
		"step-000000120", "step-00000120.tmp", "step--0000120", "step-0000012x",
		"step-1000000000000000000", "step-00000120/", " step-00000120", "Step-00000120",
		".tmp-step-120-attempt-0", ".tmp-step-00000120", ".tmp-step-00000120-attempt-",
		".tmp-step-00000120-attempt-03", ".tmp-step-00000120-attempt--1",
		".tmp-step-00000120-attempt-1-attempt-1", ".gone-step-00000120",
		".gone-0123456789abcde-step-00000120", ".gone-0123456789ABCDEF-step-00000120",
		".tmp-step-00000120-attempt-1-workertemp_", ".tmp-step-00000120-workertemp_1",
		".tmp-step-00000120-attempt-1-workertemp_01",
		".tmp-step-00000120-attempt-1-workertemp_1-workertemp_1",
		".tmp-step-00000120-attempt-1-life-", ".tmp-step-00000120-attempt-1-life-a",
		".tmp-step-00000120-attempt-1-life-0123456789abfedcba98765",
		".tmp-step-00000120-attempt-1-life-0123456789abfedcba9876543",
		".tmp-step-00000120-attempt-1-life-0123456789ABFEDCBA987654",
		".tmp-step-00000120-attempt-1-life-0123456789abfedcba987654-workertemp_01",
		".tmp-step-00000120-attempt-1-workertemp_1-life-0123456789abfedcba987654",
		".gone-0123456789abcdef-model", ".gone-0123456789abcdef-", "checkpoint-500"};
	for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++)
		CHECK(ckpt_name_read(foreign[i]).kind == CKPT_NAME_FOREIGN, "\"%s\" is not ours",
			foreign[i]);

	static const char *const reserved[] = {".ckpt-manifest.json", ".ckpt-manifest.json.aB3xyz",
		".ckpt-writer.json", ".ckpt-writer.json.aB3xyz", ".ckpt-writer-7.json",
		".ckpt-shard-12.json.aB3xyz", ".ckpt-bad.json", ".ckpt-pin.json",
		".ckpt-pin.json.aB3xyz"};
	for (size_t i = 0; i < sizeof(reserved) / sizeof(reserved[0]); i++)
		CHECK(ckpt_name_is_reserved(reserved[i]), "%s is reserved", reserved[i]);
	CHECK(!ckpt_name_is_transient(CKPT_MANIFEST), "the manifest is never swept away");
	CHECK(!ckpt_name_is_transient(CKPT_BAD) && !ckpt_name_is_transient(CKPT_PIN),
		"nor are marks");
	static const char *const free_names[] = {".ckpt-manifest.json.old", ".ckpt-manifest",
		".ckpt-shard-.json", ".ckpt-shard-x.json", ".ckpt-writer-.json", ".ckpt-notes",
		"manifest.json", ".ckpt-shard-1.json.tmp", "model"};
	for (size_t i = 0; i < sizeof(free_names) / sizeof(free_names[0]); i++)
		CHECK(!ckpt_name_is_reserved(free_names[i]), "%s is the user's", free_names[i]);
	return unit_end();
}
