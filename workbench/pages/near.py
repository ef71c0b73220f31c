"""A place on a page that says, once, that a person has scrolled near it: what is dear to make and
stands far below is made then."""

import param

from widgets.page.component import Component

AHEAD = 400  # pixels below the window's edge that are near


class Near(Component):
    """Nothing to see. `is_near`: whether it has been, told by the browser."""

    is_near = param.Boolean(default=False)
    ahead = param.Integer(default=AHEAD)

    _esm = """
    export default {
      render({ model, el }) {
        const margin = `${model.get("ahead")}px`;
        const watch = new IntersectionObserver((entries) => {
          if (!entries.some((entry) => entry.isIntersecting)) return;
          watch.disconnect();
          model.set("is_near", true);
          model.save_changes();
        }, { rootMargin: margin, scrollMargin: margin });
        watch.observe(el);
        return () => watch.disconnect();
      },
    };
    """
