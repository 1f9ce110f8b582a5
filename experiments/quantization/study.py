from experiments.frame.study import Study
from experiments.quantization import judging, measuring, plot

STUDY = Study(
    name="quantization",
    title="Formats of one model: size, speed, quality",
    check=measuring.check,
    measure=measuring.measure,
    judge=judging.judge,
    tabulate=judging.tabulate,
    explain=judging.explain,
    draw=plot.draw,
    headline=judging.headline,
    repeated=("prompt_tokens_per_s", "decode_1_tokens_per_s", "decode_16_tokens_per_s"),
)
