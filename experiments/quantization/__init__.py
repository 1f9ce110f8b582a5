"""`mini-vllm experiment quantization`: formats of one model: size, memory, load time, speed, quality.

Expected: a format is a choice of kernels as much as of size. One sequence waits for memory, so that small
files win; many sequences and prompts compute, and there formats win whose weights are repacked for wide
instructions, or are floats that the CPU multiplies as they are. Upcasts keep the quality; what is quantized
again loses some.

Formats are made from the model's own file, as `mini-vllm model convert` makes and keeps them.
"""
