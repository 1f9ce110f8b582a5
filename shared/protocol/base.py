"""The ground of all that crosses a process boundary: frozen models, and texts that can be encoded."""

from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

#: llama.cpp takes 0xFFFFFFFF for "draw a random seed", so it is not a seed.
MAX_SEED = 2**32 - 2


def _encodable(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("must be valid Unicode text, without lone surrogates") from None
    return text


def whole(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() else value


#: JSON has one kind of number: 64.0 is an integer in it, and some clients write it so.
Integer = Annotated[int, BeforeValidator(whole)]
# NOTE: bounds go before the validator: behind it, in a union, pydantic leaves them out of the schema.
Seed = Annotated[int, Field(ge=0, le=MAX_SEED), BeforeValidator(whole)]

Text = Annotated[str, AfterValidator(_encodable)]


class Frozen(BaseModel):
    # pydantic would keep the texts of 16,384 requests, prompts among them, to make them again faster.
    # Aliases are what is written in JSON: `schema` is a word that pydantic has taken.
    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        cache_strings="keys",
        serialize_by_alias=True,
        validate_by_name=True,
        validate_by_alias=True,
    )
