// SPDX-License-Identifier: MIT
/*
 * The tasks as a ring: task i sends to task i+1 and receives from task i-1, over TCP.
 *
 * To find each other, each task listens on a port and writes its address and a secret to a file.
 * Its predecessor reads the file, connects, and sends its task number and the secret, so that
 * neither a stranger nor a task of another start of the job can get into the ring.
 */
#include "training.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

static uint32_t next, previous;
static int to_next = -1, from_previous = -1;
static const char *directory;
static double deadline; // for all tasks to connect; then 0: no limit

// Returns "; no sign of task 2, 3": the tasks that have not written their file.
static const char *missing(void)
{
	static char list[200];
	size_t used = 0;
	for (uint32_t i = 0; i < tasks && used < sizeof list - 40; i++) {
		char path[PATH_SIZE];
		if (access(path_of(path, "%s/%" PRIu32, directory, i), F_OK))
			used += (size_t)snprintf(list + used, sizeof list - used, "%s%" PRIu32,
				used ? ", " : "; no sign of task ", i);
	}
	return list;
}

static _Noreturn void late(const char *what, uint32_t peer)
{
	fail("%s task %" PRIu32 " in time%s", what, peer, missing());
}

static _Noreturn void lost(uint32_t peer)
{
	if (deadline > 0)
		fail("task %" PRIu32 " left before all were there%s", peer, missing());
	fail("task %" PRIu32 " closed the connection at step %" PRIu64, peer, state.step);
}

// Milliseconds for poll.
static int time_left(void)
{
	double left = deadline - now();
	return deadline > 0 ? (left > 0 ? (int)(left * 1000) + 1 : 0) : -1;
}

// ---------------------------------------------------------------------------- what a ring is for

// Sends to the next task and receives from the previous one at the same time: if each sent first,
// large messages would block them all.
static void exchange(const void *out, size_t out_size, void *in, size_t in_size)
{
	while (out_size || in_size) {
		struct pollfd peer[] = {
			{.fd = out_size ? to_next : -1, .events = POLLOUT | POLLRDHUP},
			{.fd = in_size ? from_previous : -1, .events = POLLIN},
		};
		int ready = poll(peer, 2, time_left());
		if (ready < 0 && errno != EINTR)
			fail("poll: %s", strerror(errno));
		if (ready == 0)
			late("nothing came from", previous);
		if (ready > 0 && peer[0].revents) {
			ssize_t n = send(to_next, out, out_size, MSG_DONTWAIT | MSG_NOSIGNAL);
			if (peer[0].revents & POLLRDHUP || (n < 0 && errno != EAGAIN))
				lost(next);
			out = (const char *)out + (n > 0 ? n : 0);
			out_size -= n > 0 ? (size_t)n : 0;
		}
		if (ready > 0 && peer[1].revents) {
			ssize_t n = recv(from_previous, in, in_size, MSG_DONTWAIT);
			if (n == 0 || (n < 0 && errno != EAGAIN))
				lost(previous);
			in = (char *)in + (n > 0 ? n : 0);
			in_size -= n > 0 ? (size_t)n : 0;
		}
	}
}

/*
 * The vector is cut into a chunk per task. First each chunk travels around the ring and collects
 * every task's part (reduce-scatter); then the finished chunks travel around again (all-gather).
 * Chunk c is always summed up in the order of tasks c, c+1, ...
 */
void all_reduce(float *vector, size_t count)
{
	struct chunk {
		float *start;
		size_t count;
	} *chunk = allocate(tasks, sizeof *chunk);
	for (uint32_t i = 0; i < tasks; i++) {
		chunk[i].start = vector + count * i / tasks;
		chunk[i].count = count * (i + 1) / tasks - count * i / tasks;
	}
	float *arrived = allocate(count / tasks + 1, sizeof *arrived);
	for (uint32_t k = 0; k + 1 < tasks; k++) {
		struct chunk out = chunk[(task + tasks - k) % tasks];
		struct chunk in = chunk[(task + tasks - k - 1) % tasks];
		exchange(out.start, out.count * sizeof(float), arrived, in.count * sizeof(float));
		for (size_t i = 0; i < in.count; i++)
			in.start[i] += arrived[i];
	}
	for (uint32_t k = 0; k + 1 < tasks; k++) {
		struct chunk out = chunk[(task + 1 + tasks - k) % tasks];
		struct chunk in = chunk[(task + tasks - k) % tasks];
		exchange(out.start, out.count * sizeof(float), in.start, in.count * sizeof(float));
	}
	free(arrived);
	free(chunk);
}

// Each task hands the bytes on to the next, beginning with task 0.
void broadcast(void *bytes, size_t size)
{
	if (task > 0)
		exchange(NULL, 0, bytes, size);
	if (task + 1 < tasks)
		exchange(bytes, size, NULL, 0);
}

// ------------------------------------------------------------------------------ how one is made

struct hello {
	char magic[8];
	uint32_t from, to;
	uint64_t settings;
	unsigned char secret[16]; // of the task that listens
};

static struct addrinfo *look_up(const char *host, const char *port)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
	struct addrinfo *found;
	int error = getaddrinfo(host, port, &hints, &found);
	if (error)
		fail("cannot find the address %s: %s", host, gai_strerror(error));
	return found;
}

