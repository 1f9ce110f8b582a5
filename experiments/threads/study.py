from experiments.frame.study import Study
from experiments.threads import judging, measuring, plot

STUDY = Study(
    name="threads",
    title="Threads: how fast one process is, at rest and beside a busy neighbour",
    check=measuring.check,
    measure=measuring.measure,
    judge=judging.judge,
    tabulate=judging.tabulate,
    explain=judging.explain,
    draw=plot.draw,
    headline=judging.headline,
    repeated=("decode_tokens_per_s", "prompt_tokens_per_s"),
)
