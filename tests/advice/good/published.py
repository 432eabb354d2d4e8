"""Labels of kernels that others published, of which nothing but task and hash is kept here.

They are CUDA-L1's for the H100, in the folder that `experiments.bench.cuda_l1` writes. From their
sources, all do their work by PyTorch's operations: some carry CUDA code, but load or call it in
ways that fail, and then go another way. Times in labels are the judge's, on an H200.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from evaluator.batch.kernel_name import KernelName
from evaluator.check import request_for
from evaluator.settings import Settings
from problems.loader import load_problem
from tests.advice.good.claim import Claim
from tests.advice.good.label import Label
from tests.advice.job import Job


@dataclass(frozen=True)
class Published:
    """One kernel of a folder."""

    task: str
    """`level_{level}_problem_{number}`, as its file begins."""
    sha256: str
    """Of the file's bytes. The label holds for no other text."""
    label: Label

    @property
    def name(self) -> str:
        """As results name it."""
        return f"published_{self.task}"


def published_jobs(kernels: Path, suite: Path, device: str, timing_seconds: float) -> list[Job]:
    """A job for each label.

    Raises `FileNotFoundError` where a kernel is missing, `ValueError` where it has another text.
    """
    settings = Settings(device=device, timing_seconds=timing_seconds, audit="never")
    jobs = []
    for kernel in PUBLISHED:
        path = kernels / f"{kernel.task}_sample_0_kernel.py"
        content = path.read_bytes()
        name = KernelName.of(path)
        if name is None or hashlib.sha256(content).hexdigest() != kernel.sha256:
            raise ValueError(f"{path} is not the kernel that the label was written for")
        problem = load_problem(f"{name.level}/{name.number}", suite)
        request = request_for(content.decode(), problem, settings)
        jobs.append(Job(kernel.name, "good", request))
    return jobs


_FORBIDDEN = frozenset({Claim.USE_TENSOR_CORES, Claim.LOWER_PRECISION, Claim.AVOID_FP64})
"""fp32 without tensor cores is the task, and there is no fp64 to avoid."""
_INSIDE = frozenset({
    Claim.COALESCE, Claim.WIDEN_ACCESSES, Claim.USE_SHARED_MEMORY, Claim.AVOID_BANK_CONFLICTS,
    Claim.TILE_IN_REGISTERS, Claim.USE_SHUFFLES, Claim.AVOID_SPILLS,
    Claim.FEWER_INDEX_INSTRUCTIONS, Claim.FEWER_BARRIERS, Claim.AVOID_DIVERGENCE,
    Claim.SHORTEN_DEPENDENCIES, Claim.AVOID_ATOMICS, Claim.USE_THE_LIBRARY,
})  # fmt: skip
"""No line of PyTorch's and the libraries' kernels is the writer's to change."""
_LIBRARY = _FORBIDDEN | _INSIDE
_ONE_PRODUCT = _LIBRARY | {
    Claim.LESS_ARITHMETIC, Claim.MOVE_FEWER_BYTES, Claim.MORE_CACHE_REUSE, Claim.LOWER_PIPE_USE,
    Claim.MORE_OCCUPANCY, Claim.MORE_LOADS_IN_FLIGHT, Claim.FUSE, Claim.FEWER_LAUNCHES,
    Claim.REPLAY_A_GRAPH, Claim.LEAVE_THE_LIBRARY, Claim.MORE_BLOCKS,
}  # fmt: skip
_SMALL_LINEAR = _LIBRARY | {Claim.LESS_ARITHMETIC, Claim.LOWER_PIPE_USE}
_NEXT_LINEAR = (
    "Have fewer kernels: one after the product for all that is pointwise, or all in the product's "
    "epilogue; or replay the launches as a CUDA graph."
)
_FEWER = (Claim.FUSE, Claim.FEWER_LAUNCHES, Claim.REPLAY_A_GRAPH)

