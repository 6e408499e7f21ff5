// eight: an M1 has no vectors of eight: kernels/eight.h makes them of two.
#pragma once
