/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/mounts.h"
#include "store/convert.h"
#include "store/doctor_inside.h"
#include "store/doctor_place.h"

/* All in milliseconds. */
#define SWEEP_FOR	     200
#define FIX_WATCH	     10000 /* longer than anybody writes nothing who beats */
#define SILENCE		     30000 /* of the one who leads, before a node gives up */
#define REPORT_WITHIN	     8000  /* as any other answer (doctor_ask.c) */
#define STOPPED_WITHIN	     3000  /* the same after a signal to end */
#define STOPPED_WITHIN_QUICK 200
#define MEASURE_FOR	     60000 /* once the nodes have met */

/* ---- What to look at ---- */

static enum status find_directory(struct examination *examination, struct error *err)
{
	const struct doctor_request *request = examination->request;
	enum status status = STATUS_OK;
	examination->wanted.mode = LOCK_AUTO;
	if (request->url) {
		status = url_parse(request->url, &examination->url, err);
		if (status == STATUS_OK && strcmp(examination->url.scheme, "sqlite"))
			status = error_set(err, STATUS_USAGE,
				"store %s is no file: there is nothing to examine", request->url);
		if (status == STATUS_OK)
			status = parameters_read(&examination->url, &examination->wanted, err);
		/* A store behind a symbolic link lies where that leads. */
		if (status == STATUS_OK &&
			!(examination->database = realpath(examination->url.path, NULL)))
			examination->database = strdup(examination->url.path);
		if (status == STATUS_OK && examination->database &&
			!strchr(examination->database, '/')) {
			char *path = NULL;
			if (asprintf(&path, "./%s", examination->database) < 0)
				path = NULL;
			free(examination->database);
			examination->database = path;
		}
		if (status == STATUS_OK && examination->database)
			examination->directory = file_directory_of(examination->database);
	} else {
		examination->directory = strdup(request->directory);
	}
	if (status == STATUS_OK && !examination->directory)
		status = error_set(err, STATUS_TEMPORARY, "out of memory");
	if (status == STATUS_OK &&
		(!*examination->directory || (request->other && !*request->other)))
		status = error_set(err, STATUS_USAGE, "the path of a directory is empty");
	struct stat st;
	if (status == STATUS_OK && examination->database && stat(examination->database, &st) == 0 &&
		S_ISDIR(st.st_mode))
		status = error_set(err, STATUS_USAGE,
			"store %s is a directory: name the file of the store in it, or give the "
			"directory without --store",
			examination->database);
	if (status == STATUS_OK && strchr(examination->directory, '?'))
		status = error_set(err, STATUS_USAGE,
			"%s: the path of a store cannot contain \"?\"", examination->directory);
	struct doctor_findings *findings = &examination->findings;
	findings->directory = examination->directory;
	findings->store = request->url;
	findings->quick = request->quick;
	findings->shared = request->shared;
	findings->form = request->nodes ? DOCTOR_NODES : request->other ? DOCTOR_TWO : DOCTOR_ONE;
	findings->sides = examination->sides;
	findings->noticed = findings->noticed_longest = -1;
	return status;
}

/* What there is can be said before anything is started. */
static bool check_directory(struct examination *examination)
{
	const char *paths[] = {examination->directory, examination->request->other};
	struct doctor_findings *findings = &examination->findings;
	struct error err = {0};
	char why[512];
	for (int i = 0; i < 2 && paths[i]; i++) {
		struct stat st;
		if (mounts_check(paths[i], -1, &err) == STATUS_NO) {
			snprintf(findings->unmounted, sizeof(findings->unmounted), "%s", err.text);
			return false;
		}
		int number = stat(paths[i], &st) < 0 ? errno : S_ISDIR(st.st_mode) ? 0 : ENOTDIR;
		if (!number)
			continue;
		if (number == ENOENT && examination->request->shared) {
			snprintf(findings->unmounted, sizeof(findings->unmounted),
				"there is no %.300s: is the shared filesystem mounted?", paths[i]);
			return false;
		}
		snprintf(why, sizeof(why), "cannot look at %.300s: %s%s", paths[i],
			strerror(number), lock_cure(number));
		return examination_trouble(examination, error_status_of_errno(number), why);
	}
	return true;
}

