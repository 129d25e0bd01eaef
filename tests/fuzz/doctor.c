/* SPDX-License-Identifier: MIT */
/*
 * What processes of the doctor say to each other through a directory that both see. The first byte
 * of an input says what the rest is: 'q' a request, 'm' the files where they meet, a line "NAME
 * TEXT" for each, 'o' who made a scratch directory, 'w' two lines of wins and what was seen of
 * them.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "store/doctor_meet.h"
#include "store/doctor_peer.h"
#include "store/doctor_place.h"
#include "store/doctor_worker.h"
#include "support/fuzz.h"

#define SCRATCH DOCTOR_SCRATCH_PREFIX "aB3dE6"
#define INSIDE	SCRATCH "/scratch"

/* Those that wait for nobody. */
static bool is_quick(const struct json_object *request)
{
	static const char *const quick[] = {
		"begin", "write", "hold", "try", "drop", "close", "check", "race"};
	const char *what = "", *scratch;
	(void)json_get_text(request, "do", &what);
	if (!strcmp(what, "begin") && json_get_text(request, "scratch", &scratch) &&
		doctor_scratch_is_name(scratch))
		return false;
	for (size_t i = 0; i < sizeof(quick) / sizeof(quick[0]); i++)
		if (!strcmp(quick[i], what))
			return true;
	return false;
}

/* Nothing is made outside of the scratch directory. */
static void check_request(const uint8_t *data, size_t size)
{
	char box[PATH_MAX], scratch[PATH_MAX];
	struct doctor_worker worker;
	struct doctor_peer peer;
	struct json_object *request, *answer = NULL;
	int64_t status;
	snprintf(box, sizeof(box), "%s/" SCRATCH, fuzz_path());
	snprintf(scratch, sizeof(scratch), "%s/" INSIDE, fuzz_path());
	FUZZ_HOLDS(fuzz_write(SCRATCH "/q.1.1", data, size));
	FUZZ_HOLDS(mkdir(scratch, 0700) == 0);
	doctor_peer_meet(&peer, box, 1, false, "the other");
	doctor_worker_init(&worker, box);
	worker.scratch = strdup(scratch);
	worker.count = 1;
	if (doctor_peer_receive(&peer, clock_after(0), &request, NULL) == STATUS_OK) {
		if (is_quick(request))
			answer = doctor_worker_do(&worker, request);
		FUZZ_HOLDS(!answer || json_get_signed(answer, "status", &status));
		FUZZ_HOLDS(worker.index < worker.count && worker.count <= DOCTOR_SIDES_MAX);
		json_object_put(request);
		json_object_put(answer);
	}
	doctor_worker_release(&worker);
	FUZZ_HOLDS(file_remove_tree(scratch, NULL) == STATUS_OK);
	fuzz_clear();
	/* Else something was left in it. */
	FUZZ_HOLDS(access(box, F_OK) < 0);
}

/* No file there shows a node that lives, nor a call that names this one. */
static void check_meeting(const uint8_t *data, size_t size)
{
	struct doctor_meeting meeting;
	char name[PATH_MAX];
	for (char *line; (line = fuzz_next(&data, &size, '\n')); free(line)) {
		size_t length = strcspn(line, " ");
		const char *text = line[length] ? line + length + 1 : line + length;
		line[length] = '\0';
		snprintf(name, sizeof(name), DOCTOR_MEET "%u/%.100s", (unsigned)geteuid(), line);
		(void)fuzz_write(name, text, strlen(text));
	}
	FUZZ_HOLDS(doctor_meet(&meeting, fuzz_path(), "s", 2, clock_after(0), NULL) ==
		   STATUS_TEMPORARY);
	FUZZ_HOLDS(!*meeting.scratch);
	doctor_meet_leave(&meeting);
	fuzz_clear();
}

/* One that is not known to be dead keeps its directory: no input names the boot of this machine. */
static void check_owner(const uint8_t *data, size_t size)
{
	FUZZ_HOLDS(fuzz_write(SCRATCH "/" DOCTOR_OWNER, data, size));
	doctor_scratch_sweep(fuzz_path(), 1000);
	char path[PATH_MAX];
	snprintf(path, sizeof(path), "%s/" SCRATCH, fuzz_path());
	FUZZ_HOLDS(access(path, F_OK) == 0);
	fuzz_clear();
}

static void check_wins(const uint8_t *data, size_t size)
{
	char *texts[3];
	struct doctor_check check = {0};
	struct doctor_load load = {0};
	for (size_t i = 0; i < 3; i++)
		if (!(texts[i] = fuzz_next(&data, &size, '\n')))
			texts[i] = fuzz_text("", 0);
	doctor_count_wins(texts, 2, &check);
	FUZZ_HOLDS(check.several + check.none <= check.rounds);
	doctor_count_claims(texts, 2, texts[2], &load);
	FUZZ_HOLDS(load.contested <= load.claims && load.several + load.none <= load.claims);
	for (size_t i = 0; i < 3; i++)
		free(texts[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	switch (*data) {
	case 'q': check_request(data + 1, size - 1); break;
	case 'm': check_meeting(data + 1, size - 1); break;
	case 'o': check_owner(data + 1, size - 1); break;
	case 'w': check_wins(data + 1, size - 1); break;
	}
	return 0;
}
