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
#include "recipes/common/error_meaning.h"
#include "recipes/lock/acquisition.h"
#include "recipes/queue/roles.h"

typedef struct lk_keeper lk_keeper;

typedef enum lk_contend_state {
  LK_CONTEND_NO_STEP, /* what the table holds for an event that cannot be */
  LK_CONTEND_IDLE,
  LK_CONTEND_PAUSED,   /* until there is a connection, or the server had rest */
  LK_CONTEND_PEEKING,  /* list under way: is it worth while to make own? */
  LK_CONTEND_CREATING, /* create and list under way */
  LK_CONTEND_PARENTS,  /* creates of directories, create and list under way */
  LK_CONTEND_LOOKING,  /* check and list under way: was the create executed? */
  LK_CONTEND_SEARCHING, /* reads of names that could be ours under way */
  LK_CONTEND_LISTING,   /* list under way */
  LK_CONTEND_PARKING,   /* reads of pred and own under way */
  LK_CONTEND_WAITING,   /* for the pred's deletion */
  LK_CONTEND_PROBING,   /* reads of all that are left before us under way */
  LK_CONTEND_READING,   /* nobody ahead; read of own under way, for the token */
  LK_CONTEND_CHECKING, /* nobody ahead; check of own under way, for the lease */
  LK_CONTEND_HELD,
  LK_CONTEND_UNSURE,  /* held, but the lease runs out */
  LK_CONTEND_LEAVING, /* own is to be deleted, see lk_own */
  LK_CONTEND_OVER,    /* nothing of ours is on the server */
  LK_CONTEND_NSTATES,
  /* what the table holds for an event that changes nothing */
  LK_CONTEND_STAY = LK_CONTEND_NSTATES
} lk_contend_state;

typedef enum lk_contend_event {
  LK_EV_NEW,       /* go on: own does not exist */
  LK_EV_PEEK,      /* the same, and may not have to */
  LK_EV_MAYBE,     /* go on: own may exist */
  LK_EV_MADE,      /* go on: own exists */
  LK_EV_NO_PARENT, /* the directory is missing */
  LK_EV_ALIKE,     /* names that could be ours are there */
  LK_EV_ABSENT,    /* own is not there */
  LK_EV_BEHIND,    /* somebody is ahead */
  LK_EV_PARKED,    /* pred is watched */
  LK_EV_LEFT,      /* pred has gone, a few are left */
  LK_EV_AGAIN,     /* only a list can tell */
  LK_EV_UNREAD,    /* nobody ahead, but the token is not known */
  LK_EV_STALE,     /* nobody ahead, but the lease has run out */
  LK_EV_FIRST,     /* nobody ahead: granted */
  LK_EV_HALT,      /* the connection broke, or the server is overloaded */
  LK_EV_DOUBT,     /* the lease runs out */
  LK_EV_PROVEN,    /* it does not */
  LK_EV_STOP,      /* cancelled, failed, released */
  LK_EV_GONE,      /* own does not exist and will not */
  LK_EV_COUNT
} lk_contend_event;

extern const lk_contend_state lk__contend_table[LK_CONTEND_NSTATES]
                                               [LK_EV_COUNT];

/** What is known of our node. */
typedef enum lk_own {
  LK_OWN_NONE,  /**< it does not exist */
  LK_OWN_ASKED, /**< its create is under way */
  LK_OWN_MAYBE, /**< its create was sent and the answer was lost */
  LK_OWN_MADE   /**< it exists, as far as we were told */
} lk_own;

/** A node whose name is fixed (LK_UNIQUE_NOT): there is no queue, and who makes
    it holds. */
typedef struct lk_fixed {
  const char *name;  /**< without the directory */
  int32_t poll_ms;   /**< look again after so long; 0: watch */
  int32_t spread_ms; /**< how much of a pause chance adds; 0: nothing */
} lk_fixed;

/** What an attempt is for. All of it must stay until the attempt is stopped,
    has ended or was lost. */
typedef struct lk_contend_config {
  const lk_role *role;
  lk_unique unique;
  const lk_fixed *fixed; /**< of LK_UNIQUE_NOT */
  const char *dir;       /**< there "" for the root */
  lk_bytes dir_data;     /**< what it is made with; `at` NULL: nothing */
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
} lk_contend_config;

/** Who stands before us, as full paths. */
typedef struct lk_ahead {
  char *block; /**< holds the paths */
  size_t cap;
  size_t count;
  size_t kept;                  /**< min(count, LK_NEAREST), or 1 of more */
  const char *path[LK_NEAREST]; /**< nearest first; the first is pred */
  const char *head;             /**< the first of all */
  bool writ_ahead;
  bool in_range;
  uint64_t connection; /**< which the list came on */
} lk_ahead;