/* ---- Who takes part ---- */

static bool start_worker(struct examination *examination, size_t k, const char *directory)
{
	struct error err = {0};
	enum status status = doctor_peer_start(&examination->peers[k], directory, &err);
	if (status != STATUS_OK)
		return examination_trouble(examination, status, err.text);
	examination->started++;
	return true;
}

static bool make_scratch(struct examination *examination)
{
	struct error err = {0};
	doctor_scratch_sweep(examination->directory, SWEEP_FOR);
	enum status status =
		doctor_scratch_make(examination->directory, examination->scratch, &err);
	return status == STATUS_OK || examination_trouble(examination, status, err.text);
}

/* Meet the other nodes. Who does not lead only follows. */
static bool meet(struct examination *examination)
{
	struct error err = {0};
	struct doctor_meeting *meeting = &examination->meeting;
	const struct doctor_request *request = examination->request;
	examination->tell("waiting for the other nodes");
	doctor_scratch_sweep(examination->directory, SWEEP_FOR);
	enum status status = doctor_meet(meeting, examination->directory, request->session,
		request->nodes, clock_after(request->timeout), &err);
	if (status != STATUS_OK)
		return examination_trouble(examination, status, err.text);
	examination->deadline = clock_after(MEASURE_FOR);
	if (meeting->leads)
		memcpy(examination->scratch, meeting->scratch, sizeof(examination->scratch));
	if (snprintf(examination->box, sizeof(examination->box), "%s/%s", examination->directory,
		    meeting->scratch) >= (int)sizeof(examination->box))
		return examination_trouble(examination, STATUS_USAGE, "the path is too long");
	for (uint64_t k = 1; meeting->leads && k < meeting->count; k++) {
		const struct doctor_member *member = &meeting->members[k];
		doctor_peer_meet(&examination->peers[k], examination->box, k, true, member->host);
		examination->peers[k].identity = member->identity;
	}
	return true;
}

static bool gather_sides(struct examination *examination)
{
	const struct doctor_request *request = examination->request;
	struct doctor_findings *findings = &examination->findings;
	if (request->nodes) {
		if (!meet(examination) || !start_worker(examination, 0, examination->directory))
			return false;
		if (!examination->meeting.leads)
			return true;
		findings->count = request->nodes;
		/* The directory has the same path on all nodes. */
		snprintf(examination->peers[0].name, sizeof(examination->peers[0].name), "%s",
			examination->meeting.members[0].host);
		return true;
	}
	const char *second = request->other ? request->other : examination->directory;
	if (!make_scratch(examination) || !start_worker(examination, 0, examination->directory) ||
		!start_worker(examination, 1, second))
		return false;
	findings->count = 2;
	return true;
}

/* ---- The mode ---- */

/* The mode recorded in the lock file; false: there is none that can be understood. */
static bool recorded_mode(struct examination *examination, enum lock_mode *mode)
{
	struct doctor_findings *findings = &examination->findings;
	struct lockfile file = {.descriptor = -1};
	struct error err = {0};
	char *path = NULL;
	if (asprintf(&path, "%s.lock", examination->database) < 0)
		return false;
	enum status status = lockfile_inspect(&file, path, examination->wanted.shared_group, &err);
	*mode = file.mode;
	if (status != STATUS_OK && status != STATUS_NO) {
		findings->store_status = status;
		snprintf(findings->store_why, sizeof(findings->store_why), "%s", err.text);
	}
	lockfile_close(&file);
	free(path);
	return status == STATUS_OK;
}

