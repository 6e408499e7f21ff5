/* Tests of the command line on the double of Metal: transcripts/double.txt. */
#include <greatest.h>

#include "support.h"
#include "transcript.h"

SUITE_EXTERN(double_suite);

SUITE(double_suite) {
    if (support_is_double())
        transcript_run("double");
}
