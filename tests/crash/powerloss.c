/* SPDX-License-Identifier: MIT */
/*
 * powerloss [--tries N] [--seed S] [--url PARAMETERS] [ACT...]
 *
 * Loss of power is worse than kill -9: what was not synced may be there or not, in any order, and
 * of a write only some sectors. For each kind of transaction that writes, what it changes is
 * recorded. Then, for each moment in it, power is lost N times (default 12): what was synced before
 * stays, each other change to a file or to the names in its directory may be missing. The store is
 * opened as it then is: it must hold all that was acknowledged and nothing by halves.
 *
 * A directory's names are only taken to be durable when the directory was synced; filesystems
 * promise more, some of the time.
 */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "acts.h"
#include "base/clock.h"
#include "base/file.h"
#include "calls.h"
#include "store/lock/token.h"

#define CHANGES	 2048
#define FILES	 32
#define SECTOR	 512
#define FILE_MAX (1024 * 1024)

static struct fixture fixture;
static struct plan *plan;
static struct outcome *outcome;
static uint64_t chance = 1;
static unsigned long losses, wrong;

static const struct change *changes[CHANGES];
static const unsigned char *bytes_of[CHANGES];
static size_t change_count;
static ino_t directory, token_directory;

#define TOKENS "s.db.lock/"

/* What is on the disk. */
struct disk {
	struct file {
		ino_t inode;
		size_t size;
		unsigned char *bytes; /* FILE_MAX of them */
	} files[FILES];
	size_t file_count;
	struct name {
		char name[128]; /* empty: none */
		ino_t inode;
	} names[FILES];
};
static struct disk before, lost;

static uint64_t random_below(uint64_t limit)
{
	chance ^= chance << 13;
	chance ^= chance >> 7;
	chance ^= chance << 17;
	return chance % limit;
}

static _Noreturn void give_up(const char *what)
{
	printf("Bail out! %s (the last call that failed: %s)\n", what, strerror(errno));
	exit(99);
}

static struct file *find_file(struct disk *disk, ino_t inode)
{
	for (size_t i = 0; i < disk->file_count; i++)
		if (disk->files[i].inode == inode)
			return &disk->files[i];
	if (disk->file_count == FILES)
		give_up("too many files");
	struct file *file = &disk->files[disk->file_count++];
	if (!file->bytes && !(file->bytes = calloc(1, FILE_MAX)))
		give_up("out of memory");
	file->inode = inode;
	file->size = 0;
	return file;
}

static void set_name(struct disk *disk, const char *name, ino_t inode)
{
	struct name *empty = NULL;
	for (size_t i = 0; i < FILES; i++) {
		if (!strcmp(disk->names[i].name, name)) {
			empty = &disk->names[i];
			break;
		}
		if (!*disk->names[i].name && !empty)
			empty = &disk->names[i];
	}
	if (!empty)
		give_up("too many names");
	snprintf(empty->name, sizeof(empty->name), "%s", inode ? name : "");
	empty->inode = inode;
}

static void clear(struct disk *disk)
{
	disk->file_count = 0;
	memset(disk->names, 0, sizeof(disk->names));
}

static void read_file(struct disk *disk, const char *name, const struct stat *st)
{
	struct text bytes = {0};
	char path[200];
	snprintf(path, sizeof(path), "%s/%s", fixture.directory, name);
	if (file_read_whole(path, FILE_MAX, &bytes, NULL) != STATUS_OK)
		give_up("cannot read the disk");
	struct file *file = find_file(disk, st->st_ino);
	memcpy(file->bytes, text_string(&bytes), bytes.length);
	file->size = bytes.length;
	set_name(disk, name, st->st_ino);
	text_release(&bytes);
}

static void read_disk(struct disk *disk)
{
	static const char *const patterns[] = {"s.db*", TOKENS "*"};
	struct stat st;
	clear(disk);
	for (size_t i = 0; i < 2; i++) {
		glob_t found = {0};
		char path[200];
		snprintf(path, sizeof(path), "%s/%s", fixture.directory, patterns[i]);
		if (glob(path, 0, NULL, &found) != 0)
			found.gl_pathc = 0;
		for (size_t k = 0; k < found.gl_pathc; k++) {
			if (stat(found.gl_pathv[k], &st) < 0)
				give_up("cannot look at the disk");
			const char *name = found.gl_pathv[k] + strlen(fixture.directory) + 1;
			if (!S_ISDIR(st.st_mode))
				read_file(disk, name, &st);
			else if (!strncmp(name, TOKENS, strlen(name)))
				token_directory = st.st_ino;
		}
		globfree(&found);
	}
}

static void copy_disk(struct disk *to, const struct disk *from)
{
	clear(to);
	for (size_t i = 0; i < from->file_count; i++) {
		struct file *file = find_file(to, from->files[i].inode);
		file->size = from->files[i].size;
		memcpy(file->bytes, from->files[i].bytes, file->size);
	}
	memcpy(to->names, from->names, sizeof(to->names));
}

