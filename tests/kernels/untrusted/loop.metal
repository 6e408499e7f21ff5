#include "loop.metal"
