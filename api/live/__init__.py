"""The service as it is now and was in the last hour, for everybody who watches."""
