/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "unit/command/program.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/wire/opcode.h"
#include "support/wire.h"

/* The main() of src/cli/main.c; see tests/unit/sources.am. */
int latchkey_main(int argc, char **argv);

/* ---- memory that runs out ------------------------------------------------ */

/* In the command's processes, which count on their own. */
static unsigned fail_at;
static unsigned allocations;

static bool *allocation_failed; /* shared memory */

static pid_t latchkey_pid;

/* Not in the process that becomes COMMAND, a child of the supervisor: only the
   libraries of a build with gcov allocate memory there. */
static bool allocation_fails(void)
{
  bool is_counted =
      fail_at > 0 && (getpid() == latchkey_pid || getppid() == latchkey_pid);

  if (!is_counted || ++allocations != fail_at)
    return false;
  *allocation_failed = true;
  errno = ENOMEM;
  return true;
}

/* The linker redirects calls of malloc() to __wrap_malloc(), and so on. */
void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_malloc(size_t size)
{
  return allocation_fails() ? NULL : __real_malloc(size);
}

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size)
{
  return allocation_fails() ? NULL : __real_calloc(count, size);
}

void *__real_realloc(void *at, size_t size);
void *__wrap_realloc(void *at, size_t size);
void *__wrap_realloc(void *at, size_t size)
{
  return allocation_fails() ? NULL : __real_realloc(at, size);
}

/* ---- the server ---------------------------------------------------------- */

/* Called by the server's thread, under its mutex. */
static bool serve_request(model_link *l, lk_bytes frame)
{
  program *p = (program *)(void *)l->server;
  lk_reader in;

  lk__reader_init(&in, frame.at, frame.len);
  int32_t xid = lk__reader_int(&in);
  int32_t op = lk__reader_int(&in);

  if (p->fault <= PROGRAM_NO_MEMORY || op == LK_OPCODE_PING ||
      op == LK_OPCODE_CLOSE_SESSION || ++p->requests != p->fault_at)
    return model_serve(l, frame);
  p->had_fault = true;
  if (p->fault == PROGRAM_REFUSE) {
    wire_reply(&l->out, xid, 1, LK_ERR_NO_AUTH);
    return true;
  }
  if (p->fault == PROGRAM_BREAK_AFTER) {
    model_serve(l, frame);
    lk__buf_consume(&l->out, lk__buf_len(&l->out));
  }
  l->closed_by_server = true;
  return true;
}

enum { MAX_SERVERS = 32 };
static program *servers[MAX_SERVERS]; /* NULL: a free place */

static void replace_server(const program *old, program *new)
{
  size_t i = 0;

  while (i < MAX_SERVERS && servers[i] != old)
    i++;
  ck_assert_uint_lt(i, MAX_SERVERS);
  servers[i] = new;
}

/* Waits until the thread of the server has read from its eventfd. */
static void await_thread(loopback *b)
{
  struct pollfd wake = {.fd = b->wake_fd, .events = POLLIN};

  loopback_lock(b);
  loopback_unlock(b); /* writes to it */
  while (poll(&wake, 1, 0) > 0)
    usleep(100);
}

/* A child must not inherit a lock of the allocator, which a thread of a
   sanitizer may hold while it starts or while it serves a request. */
static pid_t fork_without_locks(void)
{
  for (size_t i = 0; i < MAX_SERVERS; i++)
    if (servers[i] != NULL)
      pthread_mutex_lock(&servers[i]->loopback.mutex);
  pid_t pid = fork();

  for (size_t i = 0; i < MAX_SERVERS; i++)
    if (servers[i] != NULL)
      pthread_mutex_unlock(&servers[i]->loopback.mutex);
  return pid;
}

