/* SPDX-License-Identifier: MIT */
/* The record of another side, which a doctor reads in a directory that others write, too. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "doctor/exchange.h"
#include "support/fuzz.h"

/* It is taken or waited for, and whatever it says can be concluded from and shown. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
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
	return 0;
}
