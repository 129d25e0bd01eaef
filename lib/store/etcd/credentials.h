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

#endif
