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

/* The smallest opcode. A smaller one would have a negative index in `places`,
   which does not compile. */
enum { FIRST = LK_OPCODE_CLOSE_SESSION };

/* For each opcode, from FIRST on: its index in lk__opcodes plus 1; 0: there is
   no such opcode. */
static const unsigned char places[] = {
#define PLACE(constant, op, label, in, out, flags) \
  [(op)-FIRST] = AT_##constant + 1,
    LK_OPCODES(PLACE)};

const lk_opcode_info *lk__opcode_info(int32_t op)
{
  uint32_t at = (uint32_t)op - (uint32_t)FIRST;

  if (at >= sizeof places || places[at] == 0)
    return NULL;
  return &lk__opcodes[places[at] - 1];
}
