/* SPDX-License-Identifier: MIT */
/*
 * The user and the password of an etcd store. They come from a file or the environment, and are
 * shown to the server once: its token goes with all that follows.
 */
#ifndef STORE_ETCD_CREDENTIALS_H
#define STORE_ETCD_CREDENTIALS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "store/etcd/gateway.h"
#include "store/etcd/options.h"

bool credentials_given(const struct etcd_options *options);
/* STATUS_PERMISSION: they are wrong, or other users may read the file. */
enum status credentials_show(struct gateway *gateway, int64_t deadline, struct error *err);

/*
 * Whether the servers refuse a request without a user and a certificate: one is made.
 * STATUS_NO: they answer it, so that everything that reaches them can write. Another status: that
 * could not be asked.
 */
enum status credentials_matter(
	const struct etcd_options *options, const char *where, int64_t deadline, struct error *err);

#endif
