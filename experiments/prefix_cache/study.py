from experiments.frame.study import Study
from experiments.prefix_cache import judging, measuring, plot

STUDY = Study(
    name="prefix-cache",
    title="The prefix cache: time to the first token of a prompt whose beginning is known",
    check=measuring.check,
    measure=measuring.measure,
    judge=judging.judge,
    tabulate=judging.tabulate,
    explain=judging.explain,
    draw=plot.draw,
    headline=judging.headline,
    repeated=("ttft_ms",),
)
