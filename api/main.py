"""``uvicorn api.main:app``: the gateway with its settings from the environment.

uvicorn's own protocol reads the connections then, which bounds neither the size nor the time of a
head: ``python -m api`` does.
"""

from fastapi import FastAPI

from api.app import create_app
from shared.logs import configure_logging
from shared.settings import load_settings


def make_app() -> FastAPI:
    settings = load_settings()
    configure_logging("gateway", settings.log_level, settings.log_format)
    return create_app(settings)


app = make_app()
