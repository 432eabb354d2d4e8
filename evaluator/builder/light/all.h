// In place of torch/all.h and torch/torch.h.
#pragma once
#include "types.h"

#include <torch/version.h>
