# SPDX-License-Identifier: Apache-2.0
"""A child process that may hang, and what it says.

A kernel that waits for a barrier nobody arrives at never ends, and no call of the process that
launched it returns. So everything that launches runs in a child, which says what it begins and how
long that may take; a child that says nothing for longer is killed, and with it goes its kernel.

A message is a line "@@ " and JSON; other lines are passed on.

    {"begin": text, "limit": seconds}   what is under way from now on
    {"asks": true}                      waits for a line from the parent
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


def ask():
    """In the child: says that all before is done and waits for a line from the parent, which it
    returns; an empty one if the parent is gone."""
    say(asks=True)
    return sys.stdin.readline().strip()


class Child:
    """A running child. One that asks is answered by `answer`, and then followed further."""

    def __init__(self, command, asks=False):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE if asks else None,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, bufsize=0)
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.process.stdout, selectors.EVENT_READ)
        self.doing, self.limit, self.buffer = "start", START_LIMIT, b""

    def follow(self, deadline, handle, passed_on=print):
        """Until the child ends, hangs or asks, or the deadline (of time.monotonic) passes: "done",
        "died", "hung", "asks" or "late". `passed_on` gets the lines that are not messages."""
        heard = time.monotonic()
        while True:
            now = time.monotonic()
            wait = min(heard + self.limit, deadline) - now
            if wait <= 0:
                return "late" if now >= deadline else "hung"
            if not self.selector.select(min(wait, 1.0)):
                # Its own children (compilers) may hold the pipe open after its end.
                if self.process.poll() is not None:
                    return "died"
                continue
            data = os.read(self.process.stdout.fileno(), 1 << 16)
            if not data:
                return "died"
            # Any word of life restarts the clock, also the chatter of libraries.
            heard = time.monotonic()
            *lines, self.buffer = (self.buffer + data).split(b"\n")
            ended = ""
            for line in lines:
                ended = self._take(line.decode(errors="replace"), handle, passed_on) or ended
            if ended:
                return ended

    def _take(self, text, handle, passed_on):
        """What a line says about the end of `follow`."""
        if not text.startswith(PREFIX):
            passed_on(text)
            return ""
        message = json.loads(text[len(PREFIX):])
        if "begin" in message:
            self.doing, self.limit = message["begin"], message["limit"]
        elif "done" in message:
            return "done"
        elif "asks" in message:
            return "asks"
        else:
            handle(message)
        return ""

    def answer(self, text):
        """False if the child is no longer there to read it."""
        try:
            self.process.stdin.write((text + "\n").encode())
            return True
        except OSError:
            return False

    def end(self, ended):
        """Kills what still runs. `ended`: what `follow` gave last; a child that has died is given
        time to leave a trace, and a process inside the driver takes its time."""
        if self.process.stdin:
            self.process.stdin.close()
        for seconds in (10 if ended in ("done", "died") else 0, 60):
            try:
                self.process.wait(timeout=seconds)
                break
            except subprocess.TimeoutExpired:
                self.process.kill()
        else:
            print(f"process {self.process.pid} does not end", file=sys.stderr)
        self.selector.close()
        self.process.stdout.close()


def watch(command, deadline, handle):
    """Runs a child until it ends, hangs, or the deadline passes. Returns (how it ended, what it was
    doing)."""
    child = Child(command)
    ended = child.follow(deadline, handle, lambda text: print(text, flush=True))
    child.end(ended)
    return ended, child.doing
