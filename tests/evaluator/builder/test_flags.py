import pytest

from evaluator.builder.flags import RefusedFlagError, device_flags, host_flags, link_flags


def test_usual_flags_pass_unchanged():
    flags = ["-O3", "-march=native", "-ffast-math", "-fopenmp", "-std=c++17", "-DN=4", "-Wall"]
    flags += ["-funroll-loops", "-fno-math-errno", "-mavx2", "-mfma", "-Wno-unused", "-g", "-w"]
    assert host_flags(flags) == tuple(flags)


def test_one_string_of_several_flags_is_split():
    assert host_flags(["-O3 -ffast-math"]) == ("-O3", "-ffast-math")


@pytest.mark.parametrize(
    "flag",
    [
        "-fplugin=/tmp/x.so",
        "-include/etc/passwd",
        "-I/root",
        "-Wl,-rpath,/tmp",
        "-Wa,-al=/tmp/x",
        "-Wp,-MD,/tmp/x",
        "@/etc/passwd",
        "-o/tmp/x",
        "-B/tmp",
        "-specs=/tmp/x",
        "/etc/passwd",
        "-save-temps",
        "-fdump-tree-all",
        "-imacros",
        "-wrapper",
        "-x",
        "-D_GLIBCXX_DEBUG",
        "-O3\n-fplugin=x",
    ],
)
def test_what_is_not_listed_is_refused_by_name(flag):
    with pytest.raises(RefusedFlagError, match=r"is not allowed"):
        host_flags([flag])


def test_device_flags_keep_options_and_give_up_architectures():
    flags = device_flags(
        [
            "-O3", "--use_fast_math", "-lineinfo", "-Xptxas", "-v,-O3", "--maxrregcount=64",
            "-gencode=arch=compute_80,code=sm_80", "-gencode", "arch=compute_90,code=sm_90",
            "-arch=sm_75", "--expt-relaxed-constexpr", "-Xcompiler", "-fopenmp", "-std=c++17",
            "-U__CUDA_NO_HALF_OPERATORS__", "--ptxas-options=-v",
        ]
    )  # fmt: skip
    assert flags == (
        "-O3", "--use_fast_math", "-lineinfo", "-Xptxas", "-v,-O3", "--maxrregcount=64",
        "--expt-relaxed-constexpr", "-Xcompiler", "-fopenmp", "-std=c++17",
        "-U__CUDA_NO_HALF_OPERATORS__", "-Xptxas", "-v",
    )  # fmt: skip


@pytest.mark.parametrize(
    "flags",
    [
        ["-Xcompiler", "-fplugin=x"],
        ["-Xcompiler=-B/tmp"],
        ["-Xptxas", "-optf=/etc/passwd"],
        ["-Xptxas=-o,/tmp/x"],
        ["-optf", "/etc/passwd"],
        ["--run"],
        ["-ccbin", "/tmp/evil"],
        ["-Xlinker", "x"],
        ["-maxrregcount", "/etc"],
        ["--keep"],
        ["-dc"],
    ],
)
def test_device_flags_that_reach_further_are_refused(flags):
    with pytest.raises(RefusedFlagError):
        device_flags(flags)


def test_link_flags(tmp_path):
    (tmp_path / "lib").mkdir()
    flags = ["-lcublas", "-fopenmp", f"-L{tmp_path}/lib"]
    assert link_flags(flags, [tmp_path]) == tuple(flags)
    for flag in ("-levil", "-L/", "/tmp/x.so", "-Wl,-rpath,/", "-l:x.so"):
        with pytest.raises(RefusedFlagError):
            link_flags([flag], [tmp_path])
