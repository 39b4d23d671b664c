/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_QUEUE_CONTENDER_H
#define LK_RECIPES_QUEUE_CONTENDER_H

/**
 * @file
 * One attempt to hold a queue-shaped lock, from before its node is created
 * until that node is certainly gone. The attempt is the node's owner record:
 * its memory is there before the create is sent, and when nobody is interested
 * in it any more it goes on by itself, LEAVING, until nothing is left on the
 * server.
 *
 * The states are a table (machine.c); what they begin with is in queue.c
 * (create, list), search.c (which node is ours), wait.c (park, wait, probe),
 * hold.c (check, held, unsure) and pending.c (leaving). Answers are judged
 * there too, lists in ahead.c, and come back as events. Where the name is fixed
 * there is no list, but a read of whose node it is (fixed.c).
 *
 * Requests are made only while there is a connection, so their answers come in
 * order, and all of them end before the next connection is told of. That is
 * why counting tells an answer that is still meant from one of an earlier try.
 */

#include "base/list.h"
#include "recipes/common/error_advice.h"
#include "recipes/lock/acquisition.h"
#include "recipes/queue/roles.h"

typedef struct lk_session_lease lk_session_lease;

typedef enum lk_contender_state {
  LK_CONTENDER_NO_STEP, /* what the table holds for an event that cannot be */
  LK_CONTENDER_IDLE,
  LK_CONTENDER_PAUSED, /* until there is a connection, or the server had rest */
  LK_CONTENDER_LISTING_FIRST, /* list under way: is it worth while to make own?
                               */
  LK_CONTENDER_CREATING,      /* create and list under way */
  LK_CONTENDER_CREATING_PARENTS, /* creates of directories, create and list
                                    under way */
  LK_CONTENDER_RECOVERING, /* check and list under way: was the create executed?
                            */
  LK_CONTENDER_READING_CANDIDATES,   /* reads of names that could be ours under
                                        way */
  LK_CONTENDER_LISTING,              /* list under way */
  LK_CONTENDER_SETTING_WATCHES,      /* reads of pred and own under way */
  LK_CONTENDER_WAITING,              /* for the pred's deletion */
  LK_CONTENDER_READING_PREDECESSORS, /* reads of all that are left before us
                                        under way */
  LK_CONTENDER_READING_OWN,  /* nobody ahead; read of own under way, for the
                                token */
  LK_CONTENDER_CHECKING_OWN, /* nobody ahead; check of own under way, for the
                                lease */
  LK_CONTENDER_HELD,
  LK_CONTENDER_UNSURE,      /* held, but the lease runs out */
  LK_CONTENDER_CLEANING_UP, /* own is to be deleted, see lk_own_state */
  LK_CONTENDER_FINISHED,    /* nothing of ours is on the server */
  LK_CONTENDER_NSTATES,
  /* what the table holds for an event that changes nothing */
  LK_CONTENDER_STAY = LK_CONTENDER_NSTATES
} lk_contender_state;

typedef enum lk_contender_event {
  LK_CONTENDER_ON_START,        /* go on: own does not exist */
  LK_CONTENDER_ON_LIST_FIRST,   /* the same, and may not have to */
  LK_CONTENDER_ON_OWN_IN_DOUBT, /* go on: own may exist */
  LK_CONTENDER_ON_OWN_EXISTS,   /* go on: own exists */
  LK_CONTENDER_ON_NO_PARENT,    /* the directory is missing */
  LK_CONTENDER_ON_CANDIDATES,   /* names that could be ours are there */
  LK_CONTENDER_ON_OWN_MISSING,  /* own is not there */
  LK_CONTENDER_ON_PREDECESSORS, /* somebody is ahead */
  LK_CONTENDER_ON_WATCHES_SET,  /* pred is watched */
  LK_CONTENDER_ON_FEW_LEFT,     /* pred has gone, a few are left */
  LK_CONTENDER_ON_LIST_NEEDED,  /* only a list can tell */
  LK_CONTENDER_ON_TOKEN_NEEDED, /* nobody ahead, but the token is not known */
  LK_CONTENDER_ON_CHECK_NEEDED, /* nobody ahead, but the lease has run out */
  LK_CONTENDER_ON_GRANT,        /* nobody ahead: granted */
  LK_CONTENDER_ON_PAUSE, /* the connection broke, or the server is overloaded */
  LK_CONTENDER_ON_LEASE_ENDING, /* the lease runs out */
  LK_CONTENDER_ON_LEASE_PROVEN, /* it does not */
  LK_CONTENDER_ON_STOP,         /* cancelled, failed, released */
  LK_CONTENDER_ON_OWN_GONE,     /* own does not exist and will not */
  LK_CONTENDER_NEVENTS
} lk_contender_event;

