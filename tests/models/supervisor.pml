/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The supervisor of `latchkey run` ("The command: three processes" in
 * doc/architecture.md) ends COMMAND by the lease deadline, whatever happens to
 * latchkey. Is this so?
 *
 * latchkey learns the lease deadline. A reply moves it to later, a session that
 * is resumed with a shorter timeout to earlier; and the lock can be lost.
 * latchkey sends this to the supervisor through a socket that has room for one
 * message in each direction. A message that does not fit waits at its sender,
 * and later messages are merged into it. SIGCONT for COMMAND goes the same way,
 * any number of times. COMMAND forks a child at any time, which has left its
 * process group. The child may be outside of the control group from the start,
 * or be moved out at any time: it is not frozen then. Either ends, and COMMAND
 * is stopped and continued, at any time.
 *
 * The child may also belong to another user, and may not be signalled then: the
 * supervisor reports that, and goes on taking orders.
 *
 * latchkey is stopped, continued and killed at any time. The supervisor is
 * stopped or killed while latchkey runs, as the manual page requires.
 *
 * Verified: when another client can hold, neither COMMAND nor its child runs,
 * nor is either continued after that; when the lock is lost they run for no
 * longer than the margin. And if both sides run, latchkey learns that COMMAND
 * has ended, and that its child cannot be ended.
 *
 * With one of these it must fail:
 *   LATER_ALONE      an earlier deadline is not sent
 *   ORDER_DROPPED    an order that does not fit into the socket is lost
 *   ORDER_REPLACED   a later order replaces one that waits
 *   NEWS_DROPPED     a report that does not fit into the socket is lost
 *   BLOCKING_SEND    the supervisor blocks until its report fits
 *   NO_SUSPEND       its clock stops while the machine is suspended
 *   KILL_AT_DEADLINE KILL is sent when another client can hold
 *   SLOW_KILL        a generation takes a unit of time to die
 *   STOP_GROUP       --on-lost stop takes the frozen control group for the stop
 *                    of all
 *   STOP_ONCE        a process that could not be stopped is not killed
 *   REFUSAL_UNSAID   a KILL that was refused is not reported
 *   END_UNSEEN       the supervisor does not notice that latchkey has ended
 *   STAYS_STOPPED    latchkey does not continue a stopped supervisor
 *   NO_END           latchkey does not kill what a killed supervisor leaves
 *   NO_RUN           COMMAND never runs while the lock is held (the promise
 *                    must not be kept by doing nothing)
 *
 * Time: the model has no absolute time, only remaining times up to T. Events
 * within a unit happen in any order, but a process that runs reads, writes and
 * sends its signals within the unit. KILL is sent at least a unit before the
 * deadline, as a tenth of the margin in the program.
 *
 * Left out, without loss:
 * - An earlier deadline, or a loss, that latchkey has not sent when it is
 *   stopped. It equals one that latchkey has not learned of yet (see lease.h).
 * - A machine that is suspended past the deadline. COMMAND does not run either,
 *   and then gets its time to end.
 * - More generations: each one is reached as the second is.
 * - Two processes that are stopped or killed together: the manual page names
 *   them.
 * - A process that is moved out of the frozen group within the last tenth of a
 *   second before KILL: the next look finds it, at most that much later.
 */

#ifndef T
#define T 5 /* the longest lease, in units */
#endif
#define MARGIN 2
#ifdef KILL_AT_DEADLINE
#define LAST 0
#else
#define LAST 1 /* how long before the deadline KILL is sent */
#endif

mtype = {
  RUNS, STOPPED, BLOCKED, GONE, /* a process; BLOCKED: in a system call */
  UNBORN,                       /* COMMAND's child, before the fork */
  CALM, TERMED, HELD, KILLED    /* what the supervisor has done */
};

/* ---- the actual state ---------------------------------------------------- */

byte rest = T;     /* time until another client can hold; once the lock is
                      lost, time for which COMMAND may run */
bool lost = false; /* latchkey knows that the lock is lost */
bool over = false; /* COMMAND has ended, and latchkey exits */

mtype latchkey = RUNS;
mtype supervisor = RUNS;
mtype parent = RUNS; /* COMMAND */
mtype child = UNBORN;
bool outside; /* the child is not in the control group: it is not frozen */
bool immune;  /* the child may not be signalled; then it is outside, too */

