"""The fleet as Prometheus and OpenMetrics have it: names, units and buckets in vLLM's terms."""
