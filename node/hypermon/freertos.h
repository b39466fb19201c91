/*
 * FreeRTOS: what the kernel does, as events. Include it at the end of FreeRTOSConfig.h:
 *
 *     #define HM_TARGET HM_TARGET_RP2040_SIO      as in the rest of the program
 *     #include "hypermon/freertos.h"
 *
 * and define, in one C file, the port, which is opened before the scheduler starts:
 *
 *     hm_port hm_freertos_port;
 *     unsigned hm_freertos_queues;
 *
 * The dictionary is freertos.toml, beside hypermon.h. Tasks and queues (semaphores and mutexes are queues) have
 * numbers in the order of their creation; the events `task` and `queue` give their names and kinds. Numbers are a
 * byte: 255 at most.
 *
 * Needs FreeRTOS-Kernel 10 or later, and in FreeRTOSConfig.h: configUSE_TRACE_FACILITY 1. Interrupts of your own call
 * HM_FREERTOS_ISR_ENTER(number) and HM_FREERTOS_ISR_EXIT(number); that of the tick has number 0.
 *
 * With several cores, each has a port of its own: define HM_FREERTOS_PORT as an expression for this core's hm_port *.
 * It must be known where this is included, which portGET_CORE_ID() is not: get_core_num() with the Pico's SDK.
 * Macros: HM_FREERTOS_ID, the first of 15 event ids (0xc0); change freertos.toml as well. HM_FREERTOS_SELF, the number
 * of the running task, for kernels without pxCurrentTCB. HM_FREERTOS_ELSEWHERE: the three functions below are in a C
 * file of the program, and this header does not include hypermon.h.
 *
 * ESP-IDF's kernel differs: its component is node/esp_idf/hypermon_trace.
 */
#ifndef HYPERMON_FREERTOS_H
#define HYPERMON_FREERTOS_H

#if !defined(__ASSEMBLER__)

#if !defined(configUSE_TRACE_FACILITY) || configUSE_TRACE_FACILITY != 1
#error "hypermon/freertos.h needs configUSE_TRACE_FACILITY 1, which numbers tasks and queues"
#endif

#ifndef HM_FREERTOS_ID
#define HM_FREERTOS_ID 0xc0u
#endif
extern unsigned hm_freertos_queues;

enum hm_freertos_event {
    HM_FREERTOS_IN = HM_FREERTOS_ID,    /* task */
    HM_FREERTOS_OUT,                    /* task */
    HM_FREERTOS_TASK,                   /* task, priority, name */
    HM_FREERTOS_DELETED,                /* task */
    HM_FREERTOS_READY,                  /* task */
    HM_FREERTOS_DELAY,                  /* task */
    HM_FREERTOS_QUEUE,                  /* queue, kind */
    HM_FREERTOS_BLOCK,                  /* queue: the running task waits for it */
    HM_FREERTOS_SEND,                   /* queue: sent to, given, unlocked */
    HM_FREERTOS_RECEIVE,                /* queue: received from, taken, locked */
    HM_FREERTOS_PRIORITY,               /* task, priority: inherited, or its own again */
    HM_FREERTOS_ENTER,                  /* interrupt */
    HM_FREERTOS_EXIT,                   /* interrupt */
    HM_FREERTOS_LOCK,                   /* mutex */
    HM_FREERTOS_UNLOCK                  /* mutex */
};

#ifdef HM_FREERTOS_ELSEWHERE
#ifdef __cplusplus
extern "C" {
#endif
void hm_freertos_1(unsigned id, unsigned a);
void hm_freertos_2(unsigned id, unsigned a, unsigned b);
void hm_freertos_name(unsigned id, unsigned a, unsigned b, const char *name);
#ifdef __cplusplus
}
#endif
#else
#include "../hypermon.h"

#ifndef HM_FREERTOS_PORT
extern hm_port hm_freertos_port;
#define HM_FREERTOS_PORT (&hm_freertos_port)
#endif

static inline void hm_freertos_1(unsigned id, unsigned a)
{
    const unsigned char bytes[1] = {(unsigned char)a};
    hm_event(HM_FREERTOS_PORT, id, bytes, 1);
}

static inline void hm_freertos_2(unsigned id, unsigned a, unsigned b)
{
    const unsigned char bytes[2] = {(unsigned char)a, (unsigned char)b};
    hm_event(HM_FREERTOS_PORT, id, bytes, 2);
}

