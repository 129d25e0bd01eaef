/* SPDX-License-Identifier: MIT */
/*
 * bare_files WHAT DIR: what ckpt-rotate is measured against, on the files directly in DIR; prints
 * seconds. sync: one fsync of each file and of DIR, by THREADS threads, and nothing else. read:
 * read them, large reads, and nothing else. hash: take the XXH3-128 of as many bytes from memory.
 */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#define THREADS 8
#define SIZE	((size_t)1 << 20)

static char **names;
static size_t count;
static atomic_size_t next;
static int directory;
static char what;

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void *work(void *unused)
{
	char *buffer = calloc(1, SIZE);
	struct stat st;
	size_t i;
	while (buffer && (i = atomic_fetch_add(&next, 1)) < count) {
		int file = openat(directory, names[i], O_RDONLY | O_CLOEXEC);
		if (file < 0 || fstat(file, &st) < 0)
			exit(75);
		if (what == 's' && fsync(file) < 0)
			exit(75);
		while (what == 'r' && read(file, buffer, SIZE) > 0)
			;
		for (off_t at = 0; what == 'h' && at < st.st_size; at += (off_t)SIZE)
			buffer[0] = (char)XXH3_128bits(buffer, SIZE).low64;
		close(file);
	}
	free(buffer);
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];
	size_t capacity = 1 << 20;
	DIR *stream = argc == 3 ? opendir(argv[2]) : NULL;
	names = calloc(capacity, sizeof(*names));
	if (!stream || !names)
		return 2;
	what = argv[1][0];
	directory = dirfd(stream);
	for (struct dirent *entry; (entry = readdir(stream)) && count < capacity;)
		if (entry->d_type == DT_REG && entry->d_name[0] != '.')
			names[count++] = strdup(entry->d_name);
	double began = now();
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, work, NULL) != 0)
			return 75;
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	if (what == 's' && fsync(directory) < 0)
		return 75;
	printf("%.4f\n", now() - began);
	return 0;
}
