/* The README's ten minutes, followed word by word: transcripts/readme.txt. $B is the folder of this build. */
#include <greatest.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/os.h"
#include "transcript.h"

SUITE_EXTERN(readme_suite);

SUITE(readme_suite) {
    char path[1024] = "/";
    os_find_self(path, sizeof path, NULL);
    *strrchr(path, '/') = 0;
    setenv("B", path, 1);
    transcript_run("readme");
}
