/* SPDX-License-Identifier: MIT */
/*
 * What the URL of an etcd store says: etcd://HOST:PORT[,HOST:PORT].../PREFIX[?NAME[=VALUE]&...]
 *   ca=FILE            the authorities (PEM) that may have signed the servers' certificates
 *   cert=FILE key=FILE our own certificate and its key
 *   tls                TLS with the authorities of this machine; each of the files says it too
 *   credentials=FILE   one line USER:PASSWORD, readable by its owner only; else they are in
 *                      PREEMPT_ETCD_CREDENTIALS. They are never part of the URL
 *   files=DIR          where the outputs of queues go; without it a queue needs --files
 *   trusted            a queue may run commands though others, too, reach the servers
 *   must-exist         a store that is missing is STATUS_TEMPORARY, and never made
 */
#ifndef STORE_ETCD_OPTIONS_H
#define STORE_ETCD_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/http/http.h"
#include "store/url.h"

#define ETCD_ENDPOINTS	9
#define ETCD_PREFIX_MAX 256 /* bytes */

/* Owns its strings. */
struct etcd_options {
	char *text; /* the path of the URL, cut up; the next two point into it */
	const char *endpoints[ETCD_ENDPOINTS]; /* "HOST:PORT" */
	size_t count;
	const char *prefix; /* without '/' at its ends; never empty */
	bool tls, must_exist, trusted;
	struct http_tls files;
	char *credentials; /* a file, or NULL */
	char *outputs;	   /* a directory, or NULL */
};

/* STATUS_USAGE: no such URL. */
enum status etcd_options_read(
	const struct store_url *url, struct etcd_options *options, struct error *err);
void etcd_options_release(struct etcd_options *options);

#endif