extern const lk_contender_state lk__contender_table[LK_CONTENDER_NSTATES]
                                                   [LK_CONTENDER_NEVENTS];

/** What is known of our node. */
typedef enum lk_own_state {
  LK_OWN_NONE,      /**< it does not exist */
  LK_OWN_REQUESTED, /**< its create is under way */
  LK_OWN_IN_DOUBT,  /**< its create was sent and the answer was lost */
  LK_OWN_CREATED    /**< it exists, as far as we were told */
} lk_own_state;

/** A node whose name is fixed (LK_IDENTITY_NONE): there is no queue, and who
   makes it holds. */
typedef struct lk_single_node_config {
  const char *name;  /**< without the directory */
  int32_t poll_ms;   /**< look again after so long; 0: watch */
  int32_t spread_ms; /**< how much of a pause chance adds; 0: nothing */
} lk_single_node_config;

/** What an attempt is for. All of it must stay until the attempt is stopped,
    has ended or was lost. */
typedef struct lk_contender_config {
  const lk_role *role;
  lk_node_identity unique;
  const lk_single_node_config *fixed; /**< of LK_IDENTITY_NONE */
  const char *dir;                    /**< there "" for the root */
  lk_bytes dir_data; /**< what it is made with; `at` NULL: nothing */
  lk_bytes data;
  const lk_acls *acl;
  const lk_acls *parent_acl;
  bool persistent_parents;
  const int32_t *limit;  /**< of a role that counts: how many nodes of the
                              directory may hold; NULL: any number */
  bool once;             /**< end with LK_ERR_BUSY instead of waiting */
  size_t max_queue;      /**< with LK_ERR_QUEUE_FULL instead of waiting behind
                              more than so many; 0: however many */
  bool peek;             /**< see who is there before own is made */
  lk_bytes announcement; /**< written into own at a grant after a wait; `at`
                              NULL: nothing */
  bool unsure_when_suspended;
  bool fail_on_expiry;
  bool revocable; /**< watch own from the grant on */
  bool passing;   /**< its grant needs no lease: who gets it asks for more, and
                       that is granted */
} lk_contender_config;

/** The own node: the node that a contender creates to take part. */
typedef struct lk_own_node {
  lk_own_state state;
  lk_node_identity identity;
  uint64_t token;       /**< its czxid; 0: not known */
  uint64_t before_zxid; /**< the largest zxid seen when its create was sent */
  uint64_t verified_on; /**< the connection on which the node at `path` was last
                             known to be the own one */
  lk_watch *watch;      /**< requested or confirmed; NULL: none */
  uint64_t watched_on;  /**< the connection on which `watch` was confirmed */
  bool unreadable;      /**< its access list forbids reads: it is not watched */
  unsigned misses;      /**< how often others deleted it */
  char unique_part[LK_PREFIX_LEN + 1]; /**< see lk_node_identity */
  char *dir;                           /**< "" for the root */
  char *path;      /**< with room for the number that a server appends */
  size_t base_len; /**< of `path` without that number */
  char *data;      /**< what the node holds where a UUID ends it; or NULL */
  size_t data_len;
} lk_own_node;

/** The contenders that exclude us, by the last list. Of a long queue only the
    direct predecessor and the first contender have paths. */
typedef struct lk_predecessors {
  char *block; /**< holds the paths */
  size_t cap;
  size_t count;
  size_t kept; /**< min(count, LK_KEPT_PREDECESSORS), or 1 of more */
  const char *path[LK_KEPT_PREDECESSORS]; /**< the direct predecessor first */
  const char *head;    /**< the first contender in the queue */
  bool writ_ahead;     /**< one is the write side of a read-write lock */
  bool in_range;       /**< all numbers are in range, see LK_SUFFIX_LIMIT */
  uint64_t connection; /**< on which the list came */
} lk_predecessors;

/** Nodes that may be the own one, where names do not tell. */
typedef struct lk_candidates {
  int64_t *suffix; /**< ascending; read from the end */
  size_t count;    /**< not yet read */
  size_t next;     /**< the next whose reply comes */
  bool found;
  bool enough; /**< those left are older than the create */
  bool strict; /**< the numbers are in the order of creation */
  int err;
} lk_candidates;

/** Requests are counted: they are sent only while there is a connection, so
    their replies come in order, and all of them complete before the next
    connection is reported. */
