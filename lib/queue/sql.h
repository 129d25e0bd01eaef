/* SPDX-License-Identifier: MIT */
/*
 * A transaction on the tables of the queues, and the few statements that several of them need. For
 * the files of lib/queue only.
 *
 *	static enum status count(struct sql *s, void *context, struct error *err)
 *	{
 *		uint64_t *waiting = context;
 *		*waiting = sql_number(s, "SELECT count(*) FROM command WHERE queue=?1 AND state=?2",
 *			SQL("waiting"));
 *		return STATUS_OK;
 *	}
 *	status = sql_call(queue, false, count, &waiting, err);
 *
 * ?1 of each statement is the number of the queue; ?2, ... are the values. After the first error
 * s->code is set, every statement is skipped and every number is 0; what the operation then answers
 * does not matter. An operation may be run again: it sets all of its answer anew.
 */
#ifndef QUEUE_SQL_H
#define QUEUE_SQL_H

#include <sqlite3.h>

#include "queue/queue.h"

#define SQL_KEPT 48

struct sql {
	sqlite3 *database;
	int64_t queue; /* its number */
	int code;      /* SQLITE_OK, or the first error */
	bool woken[QUEUE_ANY];
	/* Of the queue's row, to be changed here: the next id, how many commands came to be over,
	 * and the pending failure (0: none). */
	struct sql_numbers {
		uint64_t next, over, failure;
	} now;
	struct {
		const char *text;
		sqlite3_stmt *statement;
	} kept[SQL_KEPT];
	size_t kept_count;
};

typedef enum status sql_operation(struct sql *s, void *context, struct error *err);
/*
 * Run an operation in a transaction. write: it may write, and the queue is made if it is missing.
 * STATUS_NO without write: there is no such queue; the operation did not run.
 */
enum status sql_call(struct queue *queue, bool write, sql_operation *operation, void *context,
	struct error *err);

/* ---- Statements ---- */

struct sql_value {
	enum { SQL_END, SQL_NUMBER, SQL_TEXT } kind;
	int64_t number;
	const char *text; /* NULL: as SQL's */
};
static inline struct sql_value sql_value_number(int64_t number)
{
	return (struct sql_value){SQL_NUMBER, number, NULL};
}
static inline struct sql_value sql_value_unsigned(uint64_t number)
{
	return (struct sql_value){SQL_NUMBER, (int64_t)number, NULL};
}
static inline struct sql_value sql_value_text(const char *text)
{
	return (struct sql_value){SQL_TEXT, 0, text};
}
/* clang-format off */
#define SQL(value)                                                                                 \
	_Generic((value), const char *: sql_value_text, char *: sql_value_text,                    \
		uint64_t: sql_value_unsigned, default: sql_value_number)(value)
/* clang-format on */
#define SQL_VALUES(...) ((const struct sql_value[]){__VA_ARGS__ __VA_OPT__(, ){.kind = SQL_END}})

/* Each statement is prepared once in a transaction: text is a literal, or lives as long. */
#define sql_rows(s, text, ...)	 sql_begin(s, text, SQL_VALUES(__VA_ARGS__))
#define sql_do(s, text, ...)	 sql_run(s, text, SQL_VALUES(__VA_ARGS__))
#define sql_number(s, text, ...) sql_first(s, text, SQL_VALUES(__VA_ARGS__))
/* Begin a query. NULL after an error, which sql_next takes. */
sqlite3_stmt *sql_begin(struct sql *s, const char *text, const struct sql_value *values);
/* Whether there is another row; after the last one the statement is reset. To stop earlier, call
 * sqlite3_reset. */
bool sql_next(struct sql *s, sqlite3_stmt *rows);
/* Run a statement without rows. Returns how many it has changed. */
int64_t sql_run(struct sql *s, const char *text, const struct sql_value *values);
/* The first column of the first row; 0: no row, or NULL. */
int64_t sql_first(struct sql *s, const char *text, const struct sql_value *values);
/* Add an id, or those that a query returns. */
void sql_ids_add(struct parse_numbers *ids, uint64_t id);
void sql_ids_read(struct sql *s, sqlite3_stmt *rows, struct parse_numbers *ids);

/* Columns of the present row. Text that is NULL is "". */
const char *sql_text(sqlite3_stmt *rows, int column);
uint64_t sql_unsigned(sqlite3_stmt *rows, int column); /* 0 if it is negative */
void sql_copy(char *to, size_t size, sqlite3_stmt *rows, int column);

/* ---- What several transactions do (moves.c) ---- */

/* The state in a column; QUEUE_DAMAGED: no known one. */
enum queue_state sql_state(sqlite3_stmt *rows, int column);
/* Read the row of a command. False: there is none; *view is empty. */
bool sql_view(struct sql *s, uint64_t id, struct queue_view *view);

/* The ids of the selected commands, in order. absent: how many are not there; first_absent. */
struct sql_selected {
	const struct queue_selection *set;
	struct parse_numbers ids;
	uint64_t absent, first_absent;
};
enum status sql_select(struct queue *queue, struct sql_selected *selected, struct error *err);

/*
 * A command ends in this state, one of the last three, because of another one (0: not): what comes
 * after it is released or cancelled, and a failure is noted. result: JSON; NULL: none.
 */
void sql_over(
	struct sql *s, uint64_t id, enum queue_state state, uint64_t because, const char *result);

/* Whether a command is open. */
bool sql_has_open(struct sql *s);
/* The start of a command has ended. host: where; silence: ms in which nobody heard of it. */
struct sql_end {
	uint64_t id;
	const char *token; /* NULL: whatever it is */
	const struct queue_result *result;
	const char *worker, *host;
	int64_t silence;
};
/* Returns false if the start is not (any more) the one that counts. *state: where it is now. */
bool sql_end_start(struct sql *s, const struct sql_end *end, enum queue_state *state);
/* Commands that run, and whose worker is not registered, are lost; blocked ones for which nothing
 * can happen are released or cancelled. Only what was written wrongly needs this. */
uint64_t sql_mend(struct sql *s);

#endif
