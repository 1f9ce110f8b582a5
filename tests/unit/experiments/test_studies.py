"""What holds for every experiment."""

import pytest

from experiments.frame.samples import Samples
from experiments.frame.study import Study, TooLittle
from experiments.whole import STUDIES


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)
def test_of_one_that_was_interrupted_while_its_model_was_loading_nothing_is_said(
    study: Study,
) -> None:
    with pytest.raises(TooLittle):
        study.judge(Samples(), {})
