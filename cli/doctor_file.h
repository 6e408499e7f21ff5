/* doctor_file: the one file that `assay doctor` leaves: a .tar.gz of what its steps wrote, without
 * what says who ran them. */
#pragma once

#include "harness/base/err.h"

/* Packs the files of a folder, and those of the folders below folder/tmp as reports/. The home folder
 * becomes ~, the folder itself TMP, and the user's name in paths USER. `path` is whole afterwards,
 * or as it was before. */
bool doctor_pack(const char *folder, const char *path, err *e);
