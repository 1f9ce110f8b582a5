"""For all tests: no `up` and no worker of theirs measures the machine or uses what a user has found, and
Ctrl-C reaches what they start: a shell's background has it ignored, which children inherit."""

import os
import signal

os.environ["MINI_VLLM_TUNE"] = "0"
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
