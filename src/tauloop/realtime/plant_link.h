/* The link between a plant and its controller: datagrams on UDP, or two mailboxes in shared memory. C99 and POSIX.

   A packet is a row of little-endian doubles: 1 (the version), a sequence number, a time in s, flags, and behind them
   what the plant measures, or the forces that a command asks for. A command has the sequence number of the measurement
   that it answers. Whoever controls sends a command with the sequence number -1 first, so that the plant knows him. */

#ifndef TAULOOP_PLANT_LINK_H
#define TAULOOP_PLANT_LINK_H

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { TPL_VERSION, TPL_SEQUENCE, TPL_TIME, TPL_FLAGS, TPL_HEAD, TPL_MOST = 256 };
/* Flags of a measurement: the last one; brakes hold, for commands are missing; the equations have no solution. */
enum { TPL_END = 1, TPL_BRAKES = 2, TPL_FAILED = 4 };

/* A mailbox: `count` is odd while it is written to, and grows by two with each packet. */
typedef struct {
    unsigned long long count, size;
    double row[TPL_MOST];
} tpl_box;

typedef struct {
    int file, is_plant, is_known;
    tpl_box *boxes; /* of measurements and of commands; null with UDP */
    unsigned long long seen, strangers;
    struct sockaddr_in other;
} tpl_link;

static inline double tpl_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Opens UDP: a plant listens there, a controller sends there. 0, or an error number. */
static inline int tpl_open_udp(tpl_link *link, const char *host, int port, int is_plant)
{
    struct sockaddr_in at;
    memset(link, 0, sizeof *link);
    memset(&at, 0, sizeof at);
    at.sin_family = AF_INET, at.sin_port = htons((unsigned short)port);
    if (inet_pton(AF_INET, host, &at.sin_addr) != 1) return EINVAL;
    link->file = socket(AF_INET, SOCK_DGRAM, 0);
    link->is_plant = is_plant;
    if (link->file < 0) return errno;
    if ((is_plant ? bind : connect)(link->file, (struct sockaddr *)&at, sizeof at) != 0) return errno;
    link->is_known = !is_plant;
    return 0;
}

/* Opens shared memory by its name, "/name"; the plant makes it. 0, or an error number. */
static inline int tpl_open_memory(tpl_link *link, const char *name, int is_plant)
{
    memset(link, 0, sizeof *link);
    link->is_plant = is_plant;
    if (is_plant) shm_unlink(name);
    link->file = shm_open(name, is_plant ? O_RDWR | O_CREAT | O_EXCL : O_RDWR, 0600);
    if (link->file < 0) return errno;
    if (is_plant && ftruncate(link->file, 2 * sizeof(tpl_box)) != 0) return errno;
    link->boxes = (tpl_box *)mmap(0, 2 * sizeof(tpl_box), PROT_READ | PROT_WRITE, MAP_SHARED, link->file, 0);
    if (link->boxes == (tpl_box *)MAP_FAILED) return errno;
    link->is_known = 1;
    return 0;
}

static inline void tpl_close(tpl_link *link)
{
    if (link->boxes) munmap(link->boxes, 2 * sizeof(tpl_box));
    if (link->file >= 0) close(link->file);
}

/* Sends a row of n doubles; whether it went off. */
static inline int tpl_send(tpl_link *link, const double *row, int n)
{
    const size_t size = sizeof(double) * (size_t)n;
    if (!link->boxes) {
        if (!link->is_known) return 0;
        if (!link->is_plant) return send(link->file, row, size, 0) == (ssize_t)size;
        return sendto(link->file, row, size, 0, (struct sockaddr *)&link->other, sizeof link->other) == (ssize_t)size;
    }
    {
        tpl_box *box = link->boxes + (link->is_plant ? 0 : 1);
        const unsigned long long count = __atomic_load_n(&box->count, __ATOMIC_RELAXED);
        __atomic_store_n(&box->count, count + 1, __ATOMIC_RELAXED);
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
        box->size = (unsigned long long)n;
        memcpy(box->row, row, size);
        __atomic_store_n(&box->count, count + 2, __ATOMIC_RELEASE);
    }
    return 1;
}

/* A packet that has come, if there is one: how many doubles, 0 without one. A plant answers who spoke first. */
static inline int tpl_take(tpl_link *link, double *row)
{
    if (link->boxes) {
        tpl_box *box = link->boxes + (link->is_plant ? 1 : 0);
        const unsigned long long count = __atomic_load_n(&box->count, __ATOMIC_ACQUIRE);
        int n;
        if (count == link->seen || count & 1) return 0;
        n = box->size <= TPL_MOST ? (int)box->size : 0;
        memcpy(row, box->row, sizeof(double) * (size_t)n);
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
        if (__atomic_load_n(&box->count, __ATOMIC_RELAXED) != count) return 0;
        link->seen = count;
        return n;
    }
    for (;;) {
        struct sockaddr_in from;
        socklen_t length = sizeof from;
        const ssize_t size = recvfrom(link->file, row, sizeof(double) * TPL_MOST, MSG_DONTWAIT,
            (struct sockaddr *)&from, &length);
        if (size < 0) return 0;
        if (link->is_plant && link->is_known
            && (from.sin_port != link->other.sin_port || from.sin_addr.s_addr != link->other.sin_addr.s_addr)) {
            link->strangers += 1;
            continue;
        }
        if (link->is_plant && !link->is_known) link->other = from, link->is_known = 1;
        return (int)((size_t)size / sizeof(double));
    }
}

/* The same, waiting up to some seconds. */
static inline int tpl_wait(tpl_link *link, double *row, double seconds)
{
    const double until = tpl_now() + seconds;
    int n = tpl_take(link, row), turns = 0;
    while (!n) {
        const double left = until - tpl_now();
        if (left <= 0.0) return 0;
        if (!link->boxes) {
            struct pollfd one = {0, POLLIN, 0};
            one.fd = link->file;
            poll(&one, 1, left < 1.0 ? (int)(1e3 * left) + 1 : 1000);
        } else if (++turns < 200) sched_yield();
        else {
            const struct timespec brief = {0, 20000};
            nanosleep(&brief, 0);
        }
        n = tpl_take(link, row);
    }
    return n;
}

#endif
