/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/locks/fence.h"
#include "cli/output/print.h"

/* Limit of the symbolic links that are followed, as in the kernel. */
enum { MAX_LINKS = 40 };

/* A variable `error` below is 0, an errno (positive), or one of these. */
enum {
  /* Another process has replaced or removed FILE; the check starts again. */
  FILE_CHANGED = -1,
  /* FILE cannot be used, and `complaint` says why. */
  FILE_UNUSABLE = -2
};

typedef struct fence {
  char *path;       /* path of FILE with symbolic links resolved; own memory */
  const char *name; /* last component of `path` */
  int dir;          /* descriptor of the directory of FILE; -1: not open */
  int fd;           /* descriptor of FILE, which is locked; -1: not open */
  struct stat st;   /* attributes of FILE */
  uint64_t token;   /* TOKEN of the command line */
  const char *complaint; /* message for an error of the current step */
} fence;

/* ---- tokens ------------------------------------------------------------- */

bool cli_fence_parse_token(lk_bytes text, uint64_t *out)
{
  const char *s = text.at;
  uint64_t n = 0;

  for (size_t i = 0; i < text.len; i++) {
    if (s[i] < '0' || s[i] > '9')
      return false;
    uint64_t digit = (uint64_t)(s[i] - '0');

    if (n > (UINT64_MAX - digit) / 10)
      return false;
    n = n * 10 + digit;
  }
  *out = n;
  return text.len > 0;
}

/* ---- finding FILE ------------------------------------------------------- */

/* Returns the length of the directory part of `path`, with the last slash. */
static size_t directory_len(const char *path)
{
  const char *slash = strrchr(path, '/');

  return slash == NULL ? 0 : (size_t)(slash - path) + 1;
}

/* Returns the target of the symbolic link at `path`, to be freed. Returns NULL
   with errno on error; EINVAL if `path` is not a link. */
static char *follow_link(const char *path)
{
  char target[PATH_MAX + 1];
  ssize_t len = readlink(path, target, sizeof target - 1);
  char *next = NULL;

  if (len < 0)
    return NULL;
  target[len] = '\0';
  /* A relative target begins at the directory of the link. */
  size_t kept = target[0] == '/' ? 0 : directory_len(path);

  return asprintf(&next, "%.*s%s", (int)kept, path, target) < 0 ? NULL : next;
}

/* Resolves symbolic links: rename() would replace the link and not its target.
   Returns 0 or an errno. */
static int resolve_fence_path(fence *f, const char *file)
{
  f->path = strdup(file);
  for (int i = 0; f->path != NULL && i < MAX_LINKS; i++) {
    char *next = follow_link(f->path);

    /* Not a link, or FILE does not exist yet. */
    if (next == NULL)
      return errno == EINVAL || errno == ENOENT ? 0 : errno;
    free(f->path);
    f->path = next;
  }
  return f->path == NULL ? ENOMEM : ELOOP;
}

static int open_fence_directory(fence *f)
{
  size_t len = directory_len(f->path);

  f->name = f->path + len;
  if (*f->name == '\0')
    return EISDIR;
  char *directory = len == 0 ? strdup(".") : strndup(f->path, len);

  if (directory == NULL)
    return ENOMEM;
  f->dir = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  int error = f->dir < 0 ? errno : 0;

  free(directory);
  return error;
}

/* ---- the lock ----------------------------------------------------------- */

/* O_NONBLOCK keeps open() from waiting if FILE is a FIFO. The caller refuses a
   FILE that is not a regular file. */
static int open_beside_fence(const fence *f, const char *name, int flags)
{
  return openat(f->dir, name,
                flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY,
                S_IRUSR | S_IWUSR);
}

/* Takes an open file description lock. A POSIX lock would be lost when another
   descriptor of FILE is closed. A flock(2) lock would deadlock in `flock FILE
   latchkey fence FILE ...`. */
static int lock_whole_file(int fd)
{
  struct flock whole_file = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  int result;

  do
    result = fcntl(fd, F_OFD_SETLKW, &whole_file);
  while (result != 0 && errno == EINTR);
  return result == 0 ? 0 : errno;
}

/* Returns FILE_CHANGED if `name` does not refer to the locked file any more.
   The name is opened again, since a network file system may answer stat() from
   its cache. */
static int check_not_replaced(const fence *f, const char *name, int locked)
{
  int fd = open_beside_fence(f, name, O_RDONLY);
  struct stat was, now;

  if (fd < 0)
    return errno == ENOENT ? FILE_CHANGED : errno;
  bool same = fstat(locked, &was) == 0 && fstat(fd, &now) == 0 &&
              now.st_dev == was.st_dev && now.st_ino == was.st_ino;

  close(fd);
  return same ? 0 : FILE_CHANGED;
}

