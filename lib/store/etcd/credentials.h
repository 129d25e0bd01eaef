/* SPDX-License-Identifier: MIT */
/*
 * The user and the password of an etcd store, from a file or the environment. They are sent only to
 * get a token, which the other requests have.
 */
#ifndef STORE_ETCD_CREDENTIALS_H
#define STORE_ETCD_CREDENTIALS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "store/etcd/gateway.h"
#include "store/etcd/options.h"

bool credentials_given(const struct etcd_options *options);
/* Send them, and keep the token. STATUS_PERMISSION: they are wrong, or others can read the file. */
enum status credentials_show(struct gateway *gateway, int64_t deadline, struct error *err);

/*
 * Send a request without user and certificate. STATUS_OK: the servers refuse it. STATUS_NO: they
 * answer, so any process that can reach them can write. Another status: this could not be found
 * out.
 */
enum status credentials_matter(
	const struct etcd_options *options, const char *where, int64_t deadline, struct error *err);

#endif
