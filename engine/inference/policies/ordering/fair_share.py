"""Fair share between users: the one served least goes first (virtual token counter, 2401.00588)."""

from typing import Literal

from engine.inference.policies.policy import Ordering, View
from engine.inference.requests.request import Request


class FairShare(Ordering):
    """The user for whom the fewest tokens were computed goes first."""

    kind: Literal["fair_share"] = "fair_share"

    @property
    def accounts(self) -> bool:
        return True

    @property
    def moving(self) -> bool:
        return True

    def key(self, request: Request, view: View) -> tuple[float, ...]:
        return (view.served.get(request.user, 0.0),)
