/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "cli/run/command_line.h"

/* Finds COMMAND in `*rest`, the operands after LOCK, and moves `*rest` to it.
   For LOCK -c STRING, moves `*rest` to STRING and sets `*is_string`. Returns a
   complaint, or NULL. */
static const char *find_command(const cli_options *o, char ***rest,
                                bool *is_string)
{
  const char *word = **rest;

  if (o->command != NULL && word != NULL)
    return "-c STRING is the whole command: nothing may follow the path";
  if (o->command != NULL)
    return NULL;
  if (word == NULL)
    return "COMMAND is missing";
  *is_string = strcmp(word, "-c") == 0 || strcmp(word, "--command") == 0;
  if (*is_string) {
    char **string = ++*rest;
    bool is_last_word = string[0] != NULL && string[1] == NULL;

    if (!is_last_word)
      return "-c after the path takes one STRING, and nothing may follow it";
    return NULL;
  }
  if (strcmp(word, "--") == 0) {
    char **command = ++*rest;

    return command[0] == NULL ? "COMMAND is missing" : NULL;
  }
  if (*word == '-')
    return "options must stand before the path (put -- before a COMMAND that "
           "begins with -)";
  return NULL;
}

/* Returns the words of the command `$SHELL -c text`, to be freed; NULL: out of
   memory. */
static char **make_shell_words(const char *text)
{
  enum { WORDS = 3 };
  const char *name = getenv("SHELL");
  char **words = calloc(WORDS + 1, sizeof *words); /* ends with NULL */

  if (words == NULL)
    return NULL;
  words[0] = strdup(name != NULL && *name != '\0' ? name : "/bin/sh");
  words[1] = strdup("-c");
  words[2] = strdup(text);
  return words;
}

static void free_shell_words(char **words)
{
  for (size_t i = 0; words != NULL && words[i] != NULL; i++)
    free(words[i]);
  free(words);
}

const char *cli_command_line_parse(const cli_options *o, char **operands,
                                   cli_command_line *out)
{
  char **rest = operands + 1;
  bool string_after_lock = false; /* LOCK -c STRING */
  const char *wrong = find_command(o, &rest, &string_after_lock);

  if (wrong != NULL)
    return wrong;
  const char *string = string_after_lock ? *rest : o->command;

  out->shell_words = string == NULL ? NULL : make_shell_words(string);
  out->argv = string == NULL ? rest : out->shell_words;
  return out->argv == NULL ? lk_error_text(LK_ERR_NO_MEMORY) : NULL;
}

void cli_command_line_free(cli_command_line *c)
{
  free_shell_words(c->shell_words);
}
