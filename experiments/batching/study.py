from experiments.batching import judging, measuring, plot
from experiments.frame.study import Study

STUDY = Study(
    name="batching",
    title="Batching: more sequences in a step",
    check=measuring.check,
    measure=measuring.measure,
    judge=judging.judge,
    tabulate=judging.tabulate,
    explain=judging.explain,
    draw=plot.draw,
    headline=judging.headline,
    repeated=("tokens_per_s",),
)
