/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <fcntl.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/print.h"
#include "cli/run.h"

static const char features[] =
#ifdef LK_WITH_CARES
    "cares";
#else
    "none";
#endif

/* Descriptors that are closed would be taken by our own. Writing to them stays
   an error. */
static void open_standard_ones(void)
{
  int fd;

  do
    fd = open("/dev/null", O_RDONLY);
  while (fd >= 0 && fd <= STDERR_FILENO);
  if (fd > STDERR_FILENO)
    close(fd);
}

/* Where the words of the command line lie, one behind the other. */
static cli_title title_of(int argc, char **argv)
{
  cli_title title = {argv[0], strlen(argv[0])};

  for (int i = 1; i < argc && argv[i] == title.at + title.len + 1; i++)
    title.len += 1 + strlen(argv[i]);
  return title;
}

static int show_help(const cli_command *c, bool all)
{
  cli_text out = {0};

  cli_command_help(c, all, &out);
  int code = cli_print(&out);

  cli_text_free(&out);
  return code;
}

static int show_version(void)
{
  cli_text out = {0};

  cli_text_printf(&out, "latchkey %s\nfeatures: %s\n", PACKAGE_VERSION,
                  features);
  int code = cli_print(&out);

  cli_text_free(&out);
  return code;
}

static int refuse(const cli_command *c, const char *wrong)
{
  cli_say("%s%s%s; latchkey %s --help shows the form", c->name,
          *wrong == '\0' ? "" : ": ", wrong, c->name);
  return CLI_FAILED;
}

static int check_operands(const cli_command *c, char **operands, int count)
{
  if (count < c->least)
    return refuse(c, strstr(c->form, "LOCK") != NULL ? "there is no LOCK"
                                                     : "there is no PATH");
  if (c->most >= 0 && count > c->most)
    return refuse(c, "too many operands");
  if (count == 0 || operands[0][0] == '/')
    return CLI_DONE;
  cli_text word = {0};

  cli_text_clean(&word, lk_text(operands[0]));
  const char *text = cli_text_end(&word);

  cli_say("%s: \"%s\" is no path: it begins with /", c->name,
          text == NULL ? "" : text);
  cli_text_free(&word);
  return CLI_FAILED;
}

/* `argv[0]` is the verb, or stands in its place; `bare`: there was none. */
static int do_command(const cli_command *c, bool bare, int argc, char **argv,
                      cli_title title)
{
  cli_text complaint = {0};
  cli_options o;

  cli_options_init(&o);
  int first = cli_options_take(&o, c->options, argc, argv, &complaint);

  if (first < 0) {
    const char *line = cli_text_end(&complaint);
    int code = refuse(c, line == NULL ? "" : line);

    cli_text_free(&complaint);
    return code;
  }
  if (o.help)
    return show_help(c, bare);
  if (o.version)
    return show_version();
  int code = check_operands(c, argv + first, argc - first);

  if (code != CLI_DONE)
    return code;
  return c->run != NULL ? c->run(&o, argv + first)
                        : cli_run(&o, argv + first, title);
}

int main(int argc, char **argv)
{
  open_standard_ones();
  if (argc < 2) {
    cli_say("nothing to do; latchkey --help shows what there is");
    return CLI_FAILED;
  }
  cli_title title = title_of(argc, argv);
  bool bare = argv[1][0] == '/' || argv[1][0] == '-';
  const cli_command *c = bare ? cli_commands : cli_command_find(argv[1]);

  if (c == NULL) {
    cli_say("\"%s\" is neither a verb nor a path; latchkey --help lists the "
            "verbs",
            argv[1]);
    return CLI_FAILED;
  }
  return bare ? do_command(c, true, argc, argv, title)
              : do_command(c, false, argc - 1, argv + 1, title);
}
