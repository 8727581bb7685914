/*
 * Disk faults between a program and the C library: loaded with LD_PRELOAD.
 *
 * Each call that changes files below one directory is counted. Calls can be made to fail, to be done in part, or to
 * end the program, and all changes can be written to a journal with their bytes. tests/src/disk_faults/ is the
 * other side: it sets the variables, writes struct control and reads the journal.
 *
 *   TIDEPOOL_FAULT_DIRECTORY   the directory, as an absolute path
 *   TIDEPOOL_FAULT_CONTROL     a file of at least 4096 bytes, which is mapped
 *   TIDEPOOL_FAULT_JOURNAL     a file to which the journal is appended; optional
 *
 * Only what the program calls is here: a call that goes past the C library is not seen.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PATH_BYTES 1024

/* Kinds of calls; each is a bit, so that several can be meant. */
enum kind {
  WRITE = 1,
  SYNC_FILE = 2,
  RENAME = 4,
  LINK = 8,
  UNLINK = 16,
  MAKE_DIRECTORY = 32,
  TRUNCATE = 64,
  CREATE = 128,
  OPEN = 256,
  SYNC_DIRECTORY = 512,
  REMOVE_DIRECTORY = 1024,
};

/* What the test sets and reads. The offsets are known to tests/src/disk_faults/mod.rs. */
struct control {
  /* Calls so far that change files; all but OPEN. */
  _Atomic uint32_t calls;
  /* The number of the call at which the program is killed; zero for none. */
  _Atomic uint32_t kill_at;
  /* Whether the write that kills is done in part. */
  _Atomic uint32_t tears;
  /* How often a program was killed. */
  _Atomic uint32_t kills;
  /* Which kinds of calls fail. */
  _Atomic uint32_t failing_kinds;
  /* How many of a thousand such calls fail. */
  _Atomic uint32_t failing_per_mille;
  /* With which error. */
  _Atomic uint32_t error_number;
  /* How many of a thousand failed calls are done all the same. */
  _Atomic uint32_t done_per_mille;
  /* How many of a thousand writes are done in part, and say so. */
  _Atomic uint32_t short_per_mille;
  /* With which error all hard links fail: a file system without them. Zero for one that has them. */
  _Atomic uint32_t link_error;
  /* How many calls failed. */
  _Atomic uint32_t failed;
  /* State of the random numbers. */
  _Atomic uint32_t random;
  uint32_t unused[4];
  /* Only paths below the directory with this text in them are touched; empty for all. */
  char path_part[64];
};

enum verdict {
  DO_IT,
  FAIL,
  FAIL_BUT_DO_IT,
  DO_IT_IN_PART,
  TEAR_AND_DIE,
};

static struct control *control;
static char directory[PATH_BYTES];
static size_t directory_bytes;
static int journal = -1;
/* Changes are journalled in the order in which they are done. */
static pthread_mutex_t journal_lock = PTHREAD_MUTEX_INITIALIZER;

/* The next function of this name: that of the C library. */
#define REAL(name)                                                                                                     \
  static __typeof__(&name) real;                                                                                       \
  if (real == NULL) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

__attribute__((constructor)) static void begin(void) {
  const char *watched = getenv("TIDEPOOL_FAULT_DIRECTORY");
  const char *control_file = getenv("TIDEPOOL_FAULT_CONTROL");
  const char *journal_file = getenv("TIDEPOOL_FAULT_JOURNAL");
  if (watched == NULL || control_file == NULL) return;
  /* By system calls: the functions below are not ready. */
  int file = (int)syscall(SYS_openat, AT_FDCWD, control_file, O_RDWR | O_CLOEXEC, 0);
  if (file < 0) abort();
  void *mapped = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (mapped == MAP_FAILED) abort();
  close(file);
  if (journal_file != NULL) {
    int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC;
    journal = (int)syscall(SYS_openat, AT_FDCWD, journal_file, flags, 0644);
    if (journal < 0) abort();
  }
  snprintf(directory, sizeof directory, "%s", watched);
  directory_bytes = strlen(directory);
  control = mapped;
}

