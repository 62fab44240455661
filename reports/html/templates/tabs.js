// Sections of one tab are shown together; a link, an address or a search within the page chooses the tab.
const Tabs = (() => {
  const sections = [...document.querySelectorAll("section[data-tab]")];
  const show = (tab) => {
    for (const section of sections) {
      if (section.dataset.tab === tab) section.removeAttribute("hidden"); else section.setAttribute("hidden", "until-found");
      const link = document.querySelector(`.top nav a[href="#${section.id}"]`);
      if (section.dataset.tab === tab) link.setAttribute("aria-current", "true"); else link.removeAttribute("aria-current");
    }
  };
  const reveal = (element) => { const section = element?.closest("section[data-tab]"); if (section) show(section.dataset.tab); return Boolean(section); };
  const follow = () => { const target = document.getElementById(location.hash.slice(1)); if (reveal(target)) target.scrollIntoView(); };
  if (sections.length) {
    show(sections[0].dataset.tab);
    for (const section of sections) section.addEventListener("beforematch", () => reveal(section));
    addEventListener("hashchange", follow);
    document.addEventListener("click", (event) => { const link = event.target.closest?.('a[href^="#"]'); if (link && link.hash === location.hash) follow(); });
    follow();
  }
  return { reveal };
})();
