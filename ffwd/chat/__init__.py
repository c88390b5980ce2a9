"""From a conversation to the token ids of a model's input, and the place where its answer starts.

    template = ChatTemplate.for_tokenizer(tokenizer)
    prompt = template.render(messages, tokenizer=tokenizer, add_generation_prompt=True)
    prompt.ids

For models without a template of their own there are named formats (`LLAMA3`, `CHATML`, …), and for
Mistral's `MistralFormat`:

    prompt = CHATML.render(messages, tokenizer=tokenizer)
    prompt = MistralFormat.for_tokenizer(tokenizer).render(messages, tokenizer=tokenizer)

A prompt consists of parts, text and control tokens; no text of a message ever becomes a control
token.
"""

from ffwd.chat.errors import ChatError as ChatError
from ffwd.chat.errors import ConversationError as ConversationError
from ffwd.chat.errors import FormatError as FormatError
from ffwd.chat.errors import InjectionError as InjectionError
from ffwd.chat.errors import MissingControlTokensError as MissingControlTokensError
from ffwd.chat.errors import MissingTemplateError as MissingTemplateError
from ffwd.chat.errors import PromptLengthError as PromptLengthError
from ffwd.chat.errors import TemplateError as TemplateError
from ffwd.chat.errors import TemplateLimitError as TemplateLimitError
from ffwd.chat.errors import TemplateRefusedError as TemplateRefusedError
from ffwd.chat.errors import TemplateSecurityError as TemplateSecurityError
from ffwd.chat.errors import TemplateSyntaxError as TemplateSyntaxError
from ffwd.chat.errors import ToolError as ToolError
from ffwd.chat.errors import UndefinedVariableError as UndefinedVariableError
from ffwd.chat.formats import ChatFormat as ChatFormat
from ffwd.chat.formats.named import ALPACA as ALPACA
from ffwd.chat.formats.named import CHATML as CHATML
from ffwd.chat.formats.named import CLAUDE as CLAUDE
from ffwd.chat.formats.named import CODE_LLAMA as CODE_LLAMA
from ffwd.chat.formats.named import CUSTOM as CUSTOM
from ffwd.chat.formats.named import FORMATS as FORMATS
from ffwd.chat.formats.named import GPT4 as GPT4
from ffwd.chat.formats.named import LLAMA2 as LLAMA2
from ffwd.chat.formats.named import LLAMA3 as LLAMA3
from ffwd.chat.formats.named import MISTRAL as MISTRAL
from ffwd.chat.formats.named import ORCA as ORCA
from ffwd.chat.formats.named import VICUNA as VICUNA
from ffwd.chat.formats.named import DetectedFormat as DetectedFormat
from ffwd.chat.formats.named import detect as detect
from ffwd.chat.formats.truncate import Truncated as Truncated
from ffwd.chat.limits import TemplateLimits as TemplateLimits
from ffwd.chat.messages import Message as Message
from ffwd.chat.mistral import MistralFormat as MistralFormat
from ffwd.chat.mistral.version import DetectedVersion as DetectedVersion
from ffwd.chat.mistral.version import MistralVersion as MistralVersion
from ffwd.chat.mistral.version import detect_version as detect_version
from ffwd.chat.mistral.version import version_of_file as version_of_file
from ffwd.chat.mistral.version import version_of_name as version_of_name
from ffwd.chat.prompt import ControlPart as ControlPart
from ffwd.chat.prompt import MessageSpan as MessageSpan
from ffwd.chat.prompt import Part as Part
from ffwd.chat.prompt import Prompt as Prompt
from ffwd.chat.prompt import PromptTokenizer as PromptTokenizer
from ffwd.chat.prompt import TextPart as TextPart
from ffwd.chat.prompt import ThinkingSection as ThinkingSection
from ffwd.chat.seam import Answer as Answer
from ffwd.chat.seam import EndTokenError as EndTokenError
from ffwd.chat.seam import PrefillError as PrefillError
from ffwd.chat.seam import Start as Start
from ffwd.chat.template import ChatTemplate as ChatTemplate
from ffwd.chat.template import TemplateTokenizer as TemplateTokenizer
from ffwd.chat.tools import function_schema as function_schema
