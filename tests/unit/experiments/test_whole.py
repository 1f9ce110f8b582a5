from experiments.kv_cache.study import STUDY as KV_CACHE
from experiments.options import Given
from experiments.threads.study import STUDY as THREADS
from experiments.whole import again


def test_one_of_all_is_made_again_as_it_was_made() -> None:
    given = Given("a b.gguf", True, 2, 1, None, None, True)
    told = "mini-vllm experiment kv-cache --quick --model 'a b.gguf' --rounds 2 --threads 1"
    assert again(given, KV_CACHE) == told
    assert again(given, THREADS) == told.replace("kv-cache", "threads").removesuffix(" --threads 1")
