// In place of torch/extension.h: tensors and bindings.
#pragma once
#ifndef REFINERY_LEAN_BINDING
#include "binding.h"
#endif
#include "dispatch.h"
#include "parallel.h"
#include "tensor.h"

#include <torch/version.h>
