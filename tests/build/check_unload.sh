#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# A program may unload the shared library while the lookup of a name hangs.

lib=${abs_top_builddir:-.}/.libs/liblatchkey.so
[ -e "$lib" ] || {
  echo "skipped: there is no shared library"
  exit 77
}
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT

cat >"$work/unload.c" <<'C'
#include <latchkey/client.h>
#include <latchkey/poll.h>

#include <dlfcn.h>
#include <netdb.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

static atomic_bool called, unloaded, returns;

/* The library calls this one, and not that of the C library. */
int getaddrinfo(const char *host, const char *service,
                const struct addrinfo *hints, struct addrinfo **out)
{
  (void)host, (void)service, (void)hints, (void)out;
  called = true;
  while (!unloaded)
    poll(NULL, 0, 1);
  returns = true;
  return EAI_AGAIN;
}

static void *function(void *library, const char *name)
{
  void *f = dlsym(library, name);

  if (f == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    exit(1);
  }
  return f;
}

int main(int argc, char **argv)
{
  const lk_client_config config = {.size = sizeof config, .hosts = "hangs.test"};
  void *library = dlopen(argv[argc - 1], RTLD_NOW);
  lk_poll *p;
  lk_client *c;

  if (library == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  int (*make)(lk_poll **, const lk_mem *) = NULL;
  int (*make_client)(lk_client **, lk_poll *, const lk_client_config *) = NULL;
  bool (*run_once)(lk_poll *, int) = NULL;
  void (*end)(lk_poll *) = NULL;

  *(void **)&make = function(library, "lk_poll_new");
  *(void **)&make_client = function(library, "lk_poll_client_new");
  *(void **)&run_once = function(library, "lk_poll_run_once");
  *(void **)&end = function(library, "lk_poll_free");
  if (make(&p, NULL) != 0 || make_client(&c, p, &config) != 0)
    return 1;
  while (!called)
    run_once(p, 10);
  end(p);
  if (dlclose(library) != 0)
    return 1;
  unloaded = true;
  while (!returns)
    poll(NULL, 0, 1);
  poll(NULL, 0, 100); /* the thread returns into the library, and ends */
  return 0;
}
C
${CC:-cc} -I "${abs_top_srcdir:-.}/include" -I "${abs_top_builddir:-.}/include" \
  -o "$work/unload" -rdynamic "$work/unload.c" -ldl -lpthread || exit 1
"$work/unload" "$lib"
code=$?
[ $code = 0 ] || echo "the program ended with $code"
exit $code
