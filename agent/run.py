"""python -m agent.run : a model writes kernels, they are judged, and it refines what it wrote."""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from typer import Option

from agent.config import judging_options
from agent.config.command_line import serve

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command()
def run(
    context: typer.Context,
    strategy: Annotated[
        str | None,
        Option(
            "--strategy",
            metavar="refine|sample",
            help="refine: each prompt builds on earlier turns. sample: independent drafts. "
            "[refine]",
        ),
    ] = None,
    feedback: Annotated[
        str | None,
        Option(
            "--feedback",
            metavar="G+E+P|none",
            help="What a prompt of refine holds, any of G (the kernel), E (what execution said), "
            "P (what the profiler said: a summary, A and S), A (its advice), S (distance to the "
            "speed of light), R (raw metrics) joined by +. Controls: placebo:P, shuffled:P, also "
            "of A, S, R. [G+E+P]",
        ),
    ] = None,
    problems: Annotated[
        list[str] | None,
        Option(
            "--problem",
            metavar="ID|FILE",
            help="A problem's id, or a file in KernelBench's format; repeatable. [a demo set of "
            "three]",
        ),
    ] = None,
    levels: Annotated[
        list[str] | None,
        Option("--level", metavar="N", help="Only problems of this level; repeatable."),
    ] = None,
    filter: Annotated[
        str | None,
        Option("--filter", metavar="REGEX", help="Only problems whose id or category matches."),
    ] = None,
    limit: Annotated[
        str | None, Option("--limit", metavar="N", help="At most this many problems.")
    ] = None,
    suite: Annotated[
        str | None,
        Option(
            "--suite",
            metavar="DIR|hf:NAME",
            help="A folder of problems in KernelBench's format, or a data set of them: "
            "hf:NAME[@REVISION] on the Hugging Face Hub, hf:FOLDER or hf:FILE.parquet. [our own]",
        ),
    ] = None,
    model: Annotated[
        str | None,
        Option(
            "--model",
            "-m",
            metavar="PROVIDER/MODEL",
            help="LiteLLM's name of a model, replay/RUN or relay/FOLDER. [offline/tuner]",
        ),
    ] = None,
    model_args: Annotated[
        list[str] | None,
        Option(
            "--model-args",
            metavar="KEY=VALUE",
            help="An argument for the model: api_base, top_p, max_tokens, reasoning_effort, ...; "
            "repeatable.",
        ),
    ] = None,
    backend: Annotated[
        str | None,
        Option(
            "--backend",
            metavar="auto|cuda|triton|cpp",
            help="The language of the kernels. [auto: cuda on a GPU, cpp on a CPU]",
        ),
    ] = None,
    device: Annotated[
        str | None,
        Option(
            "--device",
            metavar="auto|cpu|cuda|cuda:N|cuda:N,M|all",
            help="Where kernels are judged; several GPUs must be of one kind. [auto: the first GPU "
            "if there is one]",
        ),
    ] = None,
    precision: Annotated[
        str | None,
        Option(
            "--precision",
            metavar="fp32|tf32|fp16|bf16",
            help="The arithmetic that the task asks for. [fp32]",
        ),
    ] = None,
    protocol: Annotated[
        str | None,
        Option(
            "--protocol",
            metavar="refinery|kernelbench|verified",
            help="Whose rules decide what is correct. [refinery]",
        ),
    ] = None,
    inputs: Annotated[
        str | None,
        Option(
            "--inputs",
            metavar="varied|recipe",
            help="Whether some calls get inputs of other scales and signs than the problem draws. "
            "[varied]",
        ),
    ] = None,
    hardware: Annotated[
        str | None,
        Option(
            "--hardware",
            metavar="NAME",
            help="The device that the prompt describes, when it is not the one at hand.",
        ),
    ] = None,
    examples: Annotated[
        str | None,
        Option(
            "--examples",
            metavar="none|one|few",
            help="Example kernels in the prompt: one (fused GELU) or few (also tiled matmul and "
            "online-softmax attention). [none]",
        ),
    ] = None,
    prompts: Annotated[
        str | None,
        Option(
            "--prompts",
            metavar="DIR",
            help="A folder with prompt templates of your own, in place of those of the same name.",
        ),
    ] = None,
    budget: Annotated[
        str | None,
        Option(
            "--budget",
            metavar="N",
            help="Billed completions per problem, the same for both strategies. [10]",
        ),
    ] = None,
    budget_usd: Annotated[
        str | None,
        Option(
            "--budget-usd",
            metavar="USD",
            help="Per problem: no further call once this much is spent.",
        ),
    ] = None,
    budget_tokens: Annotated[
        str | None,
        Option(
            "--budget-tokens",
            metavar="N",
            help="Per problem: no further call once this many tokens are billed.",
        ),
    ] = None,
    budget_seconds: Annotated[
        str | None,
        Option(
            "--budget-seconds",
            metavar="S",
            help="Per problem: no further call once this much wall time is spent.",
        ),
    ] = None,
    allow_unpriced: Annotated[
        bool | None,
        Option(
            "--allow-unpriced",
            help="Go on although the model's price is unknown and --budget-usd can't be kept.",
        ),
    ] = None,
    temperature: Annotated[
        str | None,
        Option("--temperature", metavar="T", help="Sampling temperature. [unset: the model's own]"),
    ] = None,
    seed: Annotated[str | None, Option("--seed", metavar="N", help="Seed of the run. [0]")] = None,
    start_from: Annotated[
        str | None, Option("--from", metavar="last|best", help="Which kernel is refined. [best]")
    ] = None,
    history: Annotated[
        str | None,
        Option(
            "--history", metavar="last|all", help="Which earlier turns a prompt tells of. [all]"
        ),
    ] = None,
    stop_early: Annotated[
        str | None,
        Option(
            "--stop-early",
            metavar="N",
            help="End a problem after N turns without a better kernel. [off]",
        ),
    ] = None,
    stop_near_sol: Annotated[
        str | None,
        Option(
            "--stop-near-sol",
            metavar="SHARE",
            help="End a problem once its best kernel reaches this share of the speed of light, "
            "e.g. 0.9. [off]",
        ),
    ] = None,
    confirm: Annotated[
        str | None,
        Option(
            "--confirm",
            metavar="N",
            help="Judge the best kernel once more from nothing when a problem ends; where it "
            "fails, the next best, N at most. 0: off. [3]",
        ),
    ] = None,
    baselines: Annotated[
        list[str] | None,
        Option(
            "--baseline",
            metavar="NAME",
            help="Measure a baseline beside eager: compile, max_autotune, cuda_graph, "
            "cudnn_benchmark, default_flags; repeatable.",
        ),
    ] = None,
    timing_seconds: Annotated[
        str | None,
        Option(
            "--timing-seconds", metavar="S", help="Longest time spent on timing one kernel. [2]"
        ),
    ] = None,
    keep_profiles: Annotated[
        bool | None,
        Option(
            "--keep-profiles",
            help="Keep the profiler's own report of each kernel in the run directory, under "
            "profiles/HASH: profile.ncu-rep for Nsight Compute, or trace.json.",
        ),
    ] = None,
    executor: judging_options.Executor = None,
    ray_address: judging_options.RayAddress = None,
    audit: judging_options.Audit = None,
    require: judging_options.Require = None,
    isolation: judging_options.Isolation = None,
    output: Annotated[
        str | None,
        Option(
            "--output",
            "-o",
            metavar="DIR",
            help="The run directory. [runs/NAME, the name made from the settings]",
        ),
    ] = None,
    workers: Annotated[
        str | None,
        Option(
            "--workers",
            "-w",
            metavar="N",
            help="Turns under way at a time. [1 on a CPU, up to 8 for each GPU]",
        ),
    ] = None,
    config: Annotated[
        list[str] | None,
        Option(
            "--config",
            "-c",
            metavar="FILE|KEY=VALUE",
            help="Settings from a YAML file, or a single one; repeatable. Options win over "
            "items, items over files.",
        ),
    ] = None,
    dry_run: Annotated[
        bool,
        Option(
            "--dry-run",
            help="Show the settings, the problems, the first prompt and the most it can cost; "
            "call nothing.",
        ),
    ] = False,
    check: Annotated[
        bool,
        Option(
            "--check",
            help="With --dry-run: have the judge set each problem up and call its reference.",
        ),
    ] = False,
    redo: Annotated[
        bool, Option("--redo", help="Start over: remove what the run directory holds.")
    ] = False,
    require_correct: Annotated[
        bool,
        Option("--require-correct", help="Exit with 1 when some problem has no correct kernel."),
    ] = False,
    as_json: Annotated[
        bool, Option("--json", help="One JSON object with the result on stdout.")
    ] = False,
    display: Annotated[
        str | None,
        Option(
            "--display",
            metavar="rich|plain|none",
            help="The live view, on stderr. [rich on a terminal, plain elsewhere]",
        ),
    ] = None,
    draw: Annotated[
        bool, Option("--draw", help="Print the state machine as Mermaid, and leave.")
    ] = False,
) -> None:
    """Make a model write kernels for PyTorch modules, judge them, and let it refine them.

    With no options: three problems, refine, G+E+P, offline/tuner, on the GPU if there is one, else
    on the CPU. The same command again goes on where it was interrupted, and shows a finished run;
    a larger --budget extends it.

    Exit codes: 0 completed; 1 with --require-correct, when some problem has no correct kernel; 2 a
    mistake in what was asked, or a failure of the machine or of the model's provider; 130
    interrupted.
    """
    # What is heavy is imported where it is needed, so that --help answers at once.
    if draw:
        from agent.loop.graph import draw as draw_graph

        typer.echo(draw_graph())
        return
    from agent.config.options import RunOptions, merge_layers
    from agent.config.settings_file import parse_assignments
    from agent.resolution import resolve

    if check and not dry_run:
        from problems.errors import UsageError

        raise UsageError("--check goes with --dry-run; a run checks each problem by itself")
    flags = {key: context.params.get(key) for key in RunOptions.model_fields}
    flags["model_args"] = parse_assignments(model_args or [], "--model-args")
    resolution = resolve(merge_layers(config or [], flags))
    if dry_run:
        from agent.dry_run import show_plan

        raise typer.Exit(show_plan(resolution, as_json=as_json, check=check))
    from agent.job import run_job
    from agent.view.display import view_mode
    from agent.view.summary import tell

    result = run_job(resolution, view_mode(display), redo=redo)
    raise typer.Exit(tell(result, resolution, as_json=as_json, require_correct=require_correct))


if __name__ == "__main__":
    sys.exit(serve(app, "python -m agent.run"))
