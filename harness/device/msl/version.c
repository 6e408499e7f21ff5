/* version: the versions of the language, and how they are spelled. */
#include "msl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const int msl_languages[MSL_LANGUAGES] = {300, 310, 320, 400};

void msl_spell_language(int language, char text[MSL_LANGUAGE_TEXT]) {
    snprintf(text, MSL_LANGUAGE_TEXT, "%d.%d", language / 100, language / 10 % 10);
}

bool msl_read_language(const char *text, int *language, err *e) {
    char known[MSL_LANGUAGE_TEXT];
    for (int i = 0; i < MSL_LANGUAGES; i++) {
        msl_spell_language(msl_languages[i], known);
        *language = msl_languages[i];
        if (strcmp(text, known) == 0)
            return true;
    }
    return err_set(e, EXIT_USAGE, "there is no language '%.40s' (valid: 3.0 3.1 3.2 4.0)", text);
}

bool msl_ask_language(int *language, err *e) {
    const char *text = getenv("ASSAY_LANGUAGE");
    return !text || !*text || msl_read_language(text, language, e);
}
