"""A function for the programs of tests that call a model and are about something else: no library is imported for it."""

from __future__ import annotations

POST = """
import json, urllib.request

def post(url, body):
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)
"""