#define LIVING (parent != GONE || (child != GONE && child != UNBORN))

/* ---- the socket ---------------------------------------------------------- */

typedef order {
  bool any;   /* there is an order */
  bool lease; /* with a deadline, */
  byte until; /* the deadline, as time from now */
  bool loss;
  bool cont /* SIGCONT for COMMAND */
};

order to_send;     /* waits at latchkey */
order sent;        /* is in the socket */
bool news_waits = false; /* a report waits at the supervisor */
bool news_sent = false;
bool end_waits = false;
bool end_sent = false;
bool end_known = false; /* by latchkey */
/* That KILL was refused: */
bool refusal_waits = false;
bool refusal_sent = false;
bool refusal_known = false;

inline clear(o)
{
  o.any = false;
  o.lease = false;
  o.until = 0;
  o.loss = false;
  o.cont = false
}

inline flush_order()
{
  if
  :: to_send.any && !sent.any ->
     sent.any = true;
     sent.lease = to_send.lease;
     sent.until = to_send.until;
     sent.loss = to_send.loss;
     sent.cont = to_send.cont;
     clear(to_send)
  :: else
  fi;
#ifdef ORDER_DROPPED
  clear(to_send)
#endif
}

inline begin_order()
{
#ifdef ORDER_REPLACED
  clear(to_send);
#endif
  to_send.any = true
}

/* ---- latchkey ------------------------------------------------------------ */

inline tell_lease()
{
  begin_order();
  to_send.lease = true;
  to_send.until = rest;
  flush_order()
}

inline hear_shorter()
{
  if
  :: rest > 1 -> rest = 1
  :: rest > 3 -> rest = 3
  fi;
  printf("the lease ends in %d\n", rest);
#ifndef LATER_ALONE
  tell_lease()
#endif
}

inline end_rest()
{
  printf("latchkey kills what is left, or learns that it cannot\n");
  parent = GONE;
  if
  :: immune && child == RUNS -> refusal_known = true
  :: else -> child = GONE
  fi;
  over = true
}

#define MUST_FLUSH (to_send.any && !sent.any && supervisor != GONE)
#define MUST_CONTINUE (supervisor == STOPPED)
#define MUST_END (supervisor == GONE && LIVING)

proctype latchkey_runs()
{
end:
  do
  :: atomic { latchkey == RUNS && MUST_FLUSH -> flush_order() }
  :: atomic {
       latchkey == RUNS && news_sent ->
       news_sent = false;
       end_known = end_known || end_sent;
       end_sent = false;
       refusal_known = refusal_known || refusal_sent;
       refusal_sent = false
     }
#ifndef STAYS_STOPPED
  :: atomic {
       latchkey == RUNS && MUST_CONTINUE ->
       printf("latchkey continues the supervisor\n");
       supervisor = RUNS
     }
#endif
#ifndef NO_END
  :: atomic { latchkey == RUNS && MUST_END -> end_rest() }
#endif
  :: atomic {
       latchkey == RUNS && !lost && rest > 0 && rest < T ->
       rest = T;
       printf("the lease is renewed\n");
       tell_lease()
     }
  :: atomic { latchkey == RUNS && !lost && rest > 1 -> hear_shorter() }
  :: atomic {
       latchkey == RUNS && !lost && rest > 0 ->
       printf("the lock is lost\n");
       lost = true;
       rest = MARGIN + 1;
       begin_order();
       to_send.loss = true;
       flush_order()
     }
  :: atomic {
       latchkey == RUNS && !to_send.cont && supervisor != GONE ->
       printf("SIGCONT to latchkey\n");
       begin_order();
       to_send.cont = true;
       flush_order()
     }
  :: atomic { /* processes that outlive COMMAND are not killed */
       latchkey == RUNS && end_known && !lost && rest > MARGIN -> over = true
     }
  od
}

/* ---- the supervisor ------------------------------------------------------ */

mtype stage = CALM;
byte until = T;      /* the deadline, as far as it knows */
bool loss = false;   /* it knows that the lock is lost */
byte kill_in = 0;    /* time until KILL after a loss */
bool end_told = false;
bool stop_policy;    /* --on-lost stop, not term */
bool looked = false; /* it has checked in this unit whether all are stopped */
bool all_stopped = false;
bool killed_one = false;
bool refused = false; /* the child has refused KILL */