/* Which mode a store there has or would get, and whether all sides may use it. */
static void settle_mode(struct examination *examination)
{
	struct doctor_findings *findings = &examination->findings;
	enum lock_mode asked = examination->wanted.mode, recorded = LOCK_AUTO;
	struct error err = {0};
	findings->mode_status = findings->store_status = STATUS_OK;
	if (findings->store)
		findings->exists = recorded_mode(examination, &recorded);
	findings->mode = findings->exists ? recorded : asked;
	findings->mode_from = findings->exists	   ? "recorded in the store"
			      : asked != LOCK_AUTO ? "asked for"
						   : "the default there";
	for (size_t k = 0; k < findings->count && findings->mode_status == STATUS_OK; k++) {
		const struct filesystem_traits *traits = &examination->sides[k].traits;
		enum lock_mode mode = LOCK_FCNTL;
		if (findings->exists)
			findings->mode_status = lock_mode_follow(recorded, asked, traits, &err);
		else
			findings->mode_status = lock_mode_choose(asked, traits, &mode, &err);
		/* Where the sides differ, the one that relies on less. */
		if (!findings->exists && findings->mode != LOCK_LINK)
			findings->mode = mode;
	}
	if (findings->mode_status != STATUS_OK)
		snprintf(findings->mode_why, sizeof(findings->mode_why), "%s", err.text);
}

/* Whether this version could use that mode on every side, had it been asked for. */
static bool could_use(struct examination *examination, enum lock_mode wanted)
{
	enum lock_mode mode;
	for (size_t k = 0; k < examination->findings.count; k++)
		if (lock_mode_choose(wanted, &examination->sides[k].traits, &mode, NULL) !=
			STATUS_OK)
			return false;
	return true;
}

/* ---- In order ---- */

static bool mode_is_refuted(const struct doctor_findings *findings)
{
	if (findings->mode == LOCK_LINK)
		return findings->link.answer != DOCTOR_YES || findings->take.answer != DOCTOR_YES;
	return findings->ofd.answer != DOCTOR_YES;
}

static bool measure(struct examination *examination)
{
	struct doctor_findings *findings = &examination->findings;
	bool quick = findings->quick;
	if (!measure_look(examination) || !measure_begin(examination))
		return false;
	settle_mode(examination);
	/* Also where there is no lock file: a database without one is refused. */
	if (findings->store && findings->mode_status == STATUS_OK && !measure_store(examination))
		return false;
	if (!measure_locks(examination) || !measure_names(examination) ||
		(!quick && !measure_stale(examination)))
		return false;
	bool refuted = mode_is_refuted(findings);
	/* One machine cannot show that locks reach others: the store would refuse, too. */
	bool seen = findings->mode_status == STATUS_OK ||
		    (findings->clients > 1 && findings->mode == LOCK_FCNTL);
	for (size_t k = 0; k < findings->count; k++)
		seen &= findings->mode_status == STATUS_OK ||
			examination->sides[k].traits.reach != FILESYSTEM_NODE;
	if (!refuted && seen && !measure_load(examination, findings->mode, &findings->load, !quick))
		return false;
	enum lock_mode other = findings->mode == LOCK_LINK ? LOCK_FCNTL : LOCK_LINK;
	bool other_holds = other == LOCK_LINK ? findings->link.answer == DOCTOR_YES &&
							findings->take.answer == DOCTOR_YES
					      : findings->ofd.answer == DOCTOR_YES;
	if (findings->load.answer != DOCTOR_YES && other_holds && could_use(examination, other))
		return measure_load(examination, other, &findings->other, false);
	return true;
}

/* ---- --fix ---- */

/* The mode to record: the one that was seen to be safe. LOCK_AUTO: none was, or none is needed. */
static enum lock_mode mode_to_record(const struct doctor_findings *findings)
{
	struct doctor_verdict verdict;
	doctor_judge(findings, &verdict);
	if (verdict.status == STATUS_OK || findings->store_status != STATUS_OK ||
		findings->trouble != STATUS_OK)
		return LOCK_AUTO;
	if (findings->mode == LOCK_FCNTL && verdict.link_is_safe)
		return LOCK_LINK;
	return findings->mode == LOCK_LINK && verdict.fcntl_is_safe ? LOCK_FCNTL : LOCK_AUTO;
}

