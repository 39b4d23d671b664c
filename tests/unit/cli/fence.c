/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "cli/locks/fence.h"
#include "cli/output/print.h"
#include "support/suite.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- the system calls, which are recorded, and fail or crash ------------- */

static struct {
  char names[400]; /* of the recorded calls, with blanks between them */
  int count;
  int fail_at;  /* number of the call that fails with `error`; 0: none */
  int crash_at; /* number of the call before which the process ends; 0: none */
  int error;
  bool no_links;    /* the file system has no hard links */
  bool short_write; /* write() leaves out the last byte */
  bool rival;       /* another process creates FILE, just before linkat() */
} calls;

static char folder[64];
static char file[80];

static void write_file(const char *text)
{
  FILE *f = fopen(file, "w");

  ck_assert_ptr_nonnull(f);
  fputs(text, f);
  fclose(f);
}

/* Records a system call, and returns whether it is to fail. Calls of other
 * tests are not recorded. */
static bool call_fails(const char *name)
{
  if (*folder == '\0')
    return false;
  calls.count++;
  if (calls.rival && strcmp(name, "linkat") == 0)
    write_file("9\n");
  if (calls.count == calls.crash_at)
    _exit(0);
  strcat(calls.names, *calls.names == '\0' ? "" : " ");
  strcat(calls.names, name);
  errno = calls.error;
  if (calls.no_links && strcmp(name, "linkat") == 0) {
    errno = EPERM;
    return true;
  }
  return calls.count == calls.fail_at;
}

#define WRAP(type, name, params, args)                  \
  type __real_##name params;                            \
  type __wrap_##name params;                            \
  type __wrap_##name params                             \
  {                                                     \
    return call_fails(#name) ? -1 : __real_##name args; \
  }

WRAP(int, mkostemp, (char *name, int flags), (name, flags))
/* The name of mkostemp() in 32-bit programs with large files. */
int __wrap_mkostemp64(char *name, int flags)
    __attribute__((alias("__wrap_mkostemp")));
WRAP(int, fchmod, (int fd, mode_t mode), (fd, mode))
WRAP(int, fchown, (int fd, uid_t uid, gid_t gid), (fd, uid, gid))
WRAP(int, renameat, (int from, const char *a, int to, const char *b),
     (from, a, to, b))
WRAP(int, linkat, (int from, const char *a, int to, const char *b, int flags),
     (from, a, to, b, flags))
WRAP(int, unlinkat, (int dir, const char *name, int flags), (dir, name, flags))
WRAP(int, unlink, (const char *name), (name))

int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __wrap_fsync(int fd)
{
  struct stat st;

  ck_assert_int_eq(fstat(fd, &st), 0);
  return call_fails(S_ISDIR(st.st_mode) ? "fsync-folder" : "fsync-file")
             ? -1
             : __real_fsync(fd);
}

/* write() also serves the test's own output, so only writes to FILE are
 * recorded. */
ssize_t __real_write(int fd, const void *at, size_t len);
ssize_t __wrap_write(int fd, const void *at, size_t len);
ssize_t __wrap_write(int fd, const void *at, size_t len)
{
  struct stat st;

  if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || fd <= STDERR_FILENO)
    return __real_write(fd, at, len);
  if (call_fails("write"))
    return -1;
  return __real_write(fd, at, calls.short_write ? len - 1 : len);
}

/* ---- a folder with FILE -------------------------------------------------- */

static uint64_t largest;    /* the largest token so far, from FILE */
static char complaint[400]; /* of the last pass_token() */

/* Starts a process that removes the folder when the test's process and its
 * children have ended in any way. It reads a pipe that they keep open. */
static void remove_folder_at_end(void)
{
  int ends[2];
  char byte;

  ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
  if (fork() != 0) {
    close(ends[0]);
    return;
  }
  setpgid(0, 0); /* not in the test's process group, which check kills */
  close(ends[1]);
  while (read(ends[0], &byte, 1) > 0)
    ;
  execlp("rm", "rm", "-rf", folder, (char *)NULL);
  _exit(1);
}

static void make_folder(void)
{
  strcpy(folder, "fence.XXXXXX");
  ck_assert_ptr_nonnull(mkdtemp(folder));
  remove_folder_at_end();
  snprintf(file, sizeof file, "%s/file", folder);
  memset(&calls, 0, sizeof calls);
}

/* The number of files in the folder. */
static int count_files(void)
{
  DIR *d = opendir(folder);
  int count = 0;

  for (struct dirent *e = readdir(d); e != NULL; e = readdir(d))
    count += e->d_name[0] != '.';
  closedir(d);
  return count;
}