#define TO_TERM (stage == CALM && (loss || until <= MARGIN))
#define TO_KILL \
  ((stage == TERMED && (loss -> kill_in == 0 : until <= LAST)) || \
   (stage == HELD && (loss || UNSTOPPED)))
#ifdef STOP_ONCE
#define UNSTOPPED false
#else
#define UNSTOPPED (!all_stopped && until <= LAST)
#endif
#define TO_CONTINUE (stage == HELD && !loss && until > MARGIN)
#define TO_STOP (stage == HELD && !loss && !looked)
#define TO_REAP \
  (stage == KILLED && LIVING && !killed_one && !(parent == GONE && refused))
#define TO_SEND (news_waits && !news_sent)
#ifdef END_UNSEEN
#define LATCHKEY_GONE false
#else
#define LATCHKEY_GONE (latchkey == GONE && !sent.any && stage != KILLED)
#endif
#define TO_TELL (parent == GONE && !end_told)

#define BUSY \
  (supervisor == RUNS && \
   (sent.any || TO_TERM || TO_KILL || TO_CONTINUE || TO_STOP || TO_REAP || \
    (latchkey != GONE && (TO_SEND || TO_TELL)) || LATCHKEY_GONE))

inline flush_news()
{
  if
  :: news_waits && !news_sent ->
     news_sent = true;
     end_sent = end_waits;
     refusal_sent = refusal_waits;
     news_waits = false;
     end_waits = false;
     refusal_waits = false
  :: else
  fi;
#ifdef NEWS_DROPPED
  news_waits = false;
  end_waits = false;
  refusal_waits = false
#endif
#ifdef BLOCKING_SEND
  if
  :: news_waits -> printf("the supervisor blocks\n"); supervisor = BLOCKED
  :: else
  fi
#endif
}

inline continue_all()
{
  printf("COMMAND is continued\n");
  assert(rest > 0);
  if
  :: parent == STOPPED -> parent = RUNS
  :: else
  fi;
  if
  :: child == STOPPED -> child = RUNS
  :: else
  fi
}

inline stop_all()
{
  printf("the supervisor stops all that it finds\n");
  looked = true;
  if
  :: parent == RUNS -> parent = STOPPED
  :: else
  fi;
#ifdef STOP_GROUP
  all_stopped = true
#else
  if
  :: child == RUNS && !outside -> child = STOPPED
  :: else
  fi;
  all_stopped = child != RUNS
#endif
}

/* A child is reached when its parent has died. */
inline kill_one()
{
  printf("a generation is killed\n");
#ifdef SLOW_KILL
  killed_one = true;
#endif
  if
  :: parent != GONE ->
     parent = GONE;
     if
     :: child == UNBORN -> child = GONE
     :: else
     fi
  :: parent == GONE && immune ->
     refused = true;
#ifndef REFUSAL_UNSAID
     news_waits = true;
     refusal_waits = true;
     flush_news()
#endif
  :: else -> child = GONE
  fi
}

inline obey()
{
  if
  :: sent.lease -> until = sent.until
  :: else
  fi;
  if
  :: sent.loss -> loss = true; kill_in = MARGIN
  :: else
  fi;
  if
  /* SIGCONT does not thaw. */
  :: sent.cont && parent == STOPPED && stage != HELD -> parent = RUNS
  :: else
  fi;
  looked = false; /* it looks again after each order */
  clear(sent)
}

proctype supervisor_runs()
{
end:
  do
  :: atomic { supervisor == RUNS && sent.any -> obey() }
  :: atomic { supervisor == RUNS && TO_SEND -> flush_news() }
  :: atomic {
       supervisor == RUNS && TO_TELL ->
       end_told = true;
       news_waits = true;
       end_waits = true;
       flush_news()
     }
  :: atomic {
       supervisor == RUNS && TO_TERM ->
       printf("TERM, or STOP\n");
       looked = false;
       all_stopped = false;
       if
       :: !stop_policy -> stage = TERMED
       :: stop_policy && loss -> stage = KILLED
       :: else -> stage = HELD
       fi
     }
  :: atomic { supervisor == RUNS && TO_KILL -> stage = KILLED }
  :: atomic {
       supervisor == RUNS && TO_CONTINUE -> stage = CALM; continue_all()
     }
  :: atomic { supervisor == RUNS && TO_STOP -> stop_all() }
  :: atomic { supervisor == RUNS && TO_REAP -> kill_one() }
  :: atomic { supervisor == RUNS && LATCHKEY_GONE -> stage = KILLED }
  :: atomic {
       supervisor == BLOCKED && !news_sent -> supervisor = RUNS; flush_news()
     }
  od
}

