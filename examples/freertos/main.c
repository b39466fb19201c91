/*
 * Two tasks and a queue: the producer sends ten numbers, the consumer ends the program after the last.
 * Its argument is the file of port writes. Each change of the strobe is one, so it is recorded by
 *
 *     hypermon sim FILE -o RUN --config extended --mode event --edge both
 */
#include <stdlib.h>

#include "FreeRTOS.h"
#include "queue.h"
#include "task.h"

enum { NUMBERS = 10 };

hm_port hm_freertos_port;
unsigned hm_freertos_queues;
static QueueHandle_t queue;

static void producer(void *unused)
{
    (void)unused;
    for (unsigned number = 1;; number++) {
        xQueueSend(queue, &number, portMAX_DELAY);
        vTaskDelay(2);
    }
}

static void consumer(void *unused)
{
    unsigned number = 0;
    (void)unused;
    while (number < NUMBERS)
        xQueueReceive(queue, &number, portMAX_DELAY);
    vTaskEndScheduler();
}

int main(int argc, char **argv)
{
    hm_port *ports = &hm_freertos_port;
    const uint64_t start = hm_virtual_now();
    FILE *out = argc == 2 ? fopen(argv[1], "w") : NULL;
    if (out == NULL || hm_virtual_open(&hm_freertos_port, 100000) != 0)     /* before the first task */
        return 1;
    queue = xQueueCreate(4, sizeof(unsigned));
    xTaskCreate(consumer, "consumer", configMINIMAL_STACK_SIZE, NULL, 3, NULL);
    xTaskCreate(producer, "producer", configMINIMAL_STACK_SIZE, NULL, 2, NULL);
    vTaskStartScheduler();
    return hm_virtual_save(out, &ports, 1, start) != 0 || fclose(out) != 0;
}
