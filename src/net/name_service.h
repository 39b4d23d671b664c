/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_NET_NAME_SERVICE_H
#define LK_NET_NAME_SERVICE_H

#include "net/fork_check.h"
#include "net/loop.h"
#include "net/name_query.h"

/** Carries out the queries of a resolver. Implemented by resolver_cares.c, or
    by resolver_thread.c in a build without c-ares. */
typedef struct lk_name_service lk_name_service;

/** As lk__resolver_new(). */
int lk__name_service_new(lk_name_service **out, lk_loop *loop,
                         const lk_fork_check *fork_check, const lk_mem *mem);
/** Resolve `q->host`. lk__name_query_complete() is called once: before this
    function returns, or later on the loop's thread, but not after
    lk__name_service_free(). */
void lk__name_service_query(lk_name_service *n, lk_name_query *q);
/** Called when no query is outstanding. The name service may now forget the
    name servers that it has read from the system's configuration: these may
    change before the next query. */
void lk__name_service_on_idle(lk_name_service *n);
/** `forked`: as in lk__resolver_free(). */
void lk__name_service_free(lk_name_service *n, bool forked);

#endif
