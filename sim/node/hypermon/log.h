/*
 * Long messages and log lines; include it after hypermon.h.
 *
 *     hm_text(&port, "ready", 5);                        text of any length up to 65535 bytes
 *     hm_long(&port, MY_RECORD, bytes, 200);             an event whose payload is longer than 14 bytes
 *     HM_LOG(&port, "sensor %u: %d mV", number, value);  the format string never leaves the program file
 *
 * A payload of up to 14 bytes is one event. A longer one is written in pieces, events with the id HM_PIECE_ID,
 * which the host joins. Each piece has a byte that numbers it, and the first has 3 bytes more: the message's
 * id and its length. A message of L bytes so takes 1 + ceil((L - 10) / 13) events. With 4 data bits and
 * HM_EDGES 2, an event of n bytes takes 3 + 2n port writes: 31 for each full piece, 2.4 a byte.
 *
 * HM_LOG() writes one event of id HM_LOG_ID: 2 bytes for the string, and each value as 1 to 5 bytes (7 bits a
 * byte), so that "sensor 3: 120 mV" is 2 + 1 + 1 bytes, 11 port writes. Values are integers of 32 bits or less:
 * %d %i %u %x %X %o %c, with flags, width and precision. The strings are in a section of the ELF file,
 * hypermon_log; `hypermon dict FILE --elf PROGRAM` puts them into a dictionary. It needs GCC or Clang, and a
 * linker that knows __start_ symbols, as GNU ld, gold and lld do. A linker script may place the section where it
 * is not loaded.
 *
 * Interrupts may write messages of their own between the pieces of another. Macros: HM_TEXT_ID, HM_LOG_ID and
 * HM_PIECE_ID, the event ids, as the dictionary's table [logging] has them.
 */
#ifndef HYPERMON_LOG_H
#define HYPERMON_LOG_H

#ifndef HYPERMON_H
#error "include hypermon.h first"
#endif

#ifndef HM_TEXT_ID
#define HM_TEXT_ID 0xfbu
#endif
#ifndef HM_LOG_ID
#define HM_LOG_ID 0xfcu
#endif
#ifndef HM_PIECE_ID
#define HM_PIECE_ID 0xfdu
#endif

/* Bytes of a message in its first piece, and in the others. */
#define HM_PIECE_FIRST (HM_PAYLOAD_MAX - 4u)
#define HM_PIECE_MORE (HM_PAYLOAD_MAX - 1u)
#define HM_LONG_MAX 65535u

/*
 * An event of up to HM_LONG_MAX bytes of payload. Returns 0; -1, and nothing is written, if it is longer.
 *
 * A piece begins with a byte: bit 7 in the first one, bits 6..4 the message's number, bits 3..0 the piece's.
 */
static inline int hm_long(hm_port *port, unsigned id, const void *payload, size_t length)
{
    static unsigned char messages;
    const unsigned char *bytes = (const unsigned char *)payload;
    unsigned char piece[HM_PAYLOAD_MAX];
    unsigned number, count = 0;
    size_t at = 0;
    if (length <= HM_PAYLOAD_MAX)
        return hm_event(port, id, payload, length);
    if (length > HM_LONG_MAX)
        return -1;
    number = messages++ & 7u;
    while (at < length) {
        const size_t room = count ? HM_PIECE_MORE : HM_PIECE_FIRST;
        const size_t some = length - at < room ? length - at : room;
        size_t begin = 1, i;
        piece[0] = (unsigned char)((count ? 0u : 0x80u) | number << 4 | (count & 15u));
        if (!count) {
            piece[1] = (unsigned char)id;
            hm_put16(piece + 2, (unsigned)length);
            begin = 4;
        }
        for (i = 0; i < some; i++)
            piece[begin + i] = bytes[at + i];
        if (hm_event(port, HM_PIECE_ID, piece, begin + some))
            return -1;
        at += some;
        count++;
    }
    return 0;
}

/* Text, UTF-8; without an end mark. */
static inline int hm_text(hm_port *port, const char *text, size_t length)
{
    return hm_long(port, HM_TEXT_ID, text, length);
}

#if defined(__GNUC__)

extern const char __start_hypermon_log[];

/* Up to 12 values of a log line; see HM_LOG(). */
static inline int hm_log_write(hm_port *port, unsigned format, const uint32_t *values, size_t count)
{
    unsigned char bytes[2 + 5 * 12];
    size_t length = 2, i;
    hm_put16(bytes, format);
    for (i = 0; i < count; i++) {
        uint32_t value = values[i];
        for (; value > 127u; value >>= 7)
            bytes[length++] = (unsigned char)(value & 127u) | 128u;
        bytes[length++] = (unsigned char)value;
    }
    return hm_long(port, HM_LOG_ID, bytes, length);
}

/* Never called: with it, the compiler checks the values against the format. */
static inline void hm_log_check(const char *format, ...) __attribute__((format(printf, 1, 2)));
static inline void hm_log_check(const char *format, ...) { (void)format; }

#ifdef __cplusplus  /* where a list of uint32_t takes no int */
struct hm_log_value {
    uint32_t bits;
    template <typename type> hm_log_value(type value) : bits((uint32_t)value) {}
};
#define HM_LOG_BITS(values) (&(values)->bits)
#else
typedef uint32_t hm_log_value;
#define HM_LOG_BITS(values) (values)
#endif

#define HM_LOG(port, format, ...)                                                                              \
    do {                                                                                                       \
        static const char hm_format_[] __attribute__((section("hypermon_log"), used)) = format;                \
        _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Wsign-conversion\"")                 \
        const hm_log_value hm_values_[] = {0u, ##__VA_ARGS__};                                                 \
        _Pragma("GCC diagnostic pop")                                                                          \
        typedef char hm_at_most_12_values_[sizeof hm_values_ <= 13 * sizeof(uint32_t) ? 1 : -1]                \
            __attribute__((unused));                                                                           \
        if (0)                                                                                                 \
            hm_log_check(format, ##__VA_ARGS__);                                                               \
        hm_log_write((port), (unsigned)((uintptr_t)hm_format_ - (uintptr_t)__start_hypermon_log),              \
                     HM_LOG_BITS(hm_values_ + 1), sizeof hm_values_ / sizeof *hm_values_ - 1);                 \
    } while (0)

#endif

#endif /* HYPERMON_LOG_H */
