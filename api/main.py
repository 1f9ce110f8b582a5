"""``uvicorn api.main:app``: the gateway with its settings from the environment.

uvicorn's own protocol reads the connections then, which bounds neither the size nor the time of a
head: ``python -m api`` does.
"""

from fastapi import FastAPI

from api.app import create_app
from shared.settings import load_settings


def make_app() -> FastAPI:
    return create_app(load_settings())


app = make_app()
