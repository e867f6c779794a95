"""How the status page looks, in the light, in the dark, and on a narrow screen."""

from __future__ import annotations

from typing import Final

STYLE: Final = """
:root { --ink: #1c2b33; --soft: #5b7280; --line: #d9e2e7; --sand: #f6f3ec; --sea: #0f6e84; }
:root { --ok: #1d7a4c; --bad: #b3402e; --remote: #8a6d3b; --local: #6b5bb0; color-scheme: light dark; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4edf1; --soft: #93a8b3; --line: #2c3d46; --sand: #131c21; --sea: #58b8cf; }
  :root { --ok: #5ec48f; --bad: #ee8673; --remote: #d3b06f; --local: #a99bea; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--sand); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 64rem; margin: 0 auto; padding: 2rem 1.25rem 4rem; overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; margin: 0; } h2 { font-size: 1rem; margin: 2.2rem 0 .6rem; color: var(--soft); }
h1 small { font-weight: 400; color: var(--soft); }
.state { font-weight: 600; } .ok { color: var(--ok); } .bad { color: var(--bad); }
.away { border-left: .25rem solid var(--bad); padding: .2rem .8rem; margin: .8rem 0; }
.note { color: var(--soft); font-size: .87rem; margin: .4rem 0 0; }
.numbers { display: grid; grid-template-columns: repeat(auto-fill, minmax(8.5rem, 1fr)); gap: .75rem; }
.numbers { margin-top: 1.5rem; }
.numbers div { border: 1px solid var(--line); border-radius: .5rem; padding: .6rem .8rem; }
.numbers b { display: block; font-size: 1.3rem; font-variant-numeric: tabular-nums; white-space: nowrap; }
.numbers span { color: var(--soft); font-size: .87rem; overflow-wrap: normal; }
table { border-collapse: collapse; width: 100%; } th { text-align: left; font-weight: 500; color: var(--soft); }
td, th { padding: .35rem 1rem .35rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
td:last-child, th:last-child { padding-right: 0; }
.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
a { color: var(--sea); }
h3 { font-size: .95rem; margin: 1.2rem 0 .4rem; } h3 small { font-weight: 400; color: var(--soft); }
.tiers { margin: 0 0 .9rem; } .tiers p { margin: 0; }
.ruler { position: relative; height: 1.55rem; margin-top: .2rem; border-bottom: 1px solid var(--soft); }
.ruler i { position: absolute; height: .4rem; min-width: 2px; border-radius: .2rem; }
.remote { background: var(--remote); } .local { background: var(--local); } .diskless { background: var(--sea); }
.ruler .remote { top: 0; } .ruler .local { top: .5rem; } .ruler .diskless { top: 1rem; }
.key { display: inline-block; width: 1.2rem; height: .4rem; border-radius: .2rem; margin: 0 .3rem .1rem .7rem; }
.key:first-child { margin-left: 0; }
.ruler u { position: absolute; bottom: 0; height: .3rem; border-left: 1px solid var(--soft); }
.ends { display: flex; justify-content: space-between; color: var(--soft); font-size: .8rem; }
@media (max-width: 44rem) {
  main { padding: 1.25rem 1rem 3rem; }
  .numbers { grid-template-columns: repeat(auto-fill, minmax(6.5rem, 1fr)); gap: .5rem; }
  .numbers b { font-size: 1.1rem; } .numbers div { padding: .5rem .6rem; }
  thead { display: none; }
  table, tbody, tr, td { display: block; }
  tr { border: 1px solid var(--line); border-radius: .5rem; padding: .5rem .8rem; margin-bottom: .5rem; }
  td { border: 0; padding: .1rem 0; display: flex; justify-content: space-between; gap: 1rem; text-align: right; }
  td::before { content: attr(data-label); color: var(--soft); text-align: left; white-space: nowrap; }
  td:first-child { font-weight: 600; text-align: left; } td:first-child::before { content: none; }
  .n { white-space: normal; }
}
""".strip()
