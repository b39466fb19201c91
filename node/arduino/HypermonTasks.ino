/*
 * Two tasks of FreeRTOS, traced. It needs a FreeRTOS library, such as Arduino_FreeRTOS for AVR, whose FreeRTOSConfig.h
 * includes HypermonFreeRTOS.h: see there.
 */
#include <HypermonNode.h>
#include <Arduino_FreeRTOS.h>

static const uint8_t pins[HM_PINS] = { 2, 3, 4, 5, 6 };    // data 0 to 3, strobe

/* For the kernel's hooks. */
hm_port hm_freertos_port;
unsigned hm_freertos_queues;

static void blink(void *state)
{
    for (;;) {
        digitalWrite(LED_BUILTIN, state != NULL);
        vTaskDelay(10);
    }
}

void setup()
{
    static char on;
    pinMode(LED_BUILTIN, OUTPUT);
    hm_arduino_open(&hm_freertos_port, pins);    // before the first task
    xTaskCreate(blink, "on", 128, &on, 1, NULL);
    xTaskCreate(blink, "off", 128, NULL, 2, NULL);
    vTaskStartScheduler();
}

void loop() {}
