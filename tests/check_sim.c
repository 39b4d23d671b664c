/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/probe.h"
#include "suite.h"

static sim_lab lab;

static void setup(unsigned servers)
{
  sim_ensemble_config config = {.servers = servers};

  sim_lab_init(&lab, &config, 1, NULL);
}

START_TEST(a_client_makes_and_finds_a_node)
{
  for (unsigned servers = 1; servers <= 3; servers += 2) {
    sim_probe p;

    setup(servers);
    sim_probe_init(&p, &lab);
    ck_assert(sim_probe_connect(&p, 0, 10000, 0));
    ck_assert_int_eq(p.timeout_ms, 10000);
    ck_assert_int_eq(sim_probe_do_create(&p, "/a", 0), 0);
    ck_assert_int_eq(sim_probe_do_read(&p, LK_OPCODE_EXISTS, "/a", false), 0);
    ck_assert_int_eq(sim_probe_do_create(&p, "/a", 0), LK_ERR_NODE_EXISTS);
    ck_assert_int_eq(sim_probe_do_sync(&p, "/a"), 0);
    ck_assert_int_eq(sim_probe_do_delete(&p, "/a"), 0);
    ck_assert_int_eq(sim_probe_do_read(&p, LK_OPCODE_GET_DATA, "/a", false),
                     LK_ERR_NO_NODE);
    sim_probe_free(&p);
    sim_lab_free(&lab);
  }
}
END_TEST

SUITE("sim", a_client_makes_and_finds_a_node)
