/* SPDX-License-Identifier: MIT */
/* The doctor of a store in etcd: members, alarms, and a write that is read back. */
#ifndef DOCTOR_ETCD_H
#define DOCTOR_ETCD_H

#include "doctor/findings.h"
#include "store/etcd/inspect.h"

/* Pure. */
void doctor_etcd_conclude(const struct etcd_report *seen, struct doctor_verdict *verdict);

/* As doctor_run; uses url and timeout. STATUS_USAGE: also if other or nodes is set. */
enum status doctor_etcd_run(
	const struct doctor_request *request, struct doctor_report *report, struct error *err);

#endif
