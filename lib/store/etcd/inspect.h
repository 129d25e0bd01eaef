/* SPDX-License-Identifier: MIT */
/* Inspecting an etcd cluster, for preempt-store doctor. */
#ifndef STORE_ETCD_INSPECT_H
#define STORE_ETCD_INSPECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "store/etcd/options.h"

/* An endpoint of the URL. */
struct etcd_endpoint {
	char name[280];	    /* "HOST:PORT" */
	enum status status; /* STATUS_OK: it has answered, and the other members are set */
	char why[768];
	char version[32];
	int64_t cluster, member, leader; /* ids; leader 0: it knows no leader */
	int64_t size;			 /* bytes of its database */
};

#define ETCD_SAMPLES 20

struct etcd_report {
	char where[600]; /* the store, for messages */
	struct etcd_endpoint endpoints[ETCD_ENDPOINTS];
	size_t count;
	size_t members;	    /* number of members of the cluster; 0: not known */
	bool full, corrupt; /* the cluster has such an alarm */
	bool tls;
	bool known; /* we send a user or a certificate */
	bool far;   /* an endpoint is not on this machine's loopback */
	/* Writing a key under the prefix, and reading it: outcome and median times. */
	enum status probe;
	char probe_why[768];
	int64_t write_us, read_us; /* microseconds */
};

/*
 * Inspect the cluster of an etcd URL. STATUS_USAGE: not such a URL. STATUS_OK: there is a report,
 * good or bad. This writes a key that is not one of the store's, and removes it.
 */
enum status etcd_inspect(
	const char *url, int64_t deadline, struct etcd_report *report, struct error *err);

#endif
