/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_ERROR_H
#define LK_ERROR_H

/**
 * @file
 * Every result of the library is 0 or one of these negative numbers. -1 to
 * -999 are the server's error codes; a code that this list does not name is
 * passed on unchanged. Codes of -1001 and below are the library's own. Two of
 * the server's codes are also used by the library itself: -4
 * (LK_ERR_CONNECTION_LOSS) and -8 (LK_ERR_BAD_ARGUMENT).
 *
 * After a lost connection, one of three codes tells the outcome of a request:
 * - LK_ERR_NOT_SENT: it was not executed;
 * - LK_ERR_CONNECTION_LOSS: a read without a reply, which can be repeated;
 * - LK_ERR_IN_DOUBT: a write that may or may not have been executed.
 */

#if defined(_WIN32)
#  define LK_API
#elif defined(__GNUC__)
#  define LK_API __attribute__((visibility("default")))
#else
#  define LK_API
#endif

/** Before a function that a later soname will not have: the compiler warns at
    each use, with `text`, which names what replaces it. */
#if defined(__GNUC__)
#  define LK_DEPRECATED(text) __attribute__((deprecated(text)))
#else
#  define LK_DEPRECATED(text)
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* clang-format off */
#define LK_ERRORS(X)                                                           \
  X(SYSTEM, -1, "server error")                                                \
  X(RUNTIME_INCONSISTENCY, -2, "not executed: an earlier operation of the transaction failed") \
  X(DATA_INCONSISTENCY, -3, "server reports inconsistent data")                \
  X(CONNECTION_LOSS, -4, "connection lost before the reply arrived")           \
  X(MARSHALLING, -5, "malformed bytes")                                        \
  X(UNIMPLEMENTED, -6, "not implemented by this server or in this build")      \
  X(OPERATION_TIMEOUT, -7, "server reports a timeout")                         \
  X(BAD_ARGUMENT, -8, "invalid argument")                                      \
  X(UNKNOWN_SESSION, -12, "unknown session")                                   \
  X(NEW_CONFIG_NO_QUORUM, -13, "no quorum of the new configuration")           \
  X(RECONFIG_IN_PROGRESS, -14, "another reconfiguration is running")           \
  X(API, -100, "server API error")                                             \
  X(NO_NODE, -101, "no such node")                                             \
  X(NO_AUTH, -102, "not allowed by the node's access list")                    \
  X(BAD_VERSION, -103, "the node has another version")                         \
  X(NO_CHILDREN_FOR_EPHEMERALS, -108, "an ephemeral node cannot have children") \
  X(NODE_EXISTS, -110, "the node exists already")                              \
  X(NOT_EMPTY, -111, "the node has children")                                  \
  X(SESSION_EXPIRED, -112, "the session has expired")                          \
  X(INVALID_ACL, -114, "invalid access list: empty, malformed, or without an identity") \
  X(AUTH_FAILED, -115, "the server refuses the credentials")                   \
  X(SESSION_MOVED, -118, "the session is attached to another server")          \
  X(NOT_READ_ONLY, -119, "a read-only server cannot write")                    \
  X(EPHEMERAL_ON_LOCAL_SESSION, -120, "ephemeral node on a local session")     \
  X(NO_WATCHER, -121, "no such watch")                                         \
  X(REQUEST_TIMEOUT, -122, "server reports a request timeout")                 \
  X(RECONFIG_DISABLED, -123, "reconfiguration is disabled")                    \
  X(AUTH_REQUIRED, -124, "the server requires authentication")                 \
  X(QUOTA_EXCEEDED, -125, "quota exceeded")                                    \
  X(THROTTLED, -127, "the server is overloaded and did not execute this")      \
  X(NO_MEMORY, -1001, "out of memory")                                         \
  X(CLOSED, -1002, "the client is closed")                                     \
  X(NOT_SENT, -1003, "connection lost before the request was sent")            \
  X(IN_DOUBT, -1005, "connection lost: the write may or may not have been executed") \
  X(DEADLINE, -1006, "the deadline has passed")                                \
  X(BAD_PATH, -1007, "not a valid path")                                       \
  X(BAD_HOSTS, -1009, "not a valid connect string")                            \
  X(TOO_BIG, -1010, "larger than the configured limit")                        \
  X(TOO_MANY, -1011, "too many requests are outstanding")                      \
  X(STATE, -1012, "not possible in this state")                                \
  X(PROTOCOL, -1013, "the peer does not speak the ZooKeeper protocol")         \
  X(REFUSED, -1014, "the server closed the connection without a reply")        \
  X(CONNECT, -1015, "cannot connect")                                          \
  X(RESOLVE, -1016, "cannot resolve the host name")                            \
  X(FORKED, -1017, "a forked child cannot use the objects of its parent")      \
  X(CANCELLED, -1018, "cancelled")                                             \
  X(BUSY, -1019, "held by another client")                                     \
  X(LOST, -1020, "the lock is lost")                                           \
  X(NOT_HELD, -1021, "the lock is not held by this handle")                    \
  X(UNSURE, -1022, "the lease has run out; nothing proves the lock is held")   \
  X(SEQ_UNSAFE, -1023, "the queue's sequence counter is near its end: drain the queue and delete its directory") \
  X(DEADLOCK, -1024, "deadlock: already held by this owner; release it first") \
  X(QUEUE_FULL, -1025, "the queue has more predecessors than max_queue allows") \
  X(WATCH_MODE, -1026, "the path has a watch of the other mode, which this one would replace") \
  X(OTHER_LIMIT, -1027, "the semaphore has another number of permits")         \
  X(TLS, -1028, "cannot set up TLS")                                           \
  X(REPLY_TOO_BIG, -1029, "the reply is larger than the client accepts")       \
  X(NOT_CONNECTED, -1030, "there is no connection to a server with a quorum")
/* clang-format on */

/** A program treats a number that it does not know as a failure for which there
    is no special case; lk_error_text() has its text. */
enum lk_error {
  LK_OK = 0,
#define LK_ERROR_ENUM(name, number, text) LK_ERR_##name = (number),
  LK_ERRORS(LK_ERROR_ENUM)
#undef LK_ERROR_ENUM
};

/** A constant text in English for `err`; "unknown error" for other numbers. */
LK_API const char *lk_error_text(int err);

/** The name without LK_ERR_, such as "NO_NODE"; NULL for other numbers. */
LK_API const char *lk_error_name(int err);

#ifdef __cplusplus
}
#endif
#endif
