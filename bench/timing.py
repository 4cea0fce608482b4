# SPDX-License-Identifier: Apache-2.0
"""Times of functions that start work on the GPU.

Everything that is compared is timed in one loop, turn by turn: the card changes its clock with
power and temperature, so times of different minutes do not compare. Three protocols:

    sustained    0.7 s of the mix first, until clocks and power have settled; then turns, each with
                 the L2 cache flushed before it
    burst        the card idles for 0.4 s; then 5 + 30 launches of one function, flushed: what a
                 quick benchmark sees, before the power limit bites
    back_to_back blocks of launches of one function without flushes, taking turns

Times are between two events on the stream, so they contain what the host loses between launches
only where it is slower than the card; each loop begins with some idle work on the card to give the
host a start.
"""
import statistics
import subprocess
import threading
import time

FLUSH_BYTES = 256 << 20  # several times the L2 of any card so far
WARM_SECONDS = 0.7
IDLE_SECONDS = 0.4
BURST_WARM, BURST_TIMED = 5, 30

_flush = None


def flush():
    global _flush
    import torch
    if _flush is None:
        _flush = torch.empty(FLUSH_BYTES, dtype=torch.int8, device="cuda")
    _flush.zero_()


def _head_start():
    import torch
    sleep = getattr(torch.cuda, "_sleep", None)
    if sleep:
        sleep(4_000_000)  # cycles, about 2 ms


def once_ms(function):
    """Of one call, which may be slow."""
    import torch
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    begin.record()
    function()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end)


def quartiles(values):
    """(median, 25 %, 75 %)"""
    if len(values) < 2:
        return values[0], values[0], values[0]
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return middle, low, high


def interleaved(functions, repetitions, head_start_each_turn=False):
    """{name: [ms]} for functions {name: f}. The order rotates, so that nobody always follows the
    same neighbour. Where hosts of some functions take longer than their kernels, one head start is
    soon used up: then every turn has one."""
    import torch
    names = list(functions)
    events = {n: [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True))
                  for _ in range(repetitions)] for n in names}
    for f in functions.values():
        f()
    _head_start()
    for r in range(repetitions):
        turn = r % len(names)
        if head_start_each_turn and r:
            _head_start()
        for name in names[turn:] + names[:turn]:
            begin, end = events[name][r]
            flush()
            begin.record()
            functions[name]()
            end.record()
    torch.cuda.synchronize()
    return {n: [b.elapsed_time(e) for b, e in pairs] for n, pairs in events.items()}


def by_kernel(function, repetitions=5):
    """{kernel: ms} of one call, the longest first; what a call leaves in the cache is there for the
    next one."""
    import torch
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        for _ in range(repetitions):
            function()
        torch.cuda.synchronize()
    times = {e.key: e.self_device_time_total / 1000 / repetitions for e in profile.key_averages()}
    return {name: round(ms, 5) for name, ms in sorted(times.items(), key=lambda kv: -kv[1]) if ms}


def sustained(functions, repetitions, head_start_each_turn=False):
    import torch
    start = time.monotonic()
    while time.monotonic() - start < WARM_SECONDS:
        for f in functions.values():
            f()
        torch.cuda.synchronize()
    return interleaved(functions, repetitions, head_start_each_turn)


def burst(function, repetitions=BURST_TIMED):
    """[ms] of one function after a pause."""
    import torch
    torch.cuda.synchronize()
    time.sleep(IDLE_SECONDS)
    for _ in range(BURST_WARM):
        function()
    return interleaved({"f": function}, repetitions)["f"]


def back_to_back(functions, launches, blocks=5):
    """{name: [ms per launch, one for each block]}"""
    import torch
    result = {n: [] for n in functions}
    for _ in range(blocks):
        for name, f in functions.items():
            f()
            _head_start()
            begin = torch.cuda.Event(enable_timing=True)
            end = torch.cuda.Event(enable_timing=True)
            begin.record()
            for _ in range(launches):
                f()
            end.record()
            end.synchronize()
            result[name].append(begin.elapsed_time(end) / launches)
    return result


# Bits of NVML's clock event reasons; idle and the clocks that an administrator set are no trouble.
REASONS = {0x4: "power cap", 0x8: "hardware slowdown", 0x10: "sync boost", 0x20: "thermal (soft)",
           0x40: "thermal", 0x80: "power brake", 0x100: "display clock"}

QUERIES = ("clocks.sm,power.draw.instant,clocks_event_reasons.active",
           "clocks.sm,power.draw,clocks_event_reasons.active",
           "clocks.sm,power.draw,clocks_throttle_reasons.active")


class Sampler:
    """Clock, power and the reasons for a lower clock, read every 100 ms by nvidia-smi. Only reads:
    nothing of the card is changed. Without nvidia-smi all answers are empty."""

    def __init__(self, gpu="0"):
        self.samples = []  # (seconds, MHz, W, reasons)
        self.process = None
        self.driver = _ask(gpu, "driver_version")
        self.gpu = _ask(gpu, "name")
        query = next((q for q in QUERIES if _ask(gpu, q)), None)
        if query is None:
            return
        self.process = subprocess.Popen(
            ["nvidia-smi", "-i", gpu, f"--query-gpu={query}", "--format=csv,noheader,nounits",
             "-lms", "100"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            sample = parse_sample(line)
            if sample:
                self.samples.append((time.monotonic(), *sample))

    def between(self, start, end):
        """{clock_mhz, watts, reasons}: medians, and the reasons of a tenth of the samples."""
        inside = [s for s in list(self.samples) if start <= s[0] <= end]
        if not inside:
            return dict(clock_mhz=None, watts=None, reasons=[])
        count = {r: sum(1 for s in inside if s[3] & bit) for bit, r in REASONS.items()}
        return dict(clock_mhz=statistics.median(s[1] for s in inside),
                    watts=statistics.median(s[2] for s in inside),
                    reasons=[r for r, n in count.items() if n * 10 >= len(inside)])

    def close(self):
        if self.process:
            self.process.terminate()
            self.process.wait()
            self.process = None


def parse_sample(line):
    """(MHz, W, reasons) of a line of nvidia-smi, or None."""
    parts = [p.strip() for p in line.split(",")]
    try:
        return float(parts[0]), float(parts[1]), int(parts[2], 0)
    except (IndexError, ValueError):
        return None


def _ask(gpu, query):
    try:
        done = subprocess.run(["nvidia-smi", "-i", gpu, f"--query-gpu={query}",
                               "--format=csv,noheader,nounits"], capture_output=True, text=True,
                              timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
