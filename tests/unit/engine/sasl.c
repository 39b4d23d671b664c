/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sasl/password.h"
#include "support/harness.h"
#include "support/mechanism.h"
#include "support/suite.h"
#include "support/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* The options of SASL, and where secrets are kept in memory. The transcripts in
   tests/scripts/session/sasl*.txt show how a client uses them. */

static char logged[512]; /* the last error */

static int64_t on_now(void *arg)
{
  (void)arg;
  return 5000;
}

static void on_random(void *arg, void *out, size_t len)
{
  (void)arg;
  memset(out, 0x5a, len);
}

static void on_wake(lk_client *c, void *arg)
{
  (void)c;
  (void)arg;
}

static const lk_hooks hooks = {
    .size = sizeof hooks, .now = on_now, .random = on_random, .wake = on_wake};

static void on_log(void *arg, lk_log_level level, int err, const char *text)
{
  (void)arg;
  (void)err;
  if (level == LK_LOG_ERROR)
    snprintf(logged, sizeof logged, "%s", text);
}

/* Returns the result of lk_client_new() with its errno, and frees the client.
 */
static int try_new_client(const lk_sasl_config *sasl)
{
  lk_client_config config = {
      .size = sizeof config, .sasl = sasl, .log = on_log};
  failing_mem mem;
  lk_client *c;

  failing_mem_init(&mem);
  config.mem = &mem.mem;
  logged[0] = '\0';
  int err = lk_client_new(&c, &config, &hooks);
  int saved_errno = errno;

  ck_assert((err == 0) == (c != NULL));
  lk_client_free(c);
  ck_assert_uint_eq(mem.live, 0);
  errno = saved_errno;
  return err;
}

static fake_mechanism fake;

/* Options with the fake mechanism, a user and a function for the password. */
static lk_sasl_config valid_options(void)
{
  lk_sasl_config s;

  fake_mechanism_config(&fake, &s);
  return s;
}

/* ---- options ------------------------------------------------------------ */

START_TEST(incomplete_options_are_refused)
{
  lk_sasl_config s = valid_options();
  lk_sasl_mechanism m = *s.mechanism;

  ck_assert_int_eq(try_new_client(&s), 0);
  s.size = 0;
  ck_assert_int_eq(try_new_client(&s), LK_ERR_BAD_ARGUMENT);
  ck_assert_str_eq(logged, "lk_sasl_config.size is not set");
  s = valid_options();
  s.password_file = "/dev/null";
  ck_assert_int_eq(try_new_client(&s), LK_ERR_BAD_ARGUMENT);
  ck_assert_str_eq(logged,
                   "lk_sasl_config has more than one source of a password");
  s = valid_options();
  s.password = NULL;
  s.password_fd = -1;
  ck_assert_int_eq(try_new_client(&s), LK_ERR_BAD_ARGUMENT);
  s = valid_options();
  s.mechanism = &m;
  m.size = 0;
  ck_assert_int_eq(try_new_client(&s), LK_ERR_BAD_ARGUMENT);
  ck_assert_str_eq(logged, "lk_sasl_mechanism.size is not set");
  m.size = sizeof m;
  m.step = NULL;
  ck_assert_int_eq(try_new_client(&s), LK_ERR_BAD_ARGUMENT);
}
END_TEST

START_TEST(a_mechanism_may_need_neither_user_nor_password)
{
  lk_sasl_config s = valid_options();

  s.user = NULL;
  s.password = NULL;
  ck_assert_int_eq(try_new_client(&s), 0);
}
END_TEST

START_TEST(digest_md5_needs_user_and_password)
{
  lk_sasl_config s = valid_options();
  /* A build without libgsasl does not have the mechanism. */
  int expected = lk_sasl_digest_md5() == NULL ? LK_ERR_UNIMPLEMENTED : 0;

  s.mechanism = NULL; /* the default, DIGEST-MD5 */
  ck_assert_int_eq(try_new_client(&s), expected);
  s.user = NULL;
  ck_assert_int_eq(try_new_client(&s), LK_ERR_BAD_ARGUMENT);
  s = valid_options();
  s.mechanism = NULL;
  s.password = NULL;
  ck_assert_int_eq(try_new_client(&s), LK_ERR_BAD_ARGUMENT);
  ck_assert_str_eq(logged, "lk_sasl_config has no user or no password");
}
END_TEST