/* Put it where the store is looked for. */
static void write_disk(const struct disk *disk)
{
	char path[200];
	fixture_restore(&fixture, STATE_NOTHING);
	snprintf(path, sizeof(path), "%s/s.db.lock", fixture.directory);
	if (token_directory && (file_remove_tree(path, NULL) != STATUS_OK || mkdir(path, 0700) < 0))
		give_up("cannot make the directory of the token");
	for (size_t i = 0; i < FILES; i++) {
		const struct file *file = NULL;
		if (!*disk->names[i].name)
			continue;
		for (size_t k = 0; k < disk->file_count; k++)
			if (disk->files[k].inode == disk->names[i].inode)
				file = &disk->files[k];
		snprintf(path, sizeof(path), "%s/%s", fixture.directory, disk->names[i].name);
		int descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
		if (descriptor < 0 || (file && pwrite(descriptor, file->bytes, file->size, 0) !=
						       (ssize_t)file->size))
			give_up("cannot write the disk");
		close(descriptor);
	}
}

static void write_bytes(
	struct file *file, uint64_t offset, const unsigned char *bytes, uint64_t length)
{
	if (offset + length > FILE_MAX)
		give_up("a file is too large");
	if (offset > file->size)
		memset(file->bytes + file->size, 0, offset - file->size);
	memcpy(file->bytes + offset, bytes, length);
	if (offset + length > file->size)
		file->size = offset + length;
}

/* Of a write that was not synced any sectors may have arrived. */
static void tear(struct file *file, const struct change *change, const unsigned char *bytes)
{
	uint64_t at = 0;
	while (at < change->length) {
		uint64_t end = at + SECTOR - (change->offset + at) % SECTOR;
		if (end > change->length)
			end = change->length;
		if (random_below(2))
			write_bytes(file, change->offset + at, bytes + at, end - at);
		at = end;
	}
}

static void apply(struct disk *disk, size_t i, bool torn)
{
	const struct change *change = changes[i];
	switch (change->kind) {
	case CHANGE_WRITE: {
		struct file *file = find_file(disk, change->inode);
		if (torn)
			tear(file, change, bytes_of[i]);
		else
			write_bytes(file, change->offset, bytes_of[i], change->length);
		break;
	}
	case CHANGE_SIZE: {
		struct file *file = find_file(disk, change->inode);
		if (change->offset > file->size)
			memset(file->bytes + file->size, 0, change->offset - file->size);
		file->size = change->offset;
		break;
	}
	case CHANGE_CREATE:
		(void)find_file(disk, change->inode);
		set_name(disk, change->name[0], change->inode);
		break;
	case CHANGE_NAME: set_name(disk, change->name[0], change->inode); break;
	case CHANGE_RENAME:
		set_name(disk, change->name[0], 0);
		set_name(disk, change->name[1], change->inode);
		break;
	case CHANGE_UNNAME: set_name(disk, change->name[0], 0); break;
	case CHANGE_SYNC: break;
	}
}

static bool is_synced(size_t i, size_t moment)
{
	bool of_names = changes[i]->kind >= CHANGE_CREATE;
	bool of_tokens = !strncmp(changes[i]->name[0], TOKENS, strlen(TOKENS));
	ino_t inode = !of_names ? changes[i]->inode : of_tokens ? token_directory : directory;
	for (size_t k = i + 1; k < moment; k++)
		if (changes[k]->kind == CHANGE_SYNC && changes[k]->inode == inode)
			return true;
	return false;
}

/* Power is lost before the change number moment. How: 0: nothing else arrived, 1: all, else any. */
static void lose(size_t moment, unsigned how)
{
	copy_disk(&lost, &before);
	for (size_t i = 0; i < moment; i++) {
		if (is_synced(i, moment) || how == 1)
			apply(&lost, i, false);
		else if (how > 1) {
			unsigned luck = (unsigned)random_below(3);
			if (luck > 0)
				apply(&lost, i, luck == 2);
		}
	}
	write_disk(&lost);
}

