/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A service that works on one machine at a time: each process is a candidate of
 * an election, and only the leader works, in short steps at a timer. After INT
 * or TERM the leader resigns, and the next candidate leads at once. After a
 * crash the next candidate leads when the session of the leader has expired.
 *
 *     leader [HOSTS [TERMS]]
 *
 * With TERMS the leader resigns after ten steps and queues again; it ends after
 * TERMS terms.
 */

#include <ev.h>
#include <latchkey/ev.h>
#include <latchkey/latchkey.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define ELECTION "/services/example"

enum { STEPS = 10, SESSION_TIMEOUT_MS = 10000 };

typedef struct service {
  struct ev_loop *loop;
  lk_client *client;
  lk_candidate *candidate;
  ev_timer timer; /* runs while the candidate leads and is not unsure */
  ev_signal interrupt;
  ev_signal terminate;
  int terms; /* still to lead; 0: no limit */
  int steps; /* of this term */
  int exit_code;
} service;

/* ev_run() returns when no watcher is left and the client is closed. A second
   signal has its default action: it ends the process. */
static void leave(service *s, int exit_code)
{
  s->exit_code = exit_code;
  ev_signal_stop(s->loop, &s->interrupt);
  ev_signal_stop(s->loop, &s->terminate);
  lk_client_close(s->client, NULL, NULL); /* sends the resignation first */
}

static void fail(service *s, int err)
{
  fprintf(stderr, "%s: %s\n", ELECTION, lk_error_text(err));
  leave(s, EXIT_FAILURE);
}

/* Let another candidate lead, and take part again from the end of the queue. */
static void end_term(service *s)
{
  int err;

  lk_candidate_resign(s->candidate);
  if (--s->terms == 0)
    leave(s, EXIT_SUCCESS);
  else if ((err = lk_candidate_start(s->candidate)) != 0)
    fail(s, err);
}

/* A step of the work. A resource that can compare terms gets the term, and
   refuses a smaller one than the largest that it has seen. */
static void work(service *s)
{
  lk_lock *lock = lk_candidate_lock(s->candidate);

  printf("working, term %llu\n", (unsigned long long)lk_lock_token(lock));
  s->steps++;
}

static void on_timer(struct ev_loop *loop, ev_timer *timer, int events)
{
  service *s = timer->data;

  (void)loop;
  (void)events;
  /* Although UNSURE stops the timer, the lease deadline may have passed: if
     the process was paused, the timer can be due before that event. */
  if (!lk_candidate_ok(s->candidate))
    return;
  work(s);
  if (s->steps == STEPS && s->terms > 0)
    end_term(s);
}

static void print_event(const lk_candidate_event *event)
{
  printf("%s", lk_candidate_event_text(event->type));
  if (event->term != 0)
    printf(", term %llu", (unsigned long long)event->term);
  if (event->err != 0)
    printf(": %s", lk_error_text(event->err));
  printf("\n");
}

static void on_event(lk_candidate *c, const lk_candidate_event *event,
                     void *arg)
{
  service *s = arg;

  (void)c;
  print_event(event);
  switch (event->type) {
  case LK_CANDIDATE_EVENT_ELECTED:
    s->steps = 0;
    ev_timer_again(s->loop, &s->timer);
    break;
  case LK_CANDIDATE_EVENT_RENEWED: ev_timer_again(s->loop, &s->timer); break;
  case LK_CANDIDATE_EVENT_UNSURE:
  case LK_CANDIDATE_EVENT_DEPOSED: ev_timer_stop(s->loop, &s->timer); break;
  case LK_CANDIDATE_EVENT_RETRYING: break; /* the candidate does it */
  case LK_CANDIDATE_EVENT_ENDED: fail(s, event->err); break;
  }
}

static void on_signal(struct ev_loop *loop, ev_signal *signal, int events)
{
  service *s = signal->data;

  (void)loop;
  (void)events;
  lk_candidate_resign(s->candidate); /* no step of the work is under way */
  leave(s, EXIT_SUCCESS);
}

static void start_signals(service *s)
{
  ev_signal_init(&s->interrupt, on_signal, SIGINT);
  ev_signal_init(&s->terminate, on_signal, SIGTERM);
  s->interrupt.data = s->terminate.data = s;
  ev_signal_start(s->loop, &s->interrupt);
  ev_signal_start(s->loop, &s->terminate);
}

int main(int argc, char **argv)
{
  char host[256] = ""; /* names the candidate for latchkey status, and others */

  gethostname(host, sizeof host - 1);
  service s = {.loop = ev_default_loop(0),
               .terms = argc > 2 ? atoi(argv[2]) : 0};
  lk_client_config config = {.size = sizeof config,
                             .hosts = argc > 1 ? argv[1] : "127.0.0.1:2181",
                             .session_timeout_ms = SESSION_TIMEOUT_MS};
  lk_lock_config lock = {.size = sizeof lock, .data = lk_text(host)};
  lk_candidate_config options = {
      .size = sizeof options, .on_event = on_event, .arg = &s};
  lk_ev *ev = NULL;
  int err;

  setvbuf(stdout, NULL, _IOLBF, 0); /* each line at once, also into a pipe */
  ev_timer_init(&s.timer, on_timer, 0, 0.1);
  s.timer.data = &s;
  start_signals(&s);
  if ((err = lk_ev_new(&ev, s.loop, NULL)) == 0 &&
      (err = lk_ev_client_new(&s.client, ev, &config)) == 0 &&
      (err = lk_election_new(&s.candidate, s.client, ELECTION, LK_LAYOUT_LATCH,
                             &lock, &options)) == 0 &&
      (err = lk_candidate_start(s.candidate)) == 0)
    ev_run(s.loop, 0); /* until the client is closed */
  else
    fprintf(stderr, "%s: %s\n", config.hosts, lk_error_text(err));
  lk_candidate_free(s.candidate); /* candidates before their client */
  lk_client_free(s.client);
  lk_ev_free(ev); /* before the loop */
  return err == 0 ? s.exit_code : EXIT_FAILURE;
}
