/* SPDX-License-Identifier: MIT */
/* What several do at the same moment to the same names and files. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "store/cache.h"
#include "store/doctor_worker.h"

#define CHANGE_EVERY 10	  /* milliseconds between two changes that are looked for */
#define CHECK_EVERY  2000 /* microseconds */

#define ROUNDS_MAX 1000

/* GlusterFS allows 100 links of one file. */
#define LINKS_OF_ONE 40

enum method { HELD, REOPENED, DROPPED, METHODS };

/* ---- One winner ---- */

static int make_file(const char *path, const char *content)
{
	int descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (descriptor < 0)
		return errno;
	ssize_t n = write(descriptor, content, strlen(content));
	int number = n < 0 ? errno : 0;
	/* Full disks and quotas of network filesystems are told here. */
	if (close(descriptor) < 0 && number == 0)
		number = errno;
	return number;
}

/*
 * The answer of link(2) to one whose first question was lost is "it exists": the file itself tells
 * whose it is. So does mode link.
 */
static bool is_ours(const char *path, const char *mark)
{
	char content[32] = "";
	int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (descriptor < 0)
		return false;
	ssize_t n = read(descriptor, content, sizeof(content) - 1);
	close(descriptor);
	return n > 0 && !strcmp(content, mark);
}

/*
 * One attempt: 0 won, EEXIST lost, or what went wrong. An answer that was lost on the way is asked
 * for again by network filesystems, and then is "it exists" or "it is gone": so whoever lost looks
 * whether it is his.
 */
static int attempt(struct doctor_worker *worker, const char *kind, uint64_t round, const char *mark)
{
	char mine[PATH_MAX], common[PATH_MAX];
	unsigned long long number = round;
	int result = 0;
	doctor_path(worker, common, sizeof(common), "%s.%llu", kind, number);
	doctor_path(worker, mine, sizeof(mine), "%s.%llu.%s", kind, number, mark);
	if (!strcmp(kind, "create")) {
		result = make_file(common, mark);
	} else if (!strcmp(kind, "link")) {
		doctor_path(
			worker, mine, sizeof(mine), "link-of.%llu.%s", number / LINKS_OF_ONE, mark);
		if (link(mine, common) < 0)
			result = is_ours(common, mark) ? 0 : errno;
	} else if (!strcmp(kind, "rename")) {
		if (rename(common, mine) < 0)
			result = access(mine, F_OK) == 0 ? 0 : errno;
	} else {
		/* As the lock of mode link is taken: one's own directory over the common one. */
		if (rename(mine, common) < 0) {
			result = errno == ENOTEMPTY ? EEXIST : errno;
			doctor_path(worker, mine, sizeof(mine), "take.%llu/%s", number, mark);
			result = access(mine, F_OK) == 0 ? 0 : result;
		}
	}
	/* What losing looks like on some network filesystems. */
	return result == ENOENT || result == ESTALE || result == EBADF ? EEXIST : result;
}

/* What must be there before it begins. */
static int prepare(
	struct doctor_worker *worker, const char *kind, uint64_t rounds, const char *mark)
{
	char path[PATH_MAX];
	int number = 0;
	bool links = !strcmp(kind, "link"), takes = !strcmp(kind, "take");
	bool renames = !strcmp(kind, "rename") && worker->index == 0;
	for (uint64_t i = 0; i < rounds && number == 0; i++) {
		unsigned long long round = i;
		if (links && i % LINKS_OF_ONE == 0) {
			doctor_path(worker, path, sizeof(path), "link-of.%llu.%s",
				round / LINKS_OF_ONE, mark);
		} else if (renames) {
			doctor_path(worker, path, sizeof(path), "rename.%llu", round);
		} else if (takes) {
			doctor_path(worker, path, sizeof(path), "take.%llu.%s", round, mark);
			if (mkdir(path, 0700) < 0)
				return errno;
			doctor_path(
				worker, path, sizeof(path), "take.%llu.%s/%s", round, mark, mark);
		} else {
			continue;
		}
		number = make_file(path, mark);
	}
	return number;
}

static bool is_kind(const char *kind)
{
	static const char *const kinds[] = {"link", "create", "rename", "take"};
	size_t i = 0;
	while (i < 4 && strcmp(kinds[i], kind) != 0)
		i++;
	return i < 4;
}

