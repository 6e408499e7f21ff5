/* families: the list of architectures that can be run. */
#include <stdio.h>

#include "runner/llama/llama.h"
#include "runner/rwkv7/rwkv7.h"

static const model_family *const families[] = {&llama_family, &rwkv7_family};
enum { FAMILIES = sizeof families / sizeof *families };

const model_family *families_find(gguf_text name, err *e) {
    char text[40], known[64] = "";
    size_t used = 0;
    for (size_t i = 0; i < FAMILIES; i++) {
        if (gguf_text_equals(name, families[i]->name))
            return families[i];
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "",
                                 families[i]->name);
    }
    return err_null(e, EXIT_USAGE, "cannot run a model of the architecture '%s' (supported: %s)",
                    gguf_print_text(name, text, sizeof text), known);
}
