/*
 * A node at lines of a GPIO chip, for gpio_guest.py.
 *
 *     gpio_node CHIP FIRST say           events of every length at the lines from FIRST on
 *     gpio_node CHIP FIRST cost TIMES    what calls cost: a line for each, name and nanoseconds
 *
 * With READ_BACK, a folder, the lines' values are read and printed after each write, from where gpio-sim shows them.
 */
#define _POSIX_C_SOURCE 200809L
#include <fcntl.h>
#include <linux/gpio.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#ifdef READ_BACK
static int watched(int file, unsigned long what, void *argument);
#define ioctl(file, what, argument) watched(file, what, argument)
#endif

#include "hypermon.h"

#if HM_TARGET == HM_TARGET_LIBGPIOD
#define OPEN hm_libgpiod_open
#define CLOSE hm_libgpiod_close
#else
#define OPEN hm_gpiochip_open
#define CLOSE hm_gpiochip_close
#endif

static hm_port port;
static unsigned lines[HM_PINS];

#ifdef READ_BACK
#undef ioctl
static int watched(int file, unsigned long what, void *argument)
{
    const int done = ioctl(file, what, argument);
    unsigned i, value = 0;
    if (what != GPIO_V2_LINE_SET_VALUES_IOCTL)
        return done;
    for (i = 0; i < HM_PINS; i++) {
        char name[200], text = '?';
        int line;
        snprintf(name, sizeof name, "%s/sim_gpio%u/value", READ_BACK, lines[i]);
        line = open(name, O_RDONLY);
        if (line < 0 || read(line, &text, 1) != 1)
            exit(3);
        close(line);
        value |= (unsigned)(text == '1') << i;
    }
    printf("%u\n", value);
    return done;
}
#endif

static void say(void)
{
    unsigned char payload[HM_PAYLOAD_MAX];
    unsigned i, k;
    for (i = 0; i <= HM_PAYLOAD_MAX; i++) {
        for (k = 0; k < i; k++)
            payload[k] = (unsigned char)(17 * k + i);
        hm_event(&port, 0xf0 - i, i ? payload : NULL, i);
        hm_nibble(&port, 0);
    }
}

/* Half as many million instructions as this makes nanoseconds tell what a nanosecond is here. */
static void loop(unsigned i)
{
    unsigned left = 1000;
    (void)i;
#ifdef __x86_64__
    __asm__ volatile ("1: dec %0\n\tjnz 1b" : "+r"(left));
#endif
}

static void call(unsigned i)
{
    struct timespec now;
    (void)i;
    clock_getres(CLOCK_PROCESS_CPUTIME_ID, &now);
}

static void nibble(unsigned i) { hm_nibble(&port, i); }
static void event(unsigned i) { hm_event(&port, i & 255u, NULL, 0); }
static void event2(unsigned i) { unsigned char bytes[2]; hm_put16(bytes, i); hm_event(&port, 17, bytes, 2); }
static void word(unsigned i) { hm_word(&port, i); }

static double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return 1e9 * (double)now.tv_sec + (double)now.tv_nsec;
}

static void cost(unsigned times)
{
    static const struct { const char *name; void (*call)(unsigned i); } calls[] = {
        { "2000-instructions", loop }, { "system-call", call },
        { "nibble", nibble }, { "event", event }, { "event2", event2 }, { "word", word } };
    size_t way;
    unsigned i;
    for (way = 0; way < sizeof calls / sizeof *calls; way++) {
        double begin;
        calls[way].call(0);
        begin = now_ns();
        for (i = 0; i < times; i++)
            calls[way].call(i);
        printf("%s %.1f\n", calls[way].name, (now_ns() - begin) / times);
    }
}

int main(int argc, char **argv)
{
    unsigned i;
    if (argc < 4)
        return 2;
    for (i = 0; i < HM_PINS; i++)
        lines[i] = (unsigned)atoi(argv[2]) + i;
    if (OPEN(&port, argv[1], lines) != 0) {
        perror(argv[1]);
        return 1;
    }
    if (argc > 4)
        cost((unsigned)atoi(argv[4]));
    else
        say();
    CLOSE(&port);
    return port.failed != 0;
}
