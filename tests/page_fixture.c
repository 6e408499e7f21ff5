#include "page_fixture.h"

#include <string.h>

#include "command.h"

const char page_claims[] =
    FIXTURE_CLAIMS "norms,Two norms,about,2,,count,0,count,a layer,,any device,speed,norms,\n"
                   "quick,It is quick,about,100,,us,10,time,alone,,Apple M4,speed,it_us,\n"
                   "late,It is late,about,1,,us,10,time,alone,,Apple M4,later,it_us,\n";

bool page_put_soft(void) {
    return fixture_put("claims.csv", page_claims) &&
           fixture_put("r/soft/check.csv",
                       FIXTURE_SOFT CHECK_HEAD "a,alpha,8,normal,1,pass,8,0,0,0,0,0,0.5,0,0.25,0,\n"
                                               "a,alpha,9,normal,1,pass,8,0,0,0,0,0,2,0,0.75,0,\n"
                                               "b,beta,8,normal,1,pass,8,0,0,0,0,0,1,0,0.1,0,\n"
                                               "b,beta,9,normal,1,skip,0,0,0,0,nan,nan,nan,nan,nan,"
                                               "0,takes whole blocks\n") &&
           fixture_put("r/soft/validate.csv", FIXTURE_SOFT
                       "# passed: 12\n# failed: 0\n# canaries: 18 of 18 caught\n" VALIDATE_HEAD) &&
           fixture_put("r/soft/bench.csv",
                       FIXTURE_SOFT BENCH_HEAD BENCH_ROW("alpha", "2500000")
                           BENCH_ROW("beta", "1000") BENCH_ROW("gamma", "50000")) &&
           fixture_put("r/soft/bench.samples.csv", FIXTURE_SOFT "case,i\n") &&
           fixture_put("r/soft/speed.csv",
                       FIXTURE_SOFT FIXTURE_EXPERIMENT("speed",
                                                       "# metric: it_us = 7 us\n# metric: norms = "
                                                       "2 count\n") "variant,n,us\nslow,9,10."
                                                                    "5\nquick,10,9\nnone,100,\n") &&
           fixture_put("r/soft/speed.svg", CHART) && fixture_put("r/soft/speed-more.svg", CHART);
}

bool page_put_m4(void) {
    return fixture_put("r/m4/speed.csv", FIXTURE_M4 FIXTURE_EXPERIMENT(
                                             "speed", "# metric: it_us = 101 us\n") "a,b\n1,2\n");
}

int page_count(const char *text) {
    int count = 0;
    for (const char *p = command_get_output(); (p = strstr(p, text)); p += strlen(text))
        count++;
    return count;
}
