# SPDX-License-Identifier: Apache-2.0
"""Problems with a process each: a window of them is compiled at the same time, then one after the
other is timed alone.

What is slow (starting PyTorch, compilers of others, our own) needs all cores and little of the card;
what is timed needs the card for itself. A child (supervise.py) asks twice: before it takes memory of
the card, which the parent grants by "prepare", and before it is timed: "time".
"""
import concurrent.futures
import threading
import time

import supervise


class Member:
    """A problem of a window, and its child while there is one. Those who use windows say in `take`
    what messages mean, in `ended` what the end of a child means, and in `finished` what is written."""

    def __init__(self):
        self.child = None
        self.needs = 0  # bytes of the card, while it compiles
        self.late = False  # the time was used up: something for the next run
        self.output = []  # what the child printed

    def take(self, message):
        raise NotImplementedError

    def ended(self, how, doing, limit):
        """The child has ended, "done", "died" or "hung" at what it was doing."""
        raise NotImplementedError

    def finished(self, sampler, state):
        raise NotImplementedError

    def follow(self, deadline):
        """True if the child asks what to do next."""
        how = self.child.follow(deadline, self._message, self.output.append)
        if how == "asks":
            return True
        if how == "late":
            self.late = True
        else:
            self.ended(how, self.child.doing, self.child.limit)
        self.leave(how)
        return False

    def _message(self, message):
        if "needs" in message:
            self.needs = message["needs"]
        else:
            self.take(message)

    def leave(self, how):
        """A child that is done has given back its memory; nobody waits for its end."""
        child, self.child = self.child, None
        if how == "done":
            threading.Thread(target=child.end, args=(how,)).start()
        else:
            child.end(how)


class Memory:
    """What children that compile at the same time may take of the card together."""

    def __init__(self, limit):
        self.limit, self.used, self.changed = limit, 0, threading.Condition()

    def take(self, wanted):
        with self.changed:
            self.changed.wait_for(lambda: self.used == 0 or self.used + wanted <= self.limit)
            self.used += wanted

    def give(self, taken):
        with self.changed:
            self.used -= taken
            self.changed.notify_all()


class Starts:
    """Children on their way to the point where they need the card: Python and PyTorch are loaded,
    our kernels are compiled. `jobs` at a time; few while something else is timed. `command` gives the
    command line of a member's child."""

    def __init__(self, members, command, deadline, jobs):
        self.command, self.deadline = command, deadline
        self.pool = concurrent.futures.ThreadPoolExecutor(max(1, jobs))
        self.asked = {m: self.pool.submit(self._start, m) for m in members}

    def _start(self, member):
        if time.monotonic() > self.deadline:
            member.late = True
            return False
        member.child = supervise.Child(self.command(member), asks=True)
        return member.follow(self.deadline)

    def wait(self, member):
        """True if it asks for the card."""
        return self.asked[member].result()


def prepare(members, starts, jobs, memory_gb, deadline):
    """Until the compilers are done with all problems."""
    start = time.monotonic()
    memory = Memory(memory_gb * 1e9)

    def one(member):
        if not starts.wait(member):
            return
        needs = member.needs
        memory.take(needs)
        try:
            member.child.answer("prepare")
            member.follow(deadline)
        finally:
            memory.give(needs)

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        list(pool.map(one, members))
    ready = sum(1 for m in members if m.child)
    print(f"{ready} of {len(members)} prepared in {time.monotonic() - start:.0f} s", flush=True)


def time_window(members, sampler, deadline, write):
    start = time.monotonic()
    for member in members:
        began = time.monotonic()
        if member.child and began < deadline:
            member.child.answer("time")
            member.follow(deadline)
        if member.child:  # no time was left
            member.leave("late")
            member.late = True
        if not member.late:
            write(member, member.finished(sampler, sampler.between(began, time.monotonic())))
    print(f"timed in {time.monotonic() - start:.0f} s", flush=True)


def run(members, command, options, sampler, deadline, write):
    """All of them, in windows; `options` has jobs, window and memory_gb."""
    windows = [members[i:i + options.window] for i in range(0, len(members), options.window)]
    starts = Starts(windows[0] if windows else [], command, deadline, options.jobs)
    for window, following in zip(windows, windows[1:] + [[]]):
        prepare(window, starts, options.jobs, options.memory_gb, deadline)
        starts = Starts(following, command, deadline, options.jobs // 4)
        time_window(window, sampler, deadline, write)