/** What could be our node, by the numbers in the names. */
typedef struct lk_search {
  int64_t *suffix; /**< ascending; read from the end */
  size_t count;    /**< not yet asked for */
  size_t next;     /**< the next to be answered */
  bool found;
  bool enough; /**< the rest is too old */
  bool strict; /**< the numbers are in the order of creation */
  int err;
} lk_search;

struct lk_contend {
  lk_attempt attempt; /* of one part: itself */
  lk_contend *self;
  lk_link link; /* in the keeper's list, until it is OVER */
  lk_keeper *lease;
  size_t refs;           /* the machine's until it is OVER, requests, callers */
  const lk_owner *owner; /* NULL: nobody */
  void *owner_arg;
  const lk_contend_config *config; /* only while it is neither LEAVING nor
                                      OVER; dir and unique are kept */
  const lk_role *role;             /* as the config */
  lk_unique unique;
  lk_contend_state state;
  uint64_t asked;    /* requests made */
  uint64_t answered; /* of these */
  uint64_t outdated; /* answers up to this one are of an earlier try */
  lk_timer rest;     /* PAUSED, LEAVING: ends a pause for the server */
  unsigned rests;    /* pauses in a row */

  /* our node */
  lk_own own;
  uint64_t token; /* its czxid, 0: not known */
  bool unreadable;
  lk_watch *own_watch; /* asked for or confirmed */
  uint64_t watched_on; /* connection on which it was confirmed */
  unsigned misses;     /* how often it was gone */
  lk_contend *beside;  /* of the same owner, which held when this began: a
                          writer that takes the read side as well; or NULL */
  uint64_t lent;       /* its token, which counts instead of ours; 0: none */
  uint64_t seen_on;    /* connection on which it was known to be ours */
  uint64_t older;      /* zxid seen before its create was sent */
  lk_search search;
  char prefix[LK_PREFIX_LEN + 1]; /* see lk_unique */
  size_t base_len;                /* of `node` without the suffix */
  char *dir;                      /* behind this struct */
  char *node;                     /* behind that; room for the suffix */
  char *data; /* behind that: what it holds where a UUID ends it, or NULL */
  size_t data_len;

  /* the try under way */
  unsigned parents; /* how often the directory was missing in a row */
  int create_err;
  int parent_err; /* why the directory could not be made, or 0 */
  int proof_err;
  int pred_err;
  int own_err;
  size_t probe_at; /* probes answered */
  bool probe_gone[LK_PROBES];
  lk_watch *pred_watch; /* of the pred's data, or of the directory's children */
  bool pred_gone;
  bool by_children; /* the pred cannot be read */
  bool recount;     /* the limit has changed since the list */
  uint64_t counted; /* of a permit that counts: zxid that its list shows */
  bool waited;      /* somebody was ahead */
  bool checked;     /* a check was answered, just before what is judged */
  bool occupied;    /* a node of our fixed name was another's: look first */
  size_t told_position;
  lk_ahead ahead;

  /* held */
  int64_t read_due_ms; /* when own is to be watched, if it is not */
  int64_t look_due_ms; /* when it is to be looked at, if nothing checks it */
  bool proven;         /* own was seen since the last doubt */
  bool awaits;         /* see lk__contend_await() */
  bool revoked;        /* somebody asked us to let go */
  uint64_t beat;       /* number of the beat that last checked own, and where */
  size_t beat_chunk;
  size_t beat_index;

  /* leaving */
  bool too_long; /* a list, or a node in it, is larger than the client takes */
  bool looking;  /* check and list under way */
  bool deleting;
};

/* ---- for owners -------------------------------------------------------- */

/** Prepare an attempt; NULL: no memory. */
lk_contend *lk__contend_new(lk_keeper *k, const lk_contend_config *config,
                            const lk_owner *owner, void *arg);
/** Before it begins: `writer`, of the same owner, holds. Our node is then made
    with its number and granted at once. */
void lk__contend_beside(lk_contend *ct, lk_contend *writer);
/** Begin. The owner may be told of an end before this returns. */
void lk__contend_begin(lk_contend *ct);
/** Want it no more: cancel, give up or release. The owner is told nothing,
    except `gone` if `tell` is set. */
void lk__contend_stop(lk_contend *ct, bool tell);
/** Begin where somebody else has just asked for our node, together with others;
    lk__contend_created() tells what became of it. Mark all, then begin. */
