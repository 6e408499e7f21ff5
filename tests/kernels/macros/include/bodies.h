#pragma once
#define STORE_PAST(x, i, n) \
    { \
        x[i + n] = 2; \
    }