static void remove_folder(void)
{
  char command[100];

  snprintf(command, sizeof command, "rm -r %s", folder);
  ck_assert_int_eq(system(command), 0);
}

static void expect_content(const char *text)
{
  char got[100] = "";
  FILE *f = fopen(file, "r");

  ck_assert_ptr_nonnull(f);
  got[fread(got, 1, sizeof got - 1, f)] = '\0';
  fclose(f);
  ck_assert_str_eq(got, text);
}

/* Passes a token, as `latchkey fence` does. Returns the exit code. */
static int pass_token_at(const char *path, uint64_t token)
{
  cli_text text = {0};
  int code;

  calls.names[0] = '\0';
  calls.count = 0;
  code = cli_fence_check_token(path, token, &largest, &text);
  snprintf(complaint, sizeof complaint, "%s", cli_text_end(&text));
  cli_text_free(&text);
  return code;
}

static int pass_token(uint64_t token)
{
  return pass_token_at(file, token);
}

/* ---- tests --------------------------------------------------------------- */

START_TEST(token_is_digits_up_to_64_bits)
{
  static const char *const bad[] = {"",
                                    "-1",
                                    "+1",
                                    " 1",
                                    "1 ",
                                    "0x1",
                                    "1\n",
                                    "18446744073709551616",
                                    "99999999999999999999"};
  uint64_t n;

  ck_assert(cli_fence_parse_token(lk_text("0"), &n) && n == 0);
  ck_assert(cli_fence_parse_token(lk_text("0012"), &n) && n == 12);
  ck_assert(cli_fence_parse_token(lk_text("18446744073709551615"), &n) &&
            n == UINT64_MAX);
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
    ck_assert_msg(!cli_fence_parse_token(lk_text(bad[i]), &n), "%s", bad[i]);
}
END_TEST

START_TEST(smaller_token_than_the_largest_is_refused)
{
  make_folder();
  ck_assert_int_eq(pass_token(5), CLI_EXIT_DONE);
  ck_assert_int_eq(pass_token(5), CLI_EXIT_DONE);
  ck_assert_int_eq(pass_token(4), CLI_EXIT_NO);
  ck_assert_uint_eq(largest, 5);
  expect_content("5\n");
  ck_assert_int_eq(pass_token(UINT64_MAX), CLI_EXIT_DONE);
  ck_assert_int_eq(pass_token(UINT64_MAX - 1), CLI_EXIT_NO);
  expect_content("18446744073709551615\n");
  ck_assert_int_eq(count_files(), 1);
  remove_folder();
}
END_TEST

START_TEST(token_is_on_the_disk_before_it_is_accepted)
{
  make_folder();
  ck_assert_int_eq(pass_token(5), CLI_EXIT_DONE);
  ck_assert_str_eq(calls.names,
                   "mkostemp fchmod write fsync-file linkat unlink "
                   "fsync-folder");
  ck_assert_int_eq(pass_token(6), CLI_EXIT_DONE);
  ck_assert_str_eq(calls.names, "unlinkat fchown fchmod write fsync-file "
                                "renameat fsync-folder");
  ck_assert_int_eq(pass_token(6), CLI_EXIT_DONE);
  ck_assert_str_eq(calls.names, "fsync-folder");
  ck_assert_int_eq(pass_token(5), CLI_EXIT_NO);
  ck_assert_str_eq(calls.names, "");
  remove_folder();
}
END_TEST

/* Another process passes `token` and ends before call number `at`. The test
 * above shows the order of the calls. */
static void pass_and_crash(uint64_t token, int at)
{
  pid_t pid = fork();
  int status;

  if (pid == 0) {
    calls.crash_at = at;
    pass_token(token);
    _exit(1);
  }
  ck_assert_int_eq(waitpid(pid, &status, 0), pid);
  ck_assert_int_eq(status, 0);
}

/* Numbers of calls when FILE is replaced. */
enum { FCHOWN = 2, RENAMEAT = 6 };

/* Number of a call when FILE is created. */
enum { LINKAT = 5 };

enum { LAST_CALL = 7 }; /* in both cases */

