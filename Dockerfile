# Mini vLLM: gateway, workers and command line in one image.
#
#   docker build --tag mini-vllm .                                        for the CPU of this machine
#   docker build --tag mini-vllm --build-arg LLAMA_TARGET=x86-64-v3 .     for any with AVX2
#
# LLAMA_TARGET: native, x86-64-v3 or x86-64-v4 (deploy/docker/build-llama.sh says what they take).
# The image of the last stages must have the same Python at the same place as that of the builder.
ARG BASE_IMAGE=python:3.11-slim-bookworm
ARG RUNTIME_IMAGE=python:3.11-slim-bookworm

FROM ${BASE_IMAGE} AS builder
RUN apt-get update \
    && apt-get install --yes --no-install-recommends build-essential \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt/*
RUN python3 -m venv /opt/mini-vllm
ENV PATH=/opt/mini-vllm/bin:$PATH PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1
WORKDIR /src
# The compiler's 10 minutes come first, and again only when this package or the target changes.
COPY deploy/docker/split_lock.py deploy/docker/build-llama.sh deploy/docker/
COPY requirements.lock .
RUN python deploy/docker/split_lock.py requirements.lock native.txt rest.txt
ARG LLAMA_TARGET=native
RUN deploy/docker/build-llama.sh native.txt
RUN python -m pip install --no-cache-dir --no-deps --require-hashes --requirement rest.txt
COPY . .
RUN python -m pip install --no-cache-dir --no-deps . \
    && python deploy/docker/keep_only.py mini-vllm pip \
    # The wheel of llama-cpp-python has its libraries twice.
    && rm -rf /opt/mini-vllm/lib/python3*/site-packages/lib

FROM ${RUNTIME_IMAGE} AS runtime
# OpenMP and C++ at run time; tini reaps and passes signals on as process 1.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends libgomp1 libstdc++6 tini \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt/*
RUN groupadd --gid 10001 mini-vllm \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin mini-vllm \
    && install --directory --owner 10001 --group 10001 --mode 0700 /run/mini-vllm \
    && install --directory --owner 10001 --group 10001 --mode 0755 /models \
    && install --directory --owner 10001 --group 10001 --mode 0700 /files
COPY --from=builder /opt/mini-vllm /opt/mini-vllm
ENV PATH=/opt/mini-vllm/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    MINI_VLLM_HOST=0.0.0.0 \
    MINI_VLLM_HOST_DIR=/run/mini-vllm \
    MINI_VLLM_FILE_DIR=/files \
    MINI_VLLM_MODEL_DIR=/models
ARG LLAMA_TARGET=native
LABEL org.opencontainers.image.title="Mini vLLM" \
      org.opencontainers.image.description="A dependable LLM service on CPUs: gateway, queue, pinned llama.cpp workers" \
      org.opencontainers.image.licenses="MIT" \
      org.opencontainers.image.version="0.1.0" \
      mini-vllm.llama-target="${LLAMA_TARGET}"
USER 10001:10001
WORKDIR /tmp
ENTRYPOINT ["tini", "--"]

FROM runtime AS worker
CMD ["python", "-P", "-m", "worker"]
HEALTHCHECK --interval=15s --timeout=5s --start-period=60s CMD ["python", "-P", "-m", "cli.health", "worker"]

FROM runtime AS gateway
EXPOSE 8000
CMD ["python", "-P", "-m", "api"]
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s CMD ["python", "-P", "-m", "cli.health", "gateway"]
