/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lease deadline ("The lease" in doc/architecture.md): until then no other
 * client can have been granted the lock. Is it right?
 *
 * There is a leader, a learner (a follower or an observer), and the rest of the
 * ensemble, which is a majority: what the rest accepts is committed. At any
 * time the rest may elect a new leader, with fresh session timeouts, and the
 * old leader does not notice. A client has a session and is connected to the
 * learner or to a leader. It has one outstanding request: a ping, which its
 * server answers; a sync, which any server answers that believes to lead; or a
 * check (a multi that changes nothing), which takes a majority. Each touches
 * the session at the client's server. A learner reports touches when its leader
 * pings it, in each unit of time, which is half a tick. Connections break at
 * any time, any number of times. The client then resumes its session on any
 * server.
 *
 * With TWO_HOPS the learner is an observer that is connected to a follower, its
 * observer master (observerMasterPort, ZOOKEEPER-3140). The observer master
 * pings the observer in each unit of time, takes its report as a touch, and
 * reports that when the leader pings it. It forwards requests at once.
 *
 * Verified: before the client's lease deadline no leader has expired its
 * session. The same at a grant, which needs at least a quarter of T until the
 * deadline.
 *
 * The rule: j was answered, and k, a check that was sent GAP after j's reply,
 * was answered on the same connection. Then the deadline is the time at which j
 * was sent, plus T, less DRIFT. The creation of the session is both j and k. A
 * resume is a j without gap, as the leader confirms it. Each deadline comes of
 * one j and one k, so the client here has one j at a time, any.
 *
 * With one of these the rule must fail:
 *   LEASE_BY_PING    any reply is evidence by itself
 *   LEASE_BY_CHECK   a check is evidence by itself
 *   LEASE_BY_SYNC    k may be a sync
 *   LEASE_BY_RESUME  a resume is evidence by itself
 *   NO_GAP           k may be sent as soon as j was answered
 *   FROM_ANSWER      the deadline counts from j's reply
 *   NO_DRIFT         nothing is subtracted for clocks that differ
 *   LATE_PING        a leader's ping may take any time (see below)
 *   T=7 TWO_HOPS     a quarter of T is less than a tick, the time of two hops
 *   LATE_REPORT      with TWO_HOPS, an observer's report may take any time
 *   NO_LEASE         no j and k are ever answered through the learner
 *   GRANT_BY_SYNC    a grant rests on a sync until its first check is answered
 *   NO_GRANT         no deadline ever leaves enough time for a grant
 * And these show what a condition depends on:
 *   OTHER_CONNECTION k may be of another connection than j. The rule still
 *                    holds: between them is a resume, which touches later. With
 *   RESUME_IS_NO_TOUCH, where a resume does not touch and is no j, it must fail
 *   WITH_SYNC        k is sent after the reply to a sync, which was sent GAP
 *                    after j's reply. The rule then holds with LATE_PING, too
 *   SLOW_REPORT      with TWO_HOPS, an observer's report may be half a tick
 *                    late. The rule then holds if GAP is 3, a quarter of six
 *                    ticks, and must fail if GAP is 2
 *
 * Time: the model has no absolute time, only ages and remaining times up to T,
 * so runs of any length are covered. Events within a unit happen in any order.
 * A message takes any time, but a leader's ping reaches its learner within the
 * unit in which it was sent: GAP is that long, and so is the period of pings.
 * Otherwise k could overtake the ping. Its reply comes behind the ping, but the
 * learner's report may still be in flight, and get lost.
 * With TWO_HOPS, k could also overtake the touch at the observer master, which
 * forwards k at once and the touch at the leader's next ping. So a report must
 * be on time: it arrives before the leader's ping of the same unit. A unit
 * begins with the observer master's ping. That is without loss, since the
 * leader's ping may come at any time after it in the unit.
 *
 * Left out, without loss:
 * - The client's other requests. They only touch the session more often.
 * - Votes and acknowledgements: the rest follows the old leader or it does not.
 *   A check that it has accepted precedes the election.
 * - A second election: the first leader may be any. A learner of the new one
 *   equals one of the old one; it may change sides.
 * - Ticks: here a session expires as soon as T has passed since the touch; a
 *   real leader waits for the end of the tick.
 * - A cut in one direction only: what it loses was slow before.
 * - With TWO_HOPS, a client at the observer master, and the touch of a resume
 *   there. They only touch the session more often.
 * - A clock that loses more than one unit: it loses no more in T, and no
 *   deadline is further away. One that gains makes GAP shorter, which GAP
 *   allows for.
 */

