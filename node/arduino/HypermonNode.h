/* The node library for Arduino: hypermon.h with digitalWrite(), unless HM_TARGET is defined before. */
#ifndef HYPERMON_NODE_H
#define HYPERMON_NODE_H

#ifndef HM_TARGET
#define HM_TARGET HM_TARGET_ARDUINO
#endif

#include "hypermon.h"

#endif /* HYPERMON_NODE_H */
