/* Counts the file operations below a folder and, at a chosen one, ends the process or lets the disk be full.
 *
 * Loaded with LD_PRELOAD, so that it sees what C and C++ libraries (HDF5, torch, numpy) do as well as Python. It sleeps
 * until `crash_arm` names a folder. An operation is one that changes what a later process finds: opening for writing,
 * writing, changing the length, flushing, changing permissions, renaming, making and removing. Attempts that change
 * nothing, as making a folder that is there, do not count.
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
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { COUNT, KILL, FULL };

static char watched[PATH_MAX];
static size_t length; /* of `watched`; 0 while asleep */
static int mode;
static long at, seen;

void crash_arm(const char *folder, int what, long number) {
  strncpy(watched, folder, sizeof watched - 1);
  mode = what, at = number, seen = 0, length = strlen(watched);
}

long crash_seen(void) { return seen; }

static int below(const char *path) {
  char whole[2 * PATH_MAX];
  if (!length || !path) return 0;
  if (path[0] == '/') return !strncmp(path, watched, length) && path[length] == '/';
  if (!getcwd(whole, PATH_MAX)) return 0;
  strcat(whole, "/");
  strncat(whole, path, PATH_MAX);
  return !strncmp(whole, watched, length);
}

static int descriptor_below(int file) {
  char link[64], path[PATH_MAX];
  if (!length) return 0;
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t n = readlink(link, path, sizeof path - 1);
  if (n < 0) return 0;
  path[n] = 0;
  return below(path);
}

/* One more operation: whether the disk is full for it. A full disk stays full. */
static int fails(int needs_space) {
  seen++;
  if (mode == KILL && seen == at) kill(getpid(), SIGKILL);
  if (mode == FULL && seen >= at && needs_space) {
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
  return CHANGES(flags) && below(path) && fails(1) ? -1 : real(path, flags, mode_bits); }
OPEN(open) OPEN(open64)

#define OPENAT(name) int name(int folder, const char *path, int flags, ...) { \
  REAL(name); MODE_OF(flags); \
  return CHANGES(flags) && below(path) && fails(1) ? -1 : real(folder, path, flags, mode_bits); }
OPENAT(openat) OPENAT(openat64)

#define FOPEN(name) FILE *name(const char *path, const char *how) { \
  REAL(name); \
  return how[0] != 'r' && below(path) && fails(1) ? NULL : real(path, how); }
FOPEN(fopen) FOPEN(fopen64)

#define ON_DESCRIPTOR(kind, name, declared, given, failure) kind name declared { \
  REAL(name); return descriptor_below(file) && fails(1) ? failure : real given; }
ON_DESCRIPTOR(ssize_t, write, (int file, const void *bytes, size_t n), (file, bytes, n), -1)
ON_DESCRIPTOR(ssize_t, pwrite, (int file, const void *bytes, size_t n, off_t where), (file, bytes, n, where), -1)
ON_DESCRIPTOR(ssize_t, pwrite64, (int file, const void *bytes, size_t n, off64_t where), (file, bytes, n, where), -1)
ON_DESCRIPTOR(ssize_t, writev, (int file, const struct iovec *parts, int n), (file, parts, n), -1)
ON_DESCRIPTOR(int, ftruncate, (int file, off_t size), (file, size), -1)
ON_DESCRIPTOR(int, ftruncate64, (int file, off64_t size), (file, size), -1)
ON_DESCRIPTOR(int, posix_fallocate, (int file, off_t from, off_t size), (file, from, size), ENOSPC)
ON_DESCRIPTOR(int, posix_fallocate64, (int file, off64_t from, off64_t size), (file, from, size), ENOSPC)
ON_DESCRIPTOR(int, fsync, (int file), (file), -1)

size_t fwrite(const void *bytes, size_t size, size_t n, FILE *stream) {
  REAL(fwrite);
  return descriptor_below(fileno(stream)) && fails(1) ? 0 : real(bytes, size, n, stream);
}

int rename(const char *from, const char *to) {
  REAL(rename);
  return below(to) && fails(1) ? -1 : real(from, to);
}

int mkdir(const char *path, mode_t bits) {
  REAL(mkdir);
  return below(path) && !exists(path) && fails(1) ? -1 : real(path, bits);
}

int chmod(const char *path, mode_t bits) {
  REAL(chmod);
  if (below(path)) fails(0);
  return real(path, bits);
}

int fchmodat(int folder, const char *path, mode_t bits, int flags) {
  REAL(fchmodat);
  if (below(path)) fails(0);
  return real(folder, path, bits, flags);
}

int unlink(const char *path) {
  REAL(unlink);
  if (below(path) && exists(path)) fails(0);
  return real(path);
}

int unlinkat(int folder, const char *path, int flags) {
  REAL(unlinkat);
  if (folder != AT_FDCWD ? descriptor_below(folder) : below(path) && exists(path)) fails(0);
  return real(folder, path, flags);
}

int rmdir(const char *path) {
  REAL(rmdir);
  if (below(path) && exists(path)) fails(0);
  return real(path);
}