#ifndef T
#define T 8 /* session timeout, in units: four ticks */
#endif
#define QUARTER (T / 4)
#ifndef GAP
#define GAP QUARTER /* the default of lk_lease_config */
#endif
#define DRIFT 1 /* what a clock may lose in T */

mtype = {
  LEARNER, LEADER, NEW_LEADER,    /* servers */
  MASTER,                         /* the observer master, with TWO_HOPS */
  NEW, RESUME, PING, SYNC, CHECK, /* requests and their replies */
  TOUCHED                         /* a learner's report */
};

/* ---- the servers --------------------------------------------------------- */

mtype leads = LEADER;
byte timer = T; /* time until the current leader expires the session */
bool expired = false;

mtype followed = LEADER; /* by the learner, or by its observer master */
bool linked = true;      /* the learner and its leader, or observer master */
bool touched = false;    /* at the learner, not reported yet */
chan up = [2] of {mtype};
chan down = [2] of {mtype};

#ifdef TWO_HOPS
bool master_linked = true;   /* the observer master and its leader */
bool master_touched = false; /* there, not reported yet */
chan master_up = [2] of {mtype};
chan master_down = [2] of {mtype};
#define TO_LEADER master_up
#define FROM_LEADER master_down
#else
#define TO_LEADER up
#define FROM_LEADER down
#endif

mtype connected; /* the client's server */
chan asked = [1] of {mtype};
chan answered = [1] of {mtype};

byte lease = 0; /* time until the lease deadline, by the client's clock */

/* At a server that believes to lead. */
inline touch(server)
{
  if
  :: server == leads && !expired ->
     printf("%e starts its timer again\n", server);
     timer = T
  :: else
  fi
}

/* Whether a server that believes to lead answers. The real leader can commit,
 * and knows whether the session has expired. */
#define ANSWERS(server, what) (server == leads -> !expired : what != CHECK)

#ifdef RESUME_IS_NO_TOUCH
#define IS_TOUCH(what) (what != RESUME)
#else
#define IS_TOUCH(what) true
#endif

/* A report that has not arrived stands for those after it. */
inline report(me, is_touched, out)
{
  if
  :: is_touched && !(out ?? [TOUCHED]) ->
     printf("%e reports a touch\n", me);
     out ! TOUCHED
  :: else
  fi;
  is_touched = false
}

proctype learner()
{
  mtype what;

end:
  do
  :: atomic {
       connected == LEARNER && asked ? [PING] ->
       asked ? PING;
       touched = true;
       answered ! PING
     }
  :: atomic {
       connected == LEARNER && linked && nempty(asked) && !asked ? [PING] ->
       asked ? what;
       touched = touched || what != RESUME;
       up ! what;
       what = 0
     }
  :: atomic { down ? PING -> report(LEARNER, touched, up) }
  :: atomic {
       nempty(down) && !down ? [PING] ->
       down ? what;
       answered ! what;
       what = 0
     }
  od
}

#ifdef TWO_HOPS
#define REPORT_ARRIVED (!(down ?? [PING]) && !(up ?? [TOUCHED]))

#if defined(SLOW_REPORT) || defined(LATE_REPORT)
#define REPORT_ON_TIME true
#else
#define REPORT_ON_TIME REPORT_ARRIVED
#endif

proctype master()
{
  mtype what;

end:
  do
  :: atomic {
       up ? what ->
       if
       :: what == TOUCHED -> master_touched = true
       :: what != TOUCHED && master_linked -> master_up ! what
       :: else
       fi;
       what = 0
     }
  :: atomic {
       master_down ? [PING] && REPORT_ON_TIME ->
       master_down ? PING;
       report(MASTER, master_touched, master_up)
     }
  :: atomic {
       nempty(master_down) && !master_down ? [PING] ->
       master_down ? what;
       if
       :: linked -> down ! what
       :: else
       fi;
       what = 0
     }
  od
}
#endif

