// What jobs call of <math.h>, for a GPU.
#pragma once

#define sqrt(x) __builtin_sqrt(x)
#define fabs(x) __builtin_fabs(x)