/* The store has another mode now. */
static void measure_again(struct examination *examination)
{
	struct doctor_findings *findings = &examination->findings;
	settle_mode(examination);
	if (findings->mode_status == STATUS_OK && !measure_store(examination))
		return;
	if (findings->other.mode == findings->mode && findings->other.answer == DOCTOR_YES)
		findings->load = findings->other;
	else if (findings->load.mode != findings->mode || findings->load.answer != DOCTOR_YES)
		(void)measure_load(examination, findings->mode, &findings->load, false);
	findings->other = (struct doctor_load){0};
}

static void fix(struct examination *examination)
{
	struct doctor_findings *findings = &examination->findings;
	struct error err = {0};
	enum lock_mode recorded, mode = mode_to_record(findings);
	bool damaged = findings->store_status == STATUS_DAMAGED;
	if (!findings->exists) {
		snprintf(
			findings->fixed, sizeof(findings->fixed), "nothing: there is no store yet");
		return;
	}
	if (mode == LOCK_AUTO && !damaged) {
		snprintf(findings->fixed, sizeof(findings->fixed), "nothing");
		return;
	}
	enum status status = measure_openers(examination, &err);
	examination->tell("watching the store for 10 seconds, to see that nobody uses it");
	if (status == STATUS_OK)
		status = convert_mode(examination->database, &examination->wanted, mode, FIX_WATCH,
			&recorded, &err);
	if (status == STATUS_NO) /* damaged, and not by an interrupted --fix */
		return;
	if (status != STATUS_OK) {
		findings->fix_status = status;
		snprintf(findings->fix_why, sizeof(findings->fix_why), "%s", err.text);
		return;
	}
	snprintf(findings->fixed, sizeof(findings->fixed), "%s lock=%s%s",
		damaged ? "finished what was interrupted: recorded" : "recorded",
		lock_mode_name(recorded), damaged ? "" : "; nobody used the store");
	measure_again(examination);
}

static void end_all(struct examination *examination)
{
	doctor_peer_end(&examination->peers[0]);
	if (!examination->request->nodes && examination->started > 1)
		doctor_peer_end(&examination->peers[1]);
	if (*examination->scratch)
		doctor_scratch_remove(examination->directory, examination->scratch);
	if (examination->request->nodes)
		doctor_meet_leave(&examination->meeting);
}

static void conclude(struct examination *examination, struct doctor_report *report)
{
	struct doctor_verdict verdict;
	doctor_judge(&examination->findings, &verdict);
	report->status = verdict.status;
	doctor_show_text(&examination->findings, &verdict, &report->text);
	doctor_show_json(&examination->findings, &verdict, &report->json);
}

/*
 * All nodes come to the same verdict. Only this one prints how: srun mixes what its tasks print,
 * and a program that reads it wants one object.
 */
static void publish(struct examination *examination, const struct doctor_report *report)
{
	struct json_object *message = json_object_new_object();
	struct doctor_verdict verdict;
	struct text text = {0};
	doctor_judge(&examination->findings, &verdict);
	doctor_show_verdict(&verdict, &text);
	json_put_text(message, "do", "report");
	json_put_signed(message, "verdict", report->status);
	json_put_text(message, "text", text_string(&text));
	text_release(&text);
	/* Told to end, there is less time to clean up (doctor.c); that word has been heard. */
	sig_atomic_t stop = doctor_stop;
	int64_t within = examination->request->quick ? STOPPED_WITHIN_QUICK : STOPPED_WITHIN;
	int64_t deadline = clock_after(stop ? within : REPORT_WITHIN);
	doctor_stop = 0;
	for (uint64_t k = 1; k < examination->meeting.count; k++)
		(void)doctor_peer_send(&examination->peers[k], message, NULL);
	json_object_put(message);
	/* Until they have it: then the directory may go. What else they say is answers not heard.
	 */
	for (uint64_t k = 1; k < examination->meeting.count; k++) {
		bool last = false;
		while (!last && doctor_peer_receive(&examination->peers[k], deadline, &message,
					NULL) == STATUS_OK) {
			bool told = false;
			last = json_get_bool(message, "told", &told) && told;
			json_object_put(message);
		}
	}
	if (!doctor_stop)
		doctor_stop = stop;
}

/* ---- Following ---- */

