/* SPDX-License-Identifier: MIT */
#include "ckpt/read_ahead.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/xalloc.h"

/* Bytes: enough for a disk to stream, and few enough for a processor's cache. */
#define PIECE  ((size_t)256 << 10)
#define PIECES 8
/* Smaller files are read without a thread. */
#define LARGE ((uint64_t)16 << 20)

struct piece {
	char *bytes;
	size_t capacity;
	size_t length; /* 0: the end */
	int number;    /* errno, if length is 0 */
};

/* A ring: the reader fills the piece at head, the caller empties the one at tail. */
struct read_ahead {
	int descriptor;
	struct piece pieces[PIECES];
	pthread_mutex_t mutex; /* for head and tail */
	pthread_cond_t changed;
	size_t head, tail;
};

static void fill(int descriptor, struct piece *piece)
{
	ssize_t n;
	do
		n = read(descriptor, piece->bytes, piece->capacity);
	while (n < 0 && errno == EINTR);
	piece->length = n > 0 ? (size_t)n : 0;
	piece->number = n < 0 ? errno : 0;
}

static void *read_ahead(void *argument)
{
	struct read_ahead *stream = argument;
	for (bool ended = false; !ended;) {
		pthread_mutex_lock(&stream->mutex);
		while (stream->head - stream->tail == PIECES)
			pthread_cond_wait(&stream->changed, &stream->mutex);
		pthread_mutex_unlock(&stream->mutex);
		struct piece *piece = &stream->pieces[stream->head % PIECES];
		fill(stream->descriptor, piece);
		ended = piece->length == 0;
		pthread_mutex_lock(&stream->mutex);
		stream->head++;
		pthread_cond_signal(&stream->changed);
		pthread_mutex_unlock(&stream->mutex);
	}
	return NULL;
}

/* Wait until the piece at tail is filled. */
static struct piece *next(struct read_ahead *stream)
{
	pthread_mutex_lock(&stream->mutex);
	while (stream->head == stream->tail)
		pthread_cond_wait(&stream->changed, &stream->mutex);
	pthread_mutex_unlock(&stream->mutex);
	return &stream->pieces[stream->tail % PIECES];
}

static void give_back(struct read_ahead *stream)
{
	pthread_mutex_lock(&stream->mutex);
	stream->tail++;
	pthread_cond_signal(&stream->changed);
	pthread_mutex_unlock(&stream->mutex);
}

int read_ahead_file(int descriptor, uint64_t size,
	void (*consume)(void *context, const void *bytes, size_t length), void *context)
{
	struct read_ahead stream = {.descriptor = descriptor};
	pthread_t reader;
	bool threaded = size >= LARGE;
	int number = 0;
	/* A small file takes two reads: its content, then the end of the file. */
	size_t capacity = size < PIECE ? (size_t)size + 1 : PIECE;
	char *bytes = xmalloc(threaded ? PIECE * PIECES : capacity);
	for (size_t i = 0; i < (threaded ? PIECES : 1); i++)
		stream.pieces[i] = (struct piece){.bytes = bytes + i * PIECE, .capacity = capacity};
	pthread_mutex_init(&stream.mutex, NULL);
	pthread_cond_init(&stream.changed, NULL);
	(void)posix_fadvise(descriptor, 0, 0, POSIX_FADV_SEQUENTIAL);
	if (threaded && pthread_create(&reader, NULL, read_ahead, &stream) != 0)
		threaded = false;
	for (;;) {
		struct piece *piece = threaded ? next(&stream) : &stream.pieces[0];
		if (!threaded)
			fill(descriptor, piece);
		number = piece->number;
		if (piece->length == 0)
			break;
		consume(context, piece->bytes, piece->length);
		if (threaded)
			give_back(&stream);
	}
	if (threaded)
		pthread_join(reader, NULL);
	pthread_cond_destroy(&stream.changed);
	pthread_mutex_destroy(&stream.mutex);
	free(bytes);
	return number;
}
