/* SPDX-License-Identifier: MIT */
/* doctor_run: start the sides of this machine, watch the time, clean up, report. */
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process/ending.h"
#include "doctor/side.h"

/* All in milliseconds. */
#define CLEAN_WITHIN	   5000 /* also after the deadline */
#define CLEAN_WITHIN_QUICK 400
#define REAP_WITHIN	   100
#define LOOK_EVERY	   5

void doctor_report_release(struct doctor_report *report)
{
	text_release(&report->text);
	text_release(&report->json);
}

static pid_t start_side(const struct doctor_request *request, size_t index, const char *name,
	struct doctor_work *work)
{
	pid_t parent = getpid(), child = fork();
	if (child != 0)
		return child;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() == parent)
		doctor_be_side(request, index, name, work);
	_exit(0);
}

/* Whether the child has ended; then it becomes 0. */
static bool ended(pid_t *child)
{
	if (*child > 0 && waitpid(*child, NULL, WNOHANG) != 0)
		*child = 0;
	return *child <= 0;
}

/* Whether the child ends before the deadline. */
static bool ends(pid_t *child, int64_t deadline)
{
	while (!ended(child) && clock_now() < deadline)
		usleep(1000 * LOOK_EVERY);
	return *child <= 0;
}

/* Wait until the first side ends, another ends with trouble, a signal comes, or the deadline. */
static bool await_sides(
	pid_t children[2], size_t count, const struct doctor_work *work, int64_t deadline)
{
	while (!ended(&children[0]) && !(ended(&children[1]) && count > 1 && !work[1].done)) {
		if (clock_now() >= deadline || ending_signal())
			return false;
		ending_wait(NULL, 0, clock_earlier(deadline, clock_after(LOOK_EVERY)));
	}
	return true;
}

/* A child that hangs in the filesystem cannot be killed: wait for it for a short time only. */
static void kill_child(pid_t *child)
{
	if (*child > 0)
		kill(*child, SIGKILL);
	(void)ends(child, clock_after(REAP_WITHIN));
}

/*
 * Remove the scratch directory in a child, because the filesystem may hang. The first node does
 * this; another node does it only if it ends early after all have met, so that the others end, too.
 */
static void clean(
	const struct doctor_request *request, const struct doctor_work *work, int64_t deadline)
{
	int64_t least = request->quick ? CLEAN_WITHIN_QUICK : CLEAN_WITHIN;
	bool others = request->node > 0 && (!work->findings.count || work->done);
	pid_t child = work->named && !others ? fork() : -1;
	if (child == 0) {
		meeting_remove(work->scratch);
		_exit(0);
	}
	(void)ends(&child, clock_later(deadline, clock_after(least)));
	kill_child(&child);
}

/* Add what the sides could not report themselves. */
static void complete(struct doctor_work *work, size_t count, bool over)
{
	struct doctor_findings *findings = &work->findings;
	const struct doctor_findings *second = &work[1].findings;
	if (!over)
		doctor_trouble(findings, STATUS_TEMPORARY,
			"the filesystem did not answer in time: check its server, or give a longer "
			"--timeout");
	if (count > 1 && second->trouble != STATUS_OK)
		doctor_trouble(findings, second->trouble, second->trouble_why);
	if (!work[0].done || (count > 1 && !work[1].done))
		doctor_trouble(findings, STATUS_TEMPORARY, "a process that examined it was killed");
}

static enum status report_on(
	const struct doctor_findings *findings, struct doctor_report *report, struct error *err)
{
	struct doctor_verdict verdict;
	if (findings->trouble == STATUS_USAGE)
		return error_set(err, STATUS_USAGE, "%s", findings->trouble_why);
	doctor_conclude(findings, &verdict);
	report->status = verdict.status;
	if (findings->request->node > 0 && findings->trouble == STATUS_OK) {
		doctor_show_verdict(&verdict, &report->text);
		return STATUS_OK;
	}
	doctor_show_text(findings, &verdict, &report->text);
	doctor_show_json(findings, &verdict, &report->json);
	return STATUS_OK;
}

enum status doctor_run(
	const struct doctor_request *request, struct doctor_report *report, struct error *err)
{
	pid_t children[2] = {0};
	char name[MEETING_NAME];
	size_t count = request->nodes ? 1 : 2;
	int64_t deadline = clock_after(request->timeout + (request->nodes ? MEASURE_FOR : 0));
	struct doctor_work *work = mmap(NULL, count * sizeof(*work), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (work == MAP_FAILED || !meeting_name(request->nodes ? request->session : NULL, name))
		return error_set(err, STATUS_TEMPORARY, "no memory, or no random numbers");
	ending_catch();
	for (size_t i = 0; i < count; i++) {
		work[i].findings.request = request;
		children[i] = start_side(request, request->node + i, name, work);
	}
	bool started = children[0] > 0 && (count == 1 || children[1] > 0);
	bool over = started && await_sides(children, count, work, deadline);
	/* If the second side has ended, the first may soon end for the same reason: let it. */
	if (over)
		(void)ends(&children[0], clock_earlier(clock_after(REAP_WITHIN), deadline));
	for (size_t i = 0; i < count; i++)
		kill_child(&children[i]);
	clean(request, work, ending_signal() ? 0 : deadline);
	enum status status = STATUS_OK;
	if (!started)
		status = error_set(err, STATUS_TEMPORARY, "cannot start a process");
	else if (ending_signal())
		status = error_set(err, STATUS_TEMPORARY, "it was stopped by a signal");
	if (status == STATUS_OK) {
		complete(work, count, over);
		status = report_on(&work->findings, report, err);
	}
	munmap(work, count * sizeof(*work));
	return status;
}
