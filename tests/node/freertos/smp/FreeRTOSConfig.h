/* Two cores, each with a port of its own; see portmacro.h. */
#ifndef FREERTOS_CONFIG_H
#define FREERTOS_CONFIG_H
#define configNUMBER_OF_CORES 2
#define configRUN_MULTIPLE_PRIORITIES 1
#define configUSE_CORE_AFFINITY 1
#define configUSE_PREEMPTION 1
#define configUSE_PASSIVE_IDLE_HOOK 0
#define configUSE_IDLE_HOOK 0
#define configUSE_TICK_HOOK 0
#define configTICK_RATE_HZ 1000
#define configTICK_TYPE_WIDTH_IN_BITS TICK_TYPE_WIDTH_32_BITS
#define configMAX_PRIORITIES 5
#define configMINIMAL_STACK_SIZE 128
#define configMAX_TASK_NAME_LEN 12
#define configUSE_MUTEXES 1
#define configUSE_PORT_OPTIMISED_TASK_SELECTION 0
#define configSUPPORT_DYNAMIC_ALLOCATION 1
#define configSUPPORT_STATIC_ALLOCATION 0
#define configUSE_TRACE_FACILITY 1
#define INCLUDE_vTaskDelay 1
#define INCLUDE_vTaskDelete 1
#define INCLUDE_vTaskSuspend 1
#define INCLUDE_xTaskGetCurrentTaskHandle 1

#include "hypermon.h"
extern hm_port ports[2];
long smp_core(void);                             /* portmacro.h is not known here */
#define HM_FREERTOS_PORT (&ports[smp_core()])
#include "hypermon/freertos.h"

#endif
