#!/bin/sh
# Installs the pinned llama-cpp-python into the active Python, compiled for the CPUs that LLAMA_TARGET names.
#   native       this machine's CPU: fastest; dies with an illegal instruction on an older one
#   x86-64-v3    any with AVX2 (Haswell, 2013; Zen, 2017)
#   x86-64-v4    any with AVX-512 F, CD, BW, DQ and VL (Skylake-SP, 2017; Zen 4, 2022)
set -eu
lock=$1
# llama.cpp's names of instruction sets; those that are not listed follow from GGML_NATIVE=OFF.
v3="-DGGML_NATIVE=OFF -DGGML_SSE42=ON -DGGML_AVX=ON -DGGML_AVX2=ON -DGGML_FMA=ON -DGGML_F16C=ON -DGGML_BMI2=ON"
case "$LLAMA_TARGET" in
native) flags="-DGGML_NATIVE=ON" ;;
x86-64-v3) flags="$v3 -DGGML_AVX512=OFF" ;;
x86-64-v4) flags="$v3 -DGGML_AVX512=ON" ;;
*)
    echo "LLAMA_TARGET=$LLAMA_TARGET: must be native, x86-64-v3 or x86-64-v4" >&2
    exit 2
    ;;
esac
# With SOURCE_DATE_EPOCH set llama.cpp would leave AVX out whatever else is said.
unset SOURCE_DATE_EPOCH
CMAKE_ARGS="-DLLAVA_BUILD=OFF $flags" exec python -m pip install --no-cache-dir --no-deps --require-hashes \
    --no-binary llama-cpp-python --requirement "$lock"
