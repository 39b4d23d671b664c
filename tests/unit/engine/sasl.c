/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sasl/password.h"
#include "support/mechanism.h"
#include "support/peer.h"
#include "support/suite.h"
#include "support/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* The options of SASL, and where secrets are kept in memory. The transcripts in
   tests/scripts/session/sasl*.txt show how a client uses them. */

static char logged[512];

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
    .now = on_now, .random = on_random, .wake = on_wake};

static void on_log(void *arg, int level, int err, const char *text)
{
  (void)arg;
  (void)err;
  if (level == LK_LOG_ERROR)
    snprintf(logged, sizeof logged, "%s", text);
}

/* The result of lk_client_new(). A client that was made is freed again. */
static int make(const lk_sasl_config *sasl)
{
  lk_client_config config = {
      .size = sizeof config, .sasl = sasl, .log = on_log};
  failing_mem mem;
  lk_client *c;

  failing_mem_init(&mem);
  config.mem = &mem.mem;
  logged[0] = '\0';
  int err = lk_client_new(&c, &config, &hooks);
  int error = errno;

  ck_assert((err == 0) == (c != NULL));
  lk_client_free(c);
  ck_assert_uint_eq(mem.live, 0);
  errno = error;
  return err;
}

static fake_mechanism fake;

static lk_sasl_config faked(void)
{
  lk_sasl_config s;

  fake_mechanism_config(&fake, &s);
  return s;
}

/* ---- options ------------------------------------------------------------ */

START_TEST(incomplete_options_are_refused)
{
  lk_sasl_config s = faked();
  lk_sasl_mechanism m = *s.mechanism;

  ck_assert_int_eq(make(&s), 0);
  s.size = 0;
  ck_assert_int_eq(make(&s), LK_ERR_BAD_ARGUMENT);
  ck_assert_str_eq(logged, "lk_sasl_config.size is not set");
  s = faked();
  s.password_file = "/dev/null";
  ck_assert_int_eq(make(&s), LK_ERR_BAD_ARGUMENT);
  ck_assert_str_eq(logged,
                   "lk_sasl_config has more than one source of a password");
  s = faked();
  s.password = NULL;
  s.password_fd = -1;
  ck_assert_int_eq(make(&s), LK_ERR_BAD_ARGUMENT);
  s = faked();
  s.mechanism = &m;
  m.size = 0;
  ck_assert_int_eq(make(&s), LK_ERR_BAD_ARGUMENT);
  ck_assert_str_eq(logged, "lk_sasl_mechanism.size is not set");
  m.size = sizeof m;
  m.step = NULL;
  ck_assert_int_eq(make(&s), LK_ERR_BAD_ARGUMENT);
}
END_TEST

START_TEST(a_mechanism_may_need_neither_user_nor_password)
{
  lk_sasl_config s = faked();

  s.user = NULL;
  s.password = NULL;
  ck_assert_int_eq(make(&s), 0);
}
END_TEST

START_TEST(digest_md5_needs_user_and_password)
{
  lk_sasl_config s = faked();
  int there = lk_sasl_digest_md5() == NULL ? LK_ERR_UNIMPLEMENTED : 0;

  s.mechanism = NULL;
  ck_assert_int_eq(make(&s), there);
  s.user = NULL;
  ck_assert_int_eq(make(&s), LK_ERR_BAD_ARGUMENT);
  s = faked();
  s.mechanism = NULL;
  s.password = NULL;
  ck_assert_int_eq(make(&s), LK_ERR_BAD_ARGUMENT);
  ck_assert_str_eq(logged, "lk_sasl_config has no user or no password");
}
END_TEST