static void prepare(int fd)
{
	const struct timeval limit = {.tv_sec = 5}; // for connect and the handshake
	const int on = 1;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

static int open_door(const char *address, uint16_t *port)
{
	struct sockaddr_in6 bound; // large enough for IPv4, which has the port at the same place
	socklen_t size = sizeof bound;
	struct addrinfo *where = look_up(address, "0");
	int door = socket(where->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (door < 0 || bind(door, where->ai_addr, where->ai_addrlen) || listen(door, 16) ||
		getsockname(door, (struct sockaddr *)&bound, &size))
		fail("cannot listen on %s: %s", address, strerror(errno));
	freeaddrinfo(where);
	*port = ntohs(bound.sin6_port);
	return door;
}

// The file appears whole: "HOST PORT SECRET".
static void write_file(const char *address, uint16_t port, const unsigned char secret[16])
{
	char path[PATH_SIZE], temporary[PATH_SIZE];
	path_of(path, "%s/%" PRIu32, directory, task);
	path_of(temporary, "%s/.%" PRIu32, directory, task);
	unlink(temporary);
	int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
	if (!file)
		fail("cannot write %s: %s", temporary, strerror(errno));
	fprintf(file, "%s %u ", address, port);
	for (int i = 0; i < 16; i++)
		fprintf(file, "%02x", secret[i]);
	if (fputc('\n', file) == EOF || fclose(file) || rename(temporary, path))
		fail("cannot write %s: %s", path, strerror(errno));
}

// Calls the next task as its file says. -1: it has written none yet, or is not there any more.
static int call_next(unsigned char secret[16])
{
	char path[PATH_SIZE], host[256], port[8], hex[33];
	FILE *file = fopen(path_of(path, "%s/%" PRIu32, directory, next), "re");
	if (!file)
		return -1;
	int fields = fscanf(file, "%255s %7[0-9] %32[0-9a-f]", host, port, hex);
	fclose(file);
	if (fields != 3 || strlen(hex) != 32)
		return -1;
	for (int i = 0; i < 16; i++)
		sscanf(hex + 2 * i, "%2hhx", &secret[i]);

	struct addrinfo *where = look_up(host, port);
	int fd = socket(where->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		fail("socket: %s", strerror(errno));
	prepare(fd);
	if (connect(fd, where->ai_addr, where->ai_addrlen)) {
		close(fd);
		fd = -1;
	}
	freeaddrinfo(where);
	return fd;
}

// Whether hello is the greeting of task peer to us, with the secret that own has.
static bool is_from(const struct hello *hello, uint32_t peer, const struct hello *own)
{
	if (memcmp(hello->magic, own->magic, sizeof own->magic) || hello->from != peer ||
		hello->to != task || memcmp(hello->secret, own->secret, sizeof own->secret))
		return false;
	if (hello->settings != own->settings)
		fail("task %" PRIu32 " was started with other options or has another text", peer);
	return true;
}

// Lets the previous task in, and no other process.
static void admit_previous(int door, const struct hello *own)
{
	while (from_previous < 0) {
		struct pollfd knock = {.fd = door, .events = POLLIN};
		if (poll(&knock, 1, time_left()) == 0)
			late("was not called by", previous);
		int fd = accept4(door, NULL, NULL, SOCK_CLOEXEC);
		if (fd < 0)
			continue;
		prepare(fd);
		struct hello hello;
		// Answer before the options are compared, so that both tasks see a difference.
		if (recv(fd, &hello, sizeof hello, MSG_WAITALL) == sizeof hello &&
			!memcmp(hello.secret, own->secret, sizeof own->secret) &&
			send(fd, own, sizeof *own, MSG_NOSIGNAL) == sizeof *own &&
			is_from(&hello, previous, own))
			from_previous = fd;
		else
			close(fd);
	}
}

void connect_ring(const char *meeting_point, const char *address, double seconds, uint64_t settings)
{
	next = (task + 1) % tasks;
	previous = (task + tasks - 1) % tasks;
	if (tasks == 1)
		return;
	directory = meeting_point;
	deadline = now() + seconds;

	struct hello own = {.magic = "ring 1\r\n", .from = task, .settings = settings}, answer;
	unsigned char secret[16], secret_of_next[16];
	uint16_t port;
	if (getrandom(secret, sizeof secret, 0) != sizeof secret)
		fail("getrandom: %s", strerror(errno));
	int door = open_door(address, &port);
	write_file(address, port, secret);

	while ((to_next = call_next(secret_of_next)) < 0) {
		if (time_left() == 0)
			late("cannot reach", next);
		sleep_for(0.01);
	}
	own.to = next;
	memcpy(own.secret, secret_of_next, sizeof own.secret);
	if (send(to_next, &own, sizeof own, MSG_NOSIGNAL) != sizeof own)
		lost(next);

	struct hello welcome = own;
	welcome.to = previous;
	memcpy(welcome.secret, secret, sizeof welcome.secret);
	admit_previous(door, &welcome);
	close(door);

	struct pollfd voice = {.fd = to_next, .events = POLLIN};
	while (poll(&voice, 1, time_left()) <= 0)
		if (time_left() == 0)
			late("no answer from", next);
	ssize_t size = recv(to_next, &answer, sizeof answer, MSG_WAITALL);
	if (size <= 0)
		lost(next);
	if (size != sizeof answer || !is_from(&answer, next, &own))
		fail("another process answers in place of task %" PRIu32, next);

	// This sum is complete only when all tasks are connected; then the files are not needed.
	float present = 1;
	all_reduce(&present, 1);
	deadline = 0;
	char path[PATH_SIZE];
	unlink(path_of(path, "%s/%" PRIu32, directory, task));
	rmdir(directory); // succeeds in the last task
}
