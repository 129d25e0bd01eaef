/* SPDX-License-Identifier: MIT */
#include "agent/children/hook.h"

#include "base/clock.h"
#include "base/message.h"

void hook_start(struct hook *hook, const char *option, const struct subprocess_options *how)
{
	struct error err;
	*hook = (struct hook){.option = option, .started = true};
	if (subprocess_start(&hook->process, how, &err) == STATUS_OK)
		return;
	message_error("%s: %s", option, err.text);
	hook->process.code = STATUS_NOT_FOUND;
}

bool hook_runs(struct hook *hook, int64_t now, int64_t *wake)
{
	if (subprocess_finish(&hook->process, now) == SUBPROCESS_LATE)
		message_error("%s: the command has not ended in time", hook->option);
	if (!hook->process.pid)
		return false;
	*wake = clock_earlier(hook->process.end.due, *wake);
	return true;
}
