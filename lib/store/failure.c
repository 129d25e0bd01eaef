/* SPDX-License-Identifier: MIT */
#include "store/failure.h"

#include <errno.h>

#include "base/error.h"

const char *store_cure(int number)
{
	switch (number) {
	case ENOSPC:
	case EDQUOT: return "; free space or choose another place with --store or PREEMPT_STORE";
	case ENOLCK: return "; the server grants no locks: start its lock service, avoid nolock";
	case ENOSYS:
	case EOPNOTSUPP:
		return "; this filesystem has no byte-range locks here (Lustre: mount it with flock)";
	case EROFS: return "; it is mounted read-only: choose another place with --store";
	case EACCES:
	case EPERM: return "; look at its owner and mode, and at those of its directory";
	case ESTALE: return "; it was replaced on the server: try again";
	case EIO:
	case ETIMEDOUT: return "; the disk, the server or the network failed: try again";
	case ENOENT:
	case ENOTDIR: return "; is the filesystem mounted?";
	case ENOTCONN:
	case EHOSTDOWN: return "; the server of this filesystem is gone: mount it again";
	case ENOTUNIQ:
		return "; it holds several tokens, as after a backup was put back over it: remove all but "
		       "the one that was in use last";
	case EINTR: return "; try again";
	default: return error_cure(number);
	}
}