enum status doctor_race(struct doctor_worker *worker, const struct json_object *request,
	struct json_object *answer, struct error *err)
{
	const char *kind;
	uint64_t rounds, limit;
	char mark[32];
	if (!json_get_text(request, "kind", &kind) || !is_kind(kind) ||
		!json_get_unsigned(request, "rounds", &rounds) || rounds > ROUNDS_MAX ||
		!doctor_milliseconds(request, &limit))
		return error_set(err, STATUS_DAMAGED, "race: not understood");
	snprintf(mark, sizeof(mark), "%llu", (unsigned long long)worker->index);
	char *wins = calloc(1, rounds + 1);
	if (!wins)
		return error_set(err, STATUS_TEMPORARY, "out of memory");
	int number = prepare(worker, kind, rounds, mark);
	doctor_gather(worker);
	int64_t deadline = clock_after((int64_t)limit);
	/*
	 * Who is behind meets only names that are taken, which is faster: so he catches up. One
	 * round in any case: a machine that is busy for that long is no filesystem that cannot.
	 */
	for (uint64_t i = 0; i < rounds && number == 0 && (i == 0 || clock_now() < deadline); i++) {
		int result = attempt(worker, kind, i, mark);
		wins[i] = result == 0 ? '1' : '0';
		if (result != 0 && result != EEXIST) {
			wins[i] = '\0';
			number = result;
		}
	}
	json_put_text(answer, "wins", wins);
	free(wins);
	return number ? doctor_failed(err, kind, "names", number) : STATUS_OK;
}

/* ---- How old what is read may be ---- */

struct reader {
	char path[PATH_MAX];
	int descriptor; /* of HELD */
	enum cache cache;
	unsigned long long last;
	int64_t changed, longest;
};

static void write_number(const char *path, unsigned long long number)
{
	char digits[24];
	snprintf(digits, sizeof(digits), "%020llu", number);
	/* Opened and closed: what is written is then with the server, as beats are. */
	int descriptor = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (descriptor < 0)
		return;
	(void)!pwrite(descriptor, digits, 20, 0);
	close(descriptor);
}

static bool read_number(const struct reader *reader, enum method method, unsigned long long *number)
{
	char digits[24] = "";
	int descriptor = reader->descriptor;
	if (method == REOPENED)
		descriptor = open(reader->path, O_RDONLY | O_CLOEXEC);
	else if (method == DROPPED)
		descriptor = cache_open(reader->cache, reader->path);
	if (descriptor < 0)
		return false;
	ssize_t n = pread(descriptor, digits, 20, 0);
	if (method != HELD)
		close(descriptor);
	if (n == 20)
		*number = strtoull(digits, NULL, 10);
	return n == 20;
}

static void read_once(struct reader *reader, enum method method, int64_t now)
{
	unsigned long long number;
	if (!read_number(reader, method, &number) || number == reader->last)
		return;
	if (now - reader->changed > reader->longest)
		reader->longest = now - reader->changed;
	reader->last = number;
	reader->changed = now;
}

/* Each worker changes its own three files all the time, and reads those of the next one. */
enum status doctor_stale(struct doctor_worker *worker, const struct json_object *request,
	struct json_object *answer, struct error *err)
{
	static const char *const names[] = {"held", "reopened", "dropped"};
	struct reader readers[METHODS];
	char mine[METHODS][PATH_MAX];
	struct filesystem filesystem;
	uint64_t limit;
	if (!doctor_milliseconds(request, &limit))
		return error_set(err, STATUS_DAMAGED, "stale: not understood");
	if (filesystem_inspect(worker->directory, &filesystem, err) != STATUS_OK)
		return STATUS_TEMPORARY;
	struct filesystem_traits traits = filesystem_classify(&filesystem);
	enum cache cache = cache_kind(&traits);
	unsigned long long next = (worker->index + 1) % worker->count;
	for (int i = 0; i < METHODS; i++) {
		doctor_path(worker, mine[i], sizeof(mine[i]), "%s.%llu", names[i],
			(unsigned long long)worker->index);
		write_number(mine[i], 1);
		readers[i] = (struct reader){.descriptor = -1, .cache = cache};
		doctor_path(worker, readers[i].path, sizeof(readers[i].path), "%s.%llu", names[i],
			next);
	}
	doctor_gather(worker);
	readers[HELD].descriptor = open(readers[HELD].path, O_RDONLY | O_CLOEXEC);
	int64_t began = clock_now(), now = began, end = began + (int64_t)limit;
	for (int i = 0; i < METHODS; i++) {
		(void)read_number(&readers[i], (enum method)i, &readers[i].last);
		readers[i].changed = began;
	}
	unsigned long long written = 1;
	for (int64_t write_at = began; now < end; now = clock_now()) {
		if (now >= write_at) {
			written++;
			for (int i = 0; i < METHODS; i++)
				write_number(mine[i], written);
			write_at = clock_now() + CHANGE_EVERY;
		}
		for (int i = 0; i < METHODS; i++)
			read_once(&readers[i], (enum method)i, clock_now());
		usleep(CHECK_EVERY);
	}
	for (int i = 0; i < METHODS; i++) {
		int64_t since = now - readers[i].changed;
		int64_t longest = since > readers[i].longest ? since : readers[i].longest;
		longest = longest > CHANGE_EVERY ? longest - CHANGE_EVERY : 0;
		/* Not one change was seen. */
		if (readers[i].changed == began)
			longest = now - began;
		json_put_signed(answer, names[i], longest);
	}
	json_put_signed(answer, "looked", now - began);
	if (readers[HELD].descriptor >= 0)
		close(readers[HELD].descriptor);
	return STATUS_OK;
}
