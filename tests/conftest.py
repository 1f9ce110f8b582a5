"""For all tests: no `up` and no worker of theirs measures the machine or uses what a user has found."""

import os

os.environ["MINI_VLLM_TUNE"] = "0"
