/* SPDX-License-Identifier: MIT */
/*
 * A command that answers a question, without blocking its caller: a process in a group of its own,
 * the start of its output through pipes, its end through a pidfd, all behind one epoll descriptor.
 * The group is killed when the command has taken too long, or has ended: then before it is reaped,
 * so that its number cannot be another process's.
 */
#ifndef NOTICE_PROBE_H
#define NOTICE_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

/* The start of what the command writes; the rest is read and dropped. */
struct probe_capture {
	int descriptor; /* -1: none */
	char text[256];
	size_t length;
};

struct probe {
	int epoll; /* the same for the life of the probe: a caller may keep polling it */
	int pidfd;
	pid_t pid;	 /* 0: nothing is under way */
	int64_t timeout; /* ms */
	int64_t overdue; /* when it has taken too long */
	struct probe_capture output, errors;
	bool killed; /* it took too long, and PROBE_FAILED was returned */
};

enum probe_state {
	PROBE_IDLE,
	PROBE_RUNNING,
	PROBE_ENDED,  /* exit code, output and errors (each its first line) are there */
	PROBE_FAILED, /* it took too long, or its exit cannot be read; the error is filled */
};

/* A probe that was initialised must be released, also when that failed. */
enum status probe_init(struct probe *probe, struct error *err);
void probe_release(struct probe *probe);

/* No command may be running. timeout: ms. */
enum status probe_start(
	struct probe *probe, char *const *argv, int64_t timeout, int64_t now, struct error *err);
/* Returns PROBE_ENDED and PROBE_FAILED once for each start. */
enum probe_state probe_check(struct probe *probe, int64_t now, int *code, struct error *err);

#endif