/* Whether a path is the directory or below it. */
static int is_watched(const char *path) {
  if (control == NULL || path == NULL) return 0;
  if (strncmp(path, directory, directory_bytes) != 0) return 0;
  return path[directory_bytes] == '/' || path[directory_bytes] == 0;
}

/* The path of an open file, if it is watched. A file that was removed keeps its path, with a word behind it. */
static int watched_path(int file, char *path) {
  if (control == NULL) return 0;
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t bytes = readlink(link, path, PATH_BYTES - 1);
  if (bytes < 0) return 0;
  path[bytes] = 0;
  return is_watched(path);
}

static uint64_t inode_of_path(const char *path) {
  struct stat status;
  return lstat(path, &status) == 0 ? status.st_ino : 0;
}

static uint64_t inode_of_file(int file) {
  struct stat status;
  return fstat(file, &status) == 0 ? status.st_ino : 0;
}

static uint32_t next_random(void) {
  uint32_t bits = atomic_fetch_add(&control->random, 0x9e3779b9u);
  bits ^= bits >> 16;
  bits *= 0x7feb352du;
  bits ^= bits >> 15;
  bits *= 0x846ca68bu;
  return bits ^ bits >> 16;
}

static int by_chance(uint32_t per_mille) { return per_mille > 0 && next_random() % 1000 < per_mille; }

static void lock_journal(void) {
  if (journal >= 0) pthread_mutex_lock(&journal_lock);
}

static void unlock_journal(void) {
  int error = errno;
  if (journal >= 0) pthread_mutex_unlock(&journal_lock);
  errno = error;
}

/* Ends the program as `kill -9` does. Whoever calls it holds the lock: no other thread is between a change and its
 * entry in the journal. */
static void die(void) {
  atomic_fetch_add(&control->kills, 1);
  syscall(SYS_kill, getpid(), SIGKILL);
  for (;;) pause();
}

/* What becomes of a call; takes the lock, which the caller gives back. Sets errno if the call is to fail. */
static enum verdict judge(enum kind kind, const char *path) {
  lock_journal();
  if (control->path_part[0] != 0 && strstr(path + directory_bytes, control->path_part) == NULL) return DO_IT;
  if (kind != OPEN) {
    uint32_t call = atomic_fetch_add(&control->calls, 1) + 1;
    uint32_t kill_at = control->kill_at;
    if (kill_at != 0 && call >= kill_at) {
      if (kind == WRITE && control->tears) return TEAR_AND_DIE;
      die();
    }
  }
  if ((control->failing_kinds & kind) && by_chance(control->failing_per_mille)) {
    atomic_fetch_add(&control->failed, 1);
    errno = (int)control->error_number;
    int can_be_done = kind & (RENAME | LINK | UNLINK | MAKE_DIRECTORY);
    return can_be_done && by_chance(control->done_per_mille) ? FAIL_BUT_DO_IT : FAIL;
  }
  if (kind == WRITE && by_chance(control->short_per_mille)) return DO_IT_IN_PART;
  return DO_IT;
}

/*
 * An entry of the journal, integers little-endian as the machine has them:
 *
 *   bytes of the rest u32 | operation u8 | inode u64 | number u64 | bytes of path u16 | bytes of other path u16 |
 *   path | other path | data
 */
static void note_data(char operation, uint64_t inode, uint64_t number, const char *path, const char *other,
                      const void *data, size_t data_bytes) {
  if (journal < 0) return;
  uint16_t path_bytes = (uint16_t)strlen(path);
  uint16_t other_bytes = (uint16_t)strlen(other);
  uint32_t bytes = (uint32_t)(1 + 8 + 8 + 2 + 2 + path_bytes + other_bytes + data_bytes);
  char *entry = malloc(bytes + 4);
  if (entry == NULL) abort();
  char *end = entry;
  end = mempcpy(end, &bytes, 4);
  *end++ = operation;
  end = mempcpy(end, &inode, 8);
  end = mempcpy(end, &number, 8);
  end = mempcpy(end, &path_bytes, 2);
  end = mempcpy(end, &other_bytes, 2);
  end = mempcpy(end, path, path_bytes);
  end = mempcpy(end, other, other_bytes);
  if (data_bytes > 0) end = mempcpy(end, data, data_bytes);
  /* At once, so that no program that is killed leaves half an entry. */
  if (syscall(SYS_write, journal, entry, end - entry) != end - entry) abort();
  free(entry);
}

