/* SPDX-License-Identifier: MIT */
#include "store/etcd/options.h"

#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "base/xalloc.h"

static enum status refuse(const struct store_url *url, const char *why, struct error *err)
{
	/* Do not print the part before an @: it may be a password. */
	const char *at = strrchr(url->path, '@');
	return error_set(err, STATUS_USAGE, "store etcd:%s%s: %s: write etcd://HOST:PORT/PREFIX",
		at ? "//..." : "", at ? at : url->path, why);
}

/* "127.0.0.1:2379", "node7:2379", "[::1]:2379" */
static bool is_endpoint(const char *text)
{
	struct error unused;
	uint64_t port;
	const char *colon = strrchr(text, ':');
	size_t host = colon ? (size_t)(colon - text) : 0;
	bool bracketed = host > 2 && *text == '[' && text[host - 1] == ']';
	const char *allowed = bracketed ? "[]0123456789abcdefABCDEF:."
					: "0123456789abcdefghijklmnopqrstuvwxyz"
					  "ABCDEFGHIJKLMNOPQRSTUVWXYZ.-_";
	return host > 0 && strspn(text, allowed) >= host &&
	       parse_unsigned(colon + 1, 1, 65535, &port, "port", &unused) == STATUS_OK;
}

static enum status read_path(
	const struct store_url *url, struct etcd_options *options, struct error *err)
{
	if (strncmp(url->path, "//", 2) != 0)
		return refuse(url, "the two slashes are missing", err);
	options->text = xstrdup(url->path + 2);
	char *rest = options->text, *hosts = strsep(&rest, "/"), *host;
	if (strchr(hosts, '@'))
		return refuse(url, "user and password belong into a file (?credentials=FILE)", err);
	while ((host = strsep(&hosts, ","))) {
		if (!is_endpoint(host))
			return refuse(url, "an endpoint is not HOST:PORT", err);
		if (options->count == ETCD_ENDPOINTS)
			return refuse(url, "there are more than 9 endpoints", err);
		options->endpoints[options->count++] = host;
	}
	size_t length = rest ? strlen(rest) : 0;
	while (length && rest[length - 1] == '/')
		rest[--length] = '\0';
	options->prefix = rest;
	if (length == 0)
		return refuse(url, "the prefix of its keys is missing", err);
	if (length > ETCD_PREFIX_MAX)
		return refuse(url, "the prefix has more than 256 bytes", err);
	return STATUS_OK;
}

/* False: the parameter is unknown, or its value is missing. */
static bool read_one(struct etcd_options *options, const char *name, const char *value)
{
	const struct {
		const char *name;
		const char **file;
		bool tls;
	} files[] = {{"ca", &options->files.authorities, true},
		{"cert", &options->files.certificate, true}, {"key", &options->files.key, true},
		{"credentials", &options->credentials, false}};
	if (!strcmp(name, "must-exist"))
		return options->must_exist = !value;
	if (!strcmp(name, "tls"))
		return options->tls = !value;
	for (size_t i = 0; value && *value && i < 4; i++)
		if (!strcmp(name, files[i].name)) {
			*files[i].file = xstrdup(value);
			options->tls |= files[i].tls;
			return true;
		}
	return false;
}

static enum status read_all(
	const struct store_url *url, struct etcd_options *options, struct error *err)
{
	enum status status = read_path(url, options, err);
	for (size_t i = 0; i < url->count && status == STATUS_OK; i++) {
		const char *name = url->parameters[i].name, *value = url->parameters[i].value;
		if (!read_one(options, name, value))
			return error_set(err, STATUS_USAGE,
				"store etcd:%s: \"%s\" is not understood; known are tls, ca=FILE, "
				"cert=FILE, key=FILE, credentials=FILE, must-exist",
				url->path, name);
	}
	if (status == STATUS_OK && !options->files.certificate != !options->files.key)
		return error_set(err, STATUS_USAGE,
			"store etcd:%s: cert=FILE and key=FILE belong together", url->path);
	return status;
}

enum status etcd_options_read(
	const struct store_url *url, struct etcd_options *options, struct error *err)
{
	*options = (struct etcd_options){0};
	enum status status = read_all(url, options, err);
	if (status != STATUS_OK)
		etcd_options_release(options);
	return status;
}

void etcd_options_release(struct etcd_options *options)
{
	free(options->text);
	free((char *)options->files.authorities);
	free((char *)options->files.certificate);
	free((char *)options->files.key);
	free((char *)options->credentials);
	*options = (struct etcd_options){0};
}