typedef struct lk_request_count {
  uint64_t sent;
  uint64_t replied;
  uint64_t ignored; /**< replies up to this one belong to an earlier round */
} lk_request_count;

/** A pause for an overloaded server, and until a connection stands. */
typedef struct lk_pause {
  lk_timer timer;
  unsigned count; /**< pauses in a row */
} lk_pause;

/** What the replies of the requests under way have said so far. */
typedef struct lk_round {
  unsigned parents_missing; /**< how often in a row the directory was missing */
  int create_err;
  int parent_err; /**< why the directory could not be created, or 0 */
  int transaction_err;
  int predecessor_err;
  int own_err;
  size_t reads_replied; /**< of READING_PREDECESSORS */
  bool deleted[LK_MAX_PREDECESSOR_READS];
  bool checked; /**< a check of the own node has just completed */
} lk_round;

/** What is known while there are predecessors. */
typedef struct lk_wait {
  lk_watch *watch; /**< of the direct predecessor, or of the directory */
  bool predecessor_deleted;
  bool watches_directory; /**< the direct predecessor cannot be read */
  bool limit_changed;     /**< since the last list */
  uint64_t listed_zxid;   /**< of a permit: the zxid that its list shows */
  bool had_predecessors;
  bool node_is_foreign; /**< a single node was another's: read it first */
  size_t reported_position;
} lk_wait;

/** HELD and UNSURE. */
typedef struct lk_holding {
  int64_t watch_due_ms; /**< when the own node is to be watched, if it is not */
  int64_t read_due_ms;  /**< when it is to be read, if nothing checks it */
  bool proven;          /**< the own node was seen since the last doubt */
  bool awaits_lease;    /**< see lk__contender_await_lease() */
  bool revoked;         /**< another client asked for the release */
  uint64_t heartbeat;   /**< number of the heartbeat that last checked it */
  size_t heartbeat_chunk; /**< in this multi */
  size_t heartbeat_index; /**< as this operation */
} lk_holding;

/** CLEANING_UP. */
typedef struct lk_cleanup {
  bool too_big; /**< a list, or a node in it, is larger than the client takes */
  bool recovering; /**< transaction and list are under way */
  bool deleting;
} lk_cleanup;

/** A reader that its writer created, see downgrade.c. */
typedef struct lk_downgrade {
  lk_contender *writer;  /**< of the same owner, which held when this contender
                              began; or NULL */
  uint64_t writer_token; /**< counts instead of the own token; 0: none */
} lk_downgrade;

struct lk_contender {
  lk_acquisition acquisition; /* of one node: `self` */
  lk_contender *self;
  lk_link link; /* in the list of the session lease, until FINISHED */
  lk_session_lease *lease;
  size_t refs; /* the state machine's until FINISHED, requests, callers */
  const lk_acquisition_callbacks *callbacks; /* NULL: none are invoked */
  void *callbacks_arg;
  const lk_contender_config *config; /* valid until CLEANING_UP */
  const lk_role *role;
  lk_contender_state state;
  lk_request_count requests;
  lk_pause pause;
  lk_own_node own;
  lk_round round;
  lk_candidates candidates;
  lk_predecessors predecessors;
  lk_wait wait;
  lk_downgrade downgrade;
  lk_holding holding;
  lk_cleanup cleanup;
};

/* ---- for owners -------------------------------------------------------- */

/** Prepare an attempt; NULL: no memory. */
lk_contender *lk__contender_new(lk_session_lease *k,
                                const lk_contender_config *config,
                                const lk_acquisition_callbacks *callbacks,
                                void *arg);
/** Before it begins: `writer`, of the same owner, holds. Our node is then made
    with its number and granted at once. */
void lk__contender_set_writer(lk_contender *ct, lk_contender *writer);
/** Begin. The owner may be told of an end before this returns. */
void lk__contender_begin(lk_contender *ct);
/** Want it no more: cancel, give up or release. The owner is told nothing,
    except `gone` if `tell` is set. */
void lk__contender_stop(lk_contender *ct, bool tell);
/** Begin where somebody else has just asked for our node, together with others;
    lk__contender_own_created() tells what became of it. Mark all, then begin.
 */
void lk__contender_mark_created_by_group(lk_contender *ct);
void lk__contender_own_created(lk_contender *ct, int err, const char *path,
                               uint64_t zxid);
/** Before that: ask for the directories. 0, or why a request was refused. */
int lk__contender_create_parents(lk_contender *ct);
bool lk__contender_holds(const lk_contender *ct);
/** The fencing token. */
uint64_t lk__contender_token(const lk_contender *ct);
/** Until when it is certain that we hold; INT64_MIN unless held. */
int64_t lk__contender_deadline(const lk_contender *ct);

