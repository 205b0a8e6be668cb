/* The link between a plant and its controller: datagrams on UDP, or two mailboxes in shared memory. C99 and POSIX.

   A packet is a row of little-endian doubles: 1 (the version), a sequence number, a time in s, flags, then the
   measurements of the plant, or the forces of a command. A command has the sequence number of the measurement that it
   answers. A controller first sends a hello: a command, or the head of a command, with the sequence number -1. The plant
   accepts the first address that sends a valid hello; it refuses and counts the datagrams of every other address. */

#ifndef TAULOOP_PLANT_LINK_H
#define TAULOOP_PLANT_LINK_H

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { TPL_VERSION, TPL_SEQUENCE, TPL_TIME, TPL_FLAGS, TPL_HEAD, TPL_MOST = 256 };
/* Flags of a measurement: the last one; brakes hold, for commands are missing; the equations have no solution. */
enum { TPL_END = 1, TPL_BRAKES = 2, TPL_FAILED = 4 };
/* Datagrams that one call reads at most: more than a socket's queue holds, so that a flood costs a bounded time. */
enum { TPL_QUEUE = 1024 };
/* Marks shared memory as a plant's, in this layout. */
#define TPL_MEMORY 0x314c50546c756154ULL

/* A mailbox: `count` is odd while it is written to, and grows by two with each packet. */
typedef struct {
    unsigned long long count, size;
    double row[TPL_MOST];
} tpl_box;

/* Shared memory: mailboxes of measurements and of commands, and the process id of the plant that owns it, which is 0
   while the plant prepares it. */
typedef struct {
    tpl_box boxes[2];
    unsigned long long version;
    long long owner;
} tpl_memory;

typedef struct {
    int file, is_plant, is_known;
    int command_size;   /* of a plant: doubles of a command */
    tpl_memory *memory; /* null with UDP */
    unsigned long long seen; /* count of the mailbox when it was read last */
    unsigned long long read; /* packets of any kind so far */
    unsigned long long strangers; /* datagrams of addresses other than the controller's */
    unsigned long long refused;   /* packets of the other side that are malformed */
    long long owner;              /* the plant that owns the shared memory, if it was refused with EBUSY */
    struct sockaddr_in other;
} tpl_link;

static inline double tpl_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static inline void tpl_close(tpl_link *link)
{
    if (link->memory) munmap(link->memory, sizeof(tpl_memory));
    if (link->file >= 0) close(link->file);
    link->memory = 0, link->file = -1;
}

/* Opens UDP: a plant listens there, a controller sends there. 0, or an error number. */
static inline int tpl_open_udp(tpl_link *link, const char *host, int port, int is_plant)
{
    struct sockaddr_in at;
    int is_open;
    memset(link, 0, sizeof *link);
    memset(&at, 0, sizeof at);
    link->file = -1, link->is_plant = is_plant;
    at.sin_family = AF_INET, at.sin_port = htons((unsigned short)port);
    if (port < 1 || port > 65535 || inet_pton(AF_INET, host, &at.sin_addr) != 1) return EINVAL;
    link->file = socket(AF_INET, SOCK_DGRAM, 0);
    if (link->file < 0) return errno;
    if (is_plant) is_open = bind(link->file, (struct sockaddr *)&at, sizeof at) == 0;
    else is_open = connect(link->file, (struct sockaddr *)&at, sizeof at) == 0;
    if (!is_open) {
        const int error = errno;
        tpl_close(link);
        return error;
    }
    link->is_known = !is_plant;
    return 0;
}

/* Maps the file of a link. 0, or an error number. */
static inline int tpl_map(tpl_link *link)
{
    void *place = mmap(0, sizeof(tpl_memory), PROT_READ | PROT_WRITE, MAP_SHARED, link->file, 0);
    if (place == MAP_FAILED) return errno;
    link->memory = (tpl_memory *)place;
    return 0;
}

/* The process that owns mapped memory of a plant, 0 if it is not a plant's or its owner has ended. */
static inline long long tpl_live_owner(const tpl_memory *memory)
{
    const long long owner = __atomic_load_n(&memory->owner, __ATOMIC_ACQUIRE);
    if (memory->version != TPL_MEMORY || owner <= 0) return 0;
    return kill((pid_t)owner, 0) == 0 || errno == EPERM ? owner : 0;
}

