/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CONFORMANCE_EXCEPTIONS_H
#define LK_CONFORMANCE_EXCEPTIONS_H

/** Why a scenario does not run with a kind. */
typedef struct exception {
  const char *scenario;
  const char *kind;
  const char *reason;
} exception;

static const exception exceptions[] = {
    {"waiters_are_granted_in_the_order_of_their_requests", "multi-lock",
     "a rival that wants one member overtakes those that wait for another"},
    {"waiters_are_granted_in_the_order_of_their_requests", "single-node",
     "without a queue there is no order"},
    {"fault_at_any_request_of_a_recovery_loses_no_place", "multi-lock",
     "it deletes its nodes and begins again"},
    {"fault_at_any_request_of_a_recovery_loses_no_place", "multi-lock-alike",
     "it deletes its nodes and begins again"},
    {"waiter_whose_node_is_deleted_queues_again", "single-node",
     "a waiter has no node"},
    {"second_acquire_can_be_cancelled", "semaphore", "it is refused"},
    {"second_acquire_can_be_cancelled", "semaphore-several", "it is refused"},
    {"second_acquire_can_be_cancelled", "semaphore-kazoo", "it is refused"},
    {"second_acquire_can_be_cancelled", "semaphore-kazoo-several",
     "it is refused"},
    {"revoked_waiter_is_notified_when_it_holds", "single-node",
     "a waiter has no node"},
    {"acquire_without_read_permission_fails_and_leaves_nothing", "single-node",
     "the directory is not read"},
};

#endif
