/* SPDX-License-Identifier: MIT */
/*
 * The URL of an etcd store: etcd://HOST:PORT[,HOST:PORT].../PREFIX[?NAME[=VALUE]&...]
 *   ca=FILE            certificates (PEM) of the authorities that sign the servers' certificates
 *   cert=FILE key=FILE our certificate and its key
 *   tls                use TLS, with the authorities of this machine; ca= and cert= imply it
 *   credentials=FILE   a file that only its owner can read, with a line USER:PASSWORD; without it
 *                      the variable PREEMPT_ETCD_CREDENTIALS has that line. The URL never has it
 *   must-exist         never make a store; a missing one is STATUS_TEMPORARY
 */
#ifndef STORE_ETCD_OPTIONS_H
#define STORE_ETCD_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/http.h"
#include "store/url.h"

#define ETCD_ENDPOINTS	9
#define ETCD_PREFIX_MAX 256 /* bytes */

/* Owns its strings. */
struct etcd_options {
	char *text; /* the path of the URL, cut into strings; endpoints and prefix point into it */
	const char *endpoints[ETCD_ENDPOINTS]; /* "HOST:PORT" */
	size_t count;
	const char *prefix; /* without '/' at either end; never empty */
	bool tls, must_exist;
	struct http_tls files;
	const char *credentials; /* a file, or NULL */
};

/* STATUS_USAGE: not such a URL. */
enum status etcd_options_read(
	const struct store_url *url, struct etcd_options *options, struct error *err);
void etcd_options_release(struct etcd_options *options);

#endif
