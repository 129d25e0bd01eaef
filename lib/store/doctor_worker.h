/* SPDX-License-Identifier: MIT */
/*
 * A worker: the process that works on the directory for one side, by requests of the one that
 * leads. The same for a child of the leader, through the same mount or another one, and for one on
 * another machine: only how requests come differs (doctor_peer.h).
 *
 * A request is a JSON object with the member "do"; its answer has "status" (0: done), and "why"
 * where that is not 0. The requests:
 *   look    {shared_group}			what doctor_place_look sees
 *   begin   {scratch, index, count}		which directory to work in, as which of how many
 *   write   {name, text}  read {name}		a small file; read answers "text"
 *   hold    {kind: ofd|posix, name}		lock, and keep; answers "got"
 *   drop    {}
 *   try     {kind, name}			lock and unlock; answers "got"
 *   race    {kind: link|create|rename|take, rounds, ms}	answers "wins", see
 * doctor_count_wins
 *   stale   {ms}				answers "held", "reopened", "dropped" (doctor_stale)
 *   open    {name, parameters}  close {}	the store that the next four use
 *   alone   {ms}				answers "done", "ms"
 *   contend {tag, ms}				answers "rows", "fast", "wins", "longest", "error"
 *   count   {tag, rows: []}			answers "present", "claims"
 *   notice  {ping, rounds, ms}			answers "done", "mean", "longest": there and back
 *   probe   {url}				whether the store that is there answers
 *   check   {name}				answers "found": of SQLite's integrity_check
 *   opener  {name}				answers "pid", "program" of who has it open here
 * Races, stale, contend and notice begin when all have come (a file each), or after a second.
 */
#ifndef STORE_DOCTOR_WORKER_H
#define STORE_DOCTOR_WORKER_H

#include <json-c/json_object.h>

#include "store/doctor_findings.h"
#include "store/store.h"

struct doctor_worker {
	const char *directory; /* through its own mount */
	char *scratch;	       /* path; NULL before begin */
	uint64_t index, count;
	int held; /* a locked descriptor; -1: none */
	struct store *store;
	unsigned gathered; /* so that each gathering has names of its own */
};

void doctor_worker_init(struct doctor_worker *worker, const char *directory);
void doctor_worker_release(struct doctor_worker *worker);

/* Do what is asked; the answer is the caller's. NULL only without memory. */
struct json_object *doctor_worker_do(
	struct doctor_worker *worker, const struct json_object *request);

/* ---- Between its files ---- */

/* The member "name" of a request: a name in the directory, not a path that leads out of it. */
bool doctor_name(const struct json_object *request, const char **name);
/* The member "ms": up to an hour. */
bool doctor_milliseconds(const struct json_object *request, uint64_t *limit);

/* Each fills answer. */
enum status doctor_race(struct doctor_worker *worker, const struct json_object *request,
	struct json_object *answer, struct error *err);
enum status doctor_stale(struct doctor_worker *worker, const struct json_object *request,
	struct json_object *answer, struct error *err);
enum status doctor_open(struct doctor_worker *worker, const struct json_object *request,
	struct json_object *answer, struct error *err);
enum status doctor_close(struct doctor_worker *worker, const struct json_object *request,
	struct json_object *answer, struct error *err);
enum status doctor_alone(struct doctor_worker *worker, const struct json_object *request,
	struct json_object *answer, struct error *err);
enum status doctor_contend(struct doctor_worker *worker, const struct json_object *request,
	struct json_object *answer, struct error *err);
enum status doctor_count(struct doctor_worker *worker, const struct json_object *request,
	struct json_object *answer, struct error *err);
enum status doctor_notice(struct doctor_worker *worker, const struct json_object *request,
	struct json_object *answer, struct error *err);
enum status doctor_probe(struct doctor_worker *worker, const struct json_object *request,
	struct json_object *answer, struct error *err);
enum status doctor_check_database(struct doctor_worker *worker, const struct json_object *request,
	struct json_object *answer, struct error *err);

/* "SCRATCH/NAME" by format; cut where it does not fit. */
void doctor_path(const struct doctor_worker *worker, char *path, size_t size, const char *format,
	...) __attribute__((format(printf, 4, 5)));
/* Wait until all workers have come here, a second at most. */
void doctor_gather(struct doctor_worker *worker);
/* "cannot ACTION PATH: REASON"; the status of the errno. */
enum status doctor_failed(struct error *err, const char *action, const char *path, int number);

#endif
