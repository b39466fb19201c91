/* What FreeRTOS-Kernel must know of a processor with two cores, to be compiled for it: nothing of it runs. */
#ifndef PORTMACRO_H
#define PORTMACRO_H
#include <stdint.h>
#include <stddef.h>
#define portCHAR char
#define portSTACK_TYPE uintptr_t
#define portBASE_TYPE long
typedef portSTACK_TYPE StackType_t;
typedef long BaseType_t;
typedef unsigned long UBaseType_t;
typedef uint32_t TickType_t;
#define portMAX_DELAY ((TickType_t)0xffffffff)
#define portTICK_TYPE_IS_ATOMIC 1
#define portSTACK_GROWTH (-1)
#define portTICK_PERIOD_MS 1
#define portBYTE_ALIGNMENT 8
#define portPOINTER_SIZE_TYPE uintptr_t
#define portTASK_FUNCTION_PROTO(f, p) void f(void *p)
#define portTASK_FUNCTION(f, p) void f(void *p)
BaseType_t smp_core(void);
extern void smp_nothing(void);
#define portGET_CORE_ID() smp_core()
#define portYIELD() smp_nothing()
#define portYIELD_CORE(core) ((void)(core))
#define portDISABLE_INTERRUPTS() smp_nothing()
#define portENABLE_INTERRUPTS() smp_nothing()
#define portSET_INTERRUPT_MASK() 0u
#define portCLEAR_INTERRUPT_MASK(x) ((void)(x))
#define portSET_INTERRUPT_MASK_FROM_ISR() 0u
#define portCLEAR_INTERRUPT_MASK_FROM_ISR(x) ((void)(x))
#define portENTER_CRITICAL() vTaskEnterCritical()
#define portEXIT_CRITICAL() vTaskExitCritical()
#define portENTER_CRITICAL_FROM_ISR() vTaskEnterCriticalFromISR()
#define portEXIT_CRITICAL_FROM_ISR(x) vTaskExitCriticalFromISR(x)
#define portGET_TASK_LOCK(...) smp_nothing()
#define portRELEASE_TASK_LOCK(...) smp_nothing()
#define portGET_ISR_LOCK(...) smp_nothing()
#define portRELEASE_ISR_LOCK(...) smp_nothing()
#define portASSERT_IF_IN_ISR() smp_nothing()
#define portCHECK_IF_IN_ISR() 0
#define portCRITICAL_NESTING_IN_TCB 1
#endif
