/* SPDX-License-Identifier: Apache-2.0 */
/* A client in a main loop of GLib; loop.h has the program. */
#include "loop.h"

#include <glib-unix.h>

static GMainLoop *loop;

static gboolean on_readable(gint fd, GIOCondition condition, gpointer p)
{
  (void)fd, (void)condition;
  if (program_dispatch(p))
    return G_SOURCE_CONTINUE;
  g_main_loop_quit(loop);
  return G_SOURCE_REMOVE;
}

int main(int argc, char **argv)
{
  program p;
  int fd = program_begin(&p, argc, argv);

  if (fd >= 0) {
    loop = g_main_loop_new(NULL, FALSE);
    g_unix_fd_add(fd, G_IO_IN, on_readable, &p);
    g_main_loop_run(loop);
    g_main_loop_unref(loop);
  }
  return program_end(&p);
}
