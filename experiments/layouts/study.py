from experiments.frame.study import Study
from experiments.layouts import judging, measuring, plot

STUDY = Study(
    name="layouts",
    title="Layouts: one worker with all cores, or one for each",
    check=measuring.check,
    measure=measuring.measure,
    judge=judging.judge,
    tabulate=judging.tabulate,
    explain=judging.explain,
    draw=plot.draw,
    headline=judging.headline,
    repeated=("output_tokens_per_s",),
)
