/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <getopt.h>

#include "cli/options.h"

enum { MOST_OPTIONS = 48 };

/* The lists in the form that getopt_long() wants. */
struct table {
  const cli_option *options[MOST_OPTIONS];
  struct option longs[MOST_OPTIONS + 1];
  char letters[2 * MOST_OPTIONS + 3];
  size_t count;
  size_t nletters;
  size_t nlongs;
};

/* What getopt_long() returns for the long form of an option: its place here,
   beyond all letters. */
enum { LONG_FORM = 256 };

static void enter_option(struct table *t, const cli_option *o)
{
  if (o->letter != '\0') {
    t->letters[t->nletters++] = o->letter;
    if (o->arg != NULL)
      t->letters[t->nletters++] = ':';
  }
  if (o->name != NULL) {
    struct option *l = &t->longs[t->nlongs++];

    l->name = o->name;
    l->has_arg = o->arg != NULL ? required_argument : no_argument;
    l->val = LONG_FORM + (int)t->count;
  }
  t->options[t->count++] = o;
}

static void fill(struct table *t, const cli_option_lists lists)
{
  memset(t, 0, sizeof *t);
  /* Stop at the first operand; tell a missing argument from an unknown
     option. */
  t->letters[t->nletters++] = '+';
  t->letters[t->nletters++] = ':';
  for (size_t i = 0; i < CLI_MOST_LISTS && lists[i] != NULL; i++)
    for (const cli_option *o = lists[i]; o->take != NULL; o++)
      if (t->count < MOST_OPTIONS)
        enter_option(t, o);
}

static const cli_option *find(const struct table *t, int got)
{
  if (got >= LONG_FORM)
    return t->options[got - LONG_FORM];
  for (size_t i = 0; i < t->count; i++)
    if (t->options[i]->letter == got)
      return t->options[i];
  return NULL;
}

static void show_name(cli_text *out, const cli_option *o)
{
  if (o->name != NULL)
    cli_text_printf(out, "--%s", o->name);
  else
    cli_text_printf(out, "-%c", o->letter);
}

/* What getopt_long() stumbled over: a letter, or a whole argument. */
static void show_unknown(cli_text *out, char **argv)
{
  if (optopt > 0 && optopt < LONG_FORM)
    cli_text_printf(out, "unknown option -%c", optopt);
  else
    cli_text_printf(out, "unknown option %s", argv[optind - 1]);
}

static bool take_one(cli_options *o, const struct table *t, int got,
                     char **argv, cli_text *complaint)
{
  const cli_option *option = find(t, got == ':' ? optopt : got);

  if (got == '?' && optopt >= LONG_FORM) {
    cli_text_printf(complaint, "--%s takes no argument",
                    t->options[optopt - LONG_FORM]->name);
    return false;
  }
  if (option == NULL || got == '?') {
    show_unknown(complaint, argv);
    return false;
  }
  if (got == ':') {
    show_name(complaint, option);
    cli_text_printf(complaint, " needs an argument: %s", option->arg);
    return false;
  }
  const char *wrong = option->take(o, optarg);

  if (wrong == NULL)
    return true;
  show_name(complaint, option);
  cli_text_puts(complaint, ": \"");
  cli_text_clean(complaint, lk_text(optarg));
  cli_text_printf(complaint, "\" %s", wrong);
  return false;
}

int cli_options_take(cli_options *o, const cli_option_lists lists, int argc,
                     char **argv, cli_text *complaint)
{
  struct table t;
  int got;

  fill(&t, lists);
  opterr = 0;
  optind = 1;
  while ((got = getopt_long(argc, argv, t.letters, t.longs, NULL)) != -1)
    if (!take_one(o, &t, got, argv, complaint))
      return -1;
  return optind;
}

void cli_options_help(const cli_option_lists lists, cli_text *out)
{
  for (size_t i = 0; i < CLI_MOST_LISTS && lists[i] != NULL; i++)
    for (const cli_option *o = lists[i]; o->take != NULL; o++) {
      cli_text form = {0};

      if (o->help == NULL)
        continue;
      if (o->letter != '\0')
        cli_text_printf(&form, "-%c, ", o->letter);
      else
        cli_text_puts(&form, "    ");
      if (o->name != NULL)
        cli_text_printf(&form, "--%s", o->name);
      if (o->arg != NULL)
        cli_text_printf(&form, " %s", o->arg);
      const char *text = cli_text_end(&form);

      cli_text_printf(out, "  %-28s %s\n", text == NULL ? "" : text, o->help);
      cli_text_free(&form);
    }
}
