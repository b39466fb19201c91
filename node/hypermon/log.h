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
 * byte), 64-bit values as up to 10, so that "sensor 3: 120 mV" is 2 + 1 + 1 bytes, 11 port writes. Values are up to
 * 12 integers: %d %i %u %x %X %o %c, with flags, width, precision and size. The strings are in a section of the
 * ELF file, hypermon_log; `hypermon dict FILE --elf PROGRAM` puts them into a dictionary. It needs GCC or Clang,
 * C99 or C++11, and a linker that knows __start_ symbols, as GNU ld, gold and lld do. A linker script may place
 * the section where it is not loaded.
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

/* The values of a log line; see HM_LOG(). */
static inline int hm_log_write(hm_port *port, unsigned format, const uint64_t *values, size_t count)
{
    unsigned char bytes[2 + 10 * 12];
    size_t length = 2, i;
    hm_put16(bytes, format);
    for (i = 0; i < count; i++) {
        uint64_t value = values[i];
        for (; value > 127u; value >>= 7)
            bytes[length++] = (unsigned char)((unsigned char)(value & 127u) | 128u);
        bytes[length++] = (unsigned char)value;
    }
    return hm_long(port, HM_LOG_ID, bytes, length);
}

/* Never called: with it, the compiler checks the values against the format. */
static inline void hm_log_check(const char *format, ...) __attribute__((format(printf, 1, 2)));
static inline void hm_log_check(const char *format, ...) { (void)format; }

/* A value as it is written. One of 32 bits or less is not extended, so that -1 is 5 bytes. A bit-field has no size, but
 * what it is promoted to has. */
#define HM_LOG_VALUE_(value) (sizeof(+(value)) > 4 ? (uint64_t)(value) : (uint64_t)(uint32_t)(value))

#define HM_LOG_JOIN_(a, b) HM_LOG_JOIN2_(a, b)
#define HM_LOG_JOIN2_(a, b) a##b
/* For the number of values, from 0; `format` comes first, because ISO C keeps the comma before an empty list. */
#define HM_LOG_COUNT_(...) HM_LOG_COUNT2_(__VA_ARGS__, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 0)
#define HM_LOG_COUNT2_(format, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, count, ...) count
#define HM_LOG_VALUES_(...) HM_LOG_JOIN_(HM_LOG_VALUES_, HM_LOG_COUNT_(__VA_ARGS__))(__VA_ARGS__)
#define HM_LOG_VALUES_0(format)
#define HM_LOG_VALUES_1(format, v) , HM_LOG_VALUE_(v)
#define HM_LOG_VALUES_2(format, v, ...) , HM_LOG_VALUE_(v) HM_LOG_VALUES_1(format, __VA_ARGS__)
#define HM_LOG_VALUES_3(format, v, ...) , HM_LOG_VALUE_(v) HM_LOG_VALUES_2(format, __VA_ARGS__)
#define HM_LOG_VALUES_4(format, v, ...) , HM_LOG_VALUE_(v) HM_LOG_VALUES_3(format, __VA_ARGS__)
#define HM_LOG_VALUES_5(format, v, ...) , HM_LOG_VALUE_(v) HM_LOG_VALUES_4(format, __VA_ARGS__)
#define HM_LOG_VALUES_6(format, v, ...) , HM_LOG_VALUE_(v) HM_LOG_VALUES_5(format, __VA_ARGS__)
#define HM_LOG_VALUES_7(format, v, ...) , HM_LOG_VALUE_(v) HM_LOG_VALUES_6(format, __VA_ARGS__)
#define HM_LOG_VALUES_8(format, v, ...) , HM_LOG_VALUE_(v) HM_LOG_VALUES_7(format, __VA_ARGS__)
#define HM_LOG_VALUES_9(format, v, ...) , HM_LOG_VALUE_(v) HM_LOG_VALUES_8(format, __VA_ARGS__)
#define HM_LOG_VALUES_10(format, v, ...) , HM_LOG_VALUE_(v) HM_LOG_VALUES_9(format, __VA_ARGS__)
#define HM_LOG_VALUES_11(format, v, ...) , HM_LOG_VALUE_(v) HM_LOG_VALUES_10(format, __VA_ARGS__)
#define HM_LOG_VALUES_12(format, v, ...) , HM_LOG_VALUE_(v) HM_LOG_VALUES_11(format, __VA_ARGS__)
#define HM_LOG_VALUES_13(...) , hm_log_has_at_most_12_values

