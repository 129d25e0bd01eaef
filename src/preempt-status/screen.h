/* SPDX-License-Identifier: MIT */
/* A terminal on which a table is drawn again and again. One per process, for one thread. */
#ifndef PREEMPT_STATUS_SCREEN_H
#define PREEMPT_STATUS_SCREEN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/text.h"

/* True if stdout is a terminal that knows escape sequences. Its size; 80 x 24 if it is unknown. */
bool screen_is_there(void);
void screen_size(size_t *width, size_t *height);

/*
 * Begin to catch INT, TERM, HUP, QUIT, TSTP and WINCH; on a terminal, enter its alternate screen
 * and read keys. Returns a descriptor that is readable when screen_take has an event; -1: see err.
 */
int screen_begin(bool terminal, struct error *err);
enum screen_event { SCREEN_NOTHING, SCREEN_REDRAW, SCREEN_END };
enum screen_event screen_take(void);
/* Draw the text, cut to the height of the terminal. */
void screen_draw(const struct text *text);
void screen_end(void);
/* The signal that ended the screen; 0: the user pressed q, or stdin ended. */
int screen_signal(void);

#endif