PUBLISHED: tuple[Published, ...] = (
    Published(
        "level_1_problem_1",
        "92f9e2e386b28a59c0bfa12f5c9b258b1fab5fa9a792d9cc6d1bfc4b0ca006e5",
        Label(
            limited_by="cuBLAS's fp32 product of 2048 x 2048 matrices, bound by the fp32 pipe. A "
            "half-precision way is tried once and must not win where fp32 is asked for.",
            right_advice="Stop: the product is the whole task, and cuBLAS does it in one kernel.",
            must_not=_ONE_PRODUCT,
            should=(Claim.STOP,),
        ),
    ),
    Published(
        "level_1_problem_7",
        "7c78b0d9cda95202feecc521cdb3d0d91604db6532f655580f0fec29b0477efc",
        Label(
            limited_by="A product with a depth of 32 only: a result of 1 GiB is written, and 17 "
            "billion operations of fp32 are done, which is work of the same order. cuBLAS does "
            "it in one kernel and reuses the output's memory, yet reaches neither the memory's "
            "nor the fp32 pipe's rate by far (650 us on an H200).",
            right_advice="Write a kernel of one's own for this shape, which overlaps the stores of "
            "one tile with the products of another. Otherwise stop.",
            must_not=_ONE_PRODUCT
            - {
                Claim.LEAVE_THE_LIBRARY,
                Claim.USE_SHARED_MEMORY,
                Claim.TILE_IN_REGISTERS,
                Claim.WIDEN_ACCESSES,
                Claim.MORE_OCCUPANCY,
                Claim.MORE_LOADS_IN_FLIGHT,
            },
            should=(Claim.LEAVE_THE_LIBRARY, Claim.STOP),
        ),
    ),
    Published(
        "level_1_problem_13",
        "97a5edb4ae117eca7829501c958d5d4c266e0db7f1b337a0156ee49eeb074a98",
        Label(
            limited_by="cuBLAS's fp32 product of 4096 x 4096 matrices, bound by the fp32 pipe. "
            "That both are symmetric saves nothing: their product is not.",
            right_advice="Stop.",
            must_not=_ONE_PRODUCT,
            should=(Claim.STOP,),
        ),
    ),
    Published(
        "level_1_problem_15",
        "4f8067a93633a4254a75f66c73c7dc49f9379747a30b839c8b3ee508849db8e3",
        Label(
            limited_by="A product of lower triangular matrices by ten cuBLAS products of blocks of "
            "1024, which skip the blocks that are zero. The fp32 pipe is the limit. About 43 "
            "billion operations are done where 23 billion are needed, since blocks on the "
            "diagonal are whole; each result is copied into place, and the rest is zeroed first.",
            right_advice="Use smaller blocks near the diagonal to skip more zeros, and let the "
            "products write in place (out=). A kernel of one's own could do both in one launch.",
            must_not=_LIBRARY | {Claim.LOWER_PIPE_USE, Claim.MORE_OCCUPANCY},
            should=(Claim.LESS_ARITHMETIC, Claim.FEWER_LAUNCHES, Claim.MOVE_FEWER_BYTES),
        ),
    ),
    Published(
        "level_1_problem_17",
        "5d7a81fa2011b61ceccdb2364ffce94f65a72b2e07aa1d652e59319e334656cd",
        Label(
            limited_by="cuBLAS's fp32 product with a transposed operand (no copy is made of it), "
            "bound by the fp32 pipe. Half precision is tried once and must not win.",
            right_advice="Stop: one library kernel does the whole task.",
            must_not=_ONE_PRODUCT,
            should=(Claim.STOP,),
        ),
    ),
    Published(
        "level_1_problem_61",
        "38e62ba284503fba7b87087dd48785aeab49d5d637da8bb3846af7322f977bdf",
        Label(
            limited_by="A transposed 3D convolution turned into cuDNN's ordinary one, which is "
            "many times faster than its transposed one here. With three input channels the "
            "convolution is far from any rate of the device. Padding and change of layout are "
            "extra passes over the small input.",
            right_advice="Let the convolution pad (padding=2) instead of a pass of its own, try "
            "the default layout, then a direct kernel of one's own: three channels need only few "
            "operations a value, and the output's 161 MB set the bound.",
            must_not=_LIBRARY - {Claim.USE_SHARED_MEMORY, Claim.TILE_IN_REGISTERS}
            | {Claim.LOWER_PIPE_USE},
            should=(Claim.LEAVE_THE_LIBRARY, Claim.FEWER_LAUNCHES, Claim.FUSE),
        ),
    ),
    Published(
        "level_1_problem_69",
        "bff5454fa3c1fa51a5e376b06a5758a3f3b7fb45854a772e2b3f5dbf2c377769",
        Label(
            limited_by="One transposed 2D convolution by cuDNN, whose algorithms were tried out. "
            "It is small: 0.6 billion operations and some megabytes, so a few waves of blocks "
            "and the launch's latency matter.",
            right_advice="Stop, or try the ordinary convolution with flipped weights.",
            must_not=_LIBRARY | {Claim.FUSE, Claim.LOWER_PIPE_USE},
            should=(Claim.STOP,),
        ),
    ),
    Published(
        "level_1_problem_71",
        "d82989373dee969ad678af1e85549a25cea272390f2124b5d89f6aad21a5f035",
        Label(
            limited_by="A transposed 2D convolution of stride 1 as an ordinary one with flipped "
            "weights, which were prepared once. cuDNN's fp32 kernel does 20 billion operations "
            "(517 us on an H200, somewhat over half of the fp32 pipe's rate).",
            right_advice="Stop, or see whether another layout, Winograd or a direct kernel is "
            "faster here.",
            must_not=_LIBRARY | {Claim.FUSE, Claim.LOWER_PIPE_USE, Claim.MORE_BLOCKS},
            should=(Claim.STOP, Claim.LEAVE_THE_LIBRARY),
        ),
    ),
    Published(
        "level_1_problem_99",
        "a1751db801697edea48105a253b3f094de49a28a809b7370edd122cd0a8b30f3",
        Label(
            limited_by="Launches: some eight PyTorch kernels (differences, norms, clamp, mean) "
            "over 6 MB that stay in L2. Each runs for a few microseconds.",
            right_advice="Do it in one kernel, a block a row, or replay a CUDA graph. What happens "
            "inside the small kernels is of no weight.",
            must_not=_LIBRARY - {Claim.USE_THE_LIBRARY} | {Claim.LESS_ARITHMETIC},
            should=_FEWER,
        ),
    ),
    Published(
        "level_2_problem_1",
        "0584dacbef7ec0532989901816fe8edfd71e7304cad56857d18b3d490bd235cd",
        Label(
            limited_by="Latency: a small convolution by cuDNN, then a ReLU and an addition in "
            "place, replayed as a CUDA graph after a copy of the input.",
            right_advice="Do convolution, ReLU and bias in one kernel (three input channels are "
            "few), or at least ReLU and bias in one. The graph is there already.",
            must_not=_FORBIDDEN | {Claim.REPLAY_A_GRAPH, Claim.USE_THE_LIBRARY, Claim.AVOID_SPILLS},
            should=(Claim.FUSE, Claim.FEWER_LAUNCHES, Claim.LEAVE_THE_LIBRARY),
        ),
    ),
    Published(
        "level_2_problem_9",
        "a9b7f44462641f9a74442e75bf54923126f124ac526a6cedf64763426c0fd939",
        Label(
            limited_by="Launches: a product of 128 x 10 by 10 x 5 with its bias, and a ReLU in "
            "place. The scale and the shift were put into weights and bias beforehand.",
            right_advice="Do it in one kernel or replay a graph. Arithmetic and bytes are nothing.",
            must_not=_SMALL_LINEAR | {Claim.MOVE_FEWER_BYTES},
            should=_FEWER,
        ),
    ),
    Published(
        "level_2_problem_17",
        "1944dc2c3267f1723dabeb6a27d78a234897bb87bbb1d88df45165cf49590da5",
        Label(
            limited_by="Latency and launches: a small convolution by cuDNN, PyTorch's instance "
            "norm and a division in place, each a pass over 7 MB that stay in L2.",
            right_advice="Fuse norm and division (or all three) into one kernel; or a CUDA graph.",
            must_not=_FORBIDDEN | {Claim.USE_THE_LIBRARY, Claim.AVOID_SPILLS},
            should=_FEWER,
        ),
    ),
    Published(
        "level_2_problem_41",
        "33181f51285190ca38ccf265b7ba27b450db81e6f7aea30dc9872241f9f38405",
        Label(
            limited_by="Latency: product, batch norm, GELU, group norm, mean and ReLU, each a "
            "small kernel or several, replayed as a CUDA graph after a copy of the input.",
            right_advice="Fuse what follows the product: the kernels are small and many. The graph "
            "is there already.",
            must_not=_SMALL_LINEAR | {Claim.REPLAY_A_GRAPH},
            should=(Claim.FUSE, Claim.FEWER_LAUNCHES),
        ),
    ),
    Published(
        "level_2_problem_59",
        "6dfcaf9a98aa08b0b2b94a9369a134bd31438264edbfa625ee7340e9944163ef",
        Label(
            limited_by="Launches: a product with its bias in cuBLAS, then SiLU and a scale in "
            "place as two kernels over 256 KiB.",
            right_advice=_NEXT_LINEAR,
            must_not=_SMALL_LINEAR,
            should=_FEWER,
        ),
    ),
    Published(
        "level_2_problem_61",
        "41b0f01438bce584b83fbb6f0ab9f5e16554a35ae89fe7360b70ef1a1698262f",
        Label(
            limited_by="A transposed 3D convolution as an ordinary one by cuDNN, 23 billion fp32 "
            "operations, which takes most of the time. Padding before it, ReLU and group norm "
            "after it are passes over 27 MB or less.",
            right_advice="Let the convolution pad (padding=2), and fuse ReLU into the norm. What "
            "is left is cuDNN's convolution: another layout or algorithm of it may be faster.",
            must_not=_LIBRARY | {Claim.LOWER_PIPE_USE, Claim.REPLAY_A_GRAPH},
            should=(Claim.FUSE, Claim.FEWER_LAUNCHES, Claim.MOVE_FEWER_BYTES),
        ),
    ),
    Published(
        "level_2_problem_63",
        "4b2a1e8138d61d6664b6ace5eb698aac95a7aae7eaf7495e3838d294d8a77251",
        Label(
            limited_by="Launches: a product with its bias in cuBLAS and a ReLU in place. The "
            "division was put into weights and bias beforehand.",
            right_advice="Let the product's epilogue do the ReLU, or replay a graph. 512 x 128 "
            "outputs are few tiles for the device, so the product itself is bound by latency.",
            must_not=_SMALL_LINEAR,
            should=_FEWER,
        ),
    ),
    Published(
        "level_2_problem_69",
        "458de9fbeedfcce147a73e09e53331f52262b546acc4df7b248546cdbe60e5d1",
        Label(
            limited_by="Latency: a small convolution by cuDNN in the channels-last layout, and one "
            "fused pointwise kernel by TorchScript, replayed as a CUDA graph. Layouts are "
            "changed within it.",
            right_advice="Do it in one direct kernel (three input channels), or drop the changes "
            "of layout. The graph is there already.",
            must_not=_FORBIDDEN | {Claim.REPLAY_A_GRAPH, Claim.USE_THE_LIBRARY, Claim.AVOID_SPILLS},
            should=(Claim.FUSE, Claim.FEWER_LAUNCHES, Claim.LEAVE_THE_LIBRARY),
        ),
    ),
    Published(
        "level_2_problem_95",
        "7891eaa3d755793366508c36bf8c4a9c127b8bab7c97e29956e5367e11f6e491",
        Label(
            limited_by="Launches: a product with its bias in cuBLAS, then sigmoid, product, tanh, "
            "GELU and clamp as five kernels over 256 KiB, into buffers that are kept.",
            right_advice=_NEXT_LINEAR,
            must_not=_SMALL_LINEAR,
            should=_FEWER,
        ),
    ),
    Published(
        "level_3_problem_1",
        "2707e53ceb4430956b2e02b2ef7cd0af266d64f129d9e8186ab153587d266e2d",
        Label(
            limited_by="Launches and latency: three products of one row with matrices of 4.5 MB in "
            "all, and two ReLUs. Weights were transposed once; they stay in L2.",
            right_advice="Have fewer launches: ReLU in the epilogue, or a CUDA graph. A product of "
            "one row needs many blocks an output to load the weights fast.",
            must_not=_SMALL_LINEAR - {Claim.USE_SHUFFLES, Claim.USE_THE_LIBRARY}
            | {Claim.MOVE_FEWER_BYTES},
            should=(*_FEWER, Claim.MORE_BLOCKS),
        ),
    ),
)
