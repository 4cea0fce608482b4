# SPDX-License-Identifier: Apache-2.0
"""A child process that may hang, and what it says.

A kernel that waits for a barrier nobody arrives at never ends, and no call of the process that
launched it returns. So everything that launches runs in a child, which says what it begins and how
long that may take; a child that says nothing for longer is killed, and with it goes its kernel.

A message is a line "@@ " and JSON; other lines are passed on.

    {"begin": text, "limit": seconds}   what is under way from now on
    {"done": true}                      nothing more is to come
    anything else                       is for the caller
"""
import json
import os
import selectors
import subprocess
import sys
import time

PREFIX = "@@ "
START_LIMIT = 180.0  # importing PyTorch from a cold disk


def say(**message):
    """In the child."""
    print(PREFIX + json.dumps(message), flush=True)


def begin(what, limit=20.0):
    """In the child."""
    say(begin=what, limit=limit)


def watch(command, deadline, handle):
    """Runs a child until it ends, hangs, or the deadline (of time.monotonic) passes. Returns (how
    it ended, what it was doing): "done", "died", "hung" or "late"."""
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, bufsize=0)
    selector = selectors.DefaultSelector()
    selector.register(child.stdout, selectors.EVENT_READ)
    doing, limit, buffer, ended = "start", START_LIMIT, b"", ""
    heard = time.monotonic()
    while not ended:
        now = time.monotonic()
        wait = min(heard + limit, deadline) - now
        if wait <= 0:
            ended = "late" if now >= deadline else "hung"
            break
        if not selector.select(min(wait, 1.0)):
            # Its own children (compilers) may hold the pipe open after its end.
            if child.poll() is not None:
                ended = "died"
            continue
        data = os.read(child.stdout.fileno(), 1 << 16)
        if not data:
            ended = "died"
            break
        # Any word of life restarts the clock, also the chatter of libraries.
        heard = time.monotonic()
        *lines, buffer = (buffer + data).split(b"\n")
        for line in lines:
            text = line.decode(errors="replace")
            if not text.startswith(PREFIX):
                print(text, flush=True)
                continue
            message = json.loads(text[len(PREFIX):])
            if "begin" in message:
                doing, limit = message["begin"], message["limit"]
            elif "done" in message:
                ended = "done"
            else:
                handle(message)
    # One that has died is given time to leave a trace; a process inside the driver takes its time.
    for seconds in (10 if ended in ("done", "died") else 0, 60):
        try:
            child.wait(timeout=seconds)
            break
        except subprocess.TimeoutExpired:
            child.kill()
    else:
        print(f"process {child.pid} does not end", file=sys.stderr)
    child.stdout.close()
    return ended, doing
