/* SPDX-License-Identifier: MIT */
/*
 * A backend is a constant struct of functions, which only store.c calls. Each keeps the contract of
 * its namesake in store.h; store.c has checked arguments and limits before, and passes zeroed
 * answers. A function that fails sets nothing in an answer but `known`. The struct by which a
 * backend represents an open store begins with struct store.
 */
#ifndef STORE_BACKEND_H
#define STORE_BACKEND_H

#include "store/store.h"
#include "store/url.h"

struct store_backend {
	const char *scheme; /* "sqlite" */
	size_t operations;  /* at most in one transaction */
	/* Refuses unknown parameters of the URL. Fills all of struct store except backend, flags,
	 * and patience. */
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
	/* awaited->heard is not 0. */
	enum status (*await_news)(struct store *store, struct store_awaited *awaited,
		int64_t deadline, int wake, struct error *err);
	enum status (*beats_prepare)(
		struct store *store, const char *group, uint64_t tasks, struct error *err);
	enum status (*beat)(struct store *store, const char *group, uint64_t task,
		const struct store_beat *beat, struct error *err);
	enum status (*beat_read)(struct store *store, const char *group, uint64_t task,
		struct store_beat *beat, struct error *err);
	/* NULL: store.c calls beat for each; one of the two may be NULL. */
	enum status (*beats)(struct store *store, const char *group, uint64_t first,
		const struct store_beat *beats, size_t count, struct error *err);
	/* A beat that cannot be read gets the token 0. NULL: store.c calls beat_read for each. */
	enum status (*beats_read)(struct store *store, const char *group, uint64_t first,
		struct store_beat *beats, size_t count, struct error *err);
	enum status (*beats_remove)(struct store *store, const char *group, struct error *err);
	enum status (*check_private)(struct store *store, struct error *err);
	enum status (*purge)(struct store *store, const char *prefix,
		const struct store_compare *compares, size_t compare_count, int64_t deadline,
		struct error *err);
	/* NULL: it has no database. */
	enum status (*run)(struct store *store, struct store_operation *operation, int64_t deadline,
		struct error *err);
};

struct store {
	const struct store_backend *backend;
	char *where;
	char *files; /* store_files; NULL: none */
	unsigned flags;
	bool local;
	int64_t patience;	  /* milliseconds */
	_Atomic int64_t asked_at; /* for store_asked_at */
	/* For store_unchanged, filled by wait and await_news: */
	store_revision waited_since;
	int64_t unchanged; /* an instant; 0: not known */
	/* The last call waited for news of this group beyond this count: if the next call waits for
	 * the same, `unchanged` stays valid. */
	uint64_t waited_group; /* a hash; 0: the last call did not wait for news */
	uint32_t waited_heard;
};

extern const struct store_backend store_sqlite, store_etcd;

/* Whether one of the operations, or of those in either branch of a request, is a put or delete. */
bool store_ops_change(const struct store_op *ops, size_t count);
bool store_request_changes(const struct store_request *request);

/*
 * For tests: add a backend, which stays valid until the process ends; 6 at most. Call this before
 * the first store_open.
 */
void store_register(const struct store_backend *backend);

#endif