START_TEST(without_memory_there_is_no_client)
{
  lk_sasl_config s = valid_options();
  bool failed = true;

  s.password = NULL;
  s.password_file = "/proc/self/comm"; /* a file with one short line */
  for (size_t n = 1; failed; n++) {
    lk_client_config config = {.size = sizeof config, .sasl = &s};
    failing_mem mem;
    lk_client *c;

    failing_mem_init(&mem);
    config.mem = &mem.mem;
    mem.fail_at = n;
    int err = lk_client_new(&c, &config, &hooks);

    failed = failing_mem_failed(&mem);
    ck_assert_int_eq(err, failed ? LK_ERR_NO_MEMORY : 0);
    lk_client_free(c);
    ck_assert_uint_eq(mem.live, 0);
  }
}
END_TEST

/* ---- passwords ---------------------------------------------------------- */

/* Returns the read end of a pipe that contains `text`. */
static int pipe_with(const char *text)
{
  int ends[2];

  ck_assert_int_eq(pipe(ends), 0);
  ck_assert_int_eq(write(ends[1], text, strlen(text)), (ssize_t)strlen(text));
  close(ends[1]);
  return ends[0];
}

/* The function shall read `password` from the bytes `text`. */
static void expect_password(const char *text, const char *password)
{
  char out[16]; /* room for the longest password below */
  int fd = pipe_with(text);
  int len = lk__password_read(out, sizeof out, NULL, fd);

  ck_assert_int_eq(len, (int)strlen(password));
  ck_assert_mem_eq(out, password, strlen(password));
  close(fd);
}

START_TEST(a_password_is_the_first_line)
{
  expect_password("secret", "secret");
  expect_password("secret\n", "secret");
  expect_password("secret\r\n", "secret");
  expect_password(" se cret \nmore\n", " se cret ");
  expect_password("0123456789abcdef\n", "0123456789abcdef");
}
END_TEST

START_TEST(bytes_behind_the_first_line_are_not_read)
{
  int fd = pipe_with("one\ntwo\nthree");
  char out[16];

  ck_assert_int_eq(lk__password_read(out, sizeof out, NULL, fd), 3);
  ck_assert_int_eq(lk__password_read(out, sizeof out, NULL, fd), 3);
  ck_assert_mem_eq(out, "two", 3);
  ck_assert_int_eq(lk__password_read(out, sizeof out, NULL, fd), 5);
  close(fd);
}
END_TEST

static void expect_refusal(const char *text, int err)
{
  static const char zeros[16];
  char out[16];
  int fd = pipe_with(text);

  memset(out, 'x', sizeof out);
  ck_assert_int_eq(lk__password_read(out, sizeof out, NULL, fd), err);
  ck_assert_mem_eq(out, zeros, sizeof out);
  close(fd);
}

START_TEST(invalid_passwords_are_refused_and_wiped)
{
  expect_refusal("", LK_ERR_BAD_ARGUMENT);
  expect_refusal("\nsecret\n", LK_ERR_BAD_ARGUMENT);
  expect_refusal("\r\n", LK_ERR_BAD_ARGUMENT);
  expect_refusal("0123456789abcdefg\n", LK_ERR_TOO_BIG);
}
END_TEST

START_TEST(unreadable_password_file_is_logged)
{
  lk_sasl_config s = valid_options();

  s.password = NULL;
  s.password_file = "/nowhere/password";
  ck_assert_int_eq(try_new_client(&s), LK_ERR_SYSTEM);
  ck_assert_int_eq(errno, ENOENT);
  ck_assert_str_eq(logged, "cannot read a password from /nowhere/password: No "
                           "such file or directory");
  s.password_file = "/dev/null";
  ck_assert_int_eq(try_new_client(&s), LK_ERR_BAD_ARGUMENT);
  ck_assert_str_eq(
      logged, "cannot read a password from /dev/null: the first line is empty");
  s.password_file = NULL;
  s.password_fd = 999;
  ck_assert_int_eq(try_new_client(&s), LK_ERR_SYSTEM);
  ck_assert_str_eq(
      logged,
      "cannot read a password from descriptor 999: Bad file descriptor");
}
END_TEST

/* ---- secrets ------------------------------------------------------------ */

enum { SECRET_LEN = 6 }; /* of "secret" */

/* How many times "secret" stood in memory that was freed. */
static size_t leaks;

static void count_leaks(const char *block, size_t size)
{
  for (size_t i = 0; i + SECRET_LEN <= size; i++)
    if (memcmp(block + i, "secret", SECRET_LEN) == 0)
      leaks++;
}

typedef struct inspected_block {
  size_t size;
  max_align_t bytes[];
} inspected_block;

static inspected_block *block_of(void *bytes)
{
  return bytes == NULL
             ? NULL
             : (inspected_block *)(void *)((char *)bytes -
                                           offsetof(inspected_block, bytes));
}

