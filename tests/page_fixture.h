/* page_fixture: results of two devices and the page of them, for the suites of `assay report`. */
#ifndef ASSAY_TESTS_PAGE_FIXTURE_H
#define ASSAY_TESTS_PAGE_FIXTURE_H

#include <stdbool.h>

#include "results_fixture.h"

#define CHECK_HEAD                                                                                 \
    "op,kernel,shape,input,seed,verdict,elements,bad,nonfinite,unwritten,max_abs,max_rel,max_ulp," \
    "nmse,margin,worst,message\n"
#define VALIDATE_HEAD                                                                              \
    "case,class,file,line,thread,group,buffer,label,element,outside_by,bytes,count,text\n"
#define BENCH_HEAD                                                                                 \
    "case,device,api,model,op,kernel,variant,format,shape,batch,input,math,regime,cache,n,gpu_ns," \
    "gpu_q1_ns,gpu_q3_ns,gpu_min_ns,gpu_p95_ns,gpu_mean_ns,gpu_mad_ns,encode_ns,wall_ns,"          \
    "wall_q1_ns,wall_q3_ns,repeats,copies,bytes,flops,gb_s,gflop_s,roof_gb_s,pct_roof,launch_ns,"  \
    "submit_ns,stop,labels,kernel_hash,samples,message\n"
#define BENCH_ROW(name, median)                                                                    \
    name ",software Metal device,soft,,op," name ",,,64x64,,normal,safe,chained,warm,9," median    \
         ",900,1100,1,1,1,1,1,1,"                                                                  \
         "1,1,1,1,1,1,12.5,1,20,62.5,1,1,steady,emulated,abc,bench.samples.csv,\n"
#define CHART                                                                                      \
    "<?xml version=\"1.0\"?>\n<svg width=\"400\" height=\"200\" viewBox=\"0 0 400 200\" "          \
    "xmlns=\"http://www.w3.org/2000/svg\" xmlns:xlink=\"http://www.w3.org/1999/xlink\">\n"         \
    "<defs><circle id='dot' r='3'/></defs><rect width=\"400\" height=\"200\" fill=\"white\"/>"     \
    "<use xlink:href='#dot' x='10' y='10'/><text x='20' y='20'>a &lt; b</text></svg>\n"

extern const char page_claims[];

bool page_put_soft(void); /* a software device with a file of every kind */
bool page_put_m4(void);

/* The page of $T/r, printed. */
#define DRAW "cd \"$T\" && \"$A\" report r --claims claims.csv --out r/report.html"
#define SHOW DRAW " > /dev/null && cat r/report.html"

/* How often that printed page has a text. */
int page_count(const char *text);

#endif
