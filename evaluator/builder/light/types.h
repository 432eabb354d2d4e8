// In place of ATen/ATen.h, torch/types.h and their like: tensors without bindings.
#pragma once
#include "dispatch.h"
#include "parallel.h"
#include "tensor.h"
