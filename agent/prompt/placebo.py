"""Words without content, in the frame and at the length of a section that has some.

They hold nothing about the kernel: no figure, no name, no bottleneck. So what a section is worth
beyond the advice to think about bottlenecks can be measured. Deterministic: the same section gives
the same words.
"""

from __future__ import annotations

import re
from itertools import cycle

from agent.prompt.section import Section

SENTENCES = (
    "The speed of a kernel is decided by its slowest part.",
    "Kernels on the same device can differ a great deal in speed.",
    "Every kernel is limited by something, and that is called its bottleneck.",
    "A kernel is either limited by moving data, by arithmetic, or by waiting.",
    "Once one bottleneck is removed, another one takes its place.",
    "It is worth thinking about where the time goes before anything is changed.",
    "Memory is slower than arithmetic on most devices of today.",
    "Data that is used again soon is best kept close to where it is used.",
    "The order in which data is read can matter as much as how much of it is read.",
    "Work should be spread evenly over all the units that can do it.",
    "A unit that waits does no work, and a unit that works need not wait.",
    "Parallel hardware needs enough independent work to be kept busy.",
    "Starting work has a cost of its own, whatever the work is.",
    "Small problems and large problems are often limited by different things.",
    "Synchronisation makes the fast wait for the slow.",
    "Some operations take longer than others that look alike.",
    "A simple program is easier to make fast than a complicated one.",
    "The fastest work is the work that is not done at all.",
    "Doing two things at once can be faster than doing one after the other.",
    "Resources on a chip are shared, and what one part takes another part lacks.",
    "Each choice in a kernel is a compromise between several aims.",
    "What helps one kernel may slow another one down.",
    "A change that makes no difference tells something as well.",
    "Consider how the parts of the computation depend on one another.",
    "Consider what could be combined, and what could be taken apart.",
    "Consider which values are needed more than once.",
    "Consider how the work is divided, and whether it could be divided otherwise.",
    "Consider what the hardware was built to do well.",
    "Compilers do much by themselves, but not everything.",
    "Regular patterns are handled better by hardware than irregular ones.",
    "Precision, speed and simplicity have to be balanced.",
    "Caches are small and fast; memories are large and slow.",
    "Registers are the fastest storage and the scarcest one.",
    "It often pays to look at the whole computation and not at one step alone.",
    "Improvements become harder to find the better a kernel already is.",
    "Performance is a property of program and machine together.",
    "Careful reasoning about cost is the beginning of every good kernel.",
    "There is usually more than one way to arrange a computation.",
    "Keep what works well, and change what does not.",
    "Think first; then change one thing at a time.",
    "Time is lost in many places.",
    "Every step has its cost.",
    "Measure, then think.",
)


def placebo(section: Section, number: int) -> Section:
    """A section with the heading and the frame of `section`, about as long, and without content.

    The frame is the line that names the turn and the key of the bottleneck, where there are such.
    `number`, of the turn, varies the sentences.
    """
    turn = re.search(r"^- turn: \d+$", section.text, re.MULTILINE)
    lines = ["- bottleneck: see below"] if section.text.startswith("- bottleneck: ") else []
    lines += [turn[0]] if turn else []
    begin = (sum(map(ord, section.title)) + number) % len(SENTENCES)
    room = len(section.text) - len("\n".join(lines))
    longest = max(map(_length, SENTENCES))
    turned = SENTENCES[begin:] + SENTENCES[:begin]
    sentences = cycle(turned)
    while room >= longest:
        lines.append(f"- {next(sentences)}")
        room -= len(f"\n{lines[-1]}")
    # The last one is whichever fits best, or none.
    last = min(turned, key=lambda sentence: abs(room - _length(sentence)))
    if abs(room - _length(last)) < room:
        lines.append(f"- {last}")
    return Section(section.title, "\n".join(lines))


def _length(sentence: str) -> int:
    return len(f"\n- {sentence}")
