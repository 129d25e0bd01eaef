/* SPDX-License-Identifier: MIT */
/* The terminal on which a table is drawn again and again. For one thread, once per process. */
#ifndef PREEMPT_STATUS_SCREEN_H
#define PREEMPT_STATUS_SCREEN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/text.h"

/* Whether stdout is a terminal that knows escape sequences, and its width and height (80 x 24). */
bool screen_is_there(void);
void screen_size(size_t *width, size_t *height);

/*
 * Begin: INT, TERM, HUP, QUIT and TSTP are waited for from now on, and on a terminal also keys, on
 * a screen of its own. The descriptor can be read when screen_take has something to answer; -1:
 * err.
 */
int screen_begin(bool terminal, struct error *err);
enum screen_event { SCREEN_NOTHING, SCREEN_REDRAW, SCREEN_END };
enum screen_event screen_take(void);
/* Draw: cut to the height of the terminal. */
void screen_draw(const struct text *text);
void screen_end(void);
/* Which signal ended it; 0: the user did. */
int screen_signal(void);

#endif