/* Locks the file `name`, open as `fd`. */
static int lock_named_file(const fence *f, const char *name, int fd)
{
  int error = lock_whole_file(fd);

  return error != 0 ? error : check_not_replaced(f, name, fd);
}

static int open_and_lock_file(fence *f)
{
  f->complaint = "cannot open it";
  f->fd = open_beside_fence(f, f->name, O_RDWR);
  if (f->fd < 0 || fstat(f->fd, &f->st) != 0)
    return errno;
  if (!S_ISREG(f->st.st_mode)) {
    f->complaint = "it is not a regular file";
    return FILE_UNUSABLE;
  }
  f->complaint = "cannot lock it";
  return lock_named_file(f, f->name, f->fd);
}

/* ---- reading and writing ------------------------------------------------ */

static int read_fence_token(fence *f, uint64_t *seen)
{
  char line[64]; /* longer than any valid content */
  ssize_t len = pread(f->fd, line, sizeof line, 0);

  f->complaint = "cannot read it";
  if (len < 0)
    return errno;
  f->complaint = "it does not hold one decimal number and a newline; write the "
                 "largest token used so far into it";
  if (len == 0 || len == sizeof line || line[len - 1] != '\n' ||
      !cli_fence_parse_token(lk_bytes_of(line, (size_t)len - 1), seen))
    return FILE_UNUSABLE;
  return 0;
}

static int write_fence_token(const fence *f, int fd)
{
  char line[32];
  int len = snprintf(line, sizeof line, "%" PRIu64 "\n", f->token);
  ssize_t n = write(fd, line, (size_t)len);

  if (n < 0)
    return errno;
  if (n < len) /* only a full disk makes so short a write incomplete */
    return ENOSPC;
  return fsync(fd) == 0 ? 0 : errno;
}

/* The new file gets mode and group of the old one, and its owner where that is
   permitted. */
static int copy_file_access(const fence *f, int fd)
{
  const uid_t keep_owner = (uid_t)-1;

  if (fchown(fd, f->st.st_uid, f->st.st_gid) != 0 &&
      fchown(fd, keep_owner, f->st.st_gid) != 0)
    return errno;
  return fchmod(fd, f->st.st_mode & 07777) == 0 ? 0 : errno;
}

/* Syncs the directory. EINVAL is ignored: the file system does not support
   that. */
static int sync_fence_directory(const fence *f)
{
  return fsync(f->dir) == 0 || errno == EINVAL ? 0 : errno;
}

/* Replaces the locked FILE. A crash can have left the temporary file behind. It
   is removed first: only the process that has locked FILE uses its name. */
static int replace_fence_file(fence *f)
{
  char *name = NULL;

  f->complaint = "cannot write a new file next to it";
  if (asprintf(&name, "%s.latchkey-new", f->name) < 0)
    return ENOMEM;
  unlinkat(f->dir, name, 0);
  int fd = openat(f->dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                  S_IRUSR | S_IWUSR);
  int error = fd < 0 ? errno : copy_file_access(f, fd);

  if (error == 0)
    error = write_fence_token(f, fd);
  if (error == 0 && renameat(f->dir, name, f->dir, f->name) != 0)
    error = errno;
  if (error != 0 && fd >= 0)
    unlinkat(f->dir, name, 0);
  if (fd >= 0)
    close(fd);
  free(name);
  return error;
}

/* ---- creating FILE ------------------------------------------------------ */

/* Returns the mode that open() with 0666 would give. */
static mode_t new_file_mode(void)
{
  mode_t mask = umask(0);

  umask(mask);
  return (mode_t)0666 & ~mask;
}

/* Gives the file `temporary` the name of FILE, while the lock of the processes
   that create FILE is held. */
static int rename_unless_file_exists(const fence *f, const char *temporary)
{
  struct stat st;

  if (fstatat(f->dir, f->name, &st, AT_SYMLINK_NOFOLLOW) == 0)
    return FILE_CHANGED;
  if (errno != ENOENT || renameat(AT_FDCWD, temporary, f->dir, f->name) != 0)
    return errno;
  return 0;
}

/* The same where hard links do not exist. rename() replaces a FILE, so the
   processes that create it lock a file beside it, which exists only
   meanwhile. */
static int rename_to_new_file(const fence *f, const char *temporary)
{
  char *name = NULL;

  if (asprintf(&name, "%s.latchkey-lock", f->name) < 0)
    return ENOMEM;
  int fd = open_beside_fence(f, name, O_RDWR | O_CREAT);
  int error = fd < 0 ? errno : lock_named_file(f, name, fd);

  if (error == 0) {
    error = rename_unless_file_exists(f, temporary);
    unlinkat(f->dir, name, 0);
  }
  if (fd >= 0)
    close(fd);
  free(name);
  return error;
}

