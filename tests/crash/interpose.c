/* Counts the file operations below a folder; at each of them, the disk can be full, or the process be stopped.
 *
 * Loaded with LD_PRELOAD, so that it sees what C and C++ libraries (HDF5, torch, numpy) do as well as Python. It sleeps
 * until it is told a folder. An operation is one that changes what a later process finds: opening for writing,
 * writing, changing the length, flushing, changing permissions, renaming, making and removing. Attempts that change
 * nothing, as making a folder that is there, do not count. A journal lists them, if it is asked for.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { COUNT, FULL, WATCH };

static char watched[PATH_MAX], output[PATH_MAX];
static size_t length; /* of `watched`; 0 while asleep */
static int mode = COUNT, every = 1, term_every = 1, limit = 60;
static long seen;
static int journal = -1, mail = -1;

/* From now on, count operations below the folder; list them in a file, if one is named. */
void crash_count(const char *folder, const char *list) {
  strncpy(watched, folder, sizeof watched - 1);
  journal = list ? creat(list, 0600) : -1;
  mode = COUNT, seen = 0, length = strlen(watched);
}

/* Stop at every n-th operation and tell in `letters`; then be two: one finds the disk full from there on, or gets SIGTERM
 * at every m-th of those operations, prints into `printed` and ends within so many seconds; the other waits for it. */
void crash_watch(const char *folder, const char *letters, const char *printed, int n, int m, int seconds) {
  crash_count(folder, NULL);
  strncpy(output, printed, sizeof output - 1);
  mail = creat(letters, 0600), every = n, term_every = m, limit = seconds, mode = WATCH;
}

long crash_seen(void) { return seen; }

static int below(const char *path) {
  char whole[2 * PATH_MAX];
  if (!length || !path) return 0;
  if (path[0] == '/') return !strncmp(path, watched, length) && (path[length] == '/' || !path[length]);
  if (!getcwd(whole, PATH_MAX)) return 0;
  strcat(whole, "/");
  strncat(whole, path, PATH_MAX);
  return !strncmp(whole, watched, length);
}

/* The path of an open file, if it is below the watched folder. */
static const char *path_below(int file, char *path) {
  char link[64];
  if (!length) return NULL;
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t n = readlink(link, path, PATH_MAX - 1);
  if (n < 0) return NULL;
  path[n] = 0;
  return below(path) ? path : NULL;
}

/* Tell the process that watches how far this one is, and let it look at the files. */
static void stop(char what, int status) {
  ftruncate(mail, 0);
  lseek(mail, 0, SEEK_SET);
  dprintf(mail, "%c %ld %d", what, seen, status);
  raise(SIGSTOP);
}

/* In a copy of this process, something goes wrong; the places in open files, which copies share, are kept. */
static int goes_wrong(char what) {
  off_t places[1024];
  int status = 0;
  for (int file = 0; file < 1024; file++) places[file] = lseek(file, 0, SEEK_CUR);
  pid_t copy = fork();
  if (!copy) {
    dup2(creat(output, 0600), 1), dup2(1, 2);
    alarm(limit);
    mode = what == 'f' ? FULL : COUNT;
    if (what == 't') kill(getpid(), SIGTERM);
    return 1;
  }
  while (waitpid(copy, &status, 0) < 0 && errno == EINTR);
  for (int file = 0; file < 1024; file++) if (places[file] >= 0) lseek(file, places[file], SEEK_SET);
  stop(what, status);
  return 0;
}

/* One more operation, on one path or from one to another: whether the disk is full for it. A full disk stays full. */
static int fails(const char *what, const char *path, const char *to, int needs_space) {
  seen++;
  if (journal >= 0) dprintf(journal, "%s\t%s\t%s\n", what, path, to);
  if (mode == WATCH && seen % every == 0) {
    stop('k', 0);
    /* An operation that needs no space succeeds on a full disk: what follows is tried at the next one. */
    if (!(needs_space && goes_wrong('f')) && seen / every % term_every == 0) goes_wrong('t');
  }
  if (mode == FULL && needs_space) {
    errno = ENOSPC;
    return 1;
  }
  return 0;
}

static int exists(const char *path) {
  struct stat unused;
  int before = errno, found = !lstat(path, &unused);
  errno = before;
  return found;
}

