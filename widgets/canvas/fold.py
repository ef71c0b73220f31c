"""`CanvasFold`: what folds of canvas views share: the run's header, a frame kept until something
happens, and copies that cost little."""

from abc import abstractmethod
from typing import Any, ClassVar, Self

from engine.core.events import AnyEvent, Closed, Opened
from widgets.canvas.columns import Columns
from widgets.canvas.owner_marks import owner_mark
from widgets.fold import Fold, nothing


class CanvasFold(Fold):
    """A fold of a run's whole past. `question` and `empty` are the view's own words.

    `own` names the attributes that a copy must not share; each has a `copy` of its own.
    """

    question: ClassVar[str]
    empty: ClassVar[str]
    own: ClassVar[tuple[str, ...]] = ()

    def __init__(self) -> None:
        self.clock, self.run, self.now = "wall", "", 0.0
        self.opened = self.closed = False
        self._changes, self._framed = 0, -1
        self._frame: dict[str, Any] = {}

    def add(self, event: AnyEvent) -> None:
        self._changes += 1
        self.now = event.time
        if type(event) is Opened:
            self.clock, self.opened = event.clock, True
            self.run = f"{event.study} {event.seed} {len(str(event.config))}"
        elif type(event) is Closed:
            self.closed = True
        self.take(event)

    @abstractmethod
    def take(self, event: AnyEvent) -> None:
        """Take the next event, headers included."""

    @abstractmethod
    def draw(self) -> dict[str, Any]:
        """The frame as it is now, without what `frame` adds."""

    def frame(self) -> dict[str, Any]:
        """What to draw; the same object again while nothing has happened."""
        if self._framed != self._changes:
            self._framed = self._changes
            drawn = self.draw()
            head = {"question": self.question, "run": self.run, "now": self.now}
            modelled = {"modelled": self.clock == "virtual"}
            none = nothing(self.empty, self.opened, self.closed)
            empty = {"empty": "" if drawn.pop("any") else none}
            self._frame = {**head, **modelled, **empty, **drawn}
        return self._frame

    def copy(self) -> Self:
        other: Any = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        for name in self.own:
            setattr(other, name, getattr(self, name).copy())
        return other


class LaneFold(CanvasFold):
    """A fold with a lane for each owner; its number is its place in order of appearance."""

    own = ("lanes", "looks")

    def __init__(self) -> None:
        super().__init__()
        self.lanes: dict[str, int] = {}
        self.looks = Columns(hue="u1", texture="u1", born="f8")  # a row for each lane

    def lane(self, name: str) -> int:
        """The lane's number; a new lane is born now."""
        lane = self.lanes.get(name)
        if lane is None:
            lane = self.lanes[name] = len(self.lanes)
            self.looks.append(*owner_mark(name), self.now)
        return lane

    def named(self) -> dict[str, Any]:
        """Of a frame: whether there is `any` lane, how many, their names and their looks."""
        names = list(self.lanes)
        looks = {name: self.looks[name] for name in self.looks.types}
        return {"any": bool(names), "lanes": len(names), "names": names, **looks}