static void note(char operation, uint64_t inode, uint64_t number, const char *path, const char *other) {
  int error = errno;
  note_data(operation, inode, number, path, other, NULL, 0);
  errno = error;
}

/* Both ways to write are the same but for the call that does it. */
static ssize_t write_part(int file, const void *data, size_t bytes, off64_t offset, int has_offset) {
  REAL(pwrite64);
  static __typeof__(&write) real_write;
  if (real_write == NULL) real_write = (__typeof__(&write))dlsym(RTLD_NEXT, "write");
  return has_offset ? real(file, data, bytes, offset) : real_write(file, data, bytes);
}

static ssize_t any_write(int file, const void *data, size_t bytes, off64_t offset, int has_offset) {
  char path[PATH_BYTES];
  if (!watched_path(file, path)) return write_part(file, data, bytes, offset, has_offset);
  enum verdict verdict = judge(WRITE, path);
  int error = errno;
  if (!has_offset) {
    struct stat status;
    int is_appended = fcntl(file, F_GETFL) & O_APPEND;
    offset = is_appended && fstat(file, &status) == 0 ? status.st_size : lseek64(file, 0, SEEK_CUR);
  }
  size_t wanted = bytes;
  if (verdict != DO_IT) wanted = bytes > 1 ? next_random() % bytes : 0;
  /* Some of what failed may have been written; a short write is never empty. */
  if (verdict == FAIL && (!has_offset || by_chance(500))) wanted = 0;
  if (verdict == DO_IT_IN_PART && bytes > 0) wanted += 1;
  ssize_t written = 0;
  if (wanted > 0 || verdict == DO_IT) written = write_part(file, data, wanted, offset, has_offset);
  if (verdict == DO_IT || verdict == DO_IT_IN_PART) error = errno;
  if (written > 0) note_data('w', inode_of_file(file), (uint64_t)offset, path, "", data, (size_t)written);
  if (verdict == TEAR_AND_DIE) die();
  errno = error;
  unlock_journal();
  return verdict == FAIL ? -1 : written;
}

ssize_t pwrite64(int file, const void *data, size_t bytes, off64_t offset) {
  return any_write(file, data, bytes, offset, 1);
}

ssize_t pwrite(int file, const void *data, size_t bytes, off_t offset) {
  return any_write(file, data, bytes, offset, 1);
}

ssize_t write(int file, const void *data, size_t bytes) { return any_write(file, data, bytes, 0, 0); }

static int any_sync(int file, int (*real)(int)) {
  char path[PATH_BYTES];
  if (!watched_path(file, path)) return real(file);
  struct stat status;
  int is_directory = fstat(file, &status) == 0 && S_ISDIR(status.st_mode);
  int has_failed = judge(is_directory ? SYNC_DIRECTORY : SYNC_FILE, path) != DO_IT;
  int result = has_failed ? -1 : real(file);
  /* A sync that failed counts, too: what waited for it may be lost for good. */
  note(is_directory ? 'D' : 'S', status.st_ino, result != 0, path, "");
  unlock_journal();
  return result;
}

int fdatasync(int file) {
  REAL(fdatasync);
  return any_sync(file, real);
}

int fsync(int file) {
  REAL(fsync);
  return any_sync(file, real);
}

int ftruncate64(int file, off64_t length) {
  REAL(ftruncate64);
  char path[PATH_BYTES];
  if (!watched_path(file, path)) return real(file, length);
  int result = judge(TRUNCATE, path) == DO_IT ? real(file, length) : -1;
  if (result == 0) note('t', inode_of_file(file), (uint64_t)length, path, "");
  unlock_journal();
  return result;
}

int ftruncate(int file, off_t length) { return ftruncate64(file, length); }

