// A process that computes and does nothing else, for any mode: work SEED ROUNDS ends with what it
// computed.
#include <stdlib.h>

#include "work.h"

int main(int argc, char** argv) {
    if (argc != 3) return 200;
    return (int)work_compute((uint32_t)strtoul(argv[1], NULL, 10),
                             (uint32_t)strtoul(argv[2], NULL, 10));
}
