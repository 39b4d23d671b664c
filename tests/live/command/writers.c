/* SPDX-License-Identifier: Apache-2.0 */
/*
 * COMMAND of tests/live/command/cli_stress.py: a tree of processes, each of
 * which appends a line to a file every few milliseconds.
 *
 *   writers FILE NAME MANNERS MS CODE [DESCENDANT...]
 *
 * A line is "TOKEN MICROSECONDS NAME PID KIND", written in one piece; the time
 * is CLOCK_BOOTTIME. COMMAND itself ends after MS milliseconds: it tells its
 * descendants to end, waits for them, and exits with CODE. MANNERS select its
 * reaction to the signals that latchkey forwards:
 *   polite     end its descendants at once, and exit with 64 + the signal
 *   careless   the default action; its descendants stay
 *   deaf       ignore them
 * With "-stops" appended, COMMAND stops itself from time to time; with "-moves"
 * it moves itself to another control group.
 *
 * DESCENDANTs have the default actions of signals. The kinds are:
 *   child      in the same process group
 *   deaf       the same, and ignores signals
 *   group      in a process group of its own
 *   session    in a session of its own
 *   daemon     in a session of its own, with a parent that has ended
 *   moved      in another control group, if it may move itself
 *   thread     forked by another thread
 *   deep       eight generations, each in a session of its own
 *   hopper     forks and ends, generation after generation
 *   breeder    forks children that write once and end
 *   other      a process of another user: it executes the set-user-ID program
 *              LATCHKEY_STRESS_AS_ROOT, if that is set, which executes
 *
 *   writers -other FILE NAME DESCRIPTOR
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
  PACE_MS = 5, /* between two lines of a process */
  DEPTH = 8,   /* generations of "deep" */
  MAX_DESCENDANTS = 256,
  STOP_EVERY = 100 /* lines, with "-stops" */
};

static const char *program; /* its own file */
static const char *token;
static const char *name;
static const char *log_name;
static int log_fd;
/* A pipe: each byte tells one descendant to end. All processes keep both ends
   open, so that no descendant ends because COMMAND was killed. */
static int quit[2];
/* A pipe into which nothing is written: its end of file means that no
   descendant is left. */
static int alive[2];

static volatile sig_atomic_t caught_signal = 0;

static void on_signal(int number)
{
  caught_signal = number;
}

static void set_signal_handlers(void (*handler)(int number))
{
  static const int numbers[] = {SIGINT,  SIGTERM, SIGHUP,
                                SIGQUIT, SIGUSR1, SIGUSR2};
  struct sigaction action = {.sa_handler = handler};

  sigemptyset(&action.sa_mask);
  for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
    sigaction(numbers[i], &action, NULL);
}

