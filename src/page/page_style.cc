// SPDX-License-Identifier: Apache-2.0
#include "page/page_style.h"

namespace nautilus::page {

const std::string_view kPageStyle = R"css(
:root {
  color-scheme: light dark;
  --page: #ffffff; --card: #f5f6f8; --ink: #1c2230; --soft: #5d6779; --grid: #e4e7ec;
  --axis: #9aa3b2; --dot: #8295b3; --best: #0a62c4; --choice: #b85a00; --bad: #c2261b;
  --mark: #dcebff;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #14171c; --card: #1d2128; --ink: #e5e9f0; --soft: #9ba5b5; --grid: #2a303a;
    --axis: #667080; --dot: #6f83a3; --best: #63b0ff; --choice: #ffab5e; --bad: #ff7d72;
    --mark: #1d3a5f;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; background: var(--page); color: var(--ink);
  font: 15px/1.55 system-ui, -apple-system, "Segoe UI", "Helvetica Neue", "DejaVu Sans", sans-serif;
}
main { max-width: 1040px; margin: 0 auto; padding: 32px 32px 64px; }
h1 { font-size: 28px; line-height: 1.2; margin: 0 0 6px; letter-spacing: -0.01em; }
h2 { font-size: 20px; margin: 48px 0 8px; letter-spacing: -0.005em; }
h3 { font-size: 16px; margin: 28px 0 8px; }
p { margin: 6px 0 12px; max-width: 76ch; }
section + section { border-top: 1px solid var(--grid); margin-top: 64px; padding-top: 48px; }
nav { margin-bottom: 32px; }
a { color: var(--best); }
.facts, .faint { color: var(--soft); }
.facts { margin: 0 0 24px; max-width: none; }
.tiles { display: flex; flex-wrap: wrap; gap: 12px; margin: 20px 0 8px; }
.tile { flex: 1 1 170px; background: var(--card); border-radius: 8px; padding: 14px 18px; }
.tile strong { display: block; font-size: 24px; line-height: 1.25; font-variant-numeric: tabular-nums; }
.tile span { color: var(--soft); font-size: 13px; }
svg { display: block; width: 100%; min-width: 720px; height: auto; margin: 8px 0 4px; overflow: visible; }
svg text { fill: var(--ink); font-size: 13px; font-variant-numeric: tabular-nums; }
svg .tick, svg .name { fill: var(--soft); }
svg .tick { font-size: 12px; }
svg .faint { opacity: 0.8; }
.grid { stroke: var(--grid); stroke-width: 1; }
.axis { stroke: var(--axis); stroke-width: 1; }
.line { fill: none; stroke: var(--soft); stroke-width: 1.5; stroke-linejoin: round; }
.line.best { stroke: var(--best); stroke-width: 2; }
.line.choice { stroke: var(--choice); stroke-dasharray: 6 4; }
.line.roof { stroke: var(--ink); stroke-width: 2; }
.line.problem { stroke: var(--axis); stroke-dasharray: 2 4; }
.leader { stroke: var(--axis); stroke-width: 1; }
.dot { fill: var(--dot); fill-opacity: 0.75; }
.dot.best { fill: var(--best); fill-opacity: 1; stroke: var(--page); stroke-width: 1; }
.dot.choice { fill: var(--choice); fill-opacity: 1; stroke: var(--page); stroke-width: 1; }
.cross { fill: none; stroke: var(--dot); stroke-width: 1.5; }
.cross.bad { stroke: var(--bad); }
svg .label.best { fill: var(--best); font-weight: 600; }
svg .label.choice { fill: var(--choice); font-weight: 600; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 14px; margin: 8px 0 12px; }
th { text-align: left; font-weight: 600; font-size: 13px; color: var(--soft); vertical-align: bottom; }
th, td { padding: 6px 12px 6px 0; border-bottom: 1px solid var(--grid); }
td { vertical-align: top; }
th.number, td.number { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
.decisions td:first-child code { white-space: nowrap; }
.decisions td:nth-child(2), .decisions td:nth-child(5) { min-width: 170px; max-width: 260px; }
.decisions td.alone { white-space: normal; max-width: 170px; }
tr.winner td { background: var(--card); }
.bar { display: block; width: 110px; height: 9px; margin-top: 7px; background: var(--card); border-radius: 3px; }
.bar span { display: block; height: 100%; min-width: 1px; background: var(--best); border-radius: 3px; }
code, pre { font-family: ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: 12.5px; }
pre { background: var(--card); border-radius: 8px; padding: 14px 16px; overflow-x: auto; line-height: 1.5; }
mark { background: var(--mark); color: inherit; border-radius: 3px; padding: 1px 2px; }
summary { cursor: pointer; }
@media print { details, .wide, pre { overflow: visible; } body { font-size: 12px; } }
)css";

}  // namespace nautilus::page
