/* SPDX-License-Identifier: MIT */
#include "store/etcd/credentials.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "store/etcd/wire.h"

#define VARIABLE  "PREEMPT_ETCD_CREDENTIALS"
#define FILE_MOST 1024 /* bytes */

bool credentials_given(const struct etcd_options *options)
{
	const char *value = getenv(VARIABLE);
	return options->credentials || (value && *value);
}

static enum status read_file(const char *path, struct text *text, struct error *err)
{
	struct stat st;
	if (file_stat(AT_FDCWD, path, 0, &st) == 0 && (st.st_mode & 077))
		return error_set(err, STATUS_PERMISSION,
			"%s: other users may read the password: run chmod 600 on it", path);
	enum status status = file_read_whole(path, FILE_MOST, text, err);
	return status == STATUS_NO ? error_set(err, STATUS_PERMISSION, "%s: it is missing", path)
				   : status;
}

/* Write the body of a request from line, "USER:PASSWORD", which is changed. */
static enum status write_request(
	const char *source, char *line, struct text *body, struct error *err)
{
	line[strcspn(line, "\r\n")] = '\0';
	char *password = strchr(line, ':');
	if (!password || password == line)
		return error_set(err, STATUS_USAGE, "%s: it has to be USER:PASSWORD", source);
	*password++ = '\0';
	text_add(body, "{\"name\":");
	text_add_json_string(body, line);
	text_add(body, ",\"password\":");
	text_add_json_string(body, password);
	text_add(body, "}");
	return STATUS_OK;
}

/* Keep the token as a header, if it is printable and not too long. */
static enum status keep_token(struct gateway *gateway, const char *token, struct error *err)
{
	bool plain = *token;
	for (const char *s = token; *s; s++)
		plain &= *s > ' ' && *s < 0x7f;
	int length = snprintf(gateway->header, sizeof(gateway->header), "Authorization: %s", token);
	if (plain && (size_t)length < sizeof(gateway->header))
		return STATUS_OK;
	*gateway->header = '\0';
	return error_set(
		err, STATUS_TEMPORARY, "store %s: its server gave no usable token", gateway->where);
}

enum status credentials_show(struct gateway *gateway, int64_t deadline, struct error *err)
{
	const char *file = gateway->options->credentials;
	struct text line = {0}, body = {0};
	struct gateway_reply reply = {0};
	const char *token = "";
	enum status status = STATUS_OK;
	if (file)
		status = read_file(file, &line, err);
	else
		text_add(&line, getenv(VARIABLE));
	if (status == STATUS_OK)
		status = write_request(
			file ? file : VARIABLE, (char *)text_string(&line), &body, err);
	*gateway->header = '\0';
	if (status == STATUS_OK) {
		struct gateway_request request = {.path = "/v3/auth/authenticate",
			.body = text_string(&body),
			.repeatable = true,
			.introduces = true,
			.deadline = deadline};
		status = gateway_ask(gateway, &request, &reply, err);
	}
	if (status == STATUS_OK) {
		(void)json_get_text(reply.object, "token", &token);
		status = keep_token(gateway, token, err);
	}
	gateway_reply_release(&reply);
	text_release(&line);
	text_release(&body);
	return status;
}

enum status credentials_matter(
	const struct etcd_options *options, const char *where, int64_t deadline, struct error *err)
{
	struct etcd_options strange = *options;
	struct gateway gateway;
	struct gateway_reply reply = {0};
	struct wire_key mark;
	struct text body = {0};
	strange.files.certificate = strange.files.key = NULL;
	enum status status = gateway_open(&gateway, &strange, where, err);
	if (status != STATUS_OK)
		return status;
	wire_key_set(&mark, options->prefix, 's', NULL);
	text_add(&body, "{");
	wire_add_key(&body, &mark);
	text_add(&body, "}");
	struct gateway_request request = {.path = "/v3/kv/range",
		.body = text_string(&body),
		.repeatable = true,
		.introduces = true, /* it goes without a token */
		.deadline = deadline};
	status = gateway_ask(&gateway, &request, &reply, err);
	gateway_reply_release(&reply);
	gateway_close(&gateway);
	text_release(&body);
	if (status == STATUS_PERMISSION)
		return STATUS_OK;
	return status == STATUS_OK ? STATUS_NO : status == STATUS_NO ? STATUS_TEMPORARY : status;
}
