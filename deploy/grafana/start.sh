#!/bin/sh
# Grafana for docker-compose.yml: without a password it would take admin/admin.
set -eu
if [ -z "${GF_SECURITY_ADMIN_PASSWORD:-}" ]; then
    echo "error: GRAFANA_PASSWORD must be set (in .env): the password of Grafana's user admin" >&2
    exit 78
fi
exec /run.sh
