/* SPDX-License-Identifier: MIT */
#include "store/doctor_peer.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "store/doctor_worker.h"

#define SLICE	    50 /* milliseconds between two looks at doctor_stop */
#define LOOK_LATEST 20 /* milliseconds between two looks for a file, at most */
#define END_WITHIN  1000
#define MESSAGE_MAX ((size_t)1 << 20)

volatile sig_atomic_t doctor_stop;

const char *doctor_stop_why(void)
{
	return doctor_stop == SIGALRM
		       ? "the filesystem did not answer in time: is its server there? "
			 "Else give it more --timeout"
		       : "it was stopped by a signal";
}

static enum status stopped(struct error *err)
{
	return error_set(err, STATUS_TEMPORARY, "%s", doctor_stop_why());
}

static enum status gone(const struct doctor_peer *peer, struct error *err)
{
	return error_set(err, STATUS_TEMPORARY, "%s ended before it was done", peer->name);
}

static enum status late(const struct doctor_peer *peer, struct error *err)
{
	return error_set(err, STATUS_TEMPORARY,
		"%s did not answer in time: it ended, or its filesystem hangs", peer->name);
}

/* ---- The child ---- */

/* Requests, one a line, until the end of the pipe. */
static void serve(int from, int to, const char *directory)
{
	struct doctor_worker worker;
	FILE *requests = fdopen(from, "r");
	char *line = NULL;
	size_t size = 0;
	ssize_t length;
	doctor_worker_init(&worker, directory);
	while (requests && (length = getline(&line, &size, requests)) > 0) {
		struct json_object *request = json_parse(line, (size_t)length);
		struct json_object *answer = doctor_worker_do(&worker, request);
		const char *text = json_line(answer);
		bool told = file_write_all(to, text, strlen(text)) == 0 &&
			    file_write_all(to, "\n", 1) == 0;
		json_object_put(answer);
		json_object_put(request);
		if (!told)
			break;
	}
	doctor_worker_release(&worker);
	free(line);
}

static void become_worker(pid_t parent, int from, int to, const char *directory)
{
	static const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE};
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(128 + SIGKILL);
	for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		signal(ignored[i], SIG_IGN);
	/* What else is open belongs to others: pipes of our siblings, above all. */
	int low = dup2(from, 3) < 0 ? from : 3;
	int high = dup2(to, 4) < 0 ? to : 4;
	close_range(5, ~0u, 0);
	serve(low, high, directory);
	_exit(0);
}

enum status doctor_peer_start(struct doctor_peer *peer, const char *directory, struct error *err)
{
	int requests[2] = {-1, -1}, answers[2] = {-1, -1};
	pid_t parent = getpid();
	*peer = (struct doctor_peer){.to = -1, .from = -1};
	snprintf(peer->name, sizeof(peer->name), "the process on %.70s", directory);
	/* Away from 3 and 4, where the child wants them. */
	if (pipe2(requests, O_CLOEXEC) < 0 || pipe2(answers, O_CLOEXEC) < 0)
		goto failed;
	for (int i = 0; i < 2; i++) {
		int request = fcntl(requests[i], F_DUPFD_CLOEXEC, 16);
		int answer = fcntl(answers[i], F_DUPFD_CLOEXEC, 16);
		if (request < 0 || answer < 0)
			goto failed;
		close(requests[i]);
		close(answers[i]);
		requests[i] = request;
		answers[i] = answer;
	}
	peer->pid = fork();
	if (peer->pid < 0)
		goto failed;
	if (peer->pid == 0)
		become_worker(parent, requests[0], answers[1], directory);
	close(requests[0]);
	close(answers[1]);
	peer->to = requests[1];
	peer->from = answers[0];
	return STATUS_OK;
failed:
	error_set(err, STATUS_TEMPORARY, "cannot start a process: %s", strerror(errno));
	for (int i = 0; i < 2; i++) {
		if (requests[i] >= 0)
			close(requests[i]);
		if (answers[i] >= 0)
			close(answers[i]);
	}
	peer->pid = 0;
	return STATUS_TEMPORARY;
}

void doctor_peer_end(struct doctor_peer *peer)
{
	int64_t deadline = clock_after(END_WITHIN);
	if (peer->pid > 0) {
		close(peer->to);
		close(peer->from);
		kill(peer->pid, SIGKILL);
		while (waitpid(peer->pid, NULL, WNOHANG) == 0 && clock_now() < deadline)
			usleep(500);
	}
	text_release(&peer->unread);
	*peer = (struct doctor_peer){.to = -1, .from = -1};
}

