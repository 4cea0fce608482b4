# SPDX-License-Identifier: Apache-2.0
"""The child processes of guard.py: one case, checked, then timed as often as the parent asks.

All children prepare at the same time, sharing the card; then each waits for its turn. What is slow
(starting PyTorch, compiling a peer, references in float64) is so paid once for all of them, and
nothing else runs on the card while one is timed.
"""
import contextlib

import torch

import nautilus_lib
import peers as peers_module
import supervise
import timing
import work
import worker

LIMIT = 60.0  # seconds for a check: many share the card
PEER_LIMIT = 240.0  # the first call of torch.compile
TURNS_MS = 400.0  # how long the turns of a timing take together
FLUSH_MS = 0.15


class Wrong(Exception):
    """Why the case cannot be timed."""


@torch.inference_mode()
def run(case, path, peer, options):
    """Says `wrong` and why, or asks and answers "time" with `times`."""
    torch.cuda.init()
    try:
        with contextlib.ExitStack() as stack:
            functions, errors = _prepared(case, path, peer, options, stack)
            torch.cuda.empty_cache()
            while supervise.ask() == "time":
                supervise.begin("timing", 60)
                turns = _turns(functions)
                supervise.say(times=timing.sustained(functions, turns), errors=errors)
    except (Wrong, RuntimeError) as problem:
        supervise.say(wrong=worker.first_line(problem))
        return 1
    supervise.say(done=True)
    return 0


def _prepared(case, path, peer, options, stack):
    """({name: function} of the peer and ours, {name: relative error}), both checked."""
    supervise.begin("open", worker.OPEN_LIMIT)
    kernel = nautilus_lib.Kernel(path, nautilus_lib.Library(options.lib), options.target)
    why, _ = worker.check_small(case, kernel, "small problems", LIMIT)
    if why:
        raise Wrong(f"small problems: {why}")
    supervise.begin("inputs", 120)
    problem = work.timed(case)
    supervise.begin(f"peer {peer}", PEER_LIMIT)
    notes = []
    run = dict(problem.peers(stack, notes.append, True)).get(peer)
    if run is None:
        raise Wrong("; ".join([f"there is no peer {peer} to compare with", *notes]))
    errors, reference = {}, None
    if peer not in peers_module.YARDSTICKS:
        result = problem.check(lambda: problem.out.copy_(run()))
        if not result.ok:
            raise Wrong(f"the peer {peer}: {result.why}")
        errors[peer] = result.rel_error
        reference = run().clone()
    supervise.begin("check at the timed sizes", LIMIT)
    problem.bind(kernel)
    launch = kernel.launcher()
    result = problem.check(launch)
    why = result.why or worker.differs(problem.out, reference)
    if why:
        raise Wrong(f"{why} (seed {problem.seed})")
    errors["ours"] = result.rel_error
    # The tensors live as long as the functions that use them.
    return {peer: run, "ours": launch}, errors


def _turns(functions):
    """More turns for short kernels, whose times vary more."""
    one = worker.rough_ms(functions) + FLUSH_MS
    return int(min(60, max(15, TURNS_MS / (one * len(functions)))))
