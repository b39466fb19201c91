/* For an RP2040 that runs out of its RAM, at 125 MHz; with MPS2, for QEMU's Cortex-M3 (tests/node/emulators/mps2.py). See main.c. */
#ifndef FREERTOS_CONFIG_H
#define FREERTOS_CONFIG_H

#include <stdint.h>

#ifdef MPS2
#define configCPU_CLOCK_HZ 25000000u            /* of its timer; an instruction takes 8 ns */
#define configKERNEL_INTERRUPT_PRIORITY 255
#define configMAX_SYSCALL_INTERRUPT_PRIORITY 32
#else
#define configCPU_CLOCK_HZ 125000000u
#endif
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
#ifdef MPS2
#define portGET_RUN_TIME_COUNTER_VALUE() (*(volatile uint32_t *)0x40028018u)     /* FPGAIO_COUNTER, in us */
#else
#define portGET_RUN_TIME_COUNTER_VALUE() (*(volatile uint32_t *)0x40054028u)     /* TIMERAWL, in us */
#endif

#define INCLUDE_vTaskDelay 1
#define INCLUDE_vTaskDelete 1
#define INCLUDE_vTaskSuspend 1
#define INCLUDE_xTaskDelayUntil 1

#define vPortSVCHandler SVC_Handler
#define xPortPendSVHandler PendSV_Handler
#define xPortSysTickHandler SysTick_Handler

#ifndef PLAIN
#define HM_EDGES 2
#ifdef MPS2
#define HM_TARGET HM_TARGET_REGISTER
#define HM_STYLE HM_STYLE_WHOLE
#define HM_ADDRESS 0x4002f004u                  /* its LEDs */
#define HM_CPU_HZ 125000000u
#else
#define HM_TARGET HM_TARGET_RP2040_SIO
#endif
#include "hypermon/freertos.h"
#endif

#endif
