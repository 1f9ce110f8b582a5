#!/bin/sh
# Prometheus for docker-compose.yml: the metrics key from the environment goes into a file that only it can read,
# in memory, since Prometheus takes none from the environment.
set -eu
case ${MINI_VLLM_METRICS_KEY:-} in
sha256:*)
    echo "error: MINI_VLLM_METRICS_KEY is a hash: Prometheus sends the key, so set the key itself" >&2
    exit 78
    ;;
esac
umask 077
printf %s "${MINI_VLLM_METRICS_KEY:-}" >/run/mini-vllm/metrics.key
unset MINI_VLLM_METRICS_KEY
exec prometheus --config.file="$(dirname "$0")/prometheus.yml" --storage.tsdb.path=/prometheus \
    --storage.tsdb.retention.time="${PROMETHEUS_RETENTION:?must be set}"
