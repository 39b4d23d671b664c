/* SPDX-License-Identifier: Apache-2.0 */
/* A client in a loop of libuv; loop.h has the program. */
#include "loop.h"

#include <uv.h>

static void on_readable(uv_poll_t *handle, int status, int events)
{
  (void)status, (void)events;
  if (!program_dispatch(handle->data))
    uv_close((uv_handle_t *)handle, NULL);
}

int main(int argc, char **argv)
{
  program p;
  uv_poll_t handle = {.data = &p};
  int fd = program_begin(&p, argc, argv);

  if (fd >= 0) {
    uv_poll_init(uv_default_loop(), &handle, fd);
    uv_poll_start(&handle, UV_READABLE, on_readable);
    uv_run(uv_default_loop(), UV_RUN_DEFAULT);
    uv_loop_close(uv_default_loop());
  }
  return program_end(&p);
}