#define REAL(name) static __typeof__(name) *real; if (!real) real = dlsym(RTLD_NEXT, #name)
#define MODE_OF(flags) va_list rest; va_start(rest, flags); mode_t mode_bits = (flags) & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0; va_end(rest)
#define CHANGES(flags) ((flags) & (O_CREAT | O_TRUNC))

#define OPEN(name) int name(const char *path, int flags, ...) { \
  REAL(name); MODE_OF(flags); \
  return CHANGES(flags) && below(path) && fails("open", path, "", 1) ? -1 : real(path, flags, mode_bits); }
OPEN(open) OPEN(open64)

#define OPENAT(name) int name(int folder, const char *path, int flags, ...) { \
  REAL(name); MODE_OF(flags); \
  return CHANGES(flags) && below(path) && fails("open", path, "", 1) ? -1 : real(folder, path, flags, mode_bits); }
OPENAT(openat) OPENAT(openat64)

#define FOPEN(name) FILE *name(const char *path, const char *how) { \
  REAL(name); \
  return how[0] != 'r' && below(path) && fails("open", path, "", 1) ? NULL : real(path, how); }
FOPEN(fopen) FOPEN(fopen64)

#define ON_DESCRIPTOR(kind, name, declared, given, failure) kind name declared { \
  REAL(name); char path[PATH_MAX]; \
  return path_below(file, path) && fails(#name, path, "", 1) ? failure : real given; }
ON_DESCRIPTOR(ssize_t, write, (int file, const void *bytes, size_t n), (file, bytes, n), -1)
ON_DESCRIPTOR(ssize_t, pwrite, (int file, const void *bytes, size_t n, off_t where), (file, bytes, n, where), -1)
ON_DESCRIPTOR(ssize_t, pwrite64, (int file, const void *bytes, size_t n, off64_t where), (file, bytes, n, where), -1)
ON_DESCRIPTOR(ssize_t, writev, (int file, const struct iovec *parts, int n), (file, parts, n), -1)
ON_DESCRIPTOR(int, ftruncate, (int file, off_t size), (file, size), -1)
ON_DESCRIPTOR(int, ftruncate64, (int file, off64_t size), (file, size), -1)
ON_DESCRIPTOR(int, posix_fallocate, (int file, off_t from, off_t size), (file, from, size), ENOSPC)
ON_DESCRIPTOR(int, posix_fallocate64, (int file, off64_t from, off64_t size), (file, from, size), ENOSPC)
ON_DESCRIPTOR(int, fsync, (int file), (file), -1)
ON_DESCRIPTOR(int, fdatasync, (int file), (file), -1)
ON_DESCRIPTOR(ssize_t, sendfile, (int file, int from, off_t *where, size_t n), (file, from, where, n), -1)
ON_DESCRIPTOR(ssize_t, sendfile64, (int file, int from, off64_t *where, size_t n), (file, from, where, n), -1)

size_t fwrite(const void *bytes, size_t size, size_t n, FILE *stream) {
  REAL(fwrite);
  char path[PATH_MAX];
  return path_below(fileno(stream), path) && fails("write", path, "", 1) ? 0 : real(bytes, size, n, stream);
}

int rename(const char *from, const char *to) {
  REAL(rename);
  return below(to) && fails("rename", from, to, 1) ? -1 : real(from, to);
}

int mkdir(const char *path, mode_t bits) {
  REAL(mkdir);
  return below(path) && !exists(path) && fails("mkdir", path, "", 1) ? -1 : real(path, bits);
}

int chmod(const char *path, mode_t bits) {
  REAL(chmod);
  if (below(path)) fails("chmod", path, "", 0);
  return real(path, bits);
}

int fchmodat(int folder, const char *path, mode_t bits, int flags) {
  REAL(fchmodat);
  if (below(path)) fails("chmod", path, "", 0);
  return real(folder, path, bits, flags);
}

int unlink(const char *path) {
  REAL(unlink);
  if (below(path) && exists(path)) fails("remove", path, "", 0);
  return real(path);
}

int unlinkat(int folder, const char *path, int flags) {
  REAL(unlinkat);
  char within[PATH_MAX];
  if (folder != AT_FDCWD ? path_below(folder, within) != NULL : below(path) && exists(path)) fails("remove", path, "", 0);
  return real(folder, path, flags);
}

int rmdir(const char *path) {
  REAL(rmdir);
  if (below(path) && exists(path)) fails("remove", path, "", 0);
  return real(path);
}