START_TEST(without_memory_there_is_no_client)
{
  lk_sasl_config s = faked();
  bool failed = true;

  s.password = NULL;
  s.password_file = "/proc/self/comm";
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

/* The reading end of a pipe that has this text. */
static int pipe_of(const char *text)
{
  int ends[2];

  ck_assert_int_eq(pipe(ends), 0);
  ck_assert_int_eq(write(ends[1], text, strlen(text)), (ssize_t)strlen(text));
  close(ends[1]);
  return ends[0];
}

static void expect_password(const char *text, const char *password)
{
  char out[16];
  int fd = pipe_of(text);
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
  int fd = pipe_of("one\ntwo\nthree");
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
  int fd = pipe_of(text);

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
  lk_sasl_config s = faked();

  s.password = NULL;
  s.password_file = "/nowhere/password";
  ck_assert_int_eq(make(&s), LK_ERR_SYSTEM);
  ck_assert_int_eq(errno, ENOENT);
  ck_assert_str_eq(logged, "cannot read a password from /nowhere/password: No "
                           "such file or directory");
  s.password_file = "/dev/null";
  ck_assert_int_eq(make(&s), LK_ERR_BAD_ARGUMENT);
  ck_assert_str_eq(
      logged, "cannot read a password from /dev/null: the first line is empty");
  s.password_file = NULL;
  s.password_fd = 999;
  ck_assert_int_eq(make(&s), LK_ERR_SYSTEM);
  ck_assert_str_eq(
      logged,
      "cannot read a password from descriptor 999: Bad file descriptor");
}
END_TEST

/* ---- secrets ------------------------------------------------------------ */

/* Memory that is inspected when it is freed. */
static size_t spills;

static void look_at(const char *block, size_t size)
{
  for (size_t i = 0; i + 6 <= size; i++)
    spills += memcmp(block + i, "secret", 6) == 0;
}

/* Each block has its size in front. A block that grows always moves, so that
   its old content is inspected. */
static void *on_resize(void *arg, void *p, size_t size)
{
  size_t *old = p == NULL ? NULL : (size_t *)p - 2;
  size_t *block = size == 0 ? NULL : calloc(1, size + 2 * sizeof *block);

  (void)arg;
  if (block != NULL) {
    *block = size;
    if (old != NULL)
      memcpy(block + 2, p, *old < size ? *old : size);
  }
  if (old != NULL)
    look_at(p, *old);
  free(old);
  return block == NULL ? NULL : block + 2;
}

static const lk_mem watched = {on_resize, NULL};

typedef struct sight {
  int calls;
  lk_bytes password;
} sight;

static int see_start(void **state, const lk_sasl_facts *facts, const char **why)
{
  sight *s = facts->arg;

  (void)why;
  s->calls++;
  s->password = facts->password;
  ck_assert_uint_eq(facts->password.len, 6);
  ck_assert_mem_eq(facts->password.at, "secret", 6);
  ck_assert_str_eq(facts->service, "zookeeper");
  ck_assert_str_eq(facts->host, "zk-sasl-md5");
  ck_assert_uint_eq(facts->size, sizeof *facts);
  *state = s;
  return 0;
}

static int see_step(void *state, lk_bytes challenge, lk_bytes *response,
                    const char **why)
{
  (void)state;
  (void)response;
  (void)why;
  return challenge.at == NULL ? LK_SASL_CONTINUE : LK_SASL_DONE;
}

static void see_end(void *state)
{
  (void)state;
}

static const lk_sasl_mechanism seen = {.size = sizeof seen,
                                       .name = "SEEN",
                                       .start = see_start,
                                       .step = see_step,
                                       .end = see_end};

static void feed(lk_client *c, lk_buf *b)
{
  lk_want want;

  lk_client_want(c, &want);
  lk_client_received(c, want.attempt, lk__buf_bytes(b), lk__buf_len(b));
  lk__buf_consume(b, lk__buf_len(b));
}

static void send_all(lk_client *c)
{
  lk_want want;

  lk_client_want(c, &want);
  lk_client_sent(c, want.attempt, lk_client_pending(c).len);
}

static void connect(lk_client *c)
{
  lk_buf b = wire_buf();
  lk_want want;

  lk_client_want(c, &want);
  lk_client_connected(c, want.attempt);
  send_all(c);
  wire_welcome(&b, 7, 30000);
  feed(c, &b);
  send_all(c);
  lk__buf_free(&b);
}

static void prove(lk_client *c, int32_t xid)
{
  lk_buf b = wire_buf();
  size_t mark = wire_begin(&b);

  wire_header(&b, xid, 0, 0);
  wire_bytes(&b, lk_text("proof"));
  wire_end(&b, mark);
  feed(c, &b);
  lk__buf_free(&b);
}

static lk_client *new_watched(const lk_sasl_config *s)
{
  lk_client_config config = {.size = sizeof config, .mem = &watched, .sasl = s};
  lk_client *c;

  spills = 0;
  ck_assert_int_eq(lk_client_new(&c, &config, &hooks), 0);
  lk_client_tick(c);
  return c;
}

static int give_secret(char *out, size_t size, void *arg)
{
  (void)size;
  (void)arg;
  memcpy(out, "secret", 6);
  return 6;
}

/* Run one SASL exchange to its end, and begin a second one. */
static void use_secret(lk_sasl_config *s)
{
  static const char zeros[6];
  sight of_it = {0, {NULL, 0}};

  s->size = sizeof *s;
  s->mechanism = &seen;
  s->mechanism_arg = &of_it;
  lk_client *c = new_watched(s);

  connect(c);
  ck_assert_int_eq(of_it.calls, 1);
  prove(c, 1);
  ck_assert_int_eq(lk_client_state(c), LK_STATE_CONNECTED);
  ck_assert_mem_eq(of_it.password.at, zeros, 6);
  lk_want want;

  lk_client_want(c, &want);
  lk_client_failed(c, want.attempt, 0, NULL);
  lk_client_free(c);
  ck_assert_uint_eq(spills, 0);
}

START_TEST(no_password_of_sasl_outlives_its_use)
{
  lk_sasl_config by_function = {.user = "bob", .password = give_secret};
  lk_sasl_config by_descriptor = {.user = "bob"};

  use_secret(&by_function);
  by_descriptor.password_fd = pipe_of("secret\n");
  use_secret(&by_descriptor);
  close(by_descriptor.password_fd);
}
END_TEST

START_TEST(a_password_is_wiped_when_its_exchange_is_cut_short)
{
  sight of_it = {0, {NULL, 0}};
  lk_sasl_config s = {.size = sizeof s,
                      .mechanism = &seen,
                      .mechanism_arg = &of_it,
                      .password = give_secret};
  lk_client *c = new_watched(&s);

  connect(c);
  ck_assert_int_eq(of_it.calls, 1);
  lk_client_free(c);
  ck_assert_uint_eq(spills, 0);
}
END_TEST

static void add_secret(lk_client *c)
{
  ck_assert_int_eq(lk_add_auth(c, "digest", lk_text("bob:secret"), NULL, NULL),
                   0);
}

/* Make more output than the buffer has room for, so that the buffer moves. */
static void crowd(lk_client *c)
{
  for (int i = 0; i < 50; i++)
    ck_assert_int_eq(lk_delete(c, "/of/some/length", -1, NULL, NULL, NULL), 0);
}

static void break_connection(lk_client *c)
{
  lk_want want;

  lk_client_want(c, &want);
  lk_client_failed(c, want.attempt, LK_ERR_CONNECTION_LOSS, NULL);
}

START_TEST(no_identity_outlives_its_use)
{
  lk_client *c = new_watched(NULL);
  lk_want want;

  add_secret(c);
  crowd(c);
  lk_client_want(c, &want);
  lk_client_connected(c, want.attempt);
  send_all(c);
  lk_buf b = wire_buf();

  wire_welcome(&b, 7, 30000);
  feed(c, &b); /* the output now has the identity and the requests */
  crowd(c);
  lk_client_sent(c, want.attempt, 20);
  add_secret(c);
  crowd(c);
  crowd(c);
  send_all(c);
  crowd(c);
  send_all(c);
  ck_assert_uint_eq(spills, 0);
  add_secret(c);
  break_connection(c);
  ck_assert_uint_eq(spills, 0);
  lk_client_free(c);
  ck_assert_uint_eq(spills, 0);
  lk__buf_free(&b);
}
END_TEST

START_TEST(an_identity_that_is_never_sent_is_wiped)
{
  lk_client *c = new_watched(NULL);

  add_secret(c);
  lk_client_free(c);
  ck_assert_uint_eq(spills, 0);
  c = new_watched(NULL);
  connect(c);
  add_secret(c);
  lk_client_free(c);
  ck_assert_uint_eq(spills, 0);
}
END_TEST

/* The client is not freed, so its output buffer is still in use. */
START_TEST(sent_bytes_do_not_stay_in_the_output)
{
  lk_client *c = new_watched(NULL);

  connect(c);
  add_secret(c);
  lk_bytes pending = lk_client_pending(c);
  size_t len = pending.len;

  spills = 0;
  look_at(pending.at, len);
  ck_assert_uint_eq(spills, 1);
  send_all(c);
  spills = 0;
  look_at(pending.at,
          len); /* a small buffer is kept, so it may still be read */
  ck_assert_uint_eq(spills, 0);
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