/* One that is asked to do what the worker of this machine shall do. */
static enum status relay(struct examination *examination, struct doctor_peer *leader,
	struct json_object *request, struct error *err)
{
	struct json_object *answer = NULL;
	struct doctor_peer *worker = &examination->peers[0];
	enum status status = doctor_peer_send(worker, request, err);
	if (status == STATUS_OK)
		status = doctor_peer_receive(worker, clock_after(SILENCE), &answer, err);
	if (status == STATUS_OK)
		status = doctor_peer_send(leader, answer, err);
	json_object_put(answer);
	return status;
}

static void say_gone(struct doctor_peer *leader, const char *why)
{
	struct process_identity self = {0};
	char text[512];
	struct json_object *message = json_object_new_object();
	(void)process_identify(0, &self, NULL);
	snprintf(text, sizeof(text), "on %s: %s", self.host, why);
	json_put_text(message, "gone", text);
	(void)doctor_peer_send(leader, message, NULL);
	json_object_put(message);
}

/* Do what the one who leads asks for, until it tells the report. */
static bool follow(struct examination *examination, struct doctor_report *report)
{
	struct doctor_peer leader;
	struct error err = {0};
	enum status status = STATUS_OK;
	const struct doctor_member *first = &examination->meeting.members[0];
	char name[96];
	snprintf(name, sizeof(name), "%s, which leads,", first->host);
	doctor_peer_meet(&leader, examination->box, examination->meeting.index, false, name);
	leader.identity = first->identity;
	examination->tell("following another node");
	for (bool reported = false; !reported && status == STATUS_OK;) {
		struct json_object *request = NULL;
		const char *what = "", *text;
		int64_t verdict;
		status = doctor_peer_receive(&leader, clock_after(SILENCE), &request, &err);
		if (status != STATUS_OK)
			break;
		(void)json_get_text(request, "do", &what);
		if (strcmp(what, "report")) {
			status = relay(examination, &leader, request, &err);
			if (status != STATUS_OK)
				say_gone(&leader, err.text);
		} else {
			reported = true;
			if (json_get_signed(request, "verdict", &verdict))
				report->status = (enum status)verdict;
			if (json_get_text(request, "text", &text))
				text_add(&report->text, text);
			/* Its files are closed before the directory goes. */
			doctor_peer_end(&examination->peers[0]);
			json_object_object_del(request, "text");
			json_put_bool(request, "told", true);
			(void)doctor_peer_send(&leader, request, NULL);
		}
		json_object_put(request);
	}
	if (status == STATUS_OK)
		return true;
	if (doctor_stop)
		say_gone(&leader, doctor_stop_why());
	else
		/* Whoever led is gone, or so slow that it shall start anew. */
		memcpy(examination->scratch, examination->meeting.scratch,
			sizeof(examination->scratch));
	return examination_trouble(examination, status, err.text);
}

enum status doctor_examine(const struct doctor_request *request, struct doctor_report *report,
	void (*tell)(const char *what), struct error *err)
{
	struct examination *examination = calloc(1, sizeof(*examination));
	if (!examination)
		return error_set(err, STATUS_TEMPORARY, "out of memory");
	examination->request = request;
	examination->tell = tell;
	examination->deadline = clock_after(request->timeout);
	struct doctor_findings *findings = &examination->findings;
	enum status status = find_directory(examination, err);
	if (status == STATUS_OK && check_directory(examination) && gather_sides(examination)) {
		if (request->nodes && !examination->meeting.leads) {
			if (!follow(examination, report))
				conclude(examination, report);
			goto out;
		}
		if (measure(examination) && request->fix)
			fix(examination);
	}
	/* What was typed is wrong: no report. */
	if (status == STATUS_OK && findings->trouble == STATUS_USAGE)
		status = error_set(err, STATUS_USAGE, "%s", findings->trouble_why);
	if (status == STATUS_OK)
		conclude(examination, report);
	if (request->nodes && examination->meeting.leads)
		publish(examination, report);
out:
	end_all(examination);
	url_release(&examination->url);
	free(examination->directory);
	free(examination->database);
	free(examination);
	return status;
}
