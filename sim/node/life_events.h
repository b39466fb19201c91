/*
 * The events of life.c. life.toml tells hosts the same; a test holds the two together.
 * Numbers are little-endian.
 */
#ifndef LIFE_EVENTS_H
#define LIFE_EVENTS_H

enum life_event {
    LIFE_START = 0x01,          /* rows u16, first_row u16: the strip is filled */
    LIFE_SEND = 0x02,           /* peer u8, sequence u16: a border leaves for peer */
    LIFE_RECEIVE = 0x03,        /* peer u8, sequence u16: peer's border is here */
    LIFE_GENERATION = 0x04,     /* generation u16, alive u32: both borders are here, the next one begins */
    LIFE_BARRIER_ENTER = 0x05,  /* generation u16: computed, waits for the others */
    LIFE_BARRIER_LEAVE = 0x06,  /* generation u16: all have computed it */
    LIFE_STOP = 0x07            /* alive u32: the last generation is done */
};

#endif /* LIFE_EVENTS_H */