static long long now_us(void)
{
  struct timespec t;

  clock_gettime(CLOCK_BOOTTIME, &t);
  return (long long)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static void write_line(const char *kind)
{
  char line[256];
  int len = snprintf(line, sizeof line, "%s %lld %s %ld %s\n", token, now_us(),
                     name, (long)getpid(), kind);

  if (write(log_fd, line, (size_t)len) != len)
    _exit(99);
}

/* Wait PACE_MS; gives whether this descendant must end. */
static bool must_end_after_pause(void)
{
  struct pollfd quit_fd = {quit[0], POLLIN, 0};
  char byte;

  return poll(&quit_fd, 1, PACE_MS) == 1 && read(quit[0], &byte, 1) == 1;
}

static void write_until_told_to_end(const char *kind)
{
  while (!must_end_after_pause())
    write_line(kind);
}

/* Move this process to the root of the control groups, as pam_systemd and
   container engines move processes, if it may do that. */
static void leave_cgroup(void)
{
  FILE *mounts = fopen("/proc/self/mountinfo", "r");
  char line[4096], point[1024], path[sizeof point + 16];

  while (mounts != NULL && fgets(line, sizeof line, mounts) != NULL)
    if (strstr(line, " - cgroup2 ") != NULL &&
        sscanf(line, "%*s %*s %*s %*s %1023s", point) == 1) {
      snprintf(path, sizeof path, "%s/cgroup.procs", point);
      int fd = open(path, O_WRONLY);

      if (fd >= 0 && write(fd, "0", 1) == 1)
        break;
    }
  if (mounts != NULL)
    fclose(mounts);
}

/* ---- descendants -------------------------------------------------------- */

static void fork_generations(void)
{
  for (int i = 1; i < DEPTH && fork() == 0; i++)
    setsid();
}

static void fork_and_end_repeatedly(void)
{
  while (!must_end_after_pause()) {
    write_line("hopper");
    if (fork() > 0)
      _exit(0);
  }
}

static void fork_children_repeatedly(void)
{
  while (!must_end_after_pause()) {
    if (fork() == 0) {
      write_line("breeder");
      _exit(0);
    }
    while (waitpid(-1, NULL, WNOHANG) > 0)
      ;
  }
}

static void write_as_root(void)
{
  const char *helper = getenv("LATCHKEY_STRESS_AS_ROOT");
  char descriptor[12];

  if (helper == NULL)
    return;
  snprintf(descriptor, sizeof descriptor, "%d", quit[0]);
  execl(helper, "as_root", program, "-other", log_name, name, descriptor,
        (char *)NULL);
  _exit(97);
}

static void run_descendant(const char *kind)
{
  set_signal_handlers(strcmp(kind, "deaf") == 0 ? SIG_IGN : SIG_DFL);
  if (strcmp(kind, "group") == 0)
    setpgid(0, 0);
  if (strcmp(kind, "session") == 0 || strcmp(kind, "daemon") == 0)
    setsid();
  if (strcmp(kind, "daemon") == 0 && fork() > 0)
    _exit(0);
  if (strcmp(kind, "moved") == 0)
    leave_cgroup();
  if (strcmp(kind, "other") == 0)
    write_as_root();
  if (strcmp(kind, "deep") == 0)
    fork_generations();
  if (strcmp(kind, "hopper") == 0)
    fork_and_end_repeatedly();
  else if (strcmp(kind, "breeder") == 0)
    fork_children_repeatedly();
  else
    write_until_told_to_end(kind);
  _exit(0);
}

static sem_t thread_has_forked;

/* The thread does not end, so that the child keeps its parent. */
static void *fork_in_thread(void *kind)
{
  if (fork() == 0)
    run_descendant(kind);
  sem_post(&thread_has_forked);
  for (;;)
    pause();
  return NULL;
}

static void start_descendant(char *kind)
{
  pthread_t thread;

  if (strcmp(kind, "thread") != 0) {
    if (fork() == 0)
      run_descendant(kind);
  } else if (pthread_create(&thread, NULL, fork_in_thread, kind) == 0) {
    while (sem_wait(&thread_has_forked) != 0)
      ;
  }
}

/* ---- COMMAND itself ----------------------------------------------------- */

static void end_descendants(void)
{
  char bytes[MAX_DESCENDANTS] = {0};
  char byte;

  close(alive[1]);
  if (write(quit[1], bytes, sizeof bytes) != (ssize_t)sizeof bytes)
    _exit(98);
  while (read(alive[0], &byte, 1) < 0 && errno == EINTR)
    ;
}

static int run_command(int ms, int code, bool stops)
{
  long long end = now_us() + 1000LL * ms;

  for (int i = 1; caught_signal == 0 && now_us() < end; i++) {
    write_line("command");
    poll(NULL, 0, PACE_MS);
    if (stops && i % STOP_EVERY == 0)
      raise(SIGSTOP);
  }
  end_descendants();
  return caught_signal != 0 ? 64 + caught_signal : code;
}

/* The process of another user. */
static int write_as_other(char **argv)
{
  name = argv[3];
  quit[0] = atoi(argv[4]);
  log_fd = open(argv[2], O_WRONLY | O_APPEND);
  if (log_fd < 0)
    return 3;
  write_until_told_to_end("other");
  return 0;
}

int main(int argc, char **argv)
{
  if (argc < 5 || (token = getenv("LATCHKEY_FENCING_TOKEN")) == NULL)
    return 2;
  if (strcmp(argv[1], "-other") == 0)
    return write_as_other(argv);
  if (argc < 6)
    return 2;
  const char *manners = argv[3];

  program = argv[0];
  log_name = argv[1];
  log_fd = open(log_name, O_WRONLY | O_APPEND);
  name = argv[2];
  sem_init(&thread_has_forked, 0, 0);
  if (log_fd < 0 || pipe(quit) != 0 || pipe(alive) != 0)
    return 3;
  fcntl(quit[0], F_SETFL, O_NONBLOCK);
  if (strncmp(manners, "polite", 6) == 0)
    set_signal_handlers(on_signal);
  else if (strncmp(manners, "deaf", 4) == 0)
    set_signal_handlers(SIG_IGN);
  for (int i = 6; i < argc; i++)
    start_descendant(argv[i]);
  if (strstr(manners, "-moves") != NULL)
    leave_cgroup();
  return run_command(atoi(argv[4]), atoi(argv[5]),
                     strstr(manners, "-stops") != NULL);
}