/* A block that changes its size always moves, so that its old content is
   inspected. */
static void *on_resize(void *arg, void *h, size_t size)
{
  inspected_block *old = block_of(h);
  inspected_block *block = size == 0 ? NULL : calloc(1, sizeof *block + size);

  (void)arg;
  if (block != NULL) {
    block->size = size;
    if (old != NULL)
      memcpy(block->bytes, h, old->size < size ? old->size : size);
  }
  if (old != NULL)
    count_leaks(h, old->size);
  free(old);
  return block == NULL ? NULL : block->bytes;
}

/* Memory that is inspected when it is freed. */
static const lk_mem inspected_mem = {on_resize, NULL};

/* What the mechanism `spy` has seen. */
typedef struct spy_record {
  int calls;
  lk_bytes password; /* in memory of the client, which wipes it */
} spy_record;

static int spy_start(void **state, const lk_sasl_facts *facts, const char **why)
{
  spy_record *s = facts->arg;

  (void)why;
  s->calls++;
  s->password = facts->password;
  ck_assert_uint_eq(facts->password.len, SECRET_LEN);
  ck_assert_mem_eq(facts->password.at, "secret", SECRET_LEN);
  ck_assert_str_eq(facts->service, "zookeeper");
  ck_assert_str_eq(facts->host, "zk-sasl-md5");
  ck_assert_uint_eq(facts->size, sizeof *facts);
  ck_assert_str_eq(facts->local, "127.0.0.1:40000");
  ck_assert_str_eq(facts->peer, "[::1]:2181");
  *state = s;
  return 0;
}

/* The first step has no challenge; the second one ends the exchange. */
static int spy_step(void *state, lk_bytes challenge, lk_bytes *response,
                    const char **why)
{
  (void)state;
  (void)response;
  (void)why;
  return challenge.at == NULL ? LK_SASL_CONTINUE : LK_SASL_DONE;
}

static void spy_end(void *state)
{
  (void)state;
}

static const lk_sasl_mechanism spy = {.size = sizeof spy,
                                      .name = "SPY",
                                      .start = spy_start,
                                      .step = spy_step,
                                      .end = spy_end};

static void receive(lk_client *c, lk_buf *b)
{
  lk_want want;

  want = *lk_client_want(c);
  lk_client_received(c, want.attempt, lk__buf_bytes(b), lk__buf_len(b));
  lk__buf_consume(b, lk__buf_len(b));
}

static void send_all(lk_client *c)
{
  lk_want want;

  want = *lk_client_want(c);
  lk_client_sent(c, want.attempt, lk_client_pending(c).len);
}

static void connect_client(lk_client *c)
{
  lk_buf b = wire_buf();
  lk_want want;

  want = *lk_client_want(c);
  lk_client_note_addresses(c, want.attempt, "127.0.0.1:40000", "[::1]:2181");
  lk_client_note_addresses(c, want.attempt - 1, "late", "late");
  lk_client_connected(c, want.attempt);
  lk_client_note_addresses(c, want.attempt, "late", "late");
  send_all(c);
  wire_welcome(&b, 7, 30000);
  receive(c, &b);
  send_all(c);
  lk__buf_free(&b);
}

/* Reply to the client's SASL token with one of the server. */
static void receive_proof(lk_client *c, int32_t xid)
{
  lk_buf b = wire_buf();
  size_t mark = wire_begin(&b);

  wire_header(&b, xid, 0, 0);
  wire_bytes(&b, lk_text("proof"));
  wire_end(&b, mark);
  receive(c, &b);
  lk__buf_free(&b);
}

static lk_client *new_inspected_client(const lk_sasl_config *s)
{
  lk_client_config config = {
      .size = sizeof config, .mem = &inspected_mem, .sasl = s};
  lk_client *c;

  leaks = 0;
  ck_assert_int_eq(lk_client_new(&c, &config, &hooks), 0);
  lk_client_tick(c);
  return c;
}

static int give_secret(char *out, size_t size, void *arg)
{
  (void)size;
  (void)arg;
  memcpy(out, "secret", SECRET_LEN);
  return SECRET_LEN;
}

static void break_connection(lk_client *c)
{
  lk_want want;

  want = *lk_client_want(c);
  lk_client_failed(c, want.attempt, LK_ERR_CONNECTION_LOSS, NULL);
}

