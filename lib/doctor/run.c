/* SPDX-License-Identifier: MIT */
/* doctor_run: start the sides of this machine, watch the time, clean up, report. */
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process/ending.h"
#include "doctor/examine.h"
#include "doctor/scratch.h"

/* All in milliseconds. */
#define CLEAN_WITHIN	   5000
#define CLEAN_WITHIN_QUICK 400
#define MEASURE_FOR	   60000 /* after the nodes have met */
#define REAP_WITHIN	   100

void doctor_report_release(struct doctor_report *report)
{
	text_release(&report->text);
	text_release(&report->json);
}

/* Set the parts of the findings that do not depend on the sides. */
static void init(const struct doctor_request *request, struct doctor_memory *memory)
{
	struct doctor_findings *findings = &memory->findings;
	findings->form = request->nodes ? DOCTOR_NODES : request->other ? DOCTOR_TWO : DOCTOR_ONE;
	findings->quick = request->quick;
	findings->shared = request->shared;
	findings->store = request->url;
	findings->sides = memory->sides;
	findings->noticed = findings->noticed_longest = -1;
}

static pid_t start_side(const struct doctor_request *request, size_t index, const char *name,
	struct doctor_memory *memory)
{
	pid_t parent = getpid(), child = fork();
	if (child != 0)
		return child;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() == parent)
		doctor_examine(request, index, name, memory);
	_exit(0);
}

/* Whether the child ends before the deadline. */
static bool ends(pid_t child, int64_t deadline)
{
	struct pollfd poller = {.fd = pidfd_open(child, 0), .events = POLLIN};
	while (!poller.revents && clock_now() < deadline)
		(void)poll(&poller, 1, clock_poll_timeout(deadline));
	close(poller.fd);
	return poller.revents;
}

/* Wait until the first side ends, the second ends with trouble, a signal comes, or the deadline. */
static bool await_sides(
	const pid_t children[2], size_t count, const struct doctor_memory *memory, int64_t deadline)
{
	struct pollfd pollers[2] = {{.fd = -1}, {.fd = -1}};
	for (size_t i = 0; i < count; i++)
		pollers[i] = (struct pollfd){.fd = pidfd_open(children[i], 0), .events = POLLIN};
	int second = pollers[1].fd;
	bool over = false;
	while (!over && clock_now() < deadline && !ending_signal()) {
		ending_wait(pollers, count, deadline);
		over = pollers[0].revents || (pollers[1].revents && !memory[1].done);
		if (pollers[1].revents)
			pollers[1].fd = -1;
	}
	close(pollers[0].fd);
	close(second);
	return over;
}

/* A child that hangs in the filesystem cannot be killed: wait for it for a short time only. */
static void kill_child(pid_t child)
{
	if (child <= 0)
		return;
	kill(child, SIGKILL);
	if (ends(child, clock_after(REAP_WITHIN)))
		waitpid(child, NULL, 0);
}

/*
 * Remove the scratch directory in a child, because the filesystem may hang. The first node does
 * this; another node does it only if it ends early after all have met, so that the others end, too.
 */
static void clean(const struct doctor_request *request, const struct doctor_memory *memory)
{
	int64_t within = request->quick ? CLEAN_WITHIN_QUICK : CLEAN_WITHIN;
	bool others = request->node > 0 && (!memory->findings.count || memory->done);
	pid_t child = memory->named && !others ? fork() : -1;
	if (child == 0) {
		doctor_scratch_remove(memory->scratch);
		_exit(0);
	}
	if (child > 0)
		(void)ends(child, clock_after(within));
	kill_child(child);
}

static void report_on(const struct doctor_request *request, const struct doctor_memory *memory,
	struct doctor_report *report)
{
	struct doctor_verdict verdict;
	if (request->node > 0 && *memory->sides[0].text) {
		report->status = memory->sides[0].verdict;
		text_add(&report->text, memory->sides[0].text);
		return;
	}
	doctor_conclude(&memory->findings, &verdict);
	report->status = verdict.status;
	doctor_show_text(&memory->findings, &verdict, &report->text);
	doctor_show_json(&memory->findings, &verdict, &report->json);
}

/* Add the findings that the sides could not report themselves. */
static void complete(struct doctor_memory *memory, size_t count, bool ended)
{
	struct doctor_findings *findings = &memory->findings;
	const struct doctor_findings *second = &memory[1].findings;
	if (!ended)
		doctor_trouble(findings, STATUS_TEMPORARY,
			"the filesystem did not answer in time: check its server, or give a longer "
			"--timeout");
	if (count > 1 && !*findings->unmounted)
		memcpy(findings->unmounted, second->unmounted, sizeof(findings->unmounted));
	if (count > 1 && second->trouble != STATUS_OK)
		doctor_trouble(findings, second->trouble, second->trouble_why);
	if (!*findings->unmounted && (!memory[0].done || (count > 1 && !memory[1].done)))
		doctor_trouble(findings, STATUS_TEMPORARY, "a process that examined it was killed");
}

enum status doctor_run(
	const struct doctor_request *request, struct doctor_report *report, struct error *err)
{
	pid_t children[2] = {0};
	char name[DOCTOR_SCRATCH_NAME];
	size_t count = request->nodes ? 1 : 2;
	int64_t deadline = clock_after(request->timeout + (request->nodes ? MEASURE_FOR : 0));
	struct doctor_memory *memory = mmap(NULL, count * sizeof(*memory), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED ||
		!doctor_scratch_name(request->nodes ? request->session : NULL, name))
		return error_set(err, STATUS_TEMPORARY, "no memory, or no /proc");
	ending_catch();
	for (size_t i = 0; i < count; i++)
		init(request, &memory[i]);
	for (size_t i = 0; i < count; i++)
		children[i] = start_side(request, request->node + i, name, memory);
	bool started = children[0] > 0 && (count == 1 || children[1] > 0);
	bool ended = started && await_sides(children, count, memory, deadline);
	/* If the second side has ended, the first may soon end for the same reason: let it. */
	if (ended)
		(void)ends(children[0], clock_earlier(clock_after(REAP_WITHIN), deadline));
	for (size_t i = 0; i < count; i++)
		kill_child(children[i]);
	clean(request, memory);
	enum status status = STATUS_OK;
	if (!started)
		status = error_set(err, STATUS_TEMPORARY, "cannot start a process");
	else if (ending_signal())
		status = error_set(err, STATUS_TEMPORARY, "it was stopped by a signal");
	if (status == STATUS_OK) {
		complete(memory, count, ended);
		if (memory->findings.trouble == STATUS_USAGE)
			status = error_set(err, STATUS_USAGE, "%s", memory->findings.trouble_why);
		else
			report_on(request, memory, report);
	}
	munmap(memory, count * sizeof(*memory));
	return status;
}
