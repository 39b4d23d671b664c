/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/* Inputs for calls that few transcripts use. */

#include "scripts/inputs.h"

#include <stdio.h>
#include <stdlib.h>

void input_count(script_player *player, words *w)
{
  input_read(player, w, harness_count);
}

void input_ephemerals(script_player *player, words *w)
{
  input_read(player, w, harness_ephemerals);
}

void input_get_acl(script_player *player, words *w)
{
  input_read(player, w, harness_get_acl);
}

/* Takes an access list entry, PERMS:SCHEME:ID. false: there is none. */
static bool take_entry(words *w, lk_acl *out)
{
  char *scheme, *id;

  if (!words_left(w))
    return false;
  out->perms = (int32_t)strtol(words_text(w, "an entry"), &scheme, 10);
  id = *scheme == '\0' ? NULL : strchr(scheme + 1, ':');
  if (id == NULL)
    abort();
  out->scheme = lk_bytes_of(scheme + 1, (size_t)(id - scheme) - 1);
  out->id = lk_text(id + 1);
  return true;
}

enum { ENTRIES_MAX = 4, READS_MAX = 8 };

void input_set_acl(script_player *player, words *w)
{
  harness_call opts = input_take_name(w);
  const char *path = words_text(w, "a path");
  int32_t version = (int32_t)words_number(w, "a version");
  lk_acl entries[ENTRIES_MAX];
  lk_acls acl = {entries, 0};

  while (acl.count < ENTRIES_MAX && take_entry(w, &entries[acl.count]))
    acl.count++;
  harness_set_acl(&player->h, &opts, path, acl.count == 0 ? NULL : &acl,
                  version);
}

void input_create_ttl(script_player *player, words *w)
{
  harness_call opts = input_take_name(w);
  const char *path = words_text(w, "a path");
  lk_bytes data = words_bytes(w, "data");
  int64_t ttl_ms = words_number(w, "ms");
  int flags = input_take_flags(w);

  input_take_options(&opts, w);
  harness_create_ttl(&player->h, &opts, path, data, flags, ttl_ms);
}

void input_multi_read(script_player *player, words *w)
{
  harness_call opts = input_take_name(w);
  lk_read reads[READS_MAX];
  size_t count = 0;

  for (; count < READS_MAX; count++) {
    bool reads_children = words_are(w, "list");

    if (!reads_children && !words_are(w, "get"))
      break;
    const char *path = words_text(w, "a path");

    reads[count] =
        reads_children ? lk_read_get_children(path) : lk_read_get(path);
  }
  input_take_options(&opts, w);
  harness_multi_read(&player->h, &opts, reads, count);
}

void input_who_am_i(script_player *player, words *w)
{
  harness_call opts = input_take_name(w);

  input_take_options(&opts, w);
  harness_who_am_i(&player->h, &opts);
}

void input_config(script_player *player, words *w)
{
  harness_call opts = input_take_name(w);

  input_take_options(&opts, w);
  harness_config(&player->h, &opts);
}

void input_reconfig(script_player *player, words *w)
{
  harness_call opts = input_take_name(w);
  lk_reconfiguration change = {.size = sizeof change, .version = -1};
  const char *v;

  for (;;) {
    if ((v = words_value(w, "joining")) != NULL)
      change.joining = v;
    else if ((v = words_value(w, "leaving")) != NULL)
      change.leaving = v;
    else if ((v = words_value(w, "members")) != NULL)
      change.members = v;
    else if ((v = words_value(w, "version")) != NULL)
      change.version = strtoll(v, NULL, 0);
    else
      break;
  }
  input_take_options(&opts, w);
  harness_reconfig(&player->h, &opts, &change);
}

void input_add_watch(script_player *player, words *w)
{
  harness_call opts = input_take_name(w);
  const char *path = words_text(w, "a path");
  lk_watch_mode mode =
      words_are(w, "tree") ? LK_WATCH_RECURSIVE : LK_WATCH_PERSISTENT;

  input_take_options(&opts, w);
  harness_add_watch(&player->h, &opts, path, mode);
}
