"""What workers need before they start, where no `up` sees to it: in containers, say."""

from cli.convert import convert
from cli.progress import byte_progress
from cli.pull import has_model, pull
from cli.tune.first import prepare_record
from shared.converted import weights_path
from shared.errors import UnknownModel
from shared.logs import say
from shared.models import KNOWN_MODELS, resolve_model
from shared.settings import Settings


def prepare(settings: Settings) -> None:
    """Fetches a known model and makes its copy in the weight format of the settings; measures, unless
    there is a record. What is no known model and not here is left to the workers, who tell of it."""
    known = KNOWN_MODELS.get(settings.model)
    if known and not has_model(known, settings.model_dir):
        pull(known, settings.model_dir)
    try:
        model = resolve_model(settings.model, settings.model_dir)
    except UnknownModel as error:
        say(f"nothing is prepared: {error.message}")
        return
    try:
        weights_path(model, settings.weight_format, settings.model_dir)
    except UnknownModel:
        with byte_progress(f"converting to {settings.weight_format}") as show:
            convert(model.path, settings.weight_format, settings.model_dir, progress=show)
    prepare_record(settings, model)