void program_start(program *p)
{
  memset(p, 0, sizeof *p);
  loopback_start(&p->loopback);
  await_thread(&p->loopback);
  replace_server(NULL, p);
  p->loopback.server.serve = serve_request;
  p->loopback.four_letter_reply = "Zookeeper version: 3.8.0-0, built on x\n"
                                  "Mode: standalone\n";
  p->allocation_failed =
      mmap(NULL, sizeof *p->allocation_failed, PROT_READ | PROT_WRITE,
           MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ck_assert_ptr_ne(p->allocation_failed, MAP_FAILED);
}

void program_stop(program *p)
{
  replace_server(p, NULL);
  loopback_stop(&p->loopback);
  munmap(p->allocation_failed, sizeof *p->allocation_failed);
}

/* ---- the process --------------------------------------------------------- */

enum { MAX_SECONDS = 20, MAX_WORDS = 32, MAX_BYTES = 2048 };

/* The words of a command line, one behind the other, as the kernel places
   them. */
static struct {
  char bytes[MAX_BYTES];
  char *argv[MAX_WORDS + 1]; /* ends with NULL */
  int argc;
} command_words;

static void add_word(const char *word)
{
  char *at = command_words.argc == 0
                 ? command_words.bytes
                 : command_words.argv[command_words.argc - 1] +
                       strlen(command_words.argv[command_words.argc - 1]) + 1;

  ck_assert_int_lt(command_words.argc, MAX_WORDS);
  ck_assert(at + strlen(word) < command_words.bytes + MAX_BYTES);
  command_words.argv[command_words.argc++] = strcpy(at, word);
}

static void replace_descriptors(const program *p)
{
  int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

  if (dup2(null, STDIN_FILENO) < 0 || dup2(p->out_fd, STDOUT_FILENO) < 0 ||
      dup2(p->err_fd, STDERR_FILENO) < 0)
    abort();
}

/* A thread of the other process may have held the mutex of Check, so nothing is
   asserted here. */
static _Noreturn void be_program(const program *p)
{
  /* Check's handlers would signal the process of the test. */
  signal(SIGALRM, SIG_DFL);
  signal(SIGINT, SIG_DFL);
  signal(SIGTERM, SIG_DFL);
  alarm(MAX_SECONDS); /* ends this process if it hangs */
  replace_descriptors(p);
  if (setenv("LATCHKEY_ZK", p->loopback.hosts, 1) != 0)
    abort();
  latchkey_pid = getpid();
  allocation_failed = p->allocation_failed;
  fail_at = p->fault == PROGRAM_NO_MEMORY ? p->fault_at : 0;
  int code = latchkey_main(command_words.argc, command_words.argv);

  fail_at = 0;
  /* Not exit(): a search for leaks would wait for the threads of the test. */
  _exit(code);
}

void program_begin(program *p, const char *const *words)
{
  p->out_fd = memfd_create("output", MFD_CLOEXEC);
  p->err_fd = memfd_create("errors", MFD_CLOEXEC);
  ck_assert(p->out_fd >= 0 && p->err_fd >= 0);
  command_words.argc = 0;
  add_word("latchkey");
  while (*words != NULL)
    add_word(*words++);
  command_words.argv[command_words.argc] = NULL;
  fflush(NULL);
  p->child = fork_without_locks();
  if (p->child == 0)
    be_program(p);
  ck_assert_int_gt(p->child, 0);
}

/* Takes the contents of a file as a text. */
static void take_text(char *text, int fd)
{
  ssize_t len = pread(fd, text, PROGRAM_OUTPUT - 1, 0);

  ck_assert_int_ge(len, 0);
  text[len] = '\0';
  close(fd);
}

int program_end(program *p)
{
  int status;

  ck_assert_int_eq(waitpid(p->child, &status, 0), p->child);
  p->code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  take_text(p->out, p->out_fd);
  take_text(p->err, p->err_fd);
  loopback_lock(&p->loopback);
  p->had_fault = p->had_fault || *p->allocation_failed;
  loopback_unlock(&p->loopback);
  return p->code;
}

enum { PAUSE_US = 10 * 1000 };

void program_pause(void)
{
  usleep(PAUSE_US);
}

void program_await_output(const program *p, const char *text)
{
  char out[256] = "";

  for (int i = 0; i < PROGRAM_TRIES; i++) {
    ssize_t len = pread(p->out_fd, out, sizeof out - 1, 0);

    ck_assert_int_ge(len, 0);
    out[len] = '\0';
    if (strcmp(out, text) == 0)
      return;
    program_pause();
  }
  ck_abort_msg("not \"%s\" but \"%s\"", text, out);
}

int program_run(program *p, const char *const *words)
{
  program_begin(p, words);
  return program_end(p);
}

/* ---- each fault in turn -------------------------------------------------- */

void program_show(const program *p, const command_line *line)
{
  printf("fault %d at %u: latchkey", (int)p->fault, p->fault_at);
  for (size_t i = 0; line->words[i] != NULL; i++)
    printf(" %s", line->words[i]);
  printf("\nexit code %d, output:\n%s\nerrors:\n%s\n", p->code, p->out, p->err);
  fflush(stdout);
}

bool program_did(const program *p, const command_line *line)
{
  if (p->code == line->code &&
      (line->out == NULL || strcmp(p->out, line->out) == 0))
    return true;
  program_show(p, line);
  return false;
}

/* They run at the same time, since a broken connection costs some time. */
enum { PROGRAMS = 16 };
static program programs[PROGRAMS];

static void begin_with_fault(program *p, const command_line *line,
                             program_fault fault, unsigned fault_at,
                             void (*create_nodes)(model_server *s))
{
  program_start(p);
  p->fault = fault;
  p->fault_at = fault_at;
  loopback_lock(&p->loopback);
  create_nodes(&p->loopback.server);
  loopback_unlock(&p->loopback);
  program_begin(p, line->words);
}

void program_sweep(const command_line *lines, size_t count, program_fault fault,
                   void (*create_nodes)(model_server *s),
                   void (*check)(const program *p, const command_line *line))
{
  for (size_t i = 0; i < count; i++) {
    bool had_fault = true;

    for (unsigned at = 1; had_fault; at += PROGRAMS) {
      for (unsigned j = 0; j < PROGRAMS; j++)
        begin_with_fault(&programs[j], &lines[i], fault, at + j, create_nodes);
      for (unsigned j = 0; j < PROGRAMS; j++) {
        program_end(&programs[j]);
        had_fault = programs[j].had_fault;
        check(&programs[j], &lines[i]);
        program_stop(&programs[j]);
      }
    }
  }
}
