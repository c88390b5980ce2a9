"""A small server with OpenAI's interface: structured output from a local model of transformers.

    app = create_app(load_model("path/of/a/model"), ServerOptions())

`ffwd serve MODEL` is the same from a shell. docs/server.md says what it answers.
"""

from ffwd.adapters.server.app import create_app as create_app
from ffwd.adapters.server.keys import ApiKey as ApiKey
from ffwd.adapters.server.keys import ApiKeysError as ApiKeysError
from ffwd.adapters.server.keys import read_api_keys as read_api_keys
from ffwd.adapters.server.loading import LoadedModel as LoadedModel
from ffwd.adapters.server.loading import load_model as load_model
from ffwd.adapters.server.options import ServerOptions as ServerOptions
from ffwd.adapters.server.running import run as run
from ffwd.adapters.shared.warming import WarmingError as WarmingError
