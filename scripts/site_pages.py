# SPDX-License-Identifier: Apache-2.0
"""Writes the pages of the documentation's site into a folder: docs/, README.md, what they link to in other folders of the
project, and the gallery of the examples, which is made from the examples themselves. Also mkdocs.yml, which names them.

usage: site_pages.py FOLDER     ($NAUTILUS: the tool, build/nautilus)
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

ROOT = pathlib.Path(__file__).resolve().parents[1]

# Pages by chapter; one that is missing here is a warning of mkdocs, and so an error of the check.
CHAPTERS = [
    ("Start", ["index.md", "tour.md", "tour_kernel.md", "gallery.md", "fast_and_slow.md"]),
    ("Use", ["language.md", "command_line.md", "editors.md", "diagnostics.md", "semantics.md", "tuning.md",
             "tuning_cluster.md", "python.md", "from_flexattention.md", "c_interface.md", "bundles.md"]),
    ("Understand", ["scheduling.md", "vrtile.md", "matile.md", "row_kernels.md", "emulator.md", "targets.md",
                    "performance.md", "glossary.md"]),
    ("Contribute", ["adding_an_op.md", "adding_a_pass.md", "testing.md", "repo/CONTRIBUTING.md"]),
]

CONFIG = """site_name: Nautilus
docs_dir: pages
use_directory_urls: false
theme:
  name: material
  font: false
  features: [navigation.sections, navigation.top, content.code.copy]
  palette:
    - media: "(prefers-color-scheme: light)"
      scheme: default
    - media: "(prefers-color-scheme: dark)"
      scheme: slate
plugins: [search]
markdown_extensions: [tables, fenced_code, toc, pymdownx.highlight, pymdownx.superfences]
validation:
  links:
    not_found: warn
    anchors: warn
    unrecognized_links: warn
  nav:
    omitted_files: info