START_TEST(crash_at_any_call_leaves_the_old_token_or_the_new_one)
{
  for (int at = 1; at <= LAST_CALL; at++) {
    bool replaced = at > RENAMEAT;

    make_folder();
    ck_assert_int_eq(pass_token(5), CLI_EXIT_DONE);
    pass_and_crash(7, at);
    expect_content(replaced ? "7\n" : "5\n");
    ck_assert_int_eq(pass_token(4), CLI_EXIT_NO);
    ck_assert_int_eq(pass_token(6), replaced ? CLI_EXIT_NO : CLI_EXIT_DONE);
    ck_assert_int_eq(pass_token(8), CLI_EXIT_DONE);
    /* The temporary file of the crashed process is removed. */
    ck_assert_int_eq(count_files(), 1);
    remove_folder();
  }
}
END_TEST

START_TEST(crash_while_file_is_made_leaves_none_or_a_whole_one)
{
  for (int at = 1; at <= LAST_CALL; at++) {
    bool created = at > LINKAT;

    make_folder();
    pass_and_crash(7, at);
    ck_assert_int_eq(access(file, F_OK), created ? 0 : -1);
    ck_assert_int_eq(pass_token(6), created ? CLI_EXIT_NO : CLI_EXIT_DONE);
    ck_assert_int_eq(pass_token(8), CLI_EXIT_DONE);
    remove_folder();
  }
}
END_TEST

START_TEST(call_that_fails_is_a_failure_and_leaves_nothing_behind)
{
  for (int at = FCHOWN; at <= LAST_CALL; at++) {
    make_folder();
    ck_assert_int_eq(pass_token(5), CLI_EXIT_DONE);
    calls.fail_at = at;
    calls.error = ENOSPC;
    /* fchown is tried twice, and fails only the first time. */
    ck_assert_int_eq(pass_token(7),
                     at == FCHOWN ? CLI_EXIT_DONE : CLI_EXIT_FAILED);
    if (at > FCHOWN) {
      ck_assert_ptr_nonnull(strstr(complaint, ": No space left on device"));
      expect_content(at > RENAMEAT ? "7\n" : "5\n");
    }
    ck_assert_int_eq(count_files(), 1);
    calls.fail_at = 0;
    ck_assert_int_eq(pass_token(8), CLI_EXIT_DONE);
    remove_folder();
  }
}
END_TEST

START_TEST(failure_while_file_is_made_leaves_nothing_behind)
{
  for (int at = 1; at <= LINKAT; at++) {
    make_folder();
    calls.fail_at = at;
    calls.error = EIO;
    ck_assert_int_eq(pass_token(7), CLI_EXIT_FAILED);
    ck_assert_int_eq(count_files(), 0);
    remove_folder();
  }
}
END_TEST

/* EINVAL: the file system does not know fsync() of a folder. */
START_TEST(failed_sync_of_the_folder_is_a_failure_unless_it_is_not_supported)
{
  make_folder();
  ck_assert_int_eq(pass_token(5), CLI_EXIT_DONE);
  calls.fail_at = 1; /* a token that is equal only syncs the folder */
  calls.error = EIO;
  ck_assert_int_eq(pass_token(5), CLI_EXIT_FAILED);
  calls.error = EINVAL;
  ck_assert_int_eq(pass_token(5), CLI_EXIT_DONE);
  remove_folder();
}
END_TEST

START_TEST(token_that_is_written_in_part_is_not_accepted)
{
  make_folder();
  ck_assert_int_eq(pass_token(5), CLI_EXIT_DONE);
  calls.short_write = true;
  ck_assert_int_eq(pass_token(77), CLI_EXIT_FAILED);
  expect_content("5\n");
  remove_folder();
}
END_TEST

START_TEST(file_without_a_token_is_refused_and_kept)
{
  static const char *const bad[] = {
      "",
      "\n",
      "12",
      "12\n\n",
      "x12\n",
      "-1\n",
      "12\r\n",
      "18446744073709551616\n",
      "000000000000000000000000000000000000000000000000000000000000001\n2\n"};

  make_folder();
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    write_file(bad[i]);
    ck_assert_msg(pass_token(UINT64_MAX) == CLI_EXIT_FAILED, "%s", bad[i]);
    ck_assert_ptr_nonnull(
        strstr(complaint, "it does not hold one decimal number"));
    expect_content(bad[i]);
  }
  write_file("0\n");
  ck_assert_int_eq(pass_token(1), CLI_EXIT_DONE);
  remove_folder();
}
END_TEST