static inline void hm_freertos_name(unsigned id, unsigned a, unsigned b, const char *name)
{
    unsigned char bytes[HM_PAYLOAD_MAX];
    size_t length = 2;
    bytes[0] = (unsigned char)a;
    bytes[1] = (unsigned char)b;
    while (name != NULL && *name && length < sizeof bytes)
        bytes[length++] = (unsigned char)*name++;
    hm_event(HM_FREERTOS_PORT, id, bytes, length);
}
#endif

/* Types 1 and 4 of queue.h are mutexes. */
#define HM_FREERTOS_MUTEX(queue) ((queue)->ucQueueType == 1u || (queue)->ucQueueType == 4u)
#define HM_FREERTOS_NUMBER(task) ((unsigned)(task)->uxTCBNumber)
#ifndef HM_FREERTOS_SELF
#define HM_FREERTOS_SELF ((unsigned)pxCurrentTCB->uxTCBNumber)
#endif

#define traceTASK_SWITCHED_IN() hm_freertos_1(HM_FREERTOS_IN, HM_FREERTOS_SELF)
#define traceTASK_SWITCHED_OUT() hm_freertos_1(HM_FREERTOS_OUT, HM_FREERTOS_SELF)
#define traceTASK_CREATE(task)                                                                                 \
    hm_freertos_name(HM_FREERTOS_TASK, HM_FREERTOS_NUMBER(task), (unsigned)(task)->uxPriority, (task)->pcTaskName)
#define traceTASK_DELETE(task) hm_freertos_1(HM_FREERTOS_DELETED, HM_FREERTOS_NUMBER(task))
#define traceMOVED_TASK_TO_READY_STATE(task) hm_freertos_1(HM_FREERTOS_READY, HM_FREERTOS_NUMBER(task))
#define traceTASK_DELAY() hm_freertos_1(HM_FREERTOS_DELAY, HM_FREERTOS_SELF)
#define traceTASK_DELAY_UNTIL(wake) hm_freertos_1(HM_FREERTOS_DELAY, HM_FREERTOS_SELF)
#define traceTASK_PRIORITY_INHERIT(task, priority)                                                             \
    hm_freertos_2(HM_FREERTOS_PRIORITY, HM_FREERTOS_NUMBER(task), (unsigned)(priority))
#define traceTASK_PRIORITY_DISINHERIT(task, priority)                                                          \
    hm_freertos_2(HM_FREERTOS_PRIORITY, HM_FREERTOS_NUMBER(task), (unsigned)(priority))

#define traceQUEUE_CREATE(queue)                                                                               \
    do {                                                                                                       \
        (queue)->uxQueueNumber = ++hm_freertos_queues;                                                         \
        hm_freertos_2(HM_FREERTOS_QUEUE, (unsigned)(queue)->uxQueueNumber, (unsigned)(queue)->ucQueueType);    \
    } while (0)
#define traceQUEUE_SEND(queue)                                                                                 \
    hm_freertos_1(HM_FREERTOS_MUTEX(queue) ? HM_FREERTOS_UNLOCK : HM_FREERTOS_SEND, (unsigned)(queue)->uxQueueNumber)
#define traceQUEUE_SEND_FROM_ISR(queue) hm_freertos_1(HM_FREERTOS_SEND, (unsigned)(queue)->uxQueueNumber)
#define traceQUEUE_RECEIVE(queue)                                                                              \
    hm_freertos_1(HM_FREERTOS_MUTEX(queue) ? HM_FREERTOS_LOCK : HM_FREERTOS_RECEIVE, (unsigned)(queue)->uxQueueNumber)
#define traceQUEUE_RECEIVE_FROM_ISR(queue) hm_freertos_1(HM_FREERTOS_RECEIVE, (unsigned)(queue)->uxQueueNumber)
#define traceBLOCKING_ON_QUEUE_RECEIVE(queue) hm_freertos_1(HM_FREERTOS_BLOCK, (unsigned)(queue)->uxQueueNumber)
#define traceBLOCKING_ON_QUEUE_SEND(queue) hm_freertos_1(HM_FREERTOS_BLOCK, (unsigned)(queue)->uxQueueNumber)

#define HM_FREERTOS_ISR_ENTER(number) hm_freertos_1(HM_FREERTOS_ENTER, (number))
#define HM_FREERTOS_ISR_EXIT(number) hm_freertos_1(HM_FREERTOS_EXIT, (number))
#define traceISR_ENTER() HM_FREERTOS_ISR_ENTER(0)
#define traceISR_EXIT() HM_FREERTOS_ISR_EXIT(0)
#define traceISR_EXIT_TO_SCHEDULER() HM_FREERTOS_ISR_EXIT(0)

#endif

#endif /* HYPERMON_FREERTOS_H */
