/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/* Verbs that send requests and end: what they print, and what they do if an
   allocation, a connection or a request fails. */

#include "support/suite.h"
#include "unit/command/program.h"

#define NODE "_c_01234567-89ab-cdef-0123-456789abcde"

enum { SESSION = 0x1234 };

static void create_with_data(model_server *s, const char *path,
                             const char *data)
{
  model_create(s, path);
  model_set(s, path, data);
}

static void create_nodes(model_server *s)
{
  create_with_data(s, "/d", "some data");
  create_with_data(s, "/bytes", "\xff");
  model_create(s, "/a");
  model_create(s, "/a/b");
  model_create(s, "/a/b/c");
  model_create(s, "/a/e");
  model_create(s, "/shut");
  model_create(s, "/shut/a");
  model_create(s, "/shut/b");
  model_deny(s, "/shut/b", LK_PERM_READ);
  model_create(s, "/lock");
  model_create_ephemeral(s, "/lock/" NODE "0-lock-0000000000", "holder",
                         SESSION);
  model_create_ephemeral(s, "/lock/" NODE "1-lock-0000000001", "waiter",
                         SESSION);
  model_create(s, "/single");
  model_create(s, "/sem");
  model_create(s, "/sem/locks");
  model_create(s, "/sem/leases");
  model_create_ephemeral(s, "/sem/leases/" NODE "2-lease-0000000000", "one",
                         SESSION);
  model_create(s, "/group");
  model_create_ephemeral(s, "/group/x", "1", SESSION);
  model_create_ephemeral(s, "/group/y", "two words", SESSION);
}

#define HELD                                                               \
  "holds  holder  age 0.0 s  token 15  session 0x1234  " NODE              \
  "0-lock-0000000000\nwaits  waiter  age 0.0 s  token 16  session 0x1234 " \
  " " NODE "1-lock-0000000001\n"

/* Verbs that only read: they are repeated after a connection loss. */
static const command_line reads[] = {
    {{"get", "/d"}, 0, "some data"},
    {{"get", "--json", "/bytes"},
     0,
     "{\"path\":\"/bytes\",\"data_base64\":\"/w==\",\"version\":1}\n"},
    {{"get", "/none"}, 1, ""},
    {{"ls", "/a"}, 0, "b\ne\n"},
    {{"ls", "-R", "--json", "/a"},
     0,
     "{\"path\":\"/a\",\"children\":[\"b\",\"b/c\",\"e\"]}\n"},
    {{"ls", "-lR", "/a"}, 0, NULL},
    {{"ls", "-lR", "--json", "/shut"}, 125, NULL},
    {{"tree", "/a"}, 0, "/a\n  b\n    c\n  e\n"},
    {{"tree", "--json", "/shut"},
     125,
     "{\"path\":\"/shut\",\"ephemeral\":false,\"children\":[{\"name\":\"a\","
     "\"ephemeral\":false,\"children\":[]},{\"name\":\"b\",\"children\":[]}]}"
     "\n"},
    {{"tree", "/group"}, 0, "/group\n  x  (ephemeral)\n  y  (ephemeral)\n"},
    {{"stat", "--json", "/d"}, 0, NULL},
    {{"stat", "/d"}, 0, NULL},
    {{"acl", "/d"}, 0, "world:anyone:cdrwa\n"},
    {{"acl", "--json", "/d"},
     0,
     "{\"path\":\"/d\",\"aversion\":0,\"acl\":[{\"scheme\":\"world\",\"id\":"
     "\"anyone\",\"perms\":\"cdrwa\"}]}\n"},
    {{"members", "/group"}, 0, "x 1\ny two words\n"},
    {{"members", "--json", "/group"}, 0, NULL},
    {{"members", "/none"}, 0, ""},
    {{"status", "/lock"}, 1, "/lock: held, 1 waiting\n" HELD},
    {{"status", "--json", "/lock"}, 1, NULL},
    {{"status", "/sem"}, 1, NULL},
    {{"status", "--layout", "kazoo", "/lock"}, 1, NULL},
    {{"status", "--layout", "single", "/single"}, 1, NULL},
    {{"wait", "/a"}, 0, ""},
    {{"wait", "-w", "0", "/lock"}, 1, ""},
};