"""


def link_target(page, target):
    """Where a link of a page of the project leads, as a path of the project; nothing if to the web or into the page."""
    path = target.split("#")[0]
    if not path or re.match(r"[a-z]+:", path):
        return None
    return os.path.normpath(os.path.join(os.path.dirname(page), path))


def site_path(path):
    """The place of a file of the project in the site."""
    if path == "README.md":
        return "index.md"
    if path.startswith("docs/"):
        return path[len("docs/"):]
    return "repo/" + path


class Pages:
    def __init__(self, folder):
        self.folder = folder
        self.done = set()

    def write(self, place, text):
        target = self.folder / place
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)

    def folder_page(self, path):
        """A list of the files of a folder, for links that lead to one."""
        rows = sorted(p.name for p in (ROOT / path).iterdir() if p.is_file() and not p.name.startswith("."))
        links = []
        for name in rows:
            self.add(f"{path}/{name}")
            links.append(f"* [{name}]({os.path.relpath(site_path(f'{path}/{name}'), site_path(path))})")
        self.write(site_path(path) + "/index.md", f"# {path}\n\n" + "\n".join(links) + "\n")

    def add(self, path):
        """A file of the project, and what it links to."""
        if path in self.done:
            return
        self.done.add(path)
        source = ROOT / path
        if source.is_dir():
            if not (source / "README.md").exists():
                self.folder_page(path)
            else:
                self.add(path + "/README.md")
            return
        if source.suffix != ".md":
            (self.folder / site_path(path)).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, self.folder / site_path(path))
            return
        here = os.path.dirname(site_path(path))

        def moved(match):
            target = link_target(path, match.group(2))
            if target is None or not (ROOT / target).exists():
                return match.group(0)
            self.add(target)
            place = site_path(target)
            if (ROOT / target).is_dir():
                place += "/README.md" if (ROOT / target / "README.md").exists() else "/index.md"
            anchor = match.group(2)[len(match.group(2).split("#")[0]):]
            return f"{match.group(1)}({os.path.relpath(place, here or '.')}{anchor})"

        parts = re.split(r"(^```.*?^```$)", source.read_text(), flags=re.M | re.S)
        text = "".join(p if k % 2 else re.sub(r"(\])\(([^)\s]+)\)", moved, p) for k, p in enumerate(parts))
        self.write(site_path(path), text)


def printed(nautilus, *words):
    done = subprocess.run([nautilus, *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return json.loads(done.stdout) if done.stdout.startswith(("{", "[")) else {"ok": False, "error": done.stderr}


def measured():
    """Rows of the table of speeds by the example that they are about (docs/fast_and_slow.md)."""
    rows = {}
    for line in (ROOT / "docs" / "fast_and_slow.md").read_text().splitlines():
        cells = [c.strip() for c in line.strip().strip("|").split("|")]
        for name in re.findall(r"\(\.\./examples/(\w+)\.naut\)", line):
            rows.setdefault(name, []).append(cells)
    return rows


def example_section(nautilus, path, speeds):
    """Formula, forms of the kernels, schedule and measured speed of an example."""
    name = path.stem
    text = path.read_text()
    about = " ".join(line[1:].strip() for line in text.split("\n\n")[0].splitlines() if line.startswith("#"))
    out = [f"## {name}", about, "```text", text.strip(), "```"]
    made = printed(nautilus, "schedule", str(path.relative_to(ROOT)), "--json")
    if not made.get("ok"):
        raise SystemExit(f"site: {path} has no schedule: {made}")
    forms = re.findall(r"^kernel (\S+) (\w+)", made["schedule"], re.M)
    out.append("Kernels: " + (", ".join(f"`{name}` ({form})" for name, form in forms) or "see the schedule") + ".")
    out += ["", "??? note \"Schedule\"", "", "    ```text"] + \
           ["    " + line for line in made["schedule"].rstrip().splitlines()] + ["    ```", ""]
    for cells in speeds.get(name, []):
        out.append(f"Measured: {cells[1]} of {cells[2]}, {cells[3]} ([all](fast_and_slow.md)).")
    return "\n".join(out[:2]) + "\n\n" + "\n".join(out[2:5]) + "\n\n" + "\n".join(out[5:]) + "\n"


def gallery(nautilus):
    speeds = measured()
    paths = sorted((ROOT / "examples").glob("*.naut"))
    with ThreadPoolExecutor(2) as pool:
        sections = list(pool.map(lambda p: example_section(nautilus, p, speeds), paths))
    return ("# Gallery\n\nAll examples: the formula, the kernels that the compiler makes of it, the schedule that decides them. A speed stands "
            "where one was measured.\n\n" + "\n".join(sections))


def main():
    folder = pathlib.Path(sys.argv[1])
    pages = Pages(folder / "pages")
    for path in ["README.md", "CONTRIBUTING.md", *(str(p.relative_to(ROOT)) for p in sorted((ROOT / "docs").rglob("*.md")))]:
        pages.add(path)
    nautilus = str((ROOT / os.environ.get("NAUTILUS", "build/nautilus")).resolve())
    if os.access(nautilus, os.X_OK):
        pages.write("gallery.md", gallery(nautilus))
    else:
        pages.write("gallery.md", "# Gallery\n\nNot written: the tool was not built.\n")
    nav = ["nav:"]
    for chapter, names in CHAPTERS:
        nav.append(f"  - {chapter}:")
        nav += [f"    - {name}" for name in names]
    nav += ["  - Decisions:"] + [f"    - decisions/{p.name}" for p in sorted((ROOT / "docs" / "decisions").glob("*.md"))]
    listed = {n for _, names in CHAPTERS for n in names}
    missing = [p.name for p in sorted((ROOT / "docs").glob("*.md")) if p.name not in listed]
    if missing:
        raise SystemExit(f"site: not in a chapter of scripts/site_pages.py: {', '.join(missing)}")
    (folder / "mkdocs.yml").write_text(CONFIG.replace("pymdownx.superfences]", "pymdownx.superfences, pymdownx.details, admonition]") + "\n".join(nav) + "\n")


if __name__ == "__main__":
    main()
