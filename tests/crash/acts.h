/* SPDX-License-Identifier: MIT */
/*
 * What is done to a store in the sweep: each kind of transaction as a caller makes it, from opening
 * the store on, with its answer as text.
 */
#ifndef FAULTS_ACTS_H
#define FAULTS_ACTS_H

#include "fixture.h"

/* What a caller got; lies in memory shared with the process that judges it. */
struct outcome {
	bool finished;
	enum status status;
	bool known; /* it is certain that nothing was changed; for a single store_txn */
	char answer[512];
	struct error err;
	int64_t milliseconds;
	int descriptors; /* more than before, when the store is closed */
};

enum effect {
	EFFECT_NONE,  /* it only reads */
	EFFECT_WHOLE, /* all or nothing */
	EFFECT_PARTS, /* several transactions or files: any part, and doing it again ends it */
};

struct act {
	const char *name;
	enum state state;
	enum effect effect;
	unsigned flags; /* of store_open */
	bool made;	/* it works on beat files that are there */
	bool waits;	/* has a deadline of its own, which may pass before an error is told */
	/* NULL: opening is all. Answers in outcome. */
	enum status (*run)(struct store *store, struct outcome *outcome);
};

/*
 * As a caller would, each call with this patience (milliseconds). The store stays open, because its
 * owner may live on; NULL where it could not be opened.
 */
void act_play(const struct act *act, const char *url, int64_t patience, struct store **store,
	struct outcome *outcome);

extern const struct act acts[];
extern const size_t act_count;

#endif
