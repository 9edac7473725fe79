"""Tests of the reports, and the hand-made documents they read."""
