"""Mistral's prompts: the ids that mistral-common makes of a conversation."""

from ffwd.chat.mistral.format import MistralFormat as MistralFormat
