/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/* Reading and changing the configuration of an ensemble. */

#include "proto/engine/calls.h"
#include "proto/wire/opcode.h"

/* The node of the configuration is never below the client's chroot, so the
 * chroot of this request is empty. */
int lk_get_config(lk_client *c, const lk_call *call, lk_get_cb done, void *arg)
{
  lk_call_spec spec = {.op = LK_OPCODE_GET_DATA,
                       .chroot = "",
                       .path = "/zookeeper/config",
                       .kind = LK_WATCH_KIND_DATA,
                       .done = (void (*)(void))done,
                       .arg = arg};

  return lk__call_read(c, &spec, call);
}

int lk_reconfig(lk_client *c, const lk_reconfiguration *change,
                const lk_call *call, lk_get_cb done, void *arg)
{
  static const lk_sized_struct what = LK_SIZED_STRUCT(lk_reconfiguration);
  lk_reconfiguration own;
  int err = lk__call_copy_options(c, &what, &own, change);

  if (err != 0)
    return err;
  struct lk_reconfig_request r = {.joining = lk_text(own.joining),
                                  .leaving = lk_text(own.leaving),
                                  .new_members = lk_text(own.members),
                                  .config_id = own.version};
  lk_call_spec spec = {
      .op = LK_OPCODE_RECONFIG, .done = (void (*)(void))done, .arg = arg};
  bool incremental = own.joining != NULL || own.leaving != NULL;
  bool is_new_list = own.members != NULL;

  err = lk__call_take_options(c, &spec, call);
  /* A change is either incremental or a new list of all members. */
  if (err == 0 && incremental == is_new_list)
    err = LK_ERR_BAD_ARGUMENT;
  return err != 0 ? err
                  : lk__call_send(c, &spec, &lk__reconfig_request_record, &r);
}
