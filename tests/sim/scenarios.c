/* SPDX-License-Identifier: MIT */
#include "sim.h"

const struct scenario scenarios[] = {{0}};