/* Run a SASL exchange to its end, and break the connection. */
static void run_exchange(lk_sasl_config *s)
{
  static const char zeros[SECRET_LEN];
  spy_record record = {0, {NULL, 0}};

  s->size = sizeof *s;
  s->mechanism = &spy;
  s->mechanism_arg = &record;
  lk_client *c = new_inspected_client(s);

  connect_client(c);
  ck_assert_int_eq(record.calls, 1);
  receive_proof(c, 1);
  ck_assert_int_eq(lk_client_state(c), LK_STATE_CONNECTED);
  ck_assert_mem_eq(record.password.at, zeros, SECRET_LEN);
  break_connection(c);
  lk_client_free(c);
  ck_assert_uint_eq(leaks, 0);
}

START_TEST(no_password_of_sasl_outlives_its_use)
{
  lk_sasl_config by_function = {.user = "bob", .password = give_secret};
  lk_sasl_config by_descriptor = {.user = "bob"};

  run_exchange(&by_function);
  by_descriptor.password_fd = pipe_with("secret\n");
  run_exchange(&by_descriptor);
  close(by_descriptor.password_fd);
}
END_TEST

START_TEST(a_password_is_wiped_when_its_exchange_is_cut_short)
{
  spy_record record = {0, {NULL, 0}};
  lk_sasl_config s = {.size = sizeof s,
                      .mechanism = &spy,
                      .mechanism_arg = &record,
                      .password = give_secret};
  lk_client *c = new_inspected_client(&s);

  connect_client(c);
  ck_assert_int_eq(record.calls, 1);
  lk_client_free(c);
  ck_assert_uint_eq(leaks, 0);
}
END_TEST

static void add_secret(lk_client *c)
{
  ck_assert_int_eq(lk_add_auth(c, "digest", lk_text("bob:secret"), NULL, NULL),
                   0);
}

/* Make more output than the buffer has room for, so that the buffer moves. */
static void overfill_output(lk_client *c)
{
  for (int i = 0; i < 50; i++)
    ck_assert_int_eq(lk_delete(c, "/of/some/length", -1, NULL, NULL, NULL), 0);
}

START_TEST(no_identity_outlives_its_use)
{
  lk_client *c = new_inspected_client(NULL);
  lk_want want;

  add_secret(c);
  overfill_output(c);
  want = *lk_client_want(c);
  lk_client_connected(c, want.attempt);
  send_all(c);
  lk_buf b = wire_buf();

  wire_welcome(&b, 7, 30000);
  receive(c, &b); /* the output now has the identity and the requests */
  overfill_output(c);
  lk_client_sent(c, want.attempt, 20); /* a part of the identity */
  add_secret(c);
  overfill_output(c);
  overfill_output(c);
  send_all(c);
  overfill_output(c);
  send_all(c);
  ck_assert_uint_eq(leaks, 0);
  add_secret(c);
  break_connection(c);
  ck_assert_uint_eq(leaks, 0);
  lk_client_free(c);
  ck_assert_uint_eq(leaks, 0);
  lk__buf_free(&b);
}
END_TEST

START_TEST(an_identity_that_is_never_sent_is_wiped)
{
  lk_client *c = new_inspected_client(NULL);

  add_secret(c);
  lk_client_free(c);
  ck_assert_uint_eq(leaks, 0);
  c = new_inspected_client(NULL);
  connect_client(c);
  add_secret(c);
  lk_client_free(c);
  ck_assert_uint_eq(leaks, 0);
}
END_TEST

/* The client is not freed, so its output buffer is still in use. */
START_TEST(sent_bytes_do_not_stay_in_the_output)
{
  lk_client *c = new_inspected_client(NULL);

  connect_client(c);
  add_secret(c);
  lk_bytes pending = lk_client_pending(c);
  size_t len = pending.len;

  leaks = 0;
  count_leaks(pending.at, len);
  ck_assert_uint_eq(leaks, 1);
  send_all(c);
  leaks = 0;
  /* The client keeps a small buffer, so the bytes may still be read. */
  count_leaks(pending.at, len);
  ck_assert_uint_eq(leaks, 0);
  lk_client_free(c);
}
END_TEST

SUITE("sasl", no_identity_outlives_its_use,
      an_identity_that_is_never_sent_is_wiped,
      sent_bytes_do_not_stay_in_the_output, incomplete_options_are_refused,
      a_mechanism_may_need_neither_user_nor_password,
      digest_md5_needs_user_and_password, without_memory_there_is_no_client,
      a_password_is_the_first_line, bytes_behind_the_first_line_are_not_read,
      invalid_passwords_are_refused_and_wiped,
      unreadable_password_file_is_logged, no_password_of_sasl_outlives_its_use,
      a_password_is_wiped_when_its_exchange_is_cut_short)
