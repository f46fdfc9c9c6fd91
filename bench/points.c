/*
 * Point-to-point figures of one MPI library, measured inside one job.
 *
 *   mpiexec -n N points FIGURE [bytes=8,1024] [pending=256,10000] [batches=20] [batch_ms=5]
 *                              [limit_s=20] [wait_ms=1500] [flag=PATH] [level=multiple] [new=1]
 *
 *   round     ranks 0 and 1 pass a message to and fro; half of the round trip        (n = 2)
 *   crowd     the same, while the n - 2 other processes wait in MPI_Recv             (n > 2)
 *   pairs     the same, in n/2 pairs at once: all pairs done / round trips / 2       (n even)
 *   stream    rank 0 sends windows of 64 messages, rank 1 acknowledges each window   (n = 2)
 *   beside    the first of pairs and stream, while the n - 2 other processes wait in MPI_Barrier
 *   wait      processor time of rank 1 while it waits wait_ms in MPI_Recv            (n = 2)
 *   matching  rank 1 receives among `pending` other messages or posted receives      (n = 2)
 *   memory    proportional share of memory of every process after MPI_Init
 *   burst     `batches` bursts of messages, received after they have been sent, of which the file
 *             PATH tells; no value, its calls are counted from outside               (n = 2)
 *   join      MPI_Init and MPI_Finalize, nothing else; the time is taken from outside
 *   threads   the first of round, and an allreduce of 8 bytes, by what MPI_Init_thread was asked for:
 *             level=single or level=multiple                                         (n = 2)
 *   packing   MPI_Pack of a vector, of structures, of faces of a block, and the same by hand
 *   kill      processes of the second half of the ranks kill themselves, one after the other: from there until a receive
 *             fails in each process of the first half                                (n even, Landeck)
 *   rest      processor time of this host's landeckd while all processes sleep for wait_ms  (Landeck)
 *
 * Rank 0 prints one line of JSON for each batch: what was measured, and the value. A batch is made
 * long enough (batch_ms) that the clock does not matter; nothing is measured after limit_s. With new=1 round,
 * crowd and pairs write each message anew before they send it, in the time that counts.
 * programs/bench/src/points does the same over Landeck's own interface, line for line, but for the last
 * four and beside; apart from these, only these functions of MPI are used: Init, Comm_rank, Comm_size, Send, Recv, Isend,
 * Irecv, Wait, Waitall, Finalize.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <signal.h>
#include <stddef.h>
#include <sys/stat.h>
#include <unistd.h>

#include "batches.h"

enum { WINDOW = 64, TIMED = 256 };

static char *outgoing, *incoming;

/* ------------------------------------------------------------------ helpers */

/* A pattern that differs by size, place and direction; the same in both programs. */
static unsigned char pattern(long place, long bytes, int from) {
    return (unsigned char)(place * 131 + bytes * 7 + from * 89 + 1);
}