/* The errors of linkat() on vfat, exfat, many FUSE and network file systems. */
static bool has_no_links(int error)
{
  return error == EPERM || error == EACCES || error == EMLINK ||
         error == ENOSYS || error == EOPNOTSUPP;
}

/* Gives the file `temporary` also the name of FILE, unless another process has
   created FILE meanwhile. */
static int link_to_new_file(const fence *f, const char *temporary)
{
  if (linkat(AT_FDCWD, temporary, f->dir, f->name, 0) == 0)
    return 0;
  if (errno == EEXIST)
    return FILE_CHANGED;
  return has_no_links(errno) ? rename_to_new_file(f, temporary) : errno;
}

/* Creates FILE with its token. */
static int create_fence_file(fence *f)
{
  char *name = NULL;

  f->complaint = "cannot create it";
  if (asprintf(&name, "%s.XXXXXX", f->path) < 0)
    return ENOMEM;
  int fd = mkostemp(name, O_CLOEXEC);
  int error = fd < 0 ? errno : 0;

  if (error == 0 && fchmod(fd, new_file_mode()) != 0)
    error = errno;
  if (error == 0)
    error = write_fence_token(f, fd);
  if (error == 0)
    error = link_to_new_file(f, name);
  if (fd >= 0) {
    unlink(name);
    close(fd);
  }
  free(name);
  return error;
}

/* ---- the check ---------------------------------------------------------- */

/* Compares the token with the one in FILE, and stores a larger one. An equal
   token is synced as well: the process that wrote it may have been killed
   before it synced the directory. */
static int check_existing_file(fence *f, uint64_t *seen)
{
  int error = read_fence_token(f, seen);

  if (error != 0 || *seen > f->token)
    return error;
  if (*seen < f->token)
    error = replace_fence_file(f);
  return error != 0 ? error : sync_fence_directory(f);
}

/* `*seen` gets the token in FILE; 0 if FILE did not exist. */
static int check_token_once(fence *f, uint64_t *seen)
{
  int error = open_and_lock_file(f);

  *seen = 0;
  if (error == 0) {
    error = check_existing_file(f, seen);
  } else if (error == ENOENT) {
    error = create_fence_file(f);
    if (error == 0)
      error = sync_fence_directory(f);
  }
  if (f->fd >= 0)
    close(f->fd);
  f->fd = -1;
  return error;
}

static int check_token_until_unchanged(fence *f, uint64_t *seen)
{
  int error;

  do
    error = check_token_once(f, seen);
  while (error == FILE_CHANGED);
  return error;
}

int cli_fence_check_token(const char *file, uint64_t token, uint64_t *seen,
                          cli_text *complaint)
{
  fence f = {.dir = -1,
             .fd = -1,
             .token = token,
             .complaint = "cannot resolve its path"};
  int error = resolve_fence_path(&f, file);

  if (error == 0)
    error = open_fence_directory(&f);
  if (error == 0)
    error = check_token_until_unchanged(&f, seen);
  if (error != 0)
    cli_text_puts(complaint, f.complaint);
  if (error != 0 && error != FILE_UNUSABLE)
    cli_text_printf(complaint, ": %s", strerror(error));
  if (f.dir >= 0)
    close(f.dir);
  free(f.path);
  if (error != 0)
    return CLI_EXIT_FAILED;
  return *seen > token ? CLI_EXIT_NO : CLI_EXIT_DONE;
}

static int refuse_fence_token(const char *text)
{
  cli_text line = {0};

  cli_text_puts(&line, "TOKEN \"");
  cli_text_add_printable(&line, lk_text(text));
  cli_text_puts(&line,
                "\" is not a decimal number from 1 to 2^64-1; COMMAND of "
                "latchkey run has it in LATCHKEY_FENCING_TOKEN");
  return cli_fail_text(CLI_EXIT_FAILED, "fence", &line);
}

int cli_fence(const cli_options *o, char **operands)
{
  cli_text line = {0};
  uint64_t token;
  uint64_t seen;

  (void)o;
  if (!cli_fence_parse_token(lk_text(operands[1]), &token) || token == 0)
    return refuse_fence_token(operands[1]);
  cli_text_add_printable(&line, lk_text(operands[0]));
  cli_text_puts(&line, ": ");
  /* With SIGXFSZ ignored, writes beyond the file size limit fail with EFBIG. */
  signal(SIGXFSZ, SIG_IGN);
  int code = cli_fence_check_token(operands[0], token, &seen, &line);

  if (code == CLI_EXIT_NO)
    cli_text_printf(&line,
                    "token %" PRIu64 " is refused: token %" PRIu64
                    " was seen, so the lock has passed to another holder",
                    token, seen);
  if (code != CLI_EXIT_DONE)
    return cli_fail_text(code, "fence", &line);
  cli_text_free(&line);
  return code;
}
