/* SPDX-License-Identifier: MIT
 *
 * The rules of a board: what is written, and what hold asks for at a boundary (board.h,
 * docs/design.md, section 3). `decide` reads no file and no clock, only hold and the numbers; other
 * functions wait and call it.
 */
#include "client/board.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define POLL_NS	    (10 * 1000 * 1000) /* between two readings of hold */
#define LONG_NS	    (50 * 1000 * 1000) /* the same, after PATIENT readings */
#define PATIENT	    50
#define ALIVE_EVERY 10		       /* readings of hold for each check whether the agent lives */
#define SETTLED_NS  (50 * 1000 * 1000) /* several ticks of any kernel */
#define AGAIN_NS    INT64_C(2000000000) /* if no save is reported: ask for the final save again */

/* What a wait remembers between two readings of hold. */
struct patience {
	bool told; /* it was reported that `line` cannot be parsed */
	bool gone; /* the process that `line` names is gone */
	unsigned turns;
	char line[96];
};

/* 0, or BOARD_LEAVE + 43 when the board is gone. */
static int hold_read(const struct preempt_board *board, struct board_hold *hold)
{
	*hold = (struct board_hold){.word = HOLD_NONE};
	ssize_t length = preempt_board_read(board->hold, hold->line, sizeof hold->line);
	if (length < 0 && errno == ENOENT) {
		if (access(board->path, F_OK) == 0)
			return 0;
		preempt_board_say(board->name,
			"the board %s has vanished, the agent is gone; leaving with 43",
			board->path);
		return BOARD_LEAVE + 43;
	}
	if (length < 0)
		snprintf(hold->line, sizeof hold->line, "(%s)", strerror(errno));
	if (length < 0 || strlen(hold->line) != (size_t)length || !preempt_board_hold(hold)) {
		hold->word = HOLD_WAIT;
		hold->watch = 0;
		hold->garbled = true;
	}
	return 0;
}

/* Wait a moment for hold to change. False: the process that hold names is gone, and hold is the
 * same when read again after that. (An agent may write hold a last time and end.) */
static bool patience_turn(
	struct patience *patience, const struct preempt_board *board, const struct board_hold *hold)
{
	bool same = strcmp(patience->line, hold->line) == 0;
	if (!same) {
		*patience = (struct patience){0};
		memcpy(patience->line, hold->line, sizeof patience->line);
	}
	if (hold->garbled && !patience->told) {
		preempt_board_say(board->name,
			"cannot understand %s: %.60s; waiting here until the agent changes it",
			board->hold, hold->line);
		patience->told = true;
	}
	struct board_process watched = {.pid = hold->watch};
	if (watched.pid == board->agent.pid)
		watched.started = board->agent.started;
	bool due = patience->gone || patience->turns % ALIVE_EVERY == 0;
	patience->turns++;
	if (due && watched.pid && !preempt_board_alive(watched)) {
		if (!patience->gone)
			return patience->gone = true;
		preempt_board_say(board->name,
			"the agent (process %d) is gone while this task waits; leaving with 43",
			(int)watched.pid);
		return false;
	}
	patience->gone = false;
	bool patient = patience->turns > PATIENT;
	nanosleep(&(struct timespec){.tv_nsec = patient ? LONG_NS : POLL_NS}, NULL);
	return true;
}

enum step_answer { RUN, SAVE, AGAIN, LEAVE, STAY };

/* What hold asks for when n steps are finished, and the next boundary is `next`. answers: the steps
 * for which save and exit were answered already. A task whose boundaries pass the step waits at the
 * last one before it, until the agents have found a later step. Once the final save was asked for,
 * no further step may start: asking at the same boundary again waits for the report of the save. */
static enum step_answer decide(
	const struct board_hold *hold, struct board_answers *answers, uint64_t n, uint64_t next)
{
	uint64_t s = hold->number;
	switch (hold->word) {
	case HOLD_NONE: return RUN;
	case HOLD_WAIT: return STAY;
	case HOLD_LEAVE: return LEAVE;
	case HOLD_SAVE:
		if (s + 1 <= answers->any)
			return RUN;
		break;
	case HOLD_EXIT:
		if (s + 1 <= answers->final)
			return n + 1 <= answers->at ? AGAIN : STAY;
		break;
	}
	if (n < s)
		return next > s ? STAY : RUN;
	if (answers->any < s + 1)
		answers->any = s + 1;
	if (hold->word == HOLD_EXIT) {
		answers->final = s + 1;
		answers->at = n + 1;
	}
	return SAVE;
}

/* Whether a save of this step or a later one was reported. */
static bool is_reported(const struct preempt_board *board, uint64_t step)
{
	char path[PATH_MAX], line[64];
	const char *at = line;
	uint64_t saved;
	return preempt_board_path(board, "saved", path) &&
	       preempt_board_read(path, line, sizeof line) > 0 &&
	       preempt_board_number(&at, true, BOARD_STEP_MAX, &saved) && saved >= step;
}

static int64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

