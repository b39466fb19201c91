/*
 * ESP-IDF 6.0 or later: the kernel's trace macros, as events. With CONFIG_ESP_TRACE_LIB_EXTERNAL=y, FreeRTOSConfig.h of
 * ESP-IDF includes this header, and so does every source that includes FreeRTOS.h. It therefore includes neither
 * headers of the kernel nor hypermon.h: the functions are in hypermon_trace.c, which is in RAM.
 *
 * ESP-IDF's kernel differs from FreeRTOS-Kernel: each core has a current task, interrupts have numbers when they begin
 * and none when they end, and xQueueSemaphoreTake() and xQueueGiveFromISR() have macros of their own.
 */
#ifndef HYPERMON_ESP_TRACE_FREERTOS_IMPL_H
#define HYPERMON_ESP_TRACE_FREERTOS_IMPL_H

#include "sdkconfig.h"

#define HM_FREERTOS_ELSEWHERE
/* portGET_CORE_ID() is not an expression where there is one core. */
#if CONFIG_FREERTOS_NUMBER_OF_CORES > 1
#define HM_ESP_IDF_CORE ((unsigned)xPortGetCoreID())
#else
#define HM_ESP_IDF_CORE 0u
#endif
#if !CONFIG_FREERTOS_SMP
#define HM_FREERTOS_SELF ((unsigned)pxCurrentTCBs[HM_ESP_IDF_CORE]->uxTCBNumber)
#endif
#include "hypermon/freertos.h"

#ifdef __cplusplus
extern "C" {
#endif
void hm_esp_idf_enter(unsigned interrupt);
void hm_esp_idf_exit(void);
void hm_esp_idf_out(unsigned task);
#ifdef __cplusplus
}
#endif

#define traceQUEUE_SEMAPHORE_RECEIVE(queue) traceQUEUE_RECEIVE(queue)
#define traceQUEUE_GIVE_FROM_ISR(queue) traceQUEUE_SEND_FROM_ISR(queue)

#undef traceTASK_SWITCHED_OUT
#undef traceISR_ENTER
#undef traceISR_EXIT
#undef traceISR_EXIT_TO_SCHEDULER
#define traceTASK_SWITCHED_OUT() hm_esp_idf_out(HM_FREERTOS_SELF)
#define traceISR_ENTER(interrupt) hm_esp_idf_enter((unsigned)(interrupt))
#define traceISR_EXIT() hm_esp_idf_exit()
#define traceISR_EXIT_TO_SCHEDULER() hm_esp_idf_exit()

#endif /* HYPERMON_ESP_TRACE_FREERTOS_IMPL_H */