START_TEST(only_regular_files_hold_tokens)
{
  make_folder();
  ck_assert_int_eq(mkfifo(file, 0600), 0);
  ck_assert_int_eq(pass_token(1), CLI_EXIT_FAILED);
  ck_assert_str_eq(complaint, "it is not a regular file");
  ck_assert_int_eq(pass_token_at(folder, 1), CLI_EXIT_FAILED);
  ck_assert_str_eq(complaint, "cannot open it: Is a directory");
  ck_assert_int_eq(pass_token_at("fence.none/file", 1), CLI_EXIT_FAILED);
  ck_assert_str_eq(complaint,
                   "cannot resolve its path: No such file or directory");
  ck_assert_int_eq(pass_token_at("fence.none/", 1), CLI_EXIT_FAILED);
  remove_folder();
}
END_TEST

/* ---- links and access ---------------------------------------------------- */

START_TEST(symbolic_link_is_followed_and_stays)
{
  char link[80];
  struct stat st;

  make_folder();
  snprintf(link, sizeof link, "%s/link", folder);
  ck_assert_int_eq(symlink("file", link), 0); /* FILE does not exist yet */
  for (uint64_t token = 5; token < 8; token++)
    ck_assert_int_eq(pass_token_at(link, token), CLI_EXIT_DONE);
  ck_assert_int_eq(lstat(link, &st), 0);
  ck_assert(S_ISLNK(st.st_mode));
  expect_content("7\n");
  ck_assert_int_eq(count_files(), 2);
  remove_folder();
}
END_TEST

START_TEST(link_that_leads_to_itself_is_refused)
{
  make_folder();
  ck_assert_int_eq(symlink("file", file), 0);
  ck_assert_int_eq(pass_token(5), CLI_EXIT_FAILED);
  ck_assert_ptr_nonnull(strstr(complaint, strerror(ELOOP)));
  remove_folder();
}
END_TEST

static mode_t mode_of_file(void)
{
  struct stat st;

  ck_assert_int_eq(stat(file, &st), 0);
  return st.st_mode & 07777;
}

START_TEST(mode_and_owner_are_kept)
{
  struct stat st;
  mode_t mask = umask(027);

  make_folder();
  ck_assert_int_eq(pass_token(5), CLI_EXIT_DONE);
  ck_assert_uint_eq(mode_of_file(), 0640);
  ck_assert_int_eq(chmod(file, 0664), 0);
  bool root = getuid() == 0; /* only root can change the owner */

  if (root)
    ck_assert_int_eq(chown(file, 1234, 4321), 0);
  ck_assert_int_eq(pass_token(6), CLI_EXIT_DONE);
  ck_assert_uint_eq(mode_of_file(), 0664);
  ck_assert_int_eq(stat(file, &st), 0);
  ck_assert_uint_eq(st.st_uid, root ? 1234 : getuid());
  ck_assert_uint_eq(st.st_gid, root ? 4321 : getgid());
  ck_assert_uint_eq(umask(mask), 027);
  remove_folder();
}
END_TEST

/* ---- two processes ------------------------------------------------------- */

static int open_and_lock(const char *path)
{
  struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  int fd = open(path, O_RDWR);

  ck_assert_int_ge(fd, 0);
  ck_assert_int_eq(fcntl(fd, F_OFD_SETLK, &whole), 0);
  return fd;
}

/* Another process waits for the lock of a file that is replaced meanwhile. It
 * must lock the new file as well. */
START_TEST(replaced_file_is_locked_anew)
{
  char old_file[90];
  int status;

  make_folder();
  snprintf(old_file, sizeof old_file, "%s/old", folder);
  write_file("3\n");
  int fd = open_and_lock(file);
  pid_t pid = fork();

  if (pid == 0) {
    close(fd); /* only the parent must have the lock */
    _exit(pass_token(5));
  }
  usleep(100000);
  ck_assert_int_eq(waitpid(pid, &status, WNOHANG), 0);
  /* The link keeps the inode number of the old file in use. */
  ck_assert_int_eq(link(file, old_file), 0);
  ck_assert_int_eq(unlink(file), 0);
  write_file("9\n");
  close(fd);
  ck_assert_int_eq(waitpid(pid, &status, 0), pid);
  ck_assert_int_eq(WEXITSTATUS(status), CLI_EXIT_NO);
  expect_content("9\n");
  remove_folder();
}
END_TEST

/* FILE was missing, and another process creates it just before link(). */
START_TEST(file_that_another_process_made_first_counts)
{
  make_folder();
  calls.rival = true;
  ck_assert_int_eq(pass_token(5), CLI_EXIT_NO);
  ck_assert_uint_eq(largest, 9);
  ck_assert_int_eq(count_files(), 1);
  remove_folder();
}
END_TEST

/* ---- without hard links -------------------------------------------------- */

