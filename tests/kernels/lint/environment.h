#pragma once
#ifdef __NVPTX__
#define ON_NVIDIA
#endif
#ifdef __x86_\
64__
#endif
