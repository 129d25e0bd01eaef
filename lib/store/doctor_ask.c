/* SPDX-License-Identifier: MIT */
/* Asking the workers: one of them, or all at once. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "store/doctor_inside.h"

#define ANSWER_WITHIN 8000 /* milliseconds beyond what it was asked to do */

bool examination_trouble(struct examination *examination, enum status status, const char *why)
{
	struct doctor_findings *findings = &examination->findings;
	if (findings->trouble == STATUS_OK) {
		findings->trouble = status;
		snprintf(findings->trouble_why, sizeof(findings->trouble_why), "%s", why);
	}
	return false;
}

struct json_object *request_for(const char *what)
{
	struct json_object *request = json_object_new_object();
	json_put_text(request, "do", what);
	return request;
}

bool ask_only(struct examination *examination, size_t k, struct json_object *request)
{
	struct error err = {0};
	enum status status = doctor_peer_send(&examination->peers[k], request, &err);
	return status == STATUS_OK || examination_trouble(examination, status, err.text);
}

bool ask_hear(struct examination *examination, size_t k, int64_t takes, struct json_object **answer)
{
	struct error err = {0};
	int64_t deadline = clock_after(takes + ANSWER_WITHIN);
	if (deadline > examination->deadline)
		deadline = examination->deadline;
	enum status status = doctor_peer_receive(&examination->peers[k], deadline, answer, &err);
	const char *why;
	/* What a node says that goes away. */
	if (status == STATUS_OK && json_get_text(*answer, "gone", &why)) {
		examination_trouble(examination, STATUS_TEMPORARY, why);
		json_object_put(*answer);
		return false;
	}
	return status == STATUS_OK || examination_trouble(examination, status, err.text);
}

/* One asks one. The request is released. */
bool ask_one(struct examination *examination, size_t k, struct json_object *request, int64_t takes,
	struct json_object **answer)
{
	bool told = ask_only(examination, k, request);
	json_object_put(request);
	return told && ask_hear(examination, k, takes, answer);
}

/* All are asked the same at once. On false there are no answers. The request is released. */
bool ask_all(struct examination *examination, struct json_object *request, int64_t takes,
	struct json_object *answers[DOCTOR_SIDES_MAX])
{
	size_t count = examination->findings.count, heard = 0;
	bool good = true;
	for (size_t k = 0; k < count && good; k++)
		good = ask_only(examination, k, request);
	json_object_put(request);
	while (heard < count && good)
		if ((good = ask_hear(examination, heard, takes, &answers[heard])))
			heard++;
	while (!good && heard > 0)
		json_object_put(answers[--heard]);
	return good;
}

void answers_release(struct examination *examination, struct json_object **answers)
{
	for (size_t k = 0; k < examination->findings.count; k++)
		json_object_put(answers[k]);
}

enum status answer_status(const struct json_object *answer, const char **why)
{
	int64_t status = STATUS_DAMAGED;
	*why = "an answer that is not understood";
	(void)json_get_signed(answer, "status", &status);
	(void)json_get_text(answer, "why", why);
	return (enum status)status;
}

/* The first of all answers that is not OK. */
enum status answers_status(
	struct examination *examination, struct json_object **answers, const char **why)
{
	enum status status = STATUS_OK;
	for (size_t k = 0; k < examination->findings.count && status == STATUS_OK; k++)
		status = answer_status(answers[k], why);
	return status;
}

void answer_most(const struct json_object *answer, const char *name, int64_t *most)
{
	int64_t value = 0;
	if (json_get_signed(answer, name, &value) && value > *most)
		*most = value;
}
