/* SPDX-License-Identifier: MIT */
#include "store/sqlite/options.h"

#include <string.h>

static bool read_one(struct parameters *parameters, const char *name, const char *value)
{
	if (!strcmp(name, "shared-group"))
		return parameters->shared_group = !value;
	if (!strcmp(name, "must-exist"))
		return parameters->must_exist = !value;
	bool local = value && !strcmp(value, "local");
	parameters->assume = local ? "local" : "shared";
	return !strcmp(name, "assume") && (local || (value && !strcmp(value, "shared")));
}

enum status parameters_read(
	const struct store_url *url, struct parameters *parameters, struct error *err)
{
	*parameters = (struct parameters){0};
	for (size_t i = 0; i < url->count; i++) {
		const char *name = url->parameters[i].name;
		const char *value = url->parameters[i].value;
		if (!read_one(parameters, name, value))
			return error_set(err, STATUS_USAGE,
				"store %s: \"%s%s%s\" is not understood; known are shared-group, "
				"must-exist, assume=local|shared",
				url->path, name, value ? "=" : "", value ? value : "");
	}
	return STATUS_OK;
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
