/*
 * life: Conway's Life on up to 32 nodes that share nothing, each writing what it does to its own port.
 *
 *     cc -std=c99 -O2 -pthread -o life life.c
 *     ./life --nodes 16 --size 512 --generations 100 -o life.csv --log log.csv
 *
 * A node is a thread with a strip of the board (a torus) and two mailboxes, one from the strip above
 * and one from the strip below. Nothing else passes between nodes but a barrier after each generation:
 *
 *     send the top row up and the bottom row down; receive both neighbours' rows; compute; barrier
 *
 * -o is a stimulus for the virtual board: every write of every port at the time it happened. --log is
 * the program's own record of its events, kept apart from the ports, for checking what
 * comes back: `node,from_ns,to_ns,event,payload`, the times just before and after the event was written.
 * The final board is compared with a plain sequential run; exit status 1 if they differ.
 *
 * Source: Life is one of the four programs of the paper's Table 1.
 */
#define _POSIX_C_SOURCE 200809L

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hypermon.h"
#include "life_events.h"

#define NODES_MAX 32
#define SIZE_LARGEST 65535
#define GENERATIONS_MAX 32767  /* two messages a generation, numbered in 16 bits */
#define MAILBOX_DEPTH 4
#define EVENT_BYTES_MAX 8      /* id and payload of the longest event here */

