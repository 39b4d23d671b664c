/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/wire/opcode.h"

/* The flags of records.def. */
enum {
  WRITE = 1,
  LEADER = 2,
  READ_ONLY = 4,
  MULTI = 8,
  MULTI_READ = 16,
  RESULT = 32,
  OPERATIONS = 64,
  NEVER = 128
};

#define INFO(constant, op, label, in, out, flags) \
  {.number = (op),                                \
   .name = #label,                                \
   .request = &lk__##in##_record,                 \
   .reply = &lk__##out##_record,                  \
   .write = ((flags)&WRITE) != 0,                 \
   .leader = ((flags)&LEADER) != 0,               \
   .served_read_only = ((flags)&READ_ONLY) != 0,  \
   .in_multi = ((flags)&MULTI) != 0,              \
   .in_multi_read = ((flags)&MULTI_READ) != 0,    \
   .in_result = ((flags)&RESULT) != 0,            \
   .has_operations = ((flags)&OPERATIONS) != 0,   \
   .never_alone = ((flags)&NEVER) != 0},
const lk_opcode_info lk__opcodes[] = {LK_OPCODES(INFO)};
const size_t lk__nopcodes = sizeof lk__opcodes / sizeof lk__opcodes[0];

/* The index of each opcode in lk__opcodes. */
enum {
#define INDEX(constant, op, label, in, out, flags) AT_##constant,
  LK_OPCODES(INDEX)
};

const lk_opcode_info *lk__opcode_info(int32_t op)
{
  switch (op) {
#define CASE(constant, number, label, in, out, flags) \
  case (number): return &lk__opcodes[AT_##constant];
    LK_OPCODES(CASE)
  }
  return NULL;
}