/* Whether a name still belongs to an open file: its owner may have removed it in the meantime. */
static inline int tpl_is_named(int file, const char *name)
{
    struct stat mine, named;
    const int other = shm_open(name, O_RDWR, 0);
    int is_same;
    if (other < 0) return 0;
    is_same = fstat(file, &mine) == 0 && fstat(other, &named) == 0 && mine.st_dev == named.st_dev
        && mine.st_ino == named.st_ino;
    close(other);
    return is_same;
}

/* Takes the memory of an open and locked file. The lock ends with its process, however that ends. EBUSY where a live
   plant owns it, EEXIST where it is not a plant's memory. */
static inline int tpl_take_memory(tpl_link *link)
{
    struct stat state;
    int error = 0;
    const int is_locked = flock(link->file, LOCK_EX | LOCK_NB) == 0, is_held = !is_locked && errno == EWOULDBLOCK;
    if (fstat(link->file, &state) != 0) return errno;
    if (state.st_size > 0 && (size_t)state.st_size < sizeof(tpl_memory)) return EEXIST;
    if (state.st_size == 0 && is_held) return EBUSY;
    if (state.st_size == 0 && ftruncate(link->file, sizeof(tpl_memory)) != 0) return errno;
    if ((error = tpl_map(link)) != 0) return error;
    if (state.st_size > 0 && link->memory->version != TPL_MEMORY) return EEXIST;
    link->owner = tpl_live_owner(link->memory);
    /* where a system cannot lock shared memory, a living owner is taken for its plant */
    if (is_held || (!is_locked && link->owner)) return EBUSY;
    __atomic_store_n(&link->memory->owner, 0, __ATOMIC_SEQ_CST);
    memset(link->memory, 0, sizeof(tpl_memory));
    link->memory->version = TPL_MEMORY;
    __atomic_store_n(&link->memory->owner, (long long)getpid(), __ATOMIC_RELEASE);
    return 0;
}

/* Makes shared memory, or takes over that of a plant that has ended without removing it. */
static inline int tpl_own_memory(tpl_link *link, const char *name)
{
    for (int attempt = 0; attempt < 10; ++attempt) {
        int error;
        link->file = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
        if (link->file < 0 && errno == EEXIST) link->file = shm_open(name, O_RDWR, 0);
        if (link->file < 0 && errno == ENOENT) continue;
        if (link->file < 0) return errno;
        error = tpl_take_memory(link);
        if (error || tpl_is_named(link->file, name)) return error;
        tpl_close(link); /* a plant that was ending removed the name in between */
    }
    return EAGAIN;
}

/* Opens the memory of a plant that runs; ESRCH where none does. */
static inline int tpl_join_memory(tpl_link *link, const char *name)
{
    struct stat state;
    int error;
    link->file = shm_open(name, O_RDWR, 0);
    if (link->file < 0 || fstat(link->file, &state) != 0) return errno;
    if ((size_t)state.st_size < sizeof(tpl_memory)) return ESRCH;
    if ((error = tpl_map(link)) != 0) return error;
    return tpl_live_owner(link->memory) ? 0 : ESRCH;
}

/* Opens shared memory by its name, "/name"; the plant makes it. 0, or an error number: EBUSY where a live plant owns it
   (then `owner` is its process id), EEXIST where the memory of that name is not a plant's. */
static inline int tpl_open_memory(tpl_link *link, const char *name, int is_plant)
{
    int error;
    memset(link, 0, sizeof *link);
    link->file = -1, link->is_plant = is_plant;
    error = is_plant ? tpl_own_memory(link, name) : tpl_join_memory(link, name);
    if (error) tpl_close(link);
    link->is_known = !is_plant;
    return error;
}

