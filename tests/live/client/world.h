/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_LIVE_CLIENT_WORLD_H
#define LK_LIVE_CLIENT_WORLD_H

/**
 * @file
 * One real server, and for each test a loop and two clients: `here`, perhaps
 * with a chroot, and `there` without one. The request functions below wait
 * until the request completes, and leave its results in `last_reply`. They
 * return the error with which the request completed. If the call refuses the
 * request, they return the error of the call.
 */

#include "live/support/test_driver.h"
#include "support/real_server.h"

#include <check.h>
#include <latchkey/latchkey.h>

extern server zk;
extern lk_client *here;
extern lk_client *there;

/** The results of a request. */
typedef struct completion {
  bool done;
  int err;
  char path[512];
  bool has_stat;
  lk_stat stat;
  bool is_null; /* the data is null */
  char data[256];
  size_t len;              /* of the data */
  size_t count;            /* number of children, or of results of a multi */
  char names[8][64];       /* the first children; long names are cut off */
  lk_op_result results[8]; /* the first results, without `path` and `stat` */
  lk_evidence evidence;
  int64_t zxid;
  uint64_t order; /* 1, 2, ... in the order of the completions */
} completion;

extern completion last_reply;

/** Start the server, before all tests; `options` as of server_start(). */
void world_begin(const char *const *options);
/** For tcase_add_checked_fixture(). */
void world_set_up(void);
void world_tear_down(void);
/** The chroot of `here`: "", or a node that connect_here() has created. */
extern const char *chroot_path;
enum { WITHOUT_CHROOT = false, WITH_CHROOT = true };
/** Connect `here`, with a chroot or without. */
void connect_here(bool use_chroot);

/** Add a test, or each of `count` tests, to `t`. It runs without a chroot, and
    then with one. */
void add_test_without_and_with_chroot(TCase *t, const TTest *test);
void add_tests_without_and_with_chroot(TCase *t, const TTest *const *tests,
                                       size_t count);
/** Whether the turn `_i` of such a test uses a chroot. */
bool with_chroot(int i);

/** The configuration of a client of the server. Its hosts are in one of two
    buffers, which are used in turn. */
lk_client_config config_of(const char *chroot);
/** A new client with this configuration. */
lk_client *client_of(const lk_client_config *config);
/** Run the loop until `*flag` is true; fails after 30 s. */
void wait_until(const bool *flag);
void wait_for_state(lk_client *c, lk_state state);

/** Clear `last_reply`, for a call whose callback gets it. */
completion *reset_last_reply(void);
/** Wait until the request of that call completes, and return its error.
    `call_err` is what the call returned; if it is an error, return it. */
int wait_for_completion(int call_err);

int create(lk_client *c, const char *path, const char *data, int flags);
int create_as(lk_client *c, const char *path, const lk_acls *acl, int flags);
int delete_node(lk_client *c, const char *path, int32_t version);
int exists(lk_client *c, const char *path);
int get(lk_client *c, const char *path);
int children(lk_client *c, const char *path);
/** Also set the one-shot watch that `call` describes. */
int exists_and_watch(lk_client *c, const char *path, const lk_call *call);
int get_and_watch(lk_client *c, const char *path, const lk_call *call);
int children_and_watch(lk_client *c, const char *path, const lk_call *call);
int set(lk_client *c, const char *path, lk_bytes data, int32_t version);
int sync_with(lk_client *c, const char *path);
int multi(lk_client *c, const lk_op *ops, size_t count);
int add_auth(lk_client *c, const char *scheme, const char *auth);
int close_client(lk_client *c);

/** The path as `there` must name it: `path` of `here` with the chroot in front.
    The text is in one of four buffers, which are used in turn. */
const char *absolute(const char *path);

/** Callbacks for requests that do not wait; `arg` is a completion. */
void on_done(lk_client *c, int err, void *arg);
void on_created(lk_client *c, int err, const char *path, const lk_stat *stat,
                void *arg);
void on_stat(lk_client *c, int err, const lk_stat *stat, void *arg);
void on_get(lk_client *c, int err, const lk_bytes *data, const lk_stat *stat,
            void *arg);
void on_children(lk_client *c, int err, const lk_bytes *names, size_t count,
                 const lk_stat *stat, void *arg);
void on_multi(lk_client *c, int err, const lk_op_result *results, size_t count,
              void *arg);

/** Remove a watch of `here` from the server, without waiting for that. */
static inline void remove_watch(lk_watch *w)
{
  (void)lk_watch_remove(here, w, NULL, NULL);
}
/** What the first server of `hosts` reports for `key`, as for
    "zk_outstanding_requests". */
long server_number(const char *hosts, const char *key);
/** The number of watches that the server has. */
long watches_on_server(void);

/* Parts of this program. */
TCase *data_tests(void);
TCase *watch_tests(void);
TCase *access_tests(void);
TCase *limit_tests(void);
TCase *persistent_watch_tests(void);

#endif