static void die(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("life: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(2);
}

static void *allocate(size_t count, size_t size)
{
    void *memory = calloc(count ? count : 1, size);
    if (memory == NULL)
        die("out of memory");
    return memory;
}


/* ---------------------------------------------------------------------------------- the rules -- */

/* One row of the next generation; the row wraps. Cells are 0 or 1. Returns how many are alive. */
static uint32_t step_row(unsigned char *next, const unsigned char *above, const unsigned char *here,
                         const unsigned char *below, unsigned size)
{
    uint32_t alive = 0;
    unsigned column;
    for (column = 0; column < size; column++) {
        const unsigned left = column ? column - 1 : size - 1;
        const unsigned right = column + 1 < size ? column + 1 : 0;
        const int around = above[left] + above[column] + above[right] + here[left] + here[right]
                         + below[left] + below[column] + below[right];
        next[column] = (unsigned char)(around == 3 || (around == 2 && here[column]));
        alive += next[column];
    }
    return alive;
}

/* A third of the cells, the same for the same seed everywhere (xorshift). */
static void fill(unsigned char *cells, size_t count, uint32_t seed)
{
    uint32_t state = seed * 2654435769u | 1u;
    size_t i;
    for (i = 0; i < count; i++) {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        cells[i] = (unsigned char)(state % 3u == 0);
    }
}

static void run_sequential(unsigned char *cells, unsigned size, unsigned generations)
{
    unsigned char *next = (unsigned char *)allocate((size_t)size, size);
    while (generations--) {
        unsigned row;
        for (row = 0; row < size; row++)
            step_row(next + (size_t)row * size, cells + (size_t)((row + size - 1) % size) * size,
                     cells + (size_t)row * size, cells + (size_t)((row + 1) % size) * size, size);
        memcpy(cells, next, (size_t)size * size);
    }
    free(next);
}


/* -------------------------------------------------------------------------- messages, barrier -- */

typedef struct message {
    unsigned from;
    unsigned sequence;
    unsigned char *row;
} message;

/* A bounded queue of messages; the rows are its own copies. */
typedef struct mailbox {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    message slots[MAILBOX_DEPTH];
    unsigned first;
    unsigned count;
} mailbox;

static void mailbox_open(mailbox *box, unsigned size)
{
    unsigned i;
    pthread_mutex_init(&box->lock, NULL);
    pthread_cond_init(&box->changed, NULL);
    box->first = box->count = 0;
    for (i = 0; i < MAILBOX_DEPTH; i++)
        box->slots[i].row = (unsigned char *)allocate(size, 1);
}

static void mailbox_close(mailbox *box)
{
    unsigned i;
    for (i = 0; i < MAILBOX_DEPTH; i++)
        free(box->slots[i].row);
    pthread_cond_destroy(&box->changed);
    pthread_mutex_destroy(&box->lock);
}

/* Waits for room. */
static void mailbox_put(mailbox *box, unsigned from, unsigned sequence, const unsigned char *row, unsigned size)
{
    message *slot;
    pthread_mutex_lock(&box->lock);
    while (box->count == MAILBOX_DEPTH)
        pthread_cond_wait(&box->changed, &box->lock);
    slot = &box->slots[(box->first + box->count++) % MAILBOX_DEPTH];
    slot->from = from;
    slot->sequence = sequence;
    memcpy(slot->row, row, size);
    pthread_cond_signal(&box->changed);
    pthread_mutex_unlock(&box->lock);
}

/* Waits for a message; copies its row to where the border belongs. */
static void mailbox_get(mailbox *box, unsigned *from, unsigned *sequence, unsigned char *row, unsigned size)
{
    message *slot;
    pthread_mutex_lock(&box->lock);
    while (box->count == 0)
        pthread_cond_wait(&box->changed, &box->lock);
    slot = &box->slots[box->first];
    *from = slot->from;
    *sequence = slot->sequence;
    memcpy(row, slot->row, size);
    box->first = (box->first + 1) % MAILBOX_DEPTH;
    box->count--;
    pthread_cond_signal(&box->changed);
    pthread_mutex_unlock(&box->lock);
}

/* POSIX's own barrier is optional, and absent where it is missed. */
typedef struct barrier {
    pthread_mutex_t lock;
    pthread_cond_t opened;
    unsigned nodes;
    unsigned inside;
    unsigned round;
} barrier;

static void barrier_wait(barrier *gate)
{
    unsigned round;
    pthread_mutex_lock(&gate->lock);
    round = gate->round;
    if (++gate->inside == gate->nodes) {
        gate->inside = 0;
        gate->round++;
        pthread_cond_broadcast(&gate->opened);
    }
    while (round == gate->round)
        pthread_cond_wait(&gate->opened, &gate->lock);
    pthread_mutex_unlock(&gate->lock);
}


/* ----------------------------------------------------------------------------------- the nodes -- */

/* The program's own record of one event. */
typedef struct entry {
    uint64_t from_ns;
    uint64_t to_ns;
    unsigned char length;
    unsigned char bytes[EVENT_BYTES_MAX];
} entry;

typedef struct node {
    unsigned number;
    unsigned size;
    unsigned generations;
    unsigned rows;
    unsigned first_row;
    unsigned up, down;        /* who they are */
    unsigned sequence;        /* of the next message */
    unsigned char *strip;     /* rows + 2 borders */
    unsigned char *next;
    mailbox above, below;     /* what comes from up, from down */
    struct node *nodes;
    barrier *gate;
    hm_port port;
    entry *log;
    size_t events;
} node;

static void note(node *self, enum life_event id, const unsigned char *payload, size_t length)
{
    entry *line = &self->log[self->events++];
    line->length = (unsigned char)(1 + length);
    line->bytes[0] = (unsigned char)id;
    memcpy(line->bytes + 1, payload, length);
    line->from_ns = hm_virtual_now();
    hm_event(&self->port, id, payload, length);
    line->to_ns = hm_virtual_now();
}

static void note_message(node *self, enum life_event id, unsigned peer, unsigned sequence)
{
    unsigned char payload[3];
    payload[0] = (unsigned char)peer;
    hm_put16(payload + 1, sequence);
    note(self, id, payload, sizeof payload);
}

static void note_barrier(node *self, enum life_event id, unsigned generation)
{
    unsigned char payload[2];
    hm_put16(payload, generation);
    note(self, id, payload, sizeof payload);
}

/* The event precedes the transfer, so that nothing is received before it was sent. */
static void send_row(node *self, unsigned peer, mailbox *box, const unsigned char *row)
{
    const unsigned sequence = self->sequence++;
    note_message(self, LIFE_SEND, peer, sequence);
    mailbox_put(box, self->number, sequence, row, self->size);
}

static void receive_row(node *self, mailbox *box, unsigned char *row)
{
    unsigned from, sequence;
    mailbox_get(box, &from, &sequence, row, self->size);
    note_message(self, LIFE_RECEIVE, from, sequence);
}

static void *run_node(void *argument)
{
    node *self = (node *)argument;
    const size_t size = self->size;
    unsigned char payload[6];
    uint32_t alive = 0;
    unsigned generation;
    size_t i;

    for (i = size; i < (self->rows + 1) * size; i++)
        alive += self->strip[i];
    hm_put16(payload, self->rows);
    hm_put16(payload + 2, self->first_row);
    note(self, LIFE_START, payload, 4);

    for (generation = 0; generation < self->generations; generation++) {
        unsigned char *swap;
        unsigned row;

        send_row(self, self->up, &self->nodes[self->up].below, self->strip + size);
        send_row(self, self->down, &self->nodes[self->down].above, self->strip + self->rows * size);
        receive_row(self, &self->above, self->strip);
        receive_row(self, &self->below, self->strip + (self->rows + 1) * size);

        hm_put16(payload, generation);
        hm_put32(payload + 2, alive);
        note(self, LIFE_GENERATION, payload, 6);
        alive = 0;
        for (row = 1; row <= self->rows; row++) {
            const unsigned char *here = self->strip + row * size;
            alive += step_row(self->next + row * size, here - size, here, here + size, self->size);
        }
        swap = self->strip;
        self->strip = self->next;
        self->next = swap;

        note_barrier(self, LIFE_BARRIER_ENTER, generation);
        barrier_wait(self->gate);
        note_barrier(self, LIFE_BARRIER_LEAVE, generation);
    }

    hm_put32(payload, alive);
    note(self, LIFE_STOP, payload, 4);
    return NULL;
}

static void node_open(node *self, node *nodes, unsigned count, unsigned number, barrier *gate,
                      const unsigned char *board, unsigned size, unsigned generations)
{
    const size_t events = 2 + 7 * (size_t)generations;
    unsigned i;
    self->number = number;
    self->size = size;
    self->generations = generations;
    self->rows = size / count + (number < size % count);
    for (i = 0; i < number; i++)
        self->first_row += size / count + (i < size % count);
    self->up = (number + count - 1) % count;
    self->down = (number + 1) % count;
    self->nodes = nodes;
    self->gate = gate;
    self->strip = (unsigned char *)allocate(self->rows + 2u, size);
    self->next = (unsigned char *)allocate(self->rows + 2u, size);
    memcpy(self->strip + size, board + (size_t)self->first_row * size, (size_t)self->rows * size);
    mailbox_open(&self->above, size);
    mailbox_open(&self->below, size);
    self->log = (entry *)allocate(events, sizeof *self->log);
    memset(self->log, 0xff, events * sizeof *self->log);  /* page faults now, not later */
    if (hm_virtual_open(&self->port, events * (4 * EVENT_BYTES_MAX + 2)) != 0)
        die("out of memory");
}

static void node_close(node *self)
{
    hm_virtual_close(&self->port);
    mailbox_close(&self->above);
    mailbox_close(&self->below);
    free(self->strip);
    free(self->next);
    free(self->log);
}


/* -------------------------------------------------------------------------------- the program -- */

static FILE *create(const char *path)
{
    FILE *file = fopen(path, "w");
    if (file == NULL) {
        perror(path);
        exit(2);
    }
    return file;
}

static void save_stimulus(const char *path, node *nodes, unsigned count, uint64_t start_ns)
{
    hm_port *ports[NODES_MAX];
    FILE *file = create(path);
    unsigned i;
    for (i = 0; i < count; i++)
        ports[i] = &nodes[i].port;
    if (hm_virtual_save(file, ports, count, start_ns) != 0 || fclose(file) != 0) {
        perror(path);
        exit(2);
    }
}

static void save_log(const char *path, const node *nodes, unsigned count, uint64_t start_ns)
{
    FILE *file = create(path);
    unsigned i, k;
    size_t j;
    fputs("node,from_ns,to_ns,event,payload\n", file);
    for (i = 0; i < count; i++)
        for (j = 0; j < nodes[i].events; j++) {
            const entry *line = &nodes[i].log[j];
            fprintf(file, "%u,%" PRIu64 ",%" PRIu64 ",%u,", i, line->from_ns - start_ns,
                    line->to_ns - start_ns, line->bytes[0]);
            for (k = 1; k < line->length; k++)
                fprintf(file, "%02x", line->bytes[k]);
            fputc('\n', file);
        }
    if (ferror(file) || fclose(file) != 0) {
        perror(path);
        exit(2);
    }
}

/* Whether the strips, put together, are what one node alone computes. Leaves that in board. */
static int check(const node *nodes, unsigned count, unsigned char *board, unsigned size, unsigned generations)
{
    unsigned i;
    run_sequential(board, size, generations);
    for (i = 0; i < count; i++)
        if (memcmp(nodes[i].strip + size, board + (size_t)nodes[i].first_row * size,
                   (size_t)nodes[i].rows * size) != 0)
            return 0;
    return 1;
}

static unsigned number(const char *option, const char *text, unsigned long least, unsigned long most)
{
    char *end;
    const unsigned long value = strtoul(text, &end, 10);
    if (*text < '0' || *text > '9' || *end != '\0' || value < least || value > most)
        die("%s must be %lu..%lu, not '%s'", option, least, most, text);
    return (unsigned)value;
}

static const char usage[] =
    "usage: life [--nodes N] [--size S] [--generations G] [--seed K] [-o STIMULUS.csv] [--log LOG.csv]\n"
    "\n"
    "Conway's Life on N threads (16), an S x S torus (512) in strips, G generations (100).\n"
    "  -o FILE      every write of every port, as a stimulus for `hypermon sim` (life.csv)\n"
    "  --log FILE   the program's own record of its events\n";

int main(int argc, char **argv)
{
    unsigned nodes_count = 16, size = 512, generations = 100, seed = 1, i;
    const char *stimulus = "life.csv", *log = NULL;
    unsigned char *board;
    uint64_t start_ns, stop_ns;
    pthread_t threads[NODES_MAX];
    barrier gate;
    node *nodes;
    size_t events = 0, writes = 0, torn = 0;
    int equal, at;

    for (at = 1; at < argc; at++) {
        const char *option = argv[at];
        if (strcmp(option, "-h") == 0 || strcmp(option, "--help") == 0) {
            fputs(usage, stdout);
            return 0;
        }
        if (++at == argc)
            die("'%s' is no option, or lacks its value; --help tells the options", option);
        if (strcmp(option, "--nodes") == 0)
            nodes_count = number(option, argv[at], 1, NODES_MAX);
        else if (strcmp(option, "--size") == 0)
            size = number(option, argv[at], 1, SIZE_LARGEST);
        else if (strcmp(option, "--generations") == 0)
            generations = number(option, argv[at], 0, GENERATIONS_MAX);
        else if (strcmp(option, "--seed") == 0)
            seed = number(option, argv[at], 0, 0xffffffffu);
        else if (strcmp(option, "-o") == 0)
            stimulus = argv[at];
        else if (strcmp(option, "--log") == 0)
            log = argv[at];
        else
            die("'%s' is no option; --help tells the options", option);
    }
    if (size < nodes_count)
        die("--size must be at least --nodes = %u, not %u: a node needs a row", nodes_count, size);

    board = (unsigned char *)allocate(size, size);
    fill(board, (size_t)size * size, seed);
    pthread_mutex_init(&gate.lock, NULL);
    pthread_cond_init(&gate.opened, NULL);
    gate.nodes = nodes_count;
    gate.inside = gate.round = 0;
    nodes = (node *)allocate(nodes_count, sizeof *nodes);
    for (i = 0; i < nodes_count; i++)
        node_open(&nodes[i], nodes, nodes_count, i, &gate, board, size, generations);

    start_ns = hm_virtual_now();
    for (i = 0; i < nodes_count; i++)
        if (pthread_create(&threads[i], NULL, run_node, &nodes[i]) != 0)
            die("cannot start thread %u", i);
    for (i = 0; i < nodes_count; i++)
        pthread_join(threads[i], NULL);
    stop_ns = hm_virtual_now();

    for (i = 0; i < nodes_count; i++) {
        events += nodes[i].events;
        writes += nodes[i].port.count;
        torn += nodes[i].port.torn;
    }
    save_stimulus(stimulus, nodes, nodes_count, start_ns);
    if (log != NULL)
        save_log(log, nodes, nodes_count, start_ns);
    equal = check(nodes, nodes_count, board, size, generations);
    printf("%u nodes, %u x %u cells, %u generations in %.1f ms: the board is %s\n",
           nodes_count, size, size, generations, (double)(stop_ns - start_ns) / 1e6,
           equal ? "what one node alone computes" : "WRONG");
    printf("%lu events in %lu port writes; torn by the scheduler and written again: %lu\n",
           (unsigned long)events, (unsigned long)writes, (unsigned long)torn);

    for (i = 0; i < nodes_count; i++)
        node_close(&nodes[i]);
    pthread_cond_destroy(&gate.opened);
    pthread_mutex_destroy(&gate.lock);
    free(nodes);
    free(board);
    return equal ? 0 : 1;
}
