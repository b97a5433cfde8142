"""What is wrong with a page for who does not see it, or not well, or has a small screen."""

from __future__ import annotations

from playwright.sync_api import Page


def faults(page: Page) -> list[str]:
    """Return what is wrong with the page that is open, in words."""
    found: list[str] = page.evaluate(_STRUCTURE) + page.evaluate(_CONTRAST)
    return found


# What a screen reader goes by.
_STRUCTURE = """() => {
    const wrong = [];
    const visible = e => e.checkVisibility();
    const name = e => (e.ariaLabel || e.title || e.textContent || e.alt || '').trim();
    const h1 = [...document.querySelectorAll('h1')];
    if (h1.length !== 1) wrong.push(`${h1.length} h1`);
    let level = 1;
    for (const h of document.querySelectorAll('main h1, main h2, main h3, main h4')) {
        const next = Number(h.tagName[1]);
        if (next > level + 1) wrong.push(`h${next} after h${level}: ${h.textContent}`);
        level = next;
    }
    for (const field of document.querySelectorAll('main input, main select, main textarea')) {
        if (['hidden', 'submit'].includes(field.type) || !visible(field)) continue;
        const labelled = field.labels.length || field.ariaLabel;
        if (!labelled) wrong.push(`no label: ${field.name || field.id}`);
    }
    for (const e of document.querySelectorAll('a[href], button')) {
        if (visible(e) && !name(e) && !e.querySelector('img[alt], svg title')) {
            wrong.push(`no name: ${e.outerHTML.slice(0, 80)}`);
        }
    }
    for (const th of document.querySelectorAll('main th')) {
        if (!th.scope && !th.closest('tbody')) wrong.push(`no scope: ${th.textContent}`);
    }
    for (const svg of document.querySelectorAll('svg[role=img]')) {
        const ids = svg.getAttribute('aria-labelledby').split(' ');
        if (!ids.every(id => svg.querySelector('#' + id))) wrong.push('a chart without a name');
    }
    const ids = [...document.querySelectorAll('[id]')].map(e => e.id);
    for (const id of ids.filter((id, at) => ids.indexOf(id) !== at)) wrong.push(`id twice: ${id}`);
    if (document.documentElement.scrollWidth > innerWidth) wrong.push('wider than the screen');
    if (!document.documentElement.lang) wrong.push('no language');
    return wrong;
}"""

# WCAG 2.1's contrast of each text to what is behind it is at least 4.5.
_CONTRAST = """() => {
    const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
    const rgba = colour => {
        canvas.clearRect(0, 0, 1, 1);
        canvas.fillStyle = colour;
        canvas.fillRect(0, 0, 1, 1);
        return canvas.getImageData(0, 0, 1, 1).data;
    };
    const light = ([r, g, b]) => [r, g, b].map(v => v / 255)
        .map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
        .reduce((sum, v, at) => sum + v * [0.2126, 0.7152, 0.0722][at], 0);
    const behind = e => {
        for (; e; e = e.parentElement) {
            const colour = rgba(getComputedStyle(e).backgroundColor);
            if (colour[3] === 255) return colour;
        }
        return [255, 255, 255];
    };
    const wrong = [];
    for (const e of document.querySelectorAll('main *')) {
        const text = [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
        if (!text || !e.checkVisibility() || e.closest('svg, .visually-hidden')) continue;
        const [a, b] = [light(rgba(getComputedStyle(e).color)), light(behind(e))];
        const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        const said = `${e.tagName} ${e.textContent.trim().slice(0, 40)}`;
        if (ratio < 4.5) wrong.push(`${ratio.toFixed(2)} ${said}`);
    }
    return wrong;
}"""
