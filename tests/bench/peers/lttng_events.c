/* Records events by LTTng's user-space tracer: so many events of a node and a nibble; prints processor time. */
#define LTTNG_UST_TRACEPOINT_DEFINE
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#include "lttng_events.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int main(int argc, char **argv) {
  const long count = argc > 1 ? atol(argv[1]) : 1000000;
  struct timespec begin, end;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
  for (long i = 0; i < count; ++i) lttng_ust_tracepoint(hypermon, nibble, (int)(i & 15), (int)(i >> 4 & 15));
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
  printf("%.9f\n", (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec));
  return 0;
}
