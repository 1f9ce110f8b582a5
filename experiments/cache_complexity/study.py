from experiments.cache_complexity import judging, measuring, plot
from experiments.frame.study import Study

STUDY = Study(
    name="cache-complexity",
    title="What an answer costs by its length, with the KV cache and without",
    check=measuring.check,
    measure=measuring.measure,
    judge=judging.judge,
    tabulate=judging.tabulate,
    explain=judging.explain,
    draw=plot.draw,
    headline=judging.headline,
    repeated=("total_s",),
)
