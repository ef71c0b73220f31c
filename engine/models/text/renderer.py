"""Chat templates rendered in warm processes of their own, with limits of time and memory."""

from typing import Any

from engine.core.confined.children import Children


class Renderer:
    """Renders from any thread. Close it when done."""

    def __init__(self) -> None:
        self._children = Children("engine.models.text.render_child", "chat template")

    def render(self, template: str, messages: list[dict[str, Any]], **values: Any) -> str:
        """The prompt for `messages`. Raises BadInput as `engine.models.text.chat.render` does, and
        for a template that takes more time or memory than it may."""
        return self._children.ask(template=template, messages=messages, values=values)

    def close(self) -> None:
        """End the processes."""
        self._children.close()
