/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LATCHKEY_H
#define LATCHKEY_H

/**
 * @file
 * All headers but <latchkey/ev.h>, which is of a library of its own,
 * liblatchkey-ev.
 */

#include <latchkey/acl.h>
#include <latchkey/client.h>
#include <latchkey/error.h>
#include <latchkey/leader.h>
#include <latchkey/lease.h>
#include <latchkey/lock.h>
#include <latchkey/member.h>
#include <latchkey/multilock.h>
#include <latchkey/nodes.h>
#include <latchkey/poll.h>
#include <latchkey/roster.h>
#include <latchkey/rwlock.h>
#include <latchkey/semaphore.h>
#include <latchkey/single.h>
#include <latchkey/subscribe.h>
#include <latchkey/sync.h>
#include <latchkey/types.h>
#include <latchkey/version.h>

#endif
