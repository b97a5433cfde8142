"use strict";

// Improve Swagger UI's markup for screen readers and keyboards.
document.documentElement.lang = "en";
const mend = () => {
    for (const select of document.querySelectorAll("select:not([aria-label])")) {
        const row = select.closest("[data-param-name]");
        const name = row ? row.dataset.paramName : select.id === "servers" ? "Server" : "Example";
        select.setAttribute("aria-label", name);
    }
    for (const text of document.querySelectorAll("pre.microlight:not([tabindex])")) {
        text.tabIndex = 0; // so that a keyboard can scroll it
    }
    // A link within a button must not be focusable. The button itself opens the operation.
    for (const link of document.querySelectorAll("button.opblock-summary-control a[href]")) {
        link.removeAttribute("href");
    }
};
new MutationObserver(mend).observe(document.documentElement, { childList: true, subtree: true });
