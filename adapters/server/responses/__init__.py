"""OpenAI's Responses, on the machinery of chats: requests become chats, and deltas items."""

from ffwd.adapters.server.responses.reading import ResponsesRequest as ResponsesRequest
from ffwd.adapters.server.responses.reading import read_responses as read_responses
from ffwd.adapters.server.responses.writing import ResponseEnvelope as ResponseEnvelope
