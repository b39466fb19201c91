/*
 * The tasks of FreeRTOS as events. Write this line at the end of the FreeRTOSConfig.h of the library that brings the
 * kernel, above its last #endif, and set configUSE_TRACE_FACILITY to 1 there:
 *
 *     #include <HypermonFreeRTOS.h>
 *
 * The sketch defines the port: see the example HypermonTasks. The dictionary is extras/freertos.toml.
 */
#ifndef HYPERMON_FREERTOS_FOR_ARDUINO_H
#define HYPERMON_FREERTOS_FOR_ARDUINO_H

#include "HypermonNode.h"
#include "hypermon/freertos.h"

#endif /* HYPERMON_FREERTOS_FOR_ARDUINO_H */
