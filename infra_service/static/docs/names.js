"use strict";

// What Swagger UI's own markup lacks for who hears the page or has no mouse.
document.documentElement.lang = "en";
const mend = () => {
    for (const select of document.querySelectorAll("select:not([aria-label])")) {
        const row = select.closest("[data-param-name]");
        const name = row ? row.dataset.paramName : select.id === "servers" ? "Server" : "Example";
        select.setAttribute("aria-label", name);
    }
    for (const text of document.querySelectorAll("pre.microlight:not([tabindex])")) {
        text.tabIndex = 0; // it may have to be scrolled
    }
    // A link in a button is no place that a keyboard stops at; the button opens the same.
    for (const link of document.querySelectorAll("button.opblock-summary-control a[href]")) {
        link.removeAttribute("href");
    }
};
new MutationObserver(mend).observe(document.documentElement, { childList: true, subtree: true });