/* In a child, which then may be recorded. */
static void play(const struct act *act)
{
	memset(outcome, 0, sizeof(*outcome));
	pid_t pid = fork();
	if (pid == 0) {
		struct store *store = NULL;
		calls_arm(plan);
		act_play(act, fixture.url, 5000, &store, outcome);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
}

static void look(
	struct text *lines, struct text *without_revisions, enum status *status, struct error *err)
{
	text_release(lines);
	text_release(without_revisions);
	*status = fixture_inspect(&fixture, 5000, lines, without_revisions, err);
}

static bool is_of_a_beat(const struct change *change)
{
	return !strncmp(change->name[0], "s.db.beats/", strlen("s.db.beats/"));
}

static void read_changes(void)
{
	change_count = 0;
	for (size_t at = 0; at < plan->recorded;) {
		const struct change *change = (const void *)(plan->changes + at);
		if (change_count == CHANGES)
			give_up("too many changes");
		bytes_of[change_count] = plan->changes + at + sizeof(*change);
		changes[change_count] = change;
		change_count += !is_of_a_beat(change);
		at += (sizeof(*change) + change->length + 15) & ~(size_t)15;
	}
}

static void run(const struct act *act, unsigned tries)
{
	struct text old = {0}, new = {0}, again = {0}, got = {0}, ignored = {0};
	struct error err = {0};
	enum status status, old_status;
	unsigned long losses_before = losses, wrong_before = wrong;
	int64_t began = clock_now();
	static unsigned number;

	fixture_restore(&fixture, act->state);
	read_disk(&before);
	look(&old, &ignored, &old_status, &err);
	write_disk(&before); /* looking rolls back */
	read_disk(&before);
	plan->record = true;
	plan->recorded = 0;
	play(act);
	plan->record = false;
	read_changes();
	bool right = outcome->status == STATUS_OK;
	look(&new, &ignored, &status, &err);
	play(act);
	look(&ignored, &again, &status, &err);
	for (size_t moment = 0; right && moment <= change_count; moment++)
		for (unsigned how = 0; how < tries; how++) {
			lose(moment, how);
			losses++;
			look(&got, &ignored, &status, &err);
			bool is_old = status == old_status &&
				      !strcmp(text_string(&got), text_string(&old));
			bool is_new = status == STATUS_OK &&
				      !strcmp(text_string(&got), text_string(&new));
			/* A store may be made, and nothing be put yet. */
			bool is_empty = act->state == STATE_NOTHING &&
					(status == STATUS_NO ||
						(status == STATUS_OK &&
							strstr(text_string(&got), "revision 0\n")));
			bool done = moment == change_count;
			if (!is_new && (done || (!is_old && !is_empty))) {
				printf("# %s, before change %zu of %zu, try %u: %s: %d %s\n%s",
					act->name, moment, change_count, how,
					done ? "acknowledged, and lost" : "by halves", (int)status,
					status ? err.text : "", text_string(&got));
				wrong++;
			}
			play(act);
			look(&ignored, &got, &status, &err);
			if (status != STATUS_OK ||
				strcmp(text_string(&got), text_string(&again)) != 0 ||
				fixture_stranger(&fixture)) {
				printf("# %s, before change %zu of %zu, try %u: then again: %d %s %s\n",
					act->name, moment, change_count, how, outcome->status,
					outcome->err.text,
					fixture_stranger(&fixture) ? fixture_stranger(&fixture)
								   : "");
				wrong++;
			}
		}
	printf("%sok %u - %s: power lost %lu times in %zu changes (%.1f s)\n",
		right && change_count && wrong == wrong_before ? "" : "not ", ++number, act->name,
		losses - losses_before, change_count, (double)(clock_now() - began) / 1000);
	fflush(stdout);
	wrong += !right || !change_count;
	text_release(&old);
	text_release(&new);
	text_release(&again);
	text_release(&got);
	text_release(&ignored);
}

int main(int argc, char **argv)
{
	const char *parameters = "";
	unsigned tries = 12, count = 0;
	bool wanted[64] = {0}, some = false;
	chance = (uint64_t)clock_utc();
	for (int i = 1; i < argc; i++) {
		bool known = i + 1 < argc;
		if (known && !strcmp(argv[i], "--tries"))
			tries = (unsigned)strtoul(argv[++i], NULL, 10);
		else if (known && !strcmp(argv[i], "--seed"))
			chance = strtoull(argv[++i], NULL, 10);
		else if (known && !strcmp(argv[i], "--url"))
			parameters = argv[++i];
		else {
			known = false;
			for (size_t k = 0; k < act_count; k++)
				if (!strcmp(argv[i], acts[k].name))
					known = wanted[k] = some = true;
		}
		if (!known) {
			fprintf(stderr, "powerloss: what is \"%s\"?\n", argv[i]);
			return 2;
		}
	}
	chance += !chance;
	printf("# --seed %llu\n", (unsigned long long)chance);
	plan = mmap(NULL, sizeof(*plan), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	outcome = mmap(
		NULL, sizeof(*outcome), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	token_patience = 16; /* ms: a token is of a machine that has no power any more */
	fixture_make(&fixture, parameters);
	snprintf(plan->directory, sizeof(plan->directory), "%s", fixture.directory);
	struct stat st;
	if (stat(fixture.directory, &st) < 0)
		give_up("no directory");
	directory = st.st_ino;
	for (size_t i = 0; i < act_count; i++) {
		/* Beats are not durable, and who only reads loses nothing. */
		bool durable = acts[i].effect == EFFECT_WHOLE || acts[i].state == STATE_NOTHING;
		if (!durable || (some && !wanted[i]))
			continue;
		run(&acts[i], tries);
		count++;
	}
	printf("1..%u\n# power was lost %lu times, %lu wrong\n", count, losses, wrong);
	fixture_remove(&fixture);
	return wrong != 0;
}
