/* launch_fit: whether a launch fits the kernel that it is for. */
#pragma once

#include "launch.h"
#include "msl/msl.h"

/* Does the launch fit the signature? Each mistake is an error that names the kernel and the index:
 * unbound buffer, buffer bound but not in the signature, scalar of another size, threadgroup memory
 * missing or not asked for, a group larger than max_group_threads or not a size the kernel allows,
 * a zero grid or group. */
bool launch_check_fit(const launch *l, const msl_signature *s, uint32_t max_group_threads,
                      uint32_t max_threadgroup_bytes, err *e);