static const command_line writes[] = {
    {{"create", "/new", "x"}, 0, "/new\n"},
    {{"create", "--json", "-s", "/a/s-"},
     0,
     "{\"path\":\"/a/s-0000000002\"}\n"},
    {{"create", "-p", "/p/q/r", "x"}, 0, "/p/q/r\n"},
    {{"create", "-c", "/container"}, 0, "/container\n"},
    {{"create", "-t", "1000", "-p", "/t/ttl"}, 125, ""}, /* it is not enabled */
    {{"create", "--acl", "world:anyone:r", "/new"}, 0, "/new\n"},
    {{"set", "-V", "1", "/d", "new"}, 0, ""},
    {{"delete", "-V", "1", "/d"}, 0, ""},
    {{"delete", "-v", "-r", "/a"}, 0, ""},
    {{"acl", "/d", "world:anyone:r"}, 0, ""},
    {{"revoke", "/lock"}, 0, "asked  holder  " NODE "0-lock-0000000000\n"},
};

static const command_line doctors[] = {
    {{"doctor", "/d"}, 0, NULL},
    {{"doctor", "--json", "/a"}, 0, NULL},
};

#define COUNT(lines) (sizeof(lines) / sizeof *(lines))

/* ---- without faults ------------------------------------------------------ */

static void expect_results(const command_line *lines, size_t count)
{
  static program p;

  for (size_t i = 0; i < count; i++) {
    program_start(&p);
    loopback_lock(&p.loopback);
    create_nodes(&p.loopback.server);
    loopback_unlock(&p.loopback);
    program_run(&p, lines[i].words);
    ck_assert(program_did(&p, &lines[i]));
    program_stop(&p);
  }
}

START_TEST(verb_prints_its_result)
{
  expect_results(reads, COUNT(reads));
  expect_results(writes, COUNT(writes));
  expect_results(doctors, COUNT(doctors));
}
END_TEST

/* ---- without memory ------------------------------------------------------ */

static void expect_result_or_message(const program *p, const command_line *line)
{
  bool has_message = p->code == 125 && p->err[0] != '\0';

  ck_assert(has_message || program_did(p, line));
}

START_TEST(failed_allocation_ends_verb_with_its_result_or_a_message)
{
  program_sweep(reads, COUNT(reads), PROGRAM_NO_MEMORY, create_nodes,
                expect_result_or_message);
  program_sweep(writes, COUNT(writes), PROGRAM_NO_MEMORY, create_nodes,
                expect_result_or_message);
}
END_TEST

/* ---- without a connection ------------------------------------------------ */

static void expect_result(const program *p, const command_line *line)
{
  ck_assert(program_did(p, line));
}

/* A write is never repeated, since it may have been executed. */
static void expect_result_or_doubt(const program *p, const command_line *line)
{
  bool in_doubt =
      p->code == 125 && p->out[0] == '\0' &&
      (strstr(p->err, "may or may not have been executed") != NULL ||
       strstr(p->err, "connection lost before the reply arrived") != NULL);

  ck_assert(in_doubt || program_did(p, line));
}

START_TEST(verb_that_reads_has_its_result_if_the_connection_breaks)
{
  program_sweep(reads, COUNT(reads), PROGRAM_BREAK_BEFORE, create_nodes,
                expect_result);
}
END_TEST

START_TEST(verb_that_writes_says_so_if_it_is_in_doubt)
{
  program_sweep(writes, COUNT(writes), PROGRAM_BREAK_BEFORE, create_nodes,
                expect_result_or_doubt);
  program_sweep(writes, COUNT(writes), PROGRAM_BREAK_AFTER, create_nodes,
                expect_result_or_doubt);
}
END_TEST

/* ---- without a permission ------------------------------------------------ */

/* Some requests are optional, or sent again. */
static void expect_result_or_refusal(const program *p, const command_line *line)
{
  bool is_reported = strstr(p->err, "not allowed") != NULL ||
                     strstr(p->out, "not allowed") != NULL ||
                     strstr(p->out, "not readable") != NULL ||
                     strstr(p->out, "no permission") != NULL;

  ck_assert(is_reported || program_did(p, line));
}

START_TEST(verb_reports_a_refused_request)
{
  program_sweep(reads, COUNT(reads), PROGRAM_REFUSE, create_nodes,
                expect_result_or_refusal);
  program_sweep(writes, COUNT(writes), PROGRAM_REFUSE, create_nodes,
                expect_result_or_refusal);
  program_sweep(doctors, COUNT(doctors), PROGRAM_REFUSE, create_nodes,
                expect_result_or_refusal);
}
END_TEST

SUITE("verbs", verb_prints_its_result,
      failed_allocation_ends_verb_with_its_result_or_a_message,
      verb_that_reads_has_its_result_if_the_connection_breaks,
      verb_that_writes_says_so_if_it_is_in_doubt,
      verb_reports_a_refused_request)
