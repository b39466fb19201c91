/* For an RP2040 that runs out of its RAM, at 125 MHz: see main.c. */
#ifndef FREERTOS_CONFIG_H
#define FREERTOS_CONFIG_H

#include <stdint.h>

#define configCPU_CLOCK_HZ 125000000u
#define configTICK_RATE_HZ 1000u
#define configTICK_TYPE_WIDTH_IN_BITS TICK_TYPE_WIDTH_32_BITS
#define configUSE_PREEMPTION 1
#define configUSE_IDLE_HOOK 0
#define configUSE_TICK_HOOK 0
#define configMAX_PRIORITIES 5
#define configMINIMAL_STACK_SIZE 128
#define configTOTAL_HEAP_SIZE 32768
#define configMAX_TASK_NAME_LEN 12
#define configUSE_MUTEXES 1
#define configUSE_COUNTING_SEMAPHORES 1
#define configCHECK_HANDLER_INSTALLATION 0
#define configENABLE_MPU 0
#define configENABLE_TRUSTZONE 0
#define configSUPPORT_DYNAMIC_ALLOCATION 1
#define configSUPPORT_STATIC_ALLOCATION 0
#define configUSE_TRACE_FACILITY 1
#define configGENERATE_RUN_TIME_STATS 1
#define portCONFIGURE_TIMER_FOR_RUN_TIME_STATS()
#define portGET_RUN_TIME_COUNTER_VALUE() (*(volatile uint32_t *)0x40054028u)     /* TIMERAWL, in us */

#define INCLUDE_vTaskDelay 1
#define INCLUDE_vTaskDelete 1
#define INCLUDE_vTaskSuspend 1
#define INCLUDE_xTaskDelayUntil 1

#define vPortSVCHandler SVC_Handler
#define xPortPendSVHandler PendSV_Handler
#define xPortSysTickHandler SysTick_Handler

#ifndef PLAIN
#define HM_TARGET HM_TARGET_RP2040_SIO
#define HM_EDGES 2
#include "hypermon/freertos.h"
#endif

#endif
