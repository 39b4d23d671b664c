/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handoff without asking (rule H in doc/architecture.md): a contender that is
 * told of a deletion takes the lock without another list. When may it?
 *
 * There is a queue on a server. Own stands behind RIVALS others of any kind,
 * which release or cancel at any time; a writer of a read-write lock that holds
 * may become a reader first, with a node of the same number. An operator may
 * delete own. Own's client lists, watches pred and own by reading them, and
 * when pred has gone reads those that are left. Its connection breaks at any
 * time, however often; then it lists again, or has its watches registered again
 * and waits on. Its lease may run out, and then its session.
 *
 * Verified: a grant without a list is right. When pred went, own stood; the
 * session has not expired; nobody stands before own who keeps it out. (Own's
 * deletion may be on its way to us, as it may be after a list.) And nobody
 * waits for what has happened already.
 *
 * With one of these the rule must fail:
 *   NO_CONDITION_1       others may be ahead of pred
 *   NO_CONDITION_2       the connection may be another than the list's
 *   NO_CONDITION_3       own may not be watched
 *   NO_CONDITION_4       a writer in the list may have become a reader
 *   CONDITION_4_OF_PRED  pred was no such writer; others may have been
 *   NO_CONDITION_5       the queue's counter may be at its end
 *   NO_CONDITION_6       the lease may be over
 *   IGNORE_GONE          that pred went before it was watched is not heeded
 *   NO_GRANT             there is no such grant (that the rule is of use)
 *
 * Conditions 2 and 3 overlap. A watch counts as confirmed here once it was set,
 * also when it is only registered again on another connection. If its node had
 * to be read there first (READ_OWN_AGAIN), condition 2 would not be needed.
 *
 * What is left out, and why that loses nothing:
 * - Servers that lag. What a late server shows is what a timely one shows on a
 *   slow connection, and messages here take any time. A server that is older
 *   than what the client has seen refuses the client.
 * - Those who come later stand behind own and do not count, unless the queue's
 *   counter is at its end: then one comes that sorts lower.
 * - Data that changes: it makes a client read again, and grants nothing.
 * - How a lease is earned: see lease.pml. What it promises is all that counts
 *   here: no session expires while its client's lease runs.
 */

#ifndef RIVALS
#define RIVALS 2
#endif

/* Names, in the order of their numbers. A set of nodes is a byte of bits, which
 * is also what a list is told as. */
#define LATER 0             /* came after own and sorts lower */
#define TWIN(i) (2 * i + 1) /* the reader that writer i has become */
#define RIVAL(i) (2 * i + 2)
#define OWN (2 * RIVALS + 1)

#define BIT(name) (1 << (name))
#define BEFORE(name) (BIT(name) - 1)
#define STANDS(name) ((nodes & BIT(name)) != 0)

mtype = {
  LIST, READ, WATCH, REARM,    /* what a client asks */
  LISTED, HERE, REFUSED, GONE, /* what it is answered */
  DELETED,                     /* an event */
  CUT                          /* the connection is a new one */
};

chan asked = [RIVALS + 4] of {mtype, byte};
chan told = [RIVALS * 2 + 6] of {mtype, byte, bool};

/* ---- the server ---------------------------------------------------------- */

byte nodes = 0;     /* those that stand */
byte exclusive = 0; /* names of those that hold alone */
byte writ = 0;      /* of those, names of a read-write lock's writers */
byte watched = 0;   /* by own's client, on the present connection */

bool own_exclusive;
bool own_readable;
bool counter_in_range;
bool expired = false; /* own's session */
bool waits = false;   /* own's client, for the lock */
bool leased = true;   /* own's client may believe in its session */

/* Those of a set who keep own out. */
#define AHEAD(set) \
  ((set) & BEFORE(OWN) & (own_exclusive -> BEFORE(OWN) : exclusive))

/* Each message notes whether own stood when it left. */
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

/* ---- what goes on around own, while its client waits --------------------- */

proctype rival(byte i) provided (waits)
{
end:
  do
  :: atomic { STANDS(RIVAL(i)) -> remove(RIVAL(i)) }
  :: atomic { STANDS(TWIN(i)) -> remove(TWIN(i)) }
  :: atomic { /* a writer that holds becomes a reader; it remains one when its
                 first node goes */
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

bool listing = false;     /* a list was asked for */
byte awaited = 0;         /* names that are being read */
byte pred = 0;            /* the nearest of those ahead */
bool same_connection;     /* as that of the list */
bool own_watched = false; /* that was answered, and no event came */

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

/* Pred is the last of those ahead. */
inline find_pred()
{
  pred = OWN - 1;
  do
  :: !(ahead & BIT(pred)) -> pred--
  :: else -> break
  od
}

inline park()
{
  find_pred();
  watch(pred);
  if
  :: !own_watched -> watch(OWN)
  :: else
  fi
}

/* Pred has gone: watch the next one, and see who else has gone. */
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
  od
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
  :: listing || (ahead & BIT(pred)) || (awaited & BEFORE(OWN))
  :: else ->
     if
     :: RULE_H -> check_grant(); waits = false; break
     :: !(RULE_H) && ahead == 0 -> list()
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
          :: !(name & BIT(OWN)) -> waits = false; break /* lost its place */
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
          awaited = awaited & ~BIT(name)
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
  od
}

/* Nobody waits for what has happened already. */
proctype judge()
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
    run judge()
  }
}
