/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Direct handoff (rule H in doc/architecture.md): a contender takes the lock
 * after a deletion event alone, without another list. When is this safe?
 *
 * A server has a queue. Own is queued behind RIVALS other nodes of any kind.
 * Their clients release or cancel at any time. A writer of a read-write lock
 * that holds may be downgraded first, to a reader with the same number. An
 * operator may delete own. Own's client lists, and watches pred (the direct
 * predecessor) by reading it. It watches own as soon as it knows only one
 * predecessor, or with a heartbeat before that. When pred is deleted it reads
 * the other predecessors, or lists again. Its connection breaks at any time, any number of times.
 * The client then lists again, or re-registers its watches and continues to
 * wait. Its lease deadline may pass, and then its session may expire.
 *
 * Verified: a grant without a list is right. When pred was deleted, own
 * existed; the session has not expired; no predecessor of own exists. (The
 * event of own's deletion may be in flight, as after a list.) And no client
 * waits for an event that has already happened.
 *
 * With one of these the rule must fail:
 *   NO_CONDITION_1       there may be other predecessors besides pred
 *   NO_CONDITION_2       the connection may differ from that of the list
 *   NO_CONDITION_3       own need not be watched
 *   NO_CONDITION_4       a writer in the list may have been downgraded
 *   CONDITION_4_OF_PRED  pred was no such writer; others may have been
 *   NO_CONDITION_5       the queue's counter may be near its maximum
 *   NO_CONDITION_6       the lease deadline may have passed
 *   IGNORE_GONE          a deletion of pred before it was watched is ignored
 *   NO_GRANT             there is no such grant (the rule must be of use)
 *
 * Conditions 2 and 3 overlap. Here a watch counts as confirmed once it was set,
 * also if it was only re-registered on another connection. If its node had to
 * be read there first (READ_OWN_AGAIN), condition 2 would not be needed.
 *
 * Left out, without loss:
 * - Servers that lag. The replies of a lagging server equal those of a current
 *   one over a slow connection, and messages here take any time. A server with
 *   a smaller zxid than the client has seen refuses the client.
 * - Later contenders. They are queued behind own, unless the queue's counter
 *   overflows: then one sorts before own.
 * - Changes of data. They make a client read again and grant nothing.
 * - How a lease is proven: see lease.pml. Here it only matters that no session
 *   expires before its client's lease deadline.
 */

#ifndef RIVALS
#define RIVALS 2
#endif

/* Names, in the order of their numbers. A set of nodes is a byte of bits, also
 * in the reply to a list. */
#define LATER 0             /* created after own, sorts before it */
#define TWIN(i) (2 * i + 1) /* the downgraded reader of writer i */
#define RIVAL(i) (2 * i + 2)
#define OWN (2 * RIVALS + 1)

#define BIT(name) (1 << (name))
#define BEFORE(name) (BIT(name) - 1)
#define STANDS(name) ((nodes & BIT(name)) != 0)

mtype = {
  LIST, READ, WATCH, REARM,    /* requests */
  LISTED, HERE, REFUSED, GONE, /* replies */
  DELETED,                     /* an event */
  CUT                          /* a new connection */
};

chan asked = [RIVALS + 4] of {mtype, byte};
chan told = [RIVALS * 2 + 6] of {mtype, byte, bool};

/* ---- the server ---------------------------------------------------------- */

byte nodes = 0;     /* those that exist */
byte exclusive = 0; /* exclusive ones */
byte writ = 0;      /* of these, writers of a read-write lock */
byte watched = 0;   /* by own's client, on the current connection */

bool own_exclusive;
bool own_readable;
bool counter_in_range;
bool expired = false; /* own's session */
bool waits = false;   /* own's client, for the lock */
bool leased = true;   /* the lease deadline of own's client has not passed */

/* The predecessors of own in a set. */
#define AHEAD(set) \
  ((set) & BEFORE(OWN) & (own_exclusive -> BEFORE(OWN) : exclusive))

/* Each message notes whether own existed when it was sent. */
inline tell(what, which)
{
  assert(nfull(told));
  told ! what, which, STANDS(OWN)
}

inline remove(name)
{
  printf("node %d goes\n", name);
  nodes = nodes & ~BIT(name);
  if
  :: watched & BIT(name) ->
     watched = watched & ~BIT(name);
     tell(DELETED, name)
  :: else
  fi
}

proctype server() provided (waits)
{
  byte name;

end:
  do
  :: atomic { asked ? LIST(_) -> tell(LISTED, nodes) }
  :: atomic {
       asked ? READ(name) ->
       if
       :: STANDS(name) -> tell(HERE, name)
       :: else -> tell(GONE, name)
       fi;
       name = 0
     }
  :: atomic {
       asked ? WATCH(name) ->
       if
       :: !STANDS(name) -> tell(GONE, name)
       :: STANDS(name) && name == OWN && !own_readable -> tell(REFUSED, name)
       :: else -> watched = watched | BIT(name); tell(HERE, name)
       fi;
       name = 0
     }
  :: atomic { /* a path of a setWatches */
       asked ? REARM(name) ->
       if
       :: STANDS(name) -> watched = watched | BIT(name)
       :: else -> tell(DELETED, name)
       fi;
       name = 0
     }
  od
}

/* ---- other clients, while own's client waits ----------------------------- */

proctype rival(byte i) provided (waits)
{
end:
  do
  :: atomic { STANDS(RIVAL(i)) -> remove(RIVAL(i)) }
  :: atomic { STANDS(TWIN(i)) -> remove(TWIN(i)) }
  :: atomic { /* a writer that holds is downgraded; the reader remains when
                 the write node is deleted */
       (writ & BIT(RIVAL(i))) && STANDS(RIVAL(i)) && !STANDS(TWIN(i)) &&
         !(nodes & BEFORE(TWIN(i))) ->
       printf("node %d, a reader, joins its writer %d\n", TWIN(i), RIVAL(i));
       nodes = nodes | BIT(TWIN(i))
     }
  od
}

proctype later() provided (waits)
{
end:
  do
  :: atomic {
       !counter_in_range && !STANDS(LATER) ->
       printf("node %d comes\n", LATER);
       nodes = nodes | BIT(LATER)
     }
  :: atomic { STANDS(LATER) -> remove(LATER) }
  od
}

proctype operator() provided (waits)
{
end:
  do
  :: atomic { STANDS(OWN) -> remove(OWN) }
  od
}

proctype network() provided (waits)
{
  mtype what;
  byte name;

end:
  do
  :: atomic {
       do
       :: asked ? _, _
       :: told ? _, _, _
       :: empty(asked) && empty(told) -> break
       od;
       printf("the connection breaks\n");
       watched = 0;
       tell(CUT, 0)
     }
  od
}

proctype session() provided (waits)
{
end:
  do
  :: atomic { leased -> printf("the lease runs out\n"); leased = false }
  :: atomic {
       !leased && !expired -> printf("the lease runs again\n"); leased = true
     }
  :: atomic {
       !leased && !expired ->
       printf("the session expires\n");
       expired = true;
       remove(OWN)
     }
  od
}

/* ---- own's client -------------------------------------------------------- */

/* By the last list. */
byte ahead = 0;
bool writ_ahead;
bool in_range;

bool listing = false;     /* a list is outstanding */
byte awaited = 0;         /* names that are being read */
byte pred = 0;            /* the direct predecessor */
bool same_connection;     /* as that of the list */
bool own_watched = false; /* the read was answered, and there was no event */
bool own_refused = false; /* a read was answered: own cannot be read */

#ifdef NO_CONDITION_1
#define CONDITION_1 true
#else
#define CONDITION_1 (ahead == 0)
#endif
#ifdef NO_CONDITION_2
#define CONDITION_2 true
#else
#define CONDITION_2 same_connection
#endif
#ifdef NO_CONDITION_3
#define CONDITION_3 true
#else
#define CONDITION_3 own_watched
#endif
#ifdef NO_CONDITION_4
#define CONDITION_4 true
#elif defined(CONDITION_4_OF_PRED)
#define CONDITION_4 (!own_exclusive || !(writ & BIT(pred)))
#else
#define CONDITION_4 (!own_exclusive || !writ_ahead)
#endif
#ifdef NO_CONDITION_5
#define CONDITION_5 true
#else
#define CONDITION_5 in_range
#endif
#ifdef NO_CONDITION_6
#define CONDITION_6 true
#else
#define CONDITION_6 leased
#endif

#define RULE_H                                                  \
  (CONDITION_1 && CONDITION_2 && CONDITION_3 && CONDITION_4 && \
   CONDITION_5 && CONDITION_6)

inline ask(what, which)
{
  assert(nfull(asked));
  printf("the client asks %e %d\n", what, which);
  asked ! what, which
}

inline list()
{
  listing = true;
  ahead = 0;
  pred = 0;
  awaited = 0;
  ask(LIST, 0)
}

inline watch(name)
{
  awaited = awaited | BIT(name);
  ask(WATCH, name)
}

/* Pred is the last of the predecessors. */
inline find_pred()
{
  pred = OWN - 1;
  do
  :: !(ahead & BIT(pred)) -> pred--
  :: else -> break
  od
}

#define OWN_IS_UNWATCHED \
  (!own_watched && !own_refused && !(awaited & BIT(OWN)))

inline watch_own_if_next()
{
  if
  :: ahead == BIT(pred) && OWN_IS_UNWATCHED -> watch(OWN)
  :: else
  fi
}

inline park()
{
  find_pred();
  watch(pred);
  watch_own_if_next()
}

/* Pred is deleted: watch the next one and own, and read the others. */
inline probe()
{
  find_pred();
  watch(pred);
  name = pred;
  do
  :: name > 0 ->
     name--;
     if
     :: ahead & BIT(name) -> awaited = awaited | BIT(name); ask(READ, name)
     :: else
     fi
  :: else -> break
  od;
  if
  :: OWN_IS_UNWATCHED -> watch(OWN)
  :: else
  fi
}

#ifdef READ_OWN_AGAIN
#define AGAIN(name) own_watched = false; watch(name)
#else
#define AGAIN(name) ask(REARM, name)
#endif

inline register_again()
{
  if
  :: ask(REARM, pred); AGAIN(OWN)
  :: AGAIN(OWN); ask(REARM, pred)
  fi
}

inline check_grant()
{
  printf("the client takes the lock\n");
#ifdef NO_GRANT
  assert(false);
#endif
  assert(own_stood);
  assert(!expired);
  assert(!STANDS(OWN) || !AHEAD(nodes))
}

inline see_who_left()
{
  if
  :: listing || (awaited & BEFORE(OWN))
  :: !listing && !(awaited & BEFORE(OWN)) && (ahead & BIT(pred)) ->
     watch_own_if_next()
  :: else ->
     if
     :: RULE_H -> check_grant(); waits = false; break
     :: !(RULE_H) -> list() /* the list was short, or no one may be left */
     :: !(RULE_H) && ahead != 0 -> probe()
     fi
  fi
}

inline take_list(set)
{
  listing = false;
  same_connection = true;
  in_range = counter_in_range;
  ahead = AHEAD(set);
  writ_ahead = (set & BEFORE(OWN) & writ) != 0
}

inline take_cut()
{
  same_connection = false;
  if
  :: !listing && awaited == 0 && own_watched -> register_again()
  :: own_watched = false; list()
  fi
}

proctype contender()
{
  mtype what;
  byte name;
  bool own_stood;

  atomic { nodes = nodes | BIT(OWN); waits = true; list() }
  do
  :: atomic {
       told ? what, name, own_stood ->
       printf("the client is told %e %d\n", what, name);
       if
       :: what == CUT -> take_cut()
       :: what == LISTED ->
          take_list(name);
          if
          :: !(name & BIT(OWN)) -> waits = false; break /* own was deleted */
          :: (name & BIT(OWN)) && ahead == 0 ->
             waits = false; /* granted by the list */
             break
          :: else -> park()
          fi
       :: what == HERE ->
          awaited = awaited & ~BIT(name);
          own_watched = own_watched || name == OWN;
          see_who_left()
       :: what == REFUSED ->
          awaited = awaited & ~BIT(name);
          own_refused = true
#ifdef IGNORE_GONE
       :: what == GONE && name != OWN ->
          awaited = awaited & ~BIT(name)
#endif
       :: else -> /* GONE or DELETED */
          if
          :: name == OWN -> waits = false; break
          :: else
          fi;
          awaited = awaited & ~BIT(name);
          ahead = ahead & ~BIT(name);
          see_who_left()
       fi;
       what = 0;
       name = 0;
       own_stood = false
     }
  :: atomic { /* a heartbeat */
       !listing && (ahead & BIT(pred)) && OWN_IS_UNWATCHED -> watch(OWN)
     }
  od
}

/* No client waits for an event that has already happened. */
proctype check()
{
end:
  atomic {
    waits && empty(asked) && empty(told) &&
      (listing || awaited != 0 || !STANDS(pred)) ->
    assert(false)
  }
}

init {
  byte i = 0;

  atomic {
    if :: own_exclusive = true :: own_exclusive = false fi;
    if :: own_readable = true :: own_readable = false fi;
    if :: counter_in_range = true :: counter_in_range = false fi;
    exclusive = BIT(LATER);
    do
    :: i < RIVALS ->
       nodes = nodes | BIT(RIVAL(i));
       if
       :: exclusive = exclusive | BIT(RIVAL(i))
       :: exclusive = exclusive | BIT(RIVAL(i)); writ = writ | BIT(RIVAL(i))
       :: skip /* a reader */
       fi;
       run rival(i);
       i++
    :: else -> break
    od;
    run server();
    run later();
    run operator();
    run network();
    run session();
    run contender();
    run check()
  }
}
