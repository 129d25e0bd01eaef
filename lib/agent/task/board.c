/* SPDX-License-Identifier: MIT */
#include "agent/task/board.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/task/board_place.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/parse.h"
#include "base/process/process.h"
#include "base/xalloc.h"

#define REMOVE_FOR   5000 /* ms */
#define REMOVE_AGAIN 50	  /* ms */
#define BOARD_ROOM   128  /* bytes: files that are overwritten in place are shorter */
#define FILE_MOST    8192 /* bytes: the files notice and error are shorter */

/*
 * The next `hold` is written into a spare file, whose space is allocated in advance. Both spare
 * files exist while there is no hold, else one of them: publish_hold exchanges it with hold.
 */
static const char *const spares[] = {"hold.0", "hold.1"};

/*
 * Allocate the space of a file that is overwritten in place: data loaders may fill the filesystem
 * later. False, with errno: for example, no space. True if the filesystem cannot preallocate.
 */
static bool make_room(int descriptor)
{
	return fallocate(descriptor, FALLOC_FL_KEEP_SIZE, 0, BOARD_ROOM) == 0 ||
	       errno == EOPNOTSUPP || errno == ENOSYS || errno == EINVAL;
}

static int make_file(int directory, const char *name, const char *content)
{
	int descriptor = openat(directory, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (descriptor < 0)
		return -1;
	int result = -1;
	if (make_room(descriptor))
		result = file_write_all(descriptor, content, strlen(content));
	int number = errno;
	close(descriptor);
	errno = number;
	return result;
}

/*
 * The fifo `alive` gets its name after this process has opened it, so board_sweep knows that the
 * agent is gone when no process has it open; `boot` tells it which machine can know that. The lock
 * keeps systemd-tmpfiles from removing an old board.
 */
static bool hold_alive(struct board *board)
{
	struct process_identity self;
	if (process_identify(0, &self, NULL) != STATUS_OK ||
		make_file(board->directory, "boot", self.boot) < 0 ||
		mkfifoat(board->directory, "alive.new", 0600) < 0)
		return false;
	int alive = openat(board->directory, "alive.new", O_RDWR | O_CLOEXEC);
	if (alive < 0)
		return false;
	board->alive = fcntl(alive, F_DUPFD_CLOEXEC, 3);
	close(alive);
	(void)flock(board->directory, LOCK_EX | LOCK_NB);
	return board->alive > 0 &&
	       renameat(board->directory, "alive.new", board->directory, "alive") == 0;
}

/* What board_sweep needs of a process that joined (preempt-store join): it holds no fifo open. */
static bool name_process(const struct board *board)
{
	struct process_identity agent;
	char line[128];
	if (process_identify(board->agent, &agent, NULL) != STATUS_OK)
		return true;
	snprintf(line, sizeof(line), BOARD_JOINED "\n", agent.boot,
		(unsigned long long)agent.pid_namespace, (int)agent.pid,
		(unsigned long long)agent.start, (unsigned long long)agent.time_namespace);
	return make_file(board->directory, "joined", line) == 0;
}

static enum status furnish(struct board *board, struct error *err)
{
	char agent[32];
	snprintf(agent, sizeof(agent), "%d\n", (int)board->agent);
	board->directory = open(board->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	/* `alive` first: if the agent dies here, the next agent removes the board. */
	if (board->directory < 0 ||
		!(board->agent == getpid() ? hold_alive(board) : name_process(board)) ||
		make_file(board->directory, "agent", agent) < 0 ||
		make_file(board->directory, "step", "") < 0 ||
		make_file(board->directory, "saved", "") < 0 ||
		make_file(board->directory, spares[0], "") < 0 ||
		make_file(board->directory, spares[1], "") < 0 ||
		mkfifoat(board->directory, "pause", 0600) < 0)
		return error_errno(err, errno, "write the files of board %s", board->path);
	return STATUS_OK;
}

enum status board_create(struct board *board, const char *parent, pid_t agent,
	const struct reaper *reaper, struct error *err)
{
	*board = (struct board){.directory = -1, .agent = agent};
	if (!parent)
		parent = board_place();
	board_sweep(parent);
	board->path = reaper_make_directory(reaper, parent, BOARD_NAME);
	if (!board->path)
		return error_errno(err, errno, "make a board in %s", parent);
	enum status status = furnish(board, err);
	if (status != STATUS_OK)
		board_release(board, true);
	return status;
}

enum status board_create_rank(
	struct board *board, const char *directory, uint64_t rank, pid_t agent, struct error *err)
{
	*board = (struct board){.directory = -1, .agent = agent};
	board->path = xprintf("%s/%llu", directory, (unsigned long long)rank);
	enum status status = mkdir(board->path, 0700) < 0
				     ? error_errno(err, errno, "make board %s", board->path)
				     : furnish(board, err);
	if (status != STATUS_OK)
		board_release(board, false);
	return status;
}

enum status board_open(struct board *board, const char *path, pid_t agent, struct error *err)
{
	*board = (struct board){.directory = -1, .agent = agent};
	board->path = xstrdup(path);
	board->directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool open_at_all = board->directory >= 0;
	enum status status = STATUS_OK;
	if (!open_at_all && errno != ENOENT && errno != ENOTDIR)
		status = error_errno(err, errno, "open board %s", path);
	else if (!open_at_all || faccessat(board->directory, "step", F_OK, 0) < 0 ||
		 faccessat(board->directory, "saved", F_OK, 0) < 0)
		status = error_set(err, STATUS_USAGE, "%s is not a board, or no longer one", path);
	if (status != STATUS_OK)
		board_release(board, false);
	return status;
}

void board_release(struct board *board, bool remove)
{
	if (board->directory >= 0)
		close(board->directory);
	if (board->alive > 0)
		close(board->alive);
	if (remove && board->path)
		(void)file_remove_tree(board->path, NULL);
	free(board->path);
	*board = (struct board){.directory = -1};
}

/* The name of a spare file that exists; or, if `there` is false, of one that does not. */
static const char *spare(const struct board *board, bool there)
{
	return spares[(faccessat(board->directory, spares[0], F_OK, 0) == 0) == there ? 0 : 1];
}

static bool publish_hold(const struct board *board, const char *line)
{
	const char *name = spare(board, true);
	size_t length = strlen(line);
	int descriptor = openat(board->directory, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (descriptor < 0)
		return false;
	bool written = pwrite(descriptor, line, length, 0) == (ssize_t)length &&
		       ftruncate(descriptor, (off_t)length) == 0;
	int number = errno;
	close(descriptor);
	errno = number;
	/* If there is no hold, or files cannot be exchanged, rename the spare file to hold. */
	return written &&
	       (renameat2(board->directory, name, board->directory, "hold", RENAME_EXCHANGE) == 0 ||
		       renameat(board->directory, name, board->directory, "hold") == 0);
}

enum status board_tell(
	const struct board *board, const struct agreement_hold *hold, struct error *err)
{
	char line[64] = "";
	unsigned long long step = hold->step;
	int pid = (int)board->agent;
	switch (hold->order) {
	case ORDER_RUN:
		if (renameat(board->directory, "hold", board->directory, spare(board, false)) < 0 &&
			errno != ENOENT)
			return error_errno(err, errno, "write to board %s", board->path);
		return STATUS_OK;
	case ORDER_WAIT: snprintf(line, sizeof(line), "wait %d\n", pid); break;
	case ORDER_SAVE: snprintf(line, sizeof(line), "save %llu %d\n", step, pid); break;
	case ORDER_EXIT: snprintf(line, sizeof(line), "exit %llu %d\n", step, pid); break;
	case ORDER_LEAVE: snprintf(line, sizeof(line), "leave %d\n", hold->code); break;
	}
	if (!publish_hold(board, line))
		return error_errno(err, errno, "write to board %s", board->path);
	return STATUS_OK;
}

/* Read a small file. Returns its length, or -1 with errno. *written: mtime, ms UTC. */
static ssize_t read_small(
	const struct board *board, const char *name, char buffer[128], int64_t *written)
{
	int descriptor = openat(board->directory, name, O_RDONLY | O_CLOEXEC);
	if (descriptor < 0)
		return -1;
	ssize_t n = pread(descriptor, buffer, 127, 0);
	struct stat st;
	if (written && fstat(descriptor, &st) == 0)
		*written = file_changed(&st);
	int number = errno;
	close(descriptor);
	errno = number;
	if (n >= 0)
		buffer[n] = '\0';
	return n;
}

/*
 * A record that is overwritten in place may be read half written, so it is read until two readings
 * in a row are equal, at most 1000 times.
 */
static ssize_t read_record(
	const struct board *board, const char *name, char buffer[128], int64_t *written)
{
	char again[128];
	ssize_t length = read_small(board, name, buffer, written);
	for (int tries = 0; tries < 1000 && length >= 0; tries++) {
		ssize_t second = read_small(board, name, again, written);
		if (second == length && !memcmp(buffer, again, (size_t)length))
			return length;
		length = second;
		memcpy(buffer, again, sizeof(again));
	}
	return length;
}

/* Parse digits with leading zeros up to a blank or newline, and move *at behind that. */
static bool take_padded(char **at, uint64_t *value)
{
	size_t length = strspn(*at, "0123456789");
	if (length == 0 || ((*at)[length] != ' ' && (*at)[length] != '\n'))
		return false;
	(*at)[length] = '\0';
	bool right = parse_unsigned(*at, 0, UINT64_MAX / 2, value, "step", NULL) == STATUS_OK;
	*at += length + 1;
	return right;
}

void board_remove_joined(const char *path)
{
	int64_t until = clock_after(REMOVE_FOR);
	if (!strstr(path, "/" BOARD_NAME))
		return;
	while (file_remove_tree(path, NULL) != STATUS_OK && clock_now() < until)
		clock_sleep_until(clock_after(REMOVE_AGAIN));
}

enum status board_told(
	const struct board *board, struct agreement_hold *hold, int64_t *written, struct error *err)
{
	char line[128];
	unsigned long long step = 0;
	int pid = 0, code = 0;
	if (written)
		*written = 0;
	ssize_t n = read_small(board, "hold", line, written);
	if (n < 0 && errno != ENOENT)
		return error_errno(err, errno, "read board %s", board->path);
	struct agreement_hold found = {.order = ORDER_RUN};
	if (n >= 0 && sscanf(line, "wait %d", &pid) == 1)
		found.order = ORDER_WAIT;
	else if (n >= 0 && sscanf(line, "save %llu %d", &step, &pid) >= 1)
		found.order = ORDER_SAVE;
	else if (n >= 0 && sscanf(line, "exit %llu %d", &step, &pid) >= 1)
		found.order = ORDER_EXIT;
	else if (n >= 0 && sscanf(line, "leave %d", &code) == 1 && code >= 1 && code <= 255)
		found.order = ORDER_LEAVE;
	else if (n >= 0)
		return error_set(err, STATUS_DAMAGED, "board %s: cannot parse file hold: \"%s\"",
			board->path, line);
	found.step = step;
	found.code = code;
	*hold = found;
	return STATUS_OK;
}

bool board_same_hold(const struct agreement_hold *a, const struct agreement_hold *b)
{
	return a->order == b->order && a->step == b->step && a->code == b->code;
}

void board_keep_deadline(const struct board *board, struct board_deadline *known)
{
	char line[128];
	long long revision, earliest, latest;
	int doubted;
	if (read_small(board, "deadline", line, NULL) > 0 &&
		sscanf(line, "%lld %lld %lld %d\n", &revision, &earliest, &latest, &doubted) == 4 &&
		revision == known->revision) {
		*known = (struct board_deadline){revision, earliest, latest, doubted};
		return;
	}
	snprintf(line, sizeof(line), "%lld %lld %lld %d\n", (long long)known->revision,
		(long long)known->earliest, (long long)known->latest, known->doubted);
	unlinkat(board->directory, "deadline.new", 0);
	if (make_file(board->directory, "deadline.new", line) == 0)
		(void)renameat(board->directory, "deadline.new", board->directory, "deadline");
}

/* Replace a file of the board at path as a whole. */
static enum status keep_file(
	const char *path, const char *name, const char *text, struct error *err)
{
	struct text whole = {0};
	text_addf(&whole, "%s/%s", path, name);
	enum status status =
		file_write_whole(text_string(&whole), text, strlen(text), 0600, false, err);
	text_release(&whole);
	return status;
}

static enum status read_file(
	const char *path, const char *name, struct text *found, struct error *err)
{
	struct text whole = {0};
	text_addf(&whole, "%s/%s", path, name);
	enum status status = file_read_whole(text_string(&whole), FILE_MOST, found, err);
	text_release(&whole);
	return status;
}

void board_keep_error(const char *path, const char *line)
{
	(void)keep_file(path, "error", line, NULL);
}

void board_read_error(const char *path, char *line, size_t size)
{
	struct text found = {0};
	(void)read_file(path, "error", &found, NULL);
	snprintf(line, size, "%s", text_string(&found));
	text_release(&found);
}

enum status board_put_notice(const char *path, const struct notice *notice, struct error *err)
{
	struct text line = {0};
	struct notice former;
	struct error unused;
	bool kept = read_file(path, "notice", &line, &unused) == STATUS_OK &&
		    notice_read(text_string(&line), &former, &unused) == STATUS_OK &&
		    notice_deadline(&former) <= notice_deadline(notice);
	text_release(&line);
	if (kept)
		return STATUS_OK;
	notice_write_json(notice, &line);
	text_add(&line, "\n");
	enum status status = keep_file(path, "notice", text_string(&line), err);
	text_release(&line);
	return status;
}

enum status board_read_notice(const char *path, struct notice *notice, struct error *err)
{
	struct text line = {0};
	enum status status = read_file(path, "notice", &line, err);
	if (status == STATUS_OK)
		status = notice_read(text_string(&line), notice, err);
	text_release(&line);
	return status;
}

enum status board_read_step(const struct board *board, struct board_step *step, struct error *err)
{
	char line[128];
	struct board_step found = {0};
	ssize_t n = read_record(board, "step", line, &found.written);
	if (n < 0)
		return error_errno(err, errno, "read board %s", board->path);
	if (n > 0) {
		char *at = line;
		if (!take_padded(&at, &found.step))
			return error_set(err, STATUS_DAMAGED,
				"board %s: cannot parse file step: \"%s\"", board->path, line);
		found.started = true;
		if (!*at || !take_padded(&at, &found.next) || found.next <= found.step)
			found.next = found.step + 1;
	}
	*step = found;
	return STATUS_OK;
}

enum status board_read_saved(
	const struct board *board, uint64_t *step, int64_t *written, struct error *err)
{
	char line[128];
	ssize_t n = read_record(board, "saved", line, written);
	if (n < 0)
		return error_errno(err, errno, "read board %s", board->path);
	char *at = line;
	if (n == 0)
		return STATUS_NO;
	if (!take_padded(&at, step))
		return error_set(err, STATUS_DAMAGED, "board %s: cannot parse file saved: \"%s\"",
			board->path, line);
	return STATUS_OK;
}

enum status board_read_owner(const struct board *board, struct board_owner *owner)
{
	char line[128];
	ssize_t n = read_record(board, "owner", line, NULL);
	if (n <= 0 || (size_t)n >= sizeof(owner->line) || line[n - 1] != '\n')
		return STATUS_NO;
	memcpy(owner->line, line, (size_t)n + 1);
	return STATUS_OK;
}

void board_make_room(const struct board *board)
{
	static const char *const files[] = {"step", "saved"};
	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
		int descriptor = openat(board->directory, files[i], O_WRONLY | O_CLOEXEC);
		if (descriptor < 0)
			continue;
		(void)make_room(descriptor);
		close(descriptor);
	}
}

bool board_vanished(const struct board *board)
{
	struct stat st;
	return fstat(board->directory, &st) < 0 || st.st_nlink == 0 ||
	       (faccessat(board->directory, "step", F_OK, 0) < 0 && errno == ENOENT);
}