/* The end of a call that may be done and still fail. */
static int end_of(enum verdict verdict, int result, int error) {
  if (verdict != DO_IT) {
    errno = error;
    result = -1;
  }
  unlock_journal();
  return result;
}

int rename(const char *from, const char *to) {
  REAL(rename);
  if (!is_watched(to)) return real(from, to);
  enum verdict verdict = judge(RENAME, to);
  int error = errno;
  int result = -1;
  if (verdict != FAIL) {
    uint64_t inode = inode_of_path(from);
    result = real(from, to);
    if (result == 0) note('r', inode, 0, from, to);
  }
  return end_of(verdict, result, error);
}

int linkat(int from_directory, const char *from, int to_directory, const char *to, int flags) {
  REAL(linkat);
  if (!is_watched(to)) return real(from_directory, from, to_directory, to, flags);
  if (control->link_error != 0) {
    errno = (int)control->link_error;
    return -1;
  }
  enum verdict verdict = judge(LINK, to);
  int error = errno;
  int result = -1;
  if (verdict != FAIL) {
    result = real(from_directory, from, to_directory, to, flags);
    if (result == 0) note('l', inode_of_path(to), 0, from, to);
  }
  return end_of(verdict, result, error);
}

int link(const char *from, const char *to) { return linkat(AT_FDCWD, from, AT_FDCWD, to, 0); }

int unlinkat(int at_directory, const char *name, int flags) {
  REAL(unlinkat);
  char path[PATH_BYTES] = "";
  if (name[0] == '/' || at_directory == AT_FDCWD) {
    snprintf(path, sizeof path, "%s", name);
  } else if (watched_path(at_directory, path)) {
    size_t bytes = strlen(path);
    snprintf(path + bytes, sizeof path - bytes, "/%s", name);
  }
  if (!is_watched(path)) return real(at_directory, name, flags);
  int is_directory = flags & AT_REMOVEDIR;
  enum verdict verdict = judge(is_directory ? REMOVE_DIRECTORY : UNLINK, path);
  int error = errno;
  int result = -1;
  if (verdict != FAIL) {
    uint64_t inode = inode_of_path(path);
    result = real(at_directory, name, flags);
    if (result == 0) note(is_directory ? 'd' : 'u', inode, 0, path, "");
  }
  return end_of(verdict, result, error);
}

int unlink(const char *path) { return unlinkat(AT_FDCWD, path, 0); }

int rmdir(const char *path) { return unlinkat(AT_FDCWD, path, AT_REMOVEDIR); }

int mkdir(const char *path, mode_t mode) {
  REAL(mkdir);
  /* One that is there is no change. */
  if (!is_watched(path) || inode_of_path(path) != 0) return real(path, mode);
  enum verdict verdict = judge(MAKE_DIRECTORY, path);
  int error = errno;
  int result = -1;
  if (verdict != FAIL) {
    result = real(path, mode);
    if (result == 0) note('m', inode_of_path(path), 0, path, "");
  }
  return end_of(verdict, result, error);
}

int open64(const char *path, int flags, ...) {
  REAL(open64);
  mode_t mode = 0;
  if (flags & (O_CREAT | O_TMPFILE)) {
    va_list arguments;
    va_start(arguments, flags);
    mode = va_arg(arguments, mode_t);
    va_end(arguments);
  }
  if (!is_watched(path)) return real(path, flags, mode);
  int is_new = (flags & O_CREAT) && inode_of_path(path) == 0;
  int file = -1;
  if (judge(is_new ? CREATE : OPEN, path) == DO_IT) {
    file = real(path, flags, mode);
    if (file >= 0 && is_new) note('c', inode_of_file(file), 0, path, "");
    if (file >= 0 && !is_new && (flags & O_TRUNC)) note('t', inode_of_file(file), 0, path, "");
  }
  unlock_journal();
  return file;
}

int open(const char *path, int flags, ...) {
  mode_t mode = 0;
  if (flags & (O_CREAT | O_TMPFILE)) {
    va_list arguments;
    va_start(arguments, flags);
    mode = va_arg(arguments, mode_t);
    va_end(arguments);
  }
  return open64(path, flags, mode);
}
