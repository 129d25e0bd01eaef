/* SPDX-License-Identifier: MIT */
/*
 * What a doctor reads in a directory that others write, too. The first byte of an input says what
 * the rest is: 'r' the record of another side, 's' names of directories beside its own.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "doctor/exchange.h"
#include "doctor/scratch.h"
#include "support/fuzz.h"

/* It is taken or waited for, and whatever it says can be concluded from and shown. */
static void check_record(const uint8_t *data, size_t size)
{
	static struct doctor_side sides[2];
	static struct doctor_findings findings;
	struct doctor_verdict verdict;
	struct text text = {0};
	struct error err = {0};
	char scratch[PATH_MAX];
	memset(sides, 0, sizeof(sides));
	snprintf(scratch, sizeof(scratch), "%s/scratch", fuzz_path());
	struct doctor_exchange exchange = {
		.scratch = scratch, .count = 2, .step = 2, .sides = sides, .deadline = clock_now()};
	FUZZ_HOLDS(fuzz_write("scratch/2.1", data, size));
	enum status status = doctor_exchange(&exchange, STATUS_OK, 0, &err);
	FUZZ_HOLDS(status == sides[1].trouble || (status == STATUS_TEMPORARY && exchange.lost));
	FUZZ_HOLDS(strlen(sides[1].text) < sizeof(sides[1].text));
	findings = (struct doctor_findings){.form = DOCTOR_NODES, .sides = sides, .count = 2};
	findings.mode = sides[1].recorded;
	findings.clients = doctor_count_clients(sides, 2);
	for (size_t k = 0; k < 2; k++)
		findings.traits[k] = filesystem_classify(&sides[k].filesystem);
	for (enum lock_mode mode = LOCK_FCNTL; mode <= LOCK_LINK; mode++)
		doctor_sum_load(&findings, &findings.modes[mode]);
	doctor_conclude(&findings, &verdict);
	doctor_show_text(&findings, &verdict, &text);
	FUZZ_HOLDS(!strchr(text_string(&text), '\033'));
	doctor_show_json(&findings, &verdict, &text);
	text_release(&text);
	fuzz_clear();
}

/* None is removed: no input names a process of this machine, and none is old. */
static void check_names(const uint8_t *data, size_t size)
{
	char path[PATH_MAX], name[200];
	struct error err;
	bool made = fuzz_write("ours", "", 0);
	for (char *line; (line = fuzz_next(&data, &size, '\n')); free(line)) {
		snprintf(name, sizeof(name), DOCTOR_SCRATCH_PREFIX "%.100s/file", line);
		if (strchr(line, '/') || !fuzz_write(name, "", 0))
			continue;
		snprintf(path, sizeof(path), "%s/" DOCTOR_SCRATCH_PREFIX "ours", fuzz_path());
		FUZZ_HOLDS(doctor_scratch_make(path, &err) == STATUS_OK);
		doctor_scratch_remove(path);
		snprintf(path, sizeof(path), "%s/%s", fuzz_path(), name);
		FUZZ_HOLDS(!strncmp(line, "ours", 4) || access(path, F_OK) == 0);
	}
	FUZZ_HOLDS(made);
	fuzz_clear();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	switch (*data) {
	case 'r': check_record(data + 1, size - 1); break;
	case 's': check_names(data + 1, size - 1); break;
	}
	return 0;
}
