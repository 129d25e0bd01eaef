/* SPDX-License-Identifier: MIT */
/* doctor --fix, killed at every system call: the store is the old one, the new one, or mended. */
#include "store/convert.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "scratch.h"
#include "store/store.h"
#include "unit.h"

static char database[128], lock[160], fresh[160];

static void remove_store(void)
{
	char path[160];
	static const char *const rest[] = {"", "-journal", ".lock", ".lock-fix", ".lock.held"};
	for (size_t i = 0; i < sizeof(rest) / sizeof(rest[0]); i++) {
		snprintf(path, sizeof(path), "%s%s", database, rest[i]);
		(void)file_remove_tree(path, NULL);
	}
}

static enum status open_with(struct store **store, const char *parameters, struct error *err)
{
	char url[256];
	snprintf(url, sizeof(url), "%s%s", database, parameters);
	return store_open(store, url, 0, clock_after(60000), err);
}

static bool make_store(const char *parameters)
{
	char url[256];
	struct store *store;
	remove_store();
	snprintf(url, sizeof(url), "%s?%s", database, parameters);
	if (store_open(&store, url, STORE_CREATE, clock_after(60000), NULL) != STATUS_OK)
		return false;
	bool made = store_put(store, "k", "v", NULL, NULL) == STATUS_OK;
	store_close(store);
	return made;
}

/* What a user gets, and whether the value is there. */
static enum status use(bool *intact)
{
	struct store *store;
	struct store_entry entry = {0};
	struct error err = {0};
	enum status status = open_with(&store, "", &err);
	if (status != STATUS_OK)
		return status;
	status = store_get(store, "k", &entry, &err);
	*intact = status == STATUS_OK && !strcmp(entry.value, "v");
	store_entry_release(&entry);
	if (status == STATUS_OK)
		status = store_put(store, "other", "x", NULL, &err);
	store_close(store);
	return status;
}

static enum lock_mode recorded(void)
{
	struct lockfile file;
	enum lock_mode mode = LOCK_AUTO;
	if (lockfile_inspect(&file, lock, false, NULL) == STATUS_OK)
		mode = file.mode;
	CHECK(mode != LOCK_LINK || file.takeover == 5000);
	lockfile_close(&file);
	return mode;
}

static enum status fix(enum lock_mode mode, enum lock_mode *now, struct error *err)
{
	struct parameters parameters = {.takeover = 5000};
	return convert_mode(database, &parameters, mode, 0, now, err);
}

enum stop { ANY_STOP, BEFORE_RENAME };

/* Whether this stop of the process counts. */
static bool counts(pid_t pid, enum stop stop)
{
	struct __ptrace_syscall_info info = {0};
	if (stop == ANY_STOP)
		return true;
	ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof(info), &info);
	bool renames = info.entry.nr == SYS_renameat || info.entry.nr == SYS_renameat2;
#ifdef SYS_rename
	renames |= info.entry.nr == SYS_rename;
#endif
	return info.op == PTRACE_SYSCALL_INFO_ENTRY && renames;
}

/* Run it for so many system call stops, then kill it. True: it came to its end before. */
static bool run_and_kill(int stops, enum stop stop)
{
	int wait_status;
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		enum lock_mode now;
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		raise(SIGSTOP);
		_exit(fix(LOCK_LINK, &now, NULL) == STATUS_OK ? 0 : 1);
	}
	waitpid(pid, &wait_status, 0);
	ptrace(PTRACE_SETOPTIONS, pid, NULL, PTRACE_O_TRACESYSGOOD);
	while (stops > 0) {
		ptrace(PTRACE_SYSCALL, pid, NULL, NULL);
		waitpid(pid, &wait_status, 0);
		if (WIFEXITED(wait_status) || WIFSIGNALED(wait_status))
			return true;
		stops -= counts(pid, stop);
	}
	kill(pid, SIGKILL);
	waitpid(pid, &wait_status, 0);
	return false;
}

struct outcome {
	int old, new, mended, wrong;
};

static void judge(struct outcome *outcome, int stops)
{
	struct error err = {0};
	bool intact = false;
	enum lock_mode now = LOCK_AUTO;
	enum status status = use(&intact);
	if (status == STATUS_OK && intact) {
		*(recorded() == LOCK_LINK ? &outcome->new : &outcome->old) += 1;
		return;
	}
	/* A clear refusal, which the next one ends. */
	if (status == STATUS_DAMAGED && fix(LOCK_AUTO, &now, &err) == STATUS_OK &&
		now == LOCK_LINK && use(&intact) == STATUS_OK && intact &&
		access(fresh, F_OK) < 0) {
		outcome->mended++;
		return;
	}
	outcome->wrong++;
	printf("# killed after %d stops: %d, %s\n", stops, status, err.text);
}

