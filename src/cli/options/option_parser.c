/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <getopt.h>

#include "cli/options/options.h"

enum { MOST_OPTIONS = 48 };

/* The option lists in the form of getopt_long(). */
struct table {
  const cli_option *options[MOST_OPTIONS];
  size_t count;
  struct option longs[MOST_OPTIONS + 1]; /* the last stays zero */
  size_t nlongs;
  char letters[2 * MOST_OPTIONS + 3]; /* order, ':', and each letter, with ':'
                                         if the option takes an argument */
  size_t nletters;
};

/* For the long form of option `i` of the table getopt_long() returns LONG_FORM
   + i, which is larger than any letter. */
enum { LONG_FORM = 256 };

/* With the order '-', getopt_long() returns this for an operand. */
enum { OPERAND = 1 };

static void add_option(struct table *t, const cli_option *o)
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

/* `order` is a character of getopt_long(). With '+' it stops at the first
   operand. With '-' it returns each operand as OPERAND, and goes on. */
static void fill_getopt_table(struct table *t, const cli_option_lists lists,
                              char order)
{
  memset(t, 0, sizeof *t);
  t->letters[t->nletters++] = order;
  /* ':' makes getopt_long() return ':' for a missing argument and '?' for an
     unknown option. */
  t->letters[t->nletters++] = ':';
  for (size_t i = 0; i < CLI_MOST_LISTS && lists[i] != NULL; i++)
    for (const cli_option *o = lists[i]; o->take != NULL; o++)
      if (t->count < MOST_OPTIONS)
        add_option(t, o);
}

/* Returns the option for `got`, which getopt_long() has returned, or NULL. */
static const cli_option *find_option(const struct table *t, int got)
{
  if (got >= LONG_FORM)
    return t->options[got - LONG_FORM];
  for (size_t i = 0; i < t->count; i++)
    if (t->options[i]->letter == got)
      return t->options[i];
  return NULL;
}

static void show_option_name(cli_text *out, const cli_option *o)
{
  if (o->name != NULL)
    cli_text_printf(out, "--%s", o->name);
  else
    cli_text_printf(out, "-%c", o->letter);
}

/* Shows the unknown option: one letter if `word` is a group of letters, such as
   -nxv; else the whole word. */
static void show_unknown_option(cli_text *out, const char *word)
{
  if (optopt > ' ' && optopt < 0x7f && strncmp(word, "--", 2) != 0) {
    cli_text_printf(out, "unknown option -%c", optopt);
  } else {
    cli_text_puts(out, "unknown option ");
    cli_text_add_printable(out, lk_text(word));
  }
}

/* Handles one result of getopt_long(), `got`, for an option in `word`. On error
   `complaint` gets one line. */
static void parse_option(cli_options *o, const struct table *t, int got,
                         const char *word, cli_text *complaint)
{
  const cli_option *option = find_option(t, got == ':' ? optopt : got);

  if (got == '?' && optopt >= LONG_FORM) {
    cli_text_printf(complaint, "--%s takes no argument",
                    t->options[optopt - LONG_FORM]->name);
    return;
  }
  if (option == NULL || got == '?') {
    show_unknown_option(complaint, word);
    return;
  }
  if (got == ':') {
    show_option_name(complaint, option);
    cli_text_printf(complaint, " needs an argument: %s", option->arg);
    return;
  }
  const char *wrong = option->take(o, optarg);

  if (wrong == NULL)
    return;
  show_option_name(complaint, option);
  cli_text_puts(complaint, ": \"");
  cli_text_add_printable(complaint, lk_text(optarg));
  cli_text_printf(complaint, "\" %s", wrong);
}

/* Parses options. Operands move to argv[1] and after; returns their number.
   Parsing goes on after the first complaint, since a later --json decides how
   the complaint is printed. */
static int parse_options(cli_options *o, const struct table *t, int argc,
                         char **argv, cli_text *complaint)
{
  int operands = 0;

  opterr = 0;
  optind = 0; /* 0 makes getopt_long() read the order character again */
  for (;;) {
    const char *word = argv[optind == 0 ? 1 : optind];
    int got = getopt_long(argc, argv, t->letters, t->longs, NULL);
    cli_text ignored = {0};
    bool first = complaint->len == 0 && !complaint->failed;

    if (got == -1)
      return operands;
    if (got == OPERAND)
      argv[++operands] = optarg;
    else
      parse_option(o, t, got, word, first ? complaint : &ignored);
    cli_text_free(&ignored);
  }
}

int cli_options_take(cli_options *o, const cli_option_lists lists, int argc,
                     char **argv, cli_text *complaint)
{
  struct table t;

  fill_getopt_table(&t, lists, '+');
  parse_options(o, &t, argc, argv, complaint);
  return optind;
}

int cli_options_take_anywhere(cli_options *o, const cli_option_lists lists,
                              int argc, char **argv, cli_text *complaint)
{
  struct table t;

  fill_getopt_table(&t, lists, '-');
  int operands = parse_options(o, &t, argc, argv, complaint);

  while (optind < argc) /* operands after "--" */
    argv[++operands] = argv[optind++];
  argv[operands + 1] = NULL;
  return operands;
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
