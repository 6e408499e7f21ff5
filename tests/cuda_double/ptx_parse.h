/* ptx_parse: what the parts of the reader share. */
#ifndef ASSAY_CUDA_DOUBLE_PARSE_H
#define ASSAY_CUDA_DOUBLE_PARSE_H

#include "double.h"

typedef struct {
    char name[48];
    uint32_t index; /* register or instruction */
} label;

typedef struct {
    ptx_program *program;
    label *registers, *labels;
    size_t register_count, label_count;
    char *log;
    size_t log_size;
    uint32_t line;
    bool has_failed;
} parser;

/* Room for one more. */
void *ptx_grow(void *array, size_t count, size_t size);
/* The first failure is kept, with its line. */
void ptx_fail(parser *p, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ptx_names.c */
uint32_t ptx_find_register(parser *p, const char *name); /* made if it is new */
bool ptx_is_declared(const parser *p, const char *name);
void ptx_declare_registers(parser *p, char *text);
int ptx_find_symbol(const parser *p, const char *name); /* -1: there is none */
/* ".visible .const .align 4 .b8 name[24] = {...};" */
void ptx_read_variable(parser *p, char *text, ptx_space space);

#endif