/* Sends a row of n doubles, at most TPL_MOST; whether it went off. */
static inline int tpl_send(tpl_link *link, const double *row, int n)
{
    const size_t size = sizeof(double) * (size_t)n;
    if (n < TPL_HEAD || n > TPL_MOST) return 0;
    if (!link->memory) {
        if (!link->is_known) return 0;
        if (!link->is_plant) return send(link->file, row, size, 0) == (ssize_t)size;
        return sendto(link->file, row, size, 0, (struct sockaddr *)&link->other, sizeof link->other) == (ssize_t)size;
    }
    {
        tpl_box *box = link->memory->boxes + (link->is_plant ? 0 : 1);
        /* the next odd number: a controller that was killed while it wrote has left an odd one */
        const unsigned long long count = (__atomic_load_n(&box->count, __ATOMIC_RELAXED) + 1) | 1;
        __atomic_store_n(&box->count, count, __ATOMIC_RELAXED);
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
        box->size = (unsigned long long)n;
        memcpy(box->row, row, size);
        __atomic_store_n(&box->count, count + 1, __ATOMIC_RELEASE);
    }
    return 1;
}

/* Whether a packet is a hello of a controller. */
static inline int tpl_is_hello(const double *row)
{
    return row[TPL_SEQUENCE] == -1.0;
}

/* Whether n doubles are a packet: the version, the size, and finite numbers (of a measurement, those of its head). */
static inline int tpl_is_packet(const tpl_link *link, const double *row, int n)
{
    const int checked = link->is_plant ? n : TPL_HEAD;
    if (n < TPL_HEAD || n > TPL_MOST || row[TPL_VERSION] != 1.0) return 0;
    for (int i = 0; i < checked; ++i)
        if (row[i] - row[i] != 0.0) return 0;
    return !link->is_plant || n == link->command_size || (n == TPL_HEAD && tpl_is_hello(row));
}

/* A packet in the mailbox: how many doubles, 0 if there is no new one, or it is malformed. */
static inline int tpl_take_mail(tpl_link *link, double *row)
{
    const tpl_box *box = link->memory->boxes + (link->is_plant ? 1 : 0);
    const unsigned long long count = __atomic_load_n(&box->count, __ATOMIC_ACQUIRE);
    unsigned long long size;
    int n;
    if (count == link->seen || count & 1) return 0;
    size = box->size;
    n = size <= TPL_MOST ? (int)size : 0;
    memcpy(row, box->row, sizeof(double) * (size_t)n);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (__atomic_load_n(&box->count, __ATOMIC_RELAXED) != count) return 0;
    link->seen = count, link->read += 1;
    if (!tpl_is_packet(link, row, n) || !(link->is_known || tpl_is_hello(row))) {
        link->refused += 1;
        return 0;
    }
    link->is_known = 1;
    return n;
}

/* The next packet, if there is one: how many doubles, 0 without one. Malformed packets, and on UDP those of strangers,
   are counted and passed over. */
static inline int tpl_take(tpl_link *link, double *row)
{
    if (link->memory) return tpl_take_mail(link, row);
    for (int i = 0; i < TPL_QUEUE; ++i) {
        unsigned char bytes[sizeof(double) * TPL_MOST + 1]; /* a byte more shows that a datagram is too long */
        struct sockaddr_in from;
        socklen_t length = sizeof from;
        const ssize_t size = recvfrom(link->file, bytes, sizeof bytes, MSG_DONTWAIT, (struct sockaddr *)&from, &length);
        int n, is_packet;
        if (size < 0) return 0;
        link->read += 1;
        if (link->is_plant && link->is_known
            && (from.sin_port != link->other.sin_port || from.sin_addr.s_addr != link->other.sin_addr.s_addr)) {
            link->strangers += 1;
            continue;
        }
        n = (size_t)size <= sizeof(double) * TPL_MOST && (size_t)size % sizeof(double) == 0
            ? (int)((size_t)size / sizeof(double)) : 0;
        memcpy(row, bytes, sizeof(double) * (size_t)n);
        is_packet = tpl_is_packet(link, row, n);
        if (!link->is_known && !(is_packet && tpl_is_hello(row))) link->strangers += 1;
        else if (!is_packet) link->refused += 1;
        else {
            if (!link->is_known) link->other = from, link->is_known = 1;
            return n;
        }
    }
    return 0;
}

/* The same, waiting up to some seconds. */
static inline int tpl_wait(tpl_link *link, double *row, double seconds)
{
    const double until = tpl_now() + seconds;
    int n = tpl_take(link, row), turns = 0;
    while (!n) {
        const double left = until - tpl_now();
        if (left <= 0.0) return 0;
        if (!link->memory) {
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