/* ---- COMMAND, and signals of others -------------------------------------- */

#define SENT_ALL (!to_send.lease && !to_send.loss)
#define BOTH_RUN \
  (latchkey == RUNS && supervisor != GONE && supervisor != STOPPED)

proctype world()
{
end:
  do
  :: atomic {
       parent == RUNS && child == UNBORN ->
       printf("COMMAND forks\n");
       child = RUNS
     }
  :: atomic {
       parent != GONE ->
       printf("COMMAND ends\n");
       parent = GONE;
       if
       :: child == UNBORN -> child = GONE
       :: else
       fi
     }
  :: atomic { child == RUNS -> printf("the child ends\n"); child = GONE }
  :: atomic { /* see "Left out" */
       child == STOPPED && !outside && rest > LAST + 1 ->
       printf("the child is moved out of the control group\n");
       outside = true;
       child = RUNS
     }
  :: atomic { /* and is continued; only the report of it matters */
       parent == RUNS && supervisor == RUNS && latchkey != GONE &&
         !news_waits ->
       printf("COMMAND is stopped\n");
       news_waits = true;
       flush_news()
     }
  :: atomic {
       BOTH_RUN && SENT_ALL ->
       printf("latchkey is stopped\n");
       latchkey = STOPPED
     }
  :: atomic { latchkey == STOPPED -> latchkey = RUNS }
  :: atomic {
       latchkey != GONE && supervisor != GONE && supervisor != STOPPED ->
       printf("latchkey is killed\n");
       latchkey = GONE;
       news_sent = false;
       end_sent = false;
       refusal_sent = false;
       clear(to_send)
     }
  :: atomic {
       BOTH_RUN -> printf("the supervisor is stopped\n"); supervisor = STOPPED
     }
  :: atomic {
       BOTH_RUN ->
       printf("the supervisor is killed\n");
       supervisor = GONE;
       parent = GONE; /* PR_SET_PDEATHSIG */
       if
       :: child == UNBORN -> child = GONE
       :: else
       fi
     }
  od
}

/* ---- time ---------------------------------------------------------------- */

#define LESS(x) x = (x > 0 -> x - 1 : 0)

/* latchkey has finished its work of this unit. */
#ifdef STAYS_STOPPED
#define WILL_CONTINUE false
#else
#define WILL_CONTINUE MUST_CONTINUE
#endif
#ifdef NO_END
#define WILL_END false
#else
#define WILL_END MUST_END
#endif
#define WORKING \
  (latchkey == RUNS && \
   (MUST_FLUSH || news_sent || WILL_CONTINUE || WILL_END))

inline check()
{
  assert(over || rest > 0 || !(parent == RUNS || (child == RUNS && !immune)));
  /* KILL is refused before the deadline, and latchkey learns that. */
  assert(over || rest > 0 || latchkey != RUNS || supervisor != RUNS ||
         child != RUNS || refusal_known);
  assert(over || latchkey != RUNS || supervisor != RUNS || parent != GONE ||
         end_known)
#ifdef NO_RUN
  ;
  assert(!(rest > 0 && parent == RUNS))
#endif
}

inline pass()
{
  LESS(rest);
  LESS(to_send.until);
  LESS(sent.until);
  if
  :: LESS(until);
     LESS(kill_in)
#ifdef NO_SUSPEND
  :: skip
#endif
  fi;
  looked = false;
  killed_one = false
}

proctype time()
{
end:
  do
  :: atomic {
       !over && !BUSY && !WORKING ->
       printf("a unit of time passes\n");
       pass();
       check()
     }
  od
}

init {
  atomic {
    if :: stop_policy = true :: stop_policy = false fi;
    if :: outside = true :: outside = false fi;
    if :: immune = outside :: immune = false fi;
    run latchkey_runs();
    run supervisor_runs();
    run world();
    run time()
  }
}