/* A line that was received, if there is a whole one. */
static bool take_line(struct doctor_peer *peer, struct json_object **message)
{
	struct text *unread = &peer->unread;
	char *end = unread->data ? memchr(unread->data, '\n', unread->length) : NULL;
	if (!end)
		return false;
	struct text rest = {0};
	*message = json_parse(unread->data, (size_t)(end - unread->data));
	text_add_bytes(&rest, end + 1, unread->length - (size_t)(end + 1 - unread->data));
	text_release(unread);
	*unread = rest;
	return true;
}

static enum status receive_from_child(
	struct doctor_peer *peer, int64_t deadline, struct json_object **message, struct error *err)
{
	char buffer[8192];
	while (!take_line(peer, message)) {
		struct pollfd poller = {.fd = peer->from, .events = POLLIN};
		if (doctor_stop)
			return stopped(err);
		int64_t now = clock_now();
		if (now >= deadline)
			return late(peer, err);
		int64_t slice = deadline - now < SLICE ? deadline - now : SLICE;
		if (poll(&poller, 1, (int)slice) <= 0)
			continue;
		ssize_t n = read(peer->from, buffer, sizeof(buffer));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return gone(peer, err);
		text_add_bytes(&peer->unread, buffer, (size_t)n);
	}
	return *message ? STATUS_OK : gone(peer, err);
}

/* ---- By files ---- */

void doctor_peer_meet(
	struct doctor_peer *peer, const char *box, uint64_t number, bool leads, const char *name)
{
	*peer = (struct doctor_peer){.to = -1,
		.from = -1,
		.box = box,
		.mine = leads ? 'q' : 'a',
		.theirs = leads ? 'a' : 'q',
		.number = number};
	snprintf(peer->name, sizeof(peer->name), "%s", name);
}

static void message_path(const struct doctor_peer *peer, char who, uint64_t sequence, char *path)
{
	snprintf(path, PATH_MAX, "%s/%c.%llu.%llu", peer->box, who,
		(unsigned long long)peer->number, (unsigned long long)sequence);
}

static enum status receive_file(
	struct doctor_peer *peer, int64_t deadline, struct json_object **message, struct error *err)
{
	char path[PATH_MAX];
	int64_t pause = 1, look_at_peer = clock_after(SLICE);
	struct text text = {0};
	message_path(peer, peer->theirs, peer->received + 1, path);
	for (;;) {
		if (file_ask_for_names(AT_FDCWD, peer->box) == ENOENT)
			return gone(peer, err);
		enum status status = file_read_whole(path, MESSAGE_MAX, &text, NULL);
		if (status == STATUS_OK)
			break;
		text_release(&text);
		if (doctor_stop)
			return stopped(err);
		int64_t now = clock_now();
		if (now >= deadline)
			return late(peer, err);
		if (now >= look_at_peer) {
			if (peer->identity.pid && process_check(&peer->identity) == PROCESS_GONE &&
				access(path, F_OK) < 0)
				return gone(peer, err);
			look_at_peer = now + SLICE;
		}
		poll(NULL, 0, (int)pause);
		pause = pause * 2 > LOOK_LATEST ? LOOK_LATEST : pause * 2;
	}
	peer->received++;
	*message = json_parse(text_string(&text), text.length);
	text_release(&text);
	return *message ? STATUS_OK : gone(peer, err);
}

/* ---- Both ---- */

enum status doctor_peer_send(
	struct doctor_peer *peer, struct json_object *message, struct error *err)
{
	char path[PATH_MAX];
	const char *line = json_line(message);
	peer->asked = clock_now();
	peer->asked_utc = clock_utc();
	if (peer->pid > 0) {
		if (file_write_all(peer->to, line, strlen(line)) < 0 ||
			file_write_all(peer->to, "\n", 1) < 0)
			return gone(peer, err);
		return STATUS_OK;
	}
	message_path(peer, peer->mine, ++peer->sent, path);
	enum status status = file_write_whole(path, line, strlen(line), 0600, false, err);
	/* The directory was removed by the one who leads. */
	if (status != STATUS_OK && access(peer->box, F_OK) < 0)
		return gone(peer, err);
	return status;
}

enum status doctor_peer_receive(
	struct doctor_peer *peer, int64_t deadline, struct json_object **message, struct error *err)
{
	return peer->pid > 0 ? receive_from_child(peer, deadline, message, err)
			     : receive_file(peer, deadline, message, err);
}
