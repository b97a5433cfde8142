"""Accessibility checks of a page: screen readers, keyboard, contrast and small screens."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal

import pytest
from playwright.sync_api import Page

Screen = tuple[int, Literal["light", "dark"]]

#: A large screen and a telephone, with both themes; the narrow layout begins below 768.
SCREENS: Final[tuple[Screen, ...]] = ((1440, "light"), (390, "dark"))
#: Intermediate widths, at which only overflow is checked.
_TABLET: Final = 1024
_HEIGHT: Final = 900
#: axe-core's tags of WCAG up to 2.2 at the levels A and AA, and of "best-practice".
WCAG: Final = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa")
# It would load style sheets again, and insert them into the page.
_RUN: Final = """async tags => {
    const options = {resultTypes: ['violations'], preload: false, runOnly: tags};
    const {violations} = await axe.run(options);
    return violations.flatMap(({id, nodes}) => nodes.map(
        node => `${id}: ${node.target.join(' ')}: ${node.failureSummary}`
    ));
}"""
# Boxes with overflowing content, and words whose letters continue on the next line.
_TOO_WIDE: Final = r"""() => {
    const found = [], range = document.createRange();
    if (document.documentElement.scrollWidth > innerWidth) found.push('the page is too narrow');
    const shown = [...document.querySelectorAll('main *')].filter(e => e.checkVisibility());
    for (const e of shown) {
        const scrolls = /auto|scroll/.test(getComputedStyle(e).overflowX);
        if (scrolls && !/^(INPUT|TEXTAREA)$/.test(e.tagName) && e.scrollWidth > e.clientWidth + 1)
            found.push(`a box is too narrow: ${e.outerHTML.slice(0, 100)}`);
        if (e.matches('textarea:disabled') && e.scrollHeight > e.clientHeight)
            found.push(`a text is cut off: ${e.outerHTML.slice(0, 100)}`);
        for (const text of [...e.childNodes].filter(n => n.nodeType === Node.TEXT_NODE))
            for (const {0: word, index} of text.data.matchAll(/[\p{L}\p{N}_]+/gu)) {
                if (!/^\p{L}{2,20}$/u.test(word)) continue;
                range.setStart(text, index);
                range.setEnd(text, index + word.length);
                const lines = [...range.getClientRects()].filter(r => r.width);
                if (lines.some(r => r.top > lines[0].bottom)) found.push(`broken: ${word}`);
            }
    }
    return found;
}"""
_SIZES: Final = {"type": "rule", "values": ["target-size"]}
_REACHED: Final = "data-reached-by-keyboard"
# Tab starts at the top of the page, also if the page has focused a field further down.
_WATCH: Final = f"""() => {{
    document.body.tabIndex = -1;
    document.body.focus();
    addEventListener('focusin', event => event.target.setAttribute('{_REACHED}', ''), true);
}}"""
# A group of radio buttons has a single stop; arrows lead to the other choices.
_UNREACHED: Final = f"""() => {{
    const reached = e => e.hasAttribute('{_REACHED}') || e.type === 'radio' &&
        [...document.getElementsByName(e.name)].some(e => e.hasAttribute('{_REACHED}'));
    return [...document.querySelectorAll('main :is(a[href], button, input, select, textarea)')]
        .filter(e => e.checkVisibility() && !e.disabled && e.type !== 'hidden' && !reached(e))
        .map(e => `no key leads to ${{e.outerHTML.slice(0, 100)}}`);
}}"""
# A date has a stop for the day, the month, the year and so on.
_STOPS: Final = """[...document.querySelectorAll(
    'a, button, input, select, textarea, summary, [tabindex]'
)].filter(e => e.checkVisibility()).reduce((sum, e) => sum + (/^date/.test(e.type) ? 8 : 1), 0)"""


def faults(
    page: Page,
    screens: Sequence[Screen] = SCREENS,
    rules: Sequence[str] = (*WCAG, "best-practice"),
    between: Sequence[int] = (_TABLET,),
) -> list[str]:
    """Return the faults of the open page, in words; axe-core takes half a second.

    At the widths in between links may be stacked, so the size of targets is checked there too.
    """
    page.wait_for_load_state()
    page.emulate_media(reduced_motion="reduce")  # or colours are in transition while they are read
    page.evaluate(_axe())
    found = []
    for width, scheme in screens:
        page.set_viewport_size({"width": width, "height": _HEIGHT})
        page.emulate_media(color_scheme=scheme)
        found += [f"{width} {scheme}: {fault}" for fault in page.evaluate(_RUN, rules)]
    for width in (*between, *(width for width, _ in SCREENS)):
        page.set_viewport_size({"width": width, "height": _HEIGHT})
        found += [f"{width}: {fault}" for fault in page.evaluate(_TOO_WIDE)]
        if width in between:
            found += [f"{width}: {fault}" for fault in page.evaluate(_RUN, _SIZES)]
    page.set_viewport_size({"width": SCREENS[0][0], "height": _HEIGHT})
    page.emulate_media(color_scheme=SCREENS[0][1])
    return found


def unreached(page: Page) -> list[str]:
    """Return the elements of the main part of the page that Tab does not reach."""
    page.evaluate(_WATCH)
    for _ in range(page.evaluate(_STOPS)):
        page.keyboard.press("Tab")
    found: list[str] = page.evaluate(_UNREACHED)
    return found


def _axe() -> str:
    """Return axe-core, which a package contains."""
    package = importlib.util.find_spec("axe_playwright_python")
    if package is None or package.origin is None:
        pytest.skip("no axe-core: install requirements-dev.txt again")
    return Path(package.origin).with_name("axe.min.js").read_text()