#ifndef __cplusplus

#define HM_LOG_STRING_(name, format)                                                                           \
    static const char hm_format_[] __attribute__((section("hypermon_log"), used, aligned(1))) = format

#else

/*
 * In C++, a static variable of an inline function or of a template cannot share a section with those of other
 * functions. The assembler therefore places the string; four of its bytes are an operand. A function that the
 * compiler writes several times, such as one that is inlined, has the string once. Link-time optimization may join
 * two source files in which different strings have the same name, which is an error.
 */
constexpr uint32_t hm_log_byte(const char *text, size_t length, size_t at)
{
    return at < length ? (uint32_t)(unsigned char)text[at] : 0u;
}
constexpr uint32_t hm_log_bytes(const char *text, size_t length, size_t at)
{
    return hm_log_byte(text, length, at) | hm_log_byte(text, length, at + 1) << 8
           | hm_log_byte(text, length, at + 2) << 16 | hm_log_byte(text, length, at + 3) << 24;
}
constexpr uint32_t hm_log_hash(const char *text, size_t length)
{
    return length ? (hm_log_hash(text, length - 1) ^ (uint32_t)(unsigned char)text[length - 1]) * 16777619u
                  : 2166136261u;
}
template <uint32_t number> struct hm_log_constant {
    enum : uint32_t { value = number };
};

#if __GNUC__ >= 9 && !defined(__clang__)
#define HM_LOG_ASM_ __asm__ __inline__ volatile  /* its many lines are no instructions */
#else
#define HM_LOG_ASM_ __asm__ volatile
#endif

#define HM_LOG_NUMBER_(number) "i"(hm_log_constant<(number)>::value)
#define HM_LOG_FOUR_(format, at) HM_LOG_NUMBER_(hm_log_bytes(format, sizeof(format), (at)))
/* An operand as a bare number. */
#if defined(__riscv)
#define HM_LOG_OPERAND_(number) "%" #number
#else
#define HM_LOG_OPERAND_(number) "%c" #number
#endif
#define HM_LOG_WORDS_(a, b, c, d, e, f, g)                                                                     \
    HM_LOG_OPERAND_(a) "," HM_LOG_OPERAND_(b) "," HM_LOG_OPERAND_(c) "," HM_LOG_OPERAND_(d) "," HM_LOG_OPERAND_(e) \
    "," HM_LOG_OPERAND_(f) "," HM_LOG_OPERAND_(g)
#define HM_LOG_BYTE_(shift)                                                                                    \
    ".if hm_log_at < " HM_LOG_OPERAND_(0) "\n.byte (\\word >> " #shift ") & 255\n.endif\n"                     \
    ".set hm_log_at, hm_log_at + 1\n"
/* At most 112 bytes of a string, from `from` on. */
#define HM_LOG_PART_(name, format, from)                                                                       \
    HM_LOG_ASM_(                                                                                               \
        ".pushsection hypermon_log,\"a\"\n.ifndef " #name "_" #from "\n" #name "_" #from ":\n"                 \
        ".set " #name "_" #from "_is, " HM_LOG_OPERAND_(29) "\n.if " HM_LOG_OPERAND_(0) " > 0\n.set hm_log_at, 0\n" \
        ".irp word, " HM_LOG_WORDS_(1, 2, 3, 4, 5, 6, 7) "," HM_LOG_WORDS_(8, 9, 10, 11, 12, 13, 14)           \
        "," HM_LOG_WORDS_(15, 16, 17, 18, 19, 20, 21) "," HM_LOG_WORDS_(22, 23, 24, 25, 26, 27, 28) "\n"       \
        HM_LOG_BYTE_(0) HM_LOG_BYTE_(8) HM_LOG_BYTE_(16) HM_LOG_BYTE_(24) ".endr\n.endif\n"                    \
        ".else\n.if " #name "_" #from "_is != " HM_LOG_OPERAND_(29) "\n"                                       \
        ".error \"HM_LOG: two strings have one name; compile without -flto\"\n.endif\n.endif\n.popsection\n"   \
        : : HM_LOG_NUMBER_(sizeof(format) > (from) ? sizeof(format) - (from) : 0),                             \
          HM_LOG_FOUR_(format, (from) + 0), HM_LOG_FOUR_(format, (from) + 4),                                  \
          HM_LOG_FOUR_(format, (from) + 8), HM_LOG_FOUR_(format, (from) + 12),                                 \
          HM_LOG_FOUR_(format, (from) + 16), HM_LOG_FOUR_(format, (from) + 20),                                \
          HM_LOG_FOUR_(format, (from) + 24), HM_LOG_FOUR_(format, (from) + 28),                                \
          HM_LOG_FOUR_(format, (from) + 32), HM_LOG_FOUR_(format, (from) + 36),                                \
          HM_LOG_FOUR_(format, (from) + 40), HM_LOG_FOUR_(format, (from) + 44),                                \
          HM_LOG_FOUR_(format, (from) + 48), HM_LOG_FOUR_(format, (from) + 52),                                \
          HM_LOG_FOUR_(format, (from) + 56), HM_LOG_FOUR_(format, (from) + 60),                                \
          HM_LOG_FOUR_(format, (from) + 64), HM_LOG_FOUR_(format, (from) + 68),                                \
          HM_LOG_FOUR_(format, (from) + 72), HM_LOG_FOUR_(format, (from) + 76),                                \
          HM_LOG_FOUR_(format, (from) + 80), HM_LOG_FOUR_(format, (from) + 84),                                \
          HM_LOG_FOUR_(format, (from) + 88), HM_LOG_FOUR_(format, (from) + 92),                                \
          HM_LOG_FOUR_(format, (from) + 96), HM_LOG_FOUR_(format, (from) + 100),                               \
          HM_LOG_FOUR_(format, (from) + 104), HM_LOG_FOUR_(format, (from) + 108),                              \
          HM_LOG_NUMBER_(hm_log_hash(format, sizeof(format))))
