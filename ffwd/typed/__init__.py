"""Python types as JSON Schemas, by pydantic. The only package of the core that imports pydantic.

`ffwd.schema_of` is what asks it; it is imported where a type is given.
"""

from ffwd.typed.adapter import Adapter as Adapter
from ffwd.typed.adapter import adapter_of as adapter_of