void lk__contend_mark_joint(lk_contend *ct);
void lk__contend_created(lk_contend *ct, int err, const char *path,
                         uint64_t zxid);
/** Before that: ask for the directories. 0, or why a request was refused. */
int lk__contend_ask_parents(lk_contend *ct);
bool lk__contend_holds(const lk_contend *ct);
/** The fencing token. */
uint64_t lk__contend_token(const lk_contend *ct);
/** Until when it is certain that we hold; INT64_MIN unless held. */
int64_t lk__contend_deadline(const lk_contend *ct);

/** What a check of our node says. */
typedef enum lk_verdict {
  LK_VERDICT_UNKNOWN, /**< the check was not executed, as far as is known */
  LK_VERDICT_THERE,
  LK_VERDICT_MISSING
} lk_verdict;

/** By `err` of a check, a read or a write of own. All need a permission, and a
    server looks for the node first: NO_AUTH means that it is there. */
lk_verdict lk__contend_verdict(int err);
/** The same of this node, which may be another's by now where the name is not
    unique. */
lk_verdict lk__contend_weigh(const lk_contend *ct, int err);
/** A check or a read of own was answered. */
void lk__contend_checked(lk_contend *ct, lk_verdict v);

/* ---- for the keeper ---------------------------------------------------- */

/** There is a connection. */
void lk__contend_go(lk_contend *ct);
/** There is none any more. */
void lk__contend_break(lk_contend *ct);
/** The session is over, and with it our node. */
void lk__contend_expire(lk_contend *ct);
/** No request will be possible any more. */
void lk__contend_close(lk_contend *ct, int err);
/** Own cannot be read, so it will not be watched. */
void lk__contend_unwatched(lk_contend *ct);
/** A role that counts, and another limit: look whether it is enough by now. */
void lk__contend_recount(lk_contend *ct);
/** HELD, but its owner may grant it to nobody: the lease is not long enough.
    Renew that; LK_NEWS_PROVEN follows, unless it is UNSURE or lost by then. */
void lk__contend_await(lk_contend *ct);
/** It is long enough: tell who awaits it. */
void lk__contend_stop_await(lk_contend *ct);
/** HELD or UNSURE: see whether the other is right by now. */
void lk__contend_review(lk_contend *ct);
/** HELD or UNSURE: read and watch own where that is due. */
void lk__contend_supervise(lk_contend *ct);

/* ---- among the files of the machine ------------------------------------ */

/** Take the step that the table has. Without one the event was raised in error:
    debug builds end the process, others log it and recover. */
void lk__contend_step(lk_contend *ct, lk_contend_event ev);
/** It is neither held nor leaving, and has no request under way, and no watch
    that wakes it. */
bool lk__contend_is_stuck(const lk_contend *ct);
/** Something went wrong here: go on from what a server says. A contender that
    waits lists anew, a holder verifies, and one that leaves cleans up again. */
void lk__contend_recover(lk_contend *ct);
/** Fail: tell the owner, and leave. */
void lk__contend_end(lk_contend *ct, int err);
/** A request ended with `err`, which says nothing of the recipe: pause, or
    fail. */
void lk__contend_trouble(lk_contend *ct, int err);
/** Whether a read ended since its answer was larger than the client takes. That
    breaks the connection, which is told first: the attempt would pause, and ask
    for the same on each connection. It ends instead. */
bool lk__contend_too_big(lk_contend *ct, int err);
/** Own is not there: try anew, at the end of the queue. */
void lk__contend_absent(lk_contend *ct, int err);
/** Nobody is ahead, and it is `now_ms`. */
void lk__contend_first(lk_contend *ct, int64_t now_ms);
/** Whether it may be granted at `now_ms`, as far as the lease goes. */
bool lk__contend_is_leased(const lk_contend *ct, int64_t now_ms);
/** A check of own: proves that it stands, and renews the lease. */
int lk__contend_check(lk_contend *ct, lk_multi_cb done);
/** Held, and own is gone. */
void lk__contend_lost(lk_contend *ct, int err);
/** A list came before own was made: go on, or not. */
void lk__contend_peeked(lk_contend *ct, const lk_bytes *names, size_t count);
/** A list came that shows who is ahead. */
void lk__contend_placed(lk_contend *ct, const lk_bytes *names, size_t count);
void lk__contend_tell(lk_contend *ct, const lk_news *news);
void lk__contend_tell_position(lk_contend *ct);

