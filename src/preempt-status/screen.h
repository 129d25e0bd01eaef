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
 * Begin to wait for INT, TERM, HUP, QUIT and TSTP, and on a terminal for keys, on its alternate
 * screen. Returns a descriptor that can be read when screen_take has an answer; -1: see err.
 */
int screen_begin(bool terminal, struct error *err);
enum screen_event { SCREEN_NOTHING, SCREEN_REDRAW, SCREEN_END };
enum screen_event screen_take(void);
/* Draw the text, cut to the height of the terminal. */
void screen_draw(const struct text *text);
void screen_end(void);
/* The signal that ended it; 0: the user pressed a key. */
int screen_signal(void);

#endif
