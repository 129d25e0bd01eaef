/* SPDX-License-Identifier: MIT */
/*
 * The metadata servers of clouds, as data: the requests, and functions that read an answer. Pure:
 * source_metadata.c sends the requests. Addresses, headers, forms and lead times are taken from the
 * documentation of each cloud.
 */
#ifndef NOTICE_CLOUD_H
#define NOTICE_CLOUD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum cloud_answer {
	CLOUD_NONE,	  /* no notice */
	CLOUD_NOTICE,	  /* the finding is filled */
	CLOUD_CANNOT_ASK, /* the error is filled: an unknown code or body */
	CLOUD_REFUSED,	  /* the token is not accepted (any more) */
};

/* An answer of the server. */
struct cloud_reply {
	int code;	  /* HTTP status */
	const char *body; /* as text; a NUL inside ends it */
	const char *self; /* the answer to cloud->introduction; NULL: there is none */
	int64_t utc;	  /* now, by the server's clock if the answer has a date, ms since 1970 */
	unsigned options; /* bit i: the user has given cloud->options[i] */
};

struct cloud_finding {
	char reason[256]; /* for messages; repeated notices of one event have the same */
	int64_t left;	  /* ms until the end; -1: the answer names no time */
	int64_t age; /* ms since the end, or since the notice if there is no end; 0: not known */
};

/* ms: a notice of this age that the first answer contains was for an earlier start. */
#define CLOUD_STALE 300000

/* A request that is repeated. */
struct cloud_query {
	const char *name;      /* "preempted": its notices have the source "gce:preempted" */
	const char *path;      /* appended to the base */
	const char *long_poll; /* after path, and followed by the last etag; NULL: no long poll */
	const char *option;    /* asked only if this option is given; NULL: always */
	int64_t period;	       /* ms between two requests */
	int64_t patience;      /* ms that the first request may take; 0: 5 s, like later requests */
	int64_t lead; /* ms from notice to end, if the answer names no end; -1: not known */
	int64_t lead_with_gpu; /* the same on a machine with a GPU; 0: no difference */
	enum cloud_answer (*read)(
		const struct cloud_reply *reply, struct cloud_finding *finding, struct error *err);
};

/* The first request: for a token that all other requests send, or for this machine's name. */
struct cloud_introduction {
	const char *method, *path;
	const char *header; /* the header of this request; NULL: cloud->header */
	const char *bear;   /* header in which the other requests send the answer; NULL: none */
	int64_t life;	    /* ms that the answer is valid; 0: for ever */
	const char *silent; /* what to do where this request gets no answer, and so the others are
			       sent without bear; NULL: they are not sent */
};

enum { CLOUD_QUERIES = 3, CLOUD_OPTIONS = 3 };

struct cloud {
	const char *name;
	const char *base;			   /* "http://169.254.169.254" */
	const char *environment;		   /* variable with another base */
	const char *hosts[2];			   /* variables with another HOST[:PORT], which the
						      cloud's own tools read, too; NULL: none */
	const char *header;			   /* of every request; NULL: none */
	struct cloud_introduction introduction;	   /* method NULL: none */
	const char *options[CLOUD_OPTIONS];	   /* option words of the specification */
	struct cloud_query queries[CLOUD_QUERIES]; /* path NULL ends them */
};

extern const struct cloud cloud_gce, cloud_aws, cloud_azure, cloud_alibaba;

#endif