int main(void)
{
	struct error err;
	enum lock_mode now = LOCK_AUTO;
	scratch_make();
	snprintf(database, sizeof(database), "%s/run.db", scratch);
	snprintf(lock, sizeof(lock), "%s.lock", database);
	snprintf(fresh, sizeof(fresh), "%s.lock-fix", database);

	TEST("the mode is recorded, and what was in the store stays")
	{
		bool intact = false;
		CHECK(make_store("lock=fcntl"));
		CHECK_EQ(fix(LOCK_LINK, &now, &err), STATUS_OK);
		CHECK_EQ(now, LOCK_LINK);
		CHECK_EQ(recorded(), LOCK_LINK);
		CHECK_EQ(use(&intact), STATUS_OK);
		CHECK(intact);
		CHECK_EQ(fix(LOCK_FCNTL, &now, &err), STATUS_OK);
		CHECK_EQ(recorded(), LOCK_FCNTL);
		CHECK_EQ(use(&intact), STATUS_OK);
	}
	TEST("who had it open without having been seen is refused afterwards")
	{
		struct store *store = NULL;
		struct store_entry entry = {0};
		CHECK(make_store("lock=fcntl"));
		CHECK_EQ(open_with(&store, "", &err), STATUS_OK);
		CHECK_EQ(fix(LOCK_LINK, &now, &err), STATUS_OK);
		CHECK_EQ(store_get(store, "k", &entry, &err), STATUS_DAMAGED);
		CHECK_EQ(store_put(store, "k", "lost", NULL, &err), STATUS_DAMAGED);
		store_close(store);
	}
	TEST("nothing is to be finished where nothing was interrupted")
	{
		bool intact = false;
		CHECK(make_store("lock=fcntl"));
		CHECK_EQ(fix(LOCK_AUTO, &now, &err), STATUS_NO);
		CHECK_EQ(lockfile_write(fresh, LOCK_LINK, 0, false, &err), STATUS_OK);
		CHECK_EQ(fix(LOCK_AUTO, &now, &err), STATUS_NO);
		CHECK(access(fresh, F_OK) < 0);
		CHECK_EQ(recorded(), LOCK_FCNTL);
		CHECK_EQ(use(&intact), STATUS_OK);
	}
	TEST("a lock file of another store is not mended")
	{
		CHECK(make_store("lock=fcntl"));
		CHECK_EQ(lockfile_write(lock, LOCK_FCNTL, 0, false, &err), STATUS_OK);
		CHECK_EQ(lockfile_write(fresh, LOCK_LINK, 0, false, &err), STATUS_OK);
		CHECK_EQ(fix(LOCK_LINK, &now, &err), STATUS_DAMAGED);
		CHECK_EQ(recorded(), LOCK_FCNTL);
	}
	TEST("while another holds its lock nothing is changed")
	{
		int ready[2];
		char byte;
		CHECK(make_store("lock=fcntl"));
		CHECK_EQ(pipe(ready), 0);
		fflush(stdout);
		pid_t pid = fork();
		if (pid == 0) {
			struct flock flock = {.l_type = F_WRLCK, .l_start = 4096, .l_len = 1};
			int descriptor = open(lock, O_RDWR);
			if (fcntl(descriptor, F_OFD_SETLK, &flock) == 0)
				(void)!write(ready[1], "x", 1);
			pause();
		}
		CHECK_EQ(read(ready[0], &byte, 1), 1);
		CHECK_EQ(fix(LOCK_LINK, &now, &err), STATUS_TEMPORARY);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		close(ready[0]);
		close(ready[1]);
		CHECK_EQ(recorded(), LOCK_FCNTL);
		CHECK_EQ(fix(LOCK_LINK, &now, &err), STATUS_OK);
	}
	TEST("while a holder that was overtaken may still write, nothing is changed")
	{
		char held[170], name[220];
		bool intact = false;
		snprintf(held, sizeof(held), "%s.held", lock);
		snprintf(name, sizeof(name), "%s/abandoned-0123456789abcdef", held);
		CHECK(make_store("lock=link"));
		CHECK_EQ(mkdir(held, 0700), 0);
		close(open(name, O_WRONLY | O_CREAT, 0600));
		for (int i = 0; i < 2; i++)
			CHECK_EQ(fix(LOCK_FCNTL, &now, &err), STATUS_TEMPORARY);
		CHECK_EQ(recorded(), LOCK_LINK);
		CHECK_EQ(use(&intact), STATUS_OK);
		CHECK(intact);
		CHECK_EQ(fix(LOCK_FCNTL, &now, &err), STATUS_OK);
		CHECK_EQ(recorded(), LOCK_FCNTL);
	}
	TEST("killed at any system call it leaves the old store, the new one, or one it mends")
	{
		struct outcome outcome = {0};
		/*
		 * Every stop is one entry or exit of a call: each second is enough. How many calls
		 * it makes differs from run to run, so that this may miss the moment between the
		 * second and the third step. The third is a rename: stop before each of them, too.
		 */
		for (enum stop stop = ANY_STOP; stop <= BEFORE_RENAME; stop++) {
			bool ended = false;
			for (int stops = 1; !ended && stops < 20000;
				stops += stop == ANY_STOP ? 2 : 1) {
				if (!CHECK(make_store("lock=fcntl")))
					break;
				ended = run_and_kill(stops, stop);
				judge(&outcome, stops);
			}
			CHECK(ended);
		}
		printf("# old %d, new %d, mended %d\n", outcome.old, outcome.new, outcome.mended);
		CHECK_EQ(outcome.wrong, 0);
		CHECK(outcome.old > 0 && outcome.new > 0 && outcome.mended > 0);
	}
	remove_store();
	scratch_remove();
	return unit_end();
}