proctype server(mtype me)
{
  mtype what;

end:
  do
  :: atomic {
       connected == me && nempty(asked) ->
       asked ? what;
       if
       :: ANSWERS(me, what) ->
          if
          :: IS_TOUCH(what) -> touch(me)
          :: else
          fi;
          answered ! what
       :: else
       fi;
       what = 0
     }
  :: atomic {
       followed == me && nempty(TO_LEADER) ->
       TO_LEADER ? what;
       if
       :: what == TOUCHED -> touch(me)
       :: what != TOUCHED && ANSWERS(me, what) ->
          /* A forwarded request does not touch the session, except this one. */
          if
          :: what == RESUME && IS_TOUCH(what) -> touch(me)
          :: else
          fi;
          FROM_LEADER ! what
       :: else
       fi;
       what = 0
     }
  :: atomic {
       leads == me && timer == 0 && !expired ->
       printf("%e expires the session\n", me);
       expired = true;
       assert(lease == 0)
     }
  od
}

proctype rest()
{
end:
  atomic {
    leads == LEADER && !expired ->
    printf("the rest elects NEW_LEADER\n");
    leads = NEW_LEADER;
    timer = T;
    run server(NEW_LEADER)
  }
}

/* ---- the client ---------------------------------------------------------- */

#ifdef NO_DRIFT
#define LENGTH T
#else
#define LENGTH (T - DRIFT)
#endif

#define TOLD (GAP + 1) /* more than any gap: the leader knows of j */

#ifdef NO_GAP
#define ENOUGH 0
#elif defined(WITH_SYNC)
#define ENOUGH TOLD
#else
#define ENOUGH GAP
#endif

byte j_age = T; /* time since j was sent; T: too long, or there is none */
byte j_gap = 0; /* time since its reply, up to GAP; or TOLD */

mtype doing = 0; /* the outstanding request */
byte age = 0;    /* time since it was sent */
byte gap = 0;    /* time between j's reply and its sending */

inline send(what)
{
  printf("the client sends %e to %e\n", what, connected);
  doing = what;
  age = 0;
  gap = j_gap;
  asked ! what
}

inline believe(since)
{
  if
  :: since < LENGTH && lease < LENGTH - since ->
     lease = LENGTH - since;
     printf("the client believes for %d units\n", lease);
     assert(!expired)
  :: else
  fi
}

#ifdef GRANT_BY_SYNC
byte synced = 0; /* time left of a grant that rests on a sync */
#endif

inline learn(what)
{
#ifdef GRANT_BY_SYNC
  if
  :: what == SYNC && gap >= ENOUGH && j_age < LENGTH -> synced = LENGTH - j_age
  :: else
  fi;
#endif
  if
  :: what == NEW -> believe(age)
  :: what == CHECK && gap >= ENOUGH ->
     believe(j_age);
#ifdef NO_LEASE
     assert(lease == 0 || connected != LEARNER)
#endif
#ifdef LEASE_BY_PING
  :: what == PING -> believe(age)
#endif
#ifdef LEASE_BY_CHECK
  :: what == CHECK && gap < ENOUGH -> believe(age)
#endif
#ifdef LEASE_BY_RESUME
  :: what == RESUME -> believe(age)
#endif
#ifdef LEASE_BY_SYNC
  :: what == SYNC && gap >= ENOUGH -> believe(j_age)
#endif
#ifdef WITH_SYNC
  :: (what == SYNC || what == CHECK) && gap == GAP -> j_gap = TOLD
#endif
  :: else
  fi
}

inline remember(what)
{
  printf("which it remembers as j\n");
#ifdef FROM_ANSWER
  j_age = 0;
#else
  j_age = age;
#endif
  j_gap = (what == RESUME -> TOLD : 0)
}

inline forget()
{
  j_age = T;
  j_gap = 0
}

inline take()
{
  printf("the client takes the lock\n");
#ifdef NO_GRANT
  assert(false);
#endif
  assert(!expired)
}

proctype client()
{
  mtype what;

end:
  do
  :: atomic { lease >= QUARTER -> take() }
#ifdef GRANT_BY_SYNC
  :: atomic { synced > lease -> lease = synced; take() }
#endif
  :: atomic {
       doing == 0 ->
       if
       :: send(PING)
       :: send(SYNC)
       :: send(CHECK)
       fi
     }
  :: atomic {
       answered ? what ->
       printf("the client is answered %e\n", what);
       learn(what);
       if
       :: IS_TOUCH(what) -> remember(what)
       :: skip
       fi;
       doing = 0;
       age = 0;
       gap = 0;
       what = 0
     }
  od
}

