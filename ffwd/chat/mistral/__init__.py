"""Mistral's prompts: the ids that mistral-common returns for a conversation."""

from ffwd.chat.mistral.format import MistralFormat as MistralFormat
