/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_FUZZ_INPUT_H
#define LK_FUZZ_INPUT_H

#include <latchkey/types.h>

/** The bytes of an input that are not used yet. */
typedef struct fuzz_input {
  const uint8_t *at;
  const uint8_t *end;
} fuzz_input;

static inline fuzz_input input_of(const uint8_t *data, size_t size)
{
  return (fuzz_input){data, data + size};
}

static inline bool input_ended(const fuzz_input *in)
{
  return in->at == in->end;
}

/** The next byte. Behind the end of the input every byte is 0. */
static inline unsigned take_byte(fuzz_input *in)
{
  return input_ended(in) ? 0 : *in->at++;
}

/** One byte of length, and so many bytes, or all that are left. They lie in the
    input. */
static inline lk_bytes take_bytes(fuzz_input *in)
{
  size_t len = take_byte(in), left = (size_t)(in->end - in->at);
  lk_bytes b = lk_bytes_of(in->at, len < left ? len : left);

  in->at += b.len;
  return b;
}

/** A row of a table of actions: its name and its function. */
#define ACTION(name) \
  {                  \
#    name, do_##name \
  }

/** A table of actions and the number of its rows. */
#define ACTIONS(table) table, sizeof table / sizeof table[0]

#endif
