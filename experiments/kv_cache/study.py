from experiments.frame.study import Study
from experiments.kv_cache import judging, measuring, plot

STUDY = Study(
    name="kv-cache",
    title="The KV cache: the same answer with it, and with everything recomputed for each token",
    check=measuring.check,
    measure=measuring.measure,
    judge=judging.judge,
    tabulate=judging.tabulate,
    explain=judging.explain,
    draw=plot.draw,
    headline=judging.headline,
    repeated=("total_s",),
)
