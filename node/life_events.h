/*
 * The events of life.toml, made by `hypermon dict --c-header`. Change that, not this.
 *
 * life_NAME(port, ...) writes an event. Returns 0; or -1, if a text or bytes do not fit, and
 * nothing is written.
 * life_NAME_pack(payload, ...) only makes its payload, 14 bytes at most. Returns
 * their number, or -1.
 */
#ifndef LIFE_EVENTS_H
#define LIFE_EVENTS_H

#include "hypermon.h"

enum life_event {
    LIFE_START = 0x01,          /* rows u16, first_row u16: The strip is filled. */
    LIFE_SEND = 0x02,           /* peer u8, sequence u16: A border leaves for a peer. */
    LIFE_RECEIVE = 0x03,        /* peer u8, sequence u16: A peer's border is here. */
    LIFE_GENERATION = 0x04,     /* generation u16, alive u32: Both borders are here, the next generation begins. */
    LIFE_BARRIER_ENTER = 0x05,  /* generation u16: Computed, waits for the others. */
    LIFE_BARRIER_LEAVE = 0x06,  /* generation u16: All have computed it. */
    LIFE_STOP = 0x07            /* alive u32: The last generation is done. */
};

/* The strip is filled. */
static inline int life_start_pack(unsigned char *payload, uint16_t rows, uint16_t first_row)
{
    payload[0] = (unsigned char)((uint32_t)rows & 0xffu);
    payload[1] = (unsigned char)((uint32_t)rows >> 8 & 0xffu);
    payload[2] = (unsigned char)((uint32_t)first_row & 0xffu);
    payload[3] = (unsigned char)((uint32_t)first_row >> 8 & 0xffu);
    return 4;
}

static inline int life_start(hm_port *port, uint16_t rows, uint16_t first_row)
{
    unsigned char payload[HM_PAYLOAD_MAX];
    const int length = life_start_pack(payload, rows, first_row);
    return length < 0 ? -1 : hm_event(port, LIFE_START, payload, (size_t)length);
}

/* A border leaves for a peer. */
static inline int life_send_pack(unsigned char *payload, uint8_t peer, uint16_t sequence)
{
    payload[0] = (unsigned char)((uint32_t)peer & 0xffu);
    payload[1] = (unsigned char)((uint32_t)sequence & 0xffu);
    payload[2] = (unsigned char)((uint32_t)sequence >> 8 & 0xffu);
    return 3;
}

static inline int life_send(hm_port *port, uint8_t peer, uint16_t sequence)
{
    unsigned char payload[HM_PAYLOAD_MAX];
    const int length = life_send_pack(payload, peer, sequence);
    return length < 0 ? -1 : hm_event(port, LIFE_SEND, payload, (size_t)length);
}

/* A peer's border is here. */
static inline int life_receive_pack(unsigned char *payload, uint8_t peer, uint16_t sequence)
{
    payload[0] = (unsigned char)((uint32_t)peer & 0xffu);
    payload[1] = (unsigned char)((uint32_t)sequence & 0xffu);
    payload[2] = (unsigned char)((uint32_t)sequence >> 8 & 0xffu);
    return 3;
}

static inline int life_receive(hm_port *port, uint8_t peer, uint16_t sequence)
{
    unsigned char payload[HM_PAYLOAD_MAX];
    const int length = life_receive_pack(payload, peer, sequence);
    return length < 0 ? -1 : hm_event(port, LIFE_RECEIVE, payload, (size_t)length);
}

/* Both borders are here, the next generation begins. */
static inline int life_generation_pack(unsigned char *payload, uint16_t generation, uint32_t alive)
{
    payload[0] = (unsigned char)((uint32_t)generation & 0xffu);
    payload[1] = (unsigned char)((uint32_t)generation >> 8 & 0xffu);
    payload[2] = (unsigned char)((uint32_t)alive & 0xffu);
    payload[3] = (unsigned char)((uint32_t)alive >> 8 & 0xffu);
    payload[4] = (unsigned char)((uint32_t)alive >> 16 & 0xffu);
    payload[5] = (unsigned char)((uint32_t)alive >> 24 & 0xffu);
    return 6;
}

static inline int life_generation(hm_port *port, uint16_t generation, uint32_t alive)
{
    unsigned char payload[HM_PAYLOAD_MAX];
    const int length = life_generation_pack(payload, generation, alive);
    return length < 0 ? -1 : hm_event(port, LIFE_GENERATION, payload, (size_t)length);
}

/* Computed, waits for the others. */
static inline int life_barrier_enter_pack(unsigned char *payload, uint16_t generation)
{
    payload[0] = (unsigned char)((uint32_t)generation & 0xffu);
    payload[1] = (unsigned char)((uint32_t)generation >> 8 & 0xffu);
    return 2;
}

static inline int life_barrier_enter(hm_port *port, uint16_t generation)
{
    unsigned char payload[HM_PAYLOAD_MAX];
    const int length = life_barrier_enter_pack(payload, generation);
    return length < 0 ? -1 : hm_event(port, LIFE_BARRIER_ENTER, payload, (size_t)length);
}

/* All have computed it. */
static inline int life_barrier_leave_pack(unsigned char *payload, uint16_t generation)
{
    payload[0] = (unsigned char)((uint32_t)generation & 0xffu);
    payload[1] = (unsigned char)((uint32_t)generation >> 8 & 0xffu);
    return 2;
}

static inline int life_barrier_leave(hm_port *port, uint16_t generation)
{
    unsigned char payload[HM_PAYLOAD_MAX];
    const int length = life_barrier_leave_pack(payload, generation);
    return length < 0 ? -1 : hm_event(port, LIFE_BARRIER_LEAVE, payload, (size_t)length);
}

/* The last generation is done. */
static inline int life_stop_pack(unsigned char *payload, uint32_t alive)
{
    payload[0] = (unsigned char)((uint32_t)alive & 0xffu);
    payload[1] = (unsigned char)((uint32_t)alive >> 8 & 0xffu);
    payload[2] = (unsigned char)((uint32_t)alive >> 16 & 0xffu);
    payload[3] = (unsigned char)((uint32_t)alive >> 24 & 0xffu);
    return 4;
}

static inline int life_stop(hm_port *port, uint32_t alive)
{
    unsigned char payload[HM_PAYLOAD_MAX];
    const int length = life_stop_pack(payload, alive);
    return length < 0 ? -1 : hm_event(port, LIFE_STOP, payload, (size_t)length);
}

#endif /* LIFE_EVENTS_H */
