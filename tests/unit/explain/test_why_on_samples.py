"""Quotes of real conversations, asked about as they stand, rewritten and misquoted: is the right producer found?

The conversations are samples that are not part of the repository; without them this is skipped. The right producer
is found by a plain search through the message list, which shares no code with ours.
"""

from __future__ import annotations

import json
import random
from itertools import islice

from reenact import Debugger, Tap
from support.examples import LONG
from support.sample_runs import present, tau_bench

RUNS, QUOTES = (200, 10) if LONG else (20, 5)


def texts_of(message):
    """What a message says, and the texts of the arguments in it."""
    uses = [json.loads(use["function"]["arguments"]) for use in message.get("tool_calls") or ()]
    return [message.get("content") or "", *(json.dumps(args, ensure_ascii=False) for args in uses)]


def record(path, messages):
    """Record a conversation as an agent would have had it; returns the step that brought each message."""
    tap, steps, step = Tap(path, redact=False), [0] * len(messages), 1
    sent = 0
    for at, message in enumerate(messages):
        if message["role"] != "assistant":
            continue
        call = tap.record_model_request({"model": "gpt-4o", "messages": messages[:at]}, "openai")
        step += 1
        steps[sent:at] = [step] * (at - sent)
        tap.record_model_response({"object": "chat.completion", "choices": [{"message": message}]}, call=call)
        step += 1
        steps[at], sent = step, at + 1
    tap.close()
    return steps, sent


def bounded(quote, text):
    at = text.find(quote)
    while at >= 0:
        before, after = text[at - 1 : at] if at else "", text[at + len(quote) : at + len(quote) + 1]
        if not (before.isalnum() and quote[0].isalnum()) and not (after.isalnum() and quote[-1].isalnum()):
            return True
        at = text.find(quote, at + 1)
    return False


def window(rng, text, least, most):
    words = text.split(" ")
    size = min(len(words), rng.randint(least, most))
    at = rng.randint(0, len(words) - size)
    return " ".join(words[at : at + size]).strip()


def rewritten(rng, quote):
    choice = rng.randrange(3)
    return (
        quote.upper()
        if choice == 0
        else "\n  ".join(quote.split())
        if choice == 1
        else json.dumps(quote)[1:-1]
    )


@present
def test_quotes_of_real_conversations_lead_to_who_said_them_first(tmp_path):
    rng = random.Random(13)
    counts = {kind: [0, 0] for kind in ("exact", "normalised", "fuzzy", "nowhere")}
    for number, sample in enumerate(islice(tau_bench(), RUNS)):
        messages = sample.messages
        steps, length = record(path := tmp_path / f"{number}.jsonl", messages)
        dbg = Debugger.load(path)
        texts = [texts_of(message) for message in messages[:length]]

        def first(quote):
            return next(
                (steps[n] for n, some in enumerate(texts) if any(bounded(quote, t) for t in some)), None
            )

        def count(kind, question, wanted):
            producer = dbg.why(question, is_text=True).producer
            counts[kind][0] += (producer and producer.step) == wanted
            counts[kind][1] += 1

        long_texts = [some[0] for some in texts if len(some[0].split(" ")) >= 10]
        longer = [text for text in long_texts if len(text.split(" ")) >= 45]
        vocabulary = sorted({word for text in long_texts for word in text.split()})
        for _ in range(QUOTES):
            quote = window(rng, rng.choice(long_texts), 4, 25)
            count("exact", quote, first(quote))
            count("normalised", rewritten(rng, quote), first(quote))
            source = window(rng, rng.choice(longer), 40, 60)
            words = source.split(" ")
            words[rng.randrange(len(words))] = "zebra"
            count("fuzzy", " ".join(words), first(source))
            count("nowhere", " ".join(rng.choice(vocabulary) for _ in range(rng.randint(8, 30))), None)
    shares = {kind: right / total for kind, (right, total) in counts.items()}
    print(counts)  # `pytest -s` shows the figures
    assert shares["exact"] >= 0.99 and shares["normalised"] >= 0.98 and shares["nowhere"] >= 0.99, counts
    assert shares["fuzzy"] >= 0.9, counts
