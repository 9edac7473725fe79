"""Tests that prove a patch inside a real vLLM, generated from the head path."""
