/* SPDX-License-Identifier: MIT */
#include "store/lock/machine.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/clock.h"
#include "store/lock/lockfile.h"

#define TURN   1000				   /* ms without a pause for other machines */
#define PAUSE  (MACHINE_RETRY + MACHINE_RETRY / 4) /* ms */
#define KEEP   (24 * 60 * 60)			   /* seconds since a file was used */
#define ENDING "-lock1"				   /* with the version of struct machine_known */

void machine_init(struct machine *machine)
{
	*machine = (struct machine){.descriptor = -1};
}

/* Find or make the directory. False: it could not be made, or is not ours and closed to others. */
static bool find_directory(char *path, size_t size)
{
	struct stat st;
	snprintf(path, size, "/dev/shm/preempt-%u", (unsigned)geteuid());
	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return false;
	return lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
	       (st.st_mode & 077) == 0;
}

/* Remove the files of stores that were not used for long. Who makes a file does this. */
static void sweep(const char *directory)
{
	struct stat st;
	DIR *entries = opendir(directory);
	for (struct dirent *entry; entries && (entry = readdir(entries));) {
		const char *ending = strrchr(entry->d_name, '-');
		if (ending && !strcmp(ending, ENDING) &&
			fstatat(dirfd(entries), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
			clock_utc() / 1000 - st.st_mtime > KEEP)
			(void)unlinkat(dirfd(entries), entry->d_name, 0);
	}
	if (entries)
		closedir(entries);
}

static uint64_t draw(void)
{
	uint64_t random = 0;
	while (!random)
		if (getrandom(&random, sizeof(random), 0) != sizeof(random))
			random = (uint64_t)clock_boot() << 32 ^ (uint64_t)getpid();
	return random;
}

static void name_machine(struct machine *machine, uint64_t random)
{
	char boot[64] = "";
	int descriptor = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t n = descriptor < 0 ? 0 : read(descriptor, boot, sizeof(boot) - 1);
	if (descriptor >= 0)
		close(descriptor);
	snprintf(machine->name, sizeof(machine->name), "%016llx",
		(unsigned long long)XXH64(boot, n < 0 ? 0 : (size_t)n, random));
}

void machine_name_anew(struct machine *machine)
{
	name_machine(machine, draw());
}

void machine_open(struct machine *machine, dev_t device, ino_t inode)
{
	char directory[64], path[128];
	struct stat st;
	machine_init(machine);
	machine_name_anew(machine);
	if (!find_directory(directory, sizeof(directory)))
		return;
	snprintf(path, sizeof(path), "%s/%llx-%llx" ENDING, directory, (unsigned long long)device,
		(unsigned long long)inode);
	int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW;
	machine->descriptor = open(path, flags);
	if (machine->descriptor < 0 && errno == ENOENT) {
		sweep(directory);
		machine->descriptor = open(path, flags | O_CREAT, 0600);
	}
	if (machine->descriptor >= 0 && (fstat(machine->descriptor, &st) < 0 ||
						!S_ISREG(st.st_mode) || st.st_uid != geteuid()))
		machine_close(machine);
}

void machine_close(struct machine *machine)
{
	if (machine->descriptor >= 0)
		close(machine->descriptor);
	machine->descriptor = -1;
}

static bool write_known(struct machine *machine)
{
	const struct machine_known *known = &machine->known;
	return machine->descriptor < 0 ||
	       pwrite(machine->descriptor, known, sizeof(*known), 0) == (ssize_t)sizeof(*known);
}

static bool read_known(struct machine *machine)
{
	struct machine_known *known = &machine->known;
	return pread(machine->descriptor, known, sizeof(*known), 0) == (ssize_t)sizeof(*known);
}

int machine_take(struct machine *machine, int64_t deadline)
{
	struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	if (machine->descriptor < 0)
		return 0;
	int number = lockfile_wait(machine->descriptor, &all, deadline);
	bool read = read_known(machine);
	if (number == EAGAIN)
		return EAGAIN;
	if (!read)
		machine->known = (struct machine_known){0};
	if (!machine->known.random)
		machine->known.random = draw();
	machine->known.holder = getpid();
	machine->known.since = clock_now();
	machine->known.has = false;
	name_machine(machine, machine->known.random);
	/* A full /dev/shm: be a machine of our own. */
	if (number || !write_known(machine)) {
		machine_close(machine);
		machine_name_anew(machine);
	}
	return 0;
}

void machine_give(struct machine *machine)
{
	struct flock all = {.l_type = F_UNLCK, .l_whence = SEEK_SET};
	if (machine->descriptor < 0 || lockfile_ask(machine->descriptor, F_OFD_SETLK, &all) == 0)
		return;
	/* Closing the file releases the lock, too; otherwise the others would wait for us. */
	machine_close(machine);
	machine_name_anew(machine);
}

int64_t machine_pause(const struct machine *machine)
{
	const struct machine_known *known = &machine->known;
	int64_t now = clock_now(), freed = now - known->gave;
	return freed < 0 || freed >= PAUSE || now - known->began < TURN ? 0 : PAUSE - freed;
}

void machine_taken(struct machine *machine, bool waited)
{
	struct machine_known *known = &machine->known;
	int64_t now = clock_now(), freed = now - known->gave;
	if (waited || freed < 0 || freed >= PAUSE)
		known->began = now;
	known->has = true;
	(void)write_known(machine);
}

void machine_giving(struct machine *machine)
{
	machine->known.gave = clock_now();
	machine->known.holder = 0;
	(void)write_known(machine);
}

bool machine_look_is_due(const struct machine *machine, uint64_t what, int64_t limit)
{
	const struct machine_known *known = &machine->known;
	int64_t gap = clock_now() - known->looked;
	return known->what != what || gap < 0 || gap >= limit / MACHINE_LOOKS;
}

bool machine_looked(struct machine *machine, uint64_t what)
{
	struct machine_known *known = &machine->known;
	known->looks = known->what == what ? known->looks + 1 : 0;
	known->what = what;
	known->looked = clock_now();
	(void)write_known(machine);
	return known->looks >= MACHINE_LOOKS;
}