/* ---- the network --------------------------------------------------------- */

/* Messages to and from the client are lost; those between servers are not. */
inline lose(link)
{
  do
  :: link ?? [RESUME] -> link ?? RESUME
  :: link ?? [SYNC] -> link ?? SYNC
  :: link ?? [CHECK] -> link ?? CHECK
  :: else -> break
  od
}

inline connect()
{
  do
  :: asked ? _
  :: answered ? _
  :: empty(asked) && empty(answered) -> break
  od;
  lose(up);
  lose(down);
#ifdef TWO_HOPS
  lose(master_up);
  lose(master_down);
#endif
#ifndef OTHER_CONNECTION
  forget();
#endif
  printf("the client's connection breaks\n");
  if
  :: connected = LEARNER
  :: connected = LEADER
  :: leads == NEW_LEADER -> connected = NEW_LEADER
  fi;
  send(RESUME)
}

inline unlink()
{
  do
  :: up ? _
  :: down ? _
  :: empty(up) && empty(down) -> break
  od;
  printf("the link of LEARNER breaks\n");
  linked = false
}

inline follow(me)
{
  if
  :: followed = LEADER
  :: leads == NEW_LEADER -> followed = NEW_LEADER
  fi;
  printf("%e follows %e\n", me, followed)
}

/* The learner has noticed, and closes its clients' connections. */
inline link()
{
  linked = true;
  touched = false;
#ifdef TWO_HOPS
  printf("LEARNER is connected to MASTER\n");
#else
  follow(LEARNER);
#endif
  if
  :: connected == LEARNER -> connect()
  :: else
  fi
}

#ifdef TWO_HOPS
inline unlink_master()
{
  do
  :: master_up ? _
  :: master_down ? _
  :: empty(master_up) && empty(master_down) -> break
  od;
  printf("the link of MASTER breaks\n");
  master_linked = false
}

/* The observer master has noticed, and closes the observer's connection. */
inline link_master()
{
  master_linked = true;
  master_touched = false;
  follow(MASTER);
  if
  :: linked -> unlink()
  :: else
  fi
}
#endif

proctype network()
{
end:
  do
  :: atomic { connect() }
  :: atomic { linked -> unlink() }
  :: atomic { !linked -> link() }
#ifdef TWO_HOPS
  :: atomic { master_linked -> unlink_master() }
  :: atomic { !master_linked -> link_master() }
#endif
  od
}

/* ---- time ---------------------------------------------------------------- */

#define LESS(x) x = (x > 0 -> x - 1 : 0)
#define MORE(x, most) x = (x < most -> x + 1 : x)

#ifdef LATE_PING
#define PING_ARRIVED true
#else
#define PING_ARRIVED !(FROM_LEADER ?? [PING])
#endif

#if !defined(TWO_HOPS) || defined(LATE_REPORT)
#define ALL_ARRIVED PING_ARRIVED
#else
#define ALL_ARRIVED (PING_ARRIVED && REPORT_ARRIVED)
#endif

inline ping(is_linked, out)
{
  if
  :: is_linked && !(out ?? [PING]) -> out ! PING
  :: else
  fi
}

inline pass_at_client()
{
  LESS(lease);
#ifdef GRANT_BY_SYNC
  LESS(synced);
#endif
  MORE(j_age, T);
  if
  :: j_age < T -> MORE(j_gap, GAP)
  :: else -> forget()
  fi;
  if
  :: doing != 0 -> MORE(age, T)
  :: else
  fi
}

proctype time()
{
  bool lost_one = false; /* the client's clock */

end:
  do
  :: atomic {
       ALL_ARRIVED ->
       printf("a unit of time passes\n");
       LESS(timer);
       if
       :: pass_at_client()
       :: !lost_one ->
          printf("but not by the client's clock\n");
          lost_one = true
       fi;
#ifdef TWO_HOPS
       ping(master_linked, master_down);
#endif
       ping(linked, down)
     }
  od
}

init {
  atomic {
    if
    :: connected = LEARNER
    :: connected = LEADER
    fi;
    doing = NEW;
    answered ! NEW;
    run learner();
#ifdef TWO_HOPS
    run master();
#endif
    run server(LEADER);
    run rest();
    run client();
    run network();
    run time()
  }
}
