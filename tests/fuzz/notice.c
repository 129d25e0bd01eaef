/* SPDX-License-Identifier: MIT */
/*
 * What others say of this machine's end. The first byte of an input says what the rest is: 's'
 * squeue's answer, 'h' lines of an HTTP header, and '0' to '6' what a cloud's metadata server
 * answers to one of its questions. (Lines of a notice: tests/unit/notice.c.)
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/http.h"
#include "notice/cloud.h"
#include "platform/slurm.h"
#include "support/fuzz.h"

#define NOW 1505722920000 /* ms since 1970 */

static void check_slurm(const char *text)
{
	struct slurm_job job;
	if (!slurm_read_job(text, &job))
		return;
	FUZZ_HOLDS(*job.state && job.end >= 0 && job.start >= 0);
	(void)slurm_utc(NOW, job.start, 1000);
	static const int64_t ends[] = {0, NOW, INT64_MAX / 2};
	for (size_t i = 0; i < 3; i++) {
		struct slurm_estimate estimate =
			slurm_estimate_left(&job, SIGTERM, ends[i], 30000, NOW);
		FUZZ_HOLDS(estimate.left >= -1 && estimate.why);
	}
}

static void check_header(const uint8_t *data, size_t size)
{
	static struct http *http;
	struct http_answer answer = {0};
	if (!http)
		FUZZ_HOLDS(http_open(&http, NULL) == STATUS_OK);
	for (char *line; (line = fuzz_next(&data, &size, '\n')); free(line))
		http_take_header(&answer, line, strlen(line));
	FUZZ_HOLDS(memchr(answer.etag, '\0', sizeof(answer.etag)));
	FUZZ_HOLDS(!strpbrk(answer.etag, "\r\n") && answer.date_utc >= 0);
}

static void check_cloud(const struct cloud_query *look, const char *body)
{
	static const int codes[] = {200, 401, 404, 503};
	for (unsigned i = 0; i < 4; i++) {
		struct cloud_finding finding = {.left = -7};
		struct error err = {0};
		struct cloud_reply reply = {
			.code = codes[i], .body = body, .self = "vm1", .utc = NOW, .options = i};
		enum cloud_answer answer = look->read(&reply, &finding, &err);
		FUZZ_HOLDS(answer != CLOUD_CANNOT_ASK || *err.text);
		FUZZ_HOLDS(answer != CLOUD_NOTICE || (*finding.reason && finding.left >= -1));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct cloud_query *looks[] = {&cloud_gce.queries[0], &cloud_gce.queries[1],
		&cloud_aws.queries[0], &cloud_aws.queries[1], &cloud_aws.queries[2],
		&cloud_azure.queries[0], &cloud_alibaba.queries[0]};
	if (size == 0)
		return 0;
	char *text = fuzz_text(data + 1, size - 1);
	if (*data == 's')
		check_slurm(text);
	else if (*data == 'h')
		check_header(data + 1, size - 1);
	else if (*data >= '0' && *data <= '6')
		check_cloud(looks[*data - '0'], text);
	free(text);
	return 0;
}