/** What a check of our node says. */
typedef enum lk_check_result {
  LK_CHECK_UNKNOWN, /**< the check was not executed, as far as is known */
  LK_CHECK_EXISTS,
  LK_CHECK_MISSING
} lk_check_result;

/** By `err` of a check, a read or a write of own. All need a permission, and a
    server looks for the node first: NO_AUTH means that it is there. */
lk_check_result lk__check_result_of(int err);
/** The same of this node, which may be another's by now where the name is not
    unique. */
lk_check_result lk__contender_check_result(const lk_contender *ct, int err);
/** A check or a read of own was answered. */
void lk__contender_own_checked(lk_contender *ct, lk_check_result v);

/* ---- for the session lease --------------------------------------------- */

/** There is a connection. */
void lk__contender_resume(lk_contender *ct);
/** There is none any more. */
void lk__contender_suspend(lk_contender *ct);
/** The session is over, and with it our node. */
void lk__contender_session_expired(lk_contender *ct);
/** No request will be possible any more. */
void lk__contender_client_closed(lk_contender *ct, int err);
/** Own cannot be read, so it will not be watched. */
void lk__contender_own_unreadable(lk_contender *ct);
/** A role that counts, and another limit: look whether it is enough by now. */
void lk__contender_limit_changed(lk_contender *ct);
/** HELD, but its owner may grant it to nobody: the lease is not long enough.
    Renew that; LK_NOTICE_LEASE_PROVEN follows, unless it is UNSURE or lost by
   then. */
void lk__contender_await_lease(lk_contender *ct);
/** It is long enough: tell who awaits it. */
void lk__contender_lease_renewed(lk_contender *ct);
/** HELD or UNSURE: see whether the other is right by now. */
void lk__contender_review_lease(lk_contender *ct);
/** HELD or UNSURE: read and watch own where that is due. */
void lk__contender_supervise_own(lk_contender *ct);

/* ---- among the files of the machine ------------------------------------ */

/** Take the step that the table has. Without one the event was raised in error:
    debug builds end the process, others log it and recover. */
void lk__contender_step(lk_contender *ct, lk_contender_event ev);
/** It is neither held nor leaving, and has no request under way, and no watch
    that wakes it. */
bool lk__contender_is_stuck(const lk_contender *ct);
/** Something went wrong here: go on from what a server says. A contender that
    waits lists anew, a holder verifies, and one that leaves cleans up again. */
void lk__contender_restart(lk_contender *ct);
/** Fail: tell the owner, and leave. */
void lk__contender_fail(lk_contender *ct, int err);
/** A request ended with `err`, which says nothing of the recipe: pause, or
    fail. */
void lk__contender_request_failed(lk_contender *ct, int err);
/** Whether a read ended since its answer was larger than the client takes. That
    breaks the connection, which is told first: the attempt would pause, and ask
    for the same on each connection. It ends instead. */
bool lk__contender_fail_if_too_big(lk_contender *ct, int err);
/** Own is not there: try anew, at the end of the queue. */
void lk__contender_own_missing(lk_contender *ct, int err);
/** Nobody is ahead, and it is `now_ms`. */
void lk__contender_try_grant(lk_contender *ct, int64_t now_ms);
/** Whether it may be granted at `now_ms`, as far as the lease goes. */
bool lk__contender_lease_suffices(const lk_contender *ct, int64_t now_ms);
/** A check of own: proves that it stands, and renews the lease. */
int lk__contender_check_own(lk_contender *ct, lk_multi_cb done);
/** Held, and own is gone. */
void lk__contender_lose(lk_contender *ct, int err);
/** A list came before own was made: go on, or not. */
void lk__contender_take_first_list(lk_contender *ct, const lk_bytes *names,
                                   size_t count);
/** A list came that shows who is ahead. */
void lk__contender_take_list(lk_contender *ct, const lk_bytes *names,
                             size_t count);
void lk__contender_notify(lk_contender *ct, const lk_notice *notice);
void lk__contender_notify_position(lk_contender *ct);

