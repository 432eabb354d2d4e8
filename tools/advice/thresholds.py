"""Where a figure begins to mean something: the one table that all rules share."""

from __future__ import annotations

from dataclasses import dataclass

from tools.profiling.profile_facts import AT_THE_BOUND


@dataclass(frozen=True)
class Thresholds:
    """Shares are 0 to 1, `_pct` are 0 to 100 of a peak."""

    at_the_bound: float = AT_THE_BOUND
    library: float = 0.5
    """Share of the time in PyTorch's and libraries' kernels."""
    other_library: float = 0.1
    """The same without the library's products."""
    product_rate: float = 0.75
    """Of the rate measured on the device: a library's product that reaches it is left alone."""
    possible_rate: float = 1.2
    """A product cannot run faster than what was measured by more than this."""
    tile_registers: float = 96.0
    """A thread with fewer holds no tile of results."""
    near_product_rate: float = 0.8
    """From here on a product of the candidate's own has the tiles that it needs."""
    attainable: float = 0.94
    """Of what library calls reach: above, little is left to gain."""
    idle_device: float = 0.6
    """Below this share of busy time, launches and gaps matter more than the kernels."""
    bound_busy_pct: float = 75.0
    """Of its peak, what the busiest unit reaches at least in a kernel that is at a bound."""
    tiny_kernel_us: float = 5.0
    many_launches: int = 8
    extra_traffic: float = 1.5
    """Bytes moved over bytes that must move."""
    traffic_dram_pct: float = 40.0
    dram_pct: float = 65.0
    cache_pct: float = 75.0
    compute_pct: float = 65.0
    few_waves: float = 0.5
    """Of what the device holds at once. Persistent kernels fill one on purpose, or half of one."""
    occupancy_pct: float = 35.0
    occupancy_limit_pct: float = 50.0
    implied_bandwidth: float = 0.6
    """Share of the measured bandwidth that bytes over time amount to, without counters."""
    busy_threads: float = 0.65
    """Share of the threads that the work must be spread over."""
    threadable_us: float = 50.0
    """A call shorter than this does not repay waking other threads."""
    packed: float = 0.25
    """Share of packed among the floating-point instructions of inner loops."""
    system_share: float = 0.3
    """Share of the processor time spent on mapping memory, above which that counts."""
    intensity: float = 1.5
    """Operations for each byte (a transcendental one counts 20) above which arithmetic can limit
    vectorised code on all threads of a CPU."""
    least_gain: float = 0.05
    """Less is not worth a turn."""
    cause_share: float = 0.3
    """A cause explains a symptom when its gain is at least this share of the symptom's."""
    # launch
    launch_us: float = 2.0
    """Assumed: what a launch costs, with the gap before the next one. A kernel that does nothing
    takes about as long."""
    idle_us: float = 10.0
    """Idle time of a call with one launch only, above which the host is to blame."""
    effective_launches: float = 1.5
    """Launches of one size that the call amounts to: 1 for one that takes all the time."""
    fusion_traffic: float = 1.3
    """Bytes moved over bytes that must move, from which kernels of a chain are worth fusing."""
    unfused_gain: float = 0.5
    """Assumed: fusing saves half of what an operator costs by itself."""
    tail: float = 0.15
    small_block: float = 64.0
    sm_threads: float = 2048.0
    """Threads that an SM holds (compute capability 8.0, 9.0 and 10.0)."""
    uneven: float = 0.2
    occupancy_gap: float = 0.5
    """Achieved over possible occupancy below which work is unevenly spread."""
    busy_pct: float = 60.0
    """A unit that is busier than this needs no more blocks or warps."""
    # memory
    least_traffic: float = 1.1
    """Bytes moved over bytes that must move, below which none can be saved."""
    wide_bytes: float = 400.0
    """Bytes a request, from which threads load about 16 bytes each."""
    redundant_reads: float = 1.6
    """Bytes fetched into L1 over bytes of input that must be read."""
    cached_pass: float = 0.6
    """Assumed: a pass that L2 serves costs this share of one that DRAM serves."""
    matrix_intensity: float = 8.0
    """Operations of matrix products for each byte that must move, above which data is reused."""
    efficiency: float = 0.6
    """Share of each sector of 32 bytes that is used."""
    scattered_sectors: float = 3.9
    """Sectors a request; 4 where 32 threads load 4 neighbouring bytes each."""
    widest_sectors: float = 17.0
    """More than 16-byte accesses of a whole warp touch: scattered, whatever their width."""
    scalar_bytes: float = 136.0
    """Bytes a request of 32 threads with 4 bytes each, and a little for rounding."""
    streaming: float = 0.9
    """Share of each sector that is used where neighbours are read one after the other."""
    stream_sectors: float = 1.8
    """Sectors a request: 2 where 32 threads read 2 bytes each."""
    full_dram_pct: float = 85.0
    """Of its peak: wider accesses gain nothing above."""
    stream_dram_pct: float = 79.0
    """Of its peak: good streams that read and write came to 84 to 91 % on an H100, and to 79 to
    84 % on an H200, where PyTorch's own copies come to 89 %."""
    stream_waits: float = 0.25
    """Of the stalls, those on memory below which a stream waits for something else."""
    best_dram_pct: float = 93.0
    """Assumed: what the best streaming kernels reach of the peak."""
    memory_weight: float = 0.35
    """Share of the time that memory must cost before accesses are worth changing."""
    conflict_ways: float = 1.3
    shared_access_pct: float = 5.0
    """How busy loads and stores must keep shared memory: reductions over a block came to 3 % on an
    H200, tiles to 9 % and more."""
    local_share: float = 0.05
    """Local accesses among all requests to memory off the SM."""
    local_per_instruction: float = 0.01
    """Asynchronous copies are no requests: without any others, a few spills are all there is."""
    waiting_bytes: float = 24e3
    """Of loads that the warps of an SM wait for: kernels at 81 and 89 % of DRAM had that many on an
    H200. More in flight gain nothing."""
    # latency
    least_stall: float = 1.5
    """Warps stalled for an instruction issued; fewer do not show."""
    latency_busy_pct: float = 80.0
    """Where a unit is busier than this, waiting is not what costs the time."""
    stall_share: float = 0.2
    """Of the warps stalled for each instruction, by one reason."""
    memory_stall_share: float = 0.4
    # arithmetic
    tensor_used_pct: float = 3.0
    """Plain arithmetic reads up to 2 % where the chip has no finer counter."""
    tensor_enough_pct: float = 50.0
    tensor_flops_per_s: float = 1.2e14
    """A ceiling above this can only be reached by tensor cores: their types are allowed."""
    fp64_share: float = 0.01
    """Of arithmetic thread instructions."""
    fp64_used_pct: float = 1.0
    # CPU
    libm_gain: float = 0.6
    """Assumed: vectorised polynomials take 0.4 of the time of one call for each element."""
    simd_bits: float = 256.0


LIMITS = Thresholds()
