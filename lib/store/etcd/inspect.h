/* SPDX-License-Identifier: MIT */
/* What can be seen of an etcd cluster from here: for preempt-store doctor. */
#ifndef STORE_ETCD_INSPECT_H
#define STORE_ETCD_INSPECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "store/etcd/options.h"

/* One that the URL names. */
struct etcd_endpoint {
	char name[280];	    /* "HOST:PORT" */
	enum status status; /* of asking it; what follows is filled where it is STATUS_OK */
	char why[768];
	char version[32];
	int64_t cluster, member, leader; /* ids; leader 0: it knows of none */
	int64_t log, applied;		 /* entries of the log that it has, and has carried out */
	int64_t size;			 /* bytes of its database */
	bool learner;
	/* It was asked for a revision after a write that was acknowledged. */
	bool behind; /* it gave an older one */
};

#define ETCD_SAMPLES 20

struct etcd_report {
	char where[600]; /* the store, for messages */
	struct etcd_endpoint endpoints[ETCD_ENDPOINTS];
	size_t count;
	size_t members;	    /* of the cluster; 0: not known */
	bool full, corrupt; /* an alarm says it */
	bool tls;
	bool known; /* a user or a certificate of ours is shown */
	bool open;  /* the servers answer also without: anything that reaches them can write */
	bool trusted;
	bool exposed; /* any user may use the key of our certificate */
	bool far;     /* an endpoint is no address of this machine's loopback */
	/* Writing a key under the prefix, with a lease, and reading it: each the median. */
	enum status probe;
	char probe_why[768];
	int64_t write_us, read_us; /* microseconds */
};

/*
 * url is an etcd URL. STATUS_USAGE: it is none. STATUS_OK: there is a report, whatever it says.
 * Writes one key outside of the store's own, under a lease of a minute, and removes it.
 */
enum status etcd_inspect(
	const char *url, int64_t deadline, struct etcd_report *report, struct error *err);

#endif