lk_client *lk__contender_client(const lk_contender *ct);
/** The name of our node is fixed. */
static inline bool lk__contender_is_single_node(const lk_contender *ct)
{
  return ct->own.identity == LK_IDENTITY_NONE;
}
/** The name of our node; as far as it is known before it is made. */
static inline char *lk__contender_own_name(const lk_contender *ct)
{
  return ct->own.path + strlen(ct->own.dir) + 1;
}
/** What a server makes our names of. */
lk_bytes lk__contender_name_base(const lk_contender *ct);
/** What our node is to hold. */
lk_bytes lk__contender_data(const lk_contender *ct);
/** A name that is not unique may be another's by now: read it first. */
bool lk__contender_own_unverified(const lk_contender *ct);
void lk__contender_ref(lk_contender *ct);
void lk__contender_unref(lk_contender *ct);
/** The result of a request: counts it if it was accepted. */
int lk__contender_count_request(lk_contender *ct, int err);
/** At the start of each callback; false: its answer means nothing any more.
    lk__contender_unref() ends the callback. */
bool lk__contender_take_reply(lk_contender *ct);
/** What is under way means nothing any more. */
void lk__contender_ignore_replies(lk_contender *ct);
/** All requests have been answered. */
static inline bool lk__contender_has_all_replies(const lk_contender *ct)
{
  return ct->requests.sent == ct->requests.replied;
}
/** Let the server rest; lk__contender_resume() follows. */
void lk__contender_start_pause(lk_contender *ct, int64_t ms);
/** As long as seems right, longer each time in a row. */
int64_t lk__contender_pause_ms(lk_contender *ct);

/** What became of our node, by the error that its create ended with. */
lk_own_state lk__own_state_after_create(int err);
/** Ours among names that were listed; `at` NULL: none. */
lk_bytes lk__contender_find_own_name(const lk_contender *ct,
                                     const lk_bytes *names, size_t count);
/** Take over the name that a server made of ours. false: it is another. */
bool lk__contender_set_own_name(lk_contender *ct, lk_bytes name);
/** Keep in `ahead` who is ahead by `p`. false: no memory. */
bool lk__predecessors_set(lk_contender *ct, const lk_queue_position *p);
/** Drop path `i`. */
void lk__predecessors_remove(lk_predecessors *a, size_t i);
/** Pred is the first of all. */
void lk__predecessors_keep_direct(lk_predecessors *a);

void lk__contender_cancel_watches(lk_contender *ct);
/** A read of own, with a watch; with a fixed name, of whose node is there. */
int lk__contender_read_own(lk_contender *ct, lk_get_cb done);
/** The read of own, with a watch. */
int lk__contender_watch_own(lk_contender *ct);
/** See whether somebody has written Curator's request to let go into own. */
void lk__contender_check_revocation(lk_contender *ct, const lk_bytes *data);
/** The directory is missing. */
void lk__contender_parent_missing(lk_contender *ct);

/* What states begin with: 0, or why a request was refused. */
int lk__enter_listing_first(lk_contender *ct);
int lk__enter_creating(lk_contender *ct);
/** The same, where `beside` holds. */
int lk__enter_creating_downgraded(lk_contender *ct);
int lk__enter_creating_parents(lk_contender *ct);
int lk__enter_recovering(lk_contender *ct);
int lk__enter_reading_candidates(lk_contender *ct);
int lk__enter_listing(lk_contender *ct);
int lk__enter_setting_watches(lk_contender *ct);
int lk__enter_reading_predecessors(lk_contender *ct);
int lk__enter_reading_own(lk_contender *ct);
int lk__enter_checking_own(lk_contender *ct);
void lk__enter_held(lk_contender *ct);

/** Take down which of the names that were listed could be our node. 0 or
    LK_ERR_NO_MEMORY. */
int lk__candidates_take(lk_contender *ct, const lk_bytes *names, size_t count);
void lk__candidates_free(lk_contender *ct);

/** A node of its own name: ask whose it is. 0, or why that was refused. */
int lk__single_node_read(lk_contender *ct);
/** What was watched while it was another's has changed. */
void lk__single_node_on_event(lk_contender *ct, lk_event_type type);
/** Whether a node is the one that we made. */
bool lk__single_node_is_ours(const lk_contender *ct, const lk_stat *stat);

/** LEAVING: ask for the nodes of this session instead of a list that is too
    long. */
int lk__contender_list_by_session(lk_contender *ct);

/** LEAVING: do the next thing, if it can be done now. */
void lk__cleanup_go(lk_contender *ct);
/** LEAVING: nothing of ours was found, or why it could not be looked for. */
void lk__cleanup_searched(lk_contender *ct, int err);
/** LEAVING: the list that was asked for came. */
void lk__cleanup_listed(lk_contender *ct, int err, const lk_bytes *names,
                        size_t count);
/** LEAVING: the read of a fixed name came; NULL: `err` says why not. */
void lk__cleanup_read(lk_contender *ct, int err, const lk_stat *stat);

#endif
