"use strict";
// Show and hide the columns of lists. The browser stores the hidden columns by the path of the page.
{
    const key = `columns ${location.pathname}`;
    const hidden = new Set(JSON.parse(localStorage.getItem(key) ?? "[]"));
    const sheet = new CSSStyleSheet();
    const apply = () => {
        const cells = [...hidden].map((name) => `#result_list :is(.column-${name}, .field-${name})`);
        sheet.replaceSync(cells.length ? `${cells.join(", ")} { display: none; }` : "");
    };
    document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
    apply();
    document.addEventListener("DOMContentLoaded", () => {
        for (const box of document.querySelectorAll("[data-columns] input")) {
            box.checked = !hidden.has(box.value);
        }
    });
    document.addEventListener("change", ({ target }) => {
        if (target.closest("[data-columns]")) {
            hidden[target.checked ? "delete" : "add"](target.value);
            localStorage.setItem(key, JSON.stringify([...hidden]));
            apply();
        }
    });
}
