/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/run/orphans.h"

/* ---- children of before -------------------------------------------------- */

void cli_children_list(cli_children *c)
{
  siginfo_t ignored;

  *c = (cli_children){
      .any = waitid(P_ALL, 0, &ignored, WEXITED | WNOHANG | WNOWAIT) == 0};
  if (c->any)
    (void)cli_proc_children_each(getpid(), cli_pids_add, &c->pids);
}

void cli_children_remove(cli_children *c, pid_t child)
{
  for (size_t i = 0; i < c->pids.count; i++)
    if (c->pids.at[i] == child)
      c->pids.at[i] = c->pids.at[--c->pids.count];
}

static bool was_there(const cli_children *before, pid_t child)
{
  for (size_t i = 0; i < before->pids.count; i++)
    if (before->pids.at[i] == child)
      return true;
  return false;
}

/* ---- children of COMMAND ------------------------------------------------- */

/* Finds the entry "NAME=VALUE" in texts that are each ended by a NUL. Returns
   NULL if there is none. */
static const char *find_variable(lk_bytes environment, const char *name)
{
  const char *begin = environment.at;
  const char *end = begin + environment.len;

  for (const char *s = begin; s < end; s += strlen(s) + 1)
    if (strncmp(s, name, strlen(name)) == 0 && s[strlen(name)] == '=')
      return s;
  return NULL;
}

/* Whether the process was started with these two variables. */
static bool has_variables(pid_t pid, const char *one, const char *other)
{
  char path[64];
  char *entry = NULL;
  size_t room = 0;
  bool has_one = false, has_other = false;

  snprintf(path, sizeof path, "/proc/%ld/environ", (long)pid);
  FILE *file = fopen(path, "re");

  while (file != NULL && getdelim(&entry, &room, '\0', file) > 0) {
    has_one = has_one || strcmp(entry, one) == 0;
    has_other = has_other || strcmp(entry, other) == 0;
  }
  free(entry);
  if (file != NULL)
    fclose(file);
  return has_one && has_other;
}

typedef struct orphan_round {
  const cli_orphans_scope *scope;
  const char *node;    /* the variable LATCHKEY_NODE */
  const char *session; /* the variable LATCHKEY_SESSION */
  cli_orphans_left *out;
  size_t reaped; /* number of orphans that were dead */
  size_t killed; /* number of orphans that got the KILL */
} orphan_round;

static bool is_of_command(const orphan_round *round, pid_t child)
{
  const cli_orphans_scope *scope = round->scope;

  if (!scope->before->any || child == scope->job->pid)
    return true;
  return round->node != NULL && round->session != NULL &&
         has_variables(child, round->node, round->session);
}

static void kill_orphan(pid_t child, void *arg)
{
  orphan_round *round = arg;
  cli_orphans_left *out = round->out;

  if (was_there(round->scope->before, child) ||
      child == round->scope->supervisor)
    return;
  if (waitpid(child, NULL, WNOHANG) == child) {
    round->reaped++;
  } else if (cli_cgroup_contains(&round->scope->job->cgroup, child)) {
    round->killed++; /* by the group; it has not ended yet */
  } else if (!is_of_command(round, child)) {
    if (out->stranger_count < CLI_MAX_STRANGERS)
      out->strangers[out->stranger_count++] = child;
  } else if (kill(child, SIGKILL) != 0 && errno == EPERM) {
    out->refused = (cli_refusal){.pid = child, .error = EPERM};
  } else {
    round->killed++;
  }
}

/* Returns whether another round is needed. `futile_ms`: how long KILL has
   reached none. */
static bool kill_orphans_once(const cli_orphans_scope *scope, int64_t futile_ms,
                              cli_orphans_left *out)
{
  orphan_round round = {
      .scope = scope,
      .node = find_variable(scope->environment, "LATCHKEY_NODE"),
      .session = find_variable(scope->environment, "LATCHKEY_SESSION"),
      .out = out};

  *out = (cli_orphans_left){.not_found = false};
  cli_cgroup_kill(&scope->job->cgroup);
  if (!cli_proc_children_each(getpid(), kill_orphan, &round)) {
    out->not_found = true;
    return false;
  }
  if (round.reaped > 0 || round.killed > 0)
    return true;
  return out->refused.pid != 0 && futile_ms < CLI_MAX_KILL_MS;
}

/* Children cannot be listed. */
static bool kill_unlisted(const cli_orphans_scope *scope)
{
  /* The supervisor's death has killed COMMAND. */
  const cli_kill_scope all = {.cgroup = &scope->job->cgroup,
                              .owns_namespace = scope->job->owns_namespace};
  cli_killed ignored;

  if (!scope->before->any)
    return cli_descendants_kill(&all, &ignored);
  if (!scope->job->foreground)
    cli_job_signal(scope->job, SIGKILL);
  return scope->job->cgroup.fd >= 0;
}

/* A process that ends closes its descriptors first, and its children get
   another parent afterwards. */
static void await_end(pid_t supervisor)
{
  siginfo_t ignored;

  while (waitid(P_PID, (id_t)supervisor, &ignored, WEXITED | WNOWAIT) != 0 &&
         errno == EINTR)
    ;
}

void cli_orphans_kill(const cli_orphans_scope *scope, cli_orphans_left *out)
{
  int64_t pause_ms = 0, futile_ms = 0;

  await_end(scope->supervisor);
  cli_cgroup_open(&scope->job->cgroup);
  while (kill_orphans_once(scope, futile_ms, out)) {
    pause_ms = cli_descendants_kill_pause(pause_ms);
    futile_ms = out->refused.pid != 0 ? futile_ms + pause_ms : 0;
    cli_descendants_await_death(pause_ms);
  }
  if (out->not_found)
    out->not_found = !kill_unlisted(scope);
  cli_cgroup_remove(&scope->job->cgroup);
}
