/* Preloaded: makes the n-th write, fsync, rename or close of a file below a folder fail, as a disk does. Fsync and close
   are also those of directories.

   set_fault() arms it. `lasting`: all later ones fail too. Returns of fault_count(): calls of that kind so far. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static atomic_long calls;
static long fails_at;
static int error_number, lasting;
static char kind, below[4096];

void set_fault(const char *which, const char *folder, long at, int error, int last)
{
    kind = 0;
    snprintf(below, sizeof below, "%s", folder);
    calls = 0;
    fails_at = at;
    error_number = error;
    lasting = last;
    kind = which[0];
}

long fault_count(void) { return calls; }

static int there(const char *path) { return !strncmp(path, below, strlen(below)); }

static int fails(char which, const char *path)
{
    if (kind != which || !there(path))
        return 0;
    long number = ++calls;
    if (number != fails_at && !(lasting && number > fails_at))
        return 0;
    errno = error_number;
    return 1;
}

static int fails_open(char which, int descriptor)
{
    char link[64], path[4096];
    if (kind != which)
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    struct stat status;
    if (fstat(descriptor, &status))
        return 0;
    int directory = S_ISDIR(status.st_mode);
    if (!directory && (!S_ISREG(status.st_mode) || (fcntl(descriptor, F_GETFL) & O_ACCMODE) == O_RDONLY))
        return 0;
    ssize_t size = readlink(link, path, sizeof path - 2);
    if (size < 0)
        return 0;
    if (directory)
        path[size++] = '/';
    path[size] = 0;
    return fails(which, path);
}

#define REAL(name) static __typeof__(name) *real; if (!real) real = dlsym(RTLD_NEXT, #name)

ssize_t write(int file, const void *data, size_t size)
{
    REAL(write);
    return fails_open('w', file) ? -1 : real(file, data, size);
}

ssize_t pwrite(int file, const void *data, size_t size, off_t at)
{
    REAL(pwrite);
    return fails_open('w', file) ? -1 : real(file, data, size, at);
}

ssize_t pwrite64(int file, const void *data, size_t size, off64_t at)
{
    REAL(pwrite64);
    return fails_open('w', file) ? -1 : real(file, data, size, at);
}

int fsync(int file)
{
    REAL(fsync);
    return fails_open('f', file) ? -1 : real(file);
}

int rename(const char *old, const char *path)
{
    REAL(rename);
    return fails('r', path) ? -1 : real(old, path);
}

int close(int file)     /* the file is closed even if it fails, as on Linux */
{
    REAL(close);
    int failed = fails_open('c', file), error = errno, status = real(file);
    if (!failed)
        return status;
    errno = error;
    return -1;
}
