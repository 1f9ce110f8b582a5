"""``uvicorn api.main:app``: the gateway with its settings from the environment."""

from fastapi import FastAPI

from api.app import create_app
from shared.settings import load_settings


def make_app() -> FastAPI:
    return create_app(load_settings())


app = make_app()
