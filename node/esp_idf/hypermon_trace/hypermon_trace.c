/*
 * ESP-IDF 6.0 or later: what the kernel does, as events; each core has a port of its own and is a node. The project has
 * a header hypermon_port.h in its folder or in main, which chooses the ports and opens that of a core:
 *
 *     #define HM_TARGET HM_TARGET_REGISTER
 *     ...
 *     #include "hypermon.h"
 *     #define HM_ESP_IDF_OPEN(port, core) ...
 *
 * A port is opened at the first event of its core, which is before app_main() and may be before the kernel starts:
 * HM_ESP_IDF_OPEN() may use registers and functions in ROM, and nothing of the kernel. Besides, sdkconfig has
 *
 *     CONFIG_ESP_TRACE_LIB_EXTERNAL=y
 *     CONFIG_FREERTOS_USE_TRACE_FACILITY=y
 *
 * The dictionary is freertos.toml. A task may run on either core; its number is the same on both.
 */
#include "freertos/FreeRTOS.h"
#include "esp_trace_port_encoder.h"
#include "esp_trace_registry.h"

#include "hypermon_port.h"

#ifndef HM_ESP_IDF_OPEN
#error "hypermon_port.h defines HM_ESP_IDF_OPEN(port, core): see hypermon_trace.c"
#endif

/* Interrupts within interrupts that have an end of their own; an ESP32 has seven levels. */
#define HM_ESP_IDF_NESTED 8u

static struct {
    hm_port port;
    unsigned char is_open;
    unsigned char depth;                        /* interrupts that have begun and not ended */
    unsigned char interrupts[HM_ESP_IDF_NESTED];
} hm_esp_idf_cores[CONFIG_FREERTOS_NUMBER_OF_CORES];

unsigned hm_freertos_queues;

/* With interrupts masked: otherwise the task could go on on the other core, and write to the port of this one. */
static void hm_esp_idf_write(unsigned id, const unsigned char *bytes, size_t length)
{
    const unsigned before = (unsigned)portSET_INTERRUPT_MASK_FROM_ISR();
    const unsigned core = HM_ESP_IDF_CORE;
    if (!hm_esp_idf_cores[core].is_open) {
        HM_ESP_IDF_OPEN(&hm_esp_idf_cores[core].port, core);
        hm_esp_idf_cores[core].is_open = 1;
    }
    hm_event(&hm_esp_idf_cores[core].port, id, bytes, length);
    portCLEAR_INTERRUPT_MASK_FROM_ISR(before);
}

void hm_freertos_1(unsigned id, unsigned a)
{
    const unsigned char byte = (unsigned char)a;
    hm_esp_idf_write(id, &byte, 1);
}

void hm_freertos_2(unsigned id, unsigned a, unsigned b)
{
    const unsigned char bytes[2] = {(unsigned char)a, (unsigned char)b};
    hm_esp_idf_write(id, bytes, sizeof bytes);
}

void hm_freertos_name(unsigned id, unsigned a, unsigned b, const char *name)
{
    unsigned char bytes[HM_PAYLOAD_MAX];
    size_t length = 2;
    bytes[0] = (unsigned char)a;
    bytes[1] = (unsigned char)b;
    while (name != NULL && *name && length < sizeof bytes)
        bytes[length++] = (unsigned char)*name++;
    hm_esp_idf_write(id, bytes, length);
}

void hm_esp_idf_enter(unsigned interrupt)
{
    const unsigned before = (unsigned)portSET_INTERRUPT_MASK_FROM_ISR();
    const unsigned core = HM_ESP_IDF_CORE;
    if (hm_esp_idf_cores[core].depth < HM_ESP_IDF_NESTED) {
        hm_esp_idf_cores[core].interrupts[hm_esp_idf_cores[core].depth++] = (unsigned char)interrupt;
        hm_freertos_1(HM_FREERTOS_ENTER, interrupt);
    }
    portCLEAR_INTERRUPT_MASK_FROM_ISR(before);
}

/*
 * The innermost one ends, or asks for a task switch, after which ESP-IDF reports no end. If it asks twice while it
 * interrupts another, the end of the other is early.
 */
void hm_esp_idf_exit(void)
{
    const unsigned before = (unsigned)portSET_INTERRUPT_MASK_FROM_ISR();
    const unsigned core = HM_ESP_IDF_CORE;
    if (hm_esp_idf_cores[core].depth != 0) {
        const unsigned interrupt = hm_esp_idf_cores[core].interrupts[--hm_esp_idf_cores[core].depth];
        hm_freertos_1(HM_FREERTOS_EXIT, interrupt);
    }
    portCLEAR_INTERRUPT_MASK_FROM_ISR(before);
}

/* Tasks are switched outside of interrupts: those that are still open have ended without a report. */
void hm_esp_idf_out(unsigned task)
{
    const unsigned before = (unsigned)portSET_INTERRUPT_MASK_FROM_ISR();
    while (hm_esp_idf_cores[HM_ESP_IDF_CORE].depth != 0)
        hm_esp_idf_exit();
    hm_freertos_1(HM_FREERTOS_OUT, task);
    portCLEAR_INTERRUPT_MASK_FROM_ISR(before);
}

/* ESP-IDF does not start without an encoder of this name. It has nothing to do. */
static esp_err_t hm_esp_idf_init(esp_trace_encoder_t *encoder, const void *settings)
{
    (void)encoder;
    (void)settings;
    return ESP_OK;
}

static const esp_trace_encoder_vtable_t hm_esp_idf_encoder = {.init = hm_esp_idf_init};
ESP_TRACE_REGISTER_ENCODER(CONFIG_ESP_TRACE_LIB_NAME, &hm_esp_idf_encoder);