START_TEST(file_is_made_without_hard_links)
{
  make_folder();
  calls.no_links = true;
  ck_assert_int_eq(pass_token(5), CLI_EXIT_DONE);
  ck_assert_str_eq(calls.names,
                   "mkostemp fchmod write fsync-file linkat renameat "
                   "unlinkat unlink fsync-folder");
  expect_content("5\n");
  ck_assert_int_eq(pass_token(4), CLI_EXIT_NO);
  ck_assert_int_eq(count_files(), 1);
  ck_assert_int_eq(unlink(file), 0);
  calls.rival = true;
  ck_assert_int_eq(pass_token(5), CLI_EXIT_NO);
  ck_assert_uint_eq(largest, 9);
  ck_assert_int_eq(count_files(), 1);
  remove_folder();
}
END_TEST

START_TEST(crash_without_hard_links_leaves_none_or_a_whole_file)
{
  enum { RENAMED = 6, LAST = 9 };

  for (int at = 1; at <= LAST; at++) {
    make_folder();
    calls.no_links = true;
    pass_and_crash(7, at);
    ck_assert_int_eq(access(file, F_OK), at > RENAMED ? 0 : -1);
    ck_assert_int_eq(pass_token(6), at > RENAMED ? CLI_EXIT_NO : CLI_EXIT_DONE);
    ck_assert_int_eq(pass_token(8), CLI_EXIT_DONE);
    remove_folder();
  }
}
END_TEST

/* Another process that creates FILE holds the lock, and then a third one, whose
 * lock is another file. */
START_TEST(process_that_makes_file_waits_for_the_others)
{
  char lock[100], old_lock[110];
  int status;

  make_folder();
  calls.no_links = true;
  snprintf(lock, sizeof lock, "%s.latchkey-lock", file);
  snprintf(old_lock, sizeof old_lock, "%s-old", lock);
  ck_assert_int_eq(close(creat(lock, 0600)), 0);
  int first = open_and_lock(lock);
  pid_t pid = fork();

  if (pid == 0) {
    close(first); /* only the parent must have the lock */
    _exit(pass_token(5));
  }
  usleep(100000);
  ck_assert_int_eq(waitpid(pid, &status, WNOHANG), 0);
  ck_assert_int_eq(rename(lock, old_lock), 0);
  ck_assert_int_eq(close(creat(lock, 0600)), 0);
  int second = open_and_lock(lock);

  close(first);
  usleep(100000);
  ck_assert_int_eq(waitpid(pid, &status, WNOHANG), 0);
  write_file("9\n");
  close(second);
  ck_assert_int_eq(waitpid(pid, &status, 0), pid);
  ck_assert_int_eq(WEXITSTATUS(status), CLI_EXIT_NO);
  expect_content("9\n");
  ck_assert_int_eq(access(lock, F_OK), -1);
  remove_folder();
}
END_TEST

static void pass_tokens_at_once(int count)
{
  int status;

  for (int token = 1; token <= count; token++)
    if (fork() == 0)
      _exit(pass_token((uint64_t)token));
  for (int i = 0; i < count; i++) {
    ck_assert_int_gt(wait(&status), 0);
    ck_assert_int_ne(WEXITSTATUS(status), CLI_EXIT_FAILED);
  }
}

START_TEST(processes_that_make_file_at_once_lose_no_token)
{
  for (int round = 0; round < 20; round++) {
    make_folder();
    calls.no_links = true;
    pass_tokens_at_once(8);
    expect_content("8\n");
    ck_assert_int_eq(count_files(), 1);
    remove_folder();
  }
}
END_TEST

SUITE("fence", token_is_digits_up_to_64_bits,
      smaller_token_than_the_largest_is_refused,
      token_is_on_the_disk_before_it_is_accepted,
      crash_at_any_call_leaves_the_old_token_or_the_new_one,
      crash_while_file_is_made_leaves_none_or_a_whole_one,
      call_that_fails_is_a_failure_and_leaves_nothing_behind,
      failure_while_file_is_made_leaves_nothing_behind,
      failed_sync_of_the_folder_is_a_failure_unless_it_is_not_supported,
      token_that_is_written_in_part_is_not_accepted,
      file_without_a_token_is_refused_and_kept, only_regular_files_hold_tokens,
      symbolic_link_is_followed_and_stays, link_that_leads_to_itself_is_refused,
      mode_and_owner_are_kept, replaced_file_is_locked_anew,
      file_that_another_process_made_first_counts,
      file_is_made_without_hard_links,
      crash_without_hard_links_leaves_none_or_a_whole_file,
      process_that_makes_file_waits_for_the_others,
      processes_that_make_file_at_once_lose_no_token)
