// In place of torch/extension.h: tensors and bindings.
#pragma once
#include "binding.h"
#include "dispatch.h"
#include "parallel.h"
#include "tensor.h"

#include <torch/version.h>
