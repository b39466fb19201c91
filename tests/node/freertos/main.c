/* Priority inversion and its cure, by three tasks; at the end the program says what it has measured itself. */
#include "FreeRTOS.h"
#include "queue.h"
#include "semphr.h"
#include "task.h"

#define NOW() portGET_RUN_TIME_COUNTER_VALUE()

#ifdef PLAIN    /* without events, to see what they cost */
#define hm_put32(at, value) (void)(value)
#define hm_event(port, id, bytes, size) (void)(bytes)
#define OPEN(port)
#else
#ifdef MPS2
#define OPEN(port) hm_register_open(port)
#else
#define OPEN(port) hm_rp2040_open(port)
#endif
hm_port hm_freertos_port;
unsigned hm_freertos_queues;
#endif
static SemaphoreHandle_t mutex;
static QueueHandle_t queue;
static uint32_t held, worst, latest, soonest = ~0u, ticks;

void SVC_Handler(void);
void PendSV_Handler(void);
void SysTick_Handler(void);
static void tick(void);
#ifdef MPS2
void leave(void);
#endif
static void (*const vectors[16])(void) __attribute__((aligned(256))) = {
    [0] = (void (*)(void))0x20042000, [11] = SVC_Handler, [14] = PendSV_Handler, [15] = tick};

/* What the kernel needs of a C library, which is not here. */
void *memset(void *to, int value, size_t count)
{
    volatile unsigned char *at = to;
    while (count--)
        *at++ = (unsigned char)value;
    return to;
}

void *memcpy(void *to, const void *from, size_t count)
{
    volatile unsigned char *at = to;
    const unsigned char *of = from;
    while (count--)
        *at++ = *of++;
    return to;
}

/* How late the tick's handler begins, in clocks: its timer counts down from the reload value and on. */
static void tick(void)
{
    const volatile uint32_t *timer = (volatile uint32_t *)0xe000e010u;
    const uint32_t late = timer[1] - timer[2];
    latest = late > latest ? late : latest;
    soonest = late < soonest ? late : soonest;
    ticks++;
    SysTick_Handler();
}

static void work(uint32_t us)
{
    volatile uint32_t left = us * 10u;
    while (left)
        left--;
}

static void low(void *unused)
{
    (void)unused;
    for (;;) {
        uint32_t begin;
        xSemaphoreTake(mutex, portMAX_DELAY);
        begin = NOW();
        work(300);
        held += NOW() - begin;
        xSemaphoreGive(mutex);
        taskENTER_CRITICAL();   /* a tick that falls into it is late */
        work(60);
        taskEXIT_CRITICAL();
        work(40);
    }
}

static void middle(void *unused)
{
    uint8_t item = 0;
    (void)unused;
    for (;;) {
        work(200);
        xQueueSend(queue, &item, 0);
        vTaskDelay(2);
    }
}

static void high(void *unused)
{
    uint8_t item;
    (void)unused;
    for (;;) {
        uint32_t begin, waited;
        xQueueReceive(queue, &item, portMAX_DELAY);
        begin = NOW();
        xSemaphoreTake(mutex, portMAX_DELAY);
        waited = NOW() - begin;
        worst = waited > worst ? waited : worst;
        begin = NOW();
        work(50);
        held += NOW() - begin;
        xSemaphoreGive(mutex);
    }
}

static void reporter(void *unused)
{
    TaskStatus_t status[8];
    unsigned char bytes[5];
    UBaseType_t count, i;
    (void)unused;
    vTaskDelay(TICKS);
    count = uxTaskGetSystemState(status, 8, NULL);
    taskDISABLE_INTERRUPTS();
    for (i = 0; i < count; i++) {
        bytes[0] = (unsigned char)status[i].xTaskNumber;
        hm_put32(bytes + 1, status[i].ulRunTimeCounter);
        hm_event(&hm_freertos_port, 1, bytes, 5);
    }
    hm_put32(bytes, held);
    hm_event(&hm_freertos_port, 2, bytes, 4);
    hm_put32(bytes, worst);
    hm_event(&hm_freertos_port, 3, bytes, 4);
    hm_put32(bytes, latest);
    hm_event(&hm_freertos_port, 4, bytes, 4);
    hm_put32(bytes, soonest);
    hm_event(&hm_freertos_port, 5, bytes, 4);
    hm_put32(bytes, ticks);
    hm_event(&hm_freertos_port, 6, bytes, 4);
#ifdef MPS2
    leave();
#endif
    for (;;)
        __asm__ volatile ("wfi");
}

int main(void)
{
    *(volatile uint32_t *)0xe000ed08u = (uint32_t)(uintptr_t)vectors;
    OPEN(&hm_freertos_port);
    mutex = xSemaphoreCreateMutex();
    queue = xQueueCreate(4, 1);
    xTaskCreate(low, "low", 256, NULL, 1, NULL);
    xTaskCreate(middle, "middle", 256, NULL, 2, NULL);
    xTaskCreate(high, "high", 256, NULL, 3, NULL);
    xTaskCreate(reporter, "reporter", 256, NULL, 4, NULL);
    vTaskStartScheduler();
    return 1;
}
