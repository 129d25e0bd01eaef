/* SPDX-License-Identifier: MIT */
#include "page.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/xalloc.h"
#include "status/timeline_of.h"

#define EARLIER 20 /* attempts before the one that is shown, at most */

static bool ends_with(const char *path, const char *end)
{
	size_t length = strlen(path), tail = strlen(end);
	return length > tail && strcmp(path + length - tail, end) == 0;
}

bool page_is_known(const char *path)
{
	return ends_with(path, ".svg") || ends_with(path, ".html");
}

/* Read the attempts before this one that the store still has. Returns their number. */
static size_t read_earlier(
	struct store *store, const struct run_status *run, struct run_status *earlier)
{
	size_t count = 0;
	struct error ignored;
	for (uint64_t k = run->view.attempt.number - 1; k && count < EARLIER; k--)
		if (run_status_read(store, run->view.attempt.run, k, NULL, &earlier[count],
			    &ignored) == STATUS_OK)
			count++;
	return count;
}

enum status page_write(const char *path, struct store *store, const struct run_status *runs,
	size_t count, bool earlier, struct error *err)
{
	const int64_t utc = clock_utc();
	struct text text = {0};
	struct run_status *before = xcalloc(count * EARLIER + 1, sizeof(*before));
	struct timeline_attempt *attempts = xcalloc(count * (EARLIER + 1) + 1, sizeof(*attempts));
	size_t used = 0, shown = 0;
	for (size_t i = 0; i < count; i++) {
		size_t more = earlier ? read_earlier(store, &runs[i], before + used) : 0;
		timeline_of(&runs[i], utc, &attempts[shown++]);
		for (; more; more--)
			timeline_of(&before[used++], utc, &attempts[shown++]);
	}
	if (ends_with(path, ".svg"))
		timeline_add_svg(&text, attempts, shown);
	else
		timeline_add_html(&text, attempts, shown);
	enum status status =
		text.too_long
			? error_set(err, STATUS_USAGE,
				  "%s: the page would be larger than 16 MiB; leave out --all, or "
				  "name one run",
				  path)
			: file_write_whole(path, text.data, text.length, 0644, false, err);
	for (size_t i = 0; i < shown; i++)
		timeline_release(&attempts[i]);
	for (size_t i = 0; i < used; i++)
		run_status_release(&before[i]);
	free(attempts);
	free(before);
	text_release(&text);
	return status;
}