/*
 * The address of a string. Templates drop the assembler's name of a variable when they are instantiated: on other
 * processors they do not link.
 */
#if defined(__x86_64__)
#define HM_LOG_ADDRESS_(name, label, to) __asm__("leaq " label "(%%rip), %0" : "=r"(to))
#elif defined(__aarch64__)
#define HM_LOG_ADDRESS_(name, label, to) __asm__("adrp %0, " label "\nadd %0, %0, :lo12:" label : "=r"(to))
#elif defined(__arm__)
#define HM_LOG_ADDRESS_(name, label, to)                                                                       \
    __asm__("ldr %0, 0f\nb 1f\n.balign 4\n0: .word " label "\n1:" : "=l"(to))
#elif defined(__riscv)
#define HM_LOG_ADDRESS_(name, label, to) __asm__("la %0, " label : "=r"(to))
#elif defined(__AVR__)
#define HM_LOG_ADDRESS_(name, label, to) __asm__("ldi %A0, lo8(" label ")\nldi %B0, hi8(" label ")" : "=d"(to))
#elif defined(__XTENSA__)
#define HM_LOG_ADDRESS_(name, label, to) __asm__("movi %0, " label : "=r"(to))
#else
#define HM_LOG_ADDRESS_(name, label, to)                                                                       \
    extern const char name[] __asm__(label);                                                                   \
    to = name
#endif

#define HM_LOG_CPP_MAX 448
#define HM_LOG_STRING_(name, format)                                                                           \
    static_assert(sizeof(format) <= HM_LOG_CPP_MAX, "HM_LOG: the format string is too long");                  \
    HM_LOG_PART_(name, format, 0);                                                                             \
    HM_LOG_PART_(name, format, 112);                                                                           \
    HM_LOG_PART_(name, format, 224);                                                                           \
    HM_LOG_PART_(name, format, 336);                                                                           \
    const char *hm_format_;                                                                                    \
    HM_LOG_ADDRESS_(name, #name "_0", hm_format_)

#endif

#define HM_LOG(port, format, ...)                                                                              \
    HM_LOG_(HM_LOG_JOIN_(hm_log_string_, __COUNTER__), port, format, ##__VA_ARGS__)
#define HM_LOG_(name, port, format, ...)                                                                       \
    do {                                                                                                       \
        HM_LOG_STRING_(name, format);                                                                          \
        const uint64_t hm_values_[] = {0u HM_LOG_VALUES_(format, ##__VA_ARGS__)};                              \
        if (0)                                                                                                 \
            hm_log_check(format, ##__VA_ARGS__);                                                               \
        hm_log_write((port), (unsigned)((uintptr_t)hm_format_ - (uintptr_t)__start_hypermon_log),              \
                     hm_values_ + 1, sizeof hm_values_ / sizeof *hm_values_ - 1);                              \
    } while (0)

#endif

#endif /* HYPERMON_LOG_H */
