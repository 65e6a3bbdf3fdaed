// The heap of a job that is compiled for a GPU by hand: by_hand/kernel.c has it.
#pragma once

#include <stddef.h>

static void* malloc(size_t size);
static void* calloc(size_t count, size_t size);
static void free(void* memory);
