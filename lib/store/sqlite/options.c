/* SPDX-License-Identifier: MIT */
#include "store/sqlite/options.h"

#include <string.h>

#include "base/parse.h"
#include "store/lock/lockfile.h"

static bool read_one(struct parameters *parameters, const char *name, const char *value)
{
	if (!strcmp(name, "lock"))
		return value && lock_mode_parse(value, &parameters->mode);
	if (!strcmp(name, "shared-group"))
		return parameters->shared_group = !value;
	if (!strcmp(name, "must-exist"))
		return parameters->must_exist = !value;
	if (!strcmp(name, "assume")) {
		bool local = value && !strcmp(value, "local");
		parameters->assume = local ? "local" : "shared";
		return local || (value && !strcmp(value, "shared"));
	}
	return !strcmp(name, "takeover") && value;
}

static enum status read_takeover(const struct store_url *url, const char *value,
	struct parameters *parameters, struct error *err)
{
	if (parse_duration(value, &parameters->takeover, "takeover", err) != STATUS_OK)
		return error_prefix(err, "store %s", url->path);
	if (parameters->takeover >= TAKEOVER_LEAST && parameters->takeover <= TAKEOVER_MOST)
		return STATUS_OK;
	return error_set(err, STATUS_USAGE, "store %s: takeover=%s is out of range: 2s to 1h",
		url->path, value);
}

enum status parameters_read(
	const struct store_url *url, struct parameters *parameters, struct error *err)
{
	enum status status = STATUS_OK;
	*parameters = (struct parameters){.mode = LOCK_AUTO};
	for (size_t i = 0; i < url->count && status == STATUS_OK; i++) {
		const char *name = url->parameters[i].name;
		const char *value = url->parameters[i].value;
		if (!read_one(parameters, name, value))
			return error_set(err, STATUS_USAGE,
				"store %s: \"%s%s%s\" is not understood; known are lock=auto|fcntl|link, "
				"takeover=D, shared-group, must-exist, assume=local|shared",
				url->path, name, value ? "=" : "", value ? value : "");
		if (!strcmp(name, "takeover"))
			status = read_takeover(url, value, parameters, err);
	}
	return status;
}

enum filesystem_reach parameters_reach(
	const struct parameters *parameters, enum filesystem_reach seen)
{
	if (!parameters->assume)
		return seen;
	if (!strcmp(parameters->assume, "local"))
		return FILESYSTEM_LOCAL;
	return seen == FILESYSTEM_NODE ? FILESYSTEM_NODE : FILESYSTEM_SHARED;
}
