"""Logs of sessions: written by a process of their own, read also when damaged, replayed."""