int preempt_board_answer(struct preempt_board *board, uint64_t finished)
{
	struct patience patience = {0};
	int64_t since = now_ns();
	for (;;) {
		struct board_hold hold;
		int gone = hold_read(board, &hold);
		if (gone)
			return gone;
		switch (decide(&hold, &board->answers, finished, board->next)) {
		case RUN: return BOARD_RUN;
		case LEAVE: return BOARD_LEAVE + (int)hold.number;
		case SAVE: return BOARD_SAVE;
		case AGAIN:
			/* Another thread saves, or the caller has not begun to save. */
			if (!is_reported(board, hold.number) && now_ns() - since >= AGAIN_NS)
				return BOARD_SAVE;
			break;
		case STAY: break;
		}
		if (!patience_turn(&patience, board, &hold))
			return BOARD_LEAVE + 43;
	}
}

int preempt_board_barrier(const struct preempt_board *board, uint64_t step)
{
	struct patience patience = {0};
	bool parked = false;
	for (;;) {
		struct board_hold hold;
		int gone = hold_read(board, &hold);
		if (gone)
			return gone;
		if (hold.word == HOLD_LEAVE)
			return BOARD_LEAVE + (int)hold.number;
		if (hold.word == HOLD_EXIT && step >= hold.number) {
			parked = true;
		} else if (hold.word != HOLD_WAIT || !parked) {
			/* hold is gone, or of another round: the next boundary acts on it. */
			if (hold.garbled)
				patience_turn(&patience, board, &hold);
			return BOARD_RUN;
		}
		if (!patience_turn(&patience, board, &hold))
			return BOARD_LEAVE + 43;
	}
}

static int vanished(const struct preempt_board *board, const char *what)
{
	preempt_board_say(board->name, "cannot write %s on the board %s: %s; leaving with 43", what,
		board->path, strerror(errno));
	return BOARD_LEAVE + 43;
}

/* Set *held if hold exists. Returns an answer to leave if the board is gone. tmpfs does not cache
 * missing names: looking one up takes 1.6 us, and the rest of a step only 2. So read the
 * directory's modification time instead. It has the resolution of a clock tick: trust "no hold"
 * only if the directory had last changed well before the previous lookup, because any later change
 * then shows. On other filesystems times may be coarser or cached: look up the name. */
static int hold_there(struct preempt_board *board, bool *held)
{
	struct stat about;
	struct timespec now;
	if (fstat(board->dir, &about) != 0 || about.st_ino != board->ino ||
		about.st_dev != board->dev) {
		if (!preempt_board_open(board, 0) || fstat(board->dir, &about) != 0)
			return vanished(board, "step");
	}
	if (about.st_nlink == 0) {
		errno = ENOENT;
		return vanished(board, "step");
	}
	*held = false;
	if (about.st_mtim.tv_sec == board->unheld.tv_sec &&
		about.st_mtim.tv_nsec == board->unheld.tv_nsec)
		return BOARD_RUN;

	clock_gettime(CLOCK_REALTIME_COARSE, &now);
	bool dated = board->dated && fstat(board->dir, &about) == 0;
	*held = access(board->hold, F_OK) == 0;
	int64_t age = (now.tv_sec - about.st_mtim.tv_sec) * INT64_C(1000000000) + now.tv_nsec -
		      about.st_mtim.tv_nsec;
	board->unheld = dated && !*held && age > SETTLED_NS ? about.st_mtim : BOARD_UNKNOWN;
	return BOARD_RUN;
}

int preempt_board_step(struct preempt_board *board, uint64_t finished, uint64_t next, bool *held)
{
	if (finished > BOARD_STEP_MAX || next > BOARD_STEP_MAX + 1 || next <= finished) {
		preempt_board_say(board->name,
			"step %llu, next %llu: steps go from 0 to %llu, and the next boundary is a "
			"later one",
			(unsigned long long)finished, (unsigned long long)next,
			(unsigned long long)BOARD_STEP_MAX);
		return BOARD_LEAVE + 2;
	}
	if (finished < board->last) {
		preempt_board_say(board->name,
			"step %llu after step %llu: the number of finished steps never falls; start "
			"the command under its agent again to go back to a checkpoint",
			(unsigned long long)finished, (unsigned long long)board->last);
		return BOARD_LEAVE + 2;
	}

	char line[64];
	int length = snprintf(line, sizeof line, "%020llu %020llu\n", (unsigned long long)finished,
		(unsigned long long)next);
	if (pwrite(board->step, line, (size_t)length, 0) != length &&
		(errno != EBADF || !preempt_board_open(board, 0) ||
			pwrite(board->step, line, (size_t)length, 0) != length))
		return vanished(board, "step");
	board->last = finished;
	board->next = next;
	return hold_there(board, held);
}

/* Replace a small file on the board in place, in one write. */
static bool overwrite(
	const struct preempt_board *board, const char *file, const char *line, int length)
{
	char path[PATH_MAX];
	int fd = preempt_board_path(board, file, path)
			 ? open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600)
			 : -1;
	if (fd < 0)
		return false;
	bool done = pwrite(fd, line, (size_t)length, 0) == length;
	close(fd);
	return done;
}

int preempt_board_saved(const struct preempt_board *board, uint64_t step, bool *held)
{
	if (step > BOARD_STEP_MAX) {
		preempt_board_say(board->name, "saved %llu: steps go from 0 to %llu",
			(unsigned long long)step, (unsigned long long)BOARD_STEP_MAX);
		return BOARD_LEAVE + 2;
	}
	char line[32];
	int length = snprintf(line, sizeof line, "%020llu\n", (unsigned long long)step);
	if (!overwrite(board, "saved", line, length))
		return vanished(board, "saved");
	*held = access(board->hold, F_OK) == 0;
	return BOARD_RUN;
}