lk_client *lk__contend_client(const lk_contend *ct);
/** The name of our node is fixed. */
static inline bool lk__contend_is_fixed(const lk_contend *ct)
{
  return ct->unique == LK_UNIQUE_NOT;
}
/** The name of our node; as far as it is known before it is made. */
static inline char *lk__contend_name(const lk_contend *ct)
{
  return ct->node + strlen(ct->dir) + 1;
}
/** What a server makes our names of. */
lk_bytes lk__contend_base(const lk_contend *ct);
/** What our node is to hold. */
lk_bytes lk__contend_data(const lk_contend *ct);
/** A name that is not unique may be another's by now: read it first. */
bool lk__contend_doubtful(const lk_contend *ct);
void lk__contend_ref(lk_contend *ct);
void lk__contend_unref(lk_contend *ct);
/** The result of a request: counts it if it was accepted. */
int lk__contend_asked(lk_contend *ct, int err);
/** At the start of each callback; false: its answer means nothing any more.
    lk__contend_unref() ends the callback. */
bool lk__contend_answered(lk_contend *ct);
/** What is under way means nothing any more. */
void lk__contend_outdate(lk_contend *ct);
/** All requests have been answered. */
static inline bool lk__contend_quiet(const lk_contend *ct)
{
  return ct->asked == ct->answered;
}
/** Let the server rest; lk__contend_go() follows. */
void lk__contend_rest(lk_contend *ct, int64_t ms);
/** As long as seems right, longer each time in a row. */
int64_t lk__contend_rest_ms(lk_contend *ct);

/** What became of our node, by the error that its create ended with. */
lk_own lk__own_after(int err);
/** Ours among names that were listed; `at` NULL: none. */
lk_bytes lk__contend_ours(const lk_contend *ct, const lk_bytes *names,
                          size_t count);
/** Take over the name that a server made of ours. false: it is another. */
bool lk__contend_adopt(lk_contend *ct, lk_bytes name);
/** Keep in `ahead` who is ahead by `p`. false: no memory. */
bool lk__ahead_keep(lk_contend *ct, const lk_place *p);
/** Drop path `i`. */
void lk__ahead_drop(lk_ahead *a, size_t i);
/** Pred is the first of all. */
void lk__ahead_is_pred(lk_ahead *a);

void lk__contend_drop_watches(lk_contend *ct);
/** A read of own, with a watch; with a fixed name, of whose node is there. */
int lk__contend_watch(lk_contend *ct, lk_get_cb done);
/** The read of own, with a watch. */
int lk__contend_watch_own(lk_contend *ct);
/** See whether somebody has written Curator's request to let go into own. */
void lk__contend_seek_revocation(lk_contend *ct, const lk_bytes *data);
/** The directory is missing. */
void lk__contend_no_parent(lk_contend *ct);

/* What states begin with: 0, or why a request was refused. */
int lk__enter_peeking(lk_contend *ct);
int lk__enter_creating(lk_contend *ct);
/** The same, where `beside` holds. */
int lk__enter_creating_beside(lk_contend *ct);
int lk__enter_parents(lk_contend *ct);
int lk__enter_looking(lk_contend *ct);
int lk__enter_searching(lk_contend *ct);
int lk__enter_listing(lk_contend *ct);
int lk__enter_parking(lk_contend *ct);
int lk__enter_probing(lk_contend *ct);
int lk__enter_reading(lk_contend *ct);
int lk__enter_checking(lk_contend *ct);
void lk__enter_held(lk_contend *ct);

/** Take down which of the names that were listed could be our node. 0 or
    LK_ERR_NO_MEMORY. */
int lk__search_take(lk_contend *ct, const lk_bytes *names, size_t count);
void lk__search_free(lk_contend *ct);

/** A node of its own name: ask whose it is. 0, or why that was refused. */
int lk__fixed_ask(lk_contend *ct);
/** What was watched while it was another's has changed. */
void lk__fixed_event(lk_contend *ct, lk_event_type type);
/** Whether a node is the one that we made. */
bool lk__fixed_is_ours(const lk_contend *ct, const lk_stat *stat);

/** LEAVING: ask for the nodes of this session instead of a list that is too
    long. */
int lk__owned_ask(lk_contend *ct);

/** LEAVING: do the next thing, if it can be done now. */
void lk__cleanup_go(lk_contend *ct);
/** LEAVING: nothing of ours was found, or why it could not be looked for. */
void lk__cleanup_searched(lk_contend *ct, int err);
/** LEAVING: the list that was asked for came. */
void lk__cleanup_listed(lk_contend *ct, int err, const lk_bytes *names,
                        size_t count);
/** LEAVING: the read of a fixed name came; NULL: `err` says why not. */
void lk__cleanup_read(lk_contend *ct, int err, const lk_stat *stat);

#endif
