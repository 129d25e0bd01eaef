/* SPDX-License-Identifier: MIT */
#include "store/doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/ending.h"
#include "base/file.h"
#include "base/json.h"
#include "store/doctor_peer.h"

/* All in milliseconds. */
#define CLEAN_WITHIN	   5000 /* how long it may take to stop and clean up */
#define CLEAN_WITHIN_QUICK 400
#define MEASURE_FOR	   60000 /* once the nodes have met */

void doctor_report_release(struct doctor_report *report)
{
	text_release(&report->text);
	text_release(&report->json);
}

/* ---- The child: examines, and tells its parent in lines of JSON ---- */

static int told_to;

static void tell_line(struct json_object *object)
{
	const char *line = json_line(object);
	(void)(file_write_all(told_to, line, strlen(line)) == 0 &&
		file_write_all(told_to, "\n", 1) == 0);
	json_object_put(object);
}

static void tell_progress(const char *what)
{
	struct json_object *object = json_object_new_object();
	json_put_text(object, "progress", what);
	tell_line(object);
}

static void stop(int number)
{
	doctor_stop = number;
}

static void examine(const struct doctor_request *request, pid_t parent, int to)
{
	static const int ignored[] = {SIGINT, SIGHUP, SIGQUIT, SIGPIPE};
	struct sigaction action = {.sa_handler = stop};
	struct doctor_report report = {0};
	struct error err = {0};
	sigset_t none;
	told_to = to;
	setpgid(0, 0);
	for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		signal(ignored[i], SIG_IGN);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGALRM, &action, NULL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	/* TERM, not KILL: it shall clean up. */
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(128 + SIGTERM);
	enum status status = doctor_examine(request, &report, tell_progress, &err);
	struct json_object *object = json_object_new_object();
	json_put_signed(object, "status", status);
	json_put_text(object, "why", err.text);
	json_put_signed(object, "verdict", report.status);
	json_put_text(object, "text", text_string(&report.text));
	json_put_text(object, "json", text_string(&report.json));
	tell_line(object);
	doctor_report_release(&report);
	_exit(0);
}

/* ---- The caller ---- */

struct watch_over {
	pid_t child;
	int from;
	struct text unread;
	bool ended; /* the pipe's end */
	bool reported;
};

static void read_line(struct watch_over *watch, const struct doctor_request *request,
	struct json_object *line, struct doctor_report *report, struct error *err)
{
	const char *text;
	int64_t number;
	if (json_get_text(line, "progress", &text)) {
		if (request->progress)
			request->progress(text);
		return;
	}
	if (!json_get_signed(line, "status", &number) || !json_get_text(line, "why", &text))
		return;
	watch->reported = true;
	if (number != STATUS_OK) {
		error_set(err, (enum status)number, "%s", text);
		report->status = (enum status)number;
		return;
	}
	if (json_get_signed(line, "verdict", &number))
		report->status = (enum status)number;
	if (json_get_text(line, "text", &text))
		text_add(&report->text, text);
	if (json_get_text(line, "json", &text))
		text_add(&report->json, text);
}

static void read_lines(struct watch_over *watch, const struct doctor_request *request,
	struct doctor_report *report, struct error *err)
{
	char buffer[8192];
	ssize_t n = read(watch->from, buffer, sizeof(buffer));
	if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN))
		watch->ended = true;
	if (n <= 0)
		return;
	text_add_bytes(&watch->unread, buffer, (size_t)n);
	char *begin = watch->unread.data, *end;
	while (begin && (end = strchr(begin, '\n'))) {
		struct json_object *line = json_parse(begin, (size_t)(end - begin));
		read_line(watch, request, line, report, err);
		json_object_put(line);
		begin = end + 1;
	}
	struct text rest = {0};
	if (begin)
		text_add(&rest, begin);
	text_release(&watch->unread);
	watch->unread = rest;
}

/* Until its end, a deadline, or a signal. */
static void watch_until(struct watch_over *watch, const struct doctor_request *request,
	int64_t deadline, bool signals, struct doctor_report *report, struct error *err)
{
	while (!watch->ended && clock_now() < deadline && !(signals && ending_signal())) {
		struct pollfd poller = {.fd = watch->from, .events = POLLIN};
		if (signals)
			ending_wait(&poller, 1, deadline);
		else
			(void)poll(&poller, 1, clock_poll_timeout(deadline));
		if (poller.revents)
			read_lines(watch, request, report, err);
	}
}

static enum status start(
	struct watch_over *watch, const struct doctor_request *request, struct error *err)
{
	int ends[2];
	pid_t parent = getpid();
	if (pipe2(ends, O_CLOEXEC) < 0)
		return error_set(err, STATUS_TEMPORARY, "cannot make a pipe: %s", strerror(errno));
	watch->child = fork();
	if (watch->child == 0) {
		close(ends[0]);
		examine(request, parent, ends[1]);
	}
	close(ends[1]);
	watch->from = ends[0];
	if (watch->child < 0) {
		close(ends[0]);
		return error_set(
			err, STATUS_TEMPORARY, "cannot start a process: %s", strerror(errno));
	}
	return STATUS_OK;
}

enum status doctor_run(
	const struct doctor_request *request, struct doctor_report *report, struct error *err)
{
	struct watch_over watch = {0};
	int64_t clean = request->quick ? CLEAN_WITHIN_QUICK : CLEAN_WITHIN;
	const char *place = request->url ? request->url : request->directory;
	ending_catch();
	enum status status = start(&watch, request, err);
	if (status != STATUS_OK)
		return status;
	int64_t deadline = clock_after(request->timeout + (request->nodes ? MEASURE_FOR : 0));
	watch_until(&watch, request, deadline, true, report, err);
	bool late = !watch.ended && !ending_signal();
	if (!watch.ended) {
		kill(watch.child, late ? SIGALRM : SIGTERM);
		watch_until(&watch, request, clock_after(clean), false, report, err);
	}
	/* Its workers are in its process group; one that hangs in the filesystem is left to it. */
	kill(-watch.child, SIGKILL);
	deadline = clock_after(watch.ended ? 2000 : 100);
	while (waitpid(watch.child, NULL, WNOHANG) == 0 && clock_now() < deadline)
		usleep(1000);
	close(watch.from);
	text_release(&watch.unread);
	if (ending_signal())
		return error_set(err, STATUS_TEMPORARY, "it was stopped by a signal");
	if (!watch.reported)
		return error_set(err, STATUS_TEMPORARY,
			late ? "%s: the filesystem did not answer in time: is its server there? Else give it more --timeout"
			     : "%s: the process that examined it was killed",
			place);
	return report->status != STATUS_OK && !report->text.length ? err->status : STATUS_OK;
}
