/* SPDX-License-Identifier: MIT */
/*
 * What a backend is: one const struct of functions. Only store.c calls them, after it has checked
 * arguments and limits. A backend's struct begins with struct store.
 * The contract of each function is the one of its namesake in store.h; limits are checked before,
 * and answers arrive zeroed. A function that fails leaves nothing in an answer but `known`.
 */
#ifndef STORE_BACKEND_H
#define STORE_BACKEND_H

#include "store/store.h"
#include "store/url.h"

struct store_backend {
	const char *scheme; /* "sqlite" */
	size_t operations;  /* that one transaction may have */
	/* Refuses parameters of the url that it does not know. Fills all of struct store but
	 * backend, flags, patience and count_file. */
	enum status (*open)(struct store **store, const struct store_url *url, unsigned flags,
		int64_t deadline, struct error *err);
	void (*close)(struct store *store);
	enum status (*txn)(struct store *store, const struct store_request *request,
		int64_t deadline, struct store_answer *answer, struct error *err);
	enum status (*list)(struct store *store, const struct store_range *range, int64_t deadline,
		struct store_answer *answer, struct error *err);
	enum status (*wait)(struct store *store, const char *prefix, store_revision *since,
		int64_t deadline, int wake, struct error *err);
	uint32_t (*news)(struct store *store, const char *group);
	/* heard is not 0. */
	enum status (*await_news)(struct store *store, struct store_awaited *awaited,
		int64_t deadline, int wake, struct error *err);
	enum status (*beats_prepare)(
		struct store *store, const char *group, uint64_t tasks, struct error *err);
	enum status (*beat)(struct store *store, const char *group, uint64_t task,
		const struct store_beat *beat, struct error *err);
	enum status (*beat_read)(struct store *store, const char *group, uint64_t task,
		struct store_beat *beat, struct error *err);
	/* NULL: one after the other, by beat, which may be NULL where this is not. */
	enum status (*beats)(struct store *store, const char *group, uint64_t first,
		const struct store_beat *beats, size_t count, struct error *err);
	/* A beat that is not read has a token of 0. NULL: one after the other. */
	enum status (*beats_read)(struct store *store, const char *group, uint64_t first,
		struct store_beat *beats, size_t count, struct error *err);
	enum status (*beats_remove)(struct store *store, const char *group, struct error *err);
	enum status (*check_private)(struct store *store, struct error *err);
	enum status (*purge)(struct store *store, const char *prefix,
		const struct store_compare *compares, size_t compare_count, int64_t deadline,
		struct error *err);
};

/* What one handle has cost, for the parameter count. */
struct store_count {
	uint64_t reads;	 /* transactions or requests that changed nothing */
	uint64_t writes; /* the others */
	uint64_t bytes;	 /* answered */
};

struct store {
	const struct store_backend *backend;
	char *where;
	char *files; /* a directory; NULL: none */
	unsigned flags;
	bool local;
	int64_t patience; /* milliseconds */
	struct store_count count;
	char *count_file; /* store_close writes it there; NULL: nowhere */
	/* Not 0: it was seen to go back, from this revision to that one; store_was_set_back. */
	store_revision back_from, back_to;
	/* store_unchanged: filled by wait, which may leave the second at 0 */
	store_revision waited_since;
	int64_t unchanged;
	/* What it waited for was news, of this group and so many: then an earlier answer still
	 * counts. */
	uint64_t waited_group; /* a hash; 0: it was not news */
	uint32_t waited_heard;
};

extern const struct store_backend store_sqlite, store_etcd;

/* Whether one of these, or an operation of either branch, is a put or a delete. */
bool store_ops_change(const struct store_op *ops, size_t count);
bool store_request_changes(const struct store_request *request);

/*
 * Make a further backend known to store_open, before the first call of it: for tests. It must stay
 * valid; at most 6.
 */
void store_register(const struct store_backend *backend);

#endif
