/*
 * Zephyr: what the kernel does, as events, by the hooks of CONFIG_TRACING_USER. The application sets, in prj.conf,
 *
 *     CONFIG_TRACING=y
 *     CONFIG_TRACING_USER=y
 *     CONFIG_HYPERMON_TRACING=y
 *     CONFIG_THREAD_NAME=y
 *
 * and has a header hypermon_port.h in its folder or in src, which chooses the port and opens it:
 *
 *     #define HM_TARGET HM_TARGET_RP2040_SIO
 *     #include "hypermon.h"
 *     #define HM_ZEPHYR_OPEN(port) hm_rp2040_open(port)
 *
 * Events before PRE_KERNEL_1 are dropped. The port is the variable hm_zephyr_port; with several cores, each has one of
 * its own: define HM_ZEPHYR_PORT as an expression for this core's hm_port *, which HM_ZEPHYR_OPEN() does not open.
 * The dictionary is zephyr.toml, beside hypermon.h. Threads and mutexes have as number bits 3 to 18 of their address:
 * none are mistaken for each other within 512 KiB of memory.
 */
#include <zephyr/init.h>
#include <zephyr/kernel.h>

#include "hypermon_port.h"

#ifndef HM_ZEPHYR_ID
#define HM_ZEPHYR_ID 0xa0u      /* the first of 13 event ids; change zephyr.toml as well */
#endif
#ifndef HM_ZEPHYR_PORT
#define HM_ZEPHYR_PORT (&hm_zephyr_port)
#endif

enum hm_zephyr_event {
    HM_ZEPHYR_IN = HM_ZEPHYR_ID,    /* thread */
    HM_ZEPHYR_OUT,                  /* thread */
    HM_ZEPHYR_THREAD,               /* thread, priority, name */
    HM_ZEPHYR_ABORTED,              /* thread */
    HM_ZEPHYR_READY,                /* thread */
    HM_ZEPHYR_PEND,                 /* thread */
    HM_ZEPHYR_SUSPENDED,            /* thread */
    HM_ZEPHYR_RESUMED,              /* thread */
    HM_ZEPHYR_PRIORITY,             /* thread, priority */
    HM_ZEPHYR_ENTER,                /* interrupt */
    HM_ZEPHYR_EXIT,                 /* interrupt */
    HM_ZEPHYR_LOCK,                 /* mutex */
    HM_ZEPHYR_UNLOCK                /* mutex */
};

hm_port hm_zephyr_port;
static unsigned char hm_zephyr_is_open;

static int hm_zephyr_init(void)
{
    HM_ZEPHYR_OPEN(&hm_zephyr_port);
    hm_zephyr_is_open = 1;
    return 0;
}

SYS_INIT(hm_zephyr_init, PRE_KERNEL_1, 0);

static void hm_zephyr_write(unsigned id, const unsigned char *bytes, size_t length)
{
    if (hm_zephyr_is_open)
        hm_event(HM_ZEPHYR_PORT, id, bytes, length);
}

static void hm_zephyr_object(unsigned id, const void *object)
{
    unsigned char bytes[2];
    hm_put16(bytes, (unsigned)((uintptr_t)object >> 3) & 0xffffu);
    hm_zephyr_write(id, bytes, sizeof bytes);
}

static void hm_zephyr_thread(struct k_thread *thread)
{
    unsigned char bytes[HM_PAYLOAD_MAX];
    const char *name = k_thread_name_get(thread);
    size_t length = 3;
    hm_put16(bytes, (unsigned)((uintptr_t)thread >> 3) & 0xffffu);
    bytes[2] = (unsigned char)thread->base.prio;
    while (name != NULL && *name && length < sizeof bytes)
        bytes[length++] = (unsigned char)*name++;
    hm_zephyr_write(HM_ZEPHYR_THREAD, bytes, length);
}

/* Of the interrupt: on a Cortex-M the exception's number less 16, so that -1 (255) is the tick; elsewhere 0. */
static unsigned hm_zephyr_interrupt(void)
{
#if defined(CONFIG_CPU_CORTEX_M)
    uint32_t exception;
    __asm__ volatile ("mrs %0, ipsr" : "=r"(exception));
    return (exception - 16u) & 0xffu;
#else
    return 0;
#endif
}

static void hm_zephyr_byte(unsigned id, unsigned value)
{
    const unsigned char byte = (unsigned char)value;
    hm_zephyr_write(id, &byte, 1);
}

/* The hooks: weak functions of Zephyr's subsys/tracing/user, which these replace. */
void sys_trace_thread_switched_in_user(void) { hm_zephyr_object(HM_ZEPHYR_IN, k_sched_current_thread_query()); }
void sys_trace_thread_switched_out_user(void) { hm_zephyr_object(HM_ZEPHYR_OUT, k_sched_current_thread_query()); }
void sys_trace_thread_create_user(struct k_thread *thread) { hm_zephyr_thread(thread); }
void sys_trace_thread_name_set_user(struct k_thread *thread) { hm_zephyr_thread(thread); }
void sys_trace_thread_abort_user(struct k_thread *thread) { hm_zephyr_object(HM_ZEPHYR_ABORTED, thread); }
void sys_trace_thread_sched_ready_user(struct k_thread *thread) { hm_zephyr_object(HM_ZEPHYR_READY, thread); }
void sys_trace_thread_pend_user(struct k_thread *thread) { hm_zephyr_object(HM_ZEPHYR_PEND, thread); }
void sys_trace_thread_suspend_user(struct k_thread *thread) { hm_zephyr_object(HM_ZEPHYR_SUSPENDED, thread); }
void sys_trace_thread_resume_user(struct k_thread *thread) { hm_zephyr_object(HM_ZEPHYR_RESUMED, thread); }
void sys_trace_isr_enter_user(void) { hm_zephyr_byte(HM_ZEPHYR_ENTER, hm_zephyr_interrupt()); }
void sys_trace_isr_exit_user(void) { hm_zephyr_byte(HM_ZEPHYR_EXIT, hm_zephyr_interrupt()); }

void sys_trace_thread_priority_set_user(struct k_thread *thread, int prio)
{
    unsigned char bytes[3];
    hm_put16(bytes, (unsigned)((uintptr_t)thread >> 3) & 0xffffu);
    bytes[2] = (unsigned char)prio;
    hm_zephyr_write(HM_ZEPHYR_PRIORITY, bytes, sizeof bytes);
}

/* Only recent versions have hooks for mutexes; in others nothing calls these. */
void sys_trace_k_mutex_lock_exit_user(struct k_mutex *mutex, k_timeout_t timeout, int ret)
{
    (void)timeout;
    if (ret == 0)
        hm_zephyr_object(HM_ZEPHYR_LOCK, mutex);
}

void sys_trace_k_mutex_unlock_enter_user(struct k_mutex *mutex) { hm_zephyr_object(HM_ZEPHYR_UNLOCK, mutex); }
