/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A lock over TLS, with a private CA:
 *
 *     tls HOSTS PATH CA [CERTIFICATE KEY]
 *
 * The server must have a certificate of a CA in the file CA, for the name or
 * the address in HOSTS. With CERTIFICATE the server knows the client by its
 * subject, and only this identity has access to the lock's directory and nodes.
 */

#include <latchkey/acl.h>
#include <latchkey/sync.h>
#include <stdio.h>

static const lk_sync_call limit = {.size = sizeof limit, .timeout_ms = 10000};

/* After LK_ERR_DEADLINE the client knows why no connection was made. */
static void complain(lk_sync_client *client, const char *what, int err)
{
  char trouble[512] = "";

  if (client != NULL && err == LK_ERR_DEADLINE)
    lk_sync_client_last_error(client, trouble, sizeof trouble);
  fprintf(stderr, "%s: %s%s%s\n", what, lk_error_text(err),
          trouble[0] == '\0' ? "" : ": ", trouble);
}

static int print_access(lk_sync_client *client, const char *path)
{
  lk_sync_result *result;
  char text[256];
  int err = lk_sync_get_acl(client, &result, path, &limit);

  if (err != 0)
    return err;
  lk_acl_print(text, sizeof text, result->acl);
  printf("access to %s: %s\n", path, text);
  lk_sync_result_free(result);
  return 0;
}

static int hold(lk_sync_client *client, lk_sync_lock *lock)
{
  int err = lk_sync_lock_acquire(lock, &limit);

  if (err != 0)
    return err;
  printf("held, fencing token %llu\n",
         (unsigned long long)lk_sync_lock_token(lock));
  err = print_access(client, lk_sync_lock_path(lock));
  int released = lk_sync_lock_release_wait(lock, &limit);

  return err != 0 ? err : released;
}

static int work(lk_sync_client *client, const char *path, const lk_acls *acl)
{
  lk_lock_config config = {.size = sizeof config, .acl = acl};
  lk_sync_lock *lock;
  int err = lk_sync_lock_new(&lock, client, path, &config, NULL, NULL);

  if (err == 0)
    err = hold(client, lock);
  if (err == 0)
    printf("released\n");
  else
    complain(client, path, err);
  lk_sync_lock_free(lock);
  return err;
}

/* Each connection attempt reads the files again. Checking them once before all
 * attempts reports an error earlier. */
static int check_files(const lk_tls_config *tls)
{
  char wrong[512];
  int err = lk_tls_check(tls, wrong, sizeof wrong);

  if (err != 0)
    fprintf(stderr, "%s: %s\n", lk_error_text(err), wrong);
  return err;
}

int main(int argc, char **argv)
{
  if (argc != 4 && argc != 6) {
    fprintf(stderr, "usage: tls HOSTS PATH CA [CERTIFICATE KEY]\n");
    return 1;
  }
  lk_tls_config tls = {.size = sizeof tls, .ca_file = argv[3]};
  lk_client_config how = {.size = sizeof how, .hosts = argv[1], .tls = &tls};
  lk_sync_config config = {.size = sizeof config, .client = &how};
  lk_sync_client *client;
  const lk_acls *acl = lk_acl_open();

  if (argc == 6) {
    tls.cert_file = argv[4];
    tls.key_file = argv[5];
    acl = lk_acl_creator(); /* the identity that the certificate proves */
  }
  if (check_files(&tls) != 0)
    return 1;
  int err = lk_sync_client_new(&client, &config);

  if (err != 0) {
    complain(NULL, argv[1], err);
    return 1;
  }
  err = work(client, argv[2], acl);
  lk_sync_client_close(client);
  lk_sync_client_free(client);
  return err != 0;
}
