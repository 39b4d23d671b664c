/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "cli/options/number.h"
#include "cli/options/options.h"

/* Defines the function of an option without an argument. The option sets
   `member` to true. */
#define FLAG(member)                                                  \
  static const char *take_##member(cli_options *o, const char *value) \
  {                                                                   \
    (void)value;                                                      \
    o->member = true;                                                 \
    return NULL;                                                      \
  }
FLAG(ephemeral)
FLAG(sequential)
FLAG(container)
FLAG(parents)
FLAG(recursive)
FLAG(children)
FLAG(follow)
FLAG(details)
FLAG(read_only)

/* Defines the function of an option whose text is checked later. */
#define TEXT(member)                                                  \
  static const char *take_##member(cli_options *o, const char *value) \
  {                                                                   \
    o->member = value;                                                \
    return NULL;                                                      \
  }
TEXT(acl)

static const char *take_node_version(cli_options *o, const char *value)
{
  int64_t n;

  if (cli_number_whole(value, CLI_ANY_VERSION, INT32_MAX, &n) != NULL)
    return "is not a version (0 and up; -1 is any)";
  o->node_version = (int32_t)n;
  return NULL;
}

static const char *take_ttl(cli_options *o, const char *value)
{
  return cli_number_whole(value, 1, LK_TTL_MAX_MS, &o->ttl_ms) == NULL
             ? NULL
             : "is not a number of milliseconds from 1 to 1099511627775";
}

static const char *take_event_count(cli_options *o, const char *value)
{
  return cli_number_whole(value, 1, INT64_MAX, &o->count) == NULL
             ? NULL
             : "is not a number of events, 1 or more";
}

/* clang-format off */
const cli_option cli_options_write[] = {
  {'V', "node-version", "VERSION", "only if the node has this version", take_node_version},
  {0}};

const cli_option cli_options_delete[] = {
  {'r', "recursive", NULL, "delete all nodes below it, too", take_recursive},
  {0}};

const cli_option cli_options_create[] = {
  {'e', "ephemeral", NULL, "ephemeral: keep the session until interrupted", take_ephemeral},
  {'s', "sequential", NULL, "the server appends an increasing number", take_sequential},
  {'c', "container", NULL, "the server deletes the node some time after its last child is deleted", take_container},
  {'t', "ttl", "MS", "the server deletes the node if unchanged for MS and without children", take_ttl},
  {'p', "parents", NULL, "create missing parents, too", take_parents},
  {0, "acl", "SPEC", "access list: open, creator, or scheme:id:cdrwa,... (open)", take_acl},
  {0}};

const cli_option cli_options_ls[] = {
  {'l', "long", NULL, "with children, length, version, time of change and owner", take_details},
  {'R', "recursive", NULL, "all nodes below it, not only its children", take_recursive},
  {0}};

const cli_option cli_options_read[] = {
  {0, "read-only", NULL, "accept a read-only server if none with a quorum is found", take_read_only},
  {0}};

const cli_option cli_options_watch[] = {
  {'r', "recursive", NULL, "watch all nodes below it, too; not with COMMAND", take_recursive},
  {0, "children", NULL, "report the names of the children, now and after each change", take_children},
  {'n', "count", "COUNT", "exit after COUNT events, reports, or runs of COMMAND", take_event_count},
  {0}};

const cli_option cli_options_members[] = {
  {'w', "watch", NULL, "show them again after each change, until interrupted", take_follow},
  {0}};
/* clang-format on */