static void check_exchange(int partner, bool leads, long bytes) {
    for (long place = 0; place < bytes; place++) outgoing[place] = (char)pattern(place, bytes, rank);
    memset(incoming, 0, (size_t)bytes);
    if (leads) MPI_Send(outgoing, (int)bytes, MPI_BYTE, partner, TAG_DATA, MPI_COMM_WORLD);
    MPI_Recv(incoming, (int)bytes, MPI_BYTE, partner, TAG_DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (!leads) MPI_Send(outgoing, (int)bytes, MPI_BYTE, partner, TAG_DATA, MPI_COMM_WORLD);
    for (long place = 0; place < bytes; place++) {
        if ((unsigned char)incoming[place] != pattern(place, bytes, partner)) fail("received wrong bytes");
    }
}

/* ------------------------------------------------------------------ to and fro */

static double to_and_fro(int64_t iterations, long bytes) {
    int partner = rank ^ 1, count = (int)bytes;
    double start = now_s();
    if (rank < partner) {
        for (int64_t i = 0; i < iterations; i++) {
            renew(outgoing, bytes, i);
            MPI_Send(outgoing, count, MPI_BYTE, partner, TAG_DATA, MPI_COMM_WORLD);
            MPI_Recv(incoming, count, MPI_BYTE, partner, TAG_DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
    } else {
        for (int64_t i = 0; i < iterations; i++) {
            MPI_Recv(incoming, count, MPI_BYTE, partner, TAG_DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            renew(outgoing, bytes, i);
            MPI_Send(outgoing, count, MPI_BYTE, partner, TAG_DATA, MPI_COMM_WORLD);
        }
    }
    return now_s() - start;
}

static void measure_round(void) {
    if (size != 2) fail("round needs exactly 2 processes");
    for (int i = 0; i < settings.bytes.count; i++) {
        check_exchange(1 - rank, rank == 0, settings.bytes.values[i]);
        run_batches(&(struct batches){.figure = "round", .form = "", .batch = to_and_fro, .bytes = settings.bytes.values[i],
                                      .followers = 1, .divisor = 2});
    }
}

static void measure_crowd(void) {
    if (size < 2) fail("crowd needs at least 2 processes");
    if (rank < 2) check_exchange(1 - rank, rank == 0, settings.bytes.values[0]);
    if (rank >= 2) {
        send_word(rank, 0, TAG_REPORT);
        (void)receive_word(0, TAG_CONTROL);
        return;
    }
    if (rank == 0) {
        for (int other = 2; other < size; other++) (void)receive_word(other, TAG_REPORT);
    }
    for (int i = 0; i < settings.bytes.count; i++) {
        run_batches(&(struct batches){.figure = "crowd", .form = "", .batch = to_and_fro, .bytes = settings.bytes.values[i],
                                      .followers = 1, .divisor = 2});
    }
    if (rank == 0) {
        for (int other = 2; other < size; other++) send_word(0, other, TAG_CONTROL);
    }
}

static void measure_pairs(void) {
    if (size % 2) fail("pairs needs an even number of processes");
    for (int i = 0; i < settings.bytes.count; i++) {
        check_exchange(rank ^ 1, rank % 2 == 0, settings.bytes.values[i]);
        run_batches(&(struct batches){.figure = "pairs", .form = "", .batch = to_and_fro, .bytes = settings.bytes.values[i],
                                      .followers = size - 1, .slowest_counts = true, .divisor = 2});
    }
}

/* ------------------------------------------------------------------ stream */

static double stream_of_requests(int64_t windows, long bytes) {
    MPI_Request requests[WINDOW];
    int count = (int)bytes;
    double start = now_s();
    for (int64_t window = 0; window < windows; window++) {
        for (int i = 0; i < WINDOW; i++) {
            if (rank == 0) MPI_Isend(outgoing, count, MPI_BYTE, 1, TAG_DATA, MPI_COMM_WORLD, &requests[i]);
            else MPI_Irecv(incoming + (long)i * bytes, count, MPI_BYTE, 0, TAG_DATA, MPI_COMM_WORLD, &requests[i]);
        }
        MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
        if (rank == 0) (void)receive_word(1, TAG_MARKER);
        else send_word(window, 0, TAG_MARKER);
    }
    return now_s() - start;
}

static double stream_of_calls(int64_t windows, long bytes) {
    int count = (int)bytes;
    double start = now_s();
    for (int64_t window = 0; window < windows; window++) {
        for (int i = 0; i < WINDOW; i++) {
            if (rank == 0) MPI_Send(outgoing, count, MPI_BYTE, 1, TAG_DATA, MPI_COMM_WORLD);
            else MPI_Recv(incoming, count, MPI_BYTE, 0, TAG_DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        if (rank == 0) (void)receive_word(1, TAG_MARKER);
        else send_word(window, 0, TAG_MARKER);
    }
    return now_s() - start;
}

static void measure_stream(void) {
    if (size != 2) fail("stream needs exactly 2 processes");
    for (int i = 0; i < settings.bytes.count; i++) {
        long bytes = settings.bytes.values[i];
        check_exchange(1 - rank, rank == 0, bytes);
        run_batches(&(struct batches){.figure = "stream", .form = "requests", .batch = stream_of_requests, .bytes = bytes,
                                      .followers = 1, .divisor = WINDOW});
        run_batches(&(struct batches){.figure = "stream", .form = "calls", .batch = stream_of_calls, .bytes = bytes,
                                      .followers = 1, .divisor = WINDOW});
    }
}

static void measure_beside(void) {
    if (size < 2) fail("beside needs at least 2 processes");
    if (rank < 2) check_exchange(1 - rank, rank == 0, settings.bytes.values[0]);
    for (int i = 0; rank < 2 && i < settings.bytes.count; i++) {
        long bytes = settings.bytes.values[i];
        run_batches(&(struct batches){.figure = "beside", .form = "to and fro", .batch = to_and_fro, .bytes = bytes,
                                      .followers = 1, .divisor = 2});
        run_batches(&(struct batches){.figure = "beside", .form = "windows", .batch = stream_of_requests, .bytes = bytes,
                                      .followers = 1, .divisor = WINDOW});
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* ------------------------------------------------------------------ matching */

enum form { EXACT, ANY_SOURCE, ANY_TAG, ANY, FORMS };
static const char *const form_names[2][FORMS] = {
    {"unexpected, exact", "unexpected, any source", "unexpected, any tag", "unexpected, any"},
    {"posted first, exact", "posted first, any source", "posted first, any tag", "posted first, any"},
};

static bool by_tag(enum form form) { return form == EXACT || form == ANY_SOURCE; }
static int source_of(enum form form) { return form == EXACT || form == ANY_TAG ? 0 : MPI_ANY_SOURCE; }
static int tag_of(enum form form, int64_t tag) { return by_tag(form) ? (int)tag : MPI_ANY_TAG; }

/* Brings TIMED of the tags to the front of the list, in random order (xorshift, fixed seed). */
static void draw(int64_t *tags, long pending) {
    static uint64_t state = 88172645463325252u;
    for (long i = 0; i < TIMED; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        long other = i + (long)(state % (uint64_t)(pending - i));
        int64_t tag = tags[i];
        tags[i] = tags[other];
        tags[other] = tag;
    }
}

/* Rank 0 sends what rank 1 names, until rank 1 names nothing; then every tag once more if asked. */
static void feed(long pending, bool marked, bool preloaded) {
    int64_t wanted[TIMED + 1];
    for (int64_t tag = 0; preloaded && tag < pending; tag++) send_word(tag, 1, (int)tag);
    if (preloaded) send_word(0, 1, TAG_MARKER);
    for (;;) {
        receive_words(wanted, TIMED + 1, 1, TAG_LIST);
        if (wanted[TIMED] == 0) break;
        for (int i = 0; i < TIMED; i++) send_word(wanted[i], 1, (int)wanted[i]);
        if (marked) send_word(0, 1, TAG_MARKER);
    }
    for (int64_t tag = 0; !preloaded && tag < pending; tag++) send_word(tag, 1, (int)tag);
}

static void want(const int64_t *tags, int64_t more) {
    int64_t wanted[TIMED + 1] = {0};
    if (more) memcpy(wanted, tags, TIMED * sizeof *tags);
    wanted[TIMED] = more;
    send_words(wanted, TIMED + 1, 0, TAG_LIST);
}

/* `pending` messages have arrived before anybody asks for them; TIMED of them are received. */
static int take_unexpected(enum form form, long pending, int64_t *tags, double *values) {
    int64_t got[TIMED];
    int done = 0;
    double stop_s = now_s() + settings.limit_s;
    (void)receive_word(0, TAG_MARKER);
    for (; done < settings.batches && now_s() < stop_s; done++) {
        if (by_tag(form)) draw(tags, pending);
        double start = now_s();
        for (int i = 0; i < TIMED; i++) receive_words(&got[i], 1, source_of(form), tag_of(form, tags[i]));
        values[done] = 1e9 * (now_s() - start) / TIMED;
        for (int i = 0; by_tag(form) && i < TIMED; i++) {
            if (got[i] != tags[i]) fail("matched the wrong message");
        }
        want(got, 1);
        (void)receive_word(0, TAG_MARKER);
    }
    want(NULL, 0);
    for (long i = 0; i < pending; i++) (void)receive_word(source_of(form), tag_of(form, tags[i]));
    return done;
}

/* `pending` receives are posted before anything arrives; TIMED messages for them arrive. */
static int take_posted(enum form form, long pending, int64_t *tags, double *values) {
    MPI_Request *requests = malloc((size_t)pending * sizeof *requests); /* by tag, or by age */
    MPI_Request chosen[TIMED];
    int64_t *slots = calloc((size_t)pending, sizeof *slots), place[TIMED];
    long oldest = 0;
    int done = 0;
    double stop_s = now_s() + settings.limit_s;
    if (!requests || !slots) fail("no memory for the posted receives");
    for (long i = 0; i < pending; i++) {
        MPI_Irecv(&slots[i], 8, MPI_BYTE, source_of(form), tag_of(form, i), MPI_COMM_WORLD, &requests[i]);
    }
    for (; done < settings.batches && now_s() < stop_s; done++) {
        draw(tags, pending);
        for (int i = 0; i < TIMED; i++) {
            place[i] = by_tag(form) ? tags[i] : (oldest + i) % pending;
            chosen[i] = requests[place[i]];
        }
        want(tags, 1);
        double start = now_s();
        MPI_Waitall(TIMED, chosen, MPI_STATUSES_IGNORE);
        values[done] = 1e9 * (now_s() - start) / TIMED;
        for (int i = 0; i < TIMED; i++) {
            if (slots[place[i]] != tags[i]) fail("matched the wrong receive");
            MPI_Irecv(&slots[place[i]], 8, MPI_BYTE, source_of(form), tag_of(form, place[i]), MPI_COMM_WORLD,
                      &requests[place[i]]);
        }
        oldest = (oldest + TIMED) % pending;
    }
    want(NULL, 0);
    MPI_Waitall((int)pending, requests, MPI_STATUSES_IGNORE);
    free(slots);
    free(requests);
    return done;
}

static void match(enum form form, bool posted, long pending) {
    if (rank == 0) {
        feed(pending, !posted, !posted);
        int64_t done = receive_word(1, TAG_REPORT);
        for (int64_t i = 0; i < done; i++) {
            double value;
            receive_words(&value, 1, 1, TAG_REPORT);
            print_value("matching", form_names[posted][form], 8, pending, "ns", value);
        }
        return;
    }
    int64_t *tags = malloc((size_t)pending * sizeof *tags);
    double *values = malloc((size_t)settings.batches * sizeof *values);
    if (!tags || !values) fail("no memory for the tags");
    for (long i = 0; i < pending; i++) tags[i] = i;
    int done = (posted ? take_posted : take_unexpected)(form, pending, tags, values);
    send_word(done, 0, TAG_REPORT);
    for (int i = 0; i < done; i++) report(values[i]);
    free(values);
    free(tags);
}

static void measure_matching(void) {
    if (size != 2) fail("matching needs exactly 2 processes");
    for (int i = 0; i < settings.pending.count; i++) {
        long pending = settings.pending.values[i];
        if (pending < TIMED || pending >= TAG_CONTROL) fail("pending must lie between 256 and 29999");
        for (int posted = 0; posted < 2; posted++) {
            for (int form = 0; form < FORMS; form++) match((enum form)form, posted, pending);
        }
    }
}

/* ------------------------------------------------------------------ cost of being there */

static void measure_wait(void) {
    if (size != 2) fail("wait needs exactly 2 processes");
    if (rank == 0) {
        double percent;
        long wait_ms = (long)settings.wait_ms;
        struct timespec pause = {wait_ms / 1000, wait_ms % 1000 * 1000000};
        (void)receive_word(1, TAG_REPORT);
        nanosleep(&pause, NULL);
        send_word(0, 1, TAG_DATA);
        receive_words(&percent, 1, 1, TAG_REPORT);
        print_value("wait", "", 8, 0, "%", percent);
    } else {
        send_word(0, 0, TAG_REPORT);
        double start = now_s(), used = clock_s(CLOCK_PROCESS_CPUTIME_ID);
        (void)receive_word(0, TAG_DATA);
        used = clock_s(CLOCK_PROCESS_CPUTIME_ID) - used;
        report(100 * used / (now_s() - start));
    }
}

static double own_pss_kib(void) {
    char line[256];
    long pss_kib = -1;
    FILE *rollup = fopen("/proc/self/smaps_rollup", "r");
    if (!rollup) fail("cannot read /proc/self/smaps_rollup");
    while (fgets(line, sizeof line, rollup)) {
        if (sscanf(line, "Pss: %ld kB", &pss_kib) == 1) break;
    }
    fclose(rollup);
    return (double)pss_kib;
}

/* Everybody measures after everybody has arrived and before anybody leaves. */
static void measure_memory(void) {
    if (rank > 0) {
        send_word(0, 0, TAG_REPORT);
        (void)receive_word(0, TAG_CONTROL);
        report(own_pss_kib());
        (void)receive_word(0, TAG_CONTROL);
        return;
    }
    for (int other = 1; other < size; other++) (void)receive_word(other, TAG_REPORT);
    for (int other = 1; other < size; other++) send_word(0, other, TAG_CONTROL);
    print_value("memory", "", 0, 0, "KiB", own_pss_kib());
    for (int other = 1; other < size; other++) {
        double pss_kib;
        receive_words(&pss_kib, 1, other, TAG_REPORT);
        print_value("memory", "", 0, 0, "KiB", pss_kib);
    }
    for (int other = 1; other < size; other++) send_word(0, other, TAG_CONTROL);
}

/* One call each, found by name from outside. */
__attribute__((noinline)) static void counted_send(const int64_t *word) {
    MPI_Send(word, 8, MPI_BYTE, 1, TAG_DATA, MPI_COMM_WORLD);
}

__attribute__((noinline)) static void counted_receive(int64_t *word) {
    MPI_Recv(word, 8, MPI_BYTE, 0, TAG_DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* The file grows by a byte with every burst that has been sent: no message is needed to say so. */
static void tell_sent(void) {
    FILE *flag = fopen(settings.flag, "a");
    if (!flag || fputc('.', flag) == EOF || fclose(flag)) fail("cannot write the flag");
}

static void await_sent(long bursts) {
    struct timespec pause = {0, 1000000};
    struct stat status = {.st_size = 0};
    while (stat(settings.flag, &status) || status.st_size < bursts) nanosleep(&pause, NULL);
}

static void measure_burst(void) {
    enum { BURST = 8 };
    if (size != 2) fail("burst needs exactly 2 processes");
    if (!settings.flag) fail("burst needs flag=PATH");
    for (int burst = 0; burst < settings.batches; burst++) {
        if (rank == 1) await_sent(burst + 1);
        for (int64_t word = 0; word < BURST; word++) {
            int64_t got = word;
            if (rank == 0) counted_send(&word);
            else counted_receive(&got);
            if (got != word) fail("received the wrong message");
        }
        if (rank == 0) tell_sent();
        if (rank == 0) (void)receive_word(1, TAG_MARKER);
        else send_word(0, 0, TAG_MARKER);
    }
}

static void measure_join(void) {}

/* ------------------------------------------------------------------ levels of threads */

static double sums(int64_t iterations, long bytes) {
    (void)bytes;
    double term = rank, sum = 0, start = now_s();
    for (int64_t i = 0; i < iterations; i++) MPI_Allreduce(&term, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    double elapsed = now_s() - start;
    if (iterations > 0 && sum != 1) fail("received a wrong sum");
    return elapsed;
}

static void measure_threads(void) {
    if (size != 2) fail("threads needs exactly 2 processes");
    int level;
    MPI_Query_thread(&level);
    bool is_multiple = level == MPI_THREAD_MULTIPLE;
    if (is_multiple != settings.is_multiple) fail("the library has another level of threads than was asked for");
    check_exchange(1 - rank, rank == 0, 8);
    run_batches(&(struct batches){.figure = "threads", .form = is_multiple ? "round, multiple" : "round, single",
                                  .batch = to_and_fro, .bytes = 8, .followers = 1, .divisor = 2});
    run_batches(&(struct batches){.figure = "threads", .form = is_multiple ? "allreduce, multiple" : "allreduce, single",
                                  .batch = sums, .bytes = 8, .followers = 1, .slowest_counts = true, .divisor = 1});
}

/* ------------------------------------------------------------------ packing */

enum { SIDE = 64, STRIDE = 24 };

struct particle {
    double place[3];
    int32_t kind;
    char mark;
};

static MPI_Datatype packed_type;
static int packed_count, packed_capacity;

static double by_library(int64_t iterations, long bytes) {
    (void)bytes;
    double start = now_s();
    for (int64_t i = 0; i < iterations; i++) {
        int position = 0;
        MPI_Pack(outgoing, packed_count, packed_type, incoming, packed_capacity, &position, MPI_COMM_WORLD);
    }
    return now_s() - start;
}

/* What somebody writes who knows what lies where. */
__attribute__((noinline)) static void pack_vector(char *target, long count) {
    for (long at = 0; at < count; at++) memcpy(target + 8 * at, outgoing + 8 * STRIDE * at, 8);
}

__attribute__((noinline)) static void pack_struct(char *target, long count) {
    const struct particle *particles = (const struct particle *)outgoing;
    for (long at = 0; at < count; at++, target += 29) {
        memcpy(target, particles[at].place, 24);
        memcpy(target + 24, &particles[at].kind, 4);
        target[28] = particles[at].mark;
    }
}

__attribute__((noinline)) static void pack_face(char *target, long axis) {
    const double *block = (const double *)outgoing;
    double *face = (double *)target;
    for (long i = 0; i < SIDE; i++) {
        for (long j = 0; j < SIDE; j++) {
            long place = axis == 0 ? SIDE * i + j : axis == 1 ? SIDE * SIDE * i + j : SIDE * (SIDE * i + j);
            face[SIDE * i + j] = block[place];
        }
    }
}

static void (*hand)(char *target, long count);
static long hand_count;

static double by_hand(int64_t iterations, long bytes) {
    (void)bytes;
    double start = now_s();
    for (int64_t i = 0; i < iterations; i++) hand(incoming, hand_count);
    return now_s() - start;
}

static void pack(const char *form, const char *form_by_hand, MPI_Datatype type, int count,
                 void (*packer)(char *, long), long argument) {
    int bytes, position = 0;
    MPI_Type_commit(&type);
    MPI_Pack_size(count, type, MPI_COMM_WORLD, &packed_capacity);
    packed_type = type, packed_count = count, hand = packer, hand_count = argument;
    MPI_Type_size(type, &bytes);
    bytes *= count;
    char *expected = malloc((size_t)bytes);
    if (!expected) fail("no memory for what is packed");
    hand(expected, hand_count);
    MPI_Pack(outgoing, count, type, incoming, packed_capacity, &position, MPI_COMM_WORLD);
    if (position != bytes || memcmp(expected, incoming, (size_t)bytes)) fail("packed wrong bytes");
    free(expected);
    run_batches(&(struct batches){.figure = "packing", .form = form, .batch = by_library, .bytes = bytes, .divisor = 1});
    run_batches(&(struct batches){.figure = "packing", .form = form_by_hand, .batch = by_hand, .bytes = bytes, .divisor = 1});
    MPI_Type_free(&type);
}

static MPI_Datatype vector_of(int count) {
    MPI_Datatype type;
    MPI_Type_vector(count, 1, STRIDE, MPI_DOUBLE, &type);
    return type;
}

static MPI_Datatype structure(void) {
    const int lengths[] = {3, 1, 1};
    const MPI_Aint places[] = {offsetof(struct particle, place), offsetof(struct particle, kind), offsetof(struct particle, mark)};
    const MPI_Datatype types[] = {MPI_DOUBLE, MPI_INT32_T, MPI_CHAR};
    MPI_Datatype bare, type;
    MPI_Type_create_struct(3, lengths, places, types, &bare);
    MPI_Type_create_resized(bare, 0, sizeof(struct particle), &type);
    MPI_Type_free(&bare);
    return type;
}

static MPI_Datatype face(int axis) {
    const int sides[] = {SIDE, SIDE, SIDE}, starts[] = {0, 0, 0};
    int widths[] = {SIDE, SIDE, SIDE};
    MPI_Datatype type;
    widths[axis] = 1;
    MPI_Type_create_subarray(3, sides, widths, starts, MPI_ORDER_C, MPI_DOUBLE, &type);
    return type;
}

static void measure_packing(void) {
    if (size != 1) fail("packing needs exactly 1 process");
    for (long place = 0; place < (long)sizeof(double) * SIDE * SIDE * SIDE; place++) outgoing[place] = (char)pattern(place, 8, 0);
    for (int count = 100; count <= 10000; count *= 10) {
        pack("vector", "by hand: vector", vector_of(count), 1, pack_vector, count);
        pack("struct", "by hand: struct", structure(), count / 4, pack_struct, count / 4);
    }
    pack("face of layers", "by hand: face of layers", face(0), 1, pack_face, 0);
    pack("face of rows", "by hand: face of rows", face(1), 1, pack_face, 1);
    pack("face of columns", "by hand: face of columns", face(2), 1, pack_face, 2);
}

/* ------------------------------------------------------------------ several hosts */

static void sleep_until(double when_s) {
    struct timespec when = {(time_t)when_s, (long)(1e9 * (when_s - (double)(time_t)when_s))};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, NULL)) {}
}

/* Says when it will die, so that the survivors wait and sleep by then, and dies. */
static void die_announced(void) {
    double when_s = now_s() + 0.1;
    for (int survivor = 0; survivor < size / 2; survivor++) send_words(&when_s, 1, survivor, TAG_DATA);
    sleep_until(when_s);
    kill(getpid(), SIGKILL);
}

/* Hosts that are namespaces of one computer have one clock, so two processes may compare their times. */
static void survive(int victim) {
    double died_s;
    receive_words(&died_s, 1, victim, TAG_DATA);
    int result = MPI_Recv(incoming, 8, MPI_BYTE, victim, TAG_MARKER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    double noticed_s = now_s();
    if (result == MPI_SUCCESS) fail("received a message that nobody sent");
    print_value("kill", "", 0, 0, "ms", 1e3 * (noticed_s - died_s));
}

static void measure_kill(void) {
    int64_t ignored;
    if (size % 2) fail("kill needs an even number of processes");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int victim = size - 1; victim >= size / 2; victim--) {
        if (rank == victim) die_announced();
        else if (rank < size / 2) survive(victim);
        else MPI_Recv(&ignored, 8, MPI_BYTE, victim, TAG_MARKER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

/* The processor time of one process of this name, with all threads; 0 for all others. */
static double time_if_called_s(const char *pid, const char *name) {
    char path[600], line[64] = "";
    double sum_s = 0;
    snprintf(path, sizeof path, "/proc/%s/comm", pid);
    FILE *file = fopen(path, "r");
    if (!file) return 0;
    if (!fgets(line, sizeof line, file)) line[0] = 0;
    fclose(file);
    line[strcspn(line, "\n")] = 0;
    if (strcmp(line, name)) return 0;
    snprintf(path, sizeof path, "/proc/%s/task", pid);
    DIR *tasks = opendir(path);
    for (struct dirent *task; tasks && (task = readdir(tasks));) {
        unsigned long long ran_ns;
        snprintf(path, sizeof path, "/proc/%s/task/%s/schedstat", pid, task->d_name);
        if (!(file = fopen(path, "r"))) continue;
        if (fscanf(file, "%llu", &ran_ns) == 1) sum_s += 1e-9 * (double)ran_ns;
        fclose(file);
    }
    if (tasks) closedir(tasks);
    return sum_s;
}

/* The processor time of all daemons on this host: ticks of a hundredth second would be too coarse for it. */
static double daemons_s(void) {
    double sum_s = 0;
    DIR *processes = opendir("/proc");
    for (struct dirent *process; processes && (process = readdir(processes));) {
        if (process->d_name[0] >= '0' && process->d_name[0] <= '9') sum_s += time_if_called_s(process->d_name, "landeckd");
    }
    if (processes) closedir(processes);
    return sum_s;
}

/* Every two processes talk first, so that all connections are there. */
static void measure_rest(void) {
    char form[32];
    for (int other = 0; other < size; other++) {
        if (rank < other) send_word(0, other, TAG_DATA), (void)receive_word(other, TAG_DATA);
        if (rank > other) (void)receive_word(other, TAG_DATA), send_word(0, other, TAG_DATA);
    }
    sleep_until(now_s() + 0.3);
    double start_s = now_s(), before_s = daemons_s();
    sleep_until(start_s + 1e-3 * settings.wait_ms);
    double share = (daemons_s() - before_s) / (now_s() - start_s);
    if (before_s <= 0) fail("there is no landeckd on this host");
    snprintf(form, sizeof form, "host of rank %d", rank);
    print_value("rest", form, 0, 0, "%", 100 * share);
}

/* ------------------------------------------------------------------ the command line */

static const struct {
    const char *name;
    void (*measure)(void);
} figures[] = {
    {"round", measure_round},       {"crowd", measure_crowd}, {"pairs", measure_pairs},   {"stream", measure_stream},
    {"beside", measure_beside},
    {"matching", measure_matching}, {"wait", measure_wait},   {"memory", measure_memory}, {"burst", measure_burst},
    {"join", measure_join},         {"threads", measure_threads}, {"packing", measure_packing},
    {"kill", measure_kill},         {"rest", measure_rest},
};

/* Touched before anything is measured. A window of messages fits into `incoming`. */
static void allocate_buffers(size_t largest) {
    if (posix_memalign((void **)&outgoing, 4096, largest) || posix_memalign((void **)&incoming, 4096, largest * WINDOW)) {
        fail("no memory for the buffers");
    }
    memset(outgoing, 1, largest);
}

int main(int argc, char **argv) {
    const char *figure = parse_command_line(argc, argv);
    int level;
    if (settings.is_multiple) MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    else MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    size_t which = 0, count = sizeof figures / sizeof *figures;
    while (which < count && strcmp(figures[which].name, figure)) which++;
    if (which == count) fail("unknown figure; they stand at the head of bench/points.c");
    if (figures[which].measure != measure_memory && figures[which].measure != measure_join) {
        bool packs = figures[which].measure == measure_packing;
        allocate_buffers(packs ? sizeof(double) * SIDE * SIDE * SIDE : (size_t)largest_bytes());
    }
    figures[which].measure();

    free(outgoing);
    free(incoming);
    MPI_Finalize();
    return 0;
}
