/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <latchkey/error.h>

#include <stddef.h>

const char *lk_error_text(int err)
{
  switch (err) {
  case LK_OK: return "success";
#define LK_ERROR_TEXT(name, number, text) \
  case (number): return text;
    LK_ERRORS(LK_ERROR_TEXT)
#undef LK_ERROR_TEXT
  }
  return "unknown error";
}

const char *lk_error_name(int err)
{
  switch (err) {
  case LK_OK: return "OK";
#define LK_ERROR_NAME(name, number, text) \
  case (number): return #name;
    LK_ERRORS(LK_ERROR_NAME)
#undef LK_ERROR_NAME
  }
  return NULL;
}
