"use strict";
// Keep the sidebar on wide screens open or closed, as the user left it.
document.documentElement.dataset.menu = localStorage.getItem("menu") ?? "open";
document.addEventListener("DOMContentLoaded", () => {
    const { dataset } = document.documentElement;
    const button = document.getElementById("menu-toggle");
    const show = () => button?.setAttribute("aria-expanded", String(dataset.menu === "open"));
    button?.addEventListener("click", () => {
        dataset.menu = dataset.menu === "open" ? "closed" : "open";
        localStorage.setItem("menu", dataset.menu);
        show();
    });
    show();
});
