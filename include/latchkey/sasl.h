/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SASL_H
#define LK_SASL_H

/**
 * @file
 * SASL (RFC 4422). A client whose lk_client_config.sasl is set authenticates on
 * each connection before it sends a request there. Part of
 * <latchkey/client.h>.
 *
 * The mechanism of the library is DIGEST-MD5 (RFC 2831), which needs libgsasl.
 * A server takes it with `authProvider.1=org.apache.zookeeper.server.auth.
 * SASLAuthenticationProvider` in its zoo.cfg and a section `Server` with
 * DigestLoginModule in its JAAS file. The client then has an identity of the
 * scheme "sasl", whose id is the user. The server proves that it knows the
 * password, too. The password itself is not sent, but an attacker who records
 * the exchange can guess passwords offline, and nothing protects the requests
 * that follow: use TLS.
 *
 * A failed exchange is final: LK_STATE_AUTH_FAILED with LK_ERR_AUTH_FAILED.
 * lk_client_last_error() and the log name the mechanism and the step:
 *   "cannot start"                 no password, or the mechanism lacks
 *                                  something;
 *   "cannot answer the challenge"  the server sent something unexpected;
 *   "the server refuses ..."       user or password are wrong for the server;
 *   "the server is not authentic"  it did not prove that it knows the password;
 *   "the server does not support SASL".
 * If the connection breaks during the exchange, or the exchange takes longer
 * than a connection attempt may, the client tries the next server. During the
 * exchange its state is that of a client without a connection.
 *
 * Servers may refuse a right password while another user authenticates at the
 * same moment (ZOOKEEPER-4839): use one user for all clients of such servers.
 *
 * A server with sessionRequireClientSASLAuth=true refuses each request of a
 * client without SASL, which is final as well (LK_ERR_AUTH_REQUIRED).
 */

#include <latchkey/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The parameters of an exchange. Borrowed until `end` of its mechanism
 * returns. */
typedef struct lk_sasl_facts {
  size_t size;         /**< sizeof(lk_sasl_facts), of the library */
  const char *user;    /**< lk_sasl_config.user; may be NULL */
  lk_bytes password;   /**< `at` NULL: none is configured */
  const char *service; /**< lk_sasl_config.service */
  const char *host;    /**< lk_sasl_config.host */
  const char *server;  /**< name or address of the server that is connected, as
                            the connect string has it, without brackets */
  const char *local;   /**< lk_client_local(), an address with its port; "": not
                            known */
  const char *peer;    /**< lk_client_peer(), likewise */
  const lk_mem *mem;
  lk_client *client;
  void *arg; /**< lk_sasl_config.mechanism_arg */
} lk_sasl_facts;

/** Results of lk_sasl_mechanism.step(). A negative one is an error; with
    another value that the library does not know the exchange fails. */
enum {
  LK_SASL_DONE = 0,    /**< the client expects no further challenge;
                            `response` may be its last token */
  LK_SASL_CONTINUE = 1 /**< the server has to reply to `response` */
};

/**
 * A mechanism. The library copies the table.
 *
 * `start` and `step` are called on the thread of the client, between its
 * inputs. They must not block. They may call any function of the client, and
 * free it: then only `end` follows. `end` must not call any function of the
 * client.
 */
typedef struct lk_sasl_mechanism {
  size_t size;      /**< sizeof(lk_sasl_mechanism) */
  const char *name; /**< for the log: "DIGEST-MD5". Borrowed as long as the
                         client */
  /**
   * Begin an exchange on a new connection. `*state` is passed to `step` and
   * `end`; it may stay NULL. `*why` may be set to a line for the log, a text
   * that lasts until the next call.
   *
   * @return 0; or an error: `end` is not called. LK_ERR_NO_MEMORY ends the
   *         connection, every other error the client.
   */
  int (*start)(void **state, const lk_sasl_facts *facts, const char **why);
  /**
   * Make the next token for the server. `challenge`: the server's last token;
   * `at` is NULL in the first call, before there is one. `*response` is NULL
   * with length 0 at first; it may be set to bytes that last until the next
   * call.
   *
   * @return LK_SASL_CONTINUE: send `*response`, or an empty token if it is
   *         NULL. LK_SASL_DONE: if `*response` is NULL, the exchange has
   *         succeeded; else `*response` is sent, and the exchange has succeeded
   *         when the server replies without an error and without a token.
   *         LK_ERR_AUTH_FAILED: the server is not authentic. LK_ERR_NO_MEMORY:
   *         the connection ends. Other errors: cannot answer the challenge.
   */
  int (*step)(void *state, lk_bytes challenge, lk_bytes *response,
              const char **why);
  /** The exchange is over: free `state`. Called once for each `start` that
      gave 0. */
  void (*end)(void *state);
} lk_sasl_mechanism;

/** DIGEST-MD5. NULL: the library was built without libgsasl. */
LK_API const lk_sasl_mechanism *lk_sasl_digest_md5(void);

/** Longest password, in bytes. */
enum { LK_SASL_PASSWORD_MAX = 1024 };

/**
 * A client's user and password. Set `size`; 0 and NULL select the default.
 * Texts are copied by lk_client_new(). Passwords are wiped when the exchange or
 * the client that needs them ends; libgsasl does not wipe all of its own
 * copies.
 */
typedef struct lk_sasl_config {
  size_t size; /**< sizeof(lk_sasl_config) */
  /** NULL: DIGEST-MD5, which wants `user` and a password. */
  const lk_sasl_mechanism *mechanism;
  void *mechanism_arg; /**< lk_sasl_facts.arg */
  /** ASCII: Java and libgsasl hash other names in different ways. */
  const char *user;
  /** Where the password comes from; one of the three. The first line of a file
      is read by lk_client_new(), which waits for it where the file is a FIFO.
   */
  const char *password_file;
  /** An open descriptor, more than 0, from which lk_client_new() reads the
      password to the end of the line. It is not closed. */
  int password_fd;
  /** Called at each exchange, on the thread of the client: write the password
      to `out` and return its length, at most `size`; or an LK_ERR_...: then the
      exchange cannot start. LK_ERR_NO_MEMORY ends only the connection. It may
      do what lk_sasl_mechanism.start may. */
  int (*password)(char *out, size_t size, void *arg);
  void *password_arg;
  const char *service; /**< NULL: "zookeeper" */
  /** The host name of the servers in DIGEST-MD5. NULL: "zk-sasl-md5", which
      ZooKeeper's servers use. */
  const char *host;
} lk_sasl_config;

#ifdef __cplusplus
}
#endif
#endif
